"""Searches for capacity on servers that change, in virtual time: does the answer hold the truth?

    python benches/figures.py judge-capacity

What is true of a server that changes: where its speed is drawn for each trial, the limit of its
usual (median) speed; where it is slower for some seconds of every minute, the limit in the long
run; where it drifts, the limit at half of the search's time; where it warms up, the warm one's.
An answer is right where the ends that it has are on the right sides, an open end where it says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
from tests.queues import Floats, Serve, Server, drawn, fixed, heavy, random, varying

from benches.figure import Figure
from benches.table import Table
from searchbench.analysis.capacity.bracket import Bracket, bracket
from searchbench.analysis.capacity.pace import TRIALS, Driven, Seen, following, warmup_s
from searchbench.analysis.capacity.promise import judge
from searchbench.workload.load_table import parse_promise

MD4, MM4 = 1740.0, 902.67  # p99 < 10 ms of M/D/4 at 2 ms, p99 < 50 ms of M/M/4 at 4 ms
PROMISE = "p99 < 10ms, errors < 0.1%"
STARTS = (0.25, 2.0)  # of the truth, drawn evenly between them in the logarithm


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of server. ``drift_per_s``: of its speed; ``truth`` is then that at the beginning."""

    name: str
    make: Callable[[], Serve]
    truth: float
    promise: str = PROMISE
    drift_per_s: float = 0.0


def slower(for_s: float, to: float) -> Callable[[], Serve]:
    """``to`` of its full speed for some seconds of every minute."""
    return lambda: varying(fixed(4, 0.002), lambda at: np.where(at % 60 < for_s, to, 1.0))


def warming(tau_s: float) -> Callable[[], Serve]:
    """40 % of its full speed at the beginning of every trial."""
    return lambda: varying(fixed(4, 0.002), lambda at: 1 - 0.6 * np.exp(-at / tau_s), restarts=True)


def drifting(per_s: float) -> Callable[[], Serve]:
    """Its speed changes evenly, by this share of the first in a second."""
    return lambda: varying(fixed(4, 0.002), lambda at: _drifted(at, per_s), from_s=0.0)


def _drifted(at: Floats, per_s: float) -> Floats:
    return np.clip(1 + per_s * at, 0.2, 5.0)


CASES = (
    Case("M/D/4", lambda: fixed(4, 0.002), MD4),
    Case("M/M/4", lambda: random(4, 0.004), MM4, "p99 < 50ms, errors < 0.1%"),
    *(
        Case(f"speed drawn for each trial, sd {100 * sd:g} %",
             lambda sd=sd: drawn(fixed(4, 0.002), sd), MD4)  # type: ignore[misc]
        for sd in (0.007, 0.015, 0.03, 0.05)
    ),
    Case("slower by 1 % in 20 s", drifting(-0.0005), MD4, drift_per_s=-0.0005),
    Case("faster by 1 % in 20 s", drifting(0.0005), MD4, drift_per_s=0.0005),
    Case("warms up in each trial, 5 s", warming(5), MD4),
    Case("warms up in each trial, 20 s", warming(20), MD4),
    Case("30 % slower for 6 s of every minute", slower(6, 0.7), 1251.0),
    Case("50 % slower for 3 s of every minute", slower(3, 0.5), 889.0),
    Case("15 % slower for 10 s of every minute", slower(10, 0.85), 1533.0),
    Case("lognormal services, sd of log 1.5", lambda: heavy(4, 0.004, 1.5), 758.0,
         "p99 < 100ms, errors < 0.1%"),
)  # fmt: skip


def figures(searches: int = 5) -> Iterator[Figure | Table]:
    """Of every case: right answers, open ends, those that say that it changed, widths, trials."""
    rows, right = [], 0
    for case in CASES:
        found = [search(case, seed) for seed in range(searches)]
        rights = sum(was_right for _, _, was_right, _ in found)
        right += rights
        both = [b.fails / b.holds - 1 for b, _, _, _ in found if b.holds and b.fails]
        said = sum("changed" in b.sentence for b, _, _, _ in found)
        rows.append(
            (case.name, f"{rights} of {searches}", str(searches - len(both)), str(said),
             f"{100 * median(both):.1f}, {100 * float(np.quantile(both, 0.9)):.1f} %"
             if both else "",
             f"{median(len(d) for _, d, _, _ in found):g}",
             f"{median(s for _, _, _, s in found):.0f}")
        )  # fmt: skip
    columns = ("server", "right", "an end open", "said that it changed",
               "width, median and 90th percentile", "trials", "seconds")  # fmt: skip
    yield Table("Searches on servers that change", columns, tuple(rows))
    of = searches * len(CASES)
    yield Figure(
        "capacity of servers that change: right answers", 100 * right / of, "%", at_least=95,
        note=f"of {of} searches in virtual time",
    )  # fmt: skip


def search(case: Case, seed: int) -> tuple[Bracket, list[Driven], bool, float]:
    """What was found and driven, whether it was right, and the seconds that it took."""
    rng = np.random.default_rng([seed, 11])
    start = case.truth * float(np.exp(rng.uniform(*np.log(STARTS))))
    server = Server(case.make(), rng)
    promise = parse_promise(case.promise)
    driven: list[Driven] = []
    while wanted := following(Seen(driven), TRIALS - len(driven), start):
        trace = server.trace(wanted.rate_per_s, wanted.seconds, warmup_s(wanted.seconds))
        judged = judge(promise, trace)
        driven.append(Driven(wanted.rate_per_s, wanted.seconds, judged, full=wanted.full))
    found = bracket(Seen(driven))
    truth = case.truth * float(_drifted(np.asarray(server.seconds / 2), case.drift_per_s))
    right = (found.holds or 0.0) <= truth <= (found.fails or np.inf)
    return found, driven, right, server.seconds
