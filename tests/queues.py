"""Queues in virtual time, whose greatest rate is known: servers for the search of capacity.

A queue takes due times (s) and gives for each request when it was answered, and whether well.
With a fixed service and first in first out, request i takes the worker that request i - N leaves,
so each residue class is a queue of its own with Lindley's recursion, which is a running maximum.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.trial.measured import Trace

Floats = NDArray[np.float64]
Serve = Callable[[Floats, np.random.Generator], tuple[Floats, NDArray[np.bool_]]]


def fixed(workers: int, service_s: float) -> Serve:
    """N workers, each request takes ``service_s``."""

    def serve(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        done = np.empty_like(due)
        for k in range(min(workers, len(due))):
            at = due[k::workers]
            steps = service_s * np.arange(len(at))
            done[k::workers] = np.maximum.accumulate(at - steps) + steps + service_s
        return done, np.ones(len(due), np.bool_)

    return serve


def random(workers: int, mean_s: float) -> Serve:
    """N workers, exponential services."""

    def serve(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        done = _first_free(workers, due, rng.exponential(mean_s, len(due)))
        return done, np.ones(len(due), np.bool_)

    return serve


def heavy(workers: int, mean_s: float, sigma: float, cut_s: float = math.inf) -> Serve:
    """N workers, lognormal services: few take most of the time, none over ``cut_s``."""

    def serve(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        services = mean_s * np.exp(sigma * rng.standard_normal(len(due)) - sigma**2 / 2)
        services = np.minimum(services, cut_s)
        return _first_free(workers, due, services), np.ones(len(due), np.bool_)

    return serve


def mixed(workers: int, sd: float, kinds: Sequence[tuple[float, float]]) -> Serve:
    """N workers, queries of several kinds: the share of each and its median time (s).

    ``sd``: of the logarithm of a time.
    """
    shares, times_s = (np.asarray(column) for column in zip(*kinds, strict=True))

    def serve(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        services = rng.choice(times_s, len(due), p=shares)
        services *= np.exp(sd * rng.standard_normal(len(due)))
        return _first_free(workers, due, services), np.ones(len(due), np.bool_)

    return serve


def _first_free(workers: int, due: Floats, services: Floats) -> Floats:
    """When each request ends: it takes the worker that is free first."""
    free = [0.0] * workers
    done = []
    for at, service in zip(due.tolist(), services.tolist(), strict=True):
        end = max(at, free[0]) + service
        heapq.heapreplace(free, end)
        done.append(end)
    return np.asarray(done)


def collecting(most: int, wait_s: float, service_s: float) -> Serve:
    """Answers ``most`` requests at a time, or what has come ``wait_s`` after the first of them."""

    def serve(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        done, free, first = np.empty_like(due), 0.0, 0
        while first < len(due):
            full = due[first + most - 1] if first + most <= len(due) else math.inf
            leaves = max(free, min(full, due[first] + wait_s))
            end = min(first + most, int(np.searchsorted(due, leaves, side="right")))
            free = leaves + service_s
            done[first:end], first = free, end
        return done, np.ones(len(due), np.bool_)

    return serve


def failing(serve: Serve, share: float) -> Serve:
    """The same, of which a share of all requests fails whatever the rate is."""

    def some(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        done, ok = serve(due, rng)
        return done, ok & (rng.random(len(due)) >= share)

    return some


def bursting(serve: Serve, share: float, *, for_s: float, every_s: float) -> Serve:
    """The same: that share fails in bursts of ``for_s``, which begin at random, on average one
    every so many seconds."""

    def some(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        done, ok = serve(due, rng)
        bursts = rng.uniform(-for_s, due[-1], rng.poisson((due[-1] + for_s) / every_s))
        within = np.abs(due[:, None] - bursts - for_s / 2).min(axis=1, initial=for_s) < for_s / 2
        return done, ok & ~(within & (rng.random(len(due)) < share * every_s / for_s))

    return some


def beginning(serve: Serve, share: float, *, until_s: float) -> Serve:
    """The same, of which a share fails in the first seconds of its life; a second is between two
    trials."""
    began = 0.0

    def early(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        nonlocal began
        done, ok = serve(due, rng)
        fails = (began + due < until_s) & (rng.random(len(due)) < share)
        began += float(due[-1]) + 1.0
        return done, ok & ~fails

    return early


def refusing(workers: int, service_s: float, waiting: int) -> Serve:
    """N workers; what finds more than ``waiting`` requests in the queue is refused at once."""

    def serve(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        free, done, ok = [0.0] * workers, due + 1e-4, np.ones(len(due), np.bool_)
        for i, at in enumerate(due.tolist()):
            if free[0] - at > waiting * service_s / workers:
                ok[i] = False
            else:
                done[i] = max(at, free[0]) + service_s
                heapq.heapreplace(free, float(done[i]))
        return done, ok

    return serve


def drawn(serve: Serve, sd: float) -> Serve:
    """The same, at a speed of its own in each trial: ``sd`` of its logarithm."""

    def at_speed(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        speed = float(np.exp(sd * rng.standard_normal()))
        done, ok = serve(due * speed, rng)
        return done / speed, ok

    return at_speed


def two_speeds(serve: Serve, slow: float, share: float) -> Serve:
    """The same; a ``share`` of the trials is served at ``slow`` of its speed."""

    def at_either(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        speed = slow if rng.random() < share else 1.0
        done, ok = serve(due * speed, rng)
        return done / speed, ok

    return at_either


def varying(
    serve: Serve,
    speed: Callable[[Floats], Floats],
    *,
    from_s: float | None = None,
    restarts: bool = False,
) -> Serve:
    """The same, at a speed that depends on how long it runs (s).

    A trial ``restarts`` at 0, or goes on where the one before ended; the first begins ``from_s``,
    else at a random instant of a minute. Work is reckoned in seconds of full speed.
    """
    began = from_s

    def varied(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        nonlocal began
        if restarts or began is None:
            began = 0.0 if restarts else float(rng.uniform(0, 60))
        at = np.arange(0, 6 * due[-1] + 20, 0.005)
        work = np.concatenate([[0.0], np.cumsum(speed(began + at)[:-1]) * 0.005])
        done, ok = serve(np.interp(due, at, work), rng)
        began += float(due[-1])
        return np.interp(done, work, at), ok

    return varied


def stalling(serve: Serve, every_s: float, stall_s: float) -> Serve:
    """The same, at rest in the last ``stall_s`` of every ``every_s``: no work is done then.

    Work is reckoned in the time that is left without the stalls.
    """
    works = every_s - stall_s

    def stalled(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        rounds = np.floor(due / every_s)
        done, ok = serve(rounds * works + np.minimum(due - rounds * every_s, works), rng)
        return done + np.floor(done / works) * stall_s, ok

    return stalled


def shedding(serve: Serve, above_per_s: float) -> Serve:
    """The same, answering with an error what comes above a rate."""

    def shed(due: Floats, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        rate = len(due) / (due[-1] - due[0]) if len(due) > 1 else 0.0
        ok = rng.random(len(due)) >= 1 - above_per_s / max(rate, above_per_s)
        done = due + 1e-4
        done[ok] = serve(due[ok], rng)[0]
        return done, ok

    return shed


@dataclass
class Server:
    """A queue to be driven: counts the seconds that it was.

    ``connections``: of a pool, over which requests go in their order; then no more workers than
    that can be busy. None: there are always enough.
    """

    serve: Serve
    rng: np.random.Generator
    arrivals: Literal["poisson", "constant"] = "poisson"
    seconds: float = 0.0
    connections: int | None = None

    def trace(self, rate_per_s: float, seconds: float, warmup_s: float) -> Trace:
        """A trace of this rate; the queue is empty at its beginning."""
        self.seconds += seconds + warmup_s
        n = max(2, int(rate_per_s * (seconds + warmup_s)))
        if self.arrivals == "poisson":
            due = np.cumsum(self.rng.exponential(1 / rate_per_s, n))
        else:
            due = np.arange(n) / rate_per_s
        done, ok = self.serve(due, self.rng)
        window = (int(warmup_s * 1e9), int((warmup_s + seconds) * 1e9))
        outcome = np.where(ok, 0, 1).astype(np.uint8)
        at, free = _ns(due), _ns(self._free(due, done))
        return Trace(np.zeros(n, np.uint32), outcome, at, free, free, _ns(done), window)

    def _free(self, due: Floats, done: Floats) -> Floats:
        """When each request had a connection: all but N - 1 of those before it are done."""
        free, n = due.copy(), self.connections
        if n is not None:
            free[n:] = np.maximum(due[n:], np.sort(done)[:-n])
        return free


def _ns(seconds: Floats) -> NDArray[np.int64]:
    return np.rint(seconds * 1e9).astype(np.int64)
