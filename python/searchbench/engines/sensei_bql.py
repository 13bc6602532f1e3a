"""BQL, Sensei's own language in the manner of SQL; its text search is Lucene's query syntax.

BQL writes no negative numbers and no line breaks in texts; these are variables, whose values go
beside the statement. A column that is named in two conditions would keep the last one only; what
stands in an OR is a filter of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from searchbench.corpora.corpus import Schema
from searchbench.engines import sensei_columns as columns
from searchbench.engines.sensei_json import written
from searchbench.engines.sensei_request import SOURCE, Among, Asked, Within
from searchbench.errors import Unsupported
from searchbench.queries.algebra import Match, Mode, Query, Terms
from searchbench.queries.analysis import is_term

_EVERY = "*:*"
_NOTHING = "none:none"  # every column's name has a _


def request(query: Query, text: Sequence[str], schema: Schema, asked: Asked) -> dict[str, Any]:
    """The body of the request; ``text``: the fields that are meant where none is named."""
    statement = _Statement()
    conditions = []
    wanted = None if query.match is None else match(query.match, text, schema)
    if asked.nothing:
        wanted = _NOTHING if wanted is None else f"+({wanted}) +{_NOTHING}"
    if wanted is not None:
        conditions.append(f"QUERY IS {_quoted(wanted)}")
    named = set()
    for part in asked.predicates:
        condition = statement.condition(part)
        if part.column in named:
            condition = f"(({condition}) OR ({condition}))"
        named.add(part.column)
        conditions.append(condition)
    selected = ", ".join(n if n == SOURCE else _quoted(n) for n in asked.select)
    words = [f"SELECT {selected}", "FROM docs"]
    if conditions:
        words.append(f"WHERE {' AND '.join(conditions)}")
    words.append(
        "ORDER BY " + ", ".join(f"{n} {'DESC' if falling else 'ASC'}" for n, falling in asked.sort)
    )
    words.append(f"LIMIT {query.offset}, {query.limit}")
    if asked.facets:
        facets = [f"{name}(false, 1, {most}, hits)" for name, most in asked.facets.items()]
        words.append(f"BROWSE BY {', '.join(facets)}")
    body: dict[str, Any] = {"bql": " ".join(words)}
    if statement.variables:
        body["templateMapping"] = statement.variables
    return body


def match(part: Match, text: Sequence[str], schema: Schema) -> str:
    """A query in Lucene's syntax: terms are letters and digits, so nothing needs escaping."""
    if isinstance(part, Terms):
        return _terms(part, [columns.column(schema[name]) for name in part.fields or text])
    must, should, must_not = (
        [match(m, text, schema) for m in parts] for parts in (part.must, part.should, part.must_not)
    )
    if not must and not should:
        must = [_EVERY]
    return " ".join(
        [*(f"+({m})" for m in must), *(f"({m})" for m in should), *(f"-({m})" for m in must_not)]
    )


def _terms(part: Terms, names: Sequence[str]) -> str:
    known = [t for t in part.terms if is_term(t)]
    if not known or (part.mode is not Mode.ANY and len(known) < len(part.terms)):
        return _NOTHING
    if part.mode is Mode.PHRASE:
        return " ".join(f'{name}:"{" ".join(known)}"' for name in names)
    end = "*" if part.mode is Mode.PREFIX else ""
    each = [" ".join(f"{name}:{term}{end}" for name in names) for term in known]
    return " ".join(each) if part.mode is Mode.ANY else " ".join(f"+({one})" for one in each)


class _Statement:
    """Conditions, and the variables that they need."""

    def __init__(self) -> None:
        self.variables: dict[str, int | str] = {}

    def condition(self, part: Within | Among) -> str:
        if isinstance(part, Among):
            values = ", ".join(self._value(v) for v in part.values)
            return f"{part.column} {'NOT IN' if part.negated else 'IN'} ({values})"
        if part.exact:
            raise Unsupported(
                "SenseiDB cannot do this range in BQL: upstream must: a bound that is empty, * or "
                "holds a bracket is read as part of its syntax (protocol json has another way)"
            )
        bounds = [b for b in (part.low, part.high) if b is not None]
        # BQL compares two bounds of one column, and cannot compare a variable with a number.
        vary = any(_unwritable(b) for b in bounds)
        sides = []
        for bound, sign, inclusive, name in (
            (part.low, ">", part.include_low, "from"),
            (part.high, "<", part.include_high, "to"),
        ):
            if bound is not None:
                shown = self._variable(name, bound) if vary else _literal(bound)
                sides.append(f"{part.column} {sign}{'=' if inclusive else ''} {shown}")
        return " AND ".join(sides)

    def _value(self, value: int | str) -> str:
        return self._variable("value", value) if _unwritable(value) else _literal(value)

    def _variable(self, name: str, value: int | str) -> str:
        # Two digits and more: no name begins another, and "from" sorts before "to".
        key = f"{name}{len(self.variables):04d}"
        self.variables[key] = written(value) if isinstance(value, str) else value
        return f"${key}"


def _unwritable(value: int | str) -> bool:
    return any(c in value for c in "\r\n") if isinstance(value, str) else value < 0


def _literal(value: int | str) -> str:
    return _quoted(written(value)) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
