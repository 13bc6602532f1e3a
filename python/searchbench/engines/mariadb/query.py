"""The query algebra as SQL of MariaDB.

Terms are one ``MATCH .. AGAINST`` each, and what joins them is AND, OR and NOT of SQL. The boolean
syntax of MariaDB has parentheses of its own, but they are not to be trusted: in 10.11 `+e (+c +g)`
finds in InnoDB what has no e, `((+g +f) -b -c)` in MyISAM and Aria what has b, and prefixes in
parentheses can make Aria search for ever. Only signs without parentheses go into one string.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from searchbench.corpora.corpus import FieldType, Schema
from searchbench.engines.column_form import escaped, unescaped
from searchbench.engines.engine import Parameters
from searchbench.engines.features import bounds, each, joined, keys, scored, sought
from searchbench.engines.mariadb.table import (
    KEYWORD_CHARACTERS,
    NUMBER,
    TABLE,
    WHOLE,
    column,
    id_of,
    key_of,
    list_table,
    literal,
    table_of,
    text_column,
    words,
)
from searchbench.engines.mysql_form import quoted
from searchbench.workload.queries.algebra import (
    Boolean,
    Filter,
    In,
    Match,
    Mode,
    NotIn,
    Query,
    Range,
    Sort,
    Terms,
)

TOTAL, SCORE, COUNT = "total", "score", "documents"
VALUE, FACET, GROUP = "value", "facet", "group"
_NEVER, _ALWAYS = "FALSE", "TRUE"
_KINDS = {
    FieldType.TEXT: "s",
    FieldType.KEYWORD: "s",
    FieldType.KEYWORDS: "l",
    FieldType.INTEGER: "i",
    FieldType.FLOAT: "f",
    FieldType.DATE: "i",
    FieldType.BOOLEAN: "b",
}


@dataclass(frozen=True, slots=True)
class _Found:
    """A condition, and what adds to the score where it holds."""

    condition: str
    scores: tuple[str, ...] = ()


def statements(query: Query, schema: Schema, params: Parameters) -> list[str]:
    """The page of hits, the total, then the facets in order and the groups."""
    found = _Matching(schema, params).match(query.match)
    parts = [found.condition, *(_filter(part, schema) for part in query.filters)]
    where = joined([p for p in parts if p != _ALWAYS], "AND") or _ALWAYS
    score = " + ".join(dict.fromkeys(found.scores)) if scored(query) else ""
    columns = [id_of(schema), f"{score or 'NULL'} AS {SCORE}"]
    columns += [
        f"{column(schema, name)} AS {label(VALUE, schema, name)}"
        for name in query.fields
        # A text that is not stored is in the index alone.
        if schema[name].type is not FieldType.TEXT or schema[name].stored
    ]
    order = ", ".join([*_order(keys(query), schema, bool(score)), *key_of(schema)])
    asked = [
        f"SELECT SQL_CALC_FOUND_ROWS {', '.join(columns)} FROM {table_of(schema)} WHERE {where} "
        f"ORDER BY {order} LIMIT {query.offset}, {query.limit}",
        f"SELECT FOUND_ROWS() AS {TOTAL}",
    ]
    asked += [_counted(FACET, f.field, f.limit, where, schema) for f in query.facets]
    if query.group_by is not None:
        asked.append(_counted(GROUP, query.group_by, query.limit, where, schema))
    return asked


def label(what: str, schema: Schema, name: str) -> str:
    """The name of a column of a reply: what it is, the kind of its values, the field."""
    kind = _KINDS[schema[name].type]
    if what != VALUE and kind == "l":
        kind = "s"  # one of the list
    return f"{what}_{kind}_{escaped(name)}"


def labelled(written: str) -> tuple[str, str, str]:
    """What a column of a reply is, the kind of its values and the field: the way back."""
    what, kind, name = written.split("_", 2)
    return what, kind, unescaped(name)


class _Matching:
    """Terms and booleans over one schema."""

    def __init__(self, schema: Schema, params: Parameters) -> None:
        self.params = params
        self.text = [f.name for f in schema.of_type(FieldType.TEXT)]
        self.columns = {n: text_column(schema, n, params["analysis"]) for n in self.text}

    def match(self, part: Match | None) -> _Found:
        if part is None:
            return _Found(_ALWAYS)
        if isinstance(part, Terms):
            return self._terms(part)
        if (signed := self._signed(part)) is not None:
            return signed
        must, should, must_not = each(part, self.match)
        wanted = [f.condition for f in must]
        if not must and should:
            wanted = [joined([f.condition for f in should], "OR")]
        wanted += [f"NOT {f.condition}" for f in must_not]
        scores = tuple(s for f in (*must, *should) for s in f.scores)
        return _Found(joined(wanted, "AND") or _ALWAYS, scores)

    def _terms(self, part: Terms) -> _Found:
        if not (known := sought(part)):
            return _Found(_NEVER)
        if (together := self._together(part.fields)) is not None:
            against = self._against(together, _searched(part.mode, self._words(known)), part.mode)
            return _Found(against, (against,))
        # Several of the fields, but not all: there is an index for each of them only.
        whole = part.mode in (Mode.ANY, Mode.PHRASE)
        ways = [
            [
                self._against(self.columns[name], _searched(part.mode, self._words(run)), part.mode)
                for name in dict.fromkeys(part.fields)
            ]
            for run in ([known] if whole else [[term] for term in known])
        ]
        condition = joined([joined(way, "OR") for way in ways], "AND")
        return _Found(condition, tuple(a for way in ways for a in way))

    def _signed(self, part: Boolean) -> _Found | None:
        """Terms with + and - before them, as one search; None where that does not say it all."""
        must, should, must_not = (
            [m for m in parts if isinstance(m, Terms)]
            for parts in (part.must, part.should, part.must_not)
        )
        parts = [*must, *should, *must_not]
        places = {self._together(m.fields) for m in parts}
        if (
            self.params["mode"] != "boolean"
            or len(parts) < len(part.must) + len(part.should) + len(part.must_not)
            or not (must or should)
            or len(places) != 1
            or None in places
            or not all(_every(m) for m in must)
            or not all(_each(m) for m in (*should, *must_not))
        ):
            return None
        wanted = list(map(sought, must))
        added, barred = ([t for m in part for t in sought(m)] for part in (should, must_not))
        if not all(wanted) or not (must or added):
            return _Found(_NEVER)
        signs = [
            *(f"+{w}" for run in wanted for w in self._words(run)),
            *self._words(added),
            *(f"-{w}" for w in self._words(barred)),
        ]
        (place,) = places
        against = self._against(str(place), " ".join(signs), Mode.ALL)
        return _Found(against, (against,))

    def _words(self, found: Iterable[str]) -> list[str]:
        return words(found) if self.params["analysis"] == "declared" else list(found)

    def _together(self, fields: Sequence[str]) -> str | None:
        """The columns of one index over just these fields, if there is one."""
        names = list(dict.fromkeys(fields or self.text))
        if len(names) == 1 or set(names) == set(self.text):
            return ", ".join(self.columns[n] for n in (names if len(names) == 1 else self.text))
        return None

    def _against(self, columns: str, search: str, mode: Mode) -> str:
        natural = mode is Mode.ANY and self.params["mode"] == "natural"
        how = "NATURAL LANGUAGE" if natural else "BOOLEAN"
        return f"MATCH ({columns}) AGAINST ({quoted(search)} IN {how} MODE)"


def _every(part: Terms) -> bool:
    """Does it say: all of its terms?"""
    alone = len(part.terms) == 1 and part.mode in (Mode.ANY, Mode.PHRASE)
    return part.mode is Mode.ALL or alone


def _each(part: Terms) -> bool:
    """Does it say: any of its terms?"""
    return part.mode is Mode.ANY or (len(part.terms) == 1 and _every(part))


def _searched(mode: Mode, found: Sequence[str]) -> str:
    if mode is Mode.ANY:
        return " ".join(found)
    if mode is Mode.PHRASE:
        return f'"{" ".join(found)}"'
    return " ".join(f"+{word}{'*' if mode is Mode.PREFIX else ''}" for word in found)


def _filter(part: Filter, schema: Schema) -> str:
    listed = schema[part.field].type is FieldType.KEYWORDS
    if listed and schema.table and not isinstance(part, Range):
        return _in_json(part, column(schema, part.field))
    value = "value" if listed else column(schema, part.field)
    if isinstance(part, Range):
        within = [f"{value} {sign} {literal(bound)}" for sign, bound in bounds(part)]
        condition = joined(within, "AND") or f"{value} IS NOT NULL"
    elif part.values:
        condition = f"{value} IN ({', '.join(literal(v) for v in part.values)})"
    else:
        condition = _NEVER
    if listed:
        values = list_table(schema, part.field)
        condition = (
            f"EXISTS (SELECT * FROM {values} WHERE {values}.{NUMBER} = {TABLE}.{NUMBER} "
            f"AND {condition})"
        )
    if isinstance(part, NotIn):
        missing = "" if listed else f"{value} IS NULL OR "
        return f"({missing}NOT {condition})"
    return condition


def _in_json(part: In | NotIn, held: str) -> str:
    """A filter on a list that is in its row."""
    each = [f"JSON_CONTAINS({held}, {quoted(_json(str(v)))})" for v in part.values]
    condition = joined(each, "OR") or _NEVER
    return f"({held} IS NULL OR NOT {condition})" if isinstance(part, NotIn) else condition


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _order(keys: Sequence[Sort], schema: Schema, scored: bool) -> Iterable[str]:
    """Missing values last in both directions; by relevance if nothing is said."""
    for key in keys:
        down = " DESC" if key.descending else ""
        if key.field != "_score":
            yield f"{column(schema, key.field)} IS NULL"
            yield column(schema, key.field) + down
        elif scored:
            yield SCORE + down


def _counted(what: str, field: str, limit: int, where: str, schema: Schema) -> str:
    """The most frequent values, ties by value."""
    value, source = column(schema, field), table_of(schema)
    if schema[field].type is FieldType.KEYWORDS and schema.table:
        kind = f"VARCHAR({KEYWORD_CHARACTERS}) {WHOLE}"
        source += f", JSON_TABLE({value}, '$[*]' COLUMNS (value {kind} PATH '$')) AS listed"
        value = "listed.value"
    elif schema[field].type is FieldType.KEYWORDS:
        values = list_table(schema, field)
        value, source = f"{values}.value", f"{TABLE} JOIN {values} USING ({NUMBER})"
    return (
        f"SELECT {value} AS {label(what, schema, field)}, COUNT(*) AS {COUNT} FROM {source} "
        f"WHERE {where} AND {value} IS NOT NULL GROUP BY {value} "
        f"ORDER BY {COUNT} DESC, {value} LIMIT {limit}"
    )
