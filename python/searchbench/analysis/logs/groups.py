"""Groups of requests: rows of figures from the tables of counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.logs.clock import Clock
from searchbench.analysis.logs.model import Row
from searchbench.analysis.logs.spread import Spread, spread
from searchbench.logs.counts import NUMBERS, Counts

# Bands of words: up to how many.
WORDS = ((1, "1"), (2, "2"), (3, "3"), (4, "4"), (5, "5"), (10, "6–10"), (20, "11–20"),
         (50, "21–50"), (10**9, "more than 50"))  # fmt: skip


@dataclass(frozen=True, eq=False)
class Groups:
    """The rows of ``groups`` and of ``times``, by (kind, name). ``clock``: the coarsest of them.

    A row of a server has its own resolution (``resolutions_ns``) and its own of the ``clocks`` ("":
    one of all); whatever several servers may be in has the coarsest.
    """

    kinds: NDArray[np.object_]
    names: list[str]
    numbers: dict[str, NDArray[np.int64]]
    of_times: dict[tuple[str, str], slice]
    buckets: NDArray[np.uint64]
    times: NDArray[np.uint64]
    resolution_ns: int
    resolutions_ns: Mapping[str, int] = field(default_factory=dict)
    clock: Clock | None = None
    clocks: Mapping[str, Clock] = field(default_factory=dict)

    @classmethod
    def of(
        cls, counts: Counts, resolution_ns: int, resolutions_ns: Mapping[str, int] | None = None
    ) -> Groups:
        """Read once; all that follows looks up."""
        kinds, names = counts.texts("times", "kind"), counts.texts("times", "name")
        places: dict[tuple[str, str], slice] = {}
        start = 0
        for i in range(1, len(kinds) + 1):
            if i == len(kinds) or (kinds[i], names[i]) != (kinds[start], names[start]):
                places[kinds[start], names[start]] = slice(start, i)
                start = i
        return cls(
            np.array(counts.texts("groups", "kind"), dtype=object),
            counts.texts("groups", "name"),
            {name: counts.numbers("groups", name).astype(np.int64) for name in NUMBERS},
            places,
            counts.numbers("times", "bucket"),
            counts.numbers("times", "n"),
            resolution_ns,
            dict(resolutions_ns or {}),
        )

    def rows_of(self, kind: str) -> list[int]:
        """The numbers of the rows of a kind."""
        return [int(i) for i in np.flatnonzero(self.kinds == kind)]

    def total(self, rows: Iterable[int]) -> dict[str, int]:
        """What is counted of several rows together."""
        at = list(rows)
        found = {name: int(values[at].sum()) for name, values in self.numbers.items()}
        found["max_ns"] = int(self.numbers["max_ns"][at].max()) if at else 0
        return found

    def spread(self, rows: Iterable[int]) -> Spread:
        """The times of several rows together."""
        at = list(rows)
        places = [
            self.of_times[key]
            for i in at
            if (key := (str(self.kinds[i]), self.names[i])) in self.of_times
        ]
        buckets = np.concatenate([self.buckets[p] for p in places]) if places else self.buckets[:0]
        times = np.concatenate([self.times[p] for p in places]) if places else self.times[:0]
        return spread(buckets, times, self.total(at)["max_ns"], self._resolution_ns(at))

    def known(self, row: int) -> Spread:
        """The times of a row as its clock lets them be known."""
        times = self.spread([row])
        if self.kinds[row] != "server":
            return times if self.clock is None else self.clock.seen(times)
        clock = self.clocks.get(self.names[row], self.clocks.get(""))
        return times if clock is None else clock.seen(times)

    def _resolution_ns(self, rows: Sequence[int]) -> int:
        """Of a server its own; else the coarsest."""
        if len(rows) == 1 and self.kinds[rows[0]] == "server":
            return self.resolutions_ns.get(self.names[rows[0]], self.resolution_ns)
        return self.resolution_ns

    def row(self, name: str, rows: Sequence[int], whole: dict[str, int]) -> Row:
        """One row of figures; ``whole``: what is counted of all searches."""
        own = self.total(rows)
        n, timed, known = own["n"], own["timed"], own["hits_known"]
        times = self.spread(rows) if timed else None
        seen = times if times is None or self.clock is None else self.clock.seen(times)
        resolution_s = None
        if len(rows) == 1 and self.kinds[rows[0]] == "server" and timed:
            seen = self.known(rows[0])
            resolution_s = seen.resolution_ns / 1e9
        return Row(
            name,
            n,
            n / max(1, whole["n"]),
            own["sum_ns"] / whole["sum_ns"] if timed and whole["sum_ns"] else None,
            times.quantiles_s() if times else {},
            own["max_ns"] / 1e9 if timed else None,
            own["zero"] / known if known else None,
            own["hits"] / known if known else None,
            own["errors"] / n,
            own["partial"] / n,
            own["cached"] / n,
            own["cpu_us"] / own["cpu_known"] / 1e3 if own["cpu_known"] else None,
            own["ios"] / own["ios_known"] if own["ios_known"] else None,
            times.between_s(0.95) if times else None,
            seen,
            resolution_s,
            timed / whole["timed"] if timed and whole["timed"] else None,
            known,
        )

    def by(self, kind: str, whole: dict[str, int], most: int) -> tuple[Row, ...]:
        """The rows of a kind, those that took the most time first (without times: the most)."""
        rows = self.rows_of(kind)
        weight = self.numbers["sum_ns"] if whole["sum_ns"] else self.numbers["n"]
        rows.sort(key=lambda i: (-int(weight[i]), self.names[i]))
        return tuple(self.row(self.names[i], [i], whole) for i in rows[:most])

    def words(self, whole: dict[str, int]) -> tuple[Row, ...]:
        """By how many words a search has."""

        def band(name: str) -> str:
            if name.startswith(">"):
                return WORDS[-1][1]
            if name == "0":
                return "none"
            return next(label for top, label in WORDS if int(name) <= top)

        order = ["none", *(label for _, label in WORDS)]
        return self._banded(self.rows_of("words"), lambda i: band(self.names[i]), order, whole)

    def sizes(self, sizes: dict[str, int], whole: dict[str, int]) -> tuple[Row, ...]:
        """By how large the index is, where sizes are given: in decades of bytes from a third on."""

        def band(i: int) -> str:
            size = sizes.get(self.names[i])
            return "size not given" if size is None else _decade(size)

        order = [*dict.fromkeys(_decade(s) for s in sorted(sizes.values())), "size not given"]
        return self._banded(self.rows_of("index"), band, order, whole) if sizes else ()

    def _banded(
        self, rows: list[int], band: Callable[[int], str], order: list[str], whole: dict[str, int]
    ) -> tuple[Row, ...]:
        found: dict[str, list[int]] = {}
        for i in rows:
            found.setdefault(band(i), []).append(i)
        return tuple(self.row(name, found[name], whole) for name in order if name in found)


def _decade(size: int) -> str:
    """The band of a size, as the published analysis has them: 1–3 MB, 3–30 MB, .. ."""
    low = 1
    while size >= low * 3:
        low *= 10
    below = low * 3

    def named(value: float) -> str:
        for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
            if value >= unit:
                return f"{value / unit:g} {name}"
        return f"{value:g} B"

    return f"{named(below / 10)} – {named(below)}"
