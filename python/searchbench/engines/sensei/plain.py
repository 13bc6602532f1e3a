"""Columns as a person declares them: each field under its own name and of its own type.

For operations, which ask in Sensei's own words. Where the corpus is a table whose key is one whole
number, that number is the uid, so that ``_uid`` is the row's own. A number has a facet that takes
ranges in both languages; a keyword has a facet that counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

import orjson

from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines.sensei.columns import xml
from searchbench.engines.sensei.request import SOURCE, UID
from searchbench.engines.write import Placed
from searchbench.workload.queries.algebra import Query, Terms

_STRING = 'type="string"'
_COLUMNS = {
    FieldType.TEXT: 'type="text"',
    FieldType.KEYWORD: _STRING,
    FieldType.KEYWORDS: f'{_STRING} multi="true" delimiter=","',
    FieldType.INTEGER: 'type="long"',
    FieldType.FLOAT: 'type="double"',
    FieldType.DATE: 'type="long"',
    FieldType.BOOLEAN: _STRING,
}
_FACETS = {
    FieldType.KEYWORD: "simple",
    FieldType.KEYWORDS: "multi",
    FieldType.INTEGER: "range",
    FieldType.FLOAT: "range",
    FieldType.DATE: "range",
    FieldType.BOOLEAN: "simple",
}


def schema_xml(schema: Schema) -> str:
    """schema.xml: a column for each field, and a facet but for text."""
    columns, facets = [], []
    for field in schema.columns:
        name = quoteattr(field.name)
        columns.append(f"<column name={name} {_COLUMNS[field.type]} />")
        if (kind := _FACETS.get(field.type)) is not None:
            facets.append(f'<facet name={name} type="{kind}" />')
    return xml(columns, facets)


def events(documents: Iterable[Document], start: int, schema: Schema) -> bytes:
    """One JSON object a line; ``start``: place of the first document in the corpus."""
    fields = {f.name: f for f in schema.columns}
    key = numbered(schema)
    return b"\n".join(
        orjson.dumps(_event(document, place, fields, key))
        for place, document in enumerate(documents, start + 1)
    )


def replaced(changed: Iterable[Placed], schema: Schema) -> bytes:
    """The events that put documents in the place of what they were."""
    fields, key = {f.name: f for f in schema.columns}, numbered(schema)
    return b"\n".join(
        orjson.dumps(_event(each.document, each.was + 1, fields, key)) for each in changed
    )


def removed(gone: Iterable[Placed], schema: Schema) -> bytes:
    """The events that delete documents."""
    key = numbered(schema)
    uids = (each.was + 1 if key is None else int(each.document.id) for each in gone)
    return b"\n".join(orjson.dumps({"type": "delete", "uid": uid}) for uid in uids)


def words(query: Query) -> dict[str, object]:
    """What asks for documents that have one of some words, in any order."""
    assert isinstance(query.match, Terms)
    each = [{"term": {name: word}} for name in query.match.fields for word in query.match.terms]
    return {
        "query": each[0] if len(each) == 1 else {"bool": {"should": each}},
        "from": 0,
        "size": query.limit,
        "fetchStoredValue": True,
        "meta": {"select_list": [UID, SOURCE]},
    }


def numbered(schema: Schema) -> Field | None:
    """The column that is the uid; None where documents are counted from 1."""
    table = schema.table
    if table is not None and len(table.key) == 1 and table.key[0].type is FieldType.INTEGER:
        return table.key[0]
    return None


def _event(
    document: Document, place: int, fields: dict[str, Field], key: Field | None
) -> dict[str, object]:
    event: dict[str, object] = {
        "uid": place if key is None else int(document.id),
        "src_data": orjson.dumps({"id": document.id, "v": dict(document.values)}).decode(),
    }
    if key is not None:
        event[key.name] = int(document.id)
    for name, held in document.values.items():
        if held != []:  # it has no term in the index
            event[name] = _written(fields[name].type, held)
    return event


def _written(kind: FieldType, held: object) -> object:
    if isinstance(held, list):
        return ",".join(str(v).replace("\\", "\\\\").replace(",", "\\,") for v in held)
    if kind is FieldType.BOOLEAN:
        return "true" if held else "false"
    return held
