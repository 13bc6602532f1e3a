"""Searches for capacity in virtual time: does the answer hold the truth?

Servers that change, and queries of which some take much longer than others.

    python benches/figures.py judge-capacity

Queries of several kinds: some kinds take nearly what is promised, or more. Their truths are of long
runs (``limit``).

What is true of a server that changes: where its speed is drawn for each trial, the limit of its
usual (median) speed; where it is slower for some seconds of every minute, the limit in the long
run; where it is at rest now and then, the limit between these times; where it drifts, the limit at
half of the search's time; where it warms up, the warm one's.
An answer is right where the ends that it has are on the right sides, an open end where it says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
from tests.queues import Floats, Serve, Server, drawn, fixed, heavy, mixed, random, varying

from benches.figure import Figure
from benches.table import Table
from searchbench.analysis.capacity.bracket import bracket
from searchbench.analysis.capacity.found import Bracket
from searchbench.analysis.capacity.pace import TRIALS, Driven, Seen, following, warmup_s
from searchbench.analysis.capacity.promise import judge
from searchbench.workload.load_table import parse_promise

MD4, MM4 = 1740.0, 902.67  # p99 < 10 ms of M/D/4 at 2 ms, p99 < 50 ms of M/M/4 at 4 ms
PROMISE = "p99 < 10ms, errors < 0.1%"
IN_20 = "p99 < 20ms, errors < 0.1%"
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


def resting(for_s: float, every_s: float) -> Callable[[], Serve]:
    """It does no work for some seconds of every so many."""
    return lambda: varying(fixed(4, 0.002), lambda at: np.where(at % every_s < for_s, 1e-9, 1.0))


def warming(tau_s: float) -> Callable[[], Serve]:
    """40 % of its full speed at the beginning of every trial."""
    return lambda: varying(fixed(4, 0.002), lambda at: 1 - 0.6 * np.exp(-at / tau_s), restarts=True)


def drifting(per_s: float) -> Callable[[], Serve]:
    """Its speed changes evenly, by this share of the first in a second."""
    return lambda: varying(fixed(4, 0.002), lambda at: _drifted(at, per_s), from_s=0.0)


def _drifted(at: Floats, per_s: float) -> Floats:
    return np.clip(1 + per_s * at, 0.2, 5.0)


def kinds(*each: tuple[float, float], workers: int = 4, sd: float = 0.05) -> Callable[[], Serve]:
    """Queries of several kinds: the share of each, and its time in ms."""
    return lambda: mixed(workers, sd, [(share, ms / 1000) for share, ms in each])


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
    Case("at rest for 1.2 s of every 90 s", resting(1.2, 90), MD4),
    Case("at rest for 4 s of every 300 s", resting(4, 300), MD4),
    Case("lognormal services, sd of log 1.5", lambda: heavy(4, 0.004, 1.5), 758.0,
         "p99 < 100ms, errors < 0.1%"),
    Case("2 ms, 3 % take 18 ms; p99 < 20 ms", kinds((0.97, 2), (0.03, 18)), 1244, IN_20),
    Case("the same, all scatter twice as much, 17 ms", kinds((0.97, 2), (0.03, 17), sd=0.1), 1283,
         IN_20),
    Case("2 ms, 3 % take 19.5 ms, sd 2 %; p99 < 20 ms", kinds((0.97, 2), (0.03, 19.5), sd=0.02),
         1027, IN_20),
    Case("2 ms, 1.1 % take 18 ms; p99 < 20 ms", kinds((0.989, 2), (0.011, 18)), 1603, IN_20),
    Case("2 ms, 2.2 % 10 ms, 0.8 % 18.5 ms; p99 < 20 ms",
         kinds((0.97, 2), (0.022, 10), (0.008, 18.5), sd=0.03), 1496, IN_20),
    Case("8 workers, 5 ms, 5 % take 40 ms; p99 < 50 ms",
         kinds((0.95, 5), (0.05, 40), workers=8, sd=0.1), 1019, "p99 < 50ms, errors < 0.1%"),
    Case("2 ms, 0.9 % take 30 ms; p99 < 25 ms", kinds((0.991, 2), (0.009, 30), sd=0.1), 1369,
         "p99 < 25ms, errors < 0.1%"),
    Case("2 ms, 0.7 % take 45 ms; p99 < 40 ms", kinds((0.993, 2), (0.007, 45), sd=0.1), 1443,
         "p99 < 40ms, errors < 0.1%"),
    Case("2 workers, 1 ms, 0.95 % take 60 ms; p99 < 50 ms",
         kinds((0.9905, 1), (0.0095, 60), workers=2), 289, "p99 < 50ms, errors < 0.1%"),
    Case("lognormal, sd of log 1.5, none over 30 ms; p99 < 32 ms",
         lambda: heavy(4, 0.004, 1.5, 0.03), 822, "p99 < 32ms, errors < 0.1%"),
)  # fmt: skip


WEAK = ("at rest for 1.2 s of every 90 s",)
"""Kinds that are known to be wrong more often; docs/methodology/capacity.md says why."""


def limit(case: Case, requests: int = 4_000_000, runs: int = 4) -> tuple[float, float]:
    """The rate at which 1 % is late, and its standard error, of long runs at rates about the truth.

    Interpolated in the logarithms; the same arrivals at each rate.
    """
    (time, *_) = parse_promise(case.promise)
    rates, found = case.truth * np.array([0.94, 0.97, 1.0, 1.03, 1.06]), []
    for seed in range(runs):
        shares = []
        for rate in rates:
            rng = np.random.default_rng([seed, 12])
            due = np.cumsum(rng.exponential(1 / rate, requests))
            took = case.make()(due, rng)[0] - due
            shares.append(np.mean(took[requests // 100 :] >= (time.limit_ns or 0) / 1e9))
        found.append(float(np.interp(np.log(time.allowed), np.log(shares), rates)))
    return float(np.mean(found)), float(np.std(found, ddof=1)) / runs**0.5


def figures(searches: int = 10) -> Iterator[Figure | Table]:
    """Of every case: right answers, open ends, those that say that it changed, widths, trials."""
    rows, right, each = [], 0, dict[str, int]()
    for case in CASES:
        found = [search(case, seed) for seed in range(searches)]
        rights = sum(was_right for _, _, was_right, _ in found)
        right += rights
        each[case.name] = rights
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
    yield Table("Searches for capacity in virtual time", columns, tuple(rows))
    of = searches * len(CASES)
    yield Figure(
        "capacity in virtual time: right answers", 100 * right / of, "%", at_least=95,
        note=f"of {of} searches in virtual time",
    )  # fmt: skip
    # One share over all kinds would hide one that is nearly always wrong.
    worst = min((name for name in each if name not in WEAK), key=lambda name: each[name])
    yield Figure(
        "capacity in virtual time: right answers, the worst kind", 100 * each[worst] / searches,
        "%", at_least=70, note=f"{worst}; {searches} searches of each kind",
    )  # fmt: skip


def search(
    case: Case, seed: int, effort: float = 1.0, stream: int = 11
) -> tuple[Bracket, list[Driven], bool, float]:
    """What was found and driven, whether it was right, and the seconds that it took.

    ``stream``: seeds of another stream are other seeds.
    """
    rng = np.random.default_rng([seed, stream])
    start = case.truth * float(np.exp(rng.uniform(*np.log(STARTS))))
    server = Server(case.make(), rng)
    promise = parse_promise(case.promise)
    driven: list[Driven] = []
    while wanted := following(Seen(driven), TRIALS - len(driven), start, effort):
        trace = server.trace(wanted.rate_per_s, wanted.seconds, warmup_s(wanted.seconds, effort))
        judged = judge(promise, trace)
        driven.append(Driven(wanted.rate_per_s, wanted.seconds, judged, full=wanted.full))
    found = bracket(Seen(driven), effort)
    truth = case.truth * float(_drifted(np.asarray(server.seconds / 2), case.drift_per_s))
    right = (found.holds or 0.0) <= truth <= (found.fails or np.inf)
    return found, driven, right, server.seconds
