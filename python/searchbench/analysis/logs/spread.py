"""How long things took: a histogram of the core, its quantiles, and what its log cannot know.

A bucket is at most 1/1024 of its value wide (``rust/logs`` histogram.rs), so a quantile is at most
0.05 % away from that of the sorted times. A log of whole milliseconds says 0 of everything below
one: such values are below its resolution, and are never given as a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.stats.distributions import binomial

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)
GROUPS = 10  # that are held against each other at once, as those by the number of words

# Logs that may have only what took longer than a threshold of their server.
SLOW_LOGS = frozenset((
    "mysql-slow", "slowlog", "slowlog-json", "postgresql", "postgresql-csv", "postgresql-json",
))  # fmt: skip
# Of these, those that have no others unless somebody sets the threshold to 0.
_BY_DEFAULT = frozenset(("mysql-slow", "slowlog", "slowlog-json"))
_ZEROS = 3  # times as many numbers end in another digit as in a nought that is not written
_EDGE, _EDGE_SHARE, _FEW = 1.1, 0.02, 200
_LONG_S = 1e-3  # of so few times the least, if none was left out
_ROUND = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0)  # what thresholds begin with

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A log seems to have only what took longer than ``seconds``; not ``sure``: it may."""

    seconds: float
    sure: bool


def spans(buckets: NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
    """(least value, how many values) of buckets, in nanoseconds."""
    shift = np.maximum(buckets >> np.uint64(10), 1) - np.uint64(1)
    low = (buckets - (shift << np.uint64(10))).astype(float) * np.exp2(shift.astype(float))
    return low, np.exp2(shift.astype(float))


def as_written(n: Mapping[int, int]) -> dict[int, int]:
    """By the value of a number's last digit (ns) how finely it was written. ``n``: how many it has.

    Most programs leave out noughts at the end, so 0.01 stands beside 0.012 and is as fine. Then
    each digit fewer has about a tenth of the numbers.
    """
    found: dict[int, int] = {}
    for last in sorted(n):
        finer = last // 10
        fine = last % 10 == 0 and n.get(finer, 0) >= _ZEROS * n[last]
        found[last] = found[finer] if fine else last
    return found


def finest(n: Mapping[int, int], formats: set[str]) -> int:
    """The finest difference (ns) that logs can write: of several the coarsest that a hundredth of
    the times have; 1 without times. ``n``: by the value of the last digit how many times.
    """
    found: dict[int, int] = {}
    for last, as_fine in as_written(n).items():
        found[as_fine] = found.get(as_fine, 0) + n[last]
    often = [last for last, times in found.items() if times * 100 >= sum(n.values())]
    # These write 1.2s, 3.8ms and 937.7micros: always two digits at least.
    relative = bool(formats) and formats <= {"slowlog", "slowlog-json"}
    return (min if relative else max)(often, default=1)


@dataclass(frozen=True, eq=False)
class Spread:
    """Times by bucket, ascending. ``resolution_ns``: the finest difference that it can write."""

    low: Numbers
    width: Numbers
    n: NDArray[np.int64]
    max_ns: int
    resolution_ns: int

    @property
    def count(self) -> int:
        """How many times there are."""
        return int(self.n.sum())

    def quantile_s(self, q: float) -> float | None:
        """In seconds, as the log wrote it (0: below its resolution); None without times."""
        if not self.count:
            return None
        rank = min(self.count - 1, int(q * self.count))
        at = int(np.searchsorted(np.cumsum(self.n), rank, side="right"))
        value = float(min(self.low[at] + (self.width[at] - 1) / 2, self.max_ns))
        return value / 1e9

    def between_s(self, q: float) -> tuple[float, float] | None:
        """Between which times a quantile lies, with 95 % for ``GROUPS`` spreads together: order
        statistics, as if the times did not depend on each other. None without times.
        """
        if not self.count:
            return None
        tail = 0.025 / GROUPS
        low, high = (binomial(p, self.count, q) / self.count for p in (tail, 1 - tail))
        below, above = self.quantile_s(low - 1 / self.count), self.quantile_s(min(1.0, high))
        return below or 0.0, above or 0.0

    def quantiles_s(self) -> dict[str, float | None]:
        """The usual ones by name."""
        return {f"p{100 * q:.6g}": self.quantile_s(q) for q in QUANTILES}

    def share_within(self, seconds: float) -> float:
        """The share of times that were surely not longer than so many seconds.

        What a log of whole milliseconds writes as 1 ms took up to 2 ms.
        """
        unsure = self.resolution_ns if self.resolution_ns > 1 else 0
        return float(self.n[self.low + unsure <= seconds * 1e9].sum() / max(1, self.count))

    def share_not_above(self, seconds: float) -> float:
        """The share of times that were perhaps not longer: those that are written so."""
        return float(self.n[self.low <= seconds * 1e9].sum() / max(1, self.count))

    def threshold(self, formats: Iterable[str]) -> Threshold | None:
        """From where on a log of these formats has times, if it is one of slow ones.

        It is where times begin all at once, at a round number, which somebody would have chosen.
        At another number each search needs that much, perhaps; or so few times show nothing. Then
        a log of a format that has only slow ones by default may be one.
        """
        own = SLOW_LOGS & set(formats)
        if not own or not self.count:
            return None
        by_default = bool(own & _BY_DEFAULT)
        if self.count < _FEW:
            least = self.quantile_s(0) or 0.0
            return Threshold(least, sure=False) if by_default and least > _LONG_S else None
        found = self._begins_at_once()
        return found if found is not None and (found.sure or by_default) else None

    def _begins_at_once(self) -> Threshold | None:
        """Where times begin all at once, ``sure`` at a round number; None: they thin out to their
        least, as times do of which none is left out.
        """
        least = self.quantile_s(0.001) or 0.0
        if least * 1e9 <= self.resolution_ns:
            return None
        near = self.low <= least * 1e9 * _EDGE
        many = int(self.n[near].sum())
        if many < _EDGE_SHARE * self.count:
            return None
        # As far as this quantile of so many may lie above where they begin.
        apart = min(0.05, (_EDGE - 1) * (4 + 0.003 * self.count) / many)
        apart += self.resolution_ns / (least * 1e9)
        return Threshold(least, sure=_is_round(least, apart))

    def below_resolution(self) -> float:
        """The share of times that the log gives as nought."""
        return float(self.n[self.low < 1].sum() / max(1, self.count))


def _is_round(seconds: float, apart: float) -> bool:
    """Whether a time is a round number, or as much above one as it may be (a share)."""
    decade = 10.0 ** np.floor(np.log10(seconds))
    rounds = [digits * of for of in (decade / 10, decade) for digits in _ROUND]
    return any(at * (1 - 1e-9) <= seconds <= at * (1 + apart) for at in rounds)


def spread(
    buckets: NDArray[np.uint64], n: NDArray[np.uint64], max_ns: int, resolution_ns: int
) -> Spread:
    """The histogram of (bucket, n) rows, of one group or of several, in any order."""
    every, at = np.unique(buckets, return_inverse=True)
    counts = np.bincount(at, weights=n.astype(float), minlength=len(every)).astype(np.int64)
    low, width = spans(every)
    # All that a narrow bucket of a coarse log can hold is one value. A bucket without one has times
    # of a finer log, which the coarse one would have cut off.
    one = width < resolution_ns
    middle, half = (low + (width - 1) / 2)[one], width[one] / 2
    near = np.rint(middle / resolution_ns) * resolution_ns
    off = np.floor(middle / resolution_ns) * resolution_ns
    low[one] = np.where(np.abs(middle - near) <= half, near, off)
    width[one] = 1.0
    return Spread(low, width, counts, max_ns, resolution_ns)
