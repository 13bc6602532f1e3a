"""When a warm-up until steady ends, on the simulated servers of benches/judge.py."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from benches import judge as simulated
from benches.figure import Figure
from benches.table import Table
from searchbench import _core
from searchbench.analysis.trial import warmup
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.trial.warming import is_warm
from searchbench.lab.drive.warming import IsWarm, Warming

LIMIT_S, WINDOW_S = 60.0, 2.0
TICK_NS = 100_000_000
RATES = (50, 400, 2_000, 20_000)
# Requests a second, seconds of service, its scatter, workers (0: any number), time constant.
PARALLEL = (
    (1_000, 0.020, 0.3, 0, 0.0),
    (1_000, 0.020, 0.3, 0, 5.0),
    (1_000, 0.020, 0.3, 0, 20.0),
    (1_000, 0.020, 0.02, 0, 0.0),
    (1_000, 0.020, 0.02, 0, 20.0),
    (1_000, 0.008, 0.3, 24, 0.0),
    (1_000, 0.008, 0.3, 24, 20.0),
    (1_000, 0.010, 0.3, 16, 60.0),
    (2_000, 0.010, 0.3, 64, 20.0),
)
STEPS_S, STEP_RATES = (5.0, 8.0, 15.0, 30.0), (2_000, 5_000)
STEP_LIMIT_S, STEP_WINDOW_S = 30.0, 10.0
WARM = 0.05  # of the full speed may still be lacking where a warm-up ends


def figures(repetitions: int = 2) -> Iterator[Figure | Table]:
    """By time constant (none: steady) and rate: when it ended, and how far from warm."""
    rows = []
    early = ended = 0
    for tau, rate in product((None, *simulated.CONSTANTS_S), RATES):
        found = [
            warmed_up(rate, tau, seed, closed)
            for seed, closed in product(range(repetitions), (True, False))
        ]
        by_itself = [w for w in found if not w.on_record.at_limit]
        took = sorted(w.on_record.seconds for w in by_itself)
        left = [lacking(w, tau) for w in by_itself]
        if tau is not None:
            ended += len(left)
            early += sum(share > WARM for share in left)
        rows.append(
            (
                f"{tau:g} s" if tau else "steady",
                f"{rate:,}",
                str(len(found)),
                str(len(found) - len(by_itself)),
                f"{np.median(took):.1f} s" if took else "–",
                f"{took[-1]:.1f} s" if took else "–",
                f"{100 * max(left):.1f} %" if left else "–",
            )
        )
    yield Table(
        "When a warm-up until steady ends, by the time constant of the system's own",
        ("time constant", "queries/s", "drives", "at the limit", "median", "longest", "lacking"),
        tuple(rows),
    )
    yield Figure(
        "warm-ups of cold systems that ended more than 5 % below full speed",
        100 * early / max(1, ended), "%", at_most=5, note=f"of {ended}",
    )  # fmt: skip
    yield Table(
        "The same of servers that work on several requests at once, in open loops",
        ("requests/s", "service", "scatter", "workers", "time constant", "ended after", "lacking"),
        tuple(_in_parallel(*row, repetitions) for row in PARALLEL),
    )
    yield Table(
        f"A system that is suddenly twice as fast: what a window of {STEP_WINDOW_S:g} s is called",
        ("queries/s", "twice as fast from", "warm-up ended after", *simulated.ANSWERS),
        tuple(_in_a_step(rate, at_s, repetitions) for rate, at_s in product(STEP_RATES, STEPS_S)),
    )


def _in_parallel(
    rate: float, service_s: float, scatter: float, workers: int, tau: float, repetitions: int
) -> tuple[str, ...]:
    found = []
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        found.append(driven(parallel(rng, rate, service_s, scatter, workers, tau)))
    ended = [f"{w.window.start / 1e9:.1f} s" for w in found]
    left = max(lacking(w, tau) for w in found)
    return (
        f"{rate:,}", f"{1e3 * service_s:g} ms", f"{100 * scatter:g} %",
        f"{workers}" if workers else "any number", f"{tau:g} s" if tau else "steady",
        " and ".join(dict.fromkeys(ended)), f"{100 * left:.0f} %" if tau else "–",
    )  # fmt: skip


def parallel(
    rng: np.random.Generator,
    rate: float,
    service_s: float,
    scatter: float,
    workers: int,
    tau: float,
    seconds: float = LIMIT_S + WINDOW_S,
) -> Trace:
    """An open loop on a server of so many workers (0: as many as are asked), cold as the others.

    ``service_s``: the mean at full speed, for one worker.
    """
    due = np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds)))
    query = np.arange(due.size) % 400
    cost = np.exp(0.5 * rng.standard_normal(400)) if scatter > 0.1 else np.ones(400)
    cost *= service_s / cost.mean()
    took = cost[query] * np.exp(scatter * rng.standard_normal(due.size) - scatter**2 / 2)
    free, done = [0.0] * (workers or 1), np.empty(due.size)
    for i, (at, seconds_of) in enumerate(zip(due.tolist(), took.tolist(), strict=True)):
        begins = max(at, heapq.heappop(free)) if workers else at
        speed = 1 - simulated.COLD * math.exp(-begins / tau) if tau else 1.0
        done[i] = begins + seconds_of / speed
        if workers:
            heapq.heappush(free, done[i])
    due_ns, done_ns = (due * 1e9).astype(np.int64), (done * 1e9).astype(np.int64)
    order = np.argsort(done_ns, kind="stable")
    due_ns, done_ns = due_ns[order], done_ns[order]
    window = round((seconds - WINDOW_S) * 1e9), round(seconds * 1e9)
    fine = np.zeros(due.size, np.uint8)
    return Trace(query[order].astype(np.uint32), fine, due_ns, due_ns, due_ns, done_ns, window)


def _in_a_step(rate: int, at_s: float, repetitions: int) -> tuple[str, ...]:
    ended, answers = [], Counter[str]()
    for seed in range(repetitions):
        whole = suddenly_faster(np.random.default_rng(seed), rate, at_s)
        found = warming_of(whole, clients=0, limit_s=STEP_LIMIT_S)
        for _ in ticks(found, samples_of(whole), STEP_LIMIT_S + STEP_WINDOW_S):
            if found.start_ns is not None:
                break
        start = found.window.start
        ended.append(f"{start / 1e9:.1f} s")
        window = (start, start + round(STEP_WINDOW_S * 1e9))
        answers[warmup.find(replace(whole, window=window), True).steadiness.answer] += 1
    counts = (str(answers[answer]) for answer in simulated.ANSWERS)
    return f"{rate:,}", f"{at_s:g} s", " and ".join(dict.fromkeys(ended)), *counts


def suddenly_faster(rng: np.random.Generator, rate: float, at_s: float, clients: int = 4) -> Trace:
    """A closed loop of ``rate`` requests a second, and half of that before ``at_s``."""
    end, queries = STEP_LIMIT_S + STEP_WINDOW_S, 400
    cost = np.exp(simulated.UNEQUAL * rng.standard_normal(queries))
    cost *= clients / rate / cost.mean()
    columns: list[list[Any]] = [[], [], []]
    for client in range(clients):
        n = int(1.5 * rate * end / clients)
        query = (client * queries // clients + np.arange(n)) % queries
        work = np.cumsum(cost[query] * np.exp(simulated.NOISE * rng.standard_normal(n) - 0.045))
        done = np.where(work < at_s / 2, 2 * work, work + at_s / 2)  # work: seconds at full speed
        due = np.concatenate(([0.0], done[:-1]))
        for column, values in zip(columns, (query, due, done), strict=True):
            column.append(values[due < end])
    query, due, done = map(np.concatenate, columns)
    order = np.argsort(done, kind="stable")
    due_ns, done_ns = ((each[order] * 1e9).astype(np.int64) for each in (due, done))
    fine, window = np.zeros(order.size, np.uint8), (0, round(end * 1e9))
    return Trace(query[order].astype(np.uint32), fine, due_ns, due_ns, due_ns, done_ns, window)


def driven(trace: Trace) -> Warming:
    """The warm-up of an open loop with this trace, until its window begins."""
    found = warming_of(trace, closed=False, clients=0)
    for _ in ticks(found, samples_of(trace), trace.window[1] / 1e9):
        if found.start_ns is not None:
            break
    return found


def lacking(warming: Warming, tau: float | None) -> float:
    """The share of its full speed that a system lacks when its window begins."""
    return simulated.COLD * math.exp(-warming.window.start / 1e9 / tau) if tau else 0.0


def warmed_up(rate: float, tau: float | None, seed: int, closed: bool = True) -> Warming:
    """The warm-up of a simulated server, driven until its window begins."""
    rng = np.random.default_rng(seed)
    # Fast systems take a shorter trace: they are warm, or the limit is as long as it is.
    for longest_s in (5.0, 20.0, LIMIT_S):
        trace = simulated.trace(rng, rate, tau, longest_s, WINDOW_S, closed=closed)
        found = warming_of(trace, closed=closed, clients=0)
        for _ in ticks(found, samples_of(trace), longest_s + WINDOW_S):
            if found.start_ns is not None:
                return found
    return found


def warming_of(trace: Trace, judge: IsWarm = is_warm, **how: Any) -> Warming:
    """What follows a drive of one client over one connection; ``how``: what is otherwise."""
    queries = np.arange(int(trace.query.max()) + 1, dtype=np.uint32)
    made: dict[str, Any] = {
        "limit_s": LIMIT_S, "seconds": WINDOW_S, "timeout_s": 10.0, "closed": True, "clients": 1,
        "request_to_query": queries, "asked": np.zeros(queries.size, np.bool_),
        "began": lambda: None,
    }  # fmt: skip
    return Warming(judge, **made | how)


def samples_of(trace: Trace) -> np.ndarray[Any, Any]:
    """As the core has them, all of one connection, in the order of completion."""
    samples = np.zeros(trace.due.size, dtype=np.dtype(_core.SAMPLE_DTYPE))
    for name in ("due", "free", "sent", "done"):
        samples[name] = getattr(trace, name)
    samples["request"] = trace.query
    return samples[np.argsort(trace.done, kind="stable")]


def ticks(
    warming: Warming, samples: np.ndarray[Any, Any], seconds: float = LIMIT_S + WINDOW_S
) -> Iterator[tuple[int, bool]]:
    """Every tick of the drive, in ns since the start, and whether the drive goes on."""
    for now_ns in range(TICK_NS, round(seconds * 1e9), TICK_NS):
        end = int(np.searchsorted(samples["done"], now_ns))
        goes_on = warming.tick(end, now_ns, samples[max(0, end - 4096) : end].tobytes())
        yield now_ns, goes_on
        if not goes_on:
            return
