"""Operations made ready for one system: the bytes of a method, and its answers read as rows.

Rows come out as lines of text, the same whatever the method, the protocol and the server are. An
answer is known by the digest of all its rows; the first of them are kept, so that it can be said
which differ.
"""

from __future__ import annotations

import hashlib
import itertools
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from searchbench.corpora.corpus import Corpus, FieldType
from searchbench.corpora.placed import Counted
from searchbench.corpora.table import GeneratedTable
from searchbench.engines.answer import Hit, Hits
from searchbench.engines.dialects import Dialect, Encoder, dialect_for
from searchbench.engines.engine import Engine, Parameters, Request
from searchbench.engines.mysql_prepared import Take
from searchbench.engines.native import rows_lie_at
from searchbench.errors import CorpusError, LabError, QueryError, Unsupported
from searchbench.lab.drive.portable import QueryReader, request_of
from searchbench.lab.drive.workload import Compiled, in_order
from searchbench.lab.wire.exchange import Endpoint
from searchbench.lab.wire.order import Order
from searchbench.record.queries import Queries
from searchbench.record.trial import OperationAbout, OperationPart
from searchbench.workload.loads import Load
from searchbench.workload.operations.draw import Columns, rows_of, values_at
from searchbench.workload.operations.model import Answer, Operation, Sent, fixed, sent_for
from searchbench.workload.operations.paths import NoRows, RowsAt
from searchbench.workload.operations.portable import query_of
from searchbench.workload.operations.portable import rows_lie_at as rows_of_query
from searchbench.workload.operations.text import Statement, read_method

ROWS_KEPT = 10_000
ROWS = "rows"
"""The facet that an answer's digest stands under."""


@dataclass(frozen=True)
class Operations:
    """One method of an operation. ``asked``: what it asks; ``once``: what is sent once, by language
    and text. ``rows_at``: where its rows lie in replies of JSON that say nothing of it themselves.

    ``where``: the file of its text and the line before its first, for complaints.
    """

    asked: Operation
    method: str
    statements: tuple[Statement, ...]
    corpus: Corpus
    once: tuple[tuple[str, str], ...] = ()
    where: tuple[str, int] = ("", 0)
    language: str = "sql"
    rows_at: tuple[str, ...] = ()
    statement_times: bool = False

    @property
    def digest(self) -> str:
        """The same for all methods: names the file of the draws on record."""
        return self.asked.digest

    def lines(self) -> Iterator[dict[str, Any]]:
        """The draws as the record keeps them."""
        return self.asked.lines()

    def about(self) -> Queries:
        """What trial.json keeps of them."""
        draws = len(self.asked.draws)
        return Queries(name=self.asked.name, digest=self.digest, distinct=draws, logged=draws)

    def from_line(self, load: Load, seed: int) -> None:
        """Draws have no lines."""

    def compiled(self, engine: Engine, params: Parameters, endpoints: int = 1) -> Compiled:
        """Its bytes for an engine. LabError where they cannot be made."""
        if endpoints > 1:
            raise LabError(
                "operations can be sent to only one endpoint; give the system one address",
                "compile",
            )
        tally, requests = _Tally(), []
        try:
            encoder = Encoder(self.dialect(engine, params))
            if encoder.dialect.native is not None or self.language == "query":
                self.reader(engine, params)  # says what it cannot read
            for number in range(len(self.asked.draws)):
                sent = self.sent(encoder.dialect, params, number)
                sent = tally.of(sent) if number == 0 else sent
                if self.language == "query":
                    (one,) = sent
                    schema = self.corpus.schema
                    requests.append(request_of(one.text, engine, schema, params))
                else:
                    requests.append(encoder.request(sent))
        except (Unsupported, QueryError) as reason:
            raise LabError(f"{self.method}: {reason}", "compile") from None
        prelude = encoder.prelude(fixed(self.statements, "connection", params))
        return Compiled(
            tuple(requests),
            np.arange(len(requests), dtype=np.uint32),
            prelude=prelude,
            operation=_about(self, tally, requests[0], prelude),
        )

    def reader(self, engine: Engine, params: Parameters) -> RowReader | QueryReader:
        """What reads its answers. Unsupported where nothing says where their rows lie; QueryError
        where a query does not return them.
        """
        dialect = self.dialect(engine, params)
        if self.language == "query":
            (one,) = self.sent(dialect, params)
            query = query_of(one.text)
            compared = rows_of_query(query, self.rows_at)
            return QueryReader(engine, query, compared, partial(_answer_of, self.asked.answer))
        prepared, ignored, lines = bytearray(), bytearray(), array("L")
        by_line = {s.line: s for s in self.statements}
        places: list[tuple[RowsAt, ...] | None] = []
        for sent in self.sent(dialect, params):
            if sent.when == "timed":
                prepared.append(sent.prepared)
                ignored.append(sent.ignored)
                lines.append(sent.line)
                if dialect.native is not None:
                    own = by_line[sent.line].rows
                    given = (own,) if own else self.rows_at
                    here = dialect.native.asks_here(self.language, sent.text)
                    at = None if sent.ignored else rows_lie_at(dialect.native, given, here)
                    places.append(at)
        return RowReader(dialect, bytes(prepared), bytes(ignored), lines, self.asked.answer, places)

    def dialect(self, engine: Engine, params: Parameters) -> Dialect:
        """How its language is sent to an engine; Unsupported where it is not."""
        wire = engine.service(params, self.corpus.schema).wire
        return dialect_for(engine, wire, self.language)

    def endpoint(
        self, endpoint: Endpoint, compiled: Compiled, engine: Engine, params: Parameters
    ) -> Endpoint:
        """Where it is sent: connections begin with its prelude.

        What an engine calls a whole answer is so of answers to questions alone.
        """
        dialect = self.dialect(engine, params)
        native, whole = dialect.native, endpoint.whole
        if native is not None and whole:
            texts = (sent.text for sent in self.sent(dialect, params))
            whole = whole if all(native.asks_here(self.language, t) for t in texts) else ()
        return replace(endpoint, prelude=compiled.prelude, whole=whole)

    def order(self, load: Load, compiled: Compiled, seed: int) -> Order:
        """The draws in turn, in the order of the load."""
        log = np.arange(len(compiled.requests), dtype=np.uint32)
        return in_order(load, log, load.due_ns(seed, None), seed)

    def sent_once(self, params: Parameters) -> list[Sent]:
        """What is sent when an index is made, each statement once."""
        return [sent for _, sent in self.once_in(params)]

    def once_in(self, params: Parameters) -> list[tuple[str, Sent]]:
        """The same, each with its language."""
        found = {
            sent.text: (language, sent)
            for language, text in self.once
            for sent in fixed(read_method(text, language), "once", params)
        }
        return list(found.values())

    def tried(self, rows: int) -> Operations:
        """The same with one draw of a few rows, to see whether its statements are understood."""
        columns = self.asked.draws[0]
        few = tuple(list(values[:rows]) for values in columns)
        asked = Operation(self.asked.name, self.asked.columns, (few,), self.asked.answer)
        return replace(self, asked=asked)

    def sent(self, dialect: Dialect, params: Parameters, draw: int = 0) -> Iterator[Sent]:
        """What a draw sends."""
        return sent_for(self.statements, self.asked, draw, params, dialect.literal, dialect.marker)


def open_operation(
    table: Mapping[str, Any], corpus: Corpus, seed: int, asked: Operation | None = None
) -> Operations:
    """The method that a plan's table has. ``asked``: its draws, where they are known already.

    QueryError where the corpus has not enough rows.
    """
    asked = asked or _drawn(table, corpus, seed)
    where = (table["file"], 0 if table["file"] else int(table["line"]))
    language = table["language"]
    return Operations(
        asked=asked,
        method=table["method"],
        statements=read_method(table["text"], language),
        corpus=corpus,
        once=tuple((each[0], each[1]) for each in table["once"]),
        where=where,
        language=language,
        rows_at=tuple(table["rows_at"]),
        statement_times=bool(table.get("statement_times")),
    )


def _drawn(table: Mapping[str, Any], corpus: Corpus, seed: int) -> Operation:
    names = list(table["key"])
    draws: tuple[tuple[Sequence[Any], ...], ...] = ((),)
    if names:
        columns = columns_of(corpus, names)
        held, rows = len(columns[names[0]]), int(table["rows"])
        numbers = rows_of(held, rows, int(table["draws"]), table["order"], seed)
        draws = tuple(tuple(values_at(columns, names, at)) for at in numbers)
    answer: Answer = table["answer"]
    return Operation(table["name"], tuple(names), draws, answer)


def columns_of(corpus: Corpus, names: Sequence[str]) -> Columns:
    """The values of these columns, in the order of the documents.

    Ids that are all whole numbers are numbers. CorpusError where a document has none.
    """
    if isinstance(corpus, GeneratedTable):
        counted = {c.field.name: c for c in corpus.columns if isinstance(c, Counted)}
        if set(names) <= set(counted):
            places = np.arange(corpus.count, dtype=np.int64)
            return {name: counted[name].at(corpus.seed, places) for name in names}
    typed = {f.name: f.type for f in corpus.schema.fields}
    lists: list[list[Any]] = [[] for _ in names]
    for document in corpus.documents():
        for name, values in zip(names, lists, strict=True):
            value = document.values.get(name) if name in typed else document.id
            if value is None:
                raise CorpusError(f"{corpus.name}: the document {document.id} has no {name}, "
                                  "by which the operation asks for rows")  # fmt: skip
            values.append(value)
    columns = {}
    for name, values in zip(names, lists, strict=True):
        whole = name not in typed and all(v.isascii() and v.isdigit() for v in values)
        if whole or typed.get(name) is FieldType.INTEGER:
            columns[name] = np.array([int(v) for v in values], np.int64)
        else:
            columns[name] = np.array(values, dtype=object)
    return columns


@dataclass(frozen=True)
class RowReader:
    """Reads the answer of an operation.

    ``prepared``, ``ignored``, ``lines``: of each statement that is timed, in order, whether it is,
    and where it begins in its text; ``places``: over HTTP, where its rows lie.
    """

    dialect: Dialect
    prepared: bytes
    ignored: bytes
    lines: Sequence[int]
    answer: Answer
    places: Sequence[tuple[RowsAt, ...] | None] = ()

    def decode(self, reply: bytes) -> Hits:
        """As ``read``."""
        return self.read((reply,))

    def read(self, pieces: Iterable[bytes]) -> Hits:
        """The rows as hits, in order or sorted, the first of them; their digest as a facet.

        ``pieces``: the reply, cut anywhere; of a reply in SQL no more than one is held. The
        server's words where a statement failed. ValueError where it is no reply.
        """
        results, rows = 0, Digest(self.answer)

        def take(row: bytes) -> None:
            if not self.ignored[results]:
                rows.take(row)

        try:
            for error in self.results(pieces, take):
                if error is not None:
                    return Hits(total=None, error=error)
                results += 1
        except NoRows as missing:
            return Hits(total=None, error=str(missing))
        if results != len(self.lines):
            raise ValueError(f"{len(self.lines)} statements were sent, and {results} results came")
        return rows.answer_with_rows()

    def results(self, pieces: Iterable[bytes], take: Take) -> Iterator[str | None]:
        """Of each result, once its rows were handed over, what was refused."""
        if self.dialect.native is not None:
            return self.dialect.native.rows_of(b"".join(pieces), self.places, take)
        return self.dialect.rows(pieces, self.prepared, take)

    def failed_at(self, reply: bytes) -> int | None:
        """The line of the statement that was refused; None where none was."""
        errors = self.results((reply,), lambda _: None)
        return next((at for at, e in zip(self.lines, errors, strict=False) if e is not None), None)


class Digest:
    """All rows of an answer as a digest, and the first of them: of a set the smallest, and none
    where they are only counted.

    The digest of a set is the sum of its rows' digests, so that no order and no memory is needed.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.count = 0
        self._first: list[bytes] = []
        self._sum = 0
        self._seen = hashlib.blake2b(digest_size=16)

    def take(self, row: bytes) -> None:
        """The next row."""
        self.count += 1
        if self.answer == "count":
            return
        if self.answer == "order":
            self._seen.update(row + b"\n")
            if self.count <= ROWS_KEPT:
                self._first.append(row)
            return
        self._sum += int.from_bytes(hashlib.blake2b(row, digest_size=16).digest(), "little")
        self._first.append(row)
        if len(self._first) >= 4 * ROWS_KEPT:
            self._first = sorted(self._first)[:ROWS_KEPT]

    def first(self) -> list[bytes]:
        """The first rows."""
        return self._first if self.answer == "order" else sorted(self._first)[:ROWS_KEPT]

    def digest(self) -> str:
        """The same for the same rows."""
        seen = self._seen.copy()
        if self.answer != "order":
            seen.update(b"%d %d" % (self.count, self._sum))
        return seen.hexdigest()

    def answer_with_rows(self) -> Hits:
        """As an answer that is kept: the first rows as hits, the digest as a facet."""
        first = tuple(Hit(row.decode(errors="replace"), None) for row in self.first())
        return Hits(self.count, first, facets={ROWS: [(self.digest(), self.count)]})


def _answer_of(answer: Answer, lines: Iterable[bytes]) -> Hits:
    """The answer whose rows these are."""
    rows = Digest(answer)
    for line in lines:
        rows.take(line)
    return rows.answer_with_rows()


@dataclass
class _Tally:
    """What the statements of one operation come to; there may be a million."""

    timed: int = 0
    untimed: int = 0
    prepared: int = 0
    by_line: dict[int, int] = field(default_factory=dict)

    def of(self, sent: Iterable[Sent]) -> Iterator[Sent]:
        """The same statements, counted as they pass."""
        for each in sent:
            if each.when == "timed":
                self.timed += 1
                self.prepared += each.prepared
                self.by_line[each.line] = self.by_line.get(each.line, 0) + 1
            else:
                self.untimed += 1
            yield each


def _about(
    of: Operations, tally: _Tally, first: Request, prelude: Sequence[bytes]
) -> OperationAbout:
    """What a method sends for its first draw, for the record."""
    end = len(first.exchanges) - first.after
    return OperationAbout(
        name=of.asked.name,
        method=of.method,
        rows=of.asked.rows,
        draws=len(of.asked.draws),
        answer=of.asked.answer,
        statements=tally.timed,
        untimed=tally.untimed,
        exchanges=end - first.before,
        sent_bytes=sum(map(len, itertools.islice(first.exchanges, first.before, end))),
        prepared=tally.prepared,
        prelude=len(prelude),
        parts=[_part(of.statements, line, count) for line, count in tally.by_line.items()],
    )


def _part(statements: Sequence[Statement], line: int, count: int) -> OperationPart:
    own = [each for each in statements if each.line == line]
    text = "; ".join(" ".join(each.written.split()) for each in own)
    return OperationPart(line, text, count, max(1, own[0].pipelined))
