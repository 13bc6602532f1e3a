"""SphinxQL: questions as statements in one packet, and their results as hits.

The counts come first, then the hits, then SHOW META, which tells how many documents match and
what the server warns of: a part that did not answer is no error to it, only fewer hits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from searchbench.corpora.corpus import Document, Schema
from searchbench.engines.engine import Hits
from searchbench.engines.mysql_form import Result, refusal, split
from searchbench.engines.sphinx import values
from searchbench.engines.sphinx.query import Ask, Condition, OneOf, answer, selected


def literal(text: str) -> str:
    """``text`` as a string; Sphinx takes an escaped letter for the letter itself."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def statements(ask: Ask, index: str, options: Sequence[str] = ()) -> str:
    """All statements of one question."""
    # A match mode of old as the server itself writes it in the extended syntax.
    old = {"any": f'"{ask.words}"/1', "phrase": f'"{ask.words}"'}
    text = ask.text if ask.mode is None else old.get(ask.mode, ask.words)
    every = ", ".join([f"ranker={ask.ranker}", *options])
    found = []
    for each in ask.listings:
        value, *others = each.columns
        columns = [value, ("COUNT(*)", "n"), *others] if each.by else each.columns
        grouped = f" GROUP BY {each.by}" if each.by else ""
        limit = each.limit if each.by else f"{each.offset},{each.limit}"
        found.append(
            f"SELECT {selected(columns)} FROM {index}{_where(text, each.conditions)}{grouped}"
            f"{_order(each.order)} LIMIT {limit} OPTION max_matches={each.matches}, {every}"
        )
    return "; ".join([*found, "SHOW META"])


def hits(reply: bytes) -> Hits:
    """The hits, counts and warnings in a reply to ``statements``; ValueError where it is none."""
    results = split(reply)
    refused = refusal(results)
    if refused is not None:
        return Hits(total=None, error=refused)
    if len(results) < 2 or results[-1].columns[:1] != ("Variable_name",):
        raise ValueError(f"a reply ends in SHOW META, this one in {results[-1].columns!r}")
    *counts, page, meta = results
    told = pairs(meta)
    return answer(
        total=int(told["total_found"]),
        page=page.dicts(),
        counts=[(r.columns[0], map(_count, r.rows)) for r in counts],
        warnings=(told["warning"],) if "warning" in told else (),
        partial=any(r.warnings for r in results),
    )


def _count(row: Sequence[bytes | None]) -> tuple[str | None, int]:
    value, number, *_rest = row
    return None if value is None else value.decode(), int(number or 0)


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


def _cell(cell: values.Cell) -> str:
    if isinstance(cell, list):
        return f"({values.literals(cell)})"
    return literal(cell) if isinstance(cell, str) else str(cell)


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
