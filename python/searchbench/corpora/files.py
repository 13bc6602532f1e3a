"""The user's own files: JSON lines, CSV, TSV, Parquet, and folders of text files.

    files      one path, glob or folder, or a list of them; relative to the study file
    formats    by the end of the name, below .gz .zst .xz .bz2 .lz4, or ``format``
    id         the column ``id`` unless named; without it, the number of the row over all files
    fields     declared, or guessed from the first rows (see ``conform``) and then shown
    bad rows   counted, the first few kept with file, line and reason; refused or skipped

A folder or a text file gives one document a file: id = path below the folder, title = file
name, body. Hidden files are left out. Files are read in the order of their paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from searchbench.corpora.conform import (
    Conformer,
    DateUnit,
    Inference,
    Misfit,
    declared,
    identifier,
    infer,
    near,
)
from searchbench.corpora.corpus import BadRow, Document, Field, FieldType, Intake, Schema
from searchbench.corpora.delimiter import shown
from searchbench.corpora.doubts import Doubts, doubts
from searchbench.corpora.rows import (
    Dialect,
    Format,
    Source,
    format_of,
    header,
    rows,
    with_delimiter,
)
from searchbench.errors import CorpusError

BadRows = Literal["refuse", "skip"]
KEPT = 5
"""How many of the bad rows are kept to be shown."""

_CHECKED_ROWS = 2048
_CHECKED_CHARACTERS = 8 << 20
TEXT_SCHEMA = Schema((Field("title", FieldType.TEXT), Field("body", FieldType.TEXT)))


@dataclass(slots=True)
class FileCorpus:
    """Documents from files; made by ``open_files``.

    ``inference`` is None where the fields were declared; ``doubts`` is None where nothing in it is
    to be doubted. ``intake`` is what became of the rows in the last whole reading, and None before
    the first.
    """

    name: str
    schema: Schema
    sources: tuple[Source, ...]
    dialect: Dialect
    id_column: str | None
    columns: Mapping[str, str]
    separator: str | None
    date_unit: DateUnit = "ms"
    bad_rows: BadRows = "refuse"
    inference: Inference | None = None
    doubts: Doubts | None = None
    intake: Intake | None = field(default=None, init=False)

    @property
    def separated(self) -> str:
        """What separates the cells, for a sentence; "" where there are none, as in JSON."""
        return f"separated by {shown(self.dialect.delimiter)}" if self.dialect.delimiter else ""

    def documents(self) -> Iterator[Document]:
        """All rows that fit, in order; CorpusError at the end of a reading that refuses some.

        With ``bad_rows`` "refuse" nothing more is given after the first bad row, but the
        reading goes on, so that the error can say how many there are.
        """
        intake = Intake()
        refusing = False
        unseen = dict.fromkeys(field.name for field in self.schema.fields)
        for batch in self._distinct(intake):
            refusing = refusing or (intake.refused > 0 and self.bad_rows == "refuse")
            for document in batch:
                intake.accepted += 1
                if unseen:
                    for name in document.values:
                        unseen.pop(name, None)
                if not refusing:
                    yield document
        intake.unseen = tuple(unseen)
        self.intake = intake
        if intake.refused and self.bad_rows == "refuse":
            raise CorpusError(_refusal(intake))

    def first_rows(self, most: int) -> Intake:
        """What becomes of the first rows; CorpusError where a file is unusable."""
        intake = Intake()
        intake.accepted = sum(map(len, self._distinct(intake, most)))
        return intake

    def first_ids(self, most: int) -> list[str]:
        """The ids of the first rows that fit."""
        return [document.id for batch in self._distinct(Intake(), most) for document in batch]

    def _distinct(self, intake: Intake, most: int | None = None) -> Iterator[list[Document]]:
        """Batches without the documents whose id was there before; those are bad rows."""
        seen = Seen()
        batch: list[tuple[Document, str, int]] = []
        characters = 0
        for document, size, file, line in self._fitting(intake, most):
            batch.append((document, file, line))
            characters += size
            if len(batch) == _CHECKED_ROWS or characters >= _CHECKED_CHARACTERS:
                yield self._unrepeated(seen, batch, intake)
                batch, characters = [], 0
        yield self._unrepeated(seen, batch, intake)

    def _unrepeated(
        self, seen: Seen, batch: list[tuple[Document, str, int]], intake: Intake
    ) -> list[Document]:
        ids = [document.id for document, _, _ in batch]
        repeated = seen.repeated(ids).tolist() if self.id_column is not None else ()
        if not any(repeated):
            return [document for document, _, _ in batch]
        kept = []
        for again, (document, file, line) in zip(repeated, batch, strict=True):
            if again:
                refuse(intake, file, line, f"the id {document.id!r} was there before")
            else:
                kept.append(document)
        return kept

    def _fitting(
        self, intake: Intake, most: int | None = None
    ) -> Iterator[tuple[Document, int, str, int]]:
        """Documents whose rows fit, each with its size in characters, file and line.

        ``most``: only so many rows are read.
        """
        fit = Conformer(self.schema, self.separator, self.date_unit, self.columns)
        known = set(self.columns.values()) | {self.id_column}
        if self.inference:
            known |= set(self.inference.notes)
        texts = [field.name for field in self.schema.of_type(FieldType.TEXT)]
        for source in self.sources:
            file = str(source.path)
            left = None if most is None else most - intake.rows
            for line, row in islice(rows(source, self.dialect), left):
                intake.rows += 1
                try:
                    if isinstance(row, str):
                        raise Misfit(row)
                    number = str(intake.rows)
                    key = identifier(row.get(self.id_column)) if self.id_column else number
                    values = fit(row)
                except Misfit as misfit:
                    refuse(intake, file, line, str(misfit))
                    continue
                if not row.keys() <= known:
                    for column in row.keys() - known:
                        intake.ignored[column] = intake.ignored.get(column, 0) + 1
                size = sum(len(values.get(name, "")) for name in texts)
                yield Document(key, values), size, file, line


def open_files(
    files: str | Sequence[str],
    base: Path,
    *,
    format: Format | Literal["auto"] = "auto",  # noqa: A002 -- the keys of the study
    fields: Mapping[str, object] | None = None,
    id: str | None = None,  # noqa: A002
    separator: str = "|",
    delimiter: str = "",
    quote: str = '"',
    date_unit: DateUnit = "ms",
    bad_rows: BadRows = "refuse",
    sample_rows: int = 1000,
    name: str = "",
    id_is: str = "id",
) -> FileCorpus:
    """The corpus of these files; reads their headers and, to guess a schema, the first rows.

    ``fields``: by field name, a type ("text") or a table ``{type, stored, column}``. ``id_is``: the
    key of the study that names the column of the id.
    CorpusError where a file is missing, fields do not fit the header, or nothing is to be read.
    """
    asked = [files] if isinstance(files, str) else list(files)
    if not asked:
        raise CorpusError("The corpus names no files; give at least one under `files`.")
    sources = [source for each in asked for source in expand(each, base, format)]
    folders = format == "auto" and all((base / each).is_dir() for each in asked)
    dialect = Dialect("text" if folders else _format_of_all(sources, format), delimiter, quote)
    dialect = with_delimiter(sources[0].path, dialect)
    # Only text files have to be cut at a separator: JSON and Parquet have lists.
    cut = separator if dialect.format in ("csv", "tsv") else None
    head = header(sources[0].path, dialect)
    first = sources[0].path
    for source in sources[1:] if dialect.format in ("csv", "tsv") else ():
        if (found := header(source.path, dialect)) != head:
            raise CorpusError(
                f"{source.path}:1: its columns ({_listed(found or ())}) are not those of "
                f"{first} ({_listed(head or ())})."
            )
    inference: Inference | None = None
    doubted: Doubts | None = None
    columns: Mapping[str, str]
    if fields is None and dialect.format == "text":
        schema, columns = TEXT_SCHEMA, {"title": "title", "body": "body"}
        id_column: str | None = "id"
    else:
        sample: list[Mapping[str, Any]] = []
        places: list[str] = []
        unread: list[str] = []
        if fields is None or head is None:
            every = ((s.path, line, row) for s in sources for line, row in rows(s, dialect))
            for path, line, row in islice(every, sample_rows):
                if isinstance(row, str):
                    unread.append(f"{path}:{line}: {row}")
                else:
                    sample.append(row)
                    places.append(f"{path}:{line}")
        names = head if head is not None else tuple(dict.fromkeys(n for row in sample for n in row))
        where = f"{first}:1" if dialect.format in ("csv", "tsv") else str(first)
        id_column = _find_id(id, names, where, id_is)
        if fields is None:
            inference = infer(sample, id_column, cut)
            schema, columns = inference.schema, inference.columns
            doubted = doubts(sample, places, inference, id_column)
            if not sample:
                raise CorpusError(
                    f"None of the first {len(unread):,} rows can be read: {unread[0]}; correct "
                    "them, or give the form of the cells (`delimiter`, `quote`)."
                    if unread
                    else f"{first} has no rows."
                )
            if not schema.fields and names != (id_column,):  # of ids alone: see insist_on_fields
                why = f"\n{doubted}" if doubted else ""
                raise CorpusError(
                    f"No field could be guessed from the first {len(sample)} rows of {first}; "
                    f"declare them under `fields`.{why}"
                )
        else:
            schema, columns = declared(fields)
            for field_name, column in columns.items() if head is not None else ():
                if column not in names:
                    raise CorpusError(
                        f"{where}: there is no column {column!r} for the field {field_name!r}; "
                        f"there are {_listed(names)}.{near(column, names)}",
                        at=("fields", field_name, "column"),
                    )
    name = name or Path(asked[0]).name.split(".")[0] or "files"
    reading = (dialect, id_column, columns, cut, date_unit, bad_rows, inference, doubted)
    return FileCorpus(name, schema, tuple(sources), *reading)


def insist_on_fields(corpus: object) -> None:
    """CorpusError where a file has a column of ids and no other, and documents are wanted."""
    if isinstance(corpus, FileCorpus) and not corpus.schema.fields:
        raise CorpusError(
            f"{corpus.sources[0].path} has no column but {corpus.id_column}, so its documents have "
            "no fields. Ids alone are enough for operations on an attached database only."
        )


def refuse(intake: Intake, file: str, line: int, reason: str) -> None:
    """Count a row that is not taken, and keep the first few."""
    intake.refused += 1
    if len(intake.first) < KEPT:
        intake.first.append(BadRow(file, line, reason))


def _refusal(intake: Intake) -> str:
    more = intake.refused - len(intake.first)
    shown = "\n".join(f"  {each}" for each in intake.first)
    return (
        f"{intake.refused} of {intake.rows} rows do not fit the schema; "
        f'correct them, or leave them out with bad_rows = "skip":\n{shown}'
        + (f"\n  and {more} more" if more else "")
    )


def expand(asked: str, base: Path, form: str) -> list[Source]:
    """The files of one path, glob or folder, sorted; CorpusError where there are none."""
    path = base / asked
    if path.is_dir():
        root, found = path, sorted(each for each in path.rglob("*") if each.is_file())
        found = [f for f in found if not any(p.startswith(".") for p in f.relative_to(path).parts)]
        if found and form == "auto" and all(format_of(f) not in (None, "text") for f in found):
            raise CorpusError(
                f"{path} is a folder of tables, and a folder is read as text files; "
                f"name the files, such as {asked}/*{found[0].suffix}."
            )
        if not found:
            raise CorpusError(f"{path} has no files in it.")
    elif any(mark in asked for mark in "*?[") and not path.exists():
        still = Path(asked)
        while any(mark in str(still) for mark in "*?["):
            still = still.parent
        root = base / still
        pattern = Path(asked).relative_to(still).as_posix()
        found = sorted(each for each in root.glob(pattern) if each.is_file())
        if not found:
            raise CorpusError(f"No file matches {asked} (looked in {root}).")
    elif path.exists():
        root, found = path.parent, [path]
    else:
        names = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        raise CorpusError(f"There is no file {path}.{near(path.name, names)}")
    return [Source(each, each.relative_to(root).as_posix()) for each in found]


def _format_of_all(sources: Sequence[Source], asked: Format | Literal["auto"]) -> Format:
    """The one format of all files, asked for or told by their names; CorpusError."""
    if asked != "auto":
        return asked
    formats = {format_of(source.path) for source in sources}
    if len(formats) > 1:
        raise CorpusError(
            "The files of a corpus have one format, and these have several: "
            + ", ".join(sorted(str(each or "unknown") for each in formats))
            + "; name it with `format`."
        )
    (found,) = formats
    if found is None:
        raise CorpusError(
            f"The format of {sources[0].path} cannot be told from its name; "
            'say it: format = "jsonl", "csv", "tsv", "parquet" or "text".'
        )
    return found


def _find_id(asked: str | None, names: tuple[str, ...], where: str, key: str) -> str | None:
    """The column of the id: the one asked for, else "id" in any case; None where there is none."""
    if asked is None:
        exact_first = sorted(names, key="id".__ne__)
        return next((name for name in exact_first if name.lower() == "id"), None)
    if asked not in names:
        raise CorpusError(
            f"{where}: there is no column {asked!r} for the {key}; there are {_listed(names)}."
            + near(asked, names),
            at=(key,),
        )
    return asked


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


class Seen:
    """Which ids were seen before, in bounded memory: 8 bytes an id, and as much again at times.

    Sorted runs of 64-bit hashes, merged when two are of a size (a log-structured merge). Ten
    million ids take 80 MB at rest and at most 240 MB while runs are merged, where a set of
    strings takes above 1 GB. Two different ids are taken for one with a probability of
    n**2 / 2**65: three in a million for ten million ids.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int64]] = []

    def repeated(self, ids: Sequence[str]) -> NDArray[np.bool_]:
        """For each id, whether it was there before: in an earlier call, or earlier in this."""
        hashes = np.fromiter(map(hash, ids), np.int64, len(ids))
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        known = np.zeros(len(ids), np.bool_)
        known[1:] = ordered[1:] == ordered[:-1]  # stable: the first of equals came first
        for run in self._runs:
            place = np.searchsorted(run, ordered)
            place[place == len(run)] = 0
            known |= run[place] == ordered
        self._add(ordered[~known])
        answer = np.empty(len(ids), np.bool_)
        answer[order] = known
        return answer

    def _add(self, run: NDArray[np.int64]) -> None:
        if len(run) == 0:
            return
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.concatenate((self._runs.pop(), run))
            run.sort(kind="stable")  # finds the two runs and merges them
        self._runs.append(run)
