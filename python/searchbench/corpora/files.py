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
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from searchbench.corpora.conform import Conformer, DateUnit, Misfit, identifier
from searchbench.corpora.corpus import BadRow, Document, Field, FieldType, Intake, Schema
from searchbench.corpora.distinct import Seen
from searchbench.corpora.infer import SAMPLE_ROWS, Inference, infer, is_field_name
from searchbench.corpora.rows import Dialect, Format, Source, format_of, header, rows
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
    sources = [source for each in asked for source in _expand(each, base, format)]
    folders = format == "auto" and all((base / each).is_dir() for each in asked)
    dialect = Dialect("text" if folders else _format(sources, format), delimiter, quote)
    # Only text files have to be cut at a separator: JSON and Parquet have lists.
    cut = separator if dialect.format in ("csv", "tsv") else None
    head = header(sources[0].path, dialect)
    for source in sources[1:] if dialect.format in ("csv", "tsv") else ():
        _same_header(sources[0], head, source, header(source.path, dialect))
    inference: Inference | None = None
    if fields is None and dialect.format == "text":
        schema, columns = TEXT_SCHEMA, {"title": "title", "body": "body"}
        id_column: str | None = "id"
    else:
        sample = _sample(sources, dialect, sample_rows) if fields is None or head is None else []
        names = head if head is not None else tuple(dict.fromkeys(n for row in sample for n in row))
        id_column = _id_column(id, names, sources[0].path)
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
                _known(columns, head, sources[0].path)
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


def declared(fields: Mapping[str, object]) -> tuple[Schema, dict[str, str]]:
    """The schema that the user wrote, and the column of each field; CorpusError."""
    made: list[Field] = []
    columns: dict[str, str] = {}
    for name, value in fields.items():
        table: Mapping[str, Any] = value if isinstance(value, Mapping) else {"type": value}
        unknown = sorted(set(table) - {"type", "stored", "column"})
        if unknown:
            raise CorpusError(
                f"The field {name!r} has a key {unknown[0]!r}; type, stored and column are known."
            )
        if not is_field_name(name):
            raise CorpusError(
                f"A field cannot be named {name!r}: use letters, digits and underscores, "
                "and not id; `column` says which column it is read from."
            )
        if name.lower() in (other.lower() for other in columns):
            raise CorpusError(f"Two fields are named {name!r}, but for upper and lower case.")
        try:
            kind = FieldType(str(table.get("type")))
        except ValueError as error:
            raise CorpusError(
                f"The field {name!r} has the type {table.get('type')!r}; "
                f"the types are {', '.join(FieldType)}.{_near(str(table.get('type')), FieldType)}"
            ) from error
        made.append(Field(name, kind, bool(table.get("stored", True))))
        columns[name] = str(table.get("column", name))
    if not made:
        raise CorpusError(
            "The corpus declares no fields; name at least one, or leave `fields` out."
        )
    return Schema(tuple(made)), columns


def _sample(sources: Sequence[Source], dialect: Dialect, count: int) -> list[Mapping[str, Any]]:
    every = (row for source in sources for _, row in rows(source, dialect))
    return [row for row in islice(every, count) if not isinstance(row, str)]


def _id_column(asked: str | None, names: tuple[str, ...], path: Path) -> str | None:
    if asked is None:
        return next(
            (name for name in ("id", *names) if name in names and name.lower() == "id"), None
        )
    if asked not in names:
        raise CorpusError(
            f"{path} has no column {asked!r} for the id; it has {_listed(names)}."
            + _near(asked, names)
        )
    return asked


def _known(columns: Mapping[str, str], head: tuple[str, ...], path: Path) -> None:
    for name, column in columns.items():
        if column not in head:
            raise CorpusError(
                f"{path} has no column {column!r} for the field {name!r}; "
                f"it has {_listed(head)}.{_near(column, head)}"
            )


def _same_header(
    first: Source, head: tuple[str, ...] | None, other: Source, found: tuple[str, ...] | None
) -> None:
    if head != found:
        raise CorpusError(
            f"{other.path}:1: its columns ({_listed(found or ())}) are not those of "
            f"{first.path} ({_listed(head or ())})."
        )


def _expand(asked: str, base: Path, form: str) -> list[Source]:
    path = base / asked
    if path.is_dir():
        found = sorted(
            each for each in path.rglob("*") if each.is_file() and not _hidden(each, path)
        )
        if found and form == "auto" and all(format_of(f) not in (None, "text") for f in found):
            raise CorpusError(
                f"{path} is a folder of tables, and a folder is read as text files; "
                f"name the files, such as {asked}/*{found[0].suffix}."
            )
        if not found:
            raise CorpusError(f"{path} has no files in it.")
        return [Source(each, each.relative_to(path).as_posix()) for each in found]
    if any(mark in asked for mark in "*?[") and not path.exists():
        still = Path(asked)
        while any(mark in str(still) for mark in "*?["):
            still = still.parent
        root = base / still
        pattern = (Path(asked).relative_to(still)).as_posix()
        found = sorted(each for each in root.glob(pattern) if each.is_file())
        if not found:
            raise CorpusError(f"No file matches {asked} (looked in {root}).")
        return [Source(each, each.relative_to(root).as_posix()) for each in found]
    if not path.exists():
        names = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        raise CorpusError(f"There is no file {path}.{_near(path.name, names)}")
    return [Source(path, path.name)]


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _format(sources: Sequence[Source], asked: str) -> Format:
    if asked != "auto":
        known: tuple[Format, ...] = get_args(Format)
        for each in known:
            if each == asked:
                return each
        raise CorpusError(f"The format {asked!r} is not known; there are {', '.join(known)}.")
    formats = {format_of(source.path) for source in sources}
    if len(formats) == 1 and None not in formats:
        return next(each for each in formats if each is not None)
    if len(formats) > 1:
        raise CorpusError(
            "The files of a corpus have one format, and these have several: "
            + ", ".join(sorted(str(each or "unknown") for each in formats))
            + "; say which with `format`."
        )
    raise CorpusError(
        f"The format of {sources[0].path} cannot be told from its name; "
        'say it: format = "jsonl", "csv", "tsv", "parquet" or "text".'
    )


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


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def _near(name: str, names: Sequence[str] | type[FieldType]) -> str:
    close = get_close_matches(name, [str(each) for each in names], 1)
    return f" Did you mean {close[0]}?" if close else ""
