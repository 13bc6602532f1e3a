"""The search of capacity on a server whose capacity is known: the null host with four workers.

Constant arrivals: it sustains workers / service and no more. Poisson arrivals: the greatest rate at
which p99 stays under the limit is of the M/D/4 queue, from a simulation (tests/test_seek.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal

import numpy as np

from benches.figure import Figure
from benches.servers import HOST, drive, serving
from searchbench.analysis.capacity.bracket import bracket
from searchbench.analysis.capacity.found import Bracket
from searchbench.analysis.capacity.pace import TRIALS, Driven, Seen, following, warmup_s
from searchbench.analysis.capacity.promise import judge
from searchbench.analysis.trial.measured import Trace
from searchbench.engines.frames import QUERY, frame
from searchbench.workload.load_table import parse_promise
from searchbench.workload.loads import OpenLoop, Window

WORKERS, SERVICE_US = 4, 500
CAPACITY = WORKERS * 1e6 / SERVICE_US
PROMISE = "p99 < 10ms, errors < 0.1%"
# M/D/4, service 0.5 ms, p99 of response < 10 ms: 0.9712 of the capacity (standard error 0.0004).
TRUTH = {"constant": CAPACITY, "poisson": 7769.9}
SEARCHES = 5  # of each arrivals; a search takes a minute and a half


def figures() -> Iterator[Figure]:
    """How many of 10 intervals hold the truth, how wide they are, how many trials they took."""
    found: list[tuple[float, Bracket, int]] = []
    began = time.monotonic()
    for arrivals in ("constant", "poisson"):
        found += [(TRUTH[arrivals], *search(arrivals, seed)) for seed in range(SEARCHES)]
    seconds = (time.monotonic() - began) / len(found)
    held = sum(
        f.holds is not None and f.fails is not None and f.holds <= truth <= f.fails
        for truth, f, _ in found
    )
    widths = [100 * (f.fails / f.holds - 1) if f.holds and f.fails else np.inf for _, f, _ in found]
    trials = [n for _, _, n in found]
    of = f"of {len(found)}, half with constant and half with Poisson arrivals"
    yield Figure("capacity: intervals that hold the truth", held, "", at_least=9, note=of)
    yield Figure(
        "capacity: width of the widest interval", max(widths), "%", at_most=5,
        note=f"median {np.median(widths):.2g} %",
    )  # fmt: skip
    yield Figure(
        "capacity: most trials of a search", max(trials), "", at_most=TRIALS,
        note=f"median {np.median(trials):g}; {seconds:.0f} s a search",
    )  # fmt: skip


def search(arrivals: Literal["constant", "poisson"], seed: int) -> tuple[Bracket, int]:
    """The interval and the number of trials of a search, begun at half to 1.5 times the truth."""
    rng = np.random.default_rng([seed, 5])
    promise = parse_promise(PROMISE)
    query = [frame(QUERY, b"{}")]
    options = ["--delay_us", str(SERVICE_US), "--workers", str(WORKERS)]
    with serving([HOST, "null", "--port", "0", "--data", "/tmp", *options]) as port:
        start = TRUTH[arrivals] * float(rng.uniform(0.5, 1.5))
        driven: list[Driven] = []
        while wanted := following(Seen(driven), TRIALS - len(driven), start):
            rate, seconds = wanted.rate_per_s, wanted.seconds
            window = Window(seconds=seconds, warmup_s=warmup_s(seconds))
            due = OpenLoop(rate, arrivals).due_ns(window, int(rng.integers(2**31)))
            samples = drive(
                port, "frames", query,
                sequence=np.zeros(len(due), np.uint32), due_ns=due, connections=1000,
            ).samples  # fmt: skip
            judged = judge(promise, trace(samples, window.bounds_ns(due)))
            driven.append(Driven(rate, seconds, judged, full=wanted.full))
        return bracket(Seen(driven)), len(driven)


def trace(samples: np.ndarray, window: tuple[int, int]) -> Trace:  # type: ignore[type-arg]
    """Samples of the core as the analysis reads them."""
    names = ("request", "outcome", "due", "free", "sent", "done")
    return Trace(*(np.ascontiguousarray(samples[name]) for name in names), window)
