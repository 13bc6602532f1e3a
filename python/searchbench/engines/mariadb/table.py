"""Tables and columns of MariaDB: what a schema becomes, and documents as INSERT statements.

One table, ``docs``: ``FTS_DOC_ID`` is the place in the corpus, from 1 (InnoDB wants its key for
full text so named), ``id`` the document's own. A text is ``f0_name``, and beside it, under the
declared analysis, ``w0_name``: the copy that is indexed. A list of keywords is JSON in ``docs``, so
that it comes back as it was, and a table of its own, ``k3_name``, in which its values are found.

A corpus that declares a table gets just that: a table of that name with its columns, its primary
key, its indexes and no others but those of text. A list of keywords is its JSON alone there, and
the copy of a text under the declared analysis is an invisible column. ``docs`` is then a view.

MariaDB's parser of full text knows the letters and digits of Unicode 3.2 within the first plane,
the underscore and the apostrophe; everything else separates. So the copy holds the declared terms
with one space between them, and a letter that the parser does not know is written `_` and five
hexadecimal digits. Declared terms hold no underscore, and the escape has one length, so terms and
prefixes of terms stay as different as they were.
"""

from __future__ import annotations

import json
import math
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from searchbench.corpora.corpus import Document, Field, FieldType, Schema, Table
from searchbench.engines.engine import Level, Parameters
from searchbench.engines.mysql_form import load as form_load
from searchbench.engines.mysql_form import query, quoted
from searchbench.engines.write import Placed
from searchbench.workload.queries.analysis import terms

DATABASE = "searchbench"
TABLE = "docs"
NUMBER = "FTS_DOC_ID"
KEYWORD_CHARACTERS = 255
"""The customary length of a VARCHAR: temporary tables of GROUP BY hold it in full."""
ID_CHARACTERS = 1000
STORAGE = {"innodb": "InnoDB", "aria": "Aria", "myisam": "MyISAM"}
COLLATION = {"declared": "utf8mb4_bin", "engine": "utf8mb4_general_ci"}
WHOLE = "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
"""For what is matched whole: by code point, and a space at the end counts."""
_TYPES = {
    FieldType.TEXT: "LONGTEXT",
    FieldType.KEYWORD: f"VARCHAR({KEYWORD_CHARACTERS}) {WHOLE}",
    FieldType.KEYWORDS: f"LONGTEXT {WHOLE}",
    FieldType.INTEGER: "BIGINT",
    FieldType.FLOAT: "DOUBLE",
    FieldType.DATE: "BIGINT",
    FieldType.BOOLEAN: "BOOLEAN",
}
_INDEXED = (FieldType.KEYWORD, FieldType.INTEGER, FieldType.FLOAT, FieldType.DATE)
_PLAIN = re.compile(r"[^0-9a-z]+")
# A document that may be refused comes in a statement of its own, which leaves nothing of it behind.
_ALONE = (
    "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; {undo} RESIGNAL; END; "
    "START TRANSACTION; {do} COMMIT; END"
)
ASKED = "asked"
"""The name of the column that says which document comes next in a batch's reply."""
MOST_CHARACTERS = 83
"""Characters of a term that are indexed; terms are cut there, for longer ones would be left out.

InnoDB takes 84, which is the most that can be set; Aria and MyISAM take one fewer than is set.
"""

_ESCAPE = re.compile(r"_([0-9a-f]{5})")


@cache
def column(schema: Schema, name: str) -> str:
    """The column of a field's value: one to one by its place, whatever its name."""
    return f"`{name}`" if schema.table else _named("f", schema, name)


def table_of(schema: Schema) -> str:
    """The table that has the documents."""
    return f"`{schema.table.name}`" if schema.table else TABLE


@cache
def id_of(schema: Schema) -> str:
    """A document's id, from its row, as a column of that name."""
    return f"CONCAT_WS(',', {', '.join(key_of(schema))}) AS id" if schema.table else "id"


@cache
def key_of(schema: Schema) -> tuple[str, ...]:
    """The columns that no two documents have the same, in whose order ties are broken."""
    return tuple(f"`{each.name}`" for each in schema.table.key) if schema.table else (NUMBER,)


@cache
def text_column(schema: Schema, name: str, analysis: Level) -> str:
    """The column of a text field that is indexed."""
    return _named("w", schema, name) if analysis == "declared" else column(schema, name)


@cache
def list_table(schema: Schema, name: str) -> str:
    """The table of a field that is a list of keywords."""
    return _named("k", schema, name)


def create(schema: Schema, params: Parameters) -> list[str]:
    """Statements that make the tables, empty; with the text indexes if they come first."""
    collation, engine = COLLATION[str(params["analysis"])], STORAGE[str(params["storage"])]
    # Statistics from every page, and only when asked for: scores use the number of rows.
    options = f"ENGINE={engine} DEFAULT CHARACTER SET utf8mb4 COLLATE {collation}"
    if engine == "InnoDB":
        options += " STATS_PERSISTENT=1 STATS_AUTO_RECALC=0 STATS_SAMPLE_PAGES=65535"
    if schema.table is not None:
        return _create_table(schema.table, schema, params, options)
    columns = [
        f"{NUMBER} BIGINT UNSIGNED NOT NULL",
        f"id VARCHAR({ID_CHARACTERS}) {WHOLE} NOT NULL",
    ]
    lists = []
    for field in schema.fields:
        names = sorted(_columns(field, schema, params["analysis"]))
        columns += [f"{name} {_TYPES[field.type]}" for name in names]
        if field.type is FieldType.KEYWORDS:
            lists.append(
                f"CREATE TABLE {list_table(schema, field.name)} "
                f"({NUMBER} BIGINT UNSIGNED NOT NULL, place INT UNSIGNED NOT NULL, "
                f"value {_TYPES[FieldType.KEYWORD]} NOT NULL, "
                f"PRIMARY KEY ({NUMBER}, place), KEY by_value (value(191), {NUMBER})) {options}"
            )
    # The unique key of this name is the one that InnoDB looks for, and as it is the first, its own.
    columns.append(f"UNIQUE KEY FTS_DOC_ID_INDEX ({NUMBER})")
    columns += [f"KEY {_key(schema, field)}" for field in schema.of_type(*_INDEXED)]
    if params["index_first"]:
        columns += [f"FULLTEXT KEY {key}" for key in text_keys(schema, params)]
    return [f"CREATE TABLE {TABLE} ({', '.join(columns)}) {options}", *lists]


def _create_table(table: Table, schema: Schema, params: Parameters, options: str) -> list[str]:
    """The table as it is declared, and a view by which it is found whatever its name."""
    keys = {each.name for each in table.key}
    keyword = f"VARCHAR({longest_keyword(schema, params)}) {WHOLE}"
    columns = []
    for field in schema.columns:
        kind = keyword if field.type is FieldType.KEYWORD else _TYPES[field.type]
        kept = column(schema, field.name)
        for name in _columns(field, schema, params["analysis"]):
            more = " NOT NULL" if field.name in keys else "" if name == kept else " INVISIBLE"
            columns.append(f"{name} {kind}{more}")
    columns.append(f"PRIMARY KEY ({_in_index([each.name for each in table.key], schema, params)})")
    if params["index_first"]:
        columns += [
            *secondary(schema, params).values(),
            *(f"FULLTEXT KEY {key}" for key in text_keys(schema, params)),
        ]
    return [
        f"CREATE TABLE {table_of(schema)} ({', '.join(columns)}) {options}",
        f"CREATE VIEW {TABLE} AS SELECT * FROM {table_of(schema)}",
    ]


def longest_keyword(schema: Schema, params: Parameters) -> int:
    """How many characters of a keyword a column holds; indexes of a table hold it in full."""
    # Aria and MyISAM have 1000 bytes for a key, and a character has 4.
    return 240 if schema.table and params["storage"] != "innodb" else KEYWORD_CHARACTERS


def secondary(schema: Schema, params: Parameters) -> dict[str, str]:
    """The declared indexes: the name of each, and what makes it."""
    found = {}
    for index in schema.table.indexes if schema.table else ():
        name = "`index_" + "_".join(index.columns)[:56] + "`"
        unique = "UNIQUE " if index.unique else ""
        found[name] = f"{unique}KEY {name} ({_in_index(index.columns, schema, params)})"
    return found


def _in_index(names: Sequence[str], schema: Schema, params: Parameters) -> str:
    """The columns of an index; keywords by their beginning where they are too long together."""
    known = {each.name: each.type for each in schema.columns}
    keywords = sum(known[name] is FieldType.KEYWORD for name in names)
    room = (3072 if params["storage"] == "innodb" else 970) // 4 // max(keywords, 1)
    cut = f"({room - 4})" if keywords and room - 4 < longest_keyword(schema, params) - 10 else ""
    return ", ".join(
        column(schema, name) + (cut if known[name] is FieldType.KEYWORD else "") for name in names
    )


def text_keys(schema: Schema, params: Parameters) -> list[str]:
    """Name and columns of each text index: of every field, and of all fields together."""
    text = [text_column(schema, f.name, params["analysis"]) for f in schema.of_type(FieldType.TEXT)]
    # A column of a declared table is quoted, and so is what is called after it.
    alone = [f"{'`' * (name[0] == '`')}t_{name.removeprefix('`')} ({name})" for name in text]
    return [*([f"t ({', '.join(text)})"] if len(text) > 1 else ()), *alone]


def insert(
    documents: Sequence[Document],
    start: int,
    schema: Schema,
    params: Parameters,
    first: Sequence[str] = (),
) -> list[str]:
    """The statements that put documents in: all that fit in one, any other by itself.

    ``first``: what comes before in the transaction of those that fit.
    """
    fit: list[tuple[int, Document]] = []
    alone: list[str] = []
    for number, document in enumerate(documents, start + 1):
        if _fits(document, schema, params):
            fit.append((number, document))
            continue
        tables = [TABLE, *(list_table(schema, f.name) for f in schema.of_type(FieldType.KEYWORDS))]
        if schema.table:  # one statement, of which nothing is left
            tables = []
        undo = " ".join(f"DELETE FROM {table} WHERE {NUMBER} = {number};" for table in tables)
        do = "; ".join(_inserts([(number, document)], schema, params)) + ";"
        alone.append(f"SELECT {quoted(document.id)} AS {ASKED}; {_ALONE.format(undo=undo, do=do)}")
    if not fit:
        return alone
    inserts = _inserts(fit, schema, params)
    return ["; ".join(["START TRANSACTION", *first, *inserts, "COMMIT"]), *alone]


def removed(gone: Sequence[Placed], schema: Schema) -> list[str]:
    """The statements that delete documents, from every table that has something of them."""
    if schema.table is None:
        numbers = ",".join(str(each.was + 1) for each in gone)
        lists = (list_table(schema, f.name) for f in schema.of_type(FieldType.KEYWORDS))
        return [f"DELETE FROM {name} WHERE {NUMBER} IN ({numbers})" for name in (TABLE, *lists)]
    key = schema.table.key
    rows = ",".join(_key_of(each.document, key) for each in gone)
    return [f"DELETE FROM {table_of(schema)} WHERE ({', '.join(key_of(schema))}) IN ({rows})"]


def _key_of(document: Document, key: Sequence[Field]) -> str:
    """A document's key as a row; of a single column it is the id."""
    if len(key) > 1:
        return f"({','.join(literal(document.values[each.name]) for each in key)})"
    whole = key[0].type is FieldType.INTEGER
    return literal(int(document.id) if whole else document.id)


def literal(value: object) -> str:
    """A value as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float) and math.isfinite(value):
        written = repr(value)
        return written if "e" in written else written + "e0"  # else it were a decimal number
    return quoted(str(value))


def indexed(text: str) -> str:
    """The copy of ``text``."""
    return " ".join(words(terms(text)))


def words(found: Iterable[str]) -> list[str]:
    """Declared terms, or prefixes of terms, as they stand in the copy."""
    return [_word(term) for term in found]


def term(word: str) -> str:
    """The declared term that stands in the copy as ``word``; cut ones stay cut."""
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)), word)


def _word(found: str) -> str:
    if not found.isascii():
        found = found.translate(_unknown())
    return found[:MOST_CHARACTERS]


@cache
def _unknown() -> dict[int, str]:
    """Letters and digits that MariaDB's parser takes for separators, and how they are written.

    Compared with the server over every character of Unicode, for each storage engine.
    """
    old = unicodedata.ucd_3_2_0
    return {
        code: f"_{code:05x}"
        for code in range(0x80, sys.maxunicode + 1)
        if chr(code).isalnum() and (code > 0xFFFF or old.category(chr(code))[0] not in "LN")
    }


def _inserts(
    numbered: Sequence[tuple[int, Document]], schema: Schema, params: Parameters
) -> Iterable[str]:
    for table, names, rows in _filled(numbered, schema, params):
        values = ",".join(f"({','.join(map(literal, row))})" for row in rows)
        yield f"INSERT INTO {table} ({','.join(names)}) VALUES {values}"


def load(
    documents: Sequence[Document], start: int, schema: Schema, params: Parameters
) -> list[bytes]:
    """The same as ``insert`` by the server's bulk door; what may be refused is inserted."""
    fit: list[tuple[int, Document]] = []
    alone: list[bytes] = []
    for number, document in enumerate(documents, start + 1):
        if _fits(document, schema, params):
            fit.append((number, document))
        else:
            alone += map(query, insert([document], number - 1, schema, params))
    return [
        *(
            form_load(
                f"LOAD DATA LOCAL INFILE 'documents' INTO TABLE {table} CHARACTER SET utf8mb4 "
                f"({','.join(names)})",
                b"".join("\t".join(map(_cell, row)).encode() + b"\n" for row in rows),
            )
            for table, names, rows in (_filled(fit, schema, params) if fit else ())
        ),
        *alone,
    ]


def _filled(
    numbered: Sequence[tuple[int, Document]], schema: Schema, params: Parameters
) -> Iterable[tuple[str, list[str], list[list[object]]]]:
    """Each table that gets rows of these documents, its columns, and the rows."""
    declared = params["analysis"] == "declared"
    key = schema.table.key if schema.table else ()
    single = key[0] if len(key) == 1 else None
    names = [column(schema, single.name)] if single else [] if key else [NUMBER, "id"]
    names += (c for f in schema.fields for c in _columns(f, schema, params["analysis"]))
    # A field that the schema has not is the server's to refuse.
    strange = sorted({k for _n, d in numbered for k in d.values} - {f.name for f in schema.fields})
    names += ["`" + name.replace("`", "``") + "`" for name in strange]
    rows = []
    for number, document in numbered:
        row: list[object] = [] if key else [number, document.id]
        if single:
            row = [int(document.id) if single.type is FieldType.INTEGER else document.id]
        for field in schema.fields:
            row += _values(field, document.values.get(field.name), declared)
        row += [document.values.get(name) for name in strange]
        rows.append(row)
    yield table_of(schema), names, rows
    for field in schema.of_type(FieldType.KEYWORDS) if not key else ():
        held: list[list[object]] = [
            [number, place, value]
            for number, document in numbered
            for place, value in enumerate(dict.fromkeys(_listed(document.values.get(field.name))))
        ]
        if held:
            yield list_table(schema, field.name), [NUMBER, "place", "value"], held


def _cell(value: object) -> str:
    """A value as LOAD DATA reads it."""
    if value is None:
        return "\\N"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int | float):
        return repr(value)
    return str(value).translate(_CELL)


_CELL = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})


def _columns(field: Field, schema: Schema, analysis: Level) -> list[str]:
    """The columns of one field: where it is a text, the one that is indexed first."""
    if field.type is not FieldType.TEXT:
        return [column(schema, field.name)]
    kept = [column(schema, field.name)] if field.stored else []
    return list(dict.fromkeys([text_column(schema, field.name, analysis), *kept]))


def _values(field: Field, value: Any, declared: bool) -> list[object]:
    """The values of one field, in the order of its columns."""
    if field.type is FieldType.TEXT and declared:
        both = [None if value is None else indexed(str(value)), value]
        return both if field.stored else both[:1]
    if field.type is FieldType.KEYWORDS and isinstance(value, list):
        return [json.dumps(value, ensure_ascii=False, separators=(",", ":"))]
    return [value]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _fits(document: Document, schema: Schema, params: Parameters) -> bool:
    """False where the server may refuse: that is for it to say, and of this document alone."""
    longest = longest_keyword(schema, params)
    if len(document.id) > (longest if schema.table else ID_CHARACTERS):
        return False
    known = {field.name: field.type for field in schema.fields}
    return all(k in known and _suits(known[k], v, longest) for k, v in document.values.items())


def _suits(kind: FieldType, value: object, longest: int) -> bool:
    if kind is FieldType.TEXT:
        return isinstance(value, str)
    if kind is FieldType.KEYWORD:
        return isinstance(value, str) and len(value) <= longest
    if kind is FieldType.KEYWORDS:
        return isinstance(value, list) and all(_suits(FieldType.KEYWORD, v, longest) for v in value)
    if kind is FieldType.BOOLEAN:
        return isinstance(value, bool)
    if kind is FieldType.FLOAT:
        return isinstance(value, (int, float)) and math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _named(kind: str, schema: Schema, name: str) -> str:
    place = next(i for i, field in enumerate(schema.fields) if field.name == name)
    # Names have at most 64 characters, and upper and lower case are one.
    return f"{kind}{place}_{_PLAIN.sub('_', name.lower())[:40]}"


def _key(schema: Schema, field: Field) -> str:
    name = column(schema, field.name)
    return f"{name} ({name}{'(191)' if field.type is FieldType.KEYWORD else ''})"
