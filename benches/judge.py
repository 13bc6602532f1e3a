"""The judge on simulated traces whose truth is known: what it says of cold and of steady systems.

A cold server works at 40 % of its full speed at the start and approaches it exponentially; how much
it has done by an instant is exact, so a request's end is too. A trace counts as cold where the mean
speed over the measured window is more than 5 % below the full one, and as steady where the speed
never changes; those between are not counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benches.figure import Figure
from benches.table import Table
from searchbench.analysis.trial import warmup
from searchbench.analysis.trial.measured import Trace

Floats = NDArray[np.float64]
COLD = 0.6  # of the full speed are lacking at the start
CONSTANTS_S = (1.0, 5.0, 20.0, 60.0)
RATES = (50, 400, 2_000, 20_000)
SPANS_S = ((0.5, 1.5), (4.0, 5.0), (2.0, 10.0), (10.0, 10.0), (30.0, 10.0), (10.0, 30.0))
MOST = 400_000  # requests of a trace; longer ones tell no more
UNEQUAL = 1.5  # standard deviation of the log cost from query to query
NOISE = 0.3  # and from one asking of a query to the next
LOAD = 0.3  # of an open loop's server, at full speed
ANSWERS = ("steady", "not steady", "unknown")


def figures(repetitions: int = 3) -> Iterator[Figure | Table]:
    """Each answer's count, by time constant (none: steady), over rates, spans and both loops."""
    counts: dict[str, Counter[str]] = {}
    shown: Counter[str] = Counter()
    for seed, (tau, rate, spans, closed) in enumerate(
        product((None, *CONSTANTS_S), RATES, SPANS_S, (True, False))
    ):
        if rate * sum(spans) > MOST or (tau and lacking(tau, *spans) < 0.05):
            continue
        for again in range(repetitions):
            rng = np.random.default_rng([seed, again])
            made = trace(rng, rate, tau, *spans, closed=closed)
            answer = warmup.find(made, closed).steadiness.answer
            counts.setdefault(f"{tau:g} s" if tau else "steady", Counter())[answer] += 1
            if tau is None and closed and spans[1] >= 10 and rate >= 2_000:
                shown[answer] += 1
    yield Table(
        "What is said of a trace, by the time constant of its warm-up",
        ("time constant", "traces", *ANSWERS),
        tuple(
            (name, str(own.total()), *(str(own[a]) for a in ANSWERS))
            for name, own in counts.items()
        ),
    )
    steady = counts.pop("steady")
    cold = sum(counts.values(), Counter[str]())
    yield Figure(
        "judge: cold traces called steady", 100 * cold["steady"] / cold.total(), "%", at_most=2,
        note=f"of {cold.total()}; not steady: {100 * cold['not steady'] / cold.total():.0f} %",
    )  # fmt: skip
    yield Figure(
        "judge: steady traces called not steady",
        100 * steady["not steady"] / steady.total(), "%", at_most=5, note=f"of {steady.total()}",
    )  # fmt: skip
    yield Figure(
        "judge: steady traces called steady", 100 * shown["steady"] / shown.total(), "%",
        at_least=70, note=f"of {shown.total()}, closed, 2,000 queries/s and more, 10 s and more",
    )  # fmt: skip


def lacking(tau: float, warmup_s: float, window_s: float) -> float:
    """By what share the mean speed over the window is below the full one."""
    decay = math.exp(-warmup_s / tau) - math.exp(-(warmup_s + window_s) / tau)
    return COLD * tau * decay / window_s


def trace(
    rng: np.random.Generator,
    rate: float,
    tau: float | None,
    warmup_s: float,
    window_s: float,
    *,
    closed: bool = True,
    queries: int = 400,
    by_cost: bool = False,
) -> Trace:
    """A trace of about ``rate`` queries/s at full speed; the log of queries is asked in turn.

    ``closed``: four clients; else Poisson arrivals at a single server, first in, first out.
    ``by_cost``: the log begins with the cheapest query and ends with the dearest.
    """
    end = warmup_s + window_s
    cost = np.exp(UNEQUAL * rng.standard_normal(queries))
    if by_cost:
        cost = np.sort(cost)
    cost /= cost.mean()
    # How much a server that never rests has done by each instant, in seconds at full speed.
    at = np.linspace(0, 4 * end + 10, 20_001)
    done_by = at - (COLD * tau * (1 - np.exp(-at / tau)) if tau else 0.0)

    def work(n: int, first: int, seconds: float) -> tuple[NDArray[np.int64], Floats]:
        asked = (first + np.arange(n)) % queries
        noise = np.exp(NOISE * rng.standard_normal(n) - NOISE**2 / 2)
        return asked, cost[asked] * noise * seconds

    if closed:
        parts = []
        for client in range(4):
            asked, seconds = work(int(0.5 * rate * end) + 50, client * queries // 4, 4 / rate)
            finish = np.interp(np.cumsum(seconds), done_by, at)
            due = np.concatenate(([0.0], finish[:-1]))
            parts.append((asked[due < end], due[due < end], finish[due < end]))
        query, due, finish = (np.concatenate(column) for column in zip(*parts, strict=True))
    else:
        due = np.sort(rng.uniform(0, end, rng.poisson(rate * end)))
        query, seconds = work(due.size, 0, LOAD / rate)
        before = np.cumsum(seconds) - seconds
        arrived = np.interp(due, at, done_by)
        finish = np.interp(np.maximum.accumulate(arrived - before) + before + seconds, done_by, at)
    order = np.argsort(finish, kind="stable")
    due_ns, done_ns = ((t[order] * 1e9).astype(np.int64) for t in (due, finish))
    window = (round(warmup_s * 1e9), round(end * 1e9))
    outcome = np.zeros(due.size, dtype=np.uint8)
    return Trace(query[order].astype(np.uint32), outcome, due_ns, due_ns, due_ns, done_ns, window)
