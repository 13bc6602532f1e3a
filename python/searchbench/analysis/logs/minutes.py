"""The minutes of a log as columns: a year has half a million of them. Stretches, and the worst."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from searchbench.analysis.logs.model import Hour, Moment
from searchbench.logs.counts import Counts, flat

_OVER = 400  # rows of the time
_ENOUGH, _HOURS = 100, 3  # searches of an hour whose times are known; hours that have so many
_LEAST_S, MISSED = 600, 100  # of a hole: how long, and how many searches are missed in it
_STANDS_OUT = 2.0  # times as long as in the usual hour
_SURE = 4.0  # standard errors of its mean above the usual one: not of some dozen searches alone
_AT_ONCE = 20_000  # minutes whose buckets are summed together
# The end of each of the half doublings of times from 1.024 µs on, and its middle (within 19 %).
_ENDS = 1.024e-6 * 2.0 ** (np.arange(65) / 2)
_MIDDLES = np.array([1e-6, *(_ENDS[1:] / 2**0.25)])


def holes_of(at_s: NDArray[np.int64], n: NDArray[np.int64]) -> list[tuple[int, int]]:
    """From when to when (s) there is no search, though before and after there are so many that
    ``MISSED`` were to be expected: by as long a time on either side, an hour at most.

    ``at_s``: when the minutes begin that have searches, ascending; ``n``: how many.
    """
    gaps = np.flatnonzero(np.diff(at_s) >= _LEAST_S + 60)
    start, end, until = at_s[gaps] + 60, at_s[gaps + 1], np.concatenate([[0], np.cumsum(n)])
    span = np.minimum(3600, end - start)

    def between(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
        first, last = (until[np.searchsorted(at_s, side)] for side in (low, high))
        return np.asarray(last - first, np.int64)

    beside = np.minimum(between(start - span, start), between(end, end + span))
    many = beside * (end - start) >= MISSED * span
    return list(zip(start[many].tolist(), end[many].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Minutes:
    """A row a minute, ascending. ``timed``: how many times are known; ``mean_s``,
    ``p95_at_most_s``, ``max_s``: of these, NaN where there is none. ``squares``: the sum of the
    squares of its times, as far as their buckets tell it.
    """

    at_s: NDArray[np.int64]
    n: NDArray[np.int64]
    timed: NDArray[np.int64]
    mean_s: NDArray[np.float64]
    p95_at_most_s: NDArray[np.float64]
    max_s: NDArray[np.float64]
    zero: NDArray[np.int64]
    errors: NDArray[np.int64]
    slowest: pa.ChunkedArray
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, counts: Counts) -> Minutes:
        """The table of minutes, with its buckets made into quantiles."""
        whole = {
            name: counts.numbers("minutes", name).astype(np.int64)
            for name in ("minute", "n", "sum_ns", "max_ns", "zero", "errors")
        }
        table = counts.tables["minutes"]
        timed, p95_at_most_s, squares = _quantiles(table.column("coarse"))
        known = timed > 0
        mean_s = np.full(len(timed), np.nan)
        mean_s[known] = whole["sum_ns"][known] / timed[known] / 1e9
        max_s = np.where(known, whole["max_ns"] / 1e9, np.nan)
        return cls(
            whole["minute"] * 60,
            whole["n"],
            timed,
            mean_s,
            np.minimum(p95_at_most_s, max_s),
            max_s,
            whole["zero"],
            whole["errors"],
            table.column("slowest"),
            squares,
        )

    def __len__(self) -> int:
        return len(self.at_s)

    @property
    def span(self) -> tuple[int, int] | None:
        """The first second, and the one after the last."""
        return (int(self.at_s[0]), int(self.at_s[-1]) + 60) if len(self) else None

    def holes(self) -> list[tuple[int, int]]:
        """Those of its minutes (``holes_of``)."""
        return holes_of(self.at_s, self.n)

    @property
    def mean_rate(self) -> float | None:
        """Searches a second between the first minute and the last, which may have been cut short,
        without the ``holes``; None: there is nothing between.
        """
        inner = int(self.n[1:-1].sum())
        empty_s = sum(end - start for start, end in self.holes())
        return inner / int(self.at_s[-1] - self.at_s[0] - 60 - empty_s) if inner else None

    @property
    def busiest(self) -> float | None:
        """Searches a second of the minute that has the most; None: none is known to be whole."""
        return int(self.n.max()) / 60 if len(self) > 2 else None

    def step_s(self) -> int:
        """Seconds of a row of the time: a round stretch of which there are at most 400."""
        if self.span is None:
            return 60
        span = self.span[1] - self.span[0]
        steps = (60, 300, 900, 3600, 14_400, 43_200, 86_400, 604_800)
        return next((s for s in steps if span / s <= _OVER), span // _OVER + 60)

    def over(self, step: int) -> tuple[Moment, ...]:
        """Minutes joined into stretches; p95 is that of the worst minute in each."""
        began = self.at_s // step * step
        starts = np.flatnonzero(np.diff(began, prepend=began[:1] - 1))
        bounds = [*starts.tolist(), len(self)]
        rows = (slice(a, b) for a, b in pairwise(bounds))
        return tuple(self._stretch(int(began[row.start]), row) for row in rows)

    def _stretch(self, at_s: int, row: slice) -> Moment:
        known = ~np.isnan(self.mean_s[row])
        n, timed, mean_s = self.n[row], self.timed[row], self.mean_s[row]
        total = sum((mean_s[known] * timed[known]).tolist())
        longest = np.where(known, self.max_s[row], -1.0)
        worst = row.start + int(np.argmax(longest))
        return Moment(
            at_s,
            int(n.sum()),
            total / max(1, int(timed[known].sum())) if known.any() else None,
            float(self.p95_at_most_s[row][known].max()) if known.any() else None,
            _or_none(self.max_s[worst]),
            self._slowest(worst),
            int(self.zero[row].sum()),
            int(self.errors[row].sum()),
            int(timed.sum()),
        )

    def worst(self, most: int) -> tuple[Moment, ...]:
        """The minutes in which most time was waited altogether, as far as the log has it."""
        known = np.flatnonzero(~np.isnan(self.mean_s))
        waited = self.mean_s[known] * self.timed[known]
        order = known[np.lexsort((self.at_s[known], -waited))]
        return tuple(self._moment(int(i)) for i in order[:most])

    def worst_hour(self) -> Hour | None:
        """The hour with the longest mean, if that is twice the usual one even without its longest
        search, and surely above it: some searches that waited for a minute are no bad hour.
        """
        known = np.flatnonzero(~np.isnan(self.mean_s))
        if not len(known):
            return None
        hour, n = self.at_s[known] // 3600, self.timed[known]
        waited = self.mean_s[known] * n
        starts = np.flatnonzero(np.diff(hour, prepend=hour[:1] - 1))
        total, of_hour = np.add.reduceat(waited, starts), np.add.reduceat(n, starts)
        longest = np.maximum.reduceat(self.max_s[known], starts)
        enough = of_hour >= _ENOUGH
        if enough.sum() < _HOURS:
            return None
        means = total / of_hour
        usual = float(np.median(means[enough]))
        squares = np.add.reduceat(self.squares[known], starts) / of_hour
        error = np.sqrt(np.maximum(0.0, squares - means**2) / of_hour)
        sure = enough & (means - usual >= _SURE * error)
        without = np.where(sure, (total - longest) / np.maximum(1, of_hour - 1), -1.0)
        at = int(np.argmax(without))
        if not usual > 0 or without[at] < _STANDS_OUT * usual:
            return None
        return Hour(
            int(hour[starts[at]]) * 3600,
            int(of_hour[at]),
            float(means[at]),
            usual,
            int(enough.sum()),
            float(total[at] / total.sum()),
        )

    def _moment(self, i: int) -> Moment:
        return Moment(
            int(self.at_s[i]),
            int(self.n[i]),
            _or_none(self.mean_s[i]),
            _or_none(self.p95_at_most_s[i]),
            _or_none(self.max_s[i]),
            self._slowest(i),
            int(self.zero[i]),
            int(self.errors[i]),
            int(self.timed[i]),
        )

    def _slowest(self, i: int) -> str:
        text: str = self.slowest[i].as_py().decode("utf-8", errors="replace")
        return text


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _quantiles(
    coarse: pa.ChunkedArray,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Of the buckets of each minute how many times they count, their 95 % quantile, and the sum of
    their squares.
    """
    all_timed, all_p95, squares = [np.zeros(0, np.int64)], [np.zeros(0)], [np.zeros(0)]
    for chunk in coarse.cast(pa.large_binary()).chunks:
        for begin in range(0, len(chunk), _AT_ONCE):
            part = chunk.slice(begin, _AT_ONCE)
            buckets = np.frombuffer(flat(part)[0], np.uint32).reshape(len(part), -1)
            until = buckets.cumsum(axis=1, dtype=np.int64)
            timed = until[:, -1]
            at = (until < 0.95 * timed[:, None]).sum(axis=1)
            all_timed.append(timed)
            squares.append(buckets @ _MIDDLES[: buckets.shape[1]] ** 2)
            all_p95.append(np.where(timed > 0, _ENDS[at], np.nan))
    return np.concatenate(all_timed), np.concatenate(all_p95), np.concatenate(squares)
