"""Where rows lie in a reply of JSON: ``facets.color: value, count``.

A path goes from key to key, with points between. Of a list a step is a place from 0, or ``2-``:
from that place on. A key with a point, a colon, a comma or a space in it is quoted. What is found
there, if a list, has a row in each element; anything else is one row.

After a colon come the columns of a row, as paths in it. Without columns a row is the value itself,
or the values of a list. ``as number`` after a column reads a text as a number. A text that is JSON
itself is read where a path goes into it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from searchbench.errors import QueryError

_STEP = re.compile(r'"(?P<quoted>(?:[^"\\]|\\.)+)"|(?P<bare>[^\s.,:"]+)')
_FROM = re.compile(r"(\d+)-")
_SPLIT = re.compile(r'("(?:[^"\\]|\\.)*")|([:,])')
_NUMBER = re.compile(r"\s+as\s+number\Z")
_SHOWN = 12
"""Keys that an error names."""


class NoRows(QueryError):  # noqa: N818 -- of a reply, not of us
    """A reply has no rows where they were said to be; the sentence says what there is."""


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from key to key. ``number``: what is found is read as one."""

    text: str
    steps: tuple[str, ...]
    number: bool = False


@dataclass(frozen=True, slots=True)
class RowsAt:
    """Where rows lie, and their columns; none where a row is what is found."""

    path: Path
    columns: tuple[Path, ...] = ()

    def lines(self, reply: Any) -> Iterator[bytes]:
        """Each row of a reply that was read as JSON, as a line. NoRows where there are none."""
        for row in self.rows(reply):
            yield line_of(row)

    def rows(self, reply: Any) -> Iterator[Sequence[Any]]:
        """Each row, as its values. A column that a row has not is null there."""
        found = _found(reply, self.path, "the reply")
        several = found if isinstance(found, list) else [found]
        if not self.columns:
            for each in several:
                if isinstance(each, dict):
                    raise NoRows(
                        f"{self.path.text!r} holds objects: say which of their keys are the "
                        f"columns, as in {self.path.text + ': ' + next(iter(each), 'key')!r}"
                    )
                yield each if isinstance(each, list) else [each]
            return
        if several:
            for column in self.columns:
                _somewhere(several, column, self.path.text)
        for each in several:
            yield [_or_null(each, column) for column in self.columns]


def read_rows_at(text: str) -> RowsAt:
    """A path with its columns; QueryError where it is none."""
    parts, marks = [""], []
    for piece in _SPLIT.split(text):
        if piece is None:
            continue
        if piece in (":", ","):
            marks.append(piece)
            parts.append("")
        else:
            parts[-1] += piece
    if marks and (marks[0] != ":" or ":" in marks[1:]):
        raise QueryError(f"{text!r} is not a path to rows: write one colon before the columns and "
                         "commas between them, as in 'facets.color: value, count'")  # fmt: skip
    whole, *columns = (_path(part, text) for part in parts)
    return RowsAt(whole, tuple(columns))


def line_of(values: Sequence[Any]) -> bytes:
    """A row as a line: the same as the rows of databases come out."""
    return b"\t".join(map(_written, values))


def _path(part: str, whole: str) -> Path:
    text = part.strip()
    number = _NUMBER.search(text) is not None
    at, steps = _NUMBER.sub("", text), []
    rest = at
    while rest:
        step = _STEP.match(rest)
        if step is None:
            break
        quoted = step["quoted"]
        steps.append(step["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        rest = rest[step.end() :]
        if rest[:1] != "." or len(rest) < 2:
            break
        rest = rest[1:]
    if rest or not steps:
        raise QueryError(f"{whole!r} is not a path to rows: {at!r} should be keys joined by "
                         "dots, as in hits.hits or \"a key\".0")  # fmt: skip
    return Path(at, tuple(steps), number)


def _found(value: Any, path: Path, of: str) -> Any:
    gone: list[str] = []
    for step in path.steps:
        if isinstance(value, str) and value[:1] in ("{", "["):
            value = _read(value)
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, list) and (start := _FROM.fullmatch(step)) is not None:
            value = value[int(start[1]) :]
        else:
            at = f"{'.'.join(gone)!r} of {of}" if gone else of
            raise NoRows(f"{path.text!r} is not in {of}: {at} {_held(value)}")
        gone.append(step)
    return value


def _read(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _held(value: Any) -> str:
    if isinstance(value, dict):
        keys = ", ".join(list(value)[:_SHOWN]) + ", .." * (len(value) > _SHOWN)
        return f"has {keys}" if keys else "is an empty object"
    if isinstance(value, list):
        return f"is a list of {len(value)}, whose places count from 0"
    return f"is {str(value)[:40]!r}" if value is not None else "is null"


def _somewhere(rows: Sequence[Any], column: Path, of: str) -> None:
    """NoRows where no row has the column."""
    first: NoRows | None = None
    for row in rows:
        try:
            _found(row, column, f"a row of {of!r}")
        except NoRows as missing:
            first = first or missing
        else:
            return
    if first is not None:
        raise first


def _or_null(row: Any, column: Path) -> Any:
    try:
        found = _found(row, column, "a row")
    except NoRows:
        return None
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    return _number(found) if column.number and isinstance(found, str) else found


def _number(text: str) -> int | float | str:
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return text


def _written(value: Any) -> bytes:
    if value is None:
        return b"\\N"
    if isinstance(value, bool):
        return b"1" if value else b"0"
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, float):
        return repr(value).encode()
    if not isinstance(value, str):
        return _escaped(orjson.dumps(value))
    return _escaped(value.encode())


def _escaped(value: bytes) -> bytes:
    return value.replace(b"\\", b"\\\\").replace(b"\t", b"\\t").replace(b"\n", b"\\n")
