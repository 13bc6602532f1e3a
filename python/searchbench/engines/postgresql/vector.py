"""Texts as PostgreSQL keeps them: vectors of words with their places, written as literals.

With the declared analysis PostgreSQL's own parser never sees a text (it would make URLs, numbers
and hyphenated words of it): the words and their places are what goes in. A vector holds four
fields, told apart by the labels that PostgreSQL has for weights; further fields have further
vectors. What a vector cannot hold is given up in this order: places (of phrases alone), then words
that are too long; a vector that is too large is for the server to refuse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from searchbench.corpora.corpus import FieldType, Schema
from searchbench.workload.queries.analysis import terms

LABELS = "DCBA"
"""D is what has no label, so that a single field costs nothing."""
LONGEST_WORD_BYTES = 2046
_PLACES_OF_A_WORD = 256
_LAST_PLACE = 16383
# Beyond it a word is at a place that its field has for all such words, next to no other's.
_LAST_OWN_PLACE = _LAST_PLACE - 2 * len(LABELS)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which text field is in which vector, under which label. ``fields``: the text fields."""

    fields: tuple[str, ...]

    @classmethod
    def of(cls, schema: Schema) -> Layout:
        """Of a corpus's text fields."""
        return cls(tuple(f.name for f in schema.of_type(FieldType.TEXT)))

    @property
    def vectors(self) -> tuple[tuple[str, ...], ...]:
        """The fields of each vector."""
        size = len(LABELS)
        return tuple(self.fields[i : i + size] for i in range(0, len(self.fields), size))

    def labels(self, wanted: Sequence[str]) -> dict[int, str]:
        """For each vector that holds one of ``wanted`` their labels; "" where all are wanted."""
        found = {}
        for number, fields in enumerate(self.vectors):
            labels = "".join(
                label for label, field in zip(LABELS, fields, strict=False) if field in wanted
            )
            if labels:
                found[number] = "" if len(labels) == len(fields) else labels
        return found


def column(number: int) -> str:
    """The column of a vector."""
    return f"words_{number}"


def vector(fields: Sequence[str], values: Mapping[str, object]) -> str:
    """The literal of the vector of these fields, in the order of the words' first places."""
    places: dict[str, list[tuple[int, str]]] = {}
    at = 0
    for index, field in enumerate(fields):
        mark = LABELS[index] if index else ""
        beyond = _LAST_PLACE - 2 * index
        for word in terms(str(values.get(field, ""))):
            at += 1
            place = at if at <= _LAST_OWN_PLACE else beyond
            places.setdefault(word, []).append((place, mark))
        at += 1  # no phrase goes from one field into the next
    return " ".join(
        f"'{word}':{','.join(f'{place}{mark}' for place, mark in _kept(found))}"
        for word, found in places.items()
        if _fits(word)
    )


def _fits(word: str) -> bool:
    return len(word) * 4 <= LONGEST_WORD_BYTES or len(word.encode()) <= LONGEST_WORD_BYTES


def _kept(places: list[tuple[int, str]]) -> Sequence[tuple[int, str]]:
    """As many as PostgreSQL keeps, the first of every field among them."""
    if len(places) <= _PLACES_OF_A_WORD:
        return places
    distinct = list(dict.fromkeys(places))
    firsts = {mark: (place, mark) for place, mark in reversed(distinct)}
    kept = list(firsts.values())
    others = (each for each in distinct if each not in kept)
    kept += [each for each, _ in zip(others, range(_PLACES_OF_A_WORD - len(kept)), strict=False)]
    return sorted(kept)
