"""The rate of a closed network without coherence: a queue of m servers, and a delay.

Its rate bends softly where the servers become busy, and never falls. Over a few levels that looks
like a law with coherence, which must explain the data better than this does to be named.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

SERVERS = 24  # values of m that are tried, up to the greatest level
# Delays that are tried, as multiples of the service time.
DELAYS = np.append(0.0, np.geomspace(0.01, 100.0, 80))
CLOSER = 3  # numbers of servers that are looked at more closely

Floats = NDArray[np.float64]


def squares(levels: Floats, rates: Floats) -> float:
    """The least sum of squared log residuals that any such network leaves. Shapes (n,)."""
    whole = tuple(np.rint(levels).astype(int).tolist())
    servers, curves = _tried(whole)
    coarse = _residuals(rates, curves)  # (servers, delays)
    least = float(coarse.min())
    for m in np.argsort(coarse.min(axis=1))[:CLOSER]:  # between the delays that were tried
        at = int(coarse[m].argmin())
        low, high = DELAYS[max(0, at - 1)], DELAYS[min(at + 1, DELAYS.size - 1)]
        between = np.linspace(max(low, high / 1e3), high, 30)
        least = min(least, float(_residuals(rates, _curves(whole, servers[[m]], between)).min()))
    return least


def _residuals(rates: Floats, curves: Floats) -> Floats:
    rest = np.log(rates) - curves
    rest -= rest.mean(axis=-1, keepdims=True)  # the service time scales the rates
    found: Floats = (rest**2).sum(axis=-1)
    return found


@lru_cache(maxsize=16)
def _tried(levels: tuple[int, ...]) -> tuple[NDArray[np.int64], Floats]:
    """The numbers of servers that are tried, and with them the curves of all delays."""
    top = max(levels)
    servers = np.unique(np.rint(np.geomspace(1, max(2, top), SERVERS)).astype(np.int64))
    servers = np.union1d(servers, np.arange(1, min(top, SERVERS) + 1))
    return servers, _curves(levels, servers, DELAYS)


def _curves(levels: tuple[int, ...], servers: NDArray[np.int64], delays: Floats) -> Floats:
    """The logs of the rates of these networks, shape (servers, delays, levels).

    Exact: with one class and these two stations the rate is G(n − 1) / G(n), where G(n) is the sum
    over k of delay^(n − k) / (n − k)! · prod over j ≤ k of 1 / min(j, m) (Buzen 1973).
    """
    busy = np.minimum(np.arange(1, max(levels) + 1), servers[:, None])
    queue = np.pad(-np.cumsum(np.log(busy), axis=1), ((0, 0), (1, 0)))  # by k, from 0
    some = delays > 0
    found = np.empty((servers.size, delays.size, len(levels)))
    for at, n in enumerate(levels):
        found[:, ~some, at] = np.log(np.minimum(n, servers))[:, None]
        g = [_constant(size, queue, np.log(delays[some])) for size in (n - 1, n)]
        found[:, some, at] = g[0] - g[1]
    return found


def _constant(n: int, queue: Floats, logs: Floats) -> Floats:
    """log G(n), shape (servers, delays)."""
    k = np.arange(n + 1)
    delay = (n - k) * logs[:, None] - special.gammaln(n - k + 1)
    found: Floats = special.logsumexp(queue[:, None, : n + 1] + delay[None], axis=-1)
    return found
