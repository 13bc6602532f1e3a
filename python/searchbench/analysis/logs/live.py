"""A log while it grows: the last minute beside all that came since the start.

An increment counts for the moment at which it was read, not for the times of its entries: clocks
and zones of a log's server are its own.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from searchbench.analysis.logs.judge import WITH_ERRORS
from searchbench.analysis.logs.model import Row
from searchbench.analysis.logs.spread import finest, spread
from searchbench.logs.counts import Counts

RECENT_S = 60.0
CLASSES = 8
_KINDS = ("server", "class")
_NUMBERS = ("n", "timed", "sum_ns", "hits_known", "zero", "errors", "partial")
_UNKNOWN = 0  # a resolution

Key = tuple[str, str]


@dataclass(slots=True)
class Sum:
    """What was counted of a group: numbers by name, times by bucket."""

    numbers: Counter[str] = field(default_factory=Counter)
    buckets: Counter[int] = field(default_factory=Counter)
    max_ns: int = 0

    def add(self, other: Sum) -> None:
        """Both together."""
        self.numbers.update(other.numbers)
        self.buckets.update(other.buckets)
        self.max_ns = max(self.max_ns, other.max_ns)

    def row(self, name: str, whole: Sum, resolution_ns: int, *, with_errors: bool) -> Row:
        """Its figures; shares of ``whole``."""
        own, all_ = self.numbers, whole.numbers
        n, timed = own["n"], own["timed"]
        buckets = np.fromiter(self.buckets.keys(), np.uint64, len(self.buckets))
        times = np.fromiter(self.buckets.values(), np.uint64, len(self.buckets))
        spread_ = spread(buckets, times, self.max_ns, max(1, resolution_ns))
        return Row(
            name,
            n,
            n / max(1, all_["n"]),
            own["sum_ns"] / all_["sum_ns"] if timed and all_["sum_ns"] else None,
            spread_.quantiles_s() if timed else {},
            self.max_ns / 1e9 if timed else None,
            own["zero"] / own["hits_known"] if own["hits_known"] else None,
            None,
            own["errors"] / max(1, n) if own["errors"] or with_errors else None,
            own["partial"] / max(1, n),
            0.0,
            hits_known=own["hits_known"],
        )


@dataclass(frozen=True, slots=True)
class View:
    """What is shown at a moment: of the last minute (or since the start, if that is less) and of
    all since the start. ``classes``: those that took most of the last minute's time, with both.
    """

    since_s: float
    recent_s: float
    recent: Row
    whole: Row
    classes: tuple[tuple[Row, Row], ...]
    more: int
    resolution_s: float | None

    @property
    def recent_per_s(self) -> float:
        """Searches a second of the last minute."""
        return self.recent.n / max(self.recent_s, 1e-3)

    @property
    def whole_per_s(self) -> float:
        """Searches a second since the start."""
        return self.whole.n / max(self.since_s, 1e-3)


class Live:
    """Increments as they come. ``at_s`` of all calls: one clock that does not go back."""

    def __init__(self, at_s: float) -> None:
        self._start_s = at_s
        self._whole: dict[Key, Sum] = {}
        self._recent: deque[tuple[float, dict[Key, Sum]]] = deque()
        self._resolutions: Counter[int] = Counter()

    def add(self, at_s: float, counts: Counts) -> None:
        """What was new at ``at_s``."""
        for ns, n in zip(
            counts.numbers("resolutions", "resolution_ns").tolist(),
            counts.numbers("resolutions", "n").tolist(),
            strict=True,
        ):
            self._resolutions[ns] += n
        made = _sums(counts)
        _together(self._whole, made)
        self._recent.append((at_s, made))

    def view(self, at_s: float, formats: Iterable[str]) -> View:
        """What is to be shown now. ``formats``: of the logs, which say whether errors are known."""
        while self._recent and self._recent[0][0] <= at_s - RECENT_S:
            self._recent.popleft()
        recent: dict[Key, Sum] = {}
        for _, made in self._recent:
            _together(recent, made)
        known = set(formats)
        resolution = finest(self._resolutions, known) if self._resolutions else _UNKNOWN
        told = bool(known) and known <= WITH_ERRORS
        all_recent, all_ = _all(recent), _all(self._whole)

        def row(name: str, of: Sum, whole: Sum) -> Row:
            return of.row(name, whole, resolution, with_errors=told)

        weigh = recent or self._whole
        names = [key for key in weigh if key[0] == "class"]
        names.sort(key=lambda k: (-weigh[k].numbers["sum_ns"], -weigh[k].numbers["n"], k[1]))
        since_s = at_s - self._start_s
        return View(
            since_s,
            min(since_s, RECENT_S),
            row("all", all_recent, all_recent),
            row("all", all_, all_),
            tuple(
                (row(key[1], recent.get(key, Sum()), all_recent),
                 row(key[1], self._whole[key], all_))
                for key in names[:CLASSES]
            ),
            max(0, len(names) - CLASSES),
            resolution / 1e9 if resolution != _UNKNOWN else None,
        )  # fmt: skip


def _sums(counts: Counts) -> dict[Key, Sum]:
    """The sums of an increment."""
    found: dict[Key, Sum] = {}
    keys = zip(counts.texts("groups", "kind"), counts.texts("groups", "name"), strict=True)
    columns = [counts.numbers("groups", name).tolist() for name in (*_NUMBERS, "max_ns")]
    for key, *values in zip(keys, *columns, strict=True):
        if key[0] in _KINDS:
            numbers = Counter(dict(zip(_NUMBERS, values[:-1], strict=True)))
            found[key] = Sum(numbers, Counter(), values[-1])
    keys = zip(counts.texts("times", "kind"), counts.texts("times", "name"), strict=True)
    buckets = counts.numbers("times", "bucket").tolist()
    for key, bucket, n in zip(keys, buckets, counts.numbers("times", "n").tolist(), strict=True):
        if key in found:
            found[key].buckets[bucket] += n
    return found


def _together(into: dict[Key, Sum], made: Mapping[Key, Sum]) -> None:
    for key, each in made.items():
        into.setdefault(key, Sum()).add(each)


def _all(sums: Mapping[Key, Sum]) -> Sum:
    """All searches: those of all servers."""
    found = Sum()
    for (kind, _), each in sums.items():
        if kind == "server":
            found.add(each)
    return found
