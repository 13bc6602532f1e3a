"""From where on more clients bring nothing, and how sure the most of many steps is."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from searchbench.analysis.compare.state import State
from searchbench.analysis.judgement import Estimate, Interval, Step
from searchbench.analysis.stats import within
from searchbench.analysis.sweep.clients import knee, sentences
from searchbench.analysis.sweep.points import Point, points

WINDOW = (0, 20_000_000_000)
TRUE = {1: 1000, 2: 1120, 4: 1200, 8: 1250}


def swept(
    rates: dict[int, float], error: float, rng: np.random.Generator, blocks: int = 1
) -> list[Point]:
    """A subject at these rates by clients; ``error``: the relative standard error of a window."""
    steps = []
    for clients, rate in rates.items():
        for block in range(blocks):
            noise = 1 + error * np.sqrt(within.SLICES) * rng.standard_normal(within.SLICES)
            counts = np.maximum(0, np.rint(rate * noise)).astype(int)
            edges = np.linspace(*WINDOW, within.SLICES + 1)
            at = [np.linspace(lo, hi, n, endpoint=False)
                  for lo, hi, n in zip(edges, edges[1:], counts, strict=False)]  # fmt: skip
            answered = within.rate(np.concatenate(at).astype(np.int64), WINDOW)
            about: dict[str, Any] = {"trial": f"{clients}-{block}", "levels": {}, "block": block}
            steps.append(
                Step(system="s", subject="s", treatment=f"c{clients}", label=f"{clients}",
                     kind="closed", status="valid", clients_asked=clients, answered=answered,
                     **about)
            )  # fmt: skip
    return points(steps)["s"]


def test_no_more_is_not_said_of_what_may_well_be_more() -> None:
    rng = np.random.default_rng(3)
    said = [" ".join(sentences("s", swept(TRUE, 0.06, rng))) for _ in range(60)]
    found = [re.search(r"More than (\d) clients? brings? no more", text) for text in said]
    claimed = [int(one[1]) for one in found if one]
    wrong = sum(TRUE[8] / TRUE[n] >= 1.05 for n in claimed)
    assert wrong <= 3, Counter(claimed)
    assert sum("more throughput is not resolved (up to +" in text for text in said) > 40


def test_a_plateau_that_is_known_well_is_called_one() -> None:
    rng = np.random.default_rng(4)
    flat = {1: 500.0, 2: 1000.0, 4: 2000.0, 8: 2000.0, 16: 2000.0}
    said = [" ".join(sentences("s", swept(flat, 0.005, rng))) for _ in range(40)]
    assert sum(bool(re.search(r"More than (4|8) clients bring no more", s)) for s in said) >= 36
    assert not any("More than 1 client brings no more" in text for text in said)
    assert not any("More than 2 clients bring no more" in text for text in said)
    assert sum("not resolved (up to" in text for text in said) <= 2


def test_the_last_step_as_the_best_tells_nothing_of_more_clients() -> None:
    own = swept({1: 500.0, 2: 1000.0, 4: 2000.0}, 0.005, np.random.default_rng(5))
    said = " ".join(sentences("s", own))
    assert "That is the last usable step" in said
    assert "no more" not in said


def test_the_interval_of_the_most_allows_for_the_choice_of_the_greatest() -> None:
    rng = np.random.default_rng(6)
    alone, missed = 0, {1: 0, 3: 0}
    for blocks, sweeps in ((1, 80), (3, 20)):
        for _ in range(sweeps):
            own = swept(dict.fromkeys(range(4, 25, 2), 1000.0), 0.03, rng, blocks)
            text = sentences("s", own)[0]
            found = re.search(r"interval ([\d,.]+)–([\d,.]+)\)", text)
            assert found is not None
            low, high = (float(end.replace(",", "")) for end in found.groups())
            missed[blocks] += not low <= 1000 <= high
            most = max((p.steps[0].answered for p in own if p.steps[0].answered),
                       key=lambda e: e.value)  # fmt: skip
            assert most.interval is not None
            alone += blocks == 1 and not most.interval.low <= 1000 <= most.interval.high
    assert alone > 12, "the interval of the greatest step alone misses"
    assert missed[1] <= 8
    assert missed[3] <= 3


def test_a_peak_that_stands_out_has_the_interval_of_its_own_step() -> None:
    own = swept({1: 500.0, 2: 1000.0, 4: 2000.0, 8: 1500.0}, 0.005, np.random.default_rng(7))
    found = knee(own)
    assert (found.most.x, found.rivals) == (4, 1)
    most = own[2].of("answered")
    assert most is not None
    assert most.interval is not None
    span = most.interval
    assert f"{span.low:,.0f}–{span.high:,.0f}" in sentences("s", own)[0]


def test_a_decline_of_steps_that_were_driven_once_is_said_of_these_drives_alone() -> None:
    rng, falls = np.random.default_rng(5), {1: 500.0, 2: 1000.0, 4: 880.0}
    steady = State("steady", 0, 1, 0.0, 0.0, 1.0, None)
    once, thrice = (
        " ".join(sentences("s", [replace(p, state=steady) for p in swept(falls, 0.005, rng, n)]))
        for n in (1, 3)
    )
    assert "In these drives, it answered less with more clients: at 4 clients 0.8" in once
    assert "Each was driven once, so it is not known whether the load is the reason." in once
    assert "With more clients it answers less: at 4 clients 0.8" in thrice
    assert "In these drives" not in thrice


def test_a_server_that_hangs_with_more_clients_is_not_said_to_sustain_more() -> None:
    own = swept({1: 1000, 2: 2000, 4: 1}, 0.005, np.random.default_rng(6))
    few = replace(own[-1].steps[0].answered, value=1.5, interval=None, n=6)  # type: ignore[type-var]
    own[-1] = replace(own[-1], steps=(replace(own[-1].steps[0], answered=few),))
    said = " ".join(sentences("s", own))
    assert "At 4 clients too few requests were answered to be compared (1.5 per second)." in said
    assert "may sustain more" not in said
    assert "nothing is known beyond 2 clients" in said
    assert "may sustain more" in " ".join(sentences("s", own[:-1]))


def driven(sd: float, blocks: int, rng: np.random.Generator) -> list[Point]:
    """2 clients bring 8 % more than 1, and 4 and 8 as much as 2; each drive has a level of its own,
    by ``sd``, and windows show 0.5 %."""
    steps = []
    for block in range(blocks):
        for clients, rate in {1: 1000.0, 2: 1080.0, 4: 1080.0, 8: 1080.0}.items():
            value = rate * float(np.exp(sd * rng.standard_normal()))
            span = Interval(value * 0.995, value * 1.005, 0.95, "batch means")
            about: dict[str, Any] = {"trial": f"{block}-{clients}", "levels": {}, "block": block}
            steps.append(
                Step(system="s", subject="s", treatment=f"c{clients}", label=f"{clients}",
                     kind="closed", status="valid", clients_asked=clients,
                     answered=Estimate(value, "queries/s", 9999, span), **about)
            )  # fmt: skip
    steady = State("steady", 0, 1, 0.0, 0.0, 1.0, None)
    return [replace(p, state=steady) for p in points(steps)["s"]]


@pytest.mark.parametrize("blocks", [1, 2, 3])
@pytest.mark.parametrize("sd", [0.02, 0.05, 0.08])
def test_drives_that_scatter_are_no_plateau(sd: float, blocks: int) -> None:
    rng = np.random.default_rng(4)
    said = [" ".join(sentences("s", driven(sd, blocks, rng))) for _ in range(400)]
    assert sum("More than 1 client brings no more throughput" in text for text in said) <= 4
    if (sd, blocks) == (0.05, 1):
        assert any("each was driven once, and two drives of one load may differ" in t for t in said)


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_plateau_of_drives_that_hardly_scatter_is_called_one(blocks: int) -> None:
    rng = np.random.default_rng(4)
    said = [" ".join(sentences("s", driven(0.003, blocks, rng))) for _ in range(100)]
    found = [re.search(r"More than (\d) clients? brings? no more", text) for text in said]
    assert sum(one is not None and one[1] in "24" for one in found) >= 80
    assert not any(one is not None and one[1] == "1" for one in found)
