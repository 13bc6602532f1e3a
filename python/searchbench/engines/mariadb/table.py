"""Tables and columns of MariaDB: what a schema becomes, and documents as INSERT statements.

One table, ``docs``: ``FTS_DOC_ID`` is the place in the corpus, from 1 (InnoDB wants its key for
full text so named), ``id`` the document's own. A text is ``f0_name``, and beside it, under the
declared analysis, ``w0_name``: the copy that is indexed. A list of keywords is JSON in ``docs``, so
that it comes back as it was, and a table of its own, ``k3_name``, in which its values are found.

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

from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines.engine import Level, Parameters
from searchbench.engines.mysql_form import quoted
from searchbench.workload.queries.analysis import terms

DATABASE = "searchbench"
TABLE = "docs"
NUMBER = "FTS_DOC_ID"
KEYWORD_CHARACTERS = 255
"""The customary length of a VARCHAR: temporary tables of GROUP BY hold it in full."""
ID_CHARACTERS = 1000
STORAGE = {"innodb": "InnoDB", "aria": "Aria", "myisam": "MyISAM"}
COLLATION = {"declared": "utf8mb4_bin", "engine": "utf8mb4_general_ci"}
# For what is matched whole: by code point, and a space at the end counts.
_WHOLE = "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
_TYPES = {
    FieldType.TEXT: "LONGTEXT",
    FieldType.KEYWORD: f"VARCHAR({KEYWORD_CHARACTERS}) {_WHOLE}",
    FieldType.KEYWORDS: f"LONGTEXT {_WHOLE}",
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
    return _named("f", schema, name)


@cache
def text_column(schema: Schema, name: str, analysis: Level) -> str:
    """The column of a text field that is indexed."""
    return _named("w" if analysis == "declared" else "f", schema, name)


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
    columns = [
        f"{NUMBER} BIGINT UNSIGNED NOT NULL",
        f"id VARCHAR({ID_CHARACTERS}) {_WHOLE} NOT NULL",
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


def text_keys(schema: Schema, params: Parameters) -> list[str]:
    """Name and columns of each text index: of every field, and of all fields together."""
    text = [text_column(schema, f.name, params["analysis"]) for f in schema.of_type(FieldType.TEXT)]
    alone = [f"t_{name} ({name})" for name in text]
    return [*([f"t ({', '.join(text)})"] if len(text) > 1 else ()), *alone]


def insert(
    documents: Sequence[Document], start: int, schema: Schema, params: Parameters
) -> list[str]:
    """The statements that put documents in: all that fit in one, any other by itself."""
    fit: list[tuple[int, Document]] = []
    alone: list[str] = []
    for number, document in enumerate(documents, start + 1):
        if _fits(document, schema):
            fit.append((number, document))
            continue
        tables = [TABLE, *(list_table(schema, f.name) for f in schema.of_type(FieldType.KEYWORDS))]
        undo = " ".join(f"DELETE FROM {table} WHERE {NUMBER} = {number};" for table in tables)
        do = "; ".join(_inserts([(number, document)], schema, params)) + ";"
        alone.append(f"SELECT {quoted(document.id)} AS {ASKED}; {_ALONE.format(undo=undo, do=do)}")
    if not fit:
        return alone
    return ["; ".join(["START TRANSACTION", *_inserts(fit, schema, params), "COMMIT"]), *alone]


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
    declared = params["analysis"] == "declared"
    names = [NUMBER, "id"]
    names += (c for f in schema.fields for c in _columns(f, schema, params["analysis"]))
    # A field that the schema has not is the server's to refuse.
    strange = sorted({k for _n, d in numbered for k in d.values} - {f.name for f in schema.fields})
    names += ["`" + name.replace("`", "``") + "`" for name in strange]
    rows = []
    for number, document in numbered:
        row = [str(number), quoted(document.id)]
        for field in schema.fields:
            row += _values(field, document.values.get(field.name), declared)
        row += [literal(document.values.get(name)) for name in strange]
        rows.append(f"({','.join(row)})")
    yield f"INSERT INTO {TABLE} ({','.join(names)}) VALUES {','.join(rows)}"
    for field in schema.of_type(FieldType.KEYWORDS):
        held = [
            f"({number},{place},{literal(value)})"
            for number, document in numbered
            for place, value in enumerate(dict.fromkeys(_listed(document.values.get(field.name))))
        ]
        if held:
            yield f"INSERT INTO {list_table(schema, field.name)} VALUES {','.join(held)}"


def _columns(field: Field, schema: Schema, analysis: Level) -> list[str]:
    """The columns of one field: where it is a text, the one that is indexed first."""
    if field.type is not FieldType.TEXT:
        return [column(schema, field.name)]
    kept = [column(schema, field.name)] if field.stored else []
    return list(dict.fromkeys([text_column(schema, field.name, analysis), *kept]))


def _values(field: Field, value: Any, declared: bool) -> list[str]:
    """The literals of one field, in the order of its columns."""
    if field.type is FieldType.TEXT and declared:
        both = [literal(None if value is None else indexed(str(value))), literal(value)]
        return both if field.stored else both[:1]
    if field.type is FieldType.KEYWORDS and isinstance(value, list):
        return [quoted(json.dumps(value, ensure_ascii=False, separators=(",", ":")))]
    return [literal(value)]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _fits(document: Document, schema: Schema) -> bool:
    """False where the server may refuse: that is for it to say, and of this document alone."""
    if len(document.id) > ID_CHARACTERS:
        return False
    known = {field.name: field.type for field in schema.fields}
    return all(k in known and _suits(known[k], v) for k, v in document.values.items())


def _suits(kind: FieldType, value: object) -> bool:
    if kind is FieldType.TEXT:
        return isinstance(value, str)
    if kind is FieldType.KEYWORD:
        return isinstance(value, str) and len(value) <= KEYWORD_CHARACTERS
    if kind is FieldType.KEYWORDS:
        return isinstance(value, list) and all(_suits(FieldType.KEYWORD, v) for v in value)
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
