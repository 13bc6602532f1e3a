"""Sphinx over its native protocol: commands built ahead of time, replies taken apart afterwards.

The greeting and the command that keeps a connection are the measuring core's. All numbers are
big-endian; a text is its length and its bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from searchbench.corpora.corpus import Schema
from searchbench.engines.answer import Facts, Hits
from searchbench.engines.engine import Parameters, Request, Wire
from searchbench.engines.features import refuse
from searchbench.engines.sphinx import conf, values
from searchbench.engines.sphinx.engine import Sphinx
from searchbench.engines.sphinx.query import (
    RANKERS,
    Ask,
    Condition,
    Listing,
    OneOf,
    answer,
    plan,
    selected,
)
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Query

_UNDESCRIBED = "upstream must: the native protocol has no command that describes an index"
_SEARCH, _SEARCH_VERSION = 0, 0x11D
_KEYWORDS, _KEYWORDS_VERSION = 3, 0x100
_OK, _ERROR, _RETRY, _WARNING = range(4)
_MODES = {"all": 0, "any": 1, "phrase": 2, "boolean": 3, None: 6}
_BY_RELEVANCE, _BY_CLAUSE = 0, 4
_VALUES, _RANGE = 0, 1
_BY_ATTRIBUTE = 4
_NORMALIZED_IDF, _LOCAL_DF = 1 << 6, 1 << 7
_FLOAT, _BIGINT, _STRING = 5, 6, 7
_MULTI, _MULTI_64 = 0x40000001, 0x40000002
_EMPTY = bytes(4)


@dataclass(slots=True)
class _Found:
    """The answer to one search: rows by column, and what the server says of it.

    ``label``: the first of the columns, which says what is counted.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    label: str = ""
    total: int = 0
    warning: str = ""
    error: str = ""


class SphinxApi(Sphinx):
    """The same server over its native protocol, where the match modes of old live."""

    name = "sphinx-api"
    wire: Wire = "sphinx"
    listen = ""
    can = replace(
        Sphinx.can,
        title="Sphinx (API)",
        unread={**Sphinx.can.unread, **dict.fromkeys(("parts", "levels", "index"), _UNDESCRIBED)},
    )

    def _sensible(self, params: Parameters) -> None:
        if params["index"] == "realtime":
            raise Unsupported(
                f"{self.can.title} cannot ingest in real time: upstream must: the native protocol "
                "cannot put documents in; use the engine `sphinx` (SphinxQL)"
            )
        if params["index"] == conf.MAIN_DELTA:
            raise Unsupported(
                f"{self.can.title} cannot have main and delta: we could: the source of the delta "
                "is told what changed over SphinxQL; use the engine `sphinx`"
            )
        super()._sensible(params)

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """One command, with a search for each count and one for the hits."""
        refuse(self.can, query)
        ask = plan(query, schema, params, self.can.title)
        return Request((_searches(ask, conf.ASKED, params["statistics"] == "global"),))

    def decode(self, reply: bytes) -> Hits:
        """Hits, counts, warnings; a warning means that a part did not answer."""
        (answers,) = _results(reply)
        if (error := next((a.error for a in answers if a.error), None)) is not None:
            return Hits(total=None, error=error)
        if not answers:
            raise ValueError("a reply to a search holds no answer")
        *counts, page = answers
        return answer(
            total=page.total,
            page=page.rows,
            counts=[(f.label, [(row[f.label], row["@count"]) for row in f.rows]) for f in counts],
            warnings=tuple(dict.fromkeys(a.warning for a in answers if a.warning)),
        )

    def facts_request(self) -> Request:
        """Version and documents."""
        return Request((_search(conf.ABOUT, "version"), _search(conf.ASKED, values.KEY)))

    def facts(self, reply: bytes) -> Facts:
        """What searchd tells, and the row that its own program wrote."""
        (about,), (asked,) = _results(reply)
        if trouble := about.error or asked.error or asked.warning:
            raise ValueError(trouble)
        build = str(about.rows[0]["version"])
        return Facts(version=build.split("-", 1)[0], documents=asked.total, extra={"build": build})

    def analyse(self, text: str) -> Request | None:
        """The command for keywords; in a text an asterisk is no wildcard."""
        body = (_text(values.searchable(text).replace("*", " ")), _text(conf.ANALYSIS), _EMPTY)
        return Request((_command(_KEYWORDS, _KEYWORDS_VERSION, *body),))

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """The terms in order."""
        ((status, reader),) = _replies(reply)
        if status not in (_OK, _WARNING):
            raise ValueError(reader.text())
        found = [(reader.text(), reader.text()) for _ in range(reader.number())]
        return tuple(term for _as_written, term in found)

    def check(self, reply: bytes) -> str | None:
        """Nothing is created or put in over this protocol."""
        return None


def _searches(ask: Ask, index: str, all_parts: bool) -> bytes:
    """One command with the counts first and the hits last; ``all_parts``: their statistics."""
    queries = [_query(ask, each, index, all_parts) for each in ask.listings]
    return _command(_SEARCH, _SEARCH_VERSION, struct.pack(">II", 0, len(queries)), *queries)


def _search(index: str, select: str) -> bytes:
    """One command with one search: everything in an index."""
    one = Listing(((select, select),), (), (), offset=0, limit=1, matches=1000)
    return _searches(Ask(None, None, "", RANKERS[0], (one,)), index, all_parts=False)


def _replies(data: bytes) -> list[tuple[int, _Reader]]:
    """Status and body of each reply in ``data``; ValueError where one is not whole."""
    found: list[tuple[int, _Reader]] = []
    at = 0
    while at < len(data) or not found:
        if len(data) - at < 8:
            raise ValueError(f"a reply has at least 8 bytes, {len(data) - at} are here")
        status, _version, length = struct.unpack_from(">HHI", data, at)
        at += 8
        if len(data) - at < length:
            raise ValueError(f"the reply promises {length} bytes, {len(data) - at} are here")
        found.append((status, _Reader(data[at : at + length])))
        at += length
    return found


def _results(data: bytes) -> list[list[_Found]]:
    """The answers in each reply to a command of searches; ValueError where one is not whole."""
    return [list(_answers(*reply)) for reply in _replies(data)]


def _answers(status: int, reader: _Reader) -> Iterable[_Found]:
    if status in (_ERROR, _RETRY):
        yield _Found(error=reader.text())
        return
    warning = reader.text() if status == _WARNING else ""
    while not reader.ended:
        each = _answer(reader)
        each.warning = each.warning or warning
        yield each


def _answer(reader: _Reader) -> _Found:
    status = reader.number()
    found = _Found()
    if status == _WARNING:
        found.warning = reader.text()
    elif status != _OK:
        found.error = reader.text() or "no reason given"
        return found
    for _ in range(reader.number()):
        reader.text()  # full-text fields
    kinds = [(reader.text(), reader.number()) for _ in range(reader.number())]
    found.label = kinds[0][0] if kinds else ""
    count, wide = reader.number(), reader.number()
    for _ in range(count):
        reader.take(12 if wide else 8)  # its number and its weight
        found.rows.append({name: reader.value(kind) for name, kind in kinds})
    _kept, found.total, _ms, words = (reader.number() for _ in range(4))
    for _ in range(words):
        reader.text()
        reader.take(8)
    return found


class _Reader:
    """A reply's body, read from its beginning; ValueError where it ends too early."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def ended(self) -> bool:
        return self.at >= len(self.data)

    def take(self, count: int) -> bytes:
        part = self.data[self.at : self.at + count]
        if len(part) != count:
            raise ValueError(f"the answer ends at byte {len(self.data)}, within a value")
        self.at += count
        return part

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def bigint(self) -> int:
        return int.from_bytes(self.take(8), "big", signed=True)

    def text(self) -> str:
        return self.take(self.number()).decode(errors="replace")

    def value(self, kind: int) -> Any:
        if kind == _BIGINT:
            return self.bigint()
        if kind == _STRING:
            return self.text()
        if kind == _FLOAT:
            return struct.unpack(">f", self.take(4))[0]
        if kind == _MULTI:
            return [self.number() for _ in range(self.number())]
        if kind == _MULTI_64:
            return [self.bigint() for _ in range(self.number() // 2)]
        return self.number()


def _command(number: int, version: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">HHI", number, version, len(body)) + body


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">I", len(raw)) + raw


def _query(ask: Ask, each: Listing, index: str, all_parts: bool) -> bytes:
    flags = _NORMALIZED_IDF | (_LOCAL_DF if all_parts else 0)
    limits = (each.offset, each.limit)
    order = "" if each.by else _order(each.order, "weight()", "@weight")
    group_order = _order(each.order, "n", "@count") if each.by else "@weight desc"
    parts = [
        struct.pack(">IIIII", flags, *limits, _MODES[ask.mode], RANKERS.index(ask.ranker)),
        struct.pack(">I", _BY_CLAUSE if order else _BY_RELEVANCE) + _text(order),
        _text((ask.text or "") if ask.mode is None else ask.words),
        _EMPTY,  # weights of fields by their place
        _text(index),
        struct.pack(">IQQ", 1, 0, 0),  # ids are 64 bits wide, and all are wanted
        struct.pack(">I", len(each.conditions)),
        *map(_condition, each.conditions),
        struct.pack(">I", _BY_ATTRIBUTE) + _text(each.by),
        struct.pack(">I", each.matches) + _text(group_order),
        struct.pack(">III", 0, 0, 0),  # no cutoff, no retries
        _EMPTY * 4,  # nothing distinct, no place, no weights of indexes, no limit of time
        _EMPTY * 3,  # no weights of fields, no comment, no overrides
        _text(selected(each.columns)),
        _EMPTY * 4,  # no outer select
    ]
    return b"".join(parts)


def _order(keys: Iterable[tuple[str, bool]], column: str, own: str) -> str:
    """The keys as a clause, with this protocol's own name of one column."""
    named = ((own if name == column else name, down) for name, down in keys)
    return ", ".join(f"{name} {'desc' if down else 'asc'}" for name, down in named)


def _condition(part: Condition) -> bytes:
    if isinstance(part, OneOf):
        numbers = struct.pack(f">{len(part.numbers)}q", *part.numbers)
        how = struct.pack(">II", _VALUES, len(part.numbers)) + numbers
        return _text(part.attribute) + how + struct.pack(">I", part.exclude)
    how = struct.pack(">IqqI", _RANGE, part.low, part.high, 0)
    return _text(part.attribute) + how
