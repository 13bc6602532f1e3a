"""How a corpus's schema becomes a Sensei table, and its documents Sensei's events.

A field becomes a column ``X_NAME``; X says its type, so that a reply can be read without the
schema. Bobo knows no missing values when it sorts, so each single-valued field has a companion
``h_NAME`` that is there where the document has the field. A document's number is its place in the
corpus added to ``FIRST``: all have 19 digits, because Sensei compares them as text where it merges
partitions. Numbers are texts of 20 digits that sort as the numbers do: Bobo 4 loses documents in
ranges that cut the negative numbers of its own columns, and Sensei keeps four decimals of a double.
Keywords begin with ``=``: for Bobo any value that begins with a hyphen is a negative number, so it
loses documents of those as well; and the empty string becomes a value.
What is returned, the id among it, is stored as JSON of ours.

That is for portable queries. Operations are asked in Sensei's own words, and those name columns
as a person declares them; that is ``columns = "plain"``, and the module of that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import orjson

from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines.column_form import escaped, sortable, unescaped, unsortable
from searchbench.engines.write import Placed

KINDS = ("encoded", "plain")
FIRST = 10**18
HERE = "h"
SEVERAL = "m_"
_WORD = "="
_STRING = 'type="string"'
_COLUMNS = {
    FieldType.TEXT: ("t", 'type="text"'),
    FieldType.KEYWORD: ("k", _STRING),
    FieldType.KEYWORDS: ("m", f'{_STRING} multi="true" delimiter=","'),
    FieldType.INTEGER: ("i", _STRING),
    FieldType.FLOAT: ("f", _STRING),
    FieldType.DATE: ("d", _STRING),
    FieldType.BOOLEAN: ("b", _STRING),
}
NUMBERS = (FieldType.INTEGER, FieldType.FLOAT, FieldType.DATE)
_NUMBERED = tuple(_COLUMNS[kind][0] for kind in NUMBERS)
_HALF = 2**63


def column(field: Field) -> str:
    """The column of a field: letters and digits as they are, the rest escaped, so one to one."""
    return f"{_COLUMNS[field.type][0]}_{escaped(field.name)}"


def here(field: Field) -> str:
    """The column that has a value where the document has the field."""
    return f"{HERE}_{escaped(field.name)}"


def field_name(name: str) -> str:
    """The field whose column is ``name``."""
    return unescaped(name[2:])


def value(name: str, text: str) -> str | int | float | bool:
    """A value of the column ``name`` as Sensei writes it → as the corpus has it."""
    kind = name[0]
    if kind in _NUMBERED:
        whole = int(text) - _HALF
        return unsortable(whole) if kind == "f" else whole
    return text == "true" if kind == "b" else text.removeprefix(_WORD)


def word(text: str) -> str:
    """A keyword as its column has it."""
    return _WORD + text


def number(kind: FieldType, held: object) -> str | None:
    """A number as 20 digits, a float by its bits; None where ``held`` is none of that type."""
    if isinstance(held, bool) or not isinstance(held, int | float):
        return None
    if kind is FieldType.FLOAT:
        return f"{sortable(held) + _HALF:020d}"
    whole = int(held)
    return f"{whole + _HALF:020d}" if whole == held and -_HALF <= whole < _HALF else None


def ranged(column: str) -> str:
    """The facet of a column that BQL allows a range of."""
    return f"r{column}"


def schema_xml(schema: Schema, ranges: bool) -> str:
    """schema.xml: a column and a facet for each field and companion, text without a facet.

    ``ranges``: a second facet for each field of one value, which takes as much memory again.
    """
    columns, facets = [], []
    for field in schema.fields:
        columns.append(f'<column name="{column(field)}" {_COLUMNS[field.type][1]} />')
        if field.type is FieldType.TEXT:
            continue
        several = field.type is FieldType.KEYWORDS
        facets.append(f'<facet name="{column(field)}" type="{"multi" if several else "simple"}" />')
        if not several:
            columns.append(f'<column name="{here(field)}" type="string" />')
            facets.append(f'<facet name="{here(field)}" type="simple" />')
            if ranges:
                name = column(field)
                facets.append(f'<facet name="{ranged(name)}" type="range" column="{name}" />')
    if not facets:  # without any, Sensei does not make its own of the documents' numbers
        columns.append('<column name="empty" type="string" />')
        facets.append('<facet name="empty" type="simple" />')
    return xml(columns, facets)


def xml(columns: Sequence[str], facets: Sequence[str]) -> str:
    """The schema of these columns and facets, each an element."""
    inner = "\n    ".join(columns)
    outer = "\n    ".join(facets)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<schema>\n'
        '  <table uid="uid" src-data-store="lucene" src-data-field="src_data"'
        f' compress-src-data="false">\n    {inner}\n  </table>\n'
        f"  <facets>\n    {outer}\n  </facets>\n</schema>\n"
    )


def events(documents: Iterable[Document], start: int, schema: Schema) -> bytes:
    """One JSON object a line; ``start``: place of the first document in the corpus."""
    fields = {f.name: f for f in schema.fields}
    return b"\n".join(
        orjson.dumps(_event(document, FIRST + place, fields))
        for place, document in enumerate(documents, start)
    )


def replaced(changed: Iterable[Placed], schema: Schema) -> bytes:
    """The events that put documents in the place of what they were."""
    fields = {f.name: f for f in schema.fields}
    return b"\n".join(
        orjson.dumps(_event(each.document, FIRST + each.was, fields)) for each in changed
    )


def removed(gone: Iterable[Placed], schema: Schema) -> bytes:
    """The events that delete documents."""
    return b"\n".join(orjson.dumps({"type": "delete", "uid": FIRST + e.was}) for e in gone)


def _event(document: Document, uid: int, fields: dict[str, Field]) -> dict[str, object]:
    stored = {k: v for k, v in document.values.items() if fields[k].stored}
    source = orjson.dumps({"id": document.id, "v": stored}).decode()
    event: dict[str, object] = {"uid": uid, "src_data": source}
    for name, held in document.values.items():
        field = fields[name]
        if held == []:  # it has no term in the index
            continue
        event[column(field)] = _written(field.type, held)
        if field.type not in (FieldType.TEXT, FieldType.KEYWORDS):
            event[here(field)] = "1"
    return event


def _written(kind: FieldType, held: object) -> object:
    if isinstance(held, list):
        return ",".join(word(v).replace("\\", "\\\\").replace(",", "\\,") for v in held)
    if kind is FieldType.KEYWORD:
        return word(str(held))
    if kind in NUMBERS:
        return number(kind, held) or str(held)  # which the server refuses
    if kind is FieldType.BOOLEAN and isinstance(held, bool):
        return "true" if held else "false"
    return held
