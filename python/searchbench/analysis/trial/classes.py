"""The classes of the queries that a trial asked, as the record has them beside each query."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.agreement.agreement import WITHOUT
from searchbench.record import Record, Trial

SHOWN = 20  # classes with figures; of more, the rest is one
REST = "all other classes"
_REMEMBERED = 16  # query sets


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of each distinct query. ``of_query``: by its number, an index into ``names``."""

    names: tuple[str, ...]
    of_query: NDArray[np.uint32]

    @classmethod
    def of(cls, by_query: Sequence[str]) -> Classes:
        """From the class of each query in their order; "" is ``WITHOUT``."""
        numbers: dict[str, int] = {}
        of_query = np.empty(len(by_query), np.uint32)
        for at, name in enumerate(by_query):
            of_query[at] = numbers.setdefault(name or WITHOUT, len(numbers))
        return cls(tuple(numbers), of_query)

    @cached_property
    def shown(self) -> Classes:
        """The same with at most ``SHOWN`` classes: those with most queries, and the rest as one."""
        order = sorted(range(len(self.names)), key=lambda i: _natural(self.names[i], i))
        if len(order) > SHOWN:
            counts = np.bincount(self.of_query, minlength=len(self.names))
            most = set(sorted(order, key=lambda i: (-counts[i], i))[: SHOWN - 1])
            order = [i for i in order if i in most]
        turned = np.full(len(self.names), len(order), np.uint32)
        turned[order] = np.arange(len(order), dtype=np.uint32)
        names = [self.names[i] for i in order]
        if len(names) < len(self.names):
            names.append(REST)
        return Classes(tuple(names), turned[self.of_query])

    def rows(self, query: NDArray[np.uint32], name: str) -> NDArray[np.bool_]:
        """Which of these requests, by the numbers of their queries, are of a class."""
        if name not in self.names:
            return np.zeros(query.size, np.bool_)
        found: NDArray[np.bool_] = self.members_mask(name)[query]
        return found

    def members_mask(self, name: str) -> NDArray[np.bool_]:
        """By the number of a query, whether it is of a class."""
        found: NDArray[np.bool_] = self.of_query == self.names.index(name)
        return found

    def members(self, name: str) -> NDArray[np.int64]:
        """The numbers of the queries of a class."""
        return np.flatnonzero(self.members_mask(name)).astype(np.int64)


def _natural(name: str, at: int) -> tuple[int, int]:
    """Names that begin with a number by that, all others before them in the order they came."""
    digits = name.split(maxsplit=1)[0].partition("-")[0] if name.split() else ""
    return (int(digits), at) if digits.isdigit() else (-1, at)


_known: OrderedDict[tuple[Path, str], Classes] = OrderedDict()


def of_trial(record: Record, trial: Trial) -> Classes | None:
    """The classes of what a trial asked; None where its queries have none."""
    digest = trial.queries.digest
    if not trial.queries.classes or not digest:
        return None
    key = (record.path, digest)
    if key not in _known:
        rows = record.queries(digest)
        by_query = [""] * (1 + max((int(row["query"]) for row in rows), default=-1))
        for row in rows:
            by_query[int(row["query"])] = str(row.get("class") or "")
        _known[key] = Classes.of(by_query)
        while len(_known) > _REMEMBERED:
            _known.popitem(last=False)
    _known.move_to_end(key)
    return _known[key]
