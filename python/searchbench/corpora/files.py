"""The user's own files: JSON lines, CSV, TSV, Parquet, and folders of text files.

    files      one path, glob or folder, or a list of them; relative to the study file
    formats    by the end of the name, below .gz .zst .xz .bz2 .lz4, or ``format``
    id         the column ``id`` unless named; without it, the number of the row over all files
    fields     declared, or guessed from the first rows (see ``infer``) and then shown
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

from searchbench.corpora.conform import Conformer, DateUnit, Misfit, identifier
from searchbench.corpora.corpus import BadRow, Document, Field, FieldType, Intake, Schema
from searchbench.corpora.distinct import Seen
from searchbench.corpora.infer import SAMPLE_ROWS, Inference, infer
from searchbench.corpora.locate import (
    check_columns,
    check_header,
    declared,
    expand,
    find_id,
    format_of_all,
)
from searchbench.corpora.rows import Dialect, Format, Source, header, rows
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

    ``inference`` is None where the fields were declared. ``intake`` is what became of the
    rows in the last whole reading, and None before the first.
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
    intake: Intake | None = field(default=None, init=False)

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

    def _distinct(self, intake: Intake) -> Iterator[list[Document]]:
        """Batches without the documents whose id was there before; those are bad rows."""
        seen = Seen()
        batch: list[tuple[Document, str, int]] = []
        characters = 0
        for document, size, file, line in self._fitting(intake):
            batch.append((document, file, line))
            characters += size
            if len(batch) == _CHECKED_ROWS or characters >= _CHECKED_CHARACTERS:
                yield self._unrepeated(seen, batch, intake)
                batch, characters = [], 0
        yield self._unrepeated(seen, batch, intake)

    def _unrepeated(
        self, seen: Seen, batch: list[tuple[Document, str, int]], intake: Intake
    ) -> list[Document]:
        if self.id_column is None:
            return [document for document, _, _ in batch]
        repeated = seen.repeated([document.id for document, _, _ in batch]).tolist()
        if not any(repeated):
            return [document for document, _, _ in batch]
        kept = []
        for again, (document, file, line) in zip(repeated, batch, strict=True):
            if again:
                _refuse(intake, file, line, f"the id {document.id!r} was there before")
            else:
                kept.append(document)
        return kept

    def _fitting(self, intake: Intake) -> Iterator[tuple[Document, int, str, int]]:
        """Documents whose rows fit, each with its size in characters, file and line."""
        fit = Conformer(self.schema, self.separator, self.date_unit, self.columns)
        known = set(self.columns.values()) | {self.id_column}
        if self.inference:
            known |= set(self.inference.notes)
        texts = [field.name for field in self.schema.of_type(FieldType.TEXT)]
        for source in self.sources:
            file = str(source.path)
            for line, row in rows(source, self.dialect):
                intake.rows += 1
                if isinstance(row, str):
                    _refuse(intake, file, line, row)
                    continue
                values = fit(row)
                try:
                    number = intake.rows
                    key = identifier(row.get(self.id_column)) if self.id_column else str(number)
                except Misfit as misfit:
                    _refuse(intake, file, line, str(misfit))
                    continue
                if isinstance(values, list):
                    _refuse(intake, file, line, "; ".join(values))
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
    sample_rows: int = SAMPLE_ROWS,
    name: str = "",
) -> FileCorpus:
    """The corpus of these files; reads their headers and, to guess a schema, the first rows.

    ``fields``: by field name, a type ("text") or a table ``{type, stored, column}``.
    CorpusError where a file is missing, fields do not fit the header, or nothing is to be read.
    """
    asked = [files] if isinstance(files, str) else list(files)
    if not asked:
        raise CorpusError("The corpus names no files; give at least one under `files`.")
    sources = [source for each in asked for source in expand(each, base, format)]
    folders = format == "auto" and all((base / each).is_dir() for each in asked)
    dialect = Dialect("text" if folders else format_of_all(sources, format), delimiter, quote)
    # Only text files have to be cut at a separator: JSON and Parquet have lists.
    cut = separator if dialect.format in ("csv", "tsv") else None
    head = header(sources[0].path, dialect)
    for source in sources[1:] if dialect.format in ("csv", "tsv") else ():
        check_header(sources[0], head, source, header(source.path, dialect))
    inference: Inference | None = None
    if fields is None and dialect.format == "text":
        schema, columns = TEXT_SCHEMA, {"title": "title", "body": "body"}
        id_column: str | None = "id"
    else:
        sample = _sample(sources, dialect, sample_rows) if fields is None or head is None else []
        names = head if head is not None else tuple(dict.fromkeys(n for row in sample for n in row))
        id_column = find_id(id, names, sources[0].path)
        if fields is None:
            inference = infer(sample, id_column, cut)
            schema, columns = inference.schema, dict(inference.columns)
            if not schema.fields:
                raise CorpusError(
                    f"No field could be guessed from the first {len(sample)} rows of "
                    f"{sources[0].path}; declare them under `fields`."
                )
        else:
            schema, columns = declared(fields)
            if head is not None:
                check_columns(columns, head, sources[0].path)
    return FileCorpus(
        name or Path(asked[0]).name.split(".")[0] or "files",
        schema,
        tuple(sources),
        dialect,
        id_column,
        columns,
        cut,
        date_unit,
        bad_rows,
        inference,
    )


def _sample(sources: Sequence[Source], dialect: Dialect, count: int) -> list[Mapping[str, Any]]:
    every = (row for source in sources for _, row in rows(source, dialect))
    return [row for row in islice(every, count) if not isinstance(row, str)]


def _refuse(intake: Intake, file: str, line: int, reason: str) -> None:
    intake.refused += 1
    if len(intake.first) < KEPT:
        intake.first.append(BadRow(file, line, reason))


def _refusal(intake: Intake) -> str:
    more = intake.refused - len(intake.first)
    shown = "\n".join(f"  {each}" for each in intake.first)
    return (
        f"{intake.refused} of {intake.rows} rows do not fit the schema; "
        f'mend them, or leave them out with bad_rows = "skip":\n{shown}'
        + (f"\n  and {more} more" if more else "")
    )
