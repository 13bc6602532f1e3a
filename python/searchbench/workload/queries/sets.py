"""A query set: the distinct queries in order of first appearance, and the log of their use."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import islice, repeat
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from searchbench.errors import QueryError
from searchbench.packed import inner_suffix
from searchbench.packed import lines as lines_of
from searchbench.spec import near_file, show
from searchbench.workload.queries import sphinx_log
from searchbench.workload.queries.algebra import Match, Mode, Query, Terms, declared_terms
from searchbench.workload.queries.analysis import terms
from searchbench.workload.queries.classes import wrong as no_class
from searchbench.workload.queries.forms import Reader, to_json
from searchbench.workload.queries.operators import has_operators

Form = Literal["lines", "jsonl", "sphinx"]

T = TypeVar("T")  # a query or a request

SHOWN = 20  # bad lines are all counted; so many are kept to be shown
_EXAMPLE = 80  # characters of a query that is shown as an example
_MARK = b"\xef\xbb\xbf"  # UTF-8 may begin with it
_OURS = frozenset(key.name for key in fields(Query))  # keys of a JSON line
OF_LOG = ("class", "index")  # what a line of a log was of (logs/written.py); nobody is sent it
_LOOKED_AT = 50  # lines that are looked at to tell a log from a list of queries
# What a line of a log begins with: a time, in brackets or after who asked.
_STAMP = re.compile(
    rb"(?:/\* |(?:\S+ ){1,5}(?=\[\d))?[\[(]?(?:"
    rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d+ \d\d:\d\d"
    rb"|[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d"
    rb"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
    rb"|\d{1,2}/[A-Z][a-z]{2}/\d{4}[: ]\d\d:\d\d"
    rb"|\d{6} +\d{1,2}:\d\d:\d\d)"
)
# What a line of a table ends with: a column of counts or times.
_COUNTED = re.compile(rb'[,;\t]"?\d+(\.\d+)?"?\s*$')


@dataclass(frozen=True, slots=True)
class Operated:
    """Lines with operators (operators.py), which were taken as plain words: how many, of how many,
    and the first of them as ``file:line: text``.
    """

    lines: int
    of: int
    first: str


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is not a query. ``line`` counts from 1."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        """``file:line: reason``."""
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass(frozen=True)
class Template:
    """What a plain line does not say: how its words are matched, and everything else (``rest``)."""

    mode: Mode = Mode.ALL
    distance: int = 1
    search_fields: tuple[str, ...] = ()
    rest: Query = field(default_factory=Query)

    def match(self, words: tuple[str, ...], mode: Mode | None = None) -> Terms:
        """These terms, matched as the set says or by ``mode``."""
        return Terms(mode or self.mode, words, self.search_fields, self.distance)

    def query(self, words: tuple[str, ...], mode: Mode | None = None) -> Query:
        """``match`` with the rest of the template."""
        return Query(self.match(words, mode), *self._others)

    @cached_property
    def _others(self) -> tuple[Any, ...]:  # once, since replace() takes its time for each line
        return tuple(getattr(self.rest, key.name) for key in fields(Query) if key.name != "match")


@dataclass(frozen=True, eq=False)
class QuerySet:
    """Distinct queries and the log.

    ``log``: uint32, index into ``queries`` of each logged query in order; every query is in it,
    and first appearances are in order. ``times_s``: float64, when each was asked, if the log
    says, seconds from any origin. ``bad``: the first few lines that are no query, of
    ``bad_count`` in all. ``operated``: lines with operators, if there are any. ``classes``: the
    class of each distinct query, "" where it has none; empty where none has. The same query in two
    classes is two queries.
    """

    name: str
    queries: tuple[Query, ...]
    log: NDArray[np.uint32]
    times_s: NDArray[np.float64] | None = None
    bad: tuple[BadLine, ...] = ()
    bad_count: int = 0
    operated: Operated | None = None
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.log) == 0 or not self.queries:
            raise QueryError(f"the query set {self.name} has no queries")
        if self.classes and len(self.classes) != len(self.queries):
            raise QueryError(f"the query set {self.name} has not one class for each query")
        _, first = np.unique(self.log, return_index=True)
        if len(first) != len(self.queries) or not bool(np.all(np.diff(first) > 0)):
            raise QueryError(f"the log of {self.name} does not name its queries in order")
        if self.times_s is not None and len(self.times_s) != len(self.log):
            raise QueryError(f"the log of {self.name} has not one time for each query")

    @property
    def distinct(self) -> int:
        """How many different queries."""
        return len(self.queries)

    @property
    def logged(self) -> int:
        """How many queries the log has, repetitions counted."""
        return len(self.log)

    @cached_property
    def mean_terms(self) -> float:
        """Mean number of terms of a logged query (one that is asked twice counts twice)."""
        counts = np.array([len(declared_terms(q.match)) for q in self.queries], np.float64)
        return float(counts[self.log].mean())

    @cached_property
    def digest(self) -> str:
        """SHA-256, hex, of the queries' JSON forms, the log and its times."""
        sha = hashlib.sha256(b"searchbench queries 1\n")
        for query in self.queries:
            sha.update(orjson.dumps(to_json(query), option=orjson.OPT_APPEND_NEWLINE))
        sha.update(self.log.astype("<u4").tobytes())
        if self.times_s is not None:
            sha.update(self.times_s.astype("<f8").tobytes())
        if self.classes:
            sha.update(b"classes\n" + orjson.dumps(self.classes))
        return sha.hexdigest()


@dataclass
class Gathering(Generic[T]):
    """Distinct queries or requests and the log of their use, one logged at a time."""

    file: str = ""  # that is being read
    what: str = "queries"
    index: dict[T, int] = field(default_factory=dict)
    log: array[int] = field(default_factory=lambda: array("I"))
    times: array[float] = field(default_factory=lambda: array("d"))
    bad: list[BadLine] = field(default_factory=list)
    bad_count: int = 0
    operated: int = 0
    first_operated: str = ""

    def add(self, one: T, time_s: float | None = None) -> int:
        """One that was logged; its index."""
        return self.again(self.index.setdefault(one, len(self.index)), time_s)

    def again(self, number: int, time_s: float | None = None) -> int:
        """One that is known already, by its index."""
        self.log.append(number)
        if time_s is not None:
            self.times.append(time_s)
        return number

    def leave_out(self, line: int, reason: str) -> None:
        """A line that is none; ``line`` counts from 1."""
        self.bad_count += 1
        if len(self.bad) < SHOWN:
            self.bad.append(BadLine(self.file, line, reason))

    def heed(self, line: int, text: str, mode: Mode) -> None:
        """Count a line whose operators are taken as words, and keep the first."""
        if has_operators(text, mode):
            if not self.operated:
                self.first_operated = f"{self.file}:{line}: {text.strip()[:_EXAMPLE]}"
            self.operated += 1

    def logged(self, name: str) -> tuple[NDArray[np.uint32], NDArray[np.float64] | None]:
        """The log and its times; QueryError where only some have a time."""
        if self.times and len(self.times) != len(self.log):
            raise QueryError(
                f"{name}: {len(self.log) - len(self.times)} of {len(self.log)} {self.what} have no "
                "time `t`; give all of them one, or none"
            )
        times = np.array(self.times, np.float64) if self.times else None
        return np.array(self.log, np.uint32), times


def from_files(
    files: Iterable[Path],
    template: Template,
    *,
    name: str = "",
    form: Form | None = None,
    bad_lines: Literal["skip", "refuse"] = "skip",
    lines: int | None = None,
    text_key: str | None = None,
    class_key: str = "class",
    of_files: Sequence[str] = (),
) -> QuerySet:
    """A set from files, one query a line, read one after another as one log.

    ``form`` None goes by the name (.jsonl, .ndjson; .gz and .zst are unpacked), and where that
    says nothing by the content: Sphinx's plain query log (sphinx_log.py) is known, other logs are
    refused. A plain line is analysed; one without any term is bad. A JSON line is the payload of
    FORMATS.md, or ``{"text": .., "match": mode}``; keys it lacks are the template's; ``t`` is when
    it was asked, in seconds. ``text_key``: of somebody else's JSON lines, the key of the words; of
    such lines only that, the class and ``t`` are read. ``class_key``: the key of a JSON line that
    holds its class. ``of_files``: the class of each file, for lines without one. ``lines`` stops
    after so many lines. QueryError where a file cannot be read, where nothing is left, or at any
    bad line if ``bad_lines`` is "refuse".
    """
    found = Gathering[tuple[Query, str]]()
    files = list(files)
    left = repeat(None) if lines is None else repeat(None, lines)  # over all files
    for path, of_file in zip(files, of_files or [""] * len(files), strict=True):
        found.file = path.name
        kind = form or form_of(path)
        raws = (raw for raw, _ in zip(_lines(path), left, strict=False))
        if kind == "sphinx":
            logged, left_out = sphinx_log.read(raws)
            for one in logged:
                found.add((template.query(one.words, one.mode), of_file), one.time_s)
            for number, reason in left_out:
                found.leave_out(number, reason)
            continue
        if text_key is not None and kind != "jsonl":
            raise QueryError(
                f"{path} has no JSON lines, and `text_key` names a key of those; leave it out, or "
                'say `format = "jsonl"`'
            )
        structured = partial(_structured, text_key=text_key, class_key=class_key)
        meant = structured if kind == "jsonl" else _plain
        for number, raw in enumerate(raws, 1):
            try:
                query, at, text, own_class = meant(raw, template)
            except QueryError as reason:
                found.leave_out(number, str(reason))
            else:
                found.add((query, own_class or of_file), at)
                if text and isinstance(query.match, Terms):
                    found.heed(number, text, query.match.mode)
    if found.bad_count and bad_lines == "refuse":
        shown = "; ".join(str(b) for b in found.bad[:5])
        raise QueryError(
            f"{found.bad_count} lines are not queries: {shown}; correct them, or set "
            '`bad_lines = "skip"`'
        )
    name = name or "+".join(path.name for path in files)
    if not found.log:
        seen = f"; the first: {found.bad[0]}" if found.bad else ""
        raise QueryError(f"{name} has no usable query ({found.bad_count} bad lines{seen})")
    operated = Operated(found.operated, len(found.log), found.first_operated)
    classes = tuple(own_class for _, own_class in found.index)
    return QuerySet(
        name, tuple(query for query, _ in found.index), *found.logged(name), tuple(found.bad),
        found.bad_count, operated if found.operated else None, classes if any(classes) else (),
    )  # fmt: skip


def form_of(path: Path) -> Form:
    """The form of a query file by its name and content; QueryError where it is another log."""
    if inner_suffix(path) in (".jsonl", ".ndjson"):
        return "jsonl"
    first = [line for line in islice(_lines(path), _LOOKED_AT) if line.strip()]
    if first and all(map(_is_object, first)):
        return "jsonl"
    if first and sphinx_log.is_one(first):
        return "sphinx"
    if stamped := _most(first, _STAMP.match):
        raise QueryError(
            f"{path} is a log, not a list of queries: its lines begin with a time ({stamped!r}), "
            "which would be searched for. Take the queries out of it, one a line or as JSON lines "
            "with `text` and `t`; or send its requests as they are (`searchbench load "
            '--requests`); or set `format = "lines"` if these are your queries'
        )
    if counted := _most(first, _COUNTED.search):
        raise QueryError(
            f"{path} is a table, not a list of queries: its lines end in a number ({counted!r}), "
            "which would be searched for. Take the column of the queries out of it, each as often "
            'as it was asked; or set `format = "lines"` if these are your queries'
        )
    return "lines"


def check_readable(path: Path) -> None:
    """QueryError where the file cannot be opened, or its first line not be read."""
    next(_lines(path), None)


def _most(lines: list[bytes], found: Callable[[bytes], object]) -> str:
    """The beginning of the first line in which it is found; empty where most have it not."""
    own = [line for line in lines if found(line)]
    if len(lines) < 2 or len(own) <= len(lines) / 2:
        return ""
    return own[0].decode(errors="replace").rstrip("\r\n")[:60]


def _plain(raw: bytes, template: Template) -> tuple[Query, None, str, str]:
    """The query of a plain line, and its text; QueryError with the reason if it is bad."""
    try:
        text = raw.decode()
        words = terms(text)
    except UnicodeDecodeError:
        raise QueryError("not UTF-8; convert it with iconv -f ENCODING -t UTF-8") from None
    if not words:
        raise QueryError("no letter or digit, so no term")
    return template.query(words), None, text, ""


def _is_object(raw: bytes) -> bool:
    try:
        return isinstance(orjson.loads(raw.removeprefix(_MARK)), dict)
    except orjson.JSONDecodeError:
        return False


def _structured(
    raw: bytes, template: Template, text_key: str | None = None, class_key: str = "class"
) -> tuple[Query, float | None, str, str]:
    """The query of a JSON line, its time, its text and its class ("": none).

    QueryError with the reason if it is bad.
    """
    try:
        line = orjson.loads(raw.removeprefix(_MARK))
    except orjson.JSONDecodeError as error:
        raise QueryError(f"not JSON: {error}") from None
    if not isinstance(line, dict):
        raise QueryError("not a JSON object")
    at = line.pop("t", None)
    if at is not None and (isinstance(at, bool) or not isinstance(at, int | float)):
        raise QueryError(f"`t` must be a number of seconds, not {at!r}")
    own_class = line.pop(class_key, None)
    if own_class is not None and (reason := no_class(own_class)):
        raise QueryError(f"`{class_key}` {reason}, not {show(own_class)}")
    if text_key is None:
        for key in OF_LOG:
            line.pop(key, None)
    if text_key is None and not line.keys() & {"text", "match"}:
        _insist_on_words(line)
    elif text_key is not None:
        if text_key not in line:
            raise QueryError(f"no key `{text_key}`, which `text_key` names; {_keys(line)}")
        line = {"text": line[text_key]}
    reader, text = Reader(), line.get("text")
    match = _text_match(line, template, reader) if "text" in line else None
    query = reader.query({**to_json(template.rest), **line})
    reader.finish()
    query = query if match is None else replace(query, match=match)
    return query, at, text if isinstance(text, str) else "", own_class or ""


def _insist_on_words(line: Mapping[str, object]) -> None:
    """QueryError where a line has words, by all appearances, and not by a key of ours."""
    texts = [k for k, value in line.items() if k not in _OURS and isinstance(value, str)]
    if texts:
        raise QueryError(
            f"the words are expected as `text`, and {_keys(line)}; name the key that has them, "
            "as in "
            f'`text_key = "{texts[0]}"` in [queries]'
        )


def _keys(line: Mapping[str, object]) -> str:
    return "the line has " + (", ".join(f"`{key}`" for key in line) or "no key")


def _text_match(line: dict[str, Any], template: Template, reader: Reader) -> Match | None:
    """The match of the ``text`` form; takes ``text`` and ``match`` out of the line."""
    text, mode = line.pop("text"), line.pop("match", None)
    if not isinstance(text, str):
        reader.reasons.append(f"the words must be a string, not {show(text)}")
        return None
    words = terms(text)
    if not words:
        reader.reasons.append("the words have no letter or digit, so no term")
        return None
    return template.match(words, None if mode is None else reader.mode(mode))


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file; QueryError where it cannot be read."""
    try:
        yield from lines_of(path)
    except OSError as error:
        reason = error.strerror or str(error)
        hint = near_file(path) if isinstance(error, FileNotFoundError) else ""
        raise QueryError(
            f"the query file {path} cannot be read: {reason}; {hint or 'name one that can'}"
        ) from error
