"""Corpora: where documents come from. ``open_corpus`` makes one of a study's ``[corpus]`` table.

Light to import, so that a study can be checked without reading a document.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchbench.corpora.corpus import Corpus
from searchbench.errors import CorpusError
from searchbench.spec import Kind, SpecKey, nearest

FAMILIES = ("files", "debian", "generated", "triples", "table", "cars")
"""The families; a table without ``family`` is "files"."""

RULES = ("round-robin", "hash", "contiguous")
"""By which rules documents are dealt to parts; the first is usual."""


@dataclass(frozen=True, slots=True)
class CorpusKey(SpecKey):
    """One key of the table, and the families that know it.

    ``given``: not the user's to write, ``lab`` puts it in.
    """

    families: tuple[str, ...] = FAMILIES
    required: bool = False
    given: bool = False


_READ = ("files", "table")
"""Families that read files of rows."""


def _text(name: str, default: str | None, doc: str, choices: tuple[str, ...] = ()) -> CorpusKey:
    return CorpusKey(name, "text", default, doc, choices, families=_READ)


def _drawn(
    name: str, default: float, doc: str, lowest: float, highest: float | None = None
) -> CorpusKey:
    kind: Kind = "integer" if isinstance(default, int) else "number"
    return CorpusKey(
        name, kind, default, doc, minimum=lowest, maximum=highest, families=("generated",)
    )


_SIZES = (
    CorpusKey(
        "scale",
        "number",
        1,
        "The size as one number, for a factor: below 1 every 1/scale-th document, above 1 all "
        "documents that many times; a whole number n, or 1/n.",
        above=0,
        maximum=1_000_000,
    ),
    CorpusKey("decimate", "integer", 1, "Read only every k-th document.", minimum=1),
    CorpusKey("duplicate", "integer", 1, "Read all documents k times, with new ids.", minimum=1),
    CorpusKey("parts", "integer", 1, "Into how many parts the corpus is split.", minimum=1),
    CorpusKey("part", "integer", None, "Which of the parts is read, from 1.", minimum=1),
    CorpusKey("split_by", "text", RULES[0], "The rule by which it is split.", RULES),
)
"""The keys that change how many of the documents are read, in this order; for every family."""

SPEC_KEYS = (
    CorpusKey(
        "family",
        "text",
        "files",
        "files: your own; debian: Debian's package descriptions; generated: random text; triples: "
        "a graph; table: rows of typed columns; cars: the cars of a published comparison.",
        FAMILIES,
    ),
    CorpusKey("name", "text", None, "A short name, for the report's tables."),
    CorpusKey(
        "files",
        "paths",
        doc="A path, glob or folder of text files, or a list of them; relative to the study file.",
        required=True,
        families=("files",),
    ),
    _text(
        "format",
        "auto",
        "The form of the file; auto: recognised by the ending of its name.",
        ("auto", "jsonl", "csv", "tsv", "parquet", "text"),
    ),
    CorpusKey(
        "fields",
        "table",
        doc="The fields, by name. For files: a type, or {type, stored, column}; without it, "
        "guessed from the first rows. For generated: {type, distribution, ..}; title and body "
        "exist in any case.",
        families=("files", "generated"),
    ),
    CorpusKey(
        "id",
        "text",
        None,
        "The column that holds the id; default: `id` if there is one, else the row's number.",
        families=("files",),
    ),
    _text("separator", "|", "What separates the keywords in a cell of CSV or TSV."),
    _text(
        "delimiter",
        "",
        "What separates the cells of CSV and TSV; by default recognised in the first rows: , ; | "
        "or a tab.",
    ),
    _text("quote", '"', "The quotation mark around cells of CSV and TSV; empty: none."),
    _text(
        "date_unit", "ms", "The unit of dates that are numbers, counted from 1970 UTC.", ("s", "ms")
    ),
    _text(
        "bad_rows",
        "refuse",
        "What to do with rows that do not fit: refuse the corpus, or leave them out.",
        ("refuse", "skip"),
    ),
    CorpusKey(
        "sample_rows",
        "integer",
        1000,
        "From how many of the first rows the fields are guessed.",
        minimum=1,
        families=_READ,
    ),
    CorpusKey(
        "files",
        "paths",
        doc="Files of rows, as for the family `files`. Without it, rows are generated.",
        families=("table",),
    ),
    CorpusKey(
        "table",
        "text",
        None,
        "The table's name in SQL databases; by default the file's name, \"rows\" if rows are "
        'generated, or "car" for cars.',
        families=("table", "cars"),
    ),
    CorpusKey(
        "columns",
        "table",
        doc="The columns, by name. Of generated rows: {type, distribution, ..}. Of files: a type "
        "or {type, column}; without it, guessed from the first rows.",
        families=("table",),
    ),
    CorpusKey(
        "key",
        "texts",
        "id",
        "The column of the primary key, or several. If rows are generated and `id` is not "
        "declared, it is 1, 2, 3, ..",
        families=("table",),
    ),
    CorpusKey(
        "indexes",
        "list",
        None,
        "The secondary indexes of SQL databases: for each a column, a list of columns, or "
        "{columns, unique}. Default: none; for cars, color and price. Text is indexed in any "
        "case.",
        families=("table", "cars"),
    ),
    CorpusKey(
        "rows",
        "integer",
        100_000,
        "How many rows are generated.",
        minimum=1,
        maximum=10_000_000,
        families=("table",),
    ),
    CorpusKey(
        "files",
        "paths",
        doc="N-Triples: a path, glob or folder, or a list of them, in which the triples of one "
        "subject stand together. Without it, triples are generated.",
        families=("triples",),
    ),
    CorpusKey(
        "triples",
        "integer",
        100_000,
        "How many triples are generated, about articles and their categories; 1,390,193 triples "
        "have 942,949 names.",
        minimum=1,
        maximum=10_000_000,
        families=("triples",),
    ),
    CorpusKey("snapshot", "text", None, "The snapshot to read.", given=True, families=("debian",)),
    _drawn("documents", 10_000, "How many documents are generated.", 1),
    CorpusKey(
        "seed",
        "integer",
        1,
        "The seed of what is generated: the same seed gives the same documents.",
        minimum=0,
        families=("generated", "triples", "table"),
    ),
    _drawn("words", 120.0, "Median number of words in a body (lognormal).", 1),
    _drawn("words_sigma", 0.8, "Standard deviation of the logarithm of a body's words.", 0, 2),
    _drawn(
        "zipf_exponent",
        1.0,
        "The word of rank r is drawn in proportion to (r + zipf_shift) ** -zipf_exponent.",
        0.5,
        2.0,
    ),
    _drawn("zipf_shift", 2.7, "Mandelbrot's shift of the rank.", 0),
    _drawn(
        "heaps_k", 44.0, "n words of text contain heaps_k * n ** heaps_beta different words.", 1
    ),
    _drawn("heaps_beta", 0.49, "How fast the vocabulary grows, see heaps_k.", 0.1, 0.9),
    _drawn("burst", 0.2, "The share of words that repeat one of the same document.", 0, 0.9),
    *_SIZES,
)
"""Every key of the table."""

_AT_SIZE = frozenset(key.name for key in _SIZES)


def open_corpus(spec: Mapping[str, object], base: Path) -> Corpus:
    """The corpus of a study's ``[corpus]`` table; paths are relative to ``base``.

    Operations apply in the order scale (or decimate and duplicate), then part. CorpusError in one
    sentence for a table that is wrong, and where the files are.
    """
    if wrong := complaints(spec):
        raise CorpusError("; ".join(message for _, message in wrong))
    table: dict[str, Any] = dict(spec)
    corpus = _open(table.pop("family", "files"), unscaled(table), base)
    # Imported here, not above: the table of keys must be there at once.
    from searchbench.corpora.corpus import Repeats
    from searchbench.corpora.operations import decimated, duplicated, part

    times, every = scale_of(spec)
    if every > 1:
        corpus = decimated(corpus, every)
    if times > 1:
        corpus = (
            corpus.repeated(times) if isinstance(corpus, Repeats) else duplicated(corpus, times)
        )
    if "part" in table and table.get("parts", 1) > 1:
        corpus = part(corpus, table["part"], table["parts"], table.get("split_by", RULES[0]))
    return corpus


def _open(family: str, given: dict[str, Any], base: Path) -> Corpus:
    if family == "files":
        from searchbench.corpora.files import open_files

        return open_files(given.pop("files"), base, **given)
    if family == "generated":
        from searchbench.corpora.generated import open_generated

        return open_generated(**given)
    if family == "triples":
        from searchbench.corpora.triples import open_triples

        return open_triples(base=base, **given)
    if family == "table":
        from searchbench.corpora.table import open_table

        return open_table(base=base, **given)
    if family == "cars":
        from searchbench.corpora.cars import open_cars

        return open_cars(**given)
    from searchbench.corpora.debian import Snapshot

    if "snapshot" not in given:
        raise CorpusError(
            "The package descriptions have not been fetched: there is no `snapshot` to read."
        )
    path: Path = base / given["snapshot"]
    if not path.is_file():
        raise CorpusError(f"There is no snapshot {path}; fetch the package descriptions again.")
    return Snapshot(given.get("name") or path.name.split("-")[0], path)


def unscaled(spec: Mapping[str, object]) -> dict[str, Any]:
    """The table of the same corpus at its natural size: all of its documents, each once.

    Queries are sampled from this one, so that every size is asked the same queries. Not each of
    them then matches something in a smaller one.
    """
    return {name: value for name, value in spec.items() if name not in _AT_SIZE}


def complaints(spec: Mapping[str, object]) -> list[tuple[str, str]]:
    """Every mistake of a ``[corpus]`` table, as (key, sentence); opens nothing."""
    family = family_of(spec)
    if family not in FAMILIES:
        return [("family", f"there is no corpus family {family!r}; {nearest(family, FAMILIES)}")]
    keys = keys_of(family)
    found: list[tuple[str, str]] = []
    for name, value in spec.items():
        key = keys.get(name)
        if key is None:
            found.append((name, f"a {family} corpus has no key {name!r}; {nearest(name, keys)}"))
        elif reason := key.mismatch(value) or (name == "fields" and _wrong_fields(family, value)):
            found.append((name, reason))
    found += [
        (key.name, f"a {family} corpus needs `{key.name}`: {key.doc}")
        for key in keys.values()
        if key.required and key.name not in spec
    ]
    found += _wrong_scale(spec)
    if family == "triples" and "files" in spec:
        found += [
            (
                name,
                f"`{name}` is for triples that are generated; leave it out, or leave out `files`",
            )
            for name in ("triples", "seed")
            if name in spec
        ]
    if family in ("table", "cars") and not found:
        found += _wrong_table(family, spec)
    parts, part = spec.get("parts", 1), spec.get("part")
    if isinstance(part, int) and isinstance(parts, int) and part > parts:
        found.append(("part", f"there is no part {part} of {parts}"))
    return found


def _wrong_table(family: str, spec: Mapping[str, object]) -> list[tuple[str, str]]:
    """What does not go together in a table whose keys each hold what they may."""
    if "files" in spec:
        return [
            (name, f"`{name}` is for rows that are generated; leave it out, or leave out `files`")
            for name in ("rows", "seed")
            if name in spec
        ]
    if given := [
        key.name
        for key in SPEC_KEYS
        if key.families == _READ and spec.get(key.name, key.default) != key.default
    ]:
        return [(given[0], f"`{given[0]}` is for rows of files; leave it out, or name `files`")]
    times = 1
    with contextlib.suppress(ValueError):
        times = scale_of(spec)[0]
    if family == "table" and times > 1:
        by = "scale" if "scale" in spec else "duplicate"
        return [(by, "a table has each key once, so it cannot be repeated; set more `rows`")]
    try:
        _open(family, unscaled({k: v for k, v in spec.items() if k != "family"}), Path())
    except CorpusError as error:
        return [((error.at or ("columns",))[0], str(error).rstrip("."))]
    return []


def _wrong_scale(spec: Mapping[str, object]) -> list[tuple[str, str]]:
    """What is wrong with a scale that is a number above 0."""
    scale = spec.get("scale")
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not scale > 0:
        return []  # absent, or complained about already
    for other in ("decimate", "duplicate"):
        if other in spec:
            return [("scale", f"`scale` and `{other}` both set the size; keep one of them")]
    try:
        scale_of(spec)
    except ValueError as error:
        near = max(1, round(scale if scale >= 1 else 1 / scale))
        instead = str(near) if scale >= 1 else f"{1 / near:.6g} (1/{near})"
        return [("scale", f"`scale` = {error}; the nearest is {instead}")]
    return []


def _wrong_fields(family: str, fields: Any) -> str:
    """The first mistake in a table of fields; empty if there is none."""
    try:
        if family == "files":
            from searchbench.corpora.conform import declared

            declared(fields)
        else:
            from searchbench.corpora.drawn import drawn_fields

            drawn_fields(fields)
    except CorpusError as error:
        return str(error)
    return ""


def keys_of(family: str) -> dict[str, CorpusKey]:
    """The keys that a family knows, by name, in the order of ``SPEC_KEYS``."""
    return {key.name: key for key in SPEC_KEYS if family in key.families}


def family_of(spec: Mapping[str, object]) -> str:
    """The family of a table: ``family``, or "files"."""
    return str(spec.get("family", "files"))


def scale_of(spec: Mapping[str, Any]) -> tuple[int, int]:
    """(k for all documents k times, k for every k-th), by ``scale``, ``duplicate``, ``decimate``.

    ValueError where the scale is neither a whole number n nor 1/n.
    """
    scale = spec.get("scale")
    if scale is None:
        return spec.get("duplicate", 1), spec.get("decimate", 1)
    larger = scale if scale >= 1 else 1 / scale
    whole = round(larger)
    # 0.3333 is meant as 1/3; TOML has no other way to write it.
    if abs(larger - whole) > (0 if scale >= 1 else min(_ROUNDED * whole, _ROUNDED_MOST)):
        raise ValueError(f"{scale:g} is neither a whole number n nor 1/n")
    return (whole, 1) if scale >= 1 else (1, whole)


_ROUNDED = 5e-4
_ROUNDED_MOST = 0.01
