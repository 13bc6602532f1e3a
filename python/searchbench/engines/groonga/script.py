"""The query algebra in Groonga's script syntax, and field names as Groonga allows them.

Groonga knows no missing values: a number that was never set is 0, a keyword the empty string.
So each field ``v_NAME`` has a companion ``h_NAME`` that is 1 where the document has the field.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from searchbench.corpora.corpus import FieldType, Schema
from searchbench.engines.answer import Hit
from searchbench.engines.column_form import escaped, unescaped
from searchbench.engines.features import bounds, each, joined, leaves, sought
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Filter, In, Match, Mode, NotIn, Range, Sort, Terms
from searchbench.workload.queries.analysis import is_term

EVERY = "all_records()"
RELEVANCE = "relevance"  # the column that keeps the score as it was before the filters
NONE = "_id == 0"  # record numbers begin at 1
_WORDED = (FieldType.KEYWORD, FieldType.KEYWORDS)


def value(name: str) -> str:
    """The column of a field: letters and digits as they are, the rest escaped, so one to one."""
    return "v_" + escaped(name)


def here(name: str) -> str:
    """The column that says whether a document has the field."""
    return "h_" + escaped(name)


def pieces(name: str) -> str:
    """The column that is made for an answer to hold a field's snippets."""
    return "s_" + escaped(name)


def field(column: str) -> str:
    """The field whose value or snippets are in ``column``."""
    return unescaped(column[2:])


def hit(columns: Sequence[str], values: Sequence[Any]) -> Hit:
    """One row of an answer, without the fields that the document does not have."""
    row = dict(zip(columns, values, strict=True))
    return Hit(
        row["_key"],
        row.get("_score", row.get(RELEVANCE)),
        {field(c): row[c] for c in columns if c[:2] == "v_" and row["h_" + c[2:]]},
        {field(c): tuple(row[c]) for c in columns if c[:2] == "s_" and row[c]},
    )


def match(part: Match, text: Sequence[str]) -> str:
    """A filter expression; ``text``: the fields that are meant where none is named."""
    if isinstance(part, Terms):
        return _terms(part, part.fields or tuple(text))
    must, should, must_not = each(part, lambda m: match(m, text))
    if must:
        wanted = joined(must, "&&")
        if should:  # they only add to the score
            wanted = f"{wanted} && ({' || '.join([EVERY, *should])})"
    else:
        wanted = joined(should, "||") if should else EVERY
    return joined([wanted, *must_not], "&!")


def filters(parts: Sequence[Filter], schema: Schema) -> str:
    """All of the filters, as one expression."""
    return joined([_filter(part, schema) for part in parts], "&&")


def snippet(name: str, part: Match | None, normalizer: str) -> str | None:
    """Pieces of a field around the words that ``part`` looks for; None where it looks for none.

    The words are spelled out: left alone, Groonga takes them from the filter, but not prefixes.
    """
    words = dict.fromkeys(w for found in leaves(part) for w in found.terms if is_term(w))
    if not words:
        return None
    marked = ",".join(f'{text_literal(word)},"<b>","</b>"' for word in words)
    return f'snippet({value(name)},{marked},{{"normalizer":{text_literal(normalizer)}}})'


def sort_keys(keys: Sequence[Sort], schema: Schema, score: str) -> str:
    """Missing values last in both directions, ties by the order of ingest.

    ``score``: the column that holds relevance.
    """
    found = []
    for key in keys:
        sign = "-" if key.descending else ""
        if key.field == "_score":
            found.append(sign + score)
        else:
            worded = "._key" if schema[key.field].type in _WORDED else ""
            found += [f"-{here(key.field)}", f"{sign}{value(key.field)}{worded}"]
    return ",".join([*found, "_id"])


def _terms(part: Terms, fields: Sequence[str]) -> str:
    if part.mode is Mode.FUZZY:
        raise Unsupported("Groonga cannot do fuzzy")
    if not (known := sought(part)):
        return NONE
    if part.mode is Mode.PHRASE:
        return _in_any(fields, "@", " ".join(known))
    sign = "@^" if part.mode is Mode.PREFIX else "@"
    return joined(
        [_in_any(fields, sign, term) for term in known], "||" if part.mode is Mode.ANY else "&&"
    )


def _in_any(fields: Sequence[str], sign: str, words: str) -> str:
    return joined([f"{value(name)} {sign} {text_literal(words)}" for name in fields], "||")


def _filter(part: Filter, schema: Schema) -> str:
    kind = schema[part.field].type
    column, there = value(part.field), f"{here(part.field)} == 1"
    if isinstance(part, Range):
        if kind in _WORDED:
            column += "._key"
        within = [f"{column} {sign} {_literal(bound)}" for sign, bound in bounds(part)]
        return joined([*within, there], "&&")
    sign = "@" if kind is FieldType.KEYWORDS else "=="
    wanted = [f"{column} {sign} {_literal(v)}" for v in part.values]
    one_of = joined(wanted, "||") if wanted else NONE
    if kind not in _WORDED:  # an unset number or boolean would equal 0 or false
        one_of = joined([one_of, there], "&&")
    if isinstance(part, In):
        return one_of
    assert isinstance(part, NotIn)
    return f"({EVERY} &! {one_of})"


def _literal(bound: str | int | float | bool) -> str:
    if isinstance(bound, bool):
        return "true" if bound else "false"
    if isinstance(bound, str):
        return text_literal(bound)
    return format(Decimal(repr(bound)), "f")  # the syntax has no exponents


def text_literal(text: str) -> str:
    """A text as the syntax has it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
