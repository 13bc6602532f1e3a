"""How many documents a corpus has at most, where that is known without reading it.

Of what is generated it is known; of files where they say it themselves (Parquet), are a document
each (folders of text), or are so small that they are read at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from searchbench.corpora import RULES, family_of, keys_of, scale_of
from searchbench.packed import inner_suffix, open_packed
from searchbench.study.estimate import named_files

_READ_AT_ONCE = 1 << 20  # bytes


def at_most(corpus: Mapping[str, Any], base: Path) -> int | None:
    """No corpus of this table has more documents; None where that is not known.

    Rows that do not fit, and lines that are no rows, make it fewer. File names are below ``base``.
    """
    given = {key: value for key, value in corpus.items() if value is not None}
    family = family_of(given)
    found: int | None = None
    if family == "cars":
        from searchbench.corpora.cars import CARS  # here, not above: it is read by few studies

        found = CARS
    elif family == "generated":
        found = _or_default(given, family, "documents")
    elif family == "table" and "files" not in given:
        found = _or_default(given, family, "rows")
    elif family in ("files", "table"):
        found = _of_files(given, base)
    if found is None:
        return None
    times, every = scale_of(given)
    found = -(-found // every) * times
    if "part" not in given:
        return found
    # By the hash of its id any number of documents may be in a part.
    even = given.get("split_by", RULES[0]) != "hash"
    return -(-found // int(given.get("parts", 1))) if even else found


def _or_default(given: Mapping[str, Any], family: str, key: str) -> int:
    return int(given.get(key) or keys_of(family)[key].default)


def _of_files(given: Mapping[str, Any], base: Path) -> int | None:
    form = str(given.get("format", "auto"))
    found = 0
    for path in named_files(given, base):
        each = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
        texts = path.is_dir() and form == "auto"
        for one in each:
            rows = 1 if texts else _rows(one, form)
            if rows is None:
                return None
            found += rows
    return found or None  # that there are no files is said where they are looked at


def _rows(path: Path, form: str) -> int | None:
    """Rows of a file at most; None where it would have to be read whole to know."""
    try:
        if form == "parquet" or inner_suffix(path) == ".parquet":
            import pyarrow.parquet as pq  # here, not above: a study is checked without it

            return int(pq.read_metadata(path).num_rows)
        if form == "text" or inner_suffix(path) in (".txt", ".md"):
            return 1
        with open_packed(path) as stream:
            whole, more = stream.read(_READ_AT_ONCE), stream.read(1)
    except (OSError, ValueError, EOFError):
        return None  # what is wrong with it is said when it is opened
    return None if more else len(whole.splitlines())
