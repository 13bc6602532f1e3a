"""``searchbench corpus``: make, scale and inspect documents."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import App

from searchbench.cli.flags import Json, flowing

if TYPE_CHECKING:
    from searchbench.corpora.corpus import Corpus, Summary

_SHOWN = 200  # characters of a value

app = App(name="corpus", help="Make, scale and inspect documents.", help_format="plaintext")


@app.command
@flowing
def inspect(*files: Path, as_json: Json = False) -> int:
    """Read documents as a study would: schema, counts, digest, rows that do not fit.

    Parameters
    ----------
    files
        Files or a directory: CSV, TSV, JSONL, Parquet, or text files; plain or compressed.
    as_json
        Print JSON.
    """
    from itertools import islice

    from searchbench.corpora import open_corpus
    from searchbench.corpora.corpus import digest
    from searchbench.errors import CorpusError

    if not files:
        raise CorpusError("which files? give at least one")
    # Bad rows are shown here, not refused: looking at them is what this is for.
    named: dict[str, object] = {"files": [str(f) for f in files], "bad_rows": "skip"}
    corpus = open_corpus(named, Path.cwd())
    _show(corpus, digest(corpus), as_json, [d._asdict() for d in islice(corpus.documents(), 3)])
    return 0


@app.command
@flowing
def make(
    family: Literal["debian", "generated", "triples", "table", "cars"],
    out: Path,
    *,
    documents: int = 10_000,
    triples: int = 100_000,
    rows: int = 100_000,
    repeat: int = 1,
    seed: int = 1,
    as_json: Json = False,
) -> int:
    """Write a corpus: Debian's package descriptions, or generated documents.

    Parameters
    ----------
    family
        Where the documents come from.
    out
        The file to write, by its ending .jsonl, .csv, .tsv or .parquet; a further ending such as
        .gz or .zst compresses it.
    documents
        How many documents of generated text.
    triples
        How many triples of articles and their categories.
    rows
        How many rows of a table.
    repeat
        How many times the 15,000 cars are written, with continuing ids; 200 times are 3,000,000.
    seed
        The same seed gives the same documents.
    as_json
        Print JSON.
    """
    from searchbench.corpora import open_corpus
    from searchbench.corpora.write import write

    spec: dict[str, object] = {"family": family}
    if family == "generated":
        spec |= {"documents": documents, "seed": seed}
    elif family == "triples":
        spec |= {"triples": triples, "seed": seed}
    elif family == "table":
        spec |= {"rows": rows, "seed": seed}
    elif family == "cars":
        spec["duplicate"] = repeat
    else:
        from searchbench.lab.get.fetch import debian_snapshot

        spec["snapshot"] = str(debian_snapshot())
    corpus = open_corpus(spec, Path.cwd())
    _show(corpus, write(corpus, out), as_json)
    return 0


@app.command
@flowing
def scale(
    files: Path,
    out: Path,
    *,
    decimate: int = 1,
    duplicate: int = 1,
    parts: int = 1,
    split_by: Literal["round-robin", "hash", "contiguous"] = "round-robin",
    as_json: Json = False,
) -> int:
    """Write a corpus smaller, larger or in parts: every k-th document, all k times, or split.

    Parameters
    ----------
    files
        A file or a directory of documents.
    out
        The file to write; with parts, NAME.1.jsonl, NAME.2.jsonl and so on.
    decimate
        Take every k-th document.
    duplicate
        Take all documents k times, with new ids.
    parts
        Split the corpus into so many parts.
    split_by
        The rule by which a document goes to a part.
    as_json
        Print JSON.
    """
    from searchbench.corpora import open_corpus
    from searchbench.corpora.write import write

    spec: dict[str, object] = {"files": str(files), "decimate": decimate, "duplicate": duplicate}
    if parts == 1:
        corpus = open_corpus(spec, Path.cwd())
        _show(corpus, write(corpus, out), as_json)
        return 0
    stem, suffixes = out.name.split(".", 1) if "." in out.name else (out.name, "jsonl")
    for number in range(1, parts + 1):
        numbered = spec | {"parts": parts, "part": number, "split_by": split_by}
        corpus = open_corpus(numbered, Path.cwd())
        target = out.with_name(f"{stem}.{number}.{suffixes}")
        _show(corpus, write(corpus, target), as_json)
    return 0


def _show(
    corpus: Corpus, summary: Summary, as_json: bool, first: list[dict[str, Any]] | None = None
) -> None:
    from dataclasses import asdict

    from searchbench.terminal import out

    if as_json:
        fields = [asdict(field) for field in corpus.schema.columns]
        out.as_json({**asdict(summary), "fields": fields, "first": first or []})
        return
    out.say(
        f"{summary.name}: {summary.documents:,} documents, {summary.text_bytes:,} bytes of text"
    )
    out.say(f"digest {summary.digest}")
    if separated := getattr(corpus, "separated", ""):
        out.say(f"cells {separated}")
    out.table(("field", "type"), [(f.name, f.type) for f in corpus.schema.columns])
    inference = getattr(corpus, "inference", None)
    if inference is not None:
        out.say(
            f"\nguessed from the first {inference.rows:,} rows; [corpus] fields says otherwise:"
        )
        for column, note in inference.notes.items():
            out.say(f"  {column}: {note}")
    if doubts := getattr(corpus, "doubts", None):
        out.say(f"\n{doubts}")
    intake = summary.intake
    if intake is not None and intake.refused:
        out.say(f"\n{intake.refused:,} of {intake.rows:,} rows do not fit; the first:")
        for row in intake.first:
            out.say(f"  {row}")
    if intake is not None and intake.ignored:
        ignored = ", ".join(f"{name} ({n:,} rows)" for name, n in intake.ignored.items())
        out.say(f"columns that are not in the schema: {ignored}")
    for document in first or []:
        out.say(f"\n{document['id']}")
        for name, value in document["values"].items():
            shown = value if isinstance(value, str) else json.dumps(value, default=str)
            out.say(f"  {name}: {textwrap.shorten(shown, _SHOWN, placeholder=' ...')}")
