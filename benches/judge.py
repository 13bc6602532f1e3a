"""The judge on traces whose truth is known: what it says of cold, drifting and steady systems.

Simulated: a cold server works at 40 % of its full speed at the start and approaches it
exponentially; how much it has done by an instant is exact, so a request's end is too. Then the null
host, a real server that is really asked: there the service time approaches the full speed's, and
queries cost alike. A trace counts as cold where the mean speed over the measured window is more
than 5 % below the full one, and as steady where the speed never changes; those between are not
counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benches.capacity import trace as as_read
from benches.figure import Figure
from benches.servers import HOST, closed, drive, serving
from benches.table import Table
from searchbench.analysis.trial import warmup
from searchbench.analysis.trial.measured import Trace
from searchbench.engines.frames import QUERY, frame
from searchbench.workload.loads import OpenLoop, Window

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
HOST_CONSTANTS_S = (1.0, 5.0, 20.0)
HOST_RATES = (200, 1_000)
HOST_SPANS_S = ((0.5, 1.5), (2.0, 4.0), (2.0, 10.0))
HOST_NOISE = 0.2  # as NOISE; the machine has its own
DRIFT = 0.10  # of the service time, over the window
ABREAST = 4  # hosts at once; each needs less than a tenth of a core


class Kind(NamedTuple):
    """``tau``: time constant of the warm-up; ``drift``: share by which a minute slows it down."""

    truth: str
    rate: int
    warmup_s: float
    window_s: float
    closed: bool
    tau: float = 0.0
    drift: float = 0.0


def figures(repetitions: int = 3, on_host: int = 2) -> Iterator[Figure | Table]:
    """Each answer's count, by time constant (none: steady), over rates, spans and both loops."""
    made = ((kind, simulated(kind, seed)) for kind, seed in _trials(_kinds(), repetitions))
    yield from _told("a simulated trace", "simulated", made, shown_from=2_000)
    trials = list(_trials(enumerate(_host_kinds()), on_host))
    with ThreadPoolExecutor(ABREAST) as pool:
        traces = list(pool.map(lambda trial: driven(*trial), trials))
    made = zip((kind for kind, _ in trials), traces, strict=True)
    yield from _told("a trial of the null host", "null host", made, shown_from=1_000)


def _kinds() -> Iterator[tuple[int, Kind]]:
    crossed = product((0.0, *CONSTANTS_S), RATES, SPANS_S, (True, False))
    for number, (tau, rate, spans, loop) in enumerate(crossed):
        if rate * sum(spans) <= MOST and not (tau and lacking(tau, *spans) < 0.05):
            yield number, Kind(_name(tau), rate, *spans, loop, tau)


def _host_kinds() -> Iterator[Kind]:
    for rate, spans, loop in product(HOST_RATES, HOST_SPANS_S, (True, False)):
        yield Kind("steady", rate, *spans, loop)
        for tau in HOST_CONSTANTS_S:
            if host_lacking(tau, *spans) >= 0.05:
                yield Kind(_name(tau), rate, *spans, loop, tau)
        if (drift := (1 + DRIFT) ** (60 / spans[1]) - 1) <= 10:
            yield Kind("drifting", rate, *spans, loop, drift=drift)


def _name(tau: float) -> str:
    return f"cold, time constant {tau:g} s" if tau else "steady"


def _trials(
    kinds: Iterable[tuple[int, Kind]], repetitions: int
) -> Iterator[tuple[Kind, tuple[int, int]]]:
    for number, kind in kinds:
        yield from ((kind, (number, again)) for again in range(repetitions))


def _told(
    what: str, where: str, made: Iterable[tuple[Kind, Trace]], shown_from: int
) -> Iterator[Figure | Table]:
    """``shown_from``: from so many queries/s on, a closed loop shows in 10 s that it is steady."""
    counts: dict[str, Counter[str]] = {}
    shown: Counter[str] = Counter()
    for kind, seen in made:
        answer = warmup.find(seen, kind.closed).steadiness.answer
        counts.setdefault(kind.truth, Counter())[answer] += 1
        if kind.truth == "steady" and kind.closed and kind.window_s >= 10:
            shown[answer] += kind.rate >= shown_from
    yield Table(
        f"What is said of {what}",
        ("truth", "traces", *ANSWERS),
        tuple(
            (name, str(own.total()), *(str(own[a]) for a in ANSWERS))
            for name, own in counts.items()
        ),
    )
    steady, drifting = counts.pop("steady"), counts.pop("drifting", Counter[str]())
    cold = sum(counts.values(), Counter[str]())
    for name, changing in (("cold", cold), ("drifting", drifting)):
        if changing:
            yield Figure(
                f"{where}: {name} traces called steady",
                100 * changing["steady"] / changing.total(), "%", at_most=2,
                note=f"{changing['steady']} of {changing.total()}; not steady: "
                f"{100 * changing['not steady'] / changing.total():.0f} %",
            )  # fmt: skip
    yield Figure(
        f"{where}: steady traces called not steady",
        100 * steady["not steady"] / steady.total(), "%", at_most=5,
        note=f"{steady['not steady']} of {steady.total()}",
    )  # fmt: skip
    yield Figure(
        f"{where}: steady traces called steady", 100 * shown["steady"] / shown.total(), "%",
        at_least=70,
        note=f"{shown['steady']} of {shown.total()}, closed, {shown_from:,} queries/s and more, "
        "10 s and more",
    )  # fmt: skip


def simulated(kind: Kind, seed: tuple[int, int]) -> Trace:
    """A trace that was reckoned."""
    spans = kind.warmup_s, kind.window_s
    rng = np.random.default_rng(seed)
    return trace(rng, kind.rate, kind.tau or None, *spans, closed=kind.closed)


def driven(kind: Kind, seed: tuple[int, int]) -> Trace:
    """A trace of a null host of four workers, started for it: four clients, or Poisson arrivals."""
    end = kind.warmup_s + kind.window_s
    service_s = 4 * (1 if kind.closed else LOAD) / kind.rate
    options = {
        "delay_us": round(1e6 * service_s),
        "workers": 4,
        "service_sd": HOST_NOISE,
        "drift_per_min": kind.drift,
        **({"cold_speed": 1 - COLD, "warmup_tau_s": kind.tau} if kind.tau else {}),
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    queries = [frame(QUERY, b'{"n":%d}' % n) for n in range(40)]
    with serving([HOST, "null", "--port", "0", *words]) as port:
        if kind.closed:
            seen = closed(port, "frames", queries, 4, end, idle="block")
        else:
            window = Window(seconds=kind.window_s, warmup_s=kind.warmup_s)
            due = OpenLoop(kind.rate, "poisson").due_ns(window, 1_000 * seed[0] + seed[1])
            asked = np.resize(np.arange(len(queries), dtype=np.uint32), len(due))
            seen = drive(
                port, "frames", queries, sequence=asked, due_ns=due, connections=100, idle="block"
            )
    return as_read(seen.samples, (round(kind.warmup_s * 1e9), round(end * 1e9)))


def host_lacking(tau: float, warmup_s: float, window_s: float) -> float:
    """As ``lacking``, where not the speed but the service time goes with exp(-t / tau)."""
    more = COLD / (1 - COLD)
    done = [tau * math.log(math.exp(t / tau) + more) for t in (warmup_s, warmup_s + window_s)]
    return 1 - (done[1] - done[0]) / window_s


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
