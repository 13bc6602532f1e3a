"""What inserts can do to the answer of a method: by its text, unless the study says it.

While documents are inserted an answer is held against those of before and after, so it must be
known which of its numbers can only rise. What a text leaves open is not judged.

    counts   the last column of each row counts documents
    rows     rows come, and none goes
    number   rows may be others (the first ten by price), but there are no fewer
    any      nothing is known, as of an average or of groups with HAVING
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from searchbench.workload.operations.paths import RowsAt, read_rows_at
from searchbench.workload.operations.text import Placeholder, Repeated, Statement, read_method

Kind = Literal["counts", "rows", "number", "any"]

# Whatever a quoted text says is no part of the statement; a quoted name is a name.
_QUOTED = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|/\*.*?\*/|--[^\n]*", re.DOTALL
)
_QUESTION = re.compile(r"\s*\(*\s*(SELECT|WITH|VALUES|TABLE)\b")
_FALLS = re.compile(
    r"\b(?:HAVING|EXCEPT|INTERSECT|MINUS|NOT EXISTS|OVER ?\(|ALL ?\(|(?:LEFT|RIGHT|FULL) "
    r"(?:OUTER )?JOIN|RAND ?\(|RANDOM ?\(|NOW ?\(|CURRENT_\w+|SYSDATE)|\( ?SELECT\b"
)
_AGGREGATE = re.compile(
    r"\b(COUNT|SUM|AVG|MIN|MAX|MEDIAN|STD\w*|VAR\w*|BIT_\w+|BOOL_\w+|EVERY|GROUP_CONCAT|\w+_AGG|"
    r"PERCENTILE_\w+|ANY_VALUE)\s*\("
)
_COUNT_LAST = re.compile(
    r"\bCOUNT\s*\((?:[^()]|\([^()]*\))*\)\s*(?:(?:AS\s+)?[\w`?]+\s*)?(?=\bFROM\b)"
)
_CUT = re.compile(r"\b(LIMIT|FETCH|OFFSET|TOP)\b")
_COUNTING = ("count", "doc_count", "_grouphitscount", "numhits", "totalhits", "total")


@dataclass(frozen=True, slots=True)
class Growth:
    """``strict``: all rows are returned; one that is missing has gone. ``why``: it is ``any``."""

    kind: Kind
    strict: bool = True
    why: str = ""


def growth(table: Mapping[str, Any]) -> Growth:
    """Of the method that a plan's table of an operation has."""
    given: Kind | None = table.get("while_inserting")
    if given is not None:
        return _readable(Growth(given, why="the study says so" if given == "any" else ""), table)
    statements = [
        each
        for each in read_method(table["text"], table.get("language", "sql"))
        if each.when in ("before", "timed") and not each.ignored
    ]
    if table.get("language", "sql") == "sql":
        return _readable(_of_sql([_text(each) for each in statements]), table)
    return _readable(_of_json(statements, table.get("rows_at") or ()), table)


def _readable(found: Growth, table: Mapping[str, Any]) -> Growth:
    """Of an answer whose rows are only counted, the number is all that is on record."""
    counted = table.get("answer") == "count" and found.kind in ("counts", "rows")
    return Growth("number") if counted else found


def _of_sql(texts: Sequence[str]) -> Growth:
    asked = [text for text in texts if _QUESTION.match(text)]
    for text in texts:
        falls = _FALLS.search(text)
        if falls is None and text not in asked:  # a table that is filled by a question
            falls = re.search(r"\bSELECT\b", text)
        if falls is not None:
            inner = "SELECT" in falls[0]
            what = "a SELECT in another statement" if inner else falls[0].rstrip("( ")
            return Growth("any", why=f"it has {what}")
    kinds = [_of_question(text) for text in asked]
    if not kinds:
        return Growth("any", why="it has no SELECT")
    for kind in ("any", "number"):
        if (first := next((each for each in kinds if each.kind == kind), None)) is not None:
            return first
    if len({each.kind for each in kinds}) > 1:
        return Growth("number")
    return Growth(kinds[0].kind, all(each.strict for each in kinds))


def _of_question(text: str) -> Growth:
    made = {found.upper() for found in _AGGREGATE.findall(text)}
    cut = _CUT.search(text) is not None
    if made == {"COUNT"} and _COUNT_LAST.search(text):
        return Growth("counts", strict=not cut)
    if made or "GROUP BY" in text or cut:
        return Growth("number")
    return Growth("rows")


def _of_json(statements: Iterable[Statement], rows_at: Sequence[str]) -> Growth:
    """By the names of what is read from the replies. They may have been cut to the first ones."""
    timed = [each for each in statements if each.when == "timed"]
    paths = [read_rows_at(p) for each in timed for p in ([each.rows] if each.rows else rows_at)]
    counts = paths and all(map(_counts, paths))
    return Growth("counts", strict=False) if counts else Growth("number")


def _counts(path: RowsAt) -> bool:
    steps = path.columns[-1].steps if path.columns else path.path.steps
    last = [step.lower() for step in steps][-2:]
    return last[-1] in _COUNTING or (last == ["total", "value"])


def _text(statement: Statement) -> str:
    """In capitals, without quoted texts and comments; a placeholder is a question mark."""
    found = []
    for part in statement.parts:
        if isinstance(part, Placeholder):
            found.append("?")
        elif isinstance(part, Repeated):
            found.append(part.between.join("?" if isinstance(p, Placeholder) else p
                                           for p in part.parts))  # fmt: skip
        else:
            found.append(part)
    return " ".join(_QUOTED.sub("?", "".join(found)).upper().split())
