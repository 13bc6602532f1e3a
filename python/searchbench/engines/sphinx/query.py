"""The query algebra as Sphinx understands it, before it is written as SphinxQL or for its API; hits
from what either answered.

Full text is written in the extended syntax; filters are on whole numbers alone, computed columns
where there is no such filter; sorting takes at most five keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchbench.corpora.corpus import FieldType, Schema
from searchbench.engines.answer import Hit, Hits
from searchbench.engines.column_form import sortable
from searchbench.engines.engine import Parameters
from searchbench.engines.features import each, leaves, scored, sought
from searchbench.engines.sphinx import values
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import (
    Filter,
    Match,
    Mode,
    NotIn,
    Query,
    Range,
    Sort,
    Terms,
)
from searchbench.workload.queries.analysis import is_term

_SCORE = "score"
_BETWEEN_PIECES = "\x1f"
_GROUP_MATCHES = 10_000  # groups that a query keeps; Sphinx keeps four times as many while counting
_MOST_SORT_KEYS = 5
_LEAST_MATCHES = 1000
_EVERY = f"(@{values.ALL} {values.EVERY})"
_NONE = f"(@{values.ALL} {values.EVERY}{values.EVERY})"
_WORDED = (FieldType.KEYWORD, FieldType.KEYWORDS)
_MATCH_MODES = {"all": Mode.ALL, "any": Mode.ANY, "phrase": Mode.PHRASE}
RANKERS = (
    "proximity_bm25",
    "bm25",
    "none",
    "wordcount",
    "proximity",
    "matchany",
    "fieldmask",
    "sph04",
)
"""In the order of their numbers in the API."""


@dataclass(frozen=True, slots=True)
class Between:
    """A number between two, both included; any of several numbers."""

    attribute: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class OneOf:
    """A number that is one of these, or none of them; of several numbers any, or none."""

    attribute: str
    numbers: tuple[int, ...]
    exclude: bool = False


Condition = Between | OneOf


@dataclass(frozen=True, slots=True)
class Listing:
    """What one search lists: the hits, or the counts of the values of an attribute.

    ``columns``: (expression, name); the first name of counts says of what they are.
    ``order``: (name, descending), empty for relevance. ``matches``: the best that must be kept.
    ``by``: what is counted, empty for the hits.
    """

    columns: tuple[tuple[str, str], ...]
    conditions: tuple[Condition, ...]
    order: tuple[tuple[str, bool], ...]
    offset: int
    limit: int
    matches: int
    by: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """One question. ``text``: extended syntax; None matches everything.

    ``mode``: the match mode of old that asks ``words``; None where ``text`` is asked.
    ``listings``: the counts, and last the hits.
    """

    text: str | None
    mode: str | None
    words: str
    ranker: str
    listings: tuple[Listing, ...]


def plan(query: Query, schema: Schema, params: Parameters, title: str) -> Ask:
    """What is to be asked; Unsupported with the reason where Sphinx cannot."""
    mode, words, ranker = _mode(query.match, params, title)
    parts = _Parts(schema, title)
    for part in query.filters:
        parts.filter(part)
    order = tuple(parts.order(query.sort))
    shown = [(values.KEY, values.KEY)]
    if scored(query):
        shown.append(("WEIGHT()", _SCORE))
    for name in query.fields:
        if schema[name].type is FieldType.TEXT and not schema[name].stored:
            continue
        held = ".v" if schema[name].type is FieldType.KEYWORDS else ""
        read = (values.attribute(name, schema) + held, f"h_{values.escaped(name)}")
        shown += [(column, column) for column in read]
    words_found = " ".join(dict.fromkeys(_wanted(query.match)))
    for name in query.snippets if words_found else ():
        if schema[name].stored:
            shown.append((_snippet(name, words_found), f"s_{values.escaped(name)}"))
    counted = [(f.field, f.limit, "f") for f in query.facets]
    if query.group_by is not None:
        counted.append((query.group_by, query.limit, "g"))
    page = Listing(
        columns=tuple(dict.fromkeys([*shown, *parts.computed])),
        conditions=tuple(parts.conditions),
        order=order,
        offset=query.offset,
        limit=query.limit,
        matches=max(_LEAST_MATCHES, query.offset + query.limit),
    )
    text = None if query.match is None else _text(query.match, schema)
    return Ask(text, mode, words, ranker, (*(parts.counts(*each) for each in counted), page))


def _mode(match: Match | None, params: Parameters, title: str) -> tuple[str | None, str, str]:
    """The match mode of old, its words, and the ranker that goes with it."""
    asked, ranker = str(params["match_mode"]), str(params["ranker"])
    if asked == "algebra" or match is None:
        return None, "", ranker
    plain = isinstance(match, Terms) and not match.fields and all(map(is_term, match.terms))
    if not plain or not isinstance(match, Terms) or not match.terms:
        raise Unsupported(
            f"{title} cannot do this with match_mode {asked!r}, which takes only plain terms"
        )
    if asked == "boolean" and match.mode in (Mode.ANY, Mode.ALL):
        return asked, (" | " if match.mode is Mode.ANY else " ").join(match.terms), "none"
    if _MATCH_MODES.get(asked) is not match.mode:
        raise Unsupported(f"{title} cannot do {match.mode} with match_mode {asked!r}")
    ranker = "matchany" if match.mode is Mode.ANY else "proximity"
    return asked, " ".join(match.terms), ranker


def _text(part: Match, schema: Schema) -> str:
    if isinstance(part, Terms):
        return _terms(part, schema)
    must, should, must_not = each(part, lambda m: _text(m, schema))
    wanted = f"({' '.join(must)})" if must else _EVERY
    either = f"({' | '.join(should)})"
    if should:
        wanted = f"({wanted} MAYBE {either})" if must else either
    return f"({' -'.join([wanted, *must_not])})"


def _terms(part: Terms, schema: Schema) -> str:
    fields = part.fields or tuple(f.name for f in schema.of_type(FieldType.TEXT))
    known = sought(part)
    if not fields or not known:
        return _NONE
    where = "@(" + ",".join(f"f_{values.escaped(name)}" for name in fields) + ")"
    if part.mode is Mode.PREFIX:
        known = [f"{t}*" for t in known]
    words = (" | " if part.mode is Mode.ANY else " ").join(known)
    return f'({where} "{words}")' if part.mode is Mode.PHRASE else f"({where} {words})"


def _wanted(match: Match | None) -> Iterator[str]:
    """The words that a match is about."""
    for part in leaves(match):
        star = "*" if part.mode is Mode.PREFIX else ""
        yield from (t + star for t in part.terms if is_term(t))


def _snippet(name: str, words: str) -> str:
    # The strings hold no control characters, so one can part the pieces.
    options = f"'chunk_separator={_BETWEEN_PIECES}', 'allow_empty=1'"
    return f"SNIPPET(t_{values.escaped(name)}, '{words}', {options})"


class _Parts:
    """Filters and sort keys: conditions on numbers, and the columns that are computed for them."""

    def __init__(self, schema: Schema, title: str) -> None:
        self.schema = schema
        self.title = title
        self.conditions: list[Condition] = []
        self.computed: list[tuple[str, str]] = []

    def filter(self, part: Filter) -> None:
        kind, name = self.schema[part.field].type, values.escaped(part.field)
        attribute, here = values.attribute(part.field, self.schema), OneOf(f"h_{name}", (1,))
        if isinstance(part, Range):
            low, high = self._bounds(part, kind)
            ordered = f"o_{name}" if kind in _WORDED else attribute
            self.conditions.append(Between(ordered, low, high) if low <= high else self._never())
            if kind is not FieldType.KEYWORDS:
                self.conditions.append(here)
            return
        if kind in _WORDED:
            numbers = tuple(sorted(values.hashed(str(v)) for v in part.values))
        else:
            numbers = tuple(sorted({_number(v, kind) for v in part.values}))
        exclude = isinstance(part, NotIn)
        if not numbers:
            self.conditions += [] if exclude else [self._never()]
        elif kind in _WORDED:
            self.conditions.append(OneOf(f"x_{name}", numbers, exclude))
        elif exclude:  # an unset number is zero, so a list alone would exclude the missing with it
            listed = f"IN({attribute},{values.literals(numbers)})"
            self.conditions.append(OneOf(self._column(f"IF(h_{name}=1,{listed},0)"), (0,)))
        else:
            self.conditions += [OneOf(attribute, numbers), here]

    def order(self, keys: Sequence[Sort]) -> Iterator[tuple[str, bool]]:
        """Sort keys, missing values last. Ties go by Sphinx's own number: the order of ingest.

        Whether a value is there is a key of its own; where that makes more than five, numbers get
        the greatest or the least value in its stead.
        """
        slots = sum(1 if key.field == "_score" else 2 for key in keys)
        for key in keys:
            if key.field == "_score":
                yield "weight()", key.descending
                continue
            attribute = values.attribute(key.field, self.schema)
            here = f"h_{values.escaped(key.field)}"
            if slots > _MOST_SORT_KEYS and self.schema[key.field].type not in _WORDED:
                slots -= 1
                end = values.LOWEST if key.descending else values.GREATEST
                yield self._column(f"IF({here}=1,{attribute},{end})"), key.descending
            else:
                yield here, True
                yield attribute, key.descending
        if slots > _MOST_SORT_KEYS:
            raise Unsupported(
                f"{self.title} cannot sort by three keywords with missing values last: upstream "
                "must: it sorts by at most five attributes"
            )

    def counts(self, name: str, limit: int, sort: str) -> Listing:
        """Counts by a field, the greatest first, ties by value where Sphinx can sort by it."""
        kind, attribute = self.schema[name].type, values.attribute(name, self.schema)
        by = value = attribute
        order: tuple[tuple[str, bool], ...] = (("n", True), (attribute, False))
        own: list[Condition] = []
        kept = limit
        if kind is FieldType.KEYWORDS:
            # Sorting by JSON ends searchd 2.2.11; so more than asked for, sorted when decoded.
            by, value, order, kept = f"{attribute}.v", "GROUPBY()", order[:1], 2 * limit + 20
        elif kind is FieldType.KEYWORD:  # those without one are a group, left out afterwards
            kept = limit + 1
        else:
            own = [OneOf(f"h_{values.escaped(name)}", (1,))]
        return Listing(
            columns=((value, f"{sort}{limit}_{attribute}"), *self.computed),
            conditions=(*self.conditions, *own),
            order=order,
            offset=0,
            limit=kept,
            matches=max(_GROUP_MATCHES, kept),
            by=by,
        )

    def _column(self, expression: str) -> str:
        name = f"c{len(self.computed)}"
        self.computed.append((expression, name))
        return name

    def _never(self) -> Condition:
        """A condition that nothing meets."""
        return OneOf(self._column("0"), (1,))

    def _bounds(self, part: Range, kind: FieldType) -> tuple[int, int]:
        """The least and the greatest whole number within the bounds, cut to 64 bits."""
        bounds: list[Any] = [part.low, part.high]
        given = [bound for bound in bounds if bound is not None]
        if kind in _WORDED:
            for bound in given:
                if not values.exact_in_order(str(bound)):
                    raise Unsupported(
                        f"{self.title} cannot do a range to {bound!r}: we could: keywords are "
                        "ordered by a number made of their first eight bytes, so a bound may have "
                        "at most seven"
                    )
            bounds = [None if b is None else values.order(str(b)) for b in bounds]
        elif kind is FieldType.FLOAT:
            bounds = [None if b is None else sortable(float(b)) for b in bounds]
        elif any(isinstance(bound, str) for bound in given):
            raise Unsupported(
                f"{self.title} cannot do this range: {part.field} holds numbers, so its bounds "
                "cannot be texts"
            )
        low, high = bounds
        least = values.LOWEST if low is None else math.ceil(low)
        most = values.GREATEST if high is None else math.floor(high)
        least += least == low and not part.include_low
        most -= most == high and not part.include_high
        return max(least, values.LOWEST), min(most, values.GREATEST)


def _number(value: str | int | float | bool, kind: FieldType) -> int:
    number = float(value) if isinstance(value, str) else value
    return sortable(number) if kind is FieldType.FLOAT else int(number)


def selected(columns: Iterable[tuple[str, str]]) -> str:
    """The columns as both wires name them."""
    return ", ".join(e if e == name else f"{e} AS {name}" for e, name in columns)


def answer(
    total: int,
    page: Iterable[Mapping[str, Any]],
    counts: Iterable[tuple[str, Iterable[tuple[str | int | None, int]]]],
    warnings: tuple[str, ...],
    partial: bool = False,
) -> Hits:
    """Hits from rows by column, and the pairs of each grouping by its label.

    A warning means that a part did not answer.
    """
    facets: dict[str, Sequence[tuple[str, int]]] = {}
    groups: Sequence[tuple[str, int]] = ()
    for label, pairs in counts:
        limit, _, attribute = label[1:].partition("_")
        found = _counted(attribute, pairs)[: int(limit)]
        if label[0] == "g":
            groups = found
        else:
            facets[values.field(attribute)] = found
    hits = tuple(map(_hit, page))
    return Hits(total, hits, True, facets, groups, warnings, partial or bool(warnings))


def _counted(
    attribute: str, pairs: Iterable[tuple[str | int | None, int]]
) -> list[tuple[str, int]]:
    """The counts of an attribute's values, the greatest first; without those that have none."""
    if attribute[:2] in ("k_", "l_"):
        found = [(values.decoded(str(value)), n) for value, n in pairs if value not in (None, "")]
    else:
        found = [(values.value_of(attribute, v or 0), n) for v, n in pairs if v is not None]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


def _hit(row: Mapping[str, Any]) -> Hit:
    """A hit from its columns; a field is there where its flag says so."""
    found, shown = {}, {}
    for name, written in row.items():
        attribute = name.removesuffix(".v")
        if name.startswith("s_"):
            cut = str(written or "").split(_BETWEEN_PIECES)
            if pieces := [values.decoded(piece) for piece in cut if piece.strip()]:
                shown[values.field(name)] = pieces
        elif attribute[:2] in values.PREFIX.values() and row.get(f"h_{attribute[2:]}") in ("1", 1):
            found[values.field(attribute)] = values.value_of(attribute, written or "")
    score = row.get(_SCORE)
    key = values.decoded(str(row[values.KEY]))
    return Hit(key, None if score is None else int(score), found, shown)
