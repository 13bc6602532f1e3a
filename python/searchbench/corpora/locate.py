"""Finds the files that a corpus names, tells their format, and meets their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from searchbench.corpora.corpus import Field, FieldType, Schema
from searchbench.corpora.infer import is_field_name
from searchbench.corpora.rows import Format, Source, format_of
from searchbench.errors import CorpusError


def expand(asked: str, base: Path, form: str) -> list[Source]:
    """The files of one path, glob or folder, sorted; CorpusError where there are none."""
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


def format_of_all(sources: Sequence[Source], asked: str) -> Format:
    """The one format of all files, asked for or told by their names; CorpusError."""
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
        if not isinstance(table.get("stored", True), bool):
            raise CorpusError(
                f"The field {name!r} has stored = {table['stored']!r}; true or false is expected."
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
        made.append(Field(name, kind, table.get("stored", True)))
        columns[name] = str(table.get("column", name))
    if not made:
        raise CorpusError(
            "The corpus declares no fields; name at least one, or leave `fields` out."
        )
    return Schema(tuple(made)), columns


def find_id(asked: str | None, names: tuple[str, ...], path: Path) -> str | None:
    """The column of the id: the one asked for, else "id" in any case; None where there is none."""
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


def check_columns(columns: Mapping[str, str], head: tuple[str, ...], path: Path) -> None:
    """CorpusError where a field's column is not in the header."""
    for name, column in columns.items():
        if column not in head:
            raise CorpusError(
                f"{path} has no column {column!r} for the field {name!r}; "
                f"it has {_listed(head)}.{_near(column, head)}"
            )


def check_header(
    first: Source, head: tuple[str, ...] | None, other: Source, found: tuple[str, ...] | None
) -> None:
    """CorpusError where two files have different columns."""
    if head != found:
        raise CorpusError(
            f"{other.path}:1: its columns ({_listed(found or ())}) are not those of "
            f"{first.path} ({_listed(head or ())})."
        )


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def _near(name: str, names: Sequence[str] | type[FieldType]) -> str:
    close = get_close_matches(name, [str(each) for each in names], 1)
    return f" Did you mean {close[0]}?" if close else ""
