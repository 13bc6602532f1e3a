"""Groonga's commands as HTTP requests: the table of documents, its columns, what is put in.

Shared by what takes them: Groonga and Droonga.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from searchbench.corpora.corpus import Document, FieldType, Schema
from searchbench.engines.groonga import script
from searchbench.engines.http_form import Pairs, get, post

_COLUMN_TYPES = {
    FieldType.TEXT: ("COLUMN_SCALAR", "Text"),
    FieldType.KEYWORD: ("COLUMN_SCALAR", ""),
    FieldType.KEYWORDS: ("COLUMN_VECTOR", ""),
    FieldType.INTEGER: ("COLUMN_SCALAR", "Int64"),
    FieldType.FLOAT: ("COLUMN_SCALAR", "Float"),
    FieldType.DATE: ("COLUMN_SCALAR", "Int64"),
    FieldType.BOOLEAN: ("COLUMN_SCALAR", "Bool"),
}


def do(command: str, **arguments: str) -> bytes:
    """A command by GET."""
    return get(f"/d/{command}", [("command_version", 3), *arguments.items()])


def column(table: str, name: str, flags: str, kind: str, source: str = "") -> bytes:
    """``column_create``."""
    arguments = {"table": table, "name": name, "flags": flags, "type": kind}
    return do("column_create", **arguments, **({"source": source} if source else {}))


def load(table: str, values: bytes) -> bytes:
    """``load`` of a JSON list."""
    pairs: Pairs = [("table", table), ("command_version", 3), ("output_errors", "yes")]
    return post("/d/load", pairs, values)


def short(message: str) -> str:
    """At most 200 characters: a message of Groonga's holds what it is about, whole."""
    return message if len(message) <= 200 else message[:200] + "..."


def columns(schema: Schema) -> list[bytes]:
    """Two columns of ``Docs`` for each field; keywords in a lexicon of their own, with an index."""
    made = []
    for field in schema.fields:
        flags, kind = _COLUMN_TYPES[field.type]
        name = script.value(field.name)
        if not kind:
            kind = f"K_{name}"
            made.append(do("table_create", name=kind, flags="TABLE_PAT_KEY", key_type="ShortText"))
        made.append(column("Docs", name, flags, kind))
        made.append(column("Docs", script.here(field.name), "COLUMN_SCALAR", "UInt8"))
        if kind.startswith("K_"):
            made.append(column(kind, "docs", "COLUMN_INDEX", "Docs", name))
    return made


def indexes(schema: Schema) -> list[bytes]:
    """An index of each text field in the lexicon ``Terms``."""
    return [
        column("Terms", c, "COLUMN_INDEX|WITH_POSITION", "Docs", c)
        for c in (script.value(f.name) for f in schema.of_type(FieldType.TEXT))
    ]


def rows(documents: Sequence[Document]) -> bytes:
    """The documents as ``load`` takes them; what each has is marked."""
    return orjson.dumps(
        [
            {
                "_key": d.id,
                **{script.value(k): v for k, v in d.values.items()},
                **{script.here(k): 1 for k in d.values},
            }
            for d in documents
        ]
    )
