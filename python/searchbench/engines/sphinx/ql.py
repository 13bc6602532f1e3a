"""SphinxQL: questions as statements in one packet, and their results as hits.

The counts come first, then the hits, then SHOW META, which tells how many documents match and
what the server warns of: a part that did not answer is no error to it, only fewer hits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from searchbench.corpora.corpus import Document, Schema
from searchbench.engines.engine import Hit, Hits
from searchbench.engines.mysql_form import Result, split
from searchbench.engines.sphinx import values
from searchbench.engines.sphinx.query import (
    GROUP_MATCHES,
    SCORE,
    Ask,
    Condition,
    OneOf,
    counted,
    pieces,
    rewritten,
)


def literal(text: str) -> str:
    """``text`` as a string; Sphinx takes an escaped letter for the letter itself."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def statements(ask: Ask, index: str, options: Sequence[str] = ()) -> str:
    """All statements of one question."""
    text = ask.text if ask.mode is None else rewritten(ask.mode, ask.words)
    computed = [(e, n) for e, n in ask.columns if n[0] == "c" and n[1:].isdigit()]
    every = [f"ranker={ask.ranker}", *options]
    found = []
    for each in ask.groupings:
        columns = [(each.value, each.label), ("COUNT(*)", "n"), *computed]
        found.append(
            f"SELECT {_columns(columns)} FROM {index}"
            f"{_where(text, [*ask.conditions, *each.conditions])} GROUP BY {each.by}"
            f"{_order(each.order)} LIMIT {each.limit} "
            f"OPTION max_matches={max(GROUP_MATCHES, each.limit)}, {', '.join(every)}"
        )
    found.append(
        f"SELECT {_columns(ask.columns)} FROM {index}{_where(text, ask.conditions)}"
        f"{_order(ask.order)} LIMIT {ask.offset},{ask.limit} "
        f"OPTION max_matches={ask.matches}, {', '.join(every)}"
    )
    return "; ".join([*found, "SHOW META"])


def hits(reply: bytes) -> Hits:
    """The hits, counts and warnings in a reply to ``statements``; ValueError where it is none."""
    results = split(reply)
    refused = next((r.error for r in results if r.code), None)
    if refused is not None:
        return Hits(total=None, error=refused)
    if len(results) < 2 or results[-1].columns[:1] != ("Variable_name",):
        raise ValueError(f"a reply ends in SHOW META, this one in {results[-1].columns!r}")
    told = pairs(results[-1])
    facets: dict[str, Sequence[tuple[str, int]]] = {}
    groups: Sequence[tuple[str, int]] = ()
    for result in results[:-2]:
        label = result.columns[0]
        rows = [(None if v is None else v.decode(), int(n or 0)) for v, n, *_ in result.rows]
        kind, name, found = counted(label, rows)
        if kind == "g":
            groups = found
        else:
            facets[name] = found
    warnings = tuple(v for k, v in told.items() if k == "warning")
    return Hits(
        total=int(told["total_found"]),
        hits=tuple(_hit(row) for row in results[-2].dicts()),
        facets=facets,
        groups=groups,
        warnings=warnings,
        partial=bool(warnings) or any(r.warnings for r in results),
    )


def pairs(result: Result) -> dict[str, str]:
    """The rows of a SHOW statement: name and value."""
    return {str(k): str(v or "") for k, v in (list(row.values())[:2] for row in result.dicts())}


def insert(index: str, documents: Iterable[tuple[int, Document]], schema: Schema) -> str:
    """INSERT of documents with their numbers."""
    names = ["id", values.KEY, *(name for name, _kind in values.columns(schema))]
    rows = []
    for number, document in documents:
        cells = map(_cell, (values.coded(document.id), *values.row(document.values, schema)))
        rows.append(f"({number},{','.join(cells)})")
    return f"INSERT INTO {index} ({','.join(names)}) VALUES {','.join(rows)}"


def _cell(cell: Any) -> str:
    if isinstance(cell, list):
        return f"({values.literals(cell)})"
    return literal(cell) if isinstance(cell, str) else str(cell)


def _columns(columns: Iterable[tuple[str, str]]) -> str:
    return ", ".join(e if e == name else f"{e} AS {name}" for e, name in columns)


def _where(text: str | None, conditions: Iterable[Condition]) -> str:
    parts = [] if text is None else [f"MATCH({literal(text)})"]
    parts += map(_condition, conditions)
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _condition(part: Condition) -> str:
    if isinstance(part, OneOf):
        sign = "NOT IN" if part.exclude else "IN"
        return f"{part.attribute} {sign} ({values.literals(part.numbers)})"
    return f"{part.attribute} BETWEEN {part.low} AND {part.high}"


def _order(order: Iterable[tuple[str, bool]]) -> str:
    keys = ", ".join(f"{name} {'DESC' if down else 'ASC'}" for name, down in order)
    return f" ORDER BY {keys}" if keys else ""


def _hit(row: Mapping[str, str | None]) -> Hit:
    score = row.get(SCORE)
    return hit(row, None if score is None else int(score))


def hit(row: Mapping[str, Any], score: float | None) -> Hit:
    """A hit from its columns; a field is there where its flag says so."""
    found = {}
    shown = {}
    for name, written in row.items():
        if name.startswith("s_"):
            if parts := pieces(str(written or "")):
                shown[values.field(name)] = parts
            continue
        attribute = name.removesuffix(".v")
        if attribute[:2] in values.PREFIX.values() and row.get(f"h_{attribute[2:]}") in ("1", 1):
            found[values.field(attribute)] = values.value_of(attribute, written or "")
    return Hit(values.decoded(str(row[values.KEY])), score, found, shown)
