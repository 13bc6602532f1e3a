"""Sphinx's native protocol as bytes: commands built ahead of time, replies taken apart afterwards.

The greeting and the command that keeps a connection are the measuring core's. All numbers are
big-endian; a text is its length and its bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from searchbench.engines.engine import Hits
from searchbench.engines.sphinx.ql import hit
from searchbench.engines.sphinx.query import (
    GROUP_MATCHES,
    RANKERS,
    SCORE,
    Ask,
    Condition,
    OneOf,
    counted,
)

_SEARCH, _SEARCH_VERSION = 0, 0x11D
_KEYWORDS, _KEYWORDS_VERSION = 3, 0x100
OK, _ERROR, _RETRY, WARNING = range(4)
_MODES = {"all": 0, "any": 1, "phrase": 2, "boolean": 3, None: 6}
_BY_RELEVANCE, _BY_CLAUSE = 0, 4
_VALUES, _RANGE = 0, 1
_BY_ATTRIBUTE = 4
_NORMALIZED_IDF, _LOCAL_DF = 1 << 6, 1 << 7
_FLOAT, _BIGINT, _STRING = 5, 6, 7
_MULTI, _MULTI_64 = 0x40000001, 0x40000002
_EMPTY = bytes(4)


@dataclass(slots=True)
class Found:
    """The answer to one search: rows by column, and what the server says of it."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    total: int = 0
    warning: str = ""
    error: str = ""


def searches(ask: Ask, index: str, all_parts: bool) -> bytes:
    """One command with the counts first and the hits last; ``all_parts``: their statistics."""
    computed = [(e, n) for e, n in ask.columns if n[0] == "c" and n[1:].isdigit()]
    queries = []
    for each in ask.groupings:
        order = ", ".join(
            f"{'@count' if name == 'n' else name} {'desc' if down else 'asc'}"
            for name, down in each.order
        )
        queries.append(
            _query(
                ask,
                index,
                all_parts,
                select=[(each.value, each.label), *computed],
                conditions=[*ask.conditions, *each.conditions],
                limits=(0, each.limit, max(GROUP_MATCHES, each.limit)),
                group=(each.by, order),
            )
        )
    queries.append(
        _query(
            ask,
            index,
            all_parts,
            select=ask.columns,
            conditions=ask.conditions,
            limits=(ask.offset, ask.limit, ask.matches),
        )
    )
    return _command(_SEARCH, _SEARCH_VERSION, struct.pack(">II", 0, len(queries)), *queries)


def search(index: str, select: str, limit: int = 1) -> bytes:
    """One command with one search: everything in an index."""
    plain = Ask(None, None, "", RANKERS[0], ((select, select),), (), (), (), 0, limit)
    return searches(plain, index, all_parts=False)


def keywords(text: str, index: str) -> bytes:
    """Asks for the terms of ``text`` as an index sees them."""
    body = (_text(text), _text(index), _EMPTY)
    return _command(_KEYWORDS, _KEYWORDS_VERSION, *body)


def replies(data: bytes) -> list[tuple[int, bytes]]:
    """Status and body of each reply in ``data``; ValueError where one is not whole."""
    found: list[tuple[int, bytes]] = []
    at = 0
    while at < len(data) or not found:
        if len(data) - at < 8:
            raise ValueError(f"a reply has at least 8 bytes, {len(data) - at} are here")
        status, _version, length = struct.unpack_from(">HHI", data, at)
        at += 8
        if len(data) - at < length:
            raise ValueError(f"the reply promises {length} bytes, {len(data) - at} are here")
        found.append((status, data[at : at + length]))
        at += length
    return found


def results(reply: bytes) -> list[Found]:
    """The answers in a reply to one command of searches."""
    ((status, body),) = replies(reply)
    return results_of(status, body)


def results_of(status: int, body: bytes) -> list[Found]:
    """The answers in the body of one reply."""
    reader = _Reader(body)
    if status in (_ERROR, _RETRY):
        return [Found(error=reader.text())]
    warning = reader.text() if status == WARNING else ""
    answers = []
    while not reader.ended:
        answers.append(_answer(reader))
    if warning:
        for each in answers:
            each.warning = each.warning or warning
    return answers


def hits(reply: bytes) -> Hits:
    """The hits, counts and warnings in a reply to ``searches``; ValueError where it is not one."""
    answers = results(reply)
    error = next((a.error for a in answers if a.error), None)
    if error is not None:
        return Hits(total=None, error=error)
    if not answers:
        raise ValueError("a reply to a search holds no answer")
    facets: dict[str, Sequence[tuple[str, int]]] = {}
    groups: Sequence[tuple[str, int]] = ()
    for answer in answers[:-1]:
        label = answer.columns[0]
        kind, name, found = counted(label, [(r[label], r["@count"]) for r in answer.rows])
        if kind == "g":
            groups = found
        else:
            facets[name] = found
    warnings = tuple(dict.fromkeys(a.warning for a in answers if a.warning))
    return Hits(
        total=answers[-1].total,
        hits=tuple(hit(row, row.get(SCORE)) for row in answers[-1].rows),
        facets=facets,
        groups=groups,
        warnings=warnings,
        partial=bool(warnings),
    )


def terms(reply: bytes) -> tuple[str, ...]:
    """The terms in a reply to ``keywords``."""
    ((status, body),) = replies(reply)
    reader = _Reader(body)
    if status not in (OK, WARNING):
        raise ValueError(reader.text())
    found = []
    for _ in range(reader.number()):
        reader.text()  # as it was written
        found.append(reader.text())
    return tuple(found)


def _answer(reader: _Reader) -> Found:
    status = reader.number()
    answer = Found()
    if status == WARNING:
        answer.warning = reader.text()
    elif status != OK:
        answer.error = reader.text() or "no reason given"
        return answer
    for _ in range(reader.number()):
        reader.text()  # full-text fields
    kinds = [(reader.text(), reader.number()) for _ in range(reader.number())]
    answer.columns = [name for name, _kind in kinds]
    count, wide = reader.number(), reader.number()
    for _ in range(count):
        row: dict[str, Any] = {"@id": reader.bigint() if wide else reader.number()}
        row["@weight"] = reader.number()
        for name, kind in kinds:
            row[name] = reader.value(kind)
        answer.rows.append(row)
    _kept, answer.total, _ms, words = (reader.number() for _ in range(4))
    for _ in range(words):
        reader.text()
        reader.take(8)
    return answer


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


def _query(
    ask: Ask,
    index: str,
    all_parts: bool,
    *,
    select: Iterable[tuple[str, str]],
    conditions: Sequence[Condition],
    limits: tuple[int, int, int],
    group: tuple[str, str] = ("", "@weight desc"),
) -> bytes:
    offset, limit, matches = limits
    grouped = bool(group[0])
    order = ", ".join(
        f"{'@weight' if name == 'weight()' else name} {'desc' if down else 'asc'}"
        for name, down in ask.order
    )
    flags = _NORMALIZED_IDF | (_LOCAL_DF if all_parts else 0)
    sort = _BY_CLAUSE if order and not grouped else _BY_RELEVANCE
    parts = [
        struct.pack(">IIIII", flags, offset, limit, _MODES[ask.mode], RANKERS.index(ask.ranker)),
        struct.pack(">I", sort) + _text("" if grouped else order),
        _text((ask.text or "") if ask.mode is None else ask.words),
        _EMPTY,  # weights of fields by their place
        _text(index),
        struct.pack(">IQQ", 1, 0, 0),  # ids are 64 bits wide, and all are wanted
        struct.pack(">I", len(conditions)),
        *map(_condition, conditions),
        struct.pack(">I", _BY_ATTRIBUTE) + _text(group[0]),
        struct.pack(">I", matches) + _text(group[1]),
        struct.pack(">III", 0, 0, 0),  # no cutoff, no retries
        _EMPTY * 4,  # nothing distinct, no place, no weights of indexes, no limit of time
        _EMPTY * 3,  # no weights of fields, no comment, no overrides
        _text(", ".join(e if e == name else f"{e} AS {name}" for e, name in select)),
        _EMPTY * 4,  # no outer select
    ]
    return b"".join(parts)


def _condition(part: Condition) -> bytes:
    if isinstance(part, OneOf):
        numbers = struct.pack(f">{len(part.numbers)}q", *part.numbers)
        how = struct.pack(">II", _VALUES, len(part.numbers)) + numbers
        return _text(part.attribute) + how + struct.pack(">I", part.exclude)
    how = struct.pack(">IqqI", _RANGE, part.low, part.high, 0)
    return _text(part.attribute) + how
