"""The search of the greatest rate, against queues whose greatest rate is known.

Truths: constant arrivals, workers / service. Poisson arrivals and fixed services (M/D/N): four
runs of 4 million arrivals at each of five rates around it (Lindley's recursion, the same seeds at
each), the share of late ones interpolated in the logarithms; standard error 0.04 % of the rate.
M/M/4: exact (Erlang C). METHODOLOGY.md has the whole table of which this is a small part.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from queues import Serve, Server, fixed, random, shedding
from searchbench.analysis.capacity.promise import Judged, judge, parse
from searchbench.analysis.capacity.search import PROBES, Found, Probe, seek, warmup_s


def search(
    serve: Serve, promise: str, start_per_s: float, *, seed: int = 1,
    arrivals: Literal["poisson", "constant"] = "poisson", client_per_s: float = math.inf,
    **how: float,
) -> Found:  # fmt: skip
    """A search in virtual time; above ``client_per_s`` the client is late."""
    server = Server(serve, np.random.default_rng([seed, 7]), arrivals)
    conditions = parse(promise)

    def probe(rate_per_s: float, seconds: float) -> Judged:
        trace = server.trace(rate_per_s, seconds, warmup_s(seconds))
        if rate_per_s > client_per_s:
            trace = replace(trace, sent=trace.sent + 10**9)
        return judge(conditions, trace)

    return seek(probe, start_per_s, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("serve", "arrivals", "promise", "truth"),
    [
        (fixed(4, 0.0005), "constant", "p99 < 10ms, errors < 0.1%", 8000.0),
        (fixed(4, 0.0005), "poisson", "p99 < 10ms, errors < 0.1%", 7769.9),
        (fixed(4, 0.002), "poisson", "p99 < 10ms, errors < 0.1%", 1740.0),
        (random(4, 0.004), "poisson", "p99 < 50ms, errors < 0.1%", 902.67),
        (shedding(fixed(4, 0.0005), 5000), "poisson", "p99 < 10ms, errors < 0.1%", 5005.0),
    ],
    ids=["D/D/4", "M/D/4 deep", "M/D/4", "M/M/4", "errors above a rate"],
)
def test_the_bracket_holds_the_truth_and_is_narrow(
    serve: Serve, arrivals: Literal["poisson", "constant"], promise: str, truth: float
) -> None:
    runs = [
        search(serve, promise, truth * start, seed=seed, arrivals=arrivals)
        for seed, start in enumerate((0.4, 0.7, 1.1, 2.0))
    ]
    brackets = [(f.holds or 0.0, f.fails or math.inf) for f in runs]
    # Of four with 95 % each, three hold it with more than 98 %; the seeds are fixed.
    assert sum(holds <= truth <= fails for holds, fails in brackets) >= 3, brackets
    assert sum(fails / holds <= 1.05 for holds, fails in brackets) >= 3, brackets
    assert all(len(f.probes) <= PROBES for f in runs)


def test_a_promise_that_is_broken_at_any_rate_has_no_lower_end() -> None:
    found = search(fixed(4, 0.02), "p99 < 10ms", 100, lowest_per_s=5)
    assert found.holds is None
    assert found.fails == 5
    assert found.width is None
    assert "broken even at 5/s, the lowest allowed (p99 < 10ms: 100.00% of" in found.sentence


def test_a_promise_that_holds_as_high_as_allowed_has_no_upper_end() -> None:
    found = search(fixed(4, 0.0005), "p99 < 10ms", 500, highest_per_s=3000)
    assert (found.holds, found.fails) == (3000, None)
    assert "the highest rate that was allowed" in found.sentence


def test_where_the_client_is_late_it_is_the_limit_and_not_the_system() -> None:
    found = search(fixed(4, 0.0005), "p99 < 10ms", 1000, client_per_s=3000)
    assert found.fails is None
    assert found.holds is not None
    assert 2000 < found.holds <= 3000
    assert "the client is the limit, not the system" in found.sentence
    nothing = search(fixed(4, 0.0005), "p99 < 10ms", 1000, client_per_s=0)
    assert (nothing.holds, nothing.fails, len(nothing.probes)) == (None, None, 3)
    assert "nothing is known of the system" in nothing.sentence


def test_a_server_that_answers_nothing_is_no_matter_of_the_rate() -> None:
    found = search(shedding(fixed(4, 0.002), 0.0), "p99 < 10ms, errors < 1%", 1000)
    assert found.holds is None
    assert len(found.probes) == 3
    assert "Not one request was answered well" in found.sentence


def test_too_few_probes_say_how_wide_the_bracket_stayed() -> None:
    found = search(fixed(4, 0.002), "p99 < 10ms", 1000, most_probes=3)
    assert len(found.probes) == 3
    assert found.width is not None
    assert found.width > 0.05
    assert found.holds is not None
    assert found.fails is not None
    assert found.holds <= 1740 <= found.fails
    assert "not 5% as asked" in found.sentence


def test_effort_makes_probes_longer() -> None:
    def driven(found: Found) -> float:
        return max(p.seconds for p in found.probes if p.full)

    once = search(fixed(4, 0.0005), "p99 < 10ms", 8000, arrivals="constant")
    thrice = search(fixed(4, 0.0005), "p99 < 10ms", 8000, arrivals="constant", effort=3)
    assert driven(thrice) > 2 * driven(once)


def test_a_probe_is_long_beside_its_limit() -> None:
    found = search(fixed(4, 0.0005), "p99 < 200ms", 8000, arrivals="constant")
    assert all(p.seconds >= 20 for p in found.probes if p.full)
    assert isinstance(found.probes[0], Probe)


def test_a_search_without_an_order_of_rates_is_refused() -> None:
    with pytest.raises(ValueError, match="0 < lowest <= highest"):
        search(fixed(4, 0.002), "p99 < 10ms", 100, lowest_per_s=10, highest_per_s=5)
