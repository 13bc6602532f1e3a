"""What a document's values are in Sphinx: names and numbers of its attributes, and text in them.

A field NAME of the schema has, by its type,

    text        f_NAME, full-text; t_NAME, a string, where it is stored
    keyword     k_NAME, a string; x_NAME, its hash, for lists of values; o_NAME, its first eight
                bytes as a number, for ranges
    keywords    l_NAME, JSON, an object whose "v" is the list; x_NAME and o_NAME with several values
    integer     i_NAME, a bigint; date: d_NAME, the same
    float       r_NAME, a bigint in the order of the numbers, because Sphinx's own have 32 bits
    boolean     b_NAME, one bit

and h_NAME, one bit: whether a document has it. Sphinx knows no missing values, only zero.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

import orjson

from searchbench.corpora.corpus import FieldType, Schema
from searchbench.engines.sphinx.charset import EVERY

KEY = "key"
"""The attribute that holds a document's id; Sphinx's own ids are numbers."""
ALL = "every"
"""The full-text field that has the same word in every document."""
LOWEST, GREATEST = -(2**63), 2**63 - 1

PREFIX = {
    FieldType.TEXT: "t_",
    FieldType.KEYWORD: "k_",
    FieldType.KEYWORDS: "l_",
    FieldType.INTEGER: "i_",
    FieldType.DATE: "d_",
    FieldType.FLOAT: "r_",
    FieldType.BOOLEAN: "b_",
}
_ORDER_BYTES = 8
_ESCAPED = re.compile(r"_(?:_|([0-9a-f]+)_)")
# What must not reach a full-text field: control characters that end a column or a row, our own
# word, and the planes in which Sphinx takes every character for a letter.
_NO_TEXT = re.compile(f"[\x00-\x1f\x7f{EVERY}\U00030000-\U0010ffff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")
_LONGEST = 2**22
# A coded character must part words as it does itself, so it is no letter and no digit.
_CODE = 0xE100
_CODED = re.compile(f"\\\\([{chr(_CODE)}-{chr(_CODE + 0x7F)}])")


def escaped(name: str) -> str:
    """A field's name in what Sphinx allows, one to one: it does not tell small from capital."""
    return "".join(
        c if c.isascii() and (c.isdigit() or c.islower()) else "__" if c == "_" else f"_{ord(c):x}_"
        for c in name
    )


def field(attribute: str) -> str:
    """The field whose value is in an attribute."""
    return _ESCAPED.sub(lambda m: chr(int(m[1], 16)) if m[1] else "_", attribute[2:])


def attribute(name: str, schema: Schema) -> str:
    """The attribute that holds a field's value."""
    return PREFIX[schema[name].type] + escaped(name)


def columns(schema: Schema) -> Iterator[tuple[str, str]]:
    """Name and kind of each column after the number and the id, in order.

    Kinds: field, string, bigint, bool, json, multi_64.
    """
    yield ALL, "field"
    for each in schema.fields:
        name = escaped(each.name)
        if each.type is FieldType.TEXT:
            yield f"f_{name}", "field"
            if each.stored:
                yield f"t_{name}", "string"
        elif each.type is FieldType.KEYWORD:
            yield f"k_{name}", "string"
            yield f"x_{name}", "bigint"
            yield f"o_{name}", "bigint"
        elif each.type is FieldType.KEYWORDS:
            yield f"l_{name}", "json"
            yield f"x_{name}", "multi_64"
            yield f"o_{name}", "multi_64"
        elif each.type is FieldType.BOOLEAN:
            yield f"b_{name}", "bool"
        else:
            yield f"{PREFIX[each.type]}{name}", "bigint"
        yield f"h_{name}", "bool"


Cell = str | int | list[int]


def row(values: Mapping[str, Any], schema: Schema) -> Iterator[Cell]:
    """The cells of one document, in the order of ``columns``."""
    yield EVERY
    for each in schema.fields:
        value = values.get(each.name)
        there = int(value is not None)
        if each.type is FieldType.TEXT:
            yield "" if value is None else searchable(str(value))
            if each.stored:
                yield "" if value is None else kept(coded(str(value)))
        elif each.type is FieldType.KEYWORD:
            yield "" if value is None else coded(value)
            yield 0 if value is None else hashed(value)
            yield 0 if value is None else order(value)
        elif each.type is FieldType.KEYWORDS:
            held: list[str] = value or []
            yield orjson.dumps({"v": [coded(v) for v in held]}).decode()
            yield sorted({hashed(v) for v in held})
            yield sorted({order(v) for v in held})
        elif value is None:
            yield 0
        elif each.type is FieldType.FLOAT and isinstance(value, int | float):
            yield sortable(value)
        elif each.type is FieldType.BOOLEAN:
            yield int(value)
        else:
            yield value
        yield there


def searchable(text: str) -> str:
    """``text`` as a full-text field is given it: the same terms, and nothing that ends a row."""
    return _NO_TEXT.sub(lambda m: m[0] if m[0].isalnum() else " ", text)


def coded(text: str) -> str:
    """``text`` without control characters: they, and backslashes, are written as a backslash
    and a character for private use.
    """
    return _CONTROL.sub(lambda m: "\\" + chr(_CODE + ord(m[0])), text)


def kept(text: str) -> str:
    """The beginning of a coded text, as long as a string can be: its length has 22 bits."""
    if len(text) * 4 < _LONGEST:
        return text
    return text.encode()[: _LONGEST - 1].decode(errors="ignore").removesuffix("\\")


def decoded(text: str) -> str:
    """The text that ``coded`` wrote."""
    return _CODED.sub(lambda m: chr(ord(m[1]) - _CODE), text)


def hashed(text: str) -> int:
    """63 bits that stand for a keyword where only equality counts."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def order(text: str) -> int:
    """The first eight bytes as a number that sorts as they do."""
    raw = text.encode()[:_ORDER_BYTES].ljust(_ORDER_BYTES, b"\0")
    return int.from_bytes(raw, "big") - 2**63


def exact_in_order(text: str) -> bool:
    """Whether ``order`` of this text is that of no other, so that a bound is exact."""
    return len(text.encode()) < _ORDER_BYTES and "\0" not in text


def sortable(number: int | float) -> int:
    """A double as an integer that sorts as it does."""
    bits: int = struct.unpack(">q", struct.pack(">d", number or 0.0))[0]
    return bits if bits >= 0 else bits ^ GREATEST


def unsortable(bits: int) -> float:
    """The double that ``sortable`` was given."""
    number: float = struct.unpack(">d", struct.pack(">q", bits if bits >= 0 else bits ^ GREATEST))[
        0
    ]
    return number


def whole_bounds(
    low: int | float | None, high: int | float | None, include_low: bool, include_high: bool
) -> tuple[int, int]:
    """The least and the greatest whole number within two bounds, cut to 64 bits."""
    least = LOWEST if low is None else math.ceil(low)
    most = GREATEST if high is None else math.floor(high)
    if low is not None and not include_low and least == low:
        least += 1
    if high is not None and not include_high and most == high:
        most -= 1
    return max(least, LOWEST), min(most, GREATEST)


def value_of(attribute: str, written: str | int) -> Any:
    """A field's value from what Sphinx returned for its attribute."""
    match attribute[:2]:
        case "i_" | "d_":
            return int(written)
        case "r_":
            return unsortable(int(written))
        case "b_":
            return bool(int(written))
        case "l_":
            return [decoded(v) for v in orjson.loads(str(written))]
        case _:
            return decoded(str(written))


def literals(numbers: Iterable[int]) -> str:
    """Numbers for a list in an expression."""
    return ",".join(map(str, numbers))
