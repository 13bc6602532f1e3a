"""An operation with its draws, and a method as what it sends for one of them.

What a method sends (``Sent``) is still text, with its values apart. A wire makes bytes of it, with
the values in the text or beside it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from searchbench.workload.operations.http_text import in_head
from searchbench.workload.operations.text import Placeholder, Repeated, Statement, When

Answer = Literal["set", "order", "count"]
MARKER = "?"
_AT_ONCE = 10_000
_SHOWN = 20
"""How many rows of each draw the record keeps."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One statement as it is sent. ``values``: those of a prepared statement's markers, else none.

    ``line``: of the statement in its text. ``pipelined`` as in ``Statement``.
    """

    text: str
    values: tuple[Any, ...]
    when: When
    line: int
    prepared: bool = False
    pipelined: int = 0
    ignored: bool = False


@dataclass(frozen=True)
class Operation:
    """What is asked, whatever the method: the rows of each draw, by column.

    ``columns``: their names; ``draws``: for each draw, by column, the values of its rows.
    ``held``: how it was drawn, for the record.
    """

    name: str
    columns: tuple[str, ...]
    draws: tuple[tuple[Sequence[Any], ...], ...]
    answer: Answer = "set"
    held: str = ""

    @property
    def rows(self) -> int:
        """How many rows one operation asks for."""
        return len(self.draws[0][0]) if self.columns and self.draws else 0

    @property
    def digest(self) -> str:
        """Equal for all methods of one operation."""
        seen = hashlib.blake2b(digest_size=16)
        seen.update(json.dumps([self.name, self.columns, self.answer, len(self.draws)]).encode())
        for draw in self.draws:
            for values in draw:
                seen.update(json.dumps(values, default=str).encode())
        return seen.hexdigest()

    def lines(self) -> Iterator[dict[str, Any]]:
        """The distinct draws as the record keeps them: the first rows of each."""
        for number, draw in enumerate(self.draws):
            rows = islice(zip(*draw, strict=True), _SHOWN)
            first = [dict(zip(self.columns, row, strict=True)) for row in rows]
            said = f"{self.name}: {self.rows:,} rows, draw {number + 1}"
            yield {"query": number, "text": said, "rows": self.rows, "first": first}


def sent_for(
    statements: Sequence[Statement],
    operation: Operation,
    draw: int,
    levers: Mapping[str, Any],
    literal: Callable[[object], str],
    marker: Callable[[int], str],
) -> Iterator[Sent]:
    """What a method sends for one draw, in order; ``once`` and ``connection`` for none.

    ``literal``: a value as the dialect writes it; ``marker``: the n-th (from 1) of a prepared
    statement.
    """
    known: dict[str, str] = {f"system.{name}": str(level) for name, level in levers.items()}
    known["rows"] = str(operation.rows)
    values = operation.draws[draw] if operation.draws else ()
    for statement in statements:
        if statement.when in ("once", "connection"):
            continue
        size = statement.each or max(1, operation.rows)
        for start in range(0, max(1, operation.rows), size):
            block = [column[start : start + size] for column in values]
            yield _sent(statement, operation.columns, block, known, literal, marker)


def fixed(statements: Sequence[Statement], when: When, levers: Mapping[str, Any]) -> list[Sent]:
    """The statements that are sent once, or once on each connection."""
    known = {f"system.{name}": str(level) for name, level in levers.items()}
    return [
        _sent(statement, (), (), known, str, lambda _: MARKER)
        for statement in statements
        if statement.when == when
    ]


def _sent(
    statement: Statement,
    columns: Sequence[str],
    block: Sequence[Sequence[Any]],
    known: Mapping[str, str],
    literal: Callable[[object], str],
    marker: Callable[[int], str],
) -> Sent:
    given: list[Any] = []
    at = {name: number for number, name in enumerate(columns)}

    def value(place: Placeholder, row: int) -> str:
        if place.name not in at:
            return known[place.name]
        one = block[at[place.name]][row]
        if not statement.prepared:
            return in_head(one) if place.head else literal(one)
        given.append(one)
        return marker(len(given))

    rows = len(block[0]) if block else 0
    pieces = []
    for part in statement.parts:
        if isinstance(part, str):
            pieces.append(part)
        elif isinstance(part, Placeholder):
            pieces.append(value(part, 0))
        else:
            pieces.append(_repeated(part, rows, value, at, block, literal, statement.prepared))
    return Sent(
        "".join(pieces), tuple(given), statement.when, statement.line, statement.prepared,
        statement.pipelined, statement.ignored,
    )  # fmt: skip


def _repeated(
    part: Repeated,
    rows: int,
    value: Callable[[Placeholder, int], str],
    at: Mapping[str, int],
    block: Sequence[Sequence[Any]],
    literal: Callable[[object], str],
    prepared: bool,
) -> str:
    if not prepared:  # a million rows are usual: a template for all, filled by column
        places = [p for p in part.parts if isinstance(p, Placeholder)]
        names = [p.name for p in places]
        if all(p.name in at and not p.head for p in places):
            form = "".join(
                "%s" if isinstance(p, Placeholder) else p.replace("%", "%%") for p in part.parts
            )
            if names:
                columns = [block[at[name]] for name in names]
                return part.between.join(_filled(form, columns, literal, part.between))
    return part.between.join(
        "".join(p if isinstance(p, str) else value(p, row) for p in part.parts)
        for row in range(rows)
    )


def _filled(
    form: str,
    columns: Sequence[Sequence[Any]],
    literal: Callable[[object], str],
    between: str,
) -> Iterator[str]:
    """A form filled row by row, some thousand rows at a time: a million texts take much memory."""
    for start in range(0, len(columns[0]), _AT_ONCE):
        some = ([literal(v) for v in c[start : start + _AT_ONCE]] for c in columns)
        yield between.join(form % row for row in zip(*some, strict=True))
