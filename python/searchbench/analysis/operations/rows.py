"""Do methods return the same rows? By the digests of all rows; where not, the first that differ.

Only the first rows of an answer are on record (sorted, where they are a set), so what differs may
be beyond them; then the place says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchbench.analysis.operations.model import RowDifference
from searchbench.record import Record, Trial
from searchbench.workload.operations.differing import first_differing

ROWS = "rows"
IN_BLOCK = ", in block "  # in the label of what a method returned otherwise than in its first trial


@dataclass(frozen=True, slots=True)
class Returned:
    """What a method returned: by draw the digest and number of all rows, and the first of them."""

    label: str
    held: str
    rows: int
    answers: Mapping[int, tuple[str, int, Sequence[str]]]


def returned(record: Record, trial: Trial, label: str, held: str) -> Returned:
    """The captured answers of a trial that were answered well."""
    table = record.replies(trial.trial)
    found: dict[int, tuple[str, int, Sequence[str]]] = {}
    for row in table.select(["query", "phase", "ids", "facets", "error"]).to_pylist():
        if row["phase"] == "captured" and row["error"] is None and row["query"] not in found:
            digest, count = _digest(row)
            if digest:
                found[row["query"]] = (digest, count, row["ids"])
    rows = trial.operation.rows if trial.operation is not None else 0
    return Returned(label, held, rows, found)


def every_way(record: Record, trials: Sequence[Trial], label: str, held: str) -> list[Returned]:
    """What a method returned, in each way that one of its trials did; but for the first way, the
    label has the block.
    """
    found: list[Returned] = []
    for trial in trials:
        where = f"{label}{IN_BLOCK}{trial.block}" if found else label
        one = returned(record, trial, where, held)
        if not any(_alike(one, other) for other in found):
            found.append(one)
    return found


def _alike(a: Returned, b: Returned) -> bool:
    """Whether all draws that both answered have the same rows, by their digests."""
    return all(a.answers[draw][:2] == b.answers[draw][:2] for draw in a.answers.keys() & b.answers)


def _digest(row: Mapping[str, Any]) -> tuple[str, int]:
    pairs = json.loads(row["facets"] or "{}").get(ROWS) or [["", 0]]
    return str(pairs[0][0]), int(pairs[0][1])


def differing(several: Sequence[Returned], *, ordered: bool = False) -> list[RowDifference]:
    """Of methods that were asked the same: those that returned something else than the most did,
    each with the first draw that shows it.
    """
    found: dict[str, RowDifference] = {}
    kinds: dict[str, list[Returned]] = {}
    draws = sorted({draw for each in several for draw in each.answers})
    for draw in draws:
        kinds.clear()
        for each in several:
            if draw in each.answers:
                kinds.setdefault(each.answers[draw][0], []).append(each)
        if len(kinds) < 2:
            continue
        most = max(kinds.values(), key=len)
        for others in kinds.values():
            for each in others if others is not most else ():
                if each.label not in found:
                    found[each.label] = _difference(most[0], each, draw, len(most), ordered)
    return [*found.values()]


def _difference(a: Returned, b: Returned, draw: int, alike: int, ordered: bool) -> RowDifference:
    (_, count_a, rows_a), (_, count_b, rows_b) = a.answers[draw], b.answers[draw]
    counts = (count_a, count_b)
    found = first_differing(rows_a, rows_b, counts, ordered=ordered)
    return RowDifference(
        a.label, b.label, a.rows, draw, found.place, found.only_a, found.only_b, counts, alike,
        b.held, found.order,
    )  # fmt: skip
