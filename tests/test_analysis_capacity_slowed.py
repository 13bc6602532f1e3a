"""A server that is slower for a part of one window: its rate is not what broke the promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from queues import Floats, Serve, Server, fixed, heavy, random
from searchbench.analysis.capacity.bracket import bracket
from searchbench.analysis.capacity.pace import Driven, Seen
from searchbench.analysis.capacity.promise import judge
from searchbench.analysis.capacity.slowed import longest_s
from searchbench.analysis.trial.measured import Trace
from searchbench.workload.load_table import parse_promise
from searches import search

PROMISE = "p99 < 10ms"
LIMIT_NS = 10e6
LIMIT_PER_S = 1740.0  # of M/D/4 of 2 ms, for this promise
STEP_S = 0.005


def slower(to: float, *spells: tuple[float, float]) -> Serve:
    """M/D/4 of 2 ms that works at a share of its speed from one second to another."""
    serve = fixed(4, 0.002)

    def served(due: Floats, rng: np.random.Generator) -> tuple[Floats, np.ndarray]:
        at = np.arange(0.0, 6 * due[-1] + 20, STEP_S)
        speed = np.ones(len(at))
        for begin, end in spells:
            speed[(at >= begin) & (at < end)] = to
        work = np.concatenate([[0.0], np.cumsum(speed[:-1]) * STEP_S])
        done, ok = serve(np.interp(due, at, work), rng)
        return np.interp(done, work, at), ok

    return served


def driven(serve: Serve, rate: float, seconds: float = 60.0, seed: int = 3) -> Trace:
    return Server(serve, np.random.default_rng(seed)).trace(rate, seconds, 10)


@pytest.mark.parametrize("begin", [12, 30, 50])
def test_a_spell_within_a_window_is_found_with_its_length(begin: int) -> None:
    """From a rate at which the slower server still keeps up with nine tenths, nothing is said."""
    rate = 1.03 * LIMIT_PER_S
    assert longest_s(LIMIT_NS, driven(slower(0.6, (begin, begin + 12)), rate)) == pytest.approx(
        12, abs=1
    )
    assert not longest_s(LIMIT_NS, driven(slower(0.6, (begin, begin + 2)), rate))
    assert not longest_s(LIMIT_NS, driven(slower(0.95, (begin, begin + 12)), rate))


def test_what_began_before_the_window_or_lasts_to_its_end_is_one() -> None:
    rate = 1.03 * LIMIT_PER_S
    assert longest_s(LIMIT_NS, driven(slower(0.6, (4, 22)), rate)) == pytest.approx(12, abs=1)
    assert longest_s(LIMIT_NS, driven(slower(0.6, (58, 80)), rate)) == pytest.approx(12, abs=1)


@pytest.mark.parametrize("rate", [0.9, 1.0, 1.05, 1.3])
@pytest.mark.parametrize(
    "serve",
    [fixed(4, 0.002), random(4, 0.002), heavy(4, 0.002, 1.5)],
    ids=["M/D/4", "M/M/4", "heavy"],
)
def test_a_server_that_is_the_same_throughout_has_none_at_any_rate(
    serve: Serve, rate: float
) -> None:
    found = [longest_s(LIMIT_NS, driven(serve, rate * 2000, seed=seed)) for seed in range(20)]
    assert found == [0.0] * 20


def test_spells_that_every_window_has_are_left_to_the_rate() -> None:
    often = [(begin, begin + 6) for begin in range(0, 100, 20)]
    assert not longest_s(LIMIT_NS, driven(slower(0.6, *often), 1.03 * LIMIT_PER_S, 80))
    assert longest_s(LIMIT_NS, driven(slower(0.6, often[1]), 1.03 * LIMIT_PER_S, 80))


def test_fewer_requests_and_a_client_that_sends_them_late_are_no_spell() -> None:
    trace = driven(fixed(4, 0.002), 1000)
    kept = (trace.due < 30e9) | (trace.due >= 42e9) | (np.arange(len(trace.due)) % 2 == 0)
    columns = ("query", "outcome", "due", "free", "sent", "done")
    fewer = replace(trace, **{name: getattr(trace, name)[kept] for name in columns})
    assert not longest_s(LIMIT_NS, fewer)
    at = (trace.due >= 30e9) & (trace.due < 42e9)
    by_ns = np.where(at, (trace.due - 30e9) * 0.5, 0).astype(np.int64)
    late = replace(trace, sent=trace.sent + by_ns, done=trace.done + by_ns)
    assert not longest_s(LIMIT_NS, late)
    assert longest_s(LIMIT_NS, replace(trace, done=trace.done + by_ns))


def test_a_search_whose_trial_met_one_leaves_its_lower_end_open() -> None:
    usual = search(fixed(4, 0.002), PROMISE, 1200)
    calm = usual.bracket
    assert calm.holds
    broke = [i for i, d in enumerate(usual.driven) if d.full and not d.seems_kept]
    (at,) = sorted(broke, key=lambda i: usual.driven[i].rate_per_s)[:1]
    rate = usual.driven[at].rate_per_s
    judged = judge(parse_promise(PROMISE), driven(slower(0.6, (30, 50)), rate))
    assert judged.slowed_s == pytest.approx(20, abs=1)
    met: list[Driven] = list(usual.driven)
    met[at] = replace(met[at], judged=judged, seconds=60.0)
    found = bracket(Seen(met))
    assert not found.holds
    assert "was slower for only a part of the trial" in found.sentence
