"""The keys of a study's ``[corpus]`` table: what may be said, of which type, and what it means.

Light to import, so that a study can be checked without reading a document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from searchbench.spec import Kind, SpecKey

OPERATIONS = ("scale", "decimate", "duplicate", "parts", "part", "split_by")
"""The keys that change how many of the documents are read; they apply to every family."""

FAMILIES = ("files", "debian", "generated")
"""The families; a table without ``family`` is "files"."""

_FILES = ("files",)
_GENERATED = ("generated",)


@dataclass(frozen=True, slots=True)
class CorpusKey(SpecKey):
    """One key of the table, and the families that know it.

    ``given``: not the user's to write, ``lab`` puts it in.
    """

    families: tuple[str, ...] = FAMILIES
    required: bool = False
    given: bool = False

    @property
    def kinds(self) -> tuple[type, ...]:
        """The Python types that a value may have."""
        return _KINDS[self.kind]


_KINDS: Mapping[Kind, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int,),
    "number": (int, float),
    "paths": (str, list),
    "table": (dict,),
}

SPEC_KEYS: tuple[CorpusKey, ...] = (
    CorpusKey("family", "text", "files", "Where documents come from.", choices=FAMILIES),
    CorpusKey("name", "text", None, "A short name for tables."),
    # the user's own files
    CorpusKey(
        "files",
        "paths",
        None,
        "A path, glob or folder of text files, or a list of them; relative to the study file.",
        required=True,
        families=_FILES,
    ),
    CorpusKey(
        "format",
        "text",
        "auto",
        "How rows are written; auto tells it from the end of the name.",
        choices=("auto", "jsonl", "csv", "tsv", "parquet", "text"),
        families=_FILES,
    ),
    CorpusKey(
        "fields",
        "table",
        None,
        "By field name: for files a type, or {type, stored, column}, guessed from the first "
        "rows if absent; for generated {type, distribution, ..} beside title and body.",
        families=("files", "generated"),
    ),
    CorpusKey(
        "id",
        "text",
        None,
        "The column of the id; else `id`, else the row's number.",
        families=_FILES,
    ),
    CorpusKey(
        "separator",
        "text",
        "|",
        "What parts the keywords in a cell of CSV or TSV.",
        families=_FILES,
    ),
    CorpusKey(
        "delimiter", "text", "", "What parts cells; CSV has a comma, TSV a tab.", families=_FILES
    ),
    CorpusKey(
        "quote",
        "text",
        '"',
        "What quotes cells of CSV and TSV; empty for nothing.",
        families=_FILES,
    ),
    CorpusKey(
        "date_unit",
        "text",
        "ms",
        "What a date that is a number counts since 1970 UTC.",
        choices=("s", "ms"),
        families=_FILES,
    ),
    CorpusKey(
        "bad_rows",
        "text",
        "refuse",
        "What becomes of a corpus with rows that do not fit: refused, or read without them.",
        choices=("refuse", "skip"),
        families=_FILES,
    ),
    CorpusKey(
        "sample_rows",
        "integer",
        1000,
        "How many first rows the fields are guessed from.",
        minimum=1,
        families=_FILES,
    ),
    # package descriptions
    CorpusKey("snapshot", "text", None, "The snapshot to read.", given=True, families=("debian",)),
    # generated text
    CorpusKey(
        "documents", "integer", 10_000, "How many documents.", minimum=1, families=_GENERATED
    ),
    CorpusKey(
        "seed", "integer", 1, "The same seed gives the same text.", minimum=0, families=_GENERATED
    ),
    CorpusKey(
        "words",
        "number",
        120.0,
        "Median words of a body (lognormal).",
        minimum=1,
        families=_GENERATED,
    ),
    CorpusKey(
        "words_sigma",
        "number",
        0.8,
        "Standard deviation of the logarithm of a body's words.",
        minimum=0,
        maximum=2,
        families=_GENERATED,
    ),
    CorpusKey(
        "zipf_exponent",
        "number",
        1.0,
        "The word of rank r is drawn in proportion to (r + zipf_shift) ** -zipf_exponent.",
        minimum=0.5,
        maximum=2.0,
        families=_GENERATED,
    ),
    CorpusKey(
        "zipf_shift",
        "number",
        2.7,
        "Mandelbrot's shift of the rank.",
        minimum=0,
        families=_GENERATED,
    ),
    CorpusKey(
        "heaps_k",
        "number",
        44.0,
        "n words of text hold heaps_k * n ** heaps_beta distinct ones.",
        minimum=1,
        families=_GENERATED,
    ),
    CorpusKey(
        "heaps_beta",
        "number",
        0.49,
        "The growth of the vocabulary.",
        minimum=0.1,
        maximum=0.9,
        families=_GENERATED,
    ),
    CorpusKey(
        "burst",
        "number",
        0.2,
        "The share of words that repeat one of the same document.",
        minimum=0,
        maximum=0.9,
        families=_GENERATED,
    ),
    # operations, in this order
    CorpusKey(
        "scale",
        "number",
        1,
        "The size as one number, for a factor: below 1 every 1/scale-th document, above 1 all "
        "documents so many times; a whole number or 1 over one.",
        above=0,
        maximum=1_000_000,
    ),
    CorpusKey("decimate", "integer", 1, "Every k-th document.", minimum=1),
    CorpusKey("duplicate", "integer", 1, "All documents k times, with new ids.", minimum=1),
    CorpusKey("parts", "integer", 1, "Into how many parts it is split.", minimum=1),
    CorpusKey("part", "integer", None, "Which of the parts is read, from 1.", minimum=1),
    CorpusKey(
        "split_by",
        "text",
        "round-robin",
        "By what rule it is split.",
        choices=("round-robin", "hash", "contiguous"),
    ),
)


def keys_of(family: str) -> dict[str, CorpusKey]:
    """The keys that a family knows, by name, in the order of ``SPEC_KEYS``."""
    return {key.name: key for key in SPEC_KEYS if family in key.families}


def family_of(spec: Mapping[str, object]) -> str:
    """The family of a table: ``family``, or "files"."""
    return str(spec.get("family", "files"))


def scale_of(spec: Mapping[str, object]) -> tuple[int, int]:
    """(k for all documents k times, k for every k-th), by ``scale``, ``duplicate``, ``decimate``.

    ValueError where the scale is neither a whole number nor 1 over one.
    """
    scale = spec.get("scale")
    if scale is None:
        return _whole(spec.get("duplicate", 1)), _whole(spec.get("decimate", 1))
    if not isinstance(scale, int | float) or not scale > 0:
        raise ValueError(f"{scale!r} is no scale")
    larger = scale if scale >= 1 else 1 / scale
    whole = round(larger)
    # 0.3333 is meant as 1/3; TOML has no other way to write it.
    if abs(larger - whole) > (0 if scale >= 1 else min(_ROUNDED * whole, _ROUNDED_MOST)):
        raise ValueError(f"{scale:g} is neither a whole number nor 1 over one")
    return (whole, 1) if scale >= 1 else (1, whole)


_ROUNDED = 5e-4
_ROUNDED_MOST = 0.01


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 1
