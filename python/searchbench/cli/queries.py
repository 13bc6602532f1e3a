"""``searchbench queries``: make and inspect query sets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from searchbench.cli.flags import Flag, Json, flowing

app = App(name="queries", help="Make and inspect query sets.", help_format="plaintext")


@app.command
@flowing
def inspect(*files: Path, as_json: Json = False) -> int:
    """Read a query file as a study would: how many queries, how long, how often, bad lines.

    Parameters
    ----------
    files
        One query a line, JSON lines, or Sphinx's plain query log; .gz and .zst are unpacked.
    as_json
        Print JSON.
    """
    import numpy as np

    from searchbench.errors import QueryError
    from searchbench.terminal import out
    from searchbench.workload.queries.forms import to_text
    from searchbench.workload.queries.registry import open_queries

    if not files:
        raise QueryError("which files? give at least one")
    found = open_queries({"files": [str(f) for f in files]}, Path.cwd())
    counts = np.bincount(found.log, minlength=found.distinct)
    order = np.argsort(-counts, kind="stable")[:10]
    top = [(int(counts[i]), to_text(found.queries[i])) for i in order]
    about = {
        "name": found.name,
        "logged": found.logged,
        "distinct": found.distinct,
        "mean_terms": found.mean_terms,
        "digest": found.digest,
        "bad_lines": found.bad_count,
        "timed": found.times_s is not None,
    }
    if as_json:
        bad = [str(b) for b in found.bad]
        frequent = [{"times": n, "query": text} for n, text in top]
        out.as_json({**about, "bad": bad, "most_frequent": frequent})
        return 0
    out.say(
        f"{found.name}: {found.logged:,} queries, {found.distinct:,} of them distinct, "
        f"{found.mean_terms:.1f} terms on average"
    )
    out.say(f"digest {found.digest}")
    out.table(("times", "query"), top)
    if found.bad_count:
        out.say(f"\n{found.bad_count:,} lines are left out; the first:")
        for line in found.bad:
            out.say(f"  {line}")
    return 0


@app.command
@flowing
def make(
    documents: Path,
    out: Path,
    *,
    distinct: int = 1000,
    logged: int | None = None,
    repetition: Literal["each", "uniform", "zipf"] | None = None,
    words: float = 3.1,
    match: Literal["any", "all", "phrase", "prefix", "fuzzy"] = "all",
    seed: int = 1,
    as_json: Json = False,
) -> int:
    """Sample queries from documents, each of which matches some, and write them as JSON lines.

    Parameters
    ----------
    documents
        A file or a directory of documents.
    out
        The file to write.
    distinct
        How many different queries to sample.
    logged
        Length of the log, with repetitions; by default, each query once.
    repetition
        How often each query is asked.
    words
        Mean number of words in a query.
    match
        How the words are to be found.
    seed
        The same seed gives the same queries.
    as_json
        Print JSON.
    """
    import orjson

    from searchbench.corpora import open_corpus
    from searchbench.corpora.corpus import FieldType
    from searchbench.terminal import out as printer
    from searchbench.workload.queries.forms import to_json
    from searchbench.workload.queries.registry import open_queries

    corpus = open_corpus({"files": str(documents)}, Path.cwd())
    spec: dict[str, object] = {"distinct": distinct, "words": words, "match": match, "seed": seed}
    if logged is not None:
        spec["logged"] = logged
    if repetition is not None:
        spec["repetition"] = repetition
    found = open_queries(
        spec,
        Path.cwd(),
        lambda: (d.values for d in corpus.documents()),
        [f.name for f in corpus.schema.of_type(FieldType.TEXT)],
    )
    lines = [orjson.dumps(to_json(query)) + b"\n" for query in found.queries]
    out.write_bytes(b"".join(lines[i] for i in found.log))
    about = {
        "file": str(out),
        "logged": found.logged,
        "distinct": found.distinct,
        "mean_terms": found.mean_terms,
        "digest": found.digest,
    }
    if as_json:
        printer.as_json(about)
    else:
        printer.say(
            f"{out}: {found.logged:,} queries, {found.distinct:,} distinct, "
            f"{found.mean_terms:.1f} terms on average"
        )
    return 0


@app.command
@flowing
def extract(
    *answers: Path,
    column: Annotated[str, Parameter(name=("--column", "--column-index"))] = "0",
    corpus: Path | None = None,
    field: str | None = None,
    words: Flag = False,
    sanitize: Flag = False,
    escape: Flag = False,
    distinct: Flag = False,
    limit: int | None = None,
    template: str | None = None,
    dialect: Literal["mysql", "standard"] | None = None,
    out: Path | None = None,
) -> int:
    """Write terms to search for, one a line, taken from a Groonga select or a field of documents.

    Parameters
    ----------
    answers
        Files with the answers of a select (command_version 1, 2 or 3); by default, standard input.
    column
        The column of the answer to take: its name, or its number, counted from 0.
    corpus
        Take the terms of documents instead: a file or a directory of them.
    field
        The field of those documents to take.
    words
        Write single words in lower case, as a search system would split them.
    sanitize
        Replace ':' and ';', which have a meaning in a query, by spaces.
    escape
        Percent-encode the terms for a URL.
    distinct
        Write each term only once.
    limit
        Write at most this many terms.
    template
        Write requests instead: a path, an SQL statement or a JSON object, with {term} where the
        term goes.
    dialect
        How to write quotes in SQL: mysql (also MariaDB, Sphinx) or standard (PostgreSQL, SQLite).
    out
        The file to write; standard output by default.
    """
    from urllib.parse import quote_plus

    from searchbench.errors import QueryError
    from searchbench.workload.verbatim import extract as requests
    from searchbench.workload.verbatim.template import filler

    if limit is not None and limit < 1:
        raise QueryError(f"--limit {limit}: take one term at least")
    if corpus is not None and answers:
        raise QueryError("give answers of a select or --corpus, not both")
    if corpus is None and field is not None:
        raise QueryError(
            "--field names a field of the documents of --corpus; of an answer, --column"
        )
    if corpus is None:
        found = [a for place, data in _inputs(answers) for a in requests.read_answers(data, place)]
        values = requests.values(found, int(column) if column.isdecimal() else column)
        nothing = f"records: {sum(len(a.records) for a in found)} of {sum(a.hits for a in found)} "
        nothing += "hits (`limit` of the select says how many)"
    else:
        values, nothing = _of_documents(corpus, field), "the documents have nothing in that field"
    lines: Iterator[str] = requests.take_terms(
        values, words=words, sanitize=sanitize, distinct=distinct, limit=limit
    )
    left_out: list[str] = []
    if template is not None:
        lines = _filled(filler(template, dialect), lines, left_out)
    elif dialect is not None:
        raise QueryError("--dialect is for the SQL of a --template")
    elif escape:
        lines = map(quote_plus, lines)
    written = _write(lines, out)
    if not written and not left_out:
        raise QueryError(f"there is no term; {nothing}")
    sys.stderr.write(f"{written:,} {'requests' if template else 'terms'}\n")
    if left_out:
        sys.stderr.write(f"{len(left_out):,} terms are left out; the first: {left_out[0]}\n")
    return 0 if written else 1


def _filled(fill: Callable[[str], str], terms: Iterator[str], left_out: list[str]) -> Iterator[str]:
    """The requests; the reasons of terms that cannot stand in one go to ``left_out``."""
    from searchbench.workload.verbatim.build import BadRequest

    for term in terms:
        try:
            yield fill(term)
        except BadRequest as reason:
            left_out.append(str(reason))


def _inputs(files: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each file, unpacked; of standard input if there is none, or it is '-'."""
    import lzma
    import zlib

    from searchbench.errors import QueryError
    from searchbench.packed import open_packed

    for path in files or (Path("-"),):
        if str(path) == "-":
            if sys.stdin.isatty():
                raise QueryError("which answers? give a file, or pipe the answer of a select in")
            yield "standard input", sys.stdin.buffer.read()
            continue
        try:
            with open_packed(path) as stream:
                yield str(path), stream.read()
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            reason = getattr(error, "strerror", None) or error
            raise QueryError(f"{path} cannot be read: {reason}") from error


def _of_documents(place: Path, field: str | None) -> Iterator[object]:
    """The values of one field, of the only text field if none is named."""
    from searchbench.corpora import open_corpus
    from searchbench.corpora.corpus import FieldType
    from searchbench.errors import QueryError

    corpus = open_corpus({"files": str(place)}, Path.cwd())
    if field is None:
        texts = [f.name for f in corpus.schema.of_type(FieldType.TEXT)]
        field = texts[0] if len(texts) == 1 else None
    names = [f.name for f in corpus.schema.fields]
    if field not in (*names, "id"):
        what = "name one with --field" if field is None else f"there is no field {field!r}"
        raise QueryError(f"{place}: {what}; there are: id, {', '.join(names)}")
    for document in corpus.documents():
        yield document.id if field == "id" else document.values.get(field)


def _write(lines: Iterator[str], out: Path | None) -> int:
    """Write the lines; how many they were. A file is opened only once there is something."""
    from contextlib import nullcontext
    from itertools import chain

    from searchbench.errors import QueryError

    first = next(lines, None)
    if first is None:
        return 0
    try:
        stream = nullcontext(sys.stdout) if out is None else out.open("w", encoding="utf-8")
    except OSError as error:
        raise QueryError(f"{out} cannot be written: {error.strerror or error}") from error
    written = 0
    with stream as lines_out:
        for line in chain((first,), lines):
            lines_out.write(line + "\n")
            written += 1
    return written
