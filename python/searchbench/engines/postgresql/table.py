"""The table of a corpus in PostgreSQL: its columns, its indexes, and documents as its rows.

Every field has a column ``v_NAME``; one with several values has ``r_NAME`` as well, which is
filled only where a document has a value twice, so that counting need not look for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines import postgres_form as form
from searchbench.engines.engine import Parameters
from searchbench.engines.postgresql.query import value
from searchbench.engines.postgresql.vector import LABELS, Layout, column, vector

_COLUMN_TYPES = {
    FieldType.TEXT: "text",
    FieldType.KEYWORD: 'text COLLATE "C"',
    FieldType.KEYWORDS: 'text[] COLLATE "C"',
    FieldType.INTEGER: "bigint",
    FieldType.FLOAT: "float8",
    FieldType.DATE: "bigint",
    FieldType.BOOLEAN: "boolean",
}
# A row of an index holds no more; a little is its own.
_KEYWORD_BYTES = 2600
# A vector holds 1 MiB; its literal is never smaller than what is kept of it.
_VECTOR_BYTES = 1_000_000
_INTEGERS = range(-(2**63), 2**63)
_TAKEN = "SELECT {key}::json AS id, docs_take({row}) AS refused"


def tables(schema: Schema, params: Parameters) -> list[str]:
    """Statements that make the table, and the function that takes single documents."""
    columns = ["n bigint NOT NULL", 'id text COLLATE "C" NOT NULL']
    for field in schema.fields:
        if not _kept(field, params):
            continue
        columns.append(f"{value(field.name)} {_COLUMN_TYPES[field.type]}")
        if field.type is FieldType.KEYWORDS:
            columns.append(f"{value(field.name, 'r')} text[]")
    for number, fields in enumerate(Layout.of(schema).vectors):
        generated = f"GENERATED ALWAYS AS ({_parsed(fields)}) STORED"
        made = "NOT NULL" if params["analysis"] == "declared" else generated
        columns.append(f"{column(number)} tsvector {made}")
    return [f"CREATE TABLE docs ({', '.join(columns)})", _taker(schema, params)]


def indexes(schema: Schema, params: Parameters) -> list[str]:
    """Statements: one for each vector, if they are indexed; one for each field but booleans."""
    found = []
    method, options = params["index"], ""
    if method == "gin":
        options = f" WITH (fastupdate = {'on' if params['gin_fastupdate'] else 'off'})"
    if method != "none":
        vectors = range(len(Layout.of(schema).vectors))
        found += [f"CREATE INDEX ON docs USING {method} ({column(v)}){options}" for v in vectors]
    for field in schema.fields:
        if field.type is FieldType.KEYWORDS:
            found.append(f"CREATE INDEX ON docs USING gin ({value(field.name)})")
        elif field.type not in (FieldType.TEXT, FieldType.BOOLEAN):
            found.append(f"CREATE INDEX ON docs ({value(field.name)})")
    return found


def ingestion(
    documents: Sequence[Document], start: int, schema: Schema, params: Parameters
) -> tuple[bytes, ...]:
    """One COPY; then, one by one, the documents that the server will perhaps refuse."""
    names, doubtful, rows = _columns(schema, params), [], []
    for number, document in enumerate(documents, start):
        row = _row(number, document, schema, params)
        if _fits(document, schema, row):
            rows.append([_text(cell) for cell in row])
        else:
            # JSON can say what a text here cannot: a NUL.
            written = orjson.dumps(dict(zip(names, row, strict=True)), default=str).decode()
            key = form.literal(orjson.dumps(document.id).decode())
            doubtful.append(form.query(_TAKEN.format(key=key, row=form.literal(written))))
    if rows:
        columns = ", ".join(map(form.name, names))
        return (form.copy(f"COPY docs ({columns}) FROM STDIN", rows), *doubtful)
    return tuple(doubtful)


def _kept(field: Field, params: Parameters) -> bool:
    """A text that nobody gets back is not needed beside its words, unless the server splits it."""
    return field.stored or field.type is not FieldType.TEXT or params["analysis"] != "declared"


def _columns(schema: Schema, params: Parameters) -> list[str]:
    """The columns that are filled, in the order of a row."""
    names = ["n", "id"]
    for field in schema.fields:
        if _kept(field, params):
            names.append(f"v_{field.name}")
            if field.type is FieldType.KEYWORDS:
                names.append(f"r_{field.name}")
    vectors = Layout.of(schema).vectors if params["analysis"] == "declared" else ()
    return [*names, *(column(number) for number in range(len(vectors)))]


def _row(number: int, document: Document, schema: Schema, params: Parameters) -> list[Any]:
    """The values of ``_columns``."""
    row: list[Any] = [number, document.id]
    for field in schema.fields:
        if not _kept(field, params):
            continue
        given = document.values.get(field.name)
        if isinstance(given, list):
            each = list(dict.fromkeys(map(str, given)))
            row += [each, given if len(each) < len(given) else None]
        else:
            row += [given, None] if field.type is FieldType.KEYWORDS else [given]
    if params["analysis"] == "declared":
        row += [vector(fields, document.values) for fields in Layout.of(schema).vectors]
    return row


def _text(cell: Any) -> str | None:
    """A value as COPY takes it."""
    if isinstance(cell, bool):
        return "t" if cell else "f"
    if isinstance(cell, list):
        return form.array(cell)
    return None if cell is None else str(cell)


def _fits(document: Document, schema: Schema, row: Sequence[Any]) -> bool:
    """Whether the server will take it for sure: one row that it refuses ends a whole COPY."""
    return (
        "\0" not in document.id
        and all(_suits(f.type, document.values.get(f.name)) for f in schema.fields)
        and not any(isinstance(cell, str) and _is_large(cell) for cell in row[2:])
    )


def _is_large(text: str) -> bool:
    return len(text) * 4 > _VECTOR_BYTES and len(text.encode()) > _VECTOR_BYTES


def _suits(kind: FieldType, given: Any) -> bool:
    """Whether a value is of its field's type and within the limits of a column."""
    if given is None:
        return True
    if kind is FieldType.KEYWORDS:
        return isinstance(given, list) and all(_suits(FieldType.KEYWORD, v) for v in given)
    if kind is FieldType.BOOLEAN:
        return isinstance(given, bool)
    if kind in (FieldType.TEXT, FieldType.KEYWORD):
        short = kind is FieldType.TEXT or (isinstance(given, str) and _is_short(given))
        return isinstance(given, str) and "\0" not in given and short
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    return kind is FieldType.FLOAT or (isinstance(given, int) and given in _INTEGERS)


def _is_short(keyword: str) -> bool:
    return len(keyword) * 4 <= _KEYWORD_BYTES or len(keyword.encode()) <= _KEYWORD_BYTES


def _parsed(fields: Sequence[str]) -> str:
    """The vector of these fields as the server's own parser makes it."""
    return " || ".join(
        f"setweight(to_tsvector('simple', coalesce({value(name)}, '')), '{label}')"
        for label, name in zip(LABELS, fields, strict=False)
    )


def _taker(schema: Schema, params: Parameters) -> str:
    """A function that takes one document, given as JSON; what it returns is why it did not."""
    columns = ", ".join(map(form.name, _columns(schema, params)))
    sizes = [f"octet_length(kept.{value(f.name)})" for f in schema.of_type(FieldType.KEYWORD)]
    sizes += [
        f"(SELECT max(octet_length(v)) FROM unnest(kept.{value(f.name)}) v)"
        for f in schema.of_type(FieldType.KEYWORDS)
    ]
    # An index that is made later would not say whose keyword it cannot hold.
    body = f"""
DECLARE kept docs; more text;
BEGIN
  INSERT INTO docs ({columns}) SELECT {columns} FROM json_populate_record(NULL::docs, doc)
  RETURNING * INTO kept;
  IF greatest(0, {", ".join(sizes or ["0"])}) > {_KEYWORD_BYTES} THEN
    RAISE EXCEPTION 'a keyword has more than {_KEYWORD_BYTES} bytes';
  END IF;
  RETURN NULL;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS more = PG_EXCEPTION_DETAIL;
  RETURN concat_ws('; ', SQLERRM, nullif(more, ''));
END"""
    return (
        f"CREATE FUNCTION docs_take(doc json) RETURNS text LANGUAGE plpgsql AS {form.literal(body)}"
    )
