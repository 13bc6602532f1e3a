"""The cars of a published comparison of SenseiDB with MySQL (2012): 15,000, made to its counts.

The file that it used is no longer published. Its columns are known, and what its queries counted on
that file repeated 200 times: 1,803,200 rows with a mileage above 12,750, how many of those have
each colour and each category, and how many of each colour have the tag "cool". These cars have
just those counts (``PASSING``, ``COLOURS``, ``CATEGORIES``, ``COOL``, for one copy), and its rows
where its queries say which they are: the first that pass, the first black ones, the cheapest black
one, the first compact and cool ones. Of one colour (black) and one category (compact) the number
follows from the others; how many white ones are cool was not printed and is taken at the share of
the others. Everything else (cities, makes, prices, years, further tags) is invented.

Repeated, the ids go on: ``scale = 200`` makes 3,000,000 rows, 1 to 3,000,000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from searchbench.corpora.corpus import Document, Field, FieldType, Index, Schema, Table
from searchbench.corpora.laws import Integers, raw, unit
from searchbench.corpora.table import TABLE_NAME, indexes_of, misnamed

CARS = 15_000
MILEAGE = 12_750
PASSING = 9016
"""Cars with a mileage above MILEAGE."""
COLOURS = {
    "black": 1875, "blue": 675, "gold": 657, "green": 642, "red": 1271, "silver": 1246,
    "white": 1326, "yellow": 1324,
}  # fmt: skip
"""Of those that pass, by colour."""
CATEGORIES = {
    "compact": 2457, "exotic": 1113, "luxury": 1653, "mini-van": 526, "sedan": 666,
    "sports car": 967, "station wagon": 139, "sub-compact": 294, "suv": 819, "truck": 284,
    "van": 98,
}  # fmt: skip
"""Of those that pass, by category."""
COOL = {
    "black": 928, "blue": 345, "gold": 318, "green": 321, "red": 619, "silver": 598, "white": 657,
    "yellow": 679,
}  # fmt: skip
"""Of those that pass, with the tag "cool", by colour; white is not from the publication."""
FIRST_PASSING = (1, 2, 3)
BLACK = (12, 55, 57, 60, 63, 65, 66, 70, 81, 84, 90)
"""The first ids that pass and are black; the publication skips the first of them, ours."""
COMPACT_AND_COOL = (4, 7, 8, 98, 99, 100, 101, 102, 103, 105, 106)
"""The first ids that pass, are compact and cool; it skips the first of them, ours."""
CHEAPEST_BLACK = 2205

FIELDS = (
    Field("category", FieldType.KEYWORD),
    Field("city", FieldType.KEYWORD),
    Field("mileage", FieldType.INTEGER),
    Field("tags", FieldType.KEYWORDS),
    Field("color", FieldType.KEYWORD),
    Field("price", FieldType.FLOAT),
    Field("groupid", FieldType.INTEGER),
    Field("makemodel", FieldType.KEYWORD),
    Field("year", FieldType.INTEGER),
    Field("contents", FieldType.TEXT),
)
INDEXES = (Index(("color",)), Index(("price",)))
"""Those of the publication; the full text of ``contents`` is indexed as every text is."""

_SEED = 2012
_TAGS = (
    "automatic", "chick magnet", "electric", "expensive", "family", "favorite", "highend", "hybrid",
    "leather", "macho", "moon-roof", "mp3", "navigation", "reliable", "soccer mom", "towing",
)  # fmt: skip
_CITIES = (
    "u.s.a./arizona/phoenix", "u.s.a./california/los angeles", "u.s.a./california/san francisco",
    "u.s.a./california/san jose", "u.s.a./florida/miami", "u.s.a./florida/tampa",
    "u.s.a./new york/new york", "u.s.a./texas/austin", "u.s.a./texas/dallas",
    "u.s.a./texas/houston", "u.s.a./utah/salt lake city", "u.s.a./washington/seattle",
    "canada/ontario/toronto", "canada/quebec/montreal", "china/beijing/beijing",
    "japan/kanto/tokyo",
)  # fmt: skip
_MODELS = (
    "asian/acura/integra", "asian/honda/accord", "asian/honda/civic", "asian/mazda/miata",
    "asian/nissan/altima", "asian/subaru/outback", "asian/toyota/camry", "asian/toyota/corolla",
    "european/audi/a4", "european/bmw/325i", "european/ferrari/f355", "european/jaguar/xj8",
    "european/mercedes-benz/c230", "european/porsche/911", "european/saab/900",
    "european/volkswagen/golf", "european/volvo/850", "north american/buick/regal",
    "north american/chevrolet/corvette", "north american/chrysler/sebring",
    "north american/dodge/caravan", "north american/ford/escort", "north american/ford/f-150",
    "north american/jeep/cherokee", "north american/lincoln/navigator",
    "north american/pontiac/firebird",
)  # fmt: skip

_Kind = tuple[str, str, bool]


@dataclass(frozen=True, slots=True)
class Cars:
    """The cars, so many times; copy after copy, the ids going on."""

    name: str
    table: str
    indexes: tuple[Index, ...] = INDEXES
    copies: int = 1

    @property
    def schema(self) -> Schema:
        """The columns of the publication; ``id`` is the key."""
        return Schema(FIELDS, Table(self.table, (Field("id", FieldType.INTEGER),), self.indexes))

    @property
    def count(self) -> int:
        """How many there are."""
        return CARS * self.copies

    def repeated(self, times: int) -> Cars:
        """All of them so many times, as a corpus again."""
        name = f"{self.name} ×{times}"
        return Cars(name, self.table, self.indexes, self.copies * times)

    def documents(self) -> Iterator[Document]:
        """All, in the order of their ids."""
        return self.between(0, self.count)

    def between(self, start: int, stop: int) -> Iterator[Document]:
        """Those from place ``start`` (from 0) up to ``stop``."""
        made = _made()
        for place in range(start, min(stop, self.count)):
            yield Document(str(place + 1), made[place % CARS])

    def key_columns(self) -> dict[str, Integers]:
        """The ids."""
        return {"id": np.arange(1, self.count + 1, dtype=np.int64)}


def open_cars(*, table: str = "", indexes: Sequence[object] | None = None, name: str = "") -> Cars:
    """The cars; CorpusError where an index is none."""
    if not TABLE_NAME.fullmatch(table or "car"):
        raise misnamed(table)
    chosen = INDEXES if indexes is None else indexes_of(indexes, FIELDS)
    return Cars(name or "cars", table or "car", chosen)


@cache
def _made() -> tuple[dict[str, Any], ...]:
    """The values of each car, by its place from 0."""
    kinds = _kinds()
    passes, rank = _drawn("mileage"), _drawn("price")
    tags, city, model, year = (_drawn(name) for name in ("tags", "city", "makemodel", "year"))
    tag_rank = unit(raw(_SEED, 7, count=CARS * len(_TAGS))).reshape(CARS, len(_TAGS))
    made = []
    for place, (passing, (colour, category, cool)) in enumerate(kinds):
        others = 1 + int(tags[place] * 4)
        chosen = [_TAGS[i] for i in sorted(np.argsort(tag_rank[place])[:others])]
        # Steps of 50; those that do not pass go up to the bound itself.
        mileage = 12_800 + 50 * int(passes[place] * 226) if passing else 50 + 50 * int(
            passes[place] * 255
        )  # fmt: skip
        values: dict[str, Any] = {
            "category": category,
            "city": _CITIES[int(city[place] * len(_CITIES))],
            "mileage": mileage,
            "tags": sorted([*chosen, "cool"]) if cool else chosen,
            "color": colour,
            "price": 4000.0 + 100 * int(rank[place] * rank[place] * 160),
            "groupid": place // 10,
            "makemodel": _MODELS[int(model[place] * len(_MODELS))],
            "year": 1993 + int(year[place] * 10),
        }
        if place + 1 == CHEAPEST_BLACK:
            values["price"] = 2500.0
        values["contents"] = " ".join(
            [colour, category, *values["tags"], values["makemodel"], values["city"]]
        )
        made.append(values)
    return tuple(made)


def _kinds() -> list[tuple[bool, _Kind]]:
    """For each car whether it passes, and its colour, category and whether it is cool."""
    passing = _shuffled(_pool(COLOURS, CATEGORIES, COOL, 0), 10)
    share = (CARS - PASSING) / PASSING
    fewer = [_shared(each, share) for each in (COLOURS, CATEGORIES)]
    cool = {colour: round(COOL[colour] * share) for colour in COOL}
    failing = _shuffled(_pool(fewer[0], fewer[1], cool, 1), 11)
    # Where the publication prints ids, those are fixed, and the cars before the last of them.
    fixed = max(*BLACK, *COMPACT_AND_COOL)
    found: dict[int, tuple[bool, _Kind]] = {}
    coin = _drawn("fixed")
    for number in [CHEAPEST_BLACK, *COMPACT_AND_COOL, *BLACK, *range(1, fixed + 1)]:
        if number in found:
            continue
        passes = number in {CHEAPEST_BLACK, *FIRST_PASSING, *BLACK, *COMPACT_AND_COOL}
        passes = passes or bool(coin[number] < PASSING / CARS)
        pool = passing if passes else failing
        found[number] = passes, pool.pop(_first(pool, _wanted(number, passes)))
    rest = [(True, kind) for kind in passing] + [(False, kind) for kind in failing]
    left = iter(_shuffled(rest, 12))
    return [found.get(number) or next(left) for number in range(1, CARS + 1)]


def _wanted(number: int, passes: bool) -> Callable[[_Kind], bool]:
    """Whether the car of that number may be of a kind."""
    black = number in BLACK or number == CHEAPEST_BLACK
    open_colour = not passes or number > BLACK[-1]
    both = number in COMPACT_AND_COOL
    open_both = not passes or number > COMPACT_AND_COOL[-1]

    def fits(kind: _Kind) -> bool:
        colour, category, cool = kind
        return ((open_colour and not black) or (colour == "black") == black) and (
            open_both or (category == "compact" and cool) == both
        )

    return fits


def _pool(
    colours: Mapping[str, int], categories: Mapping[str, int], cool: Mapping[str, int], which: int
) -> list[_Kind]:
    """As many kinds as the colours count, which have the counts of all three."""
    coloured = [colour for colour, count in colours.items() for _ in range(count)]
    of_category = [category for category, count in categories.items() for _ in range(count)]
    is_cool = [place < cool[c] for c, count in colours.items() for place in range(count)]
    return list(zip(coloured, _shuffled(of_category, 13 + which), is_cool, strict=True))


def _shared(counts: Mapping[str, int], share: float) -> dict[str, int]:
    """The counts times ``share``, whole and of the right sum: the last takes what is left."""
    found = {name: round(count * share) for name, count in counts.items()}
    found[max(found, key=lambda name: found[name])] += CARS - PASSING - sum(found.values())
    return found


def _first(pool: Sequence[_Kind], fits: Callable[[_Kind], bool]) -> int:
    return next(place for place, kind in enumerate(pool) if fits(kind))


def _drawn(what: str) -> Any:
    """A number of [0, 1) for each car."""
    names = ("mileage", "price", "tags", "city", "makemodel", "year", "fixed")
    return unit(raw(_SEED, names.index(what), count=CARS))


def _shuffled(values: Sequence[Any], stream: int) -> list[Any]:
    order = np.argsort(raw(_SEED, stream, count=len(values)), kind="stable")
    return [values[place] for place in order.tolist()]
