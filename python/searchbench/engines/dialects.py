"""What an operation sends, as the bytes of a wire, and its answers as rows.

A dialect knows how values are written, how statements are prepared and executed, and how rows are
read. Of SQL there is one for each wire; of HTTP, for each engine that says how it is asked
(``native``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from searchbench.engines import mysql_form, mysql_prepared, postgres_extended, postgres_form
from searchbench.engines.engine import Engine, Request, Wire
from searchbench.engines.mysql_prepared import Take
from searchbench.engines.native import Native
from searchbench.engines.packed import Packed
from searchbench.errors import Unsupported
from searchbench.workload.operations.model import Sent

MOST_PREPARED = 1000
FEW = 1000
"""So many exchanges of one operation are kept one by one, and more in one piece."""
DRIVERS = {
    "mysql": "one by one: libmysqlclient, PyMySQL, mysql2 (Node), go-sql-driver, Connector/J; "
    "pipelined: MariaDB Connector/J (batches), mariadb (Node) with pipelining",
    "postgres": "one by one: psycopg2, lib/pq, pgx without a batch; pipelined: libpq and psycopg 3 "
    "in pipeline mode, pgjdbc (executeBatch), tokio-postgres, asyncpg (executemany), pgx batches",
}
"""Which drivers send prepared statements how."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """``marker``: the n-th value of a prepared statement. ``rows``: of each result of a reply,
    which comes in pieces, once its rows were handed over, what was refused; given for each whether
    its statement was prepared.
    Where ``native`` is given, that reads rows, and nothing is prepared.
    """

    literal: Callable[[object], str]
    marker: Callable[[int], str]
    text: Callable[[str], bytes]
    prepare: Callable[[int, str], bytes]
    execute: Callable[[int, Sequence[object]], bytes]
    end: bytes
    rows: Callable[[Iterable[bytes], Sequence[int], Take], Iterator[str | None]]
    native: Native | None = None


def _number_or(quoted: Callable[[str], str]) -> Callable[[object], str]:
    def literal(value: object) -> str:
        if type(value) is int:
            return str(value)
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return str(int(value))
        if isinstance(value, float) and math.isfinite(value):
            return repr(value)
        return quoted(str(value))

    return literal


DIALECTS: dict[Wire, Dialect] = {
    "mysql": Dialect(
        literal=_number_or(mysql_form.quoted),
        marker=lambda _: "?",
        text=mysql_form.query,
        prepare=lambda _, sql: mysql_prepared.prepare(sql),
        execute=mysql_prepared.execute,
        end=b"",
        rows=mysql_prepared.rows_of,
    ),
    "postgres": Dialect(
        literal=_number_or(postgres_form.literal),
        marker=lambda number: f"${number}",
        text=lambda sql: postgres_form.query(sql),
        prepare=lambda number, sql: postgres_extended.prepare(f"s{number}", sql),
        execute=lambda number, values: postgres_extended.execute(f"s{number}", values),
        end=postgres_extended.SYNC,
        rows=lambda pieces, _, take: postgres_extended.rows_of(pieces, take),
    ),
}


def dialect_of(wire: Wire | None) -> Dialect:
    """The dialect of SQL on a wire; Unsupported where it has none."""
    found = DIALECTS.get(wire) if wire is not None else None
    if found is None:
        raise Unsupported(
            f"operations are statements of SQL, and {wire} has none: use a system that speaks "
            "MySQL's or PostgreSQL's protocol"
        )
    return found


def dialect_for(engine: Engine, wire: Wire | None, language: str) -> Dialect:
    """How an engine is asked in a language; Unsupported where it is not."""
    if language == "sql":
        return dialect_of(wire)
    if language == "query":  # the engine itself makes bytes of it, and hits of its replies
        return Dialect(literal=_of_json, marker=_never, text=_never, prepare=_never, execute=_never,
                       end=b"", rows=_never)  # fmt: skip
    native = engine.native
    if native is None or language not in native.languages:
        raise Unsupported(f"{engine.can.title} cannot be asked in {language}")
    return Dialect(
        literal=_of_bql if language == "bql" else _of_json,
        marker=_never,
        text=partial(native.request, language),
        prepare=_never,
        execute=_never,
        end=b"",
        rows=_never,
        native=native,
    )


def languages_of(engine: Engine, wire: Wire | None) -> tuple[str, ...]:
    """The languages of methods that an engine can be asked by; none where there are none yet."""
    if wire in DIALECTS:
        return ("sql",)
    return () if engine.native is None else engine.native.languages


def _of_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _of_bql(value: object) -> str:
    if isinstance(value, int | float):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def _never(*_: object) -> Any:
    raise AssertionError("only statements of SQL are prepared")


@dataclass(slots=True)
class Encoder:
    """Makes requests of what is sent. ``numbers``: of each text that has to be prepared its number,
    from 1, the same on every connection.
    """

    dialect: Dialect
    numbers: dict[str, int] = field(default_factory=dict)

    def request(self, sent: Iterable[Sent]) -> Request:
        """One operation: an exchange for each statement, or for several that are sent at once."""
        before, timed, after = Packed(), Packed(), Packed()
        of = {"before": before, "timed": timed, "after": after}
        group: list[bytes] = []
        last: Sent | None = None
        for each in sent:
            if last is not None and (
                each.line != last.line or len(group) >= max(1, last.pipelined)
            ):
                of[last.when].append(self._ended(group, last))
                group = []
            group.append(self._bytes(each))
            last = each
        if last is not None:
            of[last.when].append(self._ended(group, last))
        counts = len(before), len(after)
        whole = before if before else timed
        if before:
            whole.extend(timed)
        whole.extend(after)
        return Request(tuple(whole) if len(whole) <= FEW else whole, *counts, operation=True)

    def prelude(self, connection: Iterable[Sent]) -> tuple[bytes, ...]:
        """What each connection is sent first: its statements, then those that are prepared."""
        d = self.dialect
        prepared = (d.prepare(number, sql) for sql, number in self.numbers.items())
        return (*(d.text(each.text) for each in connection), *prepared)

    def _ended(self, group: list[bytes], last: Sent) -> bytes:
        return b"".join((*group, self.dialect.end)) if last.prepared else b"".join(group)

    def _bytes(self, sent: Sent) -> bytes:
        if not sent.prepared:
            return self.dialect.text(sent.text)
        number = self.numbers.setdefault(sent.text, len(self.numbers) + 1)
        if number > MOST_PREPARED:
            raise Unsupported(
                f"line {sent.line}: more than {MOST_PREPARED} different statements would be "
                "prepared; give the values as placeholders, such as {id}, not in the text"
            )
        return self.dialect.execute(number, sent.values)
