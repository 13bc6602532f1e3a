"""The query algebra in PostgreSQL's SQL and its text search queries.

A match becomes one text search query where the text fields are in one vector, else conditions on
several vectors. What can be decided here (a word that no document can hold) is decided here: there
is no text search query that means "none".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isinf

from searchbench.corpora.corpus import FieldType, Schema
from searchbench.engines import postgres_form as form
from searchbench.engines.features import bounds, each, joined, keys
from searchbench.engines.postgresql.table import INTEGERS, LONGEST_WORD_BYTES, Layout, column, value
from searchbench.workload.queries.algebra import (
    Boolean,
    Filter,
    In,
    Match,
    Mode,
    Query,
    Range,
    Terms,
)
from searchbench.workload.queries.analysis import is_term

Condition = str | bool
Words = Mapping[int, str]
"""For each vector that is meant, a text search query."""
_AND, _OR, _NOT = "&", "|", "!"
BETWEEN_PIECES = "\x1f"
_HEADLINE = form.literal(
    "StartSel=<b>, StopSel=</b>, MaxFragments=3, MaxWords=20, MinWords=5, "
    f'FragmentDelimiter="{BETWEEN_PIECES}"'
)
_LISTED = {FieldType.INTEGER: "bigint", FieldType.DATE: "bigint", FieldType.BOOLEAN: "boolean"}


@dataclass(frozen=True, slots=True)
class Matcher:
    """A match on the vectors. ``declared``: words are meant as they are, not as texts to parse."""

    layout: Layout
    declared: bool

    def condition(self, match: Match | None) -> Condition:
        """What a document that matches meets."""
        if match is None:
            return True
        if len(self.layout.vectors) != 1:
            return self._found(match, self._in_any, ("AND", "OR", "NOT "))
        found = self._found(match, lambda words: words[0], (_AND, _OR, _NOT))
        return self._in_any({0: found}) if isinstance(found, str) else found

    def scored(self, match: Match | None) -> dict[str, str]:
        """For each vector (its column) the text search query whose words make the score."""
        if match is None:
            return {}
        numbers = range(len(self.layout.vectors))
        # A word may be in another vector, so over several all is "or" here.
        both = _AND if len(numbers) == 1 else _OR
        counted = {column(number): self._counted(match, number, both) for number in numbers}
        return {held: self.search(words) for held, words in counted.items() if words}

    def snippet(self, match: Match | None, field: str) -> str | None:
        """Pieces of a field around the words that are looked for in it; NULL where it has none.

        Left to itself the server's parser would find no word within a URL or a path, so with the
        declared analysis whatever separates words is a blank.
        """
        alone = Matcher(Layout((field,)), self.declared)
        words = alone._counted(_only(match, field), 0, _OR) if match is not None else ""
        if not words:
            return None
        held = value(field)
        plain = f"regexp_replace({held}, '[^[:alnum:]]+', ' ', 'g')" if self.declared else held
        ((number, labels),) = self.layout.labels((field,)).items()
        own = column(number) if not labels else f"ts_filter({column(number)}, '{{{labels}}}')"
        search = self.search(words)
        return (
            f"CASE WHEN {own} @@ {search} "
            f"THEN ts_headline('simple', {plain}, {search}, {_HEADLINE}) END"
        )

    def search(self, words: str) -> str:
        """A text search query as a constant; the words in it are letters and digits alone."""
        return f"$${words}$$::tsquery" if self.declared else f"to_tsquery('simple', $${words}$$)"

    def _in_any(self, words: Words) -> str:
        held = [f"{column(number)} @@ {self.search(found)}" for number, found in words.items()]
        return joined(held, "OR")

    def _found(
        self, match: Match, leaf: Callable[[Words], str], signs: tuple[str, str, str]
    ) -> Condition:
        both, either, negated = signs
        if isinstance(match, Terms) and not match.terms:
            return match.mode is not Mode.ANY
        if isinstance(match, Terms):
            parts = [leaf(words) if words else False for words in self._parts(match)]
            return _joined(parts, both, either, every=match.mode is not Mode.ANY)
        must, should, must_not = each(match, lambda m: self._found(m, leaf, signs))
        wanted = _joined(must or should, both, either, every=bool(must) or not should)
        unwanted = [not m if isinstance(m, bool) else f"{negated}({m})" for m in must_not]
        return _joined([wanted, *unwanted], both, either, every=True)

    def _counted(self, match: Match, number: int, both: str) -> str:
        """What can add to the score in one vector; "" where nothing can."""
        if isinstance(match, Terms):
            parts = [words[number] for words in self._parts(match) if number in words]
            return joined(parts, _OR if match.mode is Mode.ANY else both)
        must, should = (
            [found for m in parts if (found := self._counted(m, number, both))]
            for parts in (match.must, match.should)
        )
        return joined([part for part in (joined(must, both), joined(should, _OR)) if part], _OR)

    def _parts(self, match: Terms) -> list[Words]:
        """Each of the words that are to be found, in each vector; a phrase is one part.

        A part that is empty is in no document: what is no term of the declared analysis, and what
        is too long for a vector. It never becomes syntax.
        """
        chosen = self.layout.labels(match.fields or self.layout.fields)
        held = [is_term(t) and len(t.encode()) <= LONGEST_WORD_BYTES for t in match.terms]
        if match.mode is Mode.PHRASE:
            phrase = {
                number: self._phrase(match.terms, labels) for number, labels in chosen.items()
            }
            return [phrase if all(held) else {}]
        sign = "*" if match.mode is Mode.PREFIX else ""
        return [
            {number: _word(term, sign + labels) for number, labels in chosen.items()} if ok else {}
            for term, ok in zip(match.terms, held, strict=True)
        ]

    def _phrase(self, terms: Sequence[str], labels: str) -> str:
        # The server's own vectors have no gap between two fields.
        each = [labels] if self.declared or len(self.layout.fields) == 1 else labels or "DCBA"
        return joined([joined([_word(t, label) for t in terms], "<->") for label in each], _OR)


def _only(match: Match, field: str) -> Match:
    """The match as far as it looks for words in ``field``; what it excludes is not looked for."""
    if isinstance(match, Terms):
        meant = not match.fields or field in match.fields
        return replace(match, fields=(), terms=match.terms if meant else ())
    must, should = (tuple(_only(m, field) for m in parts) for parts in (match.must, match.should))
    return Boolean(must, should)


def passed(part: Filter, schema: Schema) -> Condition:
    """What a document that passes the filter meets."""
    kind, held = schema[part.field].type, value(part.field)
    if isinstance(part, Range):
        return _range(part, held)
    listed = _listed(part.values, kind)
    one_of: Condition = False
    if listed and kind is FieldType.KEYWORDS:
        one_of = f"{held} && {listed}"
    elif listed:
        one_of = f"{held} = ANY ({listed})"
    if isinstance(part, In):
        return one_of
    return f"({one_of}) IS NOT TRUE" if isinstance(one_of, str) else not one_of


def where(parts: Sequence[Condition]) -> str:
    """All of them as a clause; "" where they are met by every document."""
    whole = _joined(parts, "AND", "OR", every=True)
    return f" WHERE {whole}" if isinstance(whole, str) else "" if whole else " WHERE false"


def order(query: Query) -> str:
    """Missing values last in both directions, ties by the order of ingest; by relevance if none."""
    found = []
    for key in keys(query):
        down = " DESC" if key.descending else ""
        if key.field == "_score":
            found.append(f"score{down}")
        else:
            found.append(f"{value(key.field)}{down} NULLS LAST")
    return ", ".join([*found, "n"])


def _word(term: str, marks: str) -> str:
    return f"'{term}':{marks}" if marks else f"'{term}'"


def _joined(parts: Sequence[Condition], both: str, either: str, *, every: bool) -> Condition:
    """All of them (``every``) or one of them; none of none is met, all of none are."""
    if any(part is (not every) for part in parts):
        return not every
    return joined([p for p in parts if isinstance(p, str)], both if every else either) or every


def _listed(values: Sequence[str | int | bool], kind: FieldType) -> str:
    """The values that a document can have, as the constant of an array; "" if there is none."""
    name = _LISTED.get(kind, "text")
    if name == "bigint":
        # Asked for what is not of type int, a range would compare all of its 2**64 numbers.
        whole = [int(v) for v in values if not isinstance(v, str) and v % 1 == 0]
        found = [str(v) for v in whole if v in INTEGERS]
    elif name == "boolean":
        found = ["t" if v else "f" for v in values]
    else:
        found = [str(v) for v in values if "\0" not in str(v)]
    return f"{form.literal(form.array(found))}::{name}[]" if found else ""


def _range(part: Range, held: str) -> Condition:
    conditions: list[Condition] = []
    for sign, bound in bounds(part):
        if isinstance(bound, str) and "\0" in bound:
            # No text here has a NUL, so what comes after it lies beyond what comes before.
            bound, sign = bound.split("\0")[0], {">=": ">", "<": "<="}.get(sign, sign)
        conditions.append(f"{held} {sign} {_bound(bound)}")
    return _joined(conditions, "AND", "OR", every=True)


def _bound(bound: str | int | float) -> str:
    if isinstance(bound, str):
        return form.literal(bound)
    if isinstance(bound, int) and bound in INTEGERS:
        return f"'{bound}'::bigint"
    if isinstance(bound, float) and isinf(bound):
        return f"'{bound}'::float8"
    return f"'{bound!r}'::numeric"
