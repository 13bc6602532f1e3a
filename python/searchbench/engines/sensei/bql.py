"""BQL, Sensei's own language in the manner of SQL; its text search is Lucene's query syntax.

BQL writes no line breaks in texts; such a text is a variable, whose value goes beside the
statement. A column that is named in two conditions would keep the last one only; what stands in an
OR is a filter of its own. Ranges are allowed of range facets alone, which columns have beside the
facet of their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from searchbench.corpora.corpus import Schema
from searchbench.engines.sensei import columns
from searchbench.engines.sensei.json import written
from searchbench.engines.sensei.request import SOURCE, Among, Asked, Within
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Match, Mode, Query, Terms
from searchbench.workload.queries.analysis import is_term

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
        self.variables: dict[str, str] = {}

    def condition(self, part: Within | Among) -> str:
        if isinstance(part, Among):
            values, excluded = (
                f"({', '.join(self._value(v) for v in side)})"
                for side in (part.values, part.excluded)
            )
            if not part.values:
                return f"{part.column} NOT IN {excluded}"
            but = f" EXCEPT {excluded}" if part.excluded else ""
            return f"{part.column} IN {values}{but}"
        if part.exact:
            raise Unsupported(
                "SenseiDB cannot do this range in BQL: upstream must: a bound that holds a "
                "bracket or ends in a space is read as part of its syntax (protocol json has "
                "another way)"
            )
        if part.column.startswith(columns.SEVERAL):
            raise Unsupported(
                "SenseiDB cannot do a range of several values in BQL: upstream must: its range "
                "facets have one (protocol json has another way)"
            )
        name = columns.ranged(part.column)
        sides = []
        for bound, sign, inclusive in (
            (part.low, ">", part.include_low),
            (part.high, "<", part.include_high),
        ):
            if bound is not None:
                # BQL compares the bounds; a variable would be compared by its name.
                if _broken(bound):
                    raise Unsupported(
                        "SenseiDB cannot do this range in BQL: upstream must: its texts have no "
                        "line breaks (protocol json has them)"
                    )
                sides.append(f"{name} {sign}{'=' if inclusive else ''} {_quoted(written(bound))}")
        return " AND ".join(sides)

    def _value(self, value: str) -> str:
        if not _broken(value):
            return _quoted(written(value))
        name = f"value{len(self.variables):04d}"  # of one length: none begins another
        self.variables[name] = written(value)
        return f"${name}"


def _broken(text: str) -> bool:
    return "\n" in text or "\r" in text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
