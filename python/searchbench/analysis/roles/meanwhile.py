"""Was every answer, while documents changed, one of its time?

An answer is made of numbers that can only rise while documents are only inserted: the total of a
query; of an operation how many documents each row counts, how often each row came, or how many rows
there were (``workload.operations.growth`` says which). Each lies between those of before and after,
and never falls. With inserts and deletes it is no further from that of before than there were
changes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from searchbench.analysis.roles.accepted import Written
from searchbench.analysis.roles.model import Row
from searchbench.analysis.stats.distributions import more_often
from searchbench.analysis.stats.intervals import ALPHA
from searchbench.record import Record, Trial
from searchbench.record.trial import OperationAbout
from searchbench.workload.operations.growth import Growth, growth

_TOTAL = Growth("number")
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_SHOWN = 60  # characters of a row
_COLUMNS = [
    "query", "phase", "total", "total_exact", "ids", "error", "outcome", "asked", "answered",
]  # fmt: skip
Numbers = Mapping[str, int]
Reply = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Changed:
    """What a writer did: the kinds of its changes, and how many documents it inserted, deleted."""

    kinds: frozenset[str]
    plus: int
    minus: int


@dataclass(slots=True)
class Held:
    """``sampled`` answers were held against those of before and after; ``outside``: that are none
    of the time between; ``back``: that are of an earlier time than one before. ``first``: one.
    """

    sampled: int = 0
    outside: int = 0
    back: int = 0
    first: str = ""


@dataclass(frozen=True, slots=True)
class _Ends:
    """Of one query: how its answers are read, and the numbers of before and after."""

    rule: Growth
    before: Numbers
    after: Numbers


@dataclass(slots=True)
class _Last:
    """The answer that came last so far, in ns."""

    answered: int = -1
    numbers: Numbers = field(default_factory=dict)


def findings(record: Record, trial: Trial, made: Written, role: str = "") -> Iterator[Row]:
    """That answers were of no time; nothing where all were, or none can be judged.

    ``role``: answers to that role, which reads; "": to the readers.
    """
    held = hold(record, trial, made, role)
    if not held.outside and not held.back:
        return
    back = f", {held.back:,} that went back" if held.back else ""
    what = "totals" if trial.operation is None else "answers"
    whose = f"{role}: " if role else ""
    why = "a change was seen in part"
    if trial.fault is not None:
        why = f"what the fault took of writes was seen before it, an answer was not whole, or {why}"
    yield (
        "answers of no time", "warning",
        f"{whose}{held.outside:,} of {held.sampled:,} sampled {what}{back} ({held.first})",
        f"While documents changed, the engine gave {what} that fit no moment between before and "
        f"after: {why}.",
        "Look at whether the engine replaces a document in one step.",
    )  # fmt: skip


def lacking(record: Record, trial: Trial, since_ns: int) -> tuple[int, int]:
    """Of the sampled answers to readers that were asked for from then on, those that found less
    than half of what their query finds both before and after; and how many there are. No change
    explains so many at once. None, where as large a share before may be the same by chance.
    """
    rows = record.replies(trial.trial).select(_COLUMNS).to_pylist()
    known = [row for row in rows if row["error"] is None and row["total"] is not None]
    alone = [
        {row["query"]: row["total"] for row in known if row["phase"] == phase}
        for phase in ("captured", "after")
    ]
    least = {q: min(one[q] for one in alone) for q in alone[0].keys() & alone[1].keys()}
    sampled = [
        row
        for row in known
        if row["phase"] in ("while_written", "under_load")
        and least.get(row["query"])
        and not row.get("outcome")
    ]
    before, after = (
        [2 * row["total"] < least[row["query"]] for row in sampled
         if (row["asked"] >= since_ns) == later]
        for later in (False, True)
    )  # fmt: skip
    chance = more_often(sum(before), len(before), sum(after), len(after)) if before else 0.0
    return (sum(after) if chance < ALPHA else 0, len(after))


def rule_of(record: Record, trial: Trial) -> Growth:
    """How the answers of a trial are read."""
    planned = next((t for t in record.plan.treatments if t.id == trial.treatment), None)
    return growth(planned.operation) if planned is not None and planned.operation else _TOTAL


def hold(record: Record, trial: Trial, made: Written, role: str = "") -> Held:
    """The sampled answers of a trial, held against those of before and after."""
    changed = Changed(
        frozenset(map(str, made.kind[made.sent >= 0])),
        int(made.documents[made.kind == "insert"].sum()),
        int(made.documents[made.kind == "delete"].sum()),
    )
    if role:
        own = record.replies_of_role(trial.trial, role).select(_COLUMNS).to_pylist()
        return held(own, _TOTAL, changed)
    replies = record.replies(trial.trial).select(_COLUMNS).to_pylist()
    return held(replies, rule_of(record, trial), changed, partial(_named, trial.operation))


def held(
    replies: Sequence[Reply],
    rule: Growth,
    changed: Changed,
    named: Callable[[int], str] = "query {}".format,
) -> Held:
    """The same of rows of replies.parquet. ``named``: what has their number, in a sentence."""
    found = Held()
    if rule.kind == "any":
        return found
    if rule.kind == "rows" and "update" in changed.kinds:
        rule = _TOTAL  # an update makes another row of one
    known = [
        row
        for row in replies
        if row["error"] is None
        and row["total"] is not None
        and row["total_exact"]
        and not row.get("outcome")  # answered in part: which is said of it already
    ]
    ends = _ends(known, rule)
    last: dict[int, _Last] = {}
    sampled = [r for r in known if r["phase"] == "while_written" and r["query"] in ends]
    for row in sorted(sampled, key=lambda row: row["asked"]):
        at = row["query"]
        _hold_one(row, ends[at], changed, last.setdefault(at, _Last()), found, named(at))
    return found


def _named(operation: OperationAbout | None, number: int) -> str:
    if operation is None:
        return f"query {number}"
    return operation.name if operation.draws < 2 else f"{operation.name}, draw {number + 1}"


def _ends(rows: Sequence[Reply], rule: Growth) -> dict[int, _Ends]:
    """By query what was answered alone before and after; those that were answered both times."""
    alone: dict[str, dict[int, Reply]] = {"captured": {}, "after": {}}
    for row in rows:
        if row["phase"] in alone:
            alone[row["phase"]].setdefault(row["query"], row)
    found = {}
    for query in alone["captured"].keys() & alone["after"].keys():
        both = [alone[phase][query] for phase in ("captured", "after")]
        before, after = (_numbers(row, rule) for row in both)
        if before is not None and after is not None:
            found[query] = _Ends(rule, before, after)
        else:
            before, after = ({"": int(row["total"])} for row in both)
            found[query] = _Ends(_TOTAL, before, after)
    return found


def _hold_one(
    row: Reply, ends: _Ends, changed: Changed, last: _Last, into: Held, where: str
) -> None:
    into.sampled += 1
    found = _numbers(row, ends.rule)
    if found is None:
        into.outside += 1
        into.first = (
            into.first or f"{where}: {row['total']:,} rows that cannot be read as those of before"
        )
        return
    for key in _looked_at(found, ends):
        number, (low, high) = found.get(key, 0), _bounds(key, ends, changed)
        if not low <= number <= high:
            into.outside += 1
            most = f"{high:,.0f}" if math.isfinite(high) else "any number"
            said = f"{where}: {_shown(key)}{number:,}, not {low:,} to {most}"
            into.first = into.first or said
            break
    if row["asked"] > last.answered >= 0:
        up, down = changed.kinds <= {"insert"}, changed.kinds <= {"delete"}
        for key in _looked_at(found, ends, last.numbers):
            was, now = last.numbers.get(key, 0), found.get(key, 0)
            if (up and now < was) or (down and now > was):
                into.back += 1
                into.first = into.first or f"{where}: {_shown(key)}{was:,}, then {now:,}"
                break
    if row["answered"] > last.answered:
        last.answered, last.numbers = row["answered"], found


def _looked_at(found: Numbers, ends: _Ends, last: Numbers | None = None) -> list[str]:
    """Which numbers of an answer are judged. Where rows may be cut off, those that are there."""
    others = (ends.before, ends.after) if last is None else (last,)
    if ends.rule.strict:
        return list(dict.fromkeys([*found, *(key for other in others for key in other)]))
    return [key for key in found if any(key in other for other in others)]


def _bounds(key: str, ends: _Ends, changed: Changed) -> tuple[int, float]:
    """The least and the most that a number can be."""
    before, after = ends.before.get(key, 0), ends.after.get(key, 0)
    known = key in ends.before or key in ends.after
    if {"insert", "delete"} <= changed.kinds and known:
        return before - changed.minus, before + changed.plus
    low, high = sorted((before, after))
    if ends.rule.strict:
        return low, high
    # A row that is missing at one end may have been cut off there.
    rises = "delete" not in changed.kinds
    if key not in ends.after and rises:
        return before, math.inf
    if key not in ends.before and not rises:
        return 0, math.inf
    return low, high


def _numbers(row: Reply, rule: Growth) -> Numbers | None:
    """An answer as numbers by key; None where it cannot be read so."""
    if rule.kind == "number":
        return {"": int(row["total"])}
    lines = row["ids"]
    if row["total"] != len(lines):  # there are more rows than the record keeps
        return None
    if rule.kind == "rows":
        return Counter(lines)
    found: Counter[str] = Counter()
    for line in lines:
        key, _, count = line.rpartition("\t")
        if not _NUMBER.fullmatch(count):
            return None
        found[key] += int(count)
    return found


def _shown(key: str) -> str:
    """A row in a sentence."""
    text = ", ".join(key.split("\t"))
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f"{text}: " if text else ""
