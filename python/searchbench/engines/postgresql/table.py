"""The table of a corpus in PostgreSQL: its columns, its indexes, and documents as its rows.

Every field has a column ``v_NAME``; one with several values has ``r_NAME`` as well, which is
filled only where a document has a value twice, so that counting need not look for that.

With the declared analysis PostgreSQL's own parser never sees a text (it would make URLs, numbers
and hyphenated words of it): the words and their places are what goes in. A vector holds four
fields, told apart by the labels that PostgreSQL has for weights; further fields have further
vectors. What a vector cannot hold is given up in this order: places (of phrases alone), then words
that are too long; a vector that is too large is for the server to refuse.

A corpus that declares a table gets its primary key and its indexes, and no others but those of
text; and a view of its name and with its columns. PostgreSQL plans what is asked of such a view as
it plans what is asked of the table itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines import postgres_form as form
from searchbench.engines.engine import Parameters
from searchbench.engines.write import Placed
from searchbench.errors import Unsupported
from searchbench.workload.queries.analysis import terms

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
INTEGERS = range(-(2**63), 2**63)
_LABELS = "DCBA"
"""Of the fields of a vector. D is what has no label, so that a single field costs nothing."""
LONGEST_WORD_BYTES = 2046
_PLACES_OF_A_WORD = 256
_LAST_PLACE = 16383
# Beyond it a word is at a place that its field has for all such words, next to no other's.
_LAST_OWN_PLACE = _LAST_PLACE - 2 * len(_LABELS)
_NAME_BYTES = 63
_TAKEN = "SELECT {key}::json AS id, docs_take({row}) AS refused"


def value(field: str, prefix: str = "v") -> str:
    """The column of a field, as an identifier; Unsupported where PostgreSQL has none for it."""
    found = f"{prefix}_{field}"
    if "\0" in found or len(found.encode()) > _NAME_BYTES:
        raise Unsupported(
            f"PostgreSQL cannot have a field named {field!r}: upstream must: the name of a column "
            f"has at most {_NAME_BYTES} bytes (two are ours) and no NUL"
        )
    return form.name(found)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which text field is in which vector, under which label. ``fields``: the text fields."""

    fields: tuple[str, ...]

    @classmethod
    def of(cls, schema: Schema) -> Layout:
        """Of a corpus's text fields."""
        return cls(tuple(f.name for f in schema.of_type(FieldType.TEXT)))

    @property
    def vectors(self) -> tuple[tuple[str, ...], ...]:
        """The fields of each vector."""
        size = len(_LABELS)
        return tuple(self.fields[i : i + size] for i in range(0, len(self.fields), size))

    def labels(self, wanted: Sequence[str]) -> dict[int, str]:
        """For each vector that holds one of ``wanted`` their labels; "" where all are wanted."""
        found = {}
        for number, fields in enumerate(self.vectors):
            labels = "".join(
                label for label, field in zip(_LABELS, fields, strict=False) if field in wanted
            )
            if labels:
                found[number] = "" if len(labels) == len(fields) else labels
        return found


def column(number: int) -> str:
    """The column of a vector."""
    return f"words_{number}"


def vector(fields: Sequence[str], values: Mapping[str, object]) -> str:
    """The literal of the vector of these fields, in the order of the words' first places."""
    places: dict[str, list[tuple[int, str]]] = {}
    at = 0
    for index, field in enumerate(fields):
        mark = _LABELS[index] if index else ""
        beyond = _LAST_PLACE - 2 * index
        for word in terms(str(values.get(field, ""))):
            at += 1
            place = at if at <= _LAST_OWN_PLACE else beyond
            places.setdefault(word, []).append((place, mark))
        at += 1  # no phrase goes from one field into the next
    return " ".join(
        f"'{word}':{','.join(f'{place}{mark}' for place, mark in _places(found))}"
        for word, found in places.items()
        if not _is_longer(word, LONGEST_WORD_BYTES)
    )


def tables(schema: Schema, params: Parameters) -> list[str]:
    """Statements that make the table, and the function that takes single documents."""
    columns = ["n bigint NOT NULL", 'id text COLLATE "C" NOT NULL']
    columns += [f"{value(each.name)} {_COLUMN_TYPES[each.type]}" for each in _own_key(schema)]
    for field in _kept(schema, params):
        columns.append(f"{value(field.name)} {_COLUMN_TYPES[field.type]}")
        if field.type is FieldType.KEYWORDS:
            columns.append(f"{value(field.name, 'r')} text[]")
    for number, fields in enumerate(Layout.of(schema).vectors):
        generated = f"GENERATED ALWAYS AS ({_parsed(fields)}) STORED"
        made = "NOT NULL" if params["analysis"] == "declared" else generated
        columns.append(f"{column(number)} tsvector {made}")
    if schema.table is None:
        return [f"CREATE TABLE docs ({', '.join(columns)})", _taker(schema, params)]
    if schema.table.name.lower() == "docs":
        raise Unsupported(
            "in PostgreSQL the name docs is taken by our own table; give `table` another name"
        )
    columns.append(f"PRIMARY KEY ({', '.join(value(each.name) for each in schema.table.key)})")
    shown = [f"{value(f.name)} AS {form.name(f.name)}" for f in _seen(schema, params)]
    shown += [column(number) for number in range(len(Layout.of(schema).vectors))]
    return [
        f"CREATE TABLE docs ({', '.join(columns)})",
        _taker(schema, params),
        f"CREATE VIEW {form.name(schema.table.name)} AS SELECT {', '.join(shown)} FROM docs",
    ]


def indexes(schema: Schema, params: Parameters, only: str = "") -> dict[str, str]:
    """By name the statement that makes it: of each vector, if they are indexed; and of each field
    but booleans, or those that the table declares.

    ``only``: the one of these columns or, of text, the one that has this field; else all.
    """
    method = params["index"]
    fast = f" WITH (fastupdate = {'on' if params['gin_fastupdate'] else 'off'})"
    options = fast if method == "gin" else ""
    vectors = Layout.of(schema).vectors if method != "none" else ()
    found: list[tuple[tuple[str, ...], str, str, str]] = []
    if params.get("keys"):
        found.append((("id",), "docs_id_idx", "(id)", "UNIQUE "))
    found += [
        (fields, f"docs_{column(v)}_idx", f"USING {method} ({column(v)}){options}", "")
        for v, fields in enumerate(vectors)
    ]
    for index in schema.table.indexes if schema.table else ():
        columns = ", ".join(map(value, index.columns))
        name = "_".join(["docs", *index.columns])[: _NAME_BYTES - 4] + "_idx"
        unique = "UNIQUE " if index.unique else ""
        found.append(((",".join(index.columns),), name, f"({columns})", unique))
    for number, field in enumerate(schema.fields if schema.table is None else ()):
        method = "USING gin " if field.type is FieldType.KEYWORDS else ""
        if field.type not in (FieldType.TEXT, FieldType.BOOLEAN):
            found.append(
                ((field.name,), f"docs_{number}_idx", f"{method}({value(field.name)})", "")
            )
    wanted = only.replace(" ", "")
    return {
        name: f"CREATE {unique}INDEX {form.name(name)} ON docs {how}"
        for of, name, how, unique in found
        if not wanted or wanted in of
    }


def removed(gone: Sequence[Placed]) -> str:
    """The statement that deletes these documents."""
    return f"DELETE FROM docs WHERE id IN ({','.join(form.literal(g.document.id) for g in gone)})"


def ingestion(
    documents: Sequence[Document],
    start: int,
    schema: Schema,
    params: Parameters,
    first: Sequence[str] = (),
) -> tuple[bytes, ...]:
    """One COPY or INSERT; then, one by one, the documents that the server perhaps refuses.

    ``first``: what comes before in the transaction of an INSERT.
    """
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
    if rows and params["door"] == "insert":
        columns = ", ".join(map(form.name, names))
        values = ",".join(f"({','.join(map(_constant, row))})" for row in rows)
        return (form.query(*first, f"INSERT INTO docs ({columns}) VALUES {values}"), *doubtful)
    if rows:
        columns = ", ".join(map(form.name, names))
        return (form.copy(f"COPY docs ({columns}) FROM STDIN", rows), *doubtful)
    return tuple(doubtful)


def _constant(cell: str | None) -> str:
    return "NULL" if cell is None else form.literal(cell)


def _own_key(schema: Schema) -> tuple[Field, ...]:
    """The key of a table, where it is the document's id and no field."""
    return schema.columns[: len(schema.columns) - len(schema.fields)]


def _seen(schema: Schema, params: Parameters) -> list[Field]:
    """The columns of a table that can be shown."""
    return [*_own_key(schema), *_kept(schema, params)]


def _places(places: list[tuple[int, str]]) -> Sequence[tuple[int, str]]:
    """As many as PostgreSQL keeps, the first of every field among them."""
    if len(places) <= _PLACES_OF_A_WORD:
        return places
    distinct = list(dict.fromkeys(places))
    firsts = {mark: (place, mark) for place, mark in reversed(distinct)}
    kept = list(firsts.values())
    others = (each for each in distinct if each not in kept)
    kept += [each for each, _ in zip(others, range(_PLACES_OF_A_WORD - len(kept)), strict=False)]
    return sorted(kept)


def _kept(schema: Schema, params: Parameters) -> list[Field]:
    """A text that nobody gets back is not needed beside its words, unless the server splits it."""
    needed = params["analysis"] != "declared"
    return [f for f in schema.fields if needed or f.stored or f.type is not FieldType.TEXT]


def _columns(schema: Schema, params: Parameters) -> list[str]:
    """The columns that are filled, in the order of a row."""
    names = ["n", "id", *(f"v_{each.name}" for each in _own_key(schema))]
    for field in _kept(schema, params):
        names.append(f"v_{field.name}")
        if field.type is FieldType.KEYWORDS:
            names.append(f"r_{field.name}")
    vectors = Layout.of(schema).vectors if params["analysis"] == "declared" else ()
    return [*names, *(column(number) for number in range(len(vectors)))]


def _row(number: int, document: Document, schema: Schema, params: Parameters) -> list[Any]:
    """The values of ``_columns``."""
    row: list[Any] = [number, document.id, *(document.id for _ in _own_key(schema))]
    for field in _kept(schema, params):
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
        and not any(isinstance(cell, str) and _is_longer(cell, _VECTOR_BYTES) for cell in row[2:])
    )


def _is_longer(text: str, most_bytes: int) -> bool:
    return len(text) * 4 > most_bytes and len(text.encode()) > most_bytes


def _suits(kind: FieldType, given: Any) -> bool:
    """Whether a value is of its field's type and within the limits of a column."""
    if given is None:
        return True
    if kind is FieldType.KEYWORDS:
        return isinstance(given, list) and all(_suits(FieldType.KEYWORD, v) for v in given)
    if kind is FieldType.BOOLEAN:
        return isinstance(given, bool)
    if kind in (FieldType.TEXT, FieldType.KEYWORD):
        if not isinstance(given, str) or "\0" in given:
            return False
        return kind is FieldType.TEXT or not _is_longer(given, _KEYWORD_BYTES)
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    return kind is FieldType.FLOAT or (isinstance(given, int) and given in INTEGERS)


def _parsed(fields: Sequence[str]) -> str:
    """The vector of these fields as the server's own parser makes it."""
    return " || ".join(
        f"setweight(to_tsvector('simple', coalesce({value(name)}, '')), '{label}')"
        for label, name in zip(_LABELS, fields, strict=False)
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
