"""The keys of a study's ``[corpus]`` table: what may be said, of which type, and what it means.

Light to import, so that a study can be checked without reading a document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FAMILIES = ("files", "debian", "generated")
"""The families; a table without ``family`` is "files"."""

_ALL = FAMILIES
_FILES = ("files",)
_GENERATED = ("generated",)


@dataclass(frozen=True, slots=True)
class SpecKey:
    """One key: the families that know it, the types it may have, its default, and its meaning.

    ``default`` None means that it is absent unless given. ``given``: not the user's to write,
    ``lab`` puts it in. ``scalar``: one number, string or boolean, so that it may be a factor.
    """

    name: str
    families: tuple[str, ...]
    kinds: tuple[type, ...]
    default: Any
    doc: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    required: bool = False
    given: bool = False

    @property
    def scalar(self) -> bool:
        """Whether a level of a factor can stand for it."""
        return not {list, dict} & set(self.kinds)


SPEC_KEYS: tuple[SpecKey, ...] = (
    SpecKey("family", _ALL, (str,), "files", "Where documents come from.", choices=FAMILIES),
    SpecKey("name", _ALL, (str,), None, "A short name for tables."),
    # the user's own files
    SpecKey(
        "files",
        _FILES,
        (str, list),
        None,
        "A path, glob or folder of text files, or a list of them; relative to the study file.",
        required=True,
    ),
    SpecKey(
        "format",
        _FILES,
        (str,),
        "auto",
        "How rows are written; auto tells it from the end of the name.",
        choices=("auto", "jsonl", "csv", "tsv", "parquet", "text"),
    ),
    SpecKey(
        "fields",
        ("files", "generated"),
        (dict,),
        None,
        "By field name: for files a type, or {type, stored, column}, guessed from the first "
        "rows if absent; for generated {type, distribution, ..} beside title and body.",
    ),
    SpecKey("id", _FILES, (str,), None, "The column of the id; else `id`, else the row's number."),
    SpecKey("separator", _FILES, (str,), "|", "What parts the keywords in a cell of CSV or TSV."),
    SpecKey("delimiter", _FILES, (str,), "", "What parts cells; CSV has a comma, TSV a tab."),
    SpecKey("quote", _FILES, (str,), '"', "What quotes cells of CSV and TSV; empty for nothing."),
    SpecKey(
        "date_unit",
        _FILES,
        (str,),
        "ms",
        "What a date that is a number counts since 1970 UTC.",
        choices=("s", "ms"),
    ),
    SpecKey(
        "bad_rows",
        _FILES,
        (str,),
        "refuse",
        "What becomes of a corpus with rows that do not fit: refused, or read without them.",
        choices=("refuse", "skip"),
    ),
    SpecKey(
        "sample_rows",
        _FILES,
        (int,),
        1000,
        "How many first rows the fields are guessed from.",
        minimum=1,
    ),
    # package descriptions
    SpecKey("snapshot", ("debian",), (str,), None, "The snapshot to read.", given=True),
    # generated text
    SpecKey("documents", _GENERATED, (int,), 10_000, "How many documents.", minimum=1),
    SpecKey("seed", _GENERATED, (int,), 1, "The same seed gives the same text.", minimum=0),
    SpecKey(
        "words", _GENERATED, (int, float), 120.0, "Median words of a body (lognormal).", minimum=1
    ),
    SpecKey(
        "words_sigma",
        _GENERATED,
        (int, float),
        0.8,
        "Standard deviation of the logarithm of a body's words.",
        minimum=0,
        maximum=2,
    ),
    SpecKey(
        "zipf_exponent",
        _GENERATED,
        (int, float),
        1.0,
        "The word of rank r is drawn in proportion to (r + zipf_shift) ** -zipf_exponent.",
        minimum=0.5,
        maximum=2.0,
    ),
    SpecKey(
        "zipf_shift", _GENERATED, (int, float), 2.7, "Mandelbrot's shift of the rank.", minimum=0
    ),
    SpecKey(
        "heaps_k",
        _GENERATED,
        (int, float),
        44.0,
        "n words of text hold heaps_k * n ** heaps_beta distinct ones.",
        minimum=1,
    ),
    SpecKey(
        "heaps_beta",
        _GENERATED,
        (int, float),
        0.49,
        "The growth of the vocabulary.",
        minimum=0.1,
        maximum=0.9,
    ),
    SpecKey(
        "burst",
        _GENERATED,
        (int, float),
        0.2,
        "The share of words that repeat one of the same document.",
        minimum=0,
        maximum=0.9,
    ),
    # operations, in this order
    SpecKey("decimate", _ALL, (int,), 1, "Every k-th document.", minimum=1),
    SpecKey("duplicate", _ALL, (int,), 1, "All documents k times, with new ids.", minimum=1),
    SpecKey("parts", _ALL, (int,), 1, "Into how many parts it is split.", minimum=1),
    SpecKey("part", _ALL, (int,), None, "Which of the parts is read, from 1.", minimum=1),
    SpecKey(
        "split_by",
        _ALL,
        (str,),
        "round-robin",
        "By what rule it is split.",
        choices=("round-robin", "hash", "contiguous"),
    ),
)


def keys_of(family: str) -> dict[str, SpecKey]:
    """The keys that a family knows, by name, in the order of ``SPEC_KEYS``."""
    return {key.name: key for key in SPEC_KEYS if family in key.families}


def family_of(spec: Mapping[str, object]) -> str:
    """The family of a table: ``family``, or "files"."""
    return str(spec.get("family", "files"))
