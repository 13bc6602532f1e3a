"""What a corpus is: a schema and a stream of documents that fit it; digested, and written.

A document's values are canonical, so that every engine is given the same:

    text, keyword   str
    keywords        list[str], in the order given
    integer         int, -2**63 .. 2**63-1
    float           float, finite
    date            int, milliseconds since 1970-01-01 UTC
    boolean         bool

A field that a document lacks is absent from ``values``, never None.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import lzma
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import orjson

from searchbench.errors import CorpusError

RESERVED = ("id", "_score")
"""Names that no field may have: the document's own identifier, and relevance as a sort key."""


class FieldType(StrEnum):
    """The types that a field can have. TEXT is analysed; the others are matched whole."""

    TEXT = "text"
    KEYWORD = "keyword"
    KEYWORDS = "keywords"
    INTEGER = "integer"
    FLOAT = "float"
    DATE = "date"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class Field:
    """One named field. ``stored``: engines keep its value, so that it can be returned."""

    name: str
    type: FieldType
    stored: bool = True


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a corpus, in order. Every document also has an ``id``, a unique string."""

    fields: tuple[Field, ...]

    def __getitem__(self, name: str) -> Field:
        """The field of that name; KeyError."""
        for each in self.fields:
            if each.name == name:
                return each
        raise KeyError(name)

    def of_type(self, *types: FieldType) -> tuple[Field, ...]:
        """The fields of these types, in order."""
        return tuple(each for each in self.fields if each.type in types)

    def to_json(self) -> dict[str, Any]:
        """``{"fields": [{"name", "type", "stored"}]}``, as in the framed protocol."""
        return {
            "fields": [
                {"name": each.name, "type": each.type.value, "stored": each.stored}
                for each in self.fields
            ]
        }


class Document(NamedTuple):
    """One document: a unique id and canonical values by field name."""

    id: str
    values: dict[str, Any]


class Corpus(Protocol):
    """A schema and documents that fit it; may be read again and again, the same each time."""

    @property
    def name(self) -> str:
        """A short name for tables."""

    @property
    def schema(self) -> Schema:
        """The fields of its documents."""

    def documents(self) -> Iterator[Document]:
        """All documents, streamed in constant memory, always in the same order."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that does not fit. ``line`` counts from 1 (in Parquet: the row)."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        """``file:line: reason``, the form editors can jump to."""
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass(slots=True)
class Intake:
    """What became of the rows in one reading: rows == accepted + refused.

    ``first`` holds the first few refused ones. ``ignored`` counts rows by a column that they
    hold and the schema does not. ``unseen`` are fields of the schema that no document has.
    """

    rows: int = 0
    accepted: int = 0
    refused: int = 0
    first: list[BadRow] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """What was read. ``text_bytes``: UTF-8 bytes of the text fields alone.

    ``intake`` is None for corpora that are not read from a user's rows.
    """

    name: str
    digest: str
    documents: int
    text_bytes: int
    intake: Intake | None = None


def digest(corpus: Corpus, write: Callable[[bytes], object] | None = None) -> Summary:
    """Reads the corpus once and says what it holds; CorpusError as its documents raise it.

    sha256 over JSON lines: the schema, then each document as ``{"id":..,"v":{..}}`` with the
    keys sorted. The name of the corpus does not enter. ``write`` is given each document as
    the line of a file that ``write_jsonl`` makes.
    """
    sha = hashlib.sha256(orjson.dumps(corpus.schema.to_json(), option=_CANONICAL))
    texts = tuple(each.name for each in corpus.schema.of_type(FieldType.TEXT))
    documents = text_bytes = 0
    for key, values in corpus.documents():
        try:
            sha.update(orjson.dumps({"id": key, "v": values}, option=_CANONICAL))
            if write:
                write(orjson.dumps({"id": key, **values}, option=_CANONICAL))
        except orjson.JSONEncodeError as error:
            raise CorpusError(
                f"Document {key!r} cannot be written as JSON ({error}): its values are not "
                "canonical."
            ) from error
        documents += 1
        for name in texts:
            if text := values.get(name):
                text_bytes += len(text) if text.isascii() else len(text.encode())
    return Summary(corpus.name, sha.hexdigest(), documents, text_bytes, intake_of(corpus))


def intake_of(corpus: Corpus) -> Intake | None:
    """What became of the rows in the last whole reading of the files below ``corpus``."""
    intake = getattr(corpus, "intake", None)
    return intake if isinstance(intake, Intake) else None


_BUFFER_BYTES = 1 << 20
_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


def write_jsonl(corpus: Corpus, path: Path) -> Summary:
    """Writes all documents as JSON lines and says what they were; whole or not at all.

    A line is ``{"id": .., field: value, ..}``, with dates in milliseconds since 1970 UTC, so that
    it is read back as it was with the same ``fields``. Compression is told by the end of the name:
    .gz, .zst, .xz, .bz2. The same documents give the same bytes.

    CorpusError where the disk is full or the place cannot be written; then nothing is left.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    temporary = Path(name)
    try:
        with _compressing(temporary, path) as stream:
            summary = digest(corpus, stream.write)
        os.fsync(handle)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        os.close(handle)
        temporary.unlink(missing_ok=True)  # not there once it was renamed
    return summary


@contextmanager
def _compressing(temporary: Path, path: Path) -> Iterator[BinaryIO]:
    """``temporary``, open to be written and packed as the end of ``path`` says."""
    suffix = path.suffix.lower()
    if suffix == ".lz4":
        raise CorpusError(f"{path}: .lz4 is read and not written; take .zst.")
    packing = _PACKING.get(suffix, nullcontext)
    with temporary.open("wb", buffering=_BUFFER_BYTES) as below, packing(below) as stream:
        yield stream


def _zstd(below: BinaryIO) -> Any:
    import pyarrow as pa  # here, not above: the command line must start fast

    return pa.CompressedOutputStream(below, "zstd")


_PACKING: Mapping[str, Callable[[BinaryIO], Any]] = {
    # Without a name and a time in its head, so that the same documents give the same bytes.
    ".gz": lambda below: gzip.GzipFile("", "wb", compresslevel=6, fileobj=below, mtime=0),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".zst": _zstd,
}


def _unwritable(path: Path, error: OSError) -> CorpusError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return CorpusError(
            f"The disk is full, so {path} was not written; make room, or write elsewhere."
        )
    return CorpusError(f"{path} cannot be written: {error.strerror or error}.")
