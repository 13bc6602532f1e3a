"""Columns whose guessed type hangs on a few values that are unlike all the others.

One "n/a" among prices makes their column a keyword, and one number among the texts of JSON lines
leaves a column out. Filters on it then fail, so the first such value is named with its line.

A value is unlike the others of its column if it does not read as what most of them do. It is
doubted where it changed the type, and

- it says that there is no value ("n/a", "-"), and more than half of the values are of one kind;
- or at most one value in twenty is such, of ten values or more;
- or the column is left out because its values are of several kinds.

A column of numbers with a decimal comma (12,50) is doubted too, since it is read as texts.

So a column of texts of which some are numbers is not doubted, and neither are codes of digits of
which many have a letter.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchbench.corpora.conform import Inference, class_of, field_name_of, show
from searchbench.corpora.corpus import FieldType

_NO_VALUE = frozenset(
    ("-", "--", "–", "—", "?", "#n/a", "n/a", "na", "n.a.", "nan", "nil", "none", "null", "missing",
     "tbd", "unknown")
)  # fmt: skip
_SHARE, _FEWEST = 20, 10
_COMMA = re.compile(r"[-+]?\d+,\d{1,2}|[-+]?\d{1,3}(\.\d{3})+,\d+")  # 1,250 may be a thousand
_LISTED = 20  # fields; of more only those in doubt are written out
# What most values of a column are: the types that fit them, and their name in a sentence.
_USUAL: Mapping[str, tuple[tuple[FieldType, ...], str]] = {
    "number": ((FieldType.INTEGER, FieldType.FLOAT), "numbers"),
    "boolean": ((FieldType.BOOLEAN,), "true or false"),
    "date": ((FieldType.DATE,), "dates"),
    "list": ((FieldType.KEYWORDS,), "lists"),
    "text": ((FieldType.TEXT, FieldType.KEYWORD, FieldType.KEYWORDS), "texts"),
}


@dataclass(frozen=True, slots=True)
class Doubts:
    """``sentences``: by field, with file and line. ``declaring``: how types are declared."""

    sentences: Mapping[str, str]
    declaring: str

    def __str__(self) -> str:
        """All of it, a line for each sentence."""
        return "\n".join(filter(None, [*self.sentences.values(), self.declaring]))


def doubts(
    rows: Sequence[Mapping[str, Any]],
    places: Sequence[str],
    guess: Inference,
    id_column: str | None,
) -> Doubts | None:
    """What is to be doubted in the guess from these rows; None: nothing.

    ``places``: FILE:LINE of each row.
    """
    fields = {guess.columns[field.name]: field for field in guess.schema.fields}
    sentences: dict[str, str] = {}
    commas: dict[str, str] = {}
    types: dict[str, tuple[str, FieldType]] = {}
    for column in guess.notes:
        field = fields.get(column)
        if field is not None:
            types[field.name] = (column, field.type)
        if column == id_column:
            continue
        there = [(at, row[column]) for at, row in zip(places, rows, strict=True)
                 if row.get(column) is not None]  # fmt: skip
        texts = [value for _, value in there if isinstance(value, str)]
        if texts and len(texts) == len(there) and all(map(_COMMA.fullmatch, texts)):
            name = field.name if field else field_name_of(column)
            commas[name] = (
                f"{there[0][0]}: {show(texts[0])} and all others of `{column}` look like numbers "
                "with a decimal comma, and are read as texts: they cannot be sorted or filtered as "
                "numbers. Write them with a point."
            )
            continue
        found = _odd([value for _, value in there], field.type if field else None)
        if found is None:
            continue
        meant, usual, odd = found
        name = field.name if field else field_name_of(column)
        types[name] = (column, meant)
        makes, them = (f" and {len(odd) - 1:,} more make", "them") if odd[1:] else (" makes", "it")
        became = f"a column of type {field.type}" if field else "a column that is left out"
        at, first = there[odd[0]]
        sentences[name] = (
            f"{at}: {show(first)}{makes} `{column}` {became}, while {len(there) - len(odd):,} of "
            f"its first {len(there):,} values are {usual}. Correct {them}, or declare the type of "
            f"`{column}`."
        )
    declaring = "\n".join(_declaring(types, sentences)) if sentences else ""
    return Doubts(commas | sentences, declaring) if commas or sentences else None


def _odd(values: Sequence[Any], kind: FieldType | None) -> tuple[FieldType, str, list[int]] | None:
    """The type that seems to be meant, what most values are, and which are unlike them.

    ``kind``: what was guessed; None: the column is left out.
    """
    classes = [class_of(value) for value in values]
    if not classes or set(classes) <= {"integer", "zeros"}:  # codes with leading zeros
        return None
    alike = ["number" if each in ("integer", "float") else each for each in classes]
    usual = Counter(alike).most_common(1)[0][0]
    if usual not in _USUAL or kind in _USUAL[usual][0]:
        return None
    if usual == "text":  # in JSON a text may read as a number
        odd = [i for i, value in enumerate(values) if not isinstance(value, str)]
    else:
        odd = [i for i, each in enumerate(alike) if each != usual]
    mixed = kind is None and "object" not in classes
    if not odd or not (mixed or _few([values[i] for i in odd], len(values))):
        return None
    fitting, called = _USUAL[usual]
    whole = usual != "number" or "float" not in classes
    return fitting[0] if whole else FieldType.FLOAT, called, odd


def _few(odd: Sequence[Any], of: int) -> bool:
    if all(isinstance(value, str) and value.strip().lower() in _NO_VALUE for value in odd):
        return 2 * len(odd) < of
    return of >= _FEWEST and len(odd) <= max(1, of // _SHARE)


def _declaring(
    types: Mapping[str, tuple[str, FieldType]], doubted: Mapping[str, str]
) -> Iterator[str]:
    """Lines that can be put into [corpus]: every field, since only those declared are read."""
    yield (
        "A missing value is an empty cell, or null in JSON. Declare in [corpus] all fields that "
        "are wanted; they seem to be meant as:"
    )
    listed = types if len(types) <= _LISTED else {name: types[name] for name in doubted}
    for name, (column, kind) in listed.items():
        declared = f'"{kind}"'
        if column != name:
            declared = f'{{ type = "{kind}", column = {json.dumps(column, ensure_ascii=False)} }}'
        yield f"  fields.{name} = {declared}"
    if len(listed) < len(types):
        yield "  (`searchbench corpus inspect FILE` lists the others)"
    yield '  bad_rows = "skip"  # leaves out rows that do not fit'
