"""What a document's values are in Sphinx: names and numbers of its attributes, and text in them.

The declared analysis is a ``charset_table``: every letter and digit of Unicode, lowered. Sphinx
maps characters one to one and splits at those that its table does not name, which is just what is
declared.

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

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from hashlib import blake2b
from typing import Any

import orjson

from searchbench.corpora.corpus import FieldType, Schema
from searchbench.engines import column_form
from searchbench.engines.column_form import sortable, unescaped, unsortable
from searchbench.workload.queries.analysis import lower

KEY = "key"
"""The attribute that holds a document's id; Sphinx's own ids are numbers."""
ALL = "every"
"""The full-text field that has the same word in every document."""
EVERY = "\ue000"
"""That word. A character for private use is no letter, so neither a text nor a query has it as a
term."""
LOWEST, GREATEST = -(2**63), 2**63 - 1

_HIGHEST = 0x2FFFF  # the last code point that the table names
_LINE_CHARACTERS = 240
_ORDER_BYTES = 8
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
    return column_form.escaped(name, capitals=False)


def field(attribute: str) -> str:
    """The field whose value is in an attribute."""
    return unescaped(attribute[2:])


def attribute(name: str, schema: Schema) -> str:
    """The attribute that holds a field's value."""
    return PREFIX[schema[name].type] + escaped(name)


def searchable(text: str) -> str:
    """``text`` as a full-text field is given it: the same terms, and nothing that ends a row."""
    return _NO_TEXT.sub(lambda m: m[0] if m[0].isalnum() else " ", text)


def coded(text: str) -> str:
    """``text`` without control characters: they, and backslashes, are written as a backslash
    and a character for private use.
    """
    return _CONTROL.sub(lambda m: "\\" + chr(_CODE + ord(m[0])), text)


def _kept(text: str) -> str:
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


def value_of(attribute: str, written: str | int) -> Any:
    """A field's value from what Sphinx returned for its attribute."""
    prefix = attribute[:2]
    if prefix == "l_":
        return [decoded(v) for v in orjson.loads(str(written))]
    if prefix in ("t_", "k_"):
        return decoded(str(written))
    number = int(written)
    return unsortable(number) if prefix == "r_" else bool(number) if prefix == "b_" else number


def literals(numbers: Iterable[int]) -> str:
    """Numbers for a list in an expression."""
    return ",".join(map(str, numbers))


Cell = str | int | list[int]
# The columns of each type: prefix, kind, what stands for a missing value, how another is written.
_COLUMNS: Mapping[FieldType, tuple[tuple[str, str, Cell, Callable[[Any], Cell]], ...]] = {
    FieldType.TEXT: (
        ("f_", "field", "", lambda text: searchable(str(text))),
        ("t_", "string", "", lambda text: _kept(coded(str(text)))),
    ),
    FieldType.KEYWORD: (
        ("k_", "string", "", coded),
        ("x_", "bigint", 0, hashed),
        ("o_", "bigint", 0, order),
    ),
    FieldType.KEYWORDS: (
        ("l_", "json", '{"v":[]}', lambda ws: orjson.dumps({"v": [*map(coded, ws)]}).decode()),
        ("x_", "multi_64", [], lambda words: sorted(set(map(hashed, words)))),
        ("o_", "multi_64", [], lambda words: sorted(set(map(order, words)))),
    ),
    FieldType.INTEGER: (("i_", "bigint", 0, lambda number: number),),
    FieldType.DATE: (("d_", "bigint", 0, lambda number: number),),
    FieldType.FLOAT: (
        ("r_", "bigint", 0, lambda n: sortable(n) if isinstance(n, int | float) else n),
    ),
    FieldType.BOOLEAN: (("b_", "bool", 0, int),),
}
PREFIX = {kind: made[0][0] for kind, made in _COLUMNS.items()} | {FieldType.TEXT: "t_"}


def columns(schema: Schema) -> Iterator[tuple[str, str]]:
    """Name and kind of each column after the number and the id, in order.

    Kinds: field, string, bigint, bool, json, multi_64.
    """
    yield ALL, "field"
    for each in schema.fields:
        name = escaped(each.name)
        for prefix, kind, _missing, _write in _COLUMNS[each.type]:
            if prefix != "t_" or each.stored:
                yield prefix + name, kind
        yield f"h_{name}", "bool"


def row(values: Mapping[str, Any], schema: Schema) -> Iterator[Cell]:
    """The cells of one document, in the order of ``columns``."""
    yield EVERY
    for each in schema.fields:
        value = values.get(each.name)
        for prefix, _kind, missing, write in _COLUMNS[each.type]:
            if prefix != "t_" or each.stored:
                yield missing if value is None else write(value)
        yield int(value is not None)


@cache
def charset_table() -> str:
    """The value of ``charset_table``, over several lines as a configuration continues them."""
    known = [(c, ord(lower(chr(c)))) for c in range(_HIGHEST + 1) if chr(c).isalnum()]
    moves = [(code, lowered) for code, lowered in known if code != lowered]
    boards = [b for b in _runs([m for m in moves if m[1] == m[0] + 1], step=2) if b[0] < b[1]]
    paired = {code for first, last, _ in boards for code in range(first, last + 2)}
    stays = [pair for pair in known if pair[0] == pair[1] and pair[0] not in paired]
    moves = [move for move in moves if move[0] not in paired]
    # A board maps every other character to its neighbour, which stays: capital, small, capital.
    parts = [_code(ord(EVERY)), *(f"{_range(a, b + 1)}/2" for a, b, _ in boards)]
    parts += [_range(first, last) for first, last, _ in _runs(stays)]
    for first, last, distance in _runs(moves):
        parts.append(f"{_range(first, last)}->{_range(first + distance, last + distance)}")
    lines, line = [], ""
    for part in parts:
        if len(line) + len(part) > _LINE_CHARACTERS:
            lines.append(line)
            line = ""
        line += part + ", "
    return " \\\n    ".join([*lines, line.removesuffix(", ")])


def _runs(pairs: list[tuple[int, int]], step: int = 1) -> list[tuple[int, int, int]]:
    """First, last and distance to the target of each run, ``step`` apart, with one distance."""
    found: list[tuple[int, int, int]] = []
    for code, target in pairs:
        if found and found[-1][1] == code - step and found[-1][2] == target - code:
            found[-1] = (found[-1][0], code, target - code)
        else:
            found.append((code, code, target - code))
    return found


def _range(first: int, last: int) -> str:
    return _code(first) if first == last else f"{_code(first)}..{_code(last)}"


def _code(code: int) -> str:
    return f"U+{code:X}"
