"""Fields of generated documents: each has a type and a declared distribution.

    keyword    zipf (distinct, exponent) or uniform (distinct)
    keywords   the same, and ``mean``: between 0 and twice as many, each number alike
    integer    uniform (low, high), normal (mean, sd), lognormal (median, sigma),
               zipf (distinct, exponent)
    float      uniform, normal, lognormal; ``decimals`` kept (2)
    date       uniform (low, high), ISO 8601 dates; whole seconds
    boolean    ``share`` that is true

Every field may have ``missing``, the share of documents without it, and ``stored``.
A field's values depend on the seed and its own name alone, not on the other fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any
from zlib import crc32

import numpy as np

from searchbench.corpora.conform import is_field_name
from searchbench.corpora.corpus import Field, FieldType
from searchbench.corpora.laws import Floats, Zipf, normal, raw, unit, word
from searchbench.errors import CorpusError
from searchbench.spec import show

DEFAULT_FIELDS: Mapping[str, object] = {
    "category": {"type": "keyword", "distribution": "zipf", "distinct": 50, "exponent": 1.0},
    "tags": {"type": "keywords", "distribution": "zipf", "distinct": 500, "mean": 3},
    "price": {"type": "float", "distribution": "lognormal", "median": 20.0, "sigma": 1.0},
    "popularity": {"type": "integer", "distribution": "uniform", "low": 0, "high": 1_000_000},
    "published": {"type": "date", "low": "2010-01-01", "high": "2025-01-01"},
    "available": {"type": "boolean", "share": 0.8},
}
"""The fields of a generated corpus that declares none."""

_NUMBERS: dict[str, dict[str, Any]] = {
    "uniform": {"low": 0, "high": 1000},
    "normal": {"mean": 0.0, "sd": 1.0},
    "lognormal": {"median": 1.0, "sigma": 1.0},
}
_NAMES: dict[str, dict[str, Any]] = {
    "zipf": {"distinct": 100, "exponent": 1.0},
    "uniform": {"distinct": 100},
}
_KNOWN: dict[FieldType, dict[str, dict[str, Any]]] = {
    FieldType.KEYWORD: _NAMES,
    FieldType.KEYWORDS: {name: keys | {"mean": 3} for name, keys in _NAMES.items()},
    FieldType.INTEGER: _NUMBERS | {"zipf": _NAMES["zipf"]},
    FieldType.FLOAT: {name: keys | {"decimals": 2} for name, keys in _NUMBERS.items()},
    FieldType.DATE: {"uniform": {"low": "2000-01-01", "high": "2025-01-01"}},
    FieldType.BOOLEAN: {"share": {"share": 0.5}},
}
_FIRST_NAME = 2000
"""Values of keywords are the words from this rank on, which have two syllables."""

_MOST_DISTINCT = 1_000_000
_FIELD, _PRESENT, _COUNT = 1000, 1001, 1002


@dataclass(frozen=True)
class Drawn:
    """One field and how its values are drawn; ``options`` are complete."""

    field: Field
    distribution: str
    options: Mapping[str, Any]
    missing: float

    def draw(self, seed: int, block: int, count: int) -> list[Any]:
        """``count`` canonical values for a block of documents; None where a document has none."""
        values = self._values(seed, block, count)
        if self.missing:
            absent = unit(self._raw(seed, block, _PRESENT, count)) < self.missing
            values = [None if a else v for a, v in zip(absent.tolist(), values, strict=True)]
        return values

    def _raw(self, seed: int, block: int, what: int, count: int) -> Any:
        return raw(seed, block, what, crc32(self.field.name.encode()), count=count)

    def _values(self, seed: int, block: int, count: int) -> list[Any]:
        kind = self.field.type
        if kind is FieldType.KEYWORDS:
            most = 2 * int(self.options["mean"])
            sizes = (unit(self._raw(seed, block, _COUNT, count)) * (most + 1)).astype(int).tolist()
            names = self._names(unit(self._raw(seed, block, _FIELD, count * most)))
            # A document has a keyword once: engines count the same one twice differently.
            return [
                list(dict.fromkeys(names[place * most : place * most + size])) or None
                for place, size in enumerate(sizes)
            ]
        numbers = self._raw(seed, block, _FIELD, count)
        if kind is FieldType.KEYWORD:
            return self._names(unit(numbers))
        if kind is FieldType.BOOLEAN:
            return list((unit(numbers) < self.options["share"]).tolist())
        if kind is FieldType.DATE:
            low, high = _instant(self.options["low"]), _instant(self.options["high"])
            seconds = np.floor(unit(numbers) * ((high - low) // 1000)).astype(np.int64)
            return list((low + seconds * 1000).tolist())
        if self.distribution == "zipf":
            return list(self._ranks(unit(numbers)).tolist())
        drawn = self._numbers(numbers)
        if kind is FieldType.INTEGER:
            return list(np.clip(np.floor(drawn), -(2.0**62), 2.0**62).astype(np.int64).tolist())
        return list(np.round(drawn, int(self.options["decimals"])).tolist())

    def _numbers(self, numbers: Any) -> Any:
        options = self.options
        if self.distribution == "uniform":
            # Of integers both ends are meant: 1 to 6 is a die.
            width = options["high"] - options["low"] + (self.field.type is FieldType.INTEGER)
            return options["low"] + unit(numbers) * width
        if self.distribution == "normal":
            return options["mean"] + options["sd"] * normal(numbers)
        return options["median"] * np.exp(options["sigma"] * normal(numbers))

    def _ranks(self, uniform: Floats) -> Any:
        distinct = float(self.options["distinct"])
        if self.distribution == "zipf":
            return Zipf(self.options["exponent"]).ranks(uniform, distinct)
        return (uniform * distinct).astype(np.int64) + 1

    def _names(self, uniform: Floats) -> list[str]:
        ranks = self._ranks(uniform).tolist()
        cache = self.__dict__.setdefault("_cache", {})
        for rank in set(ranks) - cache.keys():
            cache[rank] = word(_FIRST_NAME + rank)
        return [cache[rank] for rank in ranks]


def drawn_fields(fields: Mapping[str, object]) -> tuple[Drawn, ...]:
    """The declared fields; CorpusError in one sentence for the first that is wrong."""
    for name in fields:
        if name in ("title", "body"):
            raise _misnamed(f"The field {name!r} of the generated corpus")
    return tuple(drawn_field(name, value) for name, value in fields.items())


def drawn_field(name: str, value: object) -> Drawn:
    """One declared field, of any name; CorpusError in one sentence where it is wrong."""
    place = f"The field {name!r} of the generated corpus"
    if not is_field_name(name):
        raise _misnamed(place)
    if not isinstance(value, Mapping):
        raise CorpusError(
            f'{place} must be a table, such as {{type = "integer", low = 1, high = 6}}.'
        )
    kinds = [kind.value for kind in _KNOWN]
    if value.get("type") not in kinds:
        raise CorpusError(
            f"{place} has the type {show(value.get('type'))}; it can be {', '.join(kinds)}"
            + _near(value.get("type"), kinds)
        )
    kind = FieldType(str(value["type"]))
    known = _KNOWN[kind]
    distribution = str(value.get("distribution", next(iter(known))))
    if distribution not in known:
        raise CorpusError(
            f"{place} has the distribution {distribution!r}; {kind} can have {', '.join(known)}"
            + _near(distribution, list(known))
        )
    options = dict(known[distribution])
    for key, given in value.items():
        if key in ("type", "distribution", "stored", "missing"):
            continue
        if key not in options:
            raise CorpusError(
                f"{place} has no key {key!r} for {distribution}; it has {', '.join(options)}, "
                "missing, stored" + _near(key, list(options))
            )
        options[key] = _option(place, kind, key, given)
    value_of = _instant if kind is FieldType.DATE else float
    if "low" in options and value_of(options["low"]) >= value_of(options["high"]):
        raise CorpusError(f"{place} has low = {options['low']}, which is not below its high.")
    if not isinstance(value.get("stored", True), bool):
        raise CorpusError(f"{place} has stored = {value['stored']!r}; true or false is expected.")
    missing = _option(place, FieldType.FLOAT, "missing", value.get("missing", 0.0))
    return Drawn(Field(name, kind, value.get("stored", True)), distribution, options, missing)


def _misnamed(place: str) -> CorpusError:
    return CorpusError(
        f"{place} needs another name: letters, digits and underscores; "
        "and id, title and body are there already."
    )


_ANY = (-1e15, 1e15)
_LIMITS: dict[str, tuple[float, float]] = {
    "distinct": (1, _MOST_DISTINCT),
    "exponent": (0, 5),
    "mean": (1, 100),
    "sd": (0, 1e15),
    "median": (1e-9, 1e15),
    "sigma": (0, 5),
    "decimals": (0, 9),
    "share": (0, 1),
    "missing": (0, 1),
}


def _option(place: str, kind: FieldType, key: str, value: object) -> Any:
    if kind is FieldType.DATE and key in ("low", "high"):
        try:
            _instant(value)
        except ValueError:
            raise CorpusError(
                f"{place} has {key} = {value!r}; an ISO 8601 date is expected."
            ) from None
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise CorpusError(f"{place} has {key} = {value!r}; a number is expected.")
    # The mean of keywords is how many there are, the mean of a number any number.
    free = key == "mean" and kind is not FieldType.KEYWORDS
    low, high = _ANY if free else _LIMITS.get(key, _ANY)
    if not low <= value <= high:
        raise CorpusError(f"{place} has {key} = {value}; it goes from {low:g} to {high:g}.")
    return value


def _instant(value: object) -> int:
    """An ISO 8601 date, or TOML's own, in milliseconds since 1970 UTC; ValueError."""
    moment = datetime.fromisoformat(str(value))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1000


def _near(name: object, names: list[str]) -> str:
    close = get_close_matches(str(name), names, 1)
    return f"; did you mean {close[0]}?" if close else "."
