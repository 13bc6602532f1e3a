"""``searchbench queries``: make and inspect query sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

app = App(name="queries", help="Make and inspect query sets.", help_format="plaintext")

_Json = Annotated[bool, Parameter(name="--json", negative=())]


@app.command
def inspect(*files: Path, as_json: _Json = False) -> int:
    """Read a query file as a study would: how many, how long, how often repeated, bad lines.

    Parameters
    ----------
    files
        One query a line, or JSON lines; .gz and .zst are unpacked.
    as_json
        Print JSON.
    """
    import numpy as np

    from searchbench.cli import out
    from searchbench.errors import QueryError
    from searchbench.queries.registry import open_queries
    from searchbench.queries.text_form import to_text

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
        out.say(f"\n{found.bad_count:,} lines are no query; the first:")
        for line in found.bad:
            out.say(f"  {line}")
    return 0


@app.command
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
    as_json: _Json = False,
) -> int:
    """Sample queries that match from documents, and write them as JSON lines.

    Parameters
    ----------
    documents
        A file or a directory of documents.
    out
        The file to write.
    distinct
        How many different queries.
    logged
        Length of the log, with repetitions; each once if not said.
    repetition
        How often each is asked.
    words
        Mean number of words.
    match
        How the words are to be found.
    seed
        The same seed gives the same queries.
    as_json
        Print JSON.
    """
    import orjson

    from searchbench.cli import out as printer
    from searchbench.corpora import open_corpus
    from searchbench.corpora.corpus import FieldType
    from searchbench.queries.json_form import to_json
    from searchbench.queries.registry import open_queries

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
