"""Package descriptions as a corpus: real text on any machine that knows Debian's archive.

``ListsCorpus`` joins the Packages indexes with the long descriptions (Translation-en) in a
folder of lists, as apt keeps them. ``lab`` fetches the lists and writes a snapshot, and a
study reads the snapshot.

One document a package name; of several versions the newest by Debian's own order, and of the
same version the first. Ordered by name. The lists are joined in memory, about 200 MB for the
64,000 packages of Debian 12: their size is the archive's, not the user's.

The text is the archive's; descriptions are licensed with their packages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from searchbench.corpora.conform import Conformer
from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.corpora.rows import lines, opened
from searchbench.errors import CorpusError
from searchbench.packed import COMPRESSED

SCHEMA = Schema(
    (
        Field("title", FieldType.TEXT),
        Field("body", FieldType.TEXT),
        Field("package", FieldType.KEYWORD),
        Field("section", FieldType.KEYWORD),
        Field("tags", FieldType.KEYWORDS),
        Field("priority", FieldType.KEYWORD),
        Field("architecture", FieldType.KEYWORD),
        Field("maintainer", FieldType.KEYWORD),
        Field("version", FieldType.KEYWORD),
        Field("size", FieldType.INTEGER),
        Field("installed_size", FieldType.INTEGER),
    )
)
"""``title``: name and synopsis. ``size`` in bytes (of the .deb), ``installed_size`` in KiB."""

_KEPT = ("Package", "Section", "Priority", "Architecture", "Maintainer", "Version")
_WANTED = frozenset((*_KEPT, "Tag", "Size", "Installed-Size", "Description", "Description-md5"))
_TRANSLATED = frozenset(("Description-md5", "Description-en"))

Stanza = dict[str, str]
_PartKey = list[tuple[list[int], int]]


@dataclass(frozen=True, slots=True)
class ListsCorpus:
    """The documents of a folder of lists, for writing a snapshot."""

    name: str
    lists: Path
    schema: Schema = SCHEMA

    def documents(self) -> Iterator[Document]:
        """One document a package, by name; CorpusError where the folder has no such lists."""
        indexes = _named(self.lists, "_Packages")
        if not indexes:
            raise CorpusError(
                f"{self.lists} has no Packages lists; it is not a folder of apt's lists."
            )
        newest: dict[str, Stanza] = {}
        for path in indexes:
            for stanza in stanzas(path, _WANTED):
                name = stanza.get("Package")
                if name is None:
                    continue
                known = newest.get(name)
                if known is None or newer(stanza.get("Version", ""), known.get("Version", "")):
                    newest[name] = stanza
        wanted = {
            stanza["Description-md5"] for stanza in newest.values() if "Description-md5" in stanza
        }
        long: dict[str, str] = {}
        for path in _named(self.lists, "_Translation-en"):
            for stanza in stanzas(path, _TRANSLATED):
                digest = stanza.get("Description-md5", "")
                if digest in wanted and "Description-en" in stanza:
                    long.setdefault(digest, stanza["Description-en"])
        for name in sorted(newest):
            yield document(newest[name], long.get(newest[name].get("Description-md5", "")))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The documents of a snapshot, a file of JSON lines as ``write`` writes it.

    Its name begins with the archive's ("debian-bookworm-..").
    """

    name: str
    path: Path
    schema: Schema = SCHEMA

    def documents(self) -> Iterator[Document]:
        """All documents; CorpusError with the line where the snapshot is damaged."""
        fit = Conformer(self.schema)
        with opened(self.path) as stream:
            for number, line in lines(self.path, stream):
                try:
                    row = orjson.loads(line)
                    values = fit(row)
                    key = row["id"]
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise CorpusError(
                        f"{self.path}:{number}: this snapshot is damaged; delete it, and it is "
                        "fetched again."
                    ) from error
                yield Document(key, values)


def document(stanza: Mapping[str, str], description: str | None) -> Document:
    """One package. ``description``: synopsis, a newline, and the long text; None if unknown."""
    synopsis, _, rest = (description or stanza.get("Description", "")).partition("\n")
    name = stanza["Package"]
    values: dict[str, Any] = {
        "title": f"{name}: {synopsis}" if synopsis else name,
        "body": paragraphs(rest),
        "tags": [tag for each in stanza.get("Tag", "").split(",") if (tag := each.strip())],
        "size": _number(stanza.get("Size")),
        "installed_size": _number(stanza.get("Installed-Size")),
        **{key.lower(): stanza.get(key) for key in _KEPT},
    }
    return Document(
        name, {key: value for key, value in values.items() if value not in (None, "", [])}
    )


def paragraphs(text: str) -> str:
    """A long description as text: the leading space of each line gone, " ." an empty line."""
    return "\n".join(
        "" if line.strip() == "." else line.removeprefix(" ").rstrip() for line in text.split("\n")
    ).strip("\n")


def stanzas(path: Path, wanted: frozenset[str]) -> Iterator[Stanza]:
    """The paragraphs of a control file with the wanted fields; further lines as they are."""
    stanza: Stanza = {}
    field = ""
    with opened(path) as stream:
        for _, raw in lines(path, stream):
            line = raw.decode("utf-8", "replace").rstrip("\n")
            if not line:
                if stanza:
                    yield stanza
                stanza, field = {}, ""
            elif line[0] in " \t":
                if field:
                    stanza[field] += "\n" + line
            else:
                field, _, value = line.partition(":")
                if field in wanted:
                    stanza[field] = value.strip()
                else:
                    field = ""
    if stanza:
        yield stanza


def newer(a: str, b: str) -> bool:
    """Whether version ``a`` is after ``b`` by Debian's order (Debian Policy, 5.6.12)."""
    return _version_key(a) > _version_key(b)


def _version_key(version: str) -> tuple[int, _PartKey, _PartKey]:
    epoch, _, rest = version.partition(":") if ":" in version else ("0", "", version)
    upstream, dash, revision = rest.rpartition("-")
    if not dash:
        upstream, revision = rest, "0"
    return (int(epoch) if epoch.isdecimal() else 0, _part_key(upstream), _part_key(revision))


def _part_key(part: str) -> _PartKey:
    """Runs of other than digits and of digits, in turn: letters before the rest, "~" before all.

    0 ends a run: "~" sorts before the end, everything else after it.
    """
    return [
        ([*map(_weight, run), 0], int(digits or 0))
        for run, digits in re.findall(r"(\D*)(\d*)", part)
    ]


def _weight(character: str) -> int:
    if character == "~":
        return -1
    return ord(character) if character.isalpha() else ord(character) + 256


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _named(folder: Path, end: str) -> list[Path]:
    """The lists whose names, below any compression, end so; one of each name, sorted."""
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*")):
        bare = path.name.removesuffix(path.suffix) if path.suffix in COMPRESSED else path.name
        if bare.endswith(end) and path.is_file():
            found.setdefault(bare, path)
    return [found[name] for name in sorted(found)]
