"""The text of a method: statements that end with ``;``, with marks and placeholders.

This holds for SQL and BQL; in HTTP the text consists of requests (``http_text``). A mark is a
comment on a line of its own, ``-- @before`` or ``-- @each 1000 @prepared``, for the statement that
follows:

    once         sent when the index is made, before anything is timed
    connection   sent once on each connection, after its login
    before       set-up of each operation, not timed
    after        clean-up of each operation, not timed
    each N       sent once for every N requested rows (1 if N is left out)
    prepared     prepared once on each connection; then only executed
    pipelined N  sent N at a time, without waiting for each reply (100 if N is left out)
    ignored      its rows are not part of the answer
    rows PATH    where its rows lie in a reply of JSON (``paths``)

In HTTP a comment begins with ``#``, and only SQL is prepared and pipelined. A query of the algebra
is one object of JSON, without marks (``portable``).

Placeholders: ``{name}`` is the value of a column in a requested row; ``[each ", ": ({id})]`` is
its content once for each requested row, separated by the quoted text. ``{rows}`` is the number of
requested rows, ``{system.LEVER}`` a lever of the system. Other braces and brackets are left as they
are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import orjson

from searchbench.errors import QueryError
from searchbench.workload.operations.http_text import BadRequest, split_http
from searchbench.workload.operations.paths import read_rows_at

LANGUAGES = ("sql", "bql", "http", "query")
When = Literal["once", "connection", "before", "timed", "after"]
PIPELINED = 100
_MARKS = ("once", "connection", "before", "after", "each", "prepared", "pipelined", "ignored",
          "rows")  # fmt: skip
_NUMBERED = ("each", "pipelined")
_WHEN: tuple[When, ...] = ("once", "connection", "before", "timed", "after")
_MARK_LINE = re.compile(r"[ \t]*--[ \t]*(@.*)")
_PIECE = re.compile(
    r"""(?P<quoted>'(?:[^'\\]++|\\.|'')*+'|"(?:[^"\\]++|\\.|"")*+"|`[^`]*`)
    |(?P<comment>--(?=[ \t\n]|\Z)[^\n]*|/\*.*?\*/)
    |(?P<open>['"`]|/\*)
    |(?P<end>;)""",
    re.VERBOSE | re.DOTALL,
)
_EACH = re.compile(r'\[each\s+"((?:[^"\\]|\\.)*)"\s*:\s?')
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.]*)\}")


class BadText(QueryError):  # noqa: N818 -- a text is bad, not we
    """What is wrong with a text, and in which of its lines (from 1)."""

    def __init__(self, line: int, sentence: str) -> None:
        self.line, self.sentence = line, sentence
        super().__init__(f"line {line}: {sentence}")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """Stands for a value. ``head``: in the path or a header of a request."""

    name: str
    head: bool = False


@dataclass(frozen=True, slots=True)
class Repeated:
    """What is repeated for each row (``parts``), and the text that separates it (``between``)."""

    between: str
    parts: tuple[str | Placeholder, ...]


Part = str | Placeholder | Repeated


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement with its marks. ``line``: where it begins, from 1.

    ``each``: for how many rows it is sent at a time; 0: once for all of them. ``pipelined``: how
    many are sent without waiting for replies; 0: each waits for the reply to the one before.
    ``rows``: where its rows lie in a reply of JSON; "" if nothing says so here.
    """

    line: int
    parts: tuple[Part, ...]
    when: When = "timed"
    each: int = 0
    prepared: bool = False
    pipelined: int = 0
    ignored: bool = False
    rows: str = ""

    @property
    def names(self) -> set[str]:
        """The names in its placeholders."""
        inner = [p for part in self.parts if isinstance(part, Repeated) for p in part.parts]
        return {p.name for p in (*self.parts, *inner) if isinstance(p, Placeholder)}

    @property
    def written(self) -> str:
        """Its text, with its placeholders instead of values."""
        return _written(self.parts)

    @property
    def repeats(self) -> bool:
        """Has it a part for each row?"""
        return any(isinstance(part, Repeated) for part in self.parts)


def _written(parts: tuple[Part, ...]) -> str:
    pieces = []
    for part in parts:
        if isinstance(part, str):
            pieces.append(part)
        elif isinstance(part, Placeholder):
            pieces.append(f"{{{part.name}}}")
        else:
            pieces.append(f'[each "{part.between}": {_written(part.parts).strip()}]')
    return "".join(pieces)


@dataclass(slots=True)
class _Marks:
    """The marks that wait for their statement."""

    line: int = 0
    named: dict[str, int] = field(default_factory=dict)
    rows: str = ""


def read_method(text: str, language: str = "sql") -> tuple[Statement, ...]:
    """The statements of a text, or its requests; BadText with the first mistake."""
    text = text.replace("\r\n", "\n")
    if language == "http":
        found = [_request(*each) for each in _requests(text)]
    elif language == "query":
        found = [_query(text)]
    else:
        found = [_statement(line, [*_parts(said, line)], m) for line, said, m in _split(text)]
    for each in found:
        if language == "sql" and each.rows:
            raise BadText(each.line, "@rows is for replies in JSON; the rows of SQL need no mark")
        of_sql = {"connection": each.when == "connection", "prepared": each.prepared,
                  "pipelined": each.pipelined}  # fmt: skip
        if language != "sql" and (wrong := next((k for k, v in of_sql.items() if v), "")):
            raise BadText(each.line, f"@{wrong} is only for SQL, and this is {language.upper()}")
    if not any(each.when == "timed" for each in found):
        raise BadText(1, "no statement is timed: give one that has none of @before, @after, "
                      "@connection and @once")  # fmt: skip
    order = [_WHEN.index(each.when) for each in found]
    for before, after, each in zip(order, order[1:], found[1:], strict=False):
        if after < before:
            raise BadText(each.line, "write the statements in the order in which they are sent: "
                          "@once, @connection, @before, the timed ones, @after")  # fmt: skip
    return tuple(found)


def _split(text: str) -> Iterator[tuple[int, str, _Marks]]:
    """(line, statement, marks) of each."""
    marks, start = _Marks(), 0
    for piece in _PIECE.finditer(text):
        if piece["open"] is not None:
            line = text.count("\n", 0, piece.start()) + 1
            raise BadText(line, f"{piece['open']} is opened here and not closed")
        if piece["comment"] is not None and not text[start : piece.start()].strip():
            # Between statements: a mark, or a comment for people.
            line = text.count("\n", 0, piece.start()) + 1
            if (mark := _MARK_LINE.match(piece["comment"])) is not None:
                _read_marks(mark[1], line, marks)
            start = piece.end()
        elif piece["end"] is not None:
            yield from _one(text, start, piece.start(), marks)
            marks, start = _Marks(), piece.end()
    yield from _one(text, start, len(text), marks)


def _one(text: str, start: int, end: int, marks: _Marks) -> Iterator[tuple[int, str, _Marks]]:
    whole = text[start:end]
    statement = whole.strip()
    line = text.count("\n", 0, start + len(whole) - len(whole.lstrip())) + 1
    if statement:
        yield line, statement, marks
    elif marks.named:
        raise BadText(marks.line, f"no statement follows the mark @{next(iter(marks.named))}")


def _read_marks(text: str, line: int, marks: _Marks) -> None:
    marks.line = marks.line or line
    text, at, path = text.partition("@rows ")
    if at:
        if marks.rows:
            raise BadText(line, "one request has @rows twice: to read rows from several paths, "
                          "list them in `rows_at`")  # fmt: skip
        try:
            read_rows_at(path)
        except QueryError as error:
            raise BadText(line, str(error)) from None
        marks.rows, marks.named["rows"] = path.strip(), 1
    for word in re.findall(r"@\S+(?:\s+[^@\s]+)*", text):
        name, *rest = word[1:].split()
        if name not in _MARKS:
            known = ", ".join(f"@{each}" for each in _MARKS)
            raise BadText(line, f"there is no mark @{name}; the marks are {known}")
        number = 1 if name == "each" else PIPELINED
        if rest:
            good = name in _NUMBERED and len(rest) == 1 and rest[0].isdigit() and int(rest[0])
            if not good:
                takes = "a number from 1 on" if name in _NUMBERED else "nothing"
                raise BadText(line, f"@{name} takes {takes}, not {' '.join(rest)!r}")
            number = int(rest[0])
        if name in marks.named:
            raise BadText(line, f"one statement has @{name} twice")
        marks.named[name] = number
    whens = [each for each in marks.named if each in _WHEN]
    if len(whens) > 1:
        raise BadText(line, f"a statement may be @{whens[0]} or @{whens[1]}, not both")


def _requests(text: str) -> Iterator[tuple[int, str, str, _Marks]]:
    """(line, head, body, marks) of each."""
    try:
        for line, marked, head, body in split_http(text):
            marks = _Marks()
            for at, mark in marked:
                _read_marks(mark, at, marks)
            yield line, head, body, marks
    except BadRequest as error:
        raise BadText(error.line, error.sentence) from None


def _request(line: int, head: str, body: str, marks: _Marks) -> Statement:
    begins = line + head.count("\n")
    parts = [*_parts(body, begins)]
    if body[:1] in ("{", "["):
        _insist_on_json(parts, begins)
    return _statement(line, [*_parts(head, line, head=True), *parts], marks)


def _query(text: str) -> Statement:
    whole = text.strip()
    line = text.count("\n", 0, len(text) - len(text.lstrip())) + 1
    if not whole.startswith("{"):
        raise BadText(line, f"{whole[:40]!r} is no query of the algebra: write one object of JSON "
                      'as in a file of queries, such as {"filters": [..], "limit": 20}, without '
                      "marks")  # fmt: skip
    parts = [*_parts(whole, line)]
    _insist_on_json(parts, line)
    return _statement(line, parts, _Marks())


def _insist_on_json(parts: Sequence[Part], line: int) -> None:
    """BadText if a body is neither JSON nor lines of JSON once its placeholders are filled."""
    inner = (part.parts if isinstance(part, Repeated) else (part,) for part in parts)
    filled = "".join("0" if isinstance(p, Placeholder) else p for some in inner for p in some)
    try:
        orjson.loads(filled)
    except orjson.JSONDecodeError as error:
        try:
            for each in filled.splitlines():
                orjson.loads(each or "0")
        except orjson.JSONDecodeError:
            at = line + filled.count("\n", 0, error.pos)
            raise BadText(at, f"the body is not JSON: {error.msg}") from None


def _statement(line: int, parts: Sequence[Part], marks: _Marks) -> Statement:
    named = marks.named
    when: When = next((w for w in _WHEN if w in named), "timed")
    found = Statement(
        line=line,
        parts=tuple(parts),
        when=when,
        each=named.get("each", 0),
        prepared="prepared" in named,
        pipelined=named.get("pipelined", 0),
        ignored="ignored" in named,
        rows=marks.rows,
    )
    alone = next((n for n in ("each", "prepared", "pipelined") if n in named), "")
    if when in ("once", "connection") and alone:
        raise BadText(line, f"a statement that is @{when} cannot be @{alone}")
    if found.pipelined and not found.each:
        raise BadText(line, "@pipelined sends several statements at once: it needs @each")
    if when in ("once", "connection") and found.repeats:
        raise BadText(line, f"a statement that is @{when} asks for no rows: use [each ..] "
                      "only in one that is sent in each operation")  # fmt: skip
    return found


def _parts(text: str, line: int, *, head: bool = False) -> Iterator[Part]:
    at = 0
    for opened in _EACH.finditer(text):
        if opened.start() < at:
            continue
        yield from _placed(text[at : opened.start()], head)
        end = _closing(text, opened.end())
        if end < 0:
            at_line = line + text.count("\n", 0, opened.start())
            raise BadText(at_line, "[each is opened here and not closed with ]")
        between = opened[1].replace('\\"', '"').replace("\\n", "\n")
        yield Repeated(between, tuple(_placed(text[opened.end() : end], head)))
        at = end + 1
    yield from _placed(text[at:], head)


def _closing(text: str, at: int) -> int:
    """Where the bracket that opens before ``at`` is closed; -1 if it is not."""
    depth = 1
    for found in re.finditer(r"[\[\]]", text[at:]):
        depth += 1 if found[0] == "[" else -1
        if depth == 0:
            return at + found.start()
    return -1


def _placed(text: str, head: bool) -> Iterator[str | Placeholder]:
    for number, part in enumerate(_PLACEHOLDER.split(text)):
        if number % 2:
            yield Placeholder(part, head)
        elif part:
            yield part


def check_names(
    statements: Sequence[Statement], columns: Sequence[str], levers: Sequence[str]
) -> None:
    """BadText if a placeholder names nothing that is known, or needs a row where there is none."""
    known = {*columns, "rows", *(f"system.{lever}" for lever in levers)}
    for each in statements:
        for name in sorted(each.names - known):
            if name.startswith("system."):
                raise BadText(each.line, f"{{{name}}}: this system has no such parameter; it has "
                              f"{', '.join(levers)}")  # fmt: skip
            has = f"has {', '.join(columns)}" if columns else "is not given"
            raise BadText(
                each.line,
                f"{{{name}}} is not a column of the key: `key` {has}; correct the name, or add "
                "the column to `key`",
            )
        if each.when in ("once", "connection") and "rows" in each.names:
            raise BadText(each.line, f"{{rows}} is known only within an operation, and this is "
                          f"@{each.when}")  # fmt: skip
        outside = {p.name for p in each.parts if isinstance(p, Placeholder)} & {*columns}
        if outside and each.each != 1:
            name = min(outside)
            raise BadText(each.line, f"{{{name}}} is a value of one row, and the statement "
                          'is for several: put it into [each ", ": ..], or '
                          "mark the statement @each")  # fmt: skip
