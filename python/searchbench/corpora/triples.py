"""Triples as a corpus: things and what they belong to, such as articles and their categories.

    files       N-Triples, one file or several; compressed or not
    generated   articles and categories with the shape of a publication's data

A document is a subject: its name is the title, the names of its objects are the body, those that
are no literals also keywords. A name is the end of an IRI, its underscores as spaces.

Triples of one subject follow each other, as they do where a file was written subject by subject;
``LC_ALL=C sort`` brings any file into that order. So files of any size are read in constant
memory, but for 8 bytes a subject.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from searchbench.corpora.corpus import Document, Field, FieldType, Intake, Schema
from searchbench.corpora.files import Seen, expand, refuse
from searchbench.corpora.linked import Linked
from searchbench.corpora.ntriples import NotATriple, Triple, parse
from searchbench.corpora.rows import Source, lines, opened
from searchbench.errors import CorpusError

SCHEMA = Schema(
    (
        Field("title", FieldType.TEXT),
        Field("body", FieldType.TEXT),
        Field("categories", FieldType.KEYWORDS),
        Field("degree", FieldType.INTEGER),
    )
)
"""``categories``: names of the objects that are no literals; ``degree``: how many triples."""

_CHECKED_SUBJECTS = 2048
_SUBJECT = "the triples of its subject do not follow each other; sort the file (LC_ALL=C sort)"


class _Placed(NamedTuple):
    triple: Triple
    file: str
    line: int


@dataclass(slots=True)
class TripleFiles:
    """Triples of files; made by ``open_triples``.

    ``intake``: what became of the lines that should hold a triple, in the last whole reading.
    """

    name: str
    sources: tuple[Source, ...]
    schema: Schema = SCHEMA
    intake: Intake | None = field(default=None, init=False)

    def triples(self) -> Iterator[Triple]:
        """All triples in order; lines that are none are counted and left out.

        CorpusError where a file is unusable, or no line is a triple.
        """
        intake = Intake()
        for placed in self._placed(intake):
            intake.accepted += 1
            yield placed.triple
        self._end(intake)

    def documents(self) -> Iterator[Document]:
        """A document for each subject. Triples of one that was there before are left out.

        CorpusError as of ``triples``.
        """
        intake = Intake()
        seen = Seen()
        groups = groupby(self._placed(intake), lambda placed: placed.triple.subject)
        while batch := [list(of_one) for _, of_one in islice(groups, _CHECKED_SUBJECTS)]:
            again = seen.repeated([of_one[0].triple.subject for of_one in batch]).tolist()
            for of_one, repeated in zip(batch, again, strict=True):
                if repeated:
                    for placed in of_one:
                        refuse(intake, placed.file, placed.line, _SUBJECT)
                    continue
                intake.accepted += len(of_one)
                yield document([placed.triple for placed in of_one])
        self._end(intake)

    def first_rows(self, most: int) -> Intake:
        """What becomes of the first lines that should hold a triple; CorpusError as above."""
        intake = Intake()
        intake.accepted = sum(1 for _ in self._placed(intake, most))
        return intake

    def _end(self, intake: Intake) -> None:
        self.intake = intake
        if not intake.accepted:
            first = f": {intake.first[0]}" if intake.first else ""
            raise CorpusError(f"{self.sources[0].path} has no triple in it{first}.")

    def _placed(self, intake: Intake, most: int | None = None) -> Iterator[_Placed]:
        for source in self.sources:
            file = str(source.path)
            with opened(source.path) as stream:
                for number, line in lines(source.path, stream):
                    if intake.rows == most:
                        return
                    try:
                        triple = parse(line.rstrip(b"\r\n").decode())
                    except NotATriple as reason:
                        intake.rows += 1
                        refuse(intake, file, number, str(reason))
                    except UnicodeDecodeError as error:
                        intake.rows += 1
                        reason_of = f"column {error.start + 1} (byte): it is not UTF-8"
                        refuse(intake, file, number, reason_of)
                    else:
                        if triple is not None:
                            intake.rows += 1
                            yield _Placed(triple, file, number)


@dataclass(frozen=True, slots=True)
class GeneratedTriples:
    """The first ``count`` triples of ``linked``; made by ``open_triples``."""

    name: str
    count: int
    linked: Linked
    schema: Schema = SCHEMA

    def triples(self) -> Iterator[Triple]:
        """All triples, in order; fewer of them begin more of them."""
        return islice(self.linked.triples(), self.count)

    def documents(self) -> Iterator[Document]:
        """A document for each article."""
        for _, of_one in groupby(self.triples(), lambda triple: triple.subject):
            yield document(list(of_one))


def open_triples(
    *,
    files: str | Sequence[str] = (),
    base: Path,
    triples: int = 100_000,
    seed: int = 1,
    name: str = "",
) -> TripleFiles | GeneratedTriples:
    """The triples of these files, relative to ``base``; or, if there are none, generated ones.

    CorpusError where a file is missing.
    """
    asked = [files] if isinstance(files, str) else list(files)
    if not asked:
        return GeneratedTriples(name or "triples", triples, Linked(seed))
    sources = tuple(source for each in asked for source in expand(each, base, "ntriples"))
    return TripleFiles(name or Path(asked[0]).name.split(".")[0] or "triples", sources)


def document(of_one: Sequence[Triple]) -> Document:
    """The document of a subject, from all of its triples."""
    subject = of_one[0].subject
    values: dict[str, Any] = {"title": label(subject)}
    named = [t.object if t.qualifier is not None else label(t.object) for t in of_one]
    if body := ". ".join(filter(None, named)):
        values["body"] = body
    if linked := _once(n for n, t in zip(named, of_one, strict=True) if t.qualifier is None):
        values["categories"] = linked
    values["degree"] = len(of_one)
    return Document(subject, values)


def label(term: str) -> str:
    """The name of a thing as a reader may see it: the end of its IRI, underscores as spaces.

    An IRI that ends with a slash or a number sign stands whole.
    """
    if term.startswith("_:"):
        return term
    end = term[max(term.rfind("/"), term.rfind("#")) + 1 :]
    return unquote(end).replace("_", " ").strip() or term


def _once(names: Iterable[str]) -> list[str]:
    """Each once: engines count the same keyword of one document twice differently."""
    return list(dict.fromkeys(names))
