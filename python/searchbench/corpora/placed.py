"""Columns of a generated table that a document's own fields are not made of: keys, texts, filling.

    integer    sequence (low, step): low + step * place, place from 0
               shuffled (low, step): the same numbers in an order drawn by the seed
               steps (low, each): low + place // each
               cycle (low, distinct): low + place % distinct
    keyword    random (length): hexadecimal digits
    text       words (words, distinct, exponent): 1 to 2 * words - 1 words by Zipf

Every other column is drawn as a field of a generated corpus (``drawn``). A value depends on the
seed, the column's name and the row's place alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from zlib import crc32

import numpy as np

from searchbench.corpora.conform import is_field_name
from searchbench.corpora.corpus import RESERVED, Field, FieldType
from searchbench.corpora.drawn import Drawn, drawn_field
from searchbench.corpora.laws import Bits, Integers, Zipf, raw, unit, word
from searchbench.errors import CorpusError
from searchbench.spec import nearest, show

BLOCK = 4096
"""Rows that are made at once."""

_ORDERS: Mapping[str, Mapping[str, int]] = {
    "sequence": {"low": 1, "step": 1},
    "shuffled": {"low": 1, "step": 1},
    "steps": {"low": 1, "each": 100},
    "cycle": {"low": 1, "distinct": 100},
}
_LEAST = {"low": -(10**15), "step": 1, "each": 1, "distinct": 1, "length": 1, "words": 1}
_MOST = {"length": 255, "words": 1000, "distinct": 1_000_000}
_ANY = 10**15
_STREAM, _COUNT = 2000, 2001
_ROUNDS = 4


class Column(Protocol):
    """One column of a generated table."""

    @property
    def field(self) -> Field:
        """Its name and type."""

    def draw(self, seed: int, block: int, count: int) -> list[Any]:
        """Values of ``count`` rows from place ``block * BLOCK`` on; None where there is none."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A column of whole numbers that follow from a row's place among ``rows``."""

    field: Field
    order: str
    options: Mapping[str, int]
    rows: int

    def draw(self, seed: int, block: int, count: int) -> list[Any]:
        """As of a column."""
        places = np.arange(block * BLOCK, block * BLOCK + count, dtype=np.int64)
        return list(self.at(seed, places).tolist())

    def at(self, seed: int, places: Integers) -> Integers:
        """The values at these places."""
        low = self.options["low"]
        if self.order == "steps":
            return low + places // self.options["each"]
        if self.order == "cycle":
            return low + places % self.options["distinct"]
        if self.order == "shuffled":
            places = permuted(places, self.rows, seed, crc32(self.field.name.encode()))
        return low + self.options["step"] * places

    @property
    def unique(self) -> bool:
        """Whether no two rows have the same value."""
        return self.order in ("sequence", "shuffled")


@dataclass(frozen=True, slots=True)
class Filled:
    """A keyword of random hexadecimal digits, which nothing compresses to less than half."""

    field: Field
    length: int

    def draw(self, seed: int, block: int, count: int) -> list[Any]:
        """As of a column."""
        each = -(-self.length // 16)
        stream = crc32(self.field.name.encode())
        digits = raw(seed, block, _STREAM, stream, count=count * each).astype("<u8").tobytes().hex()
        width = 16 * each
        return [digits[at : at + self.length] for at in range(0, count * width, width)]


@dataclass(frozen=True, slots=True)
class Worded:
    """A text of words, without grammar."""

    field: Field
    words: int
    distinct: int
    zipf: Zipf

    def draw(self, seed: int, block: int, count: int) -> list[Any]:
        """As of a column."""
        stream = crc32(self.field.name.encode())
        sizes = 1 + raw(seed, block, _COUNT, stream, count=count) % np.uint64(2 * self.words - 1)
        total = int(sizes.sum())
        ranks = self.zipf.ranks(
            unit(raw(seed, block, _STREAM, stream, count=total)), float(self.distinct)
        )
        spelt = {rank: word(rank) for rank in np.unique(ranks).tolist()}
        found = [spelt[rank] for rank in ranks.tolist()]
        ends = np.cumsum(sizes).astype(np.int64).tolist()
        return [" ".join(found[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


def permuted(places: Integers, size: int, seed: int, stream: int) -> Integers:
    """Where a permutation of 0 .. size - 1, which the seed and the stream choose, puts places.

    A Feistel network over the next even number of bits, walked until it is within (Black and
    Rogaway 2002), so that any part of the permutation is made without the rest. Places are below
    ``size``, else the walk might not end.
    """
    half = max(1, (max(size - 1, 1).bit_length() + 1) // 2)
    mask = np.uint64((1 << half) - 1)
    keys = raw(seed, _STREAM, stream, count=_ROUNDS)
    found = places.astype(np.uint64)
    outside = np.ones(len(found), np.bool_)
    while outside.any():
        left, right = found[outside] >> np.uint64(half), found[outside] & mask
        for key in keys:
            left, right = right, left ^ (_mixed(right + key) & mask)
        found[outside] = (left << np.uint64(half)) | right
        outside = found >= np.uint64(size)
    return found.astype(np.int64)


def _mixed(numbers: Bits) -> Bits:
    """The finaliser of SplitMix64 (Steele et al. 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def columns_of(columns: Mapping[str, object], rows: int) -> tuple[Column | Drawn, ...]:
    """The declared columns; CorpusError in one sentence for the first that is wrong."""
    return tuple(_column(name, value, rows) for name, value in columns.items())


def _column(name: str, value: object, rows: int) -> Column | Drawn:
    place = f"The column {name!r}"
    if name.lower() not in RESERVED[:1] and not is_field_name(name):
        raise CorpusError(f"{place} needs another name: letters, digits and underscores.")
    if not isinstance(value, Mapping):
        raise CorpusError(
            f'{place} must be a table, such as {{type = "integer", distribution = "sequence"}}.'
        )
    kind, chosen = value.get("type"), value.get("distribution")
    if kind == "integer" and chosen in _ORDERS:
        options = _options(place, value, _ORDERS[str(chosen)])
        return Counted(Field(name, FieldType.INTEGER), str(chosen), options, rows)
    if kind == "keyword" and chosen == "random":
        options = _options(place, value, {"length": 32})
        return Filled(Field(name, FieldType.KEYWORD), options["length"])
    if kind == "text":
        options = _options(place, value, {"words": 12, "distinct": 20_000}, ("exponent",))
        exponent = value.get("exponent", 1.0)
        if isinstance(exponent, bool) or not isinstance(exponent, int | float):
            raise CorpusError(f"{place} has exponent = {show(exponent)}; a number is expected.")
        zipf = Zipf(float(exponent), 2.7)
        return Worded(Field(name, FieldType.TEXT), options["words"], options["distinct"], zipf)
    if name.lower() in RESERVED[:1]:
        raise CorpusError(
            f"{place} can be an integer, with the distribution {_or(_ORDERS)}, as in "
            f'{name} = {{type = "integer", distribution = "shuffled"}}.'
        )
    try:
        return drawn_field(name, value)
    except CorpusError as error:
        said = str(error).replace(f"The field {name!r} of the generated corpus", place)
        more = {"integer": f", or {_or(_ORDERS)}", "keyword": ", or random"}.get(str(kind), "")
        if "it can be" in said:
            more = ", or text"
        raise CorpusError(said.rstrip(".") + more + ".") from None


def _options(
    place: str, given: Mapping[str, Any], known: Mapping[str, int], more: Sequence[str] = ()
) -> dict[str, int]:
    options = dict(known)
    for key, value in given.items():
        if key in ("type", "distribution", *more):
            continue
        if key not in known:
            raise CorpusError(f"{place} has no key {key!r}; {nearest(key, (*known, *more))}.")
        least, most = _LEAST[key], _MOST.get(key, _ANY)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise CorpusError(
                f"{place} has {key} = {show(value)}; a whole number from {least} to {most} is "
                "expected."
            )
        options[key] = value
    return options


def _or(names: Mapping[str, object]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"
