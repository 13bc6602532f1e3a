"""A table as a corpus: typed columns with a key and secondary indexes, generated or from files.

A row is a document. Its id is the text of its key; where the key has several columns, their values
with a comma between them. SQL databases make a plain table of it, with the columns under their own
names, the primary key and the indexes that are declared and no others (``corpus.Table``); every
other engine indexes each field.

    generated   ``columns`` with a distribution each (``placed``, ``drawn``); any part of the rows
                is made without the rest; a column that is shuffled depends on their number
    files       read as the family "files" reads them; keywords of a row are made distinct
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from searchbench.corpora.conform import is_field_name
from searchbench.corpora.corpus import (
    Document,
    Field,
    FieldType,
    Index,
    Intake,
    Schema,
    Table,
)
from searchbench.corpora.drawn import Drawn
from searchbench.corpora.files import FileCorpus, Seen, open_files
from searchbench.corpora.laws import Integers
from searchbench.corpora.placed import BLOCK, Column, Counted, columns_of
from searchbench.errors import CorpusError
from searchbench.spec import nearest, show

DEFAULT_COLUMNS: Mapping[str, object] = {
    "owner": {"type": "integer", "distribution": "zipf", "distinct": 10_000, "exponent": 1.0},
    "state": {"type": "keyword", "distribution": "zipf", "distinct": 10, "exponent": 1.0},
    "amount": {"type": "float", "distribution": "lognormal", "median": 20.0, "sigma": 1.0},
    "made": {"type": "date", "low": "2010-01-01", "high": "2025-01-01"},
    "filling": {"type": "keyword", "distribution": "random", "length": 64},
}
"""The columns of a generated table that declares none."""

_ID = {"type": "integer", "distribution": "sequence"}
_KEYS = (FieldType.INTEGER, FieldType.KEYWORD)
_INTEGER = re.compile(r"-?[0-9]{1,18}")
TABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}")
"""What every database takes without quotes, but for words of SQL."""
_INDEXES = ("indexes",)
_KEY = ("key",)
_GUESSED_FROM = 1000
_CHECKED = 2048


@dataclass(frozen=True, slots=True)
class GeneratedTable:
    """Generated rows; made by ``open_table``. ``columns``: with the key's."""

    name: str
    count: int
    seed: int
    columns: tuple[Column | Drawn, ...]
    schema: Schema

    def documents(self) -> Iterator[Document]:
        """All rows, in the order of their places."""
        return self.between(0, self.count)

    def between(self, start: int, stop: int) -> Iterator[Document]:
        """The rows from place ``start`` (from 0) up to ``stop``, made without those before."""
        stop = min(stop, self.count)
        for block in range(start // BLOCK, -(-stop // BLOCK)):
            first = block * BLOCK
            yield from self._block(block)[max(0, start - first) : stop - first]

    def key_columns(self) -> dict[str, Integers]:
        """The values of the key's columns, by name, in the order of the rows."""
        places = np.arange(self.count, dtype=np.int64)
        wanted = {each.name for each in _table(self.schema).key}
        return {
            each.field.name: each.at(self.seed, places)
            for each in self.columns
            if isinstance(each, Counted) and each.field.name in wanted
        }

    def _block(self, block: int) -> list[Document]:
        count = min(BLOCK, self.count - block * BLOCK)
        drawn = {c.field.name: c.draw(self.seed, block, count) for c in self.columns}
        keys = [drawn[each.name] for each in _table(self.schema).key]
        ids = [",".join(map(str, parts)) for parts in zip(*keys, strict=True)]
        names = [each.name for each in self.schema.fields]
        return [
            Document(key, {n: v for n, v in zip(names, row, strict=True) if v is not None})
            for key, row in zip(ids, zip(*(drawn[n] for n in names), strict=True), strict=True)
        ] if names else [Document(key, {}) for key in ids]  # fmt: skip


@dataclass(slots=True)
class TableFiles:
    """Rows of files; made by ``open_table``. ``below``: the files as they are read."""

    name: str
    below: FileCorpus
    schema: Schema
    intake: Intake | None = field(default=None, init=False)

    def documents(self) -> Iterator[Document]:
        """All rows, in the order of the files; CorpusError for a key that is none or repeated."""
        seen = Seen()
        rows = self._keyed(self.below.documents())
        while batch := list(islice(rows, _CHECKED)):
            again = seen.repeated([each.id for each in batch]).tolist()
            for document, repeated in zip(batch, again, strict=True):
                if repeated:
                    raise CorpusError(
                        f"{self.name}: two rows have the key {document.id}; name columns under "
                        "`key` that tell all rows apart."
                    )
                yield document
        self.intake = self.below.intake

    def first_rows(self, most: int) -> Intake:
        """What becomes of the first rows; CorpusError where a file is unusable."""
        return self.below.first_rows(most)

    def _keyed(self, rows: Iterator[Document]) -> Iterator[Document]:
        key = _table(self.schema).key
        single = key[0] if len(key) == 1 else None
        lists = [each.name for each in self.schema.of_type(FieldType.KEYWORDS)]
        for number, (own, values) in enumerate(rows, 1):
            for name in lists:
                if name in values:
                    values[name] = list(dict.fromkeys(values[name]))
            if single is None:
                missing = [each.name for each in key if each.name not in values]
                if missing:
                    raise CorpusError(f"{self.name}: row {number} has no {missing[0]}, and it is "
                                      "in the key.")  # fmt: skip
                own = ",".join(str(values[each.name]) for each in key)
            elif single.type is FieldType.INTEGER and not _INTEGER.fullmatch(own):
                raise CorpusError(
                    f"{self.name}: row {number} has the {single.name} {own!r}, and the key is an "
                    f'integer; say {single.name} = "keyword" under `columns`.'
                )
            yield Document(own, values)


def open_table(
    *,
    base: Path,
    files: str | Sequence[str] = (),
    table: str = "",
    rows: int = 100_000,
    seed: int = 1,
    key: str | Sequence[str] = "id",
    indexes: Sequence[object] = (),
    columns: Mapping[str, Any] | None = None,
    name: str = "",
    **reading: Any,
) -> GeneratedTable | TableFiles:
    """The table of these files, relative to ``base``; or, if there are none, a generated one.

    CorpusError in one sentence for what does not go together.
    """
    asked = [key] if isinstance(key, str) else list(key)
    if not TABLE_NAME.fullmatch(table or "rows"):
        raise misnamed(table)
    if not asked or len(set(asked)) != len(asked):
        raise CorpusError("`key` names one column, or several that differ.", at=_KEY)
    if files:
        return _from_files(files, base, table, asked, indexes, columns, name, reading)
    declared = dict(DEFAULT_COLUMNS if columns is None else columns)
    if asked == ["id"]:
        declared = {"id": _ID} | declared
    made = columns_of(declared, rows)
    named = {each.field.name: each for each in made}
    _key_is_unique(asked, named)
    keys = tuple(named[each].field for each in asked)
    alone = keys if len(keys) == 1 else ()
    fields = tuple(each.field for each in made if each.field not in alone)
    _no_id(fields)
    declared_table = Table(table or "rows", keys, indexes_of(indexes, (*alone, *fields)))
    called = name or table or "table"
    return GeneratedTable(called, rows, seed, made, Schema(fields, declared_table))


def misnamed(table: str) -> CorpusError:
    """That a database cannot call a table so."""
    return CorpusError(
        f"A table cannot be named {table!r}; use letters, digits, underscores.", at=("table",)
    )


def indexes_of(given: Sequence[object], columns: Sequence[Field]) -> tuple[Index, ...]:
    """The indexes that a study declares: a column's name, a list of names, or a table.

    CorpusError where one names no column, or one that cannot be in an index of a database.
    """
    found = []
    known = {each.name: each.type for each in columns}
    for each in given:
        table = each if isinstance(each, Mapping) else {"columns": each}
        if strange := set(table) - {"columns", "unique"}:
            raise CorpusError(
                f"An index has no key {min(strange)!r}; it has columns and unique.", at=_INDEXES
            )
        names = table.get("columns")
        names = [names] if isinstance(names, str) else names
        unique = table.get("unique", False)
        if not isinstance(names, list | tuple) or not names or not isinstance(unique, bool):
            raise CorpusError(
                "`indexes` has one for each index: a column, a list of columns, or "
                '{columns = ["a", "b"], unique = true}.',
                at=_INDEXES,
            )
        for name in names:
            if not isinstance(name, str) or name not in known:
                raise _no_column("indexes", name, known)
            if known[name] in (FieldType.TEXT, FieldType.KEYWORDS):
                raise CorpusError(
                    f"`indexes` names {name}, which is {known[name]}: its words or values are "
                    "indexed in any case; leave it out.",
                    at=_INDEXES,
                )
        found.append(Index(tuple(names), unique))
    return tuple(dict.fromkeys(found))


def _no_column(key: str, name: object, known: Iterable[str]) -> CorpusError:
    """That a key of the study names no column, and which is the nearest."""
    hint = nearest(str(name), known)
    end = "" if hint.endswith("?") else "."
    return CorpusError(f"`{key}`: there is no column {show(name)}; {hint}{end}", at=(key,))


def _from_files(
    files: str | Sequence[str],
    base: Path,
    table: str,
    key: Sequence[str],
    indexes: Sequence[object],
    columns: Mapping[str, Any] | None,
    name: str,
    reading: Mapping[str, Any],
) -> TableFiles:
    alone = key[0] if len(key) == 1 else None
    declared = None if columns is None else {k: v for k, v in columns.items() if k != alone}
    below = open_files(files, base, fields=declared, id=alone, name=name, id_is="key", **reading)
    if alone is not None:
        keys: tuple[Field, ...] = (Field(alone, _type_of_id(below, (columns or {}).get(alone))),)
    else:
        there = {each.name: each for each in below.schema.fields}
        for name_of in key:
            if name_of not in there:
                raise _no_column("key", name_of, there)
        keys = tuple(there[each] for each in key)
    for each in keys:
        _can_be_key(each)
    fields = below.schema.fields
    every = (*(() if alone is None else keys), *fields)
    declared_table = Table(table or _plain(below.name), keys, indexes_of(indexes, every))
    return TableFiles(below.name, below, Schema(fields, declared_table))


def _type_of_id(below: FileCorpus, declared: object) -> FieldType:
    """Of a key that is one column: as declared, else by the first rows."""
    if isinstance(declared, Mapping):
        declared = declared.get("type")
    if declared is not None:
        if declared not in [each.value for each in _KEYS]:
            raise CorpusError(f"A key is an integer or a keyword, not {show(declared)}.")
        return FieldType(str(declared))
    whole = all(map(_INTEGER.fullmatch, below.first_ids(_GUESSED_FROM)))
    return FieldType.INTEGER if whole else FieldType.KEYWORD


def _key_is_unique(key: Sequence[str], columns: Mapping[str, Column | Drawn]) -> None:
    """CorpusError where two generated rows could have the same key."""
    parts = []
    for name in key:
        if name not in columns:
            raise _no_column("key", name, columns)
        part = columns[name]
        if not isinstance(part, Counted):
            raise CorpusError(
                f"`key` names {name}, whose values are drawn and may come twice; a key has the "
                "distribution sequence or shuffled, or is made of steps and a cycle.",
                at=_KEY,
            )
        parts.append(part)
    if any(part.unique for part in parts):
        return
    steps = [part.options["each"] for part in parts if part.order == "steps"]
    cycles = [part.options["distinct"] for part in parts if part.order == "cycle"]
    if not steps or not cycles or max(cycles) < min(steps):
        raise CorpusError(
            f"The key {', '.join(key)} is the same in several rows: it needs a sequence, or steps "
            "together with a cycle of at least as many numbers (`distinct`) as each step has rows "
            "(`each`)."
        )


def _can_be_key(column: Field) -> None:
    if column.type not in _KEYS:
        raise CorpusError(
            f"`key` names {column.name}, which is {column.type}; a key is an integer or a keyword.",
            at=_KEY,
        )


def _no_id(fields: Sequence[Field]) -> None:
    for each in fields:
        if not is_field_name(each.name):
            raise CorpusError(
                f"The column {each.name!r} is not the key, and the name is taken by a row's own "
                "key; call it something else."
            )


def _plain(name: str) -> str:
    """A name for SQL."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name)[:48]
    return plain if TABLE_NAME.fullmatch(plain) else "rows"


def _table(schema: Schema) -> Table:
    assert schema.table is not None
    return schema.table
