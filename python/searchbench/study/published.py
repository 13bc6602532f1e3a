"""A file of what somebody published of a log (TOML) → statements, or all mistakes of the file.

Its keys are in ``TOP``, ``BAND``, ``WORDS`` and ``SIZES``; docs/LOGS.md describes them. What a
log says to each statement is judged elsewhere (``analysis/logs/published.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from searchbench.errors import Complaint, StudyError
from searchbench.sizes import size_bytes
from searchbench.spec import SpecKey, near_file, show
from searchbench.study.positions import Source

TOP = (
    SpecKey("title", "text", doc="what was published, as the page names it"),
    SpecKey("queries", "integer", minimum=1, doc="how many searches the log has"),
    SpecKey("servers", "integer", minimum=1, doc="of how many servers"),
    SpecKey("indexes", "integer", minimum=1, doc="on how many indexes"),
)
TABLES = ("within", "bands", "words", "index_sizes")
BAND = (
    SpecKey("at_s", "number", above=0, doc="where the times of a band pile up, in seconds"),
    SpecKey("below_s", "number", above=0, doc="a band that lies below so many seconds"),
)
WORDS = (
    SpecKey("fastest", "integers", minimum=0, doc="from how many to how many words is fastest"),
    SpecKey("slowest", "integers", minimum=0, doc="from how many to how many words is slowest"),
)
SIZES = (
    SpecKey("larger", "text", choices=("slower", "faster"), doc="what larger indexes are"),
    SpecKey("from", "texts", doc="the sizes at which groups of indexes begin"),
)


@dataclass(frozen=True, slots=True)
class Published:
    """The statements; None or empty where the file does not make one.

    ``within``: (seconds, share of the searches). ``bands``: (seconds, whether they lie below that).
    ``fastest``, ``slowest``: from how many to how many words. ``sizes_from``: bytes, ascending.
    """

    title: str
    queries: int | None
    servers: int | None
    indexes: int | None
    within: tuple[tuple[float, float], ...]
    bands: tuple[tuple[float, bool], ...]
    fastest: tuple[int, int] | None
    slowest: tuple[int, int] | None
    larger: str
    sizes_from: tuple[int, ...]


def read_published(path: Path) -> Published:
    """The statements of a file; StudyError with every mistake in it."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        wrong = Complaint(str(path), line, 1, "the file must be UTF-8, and this line is not")
        raise StudyError([wrong]) from error
    except OSError as error:
        hint = near_file(path) if isinstance(error, FileNotFoundError) else ""
        said = f"what was published cannot be read: {error.strerror}"
        raise StudyError([Complaint(str(path), 0, 0, said, hint)]) from error
    source = Source(text, str(path))
    what = "a file of what was published"
    names = [key.name for key in TOP]
    source.only((), source.tables, [*names, *TABLES], what)
    top = source.checked((), TOP, what, elsewhere=source.tables.keys() - set(names))
    words = source.checked(("words",), WORDS)
    sizes = source.checked(("index_sizes",), SIZES)
    if "from" in sizes and "larger" not in sizes:
        source.at_key(("index_sizes",), '`larger` is missing: larger = "slower"')
    found = Published(
        top.get("title", path.stem),
        top.get("queries"),
        top.get("servers"),
        top.get("indexes"),
        _within(source),
        _bands(source),
        _range(source, words, "fastest"),
        _range(source, words, "slowest"),
        sizes.get("larger", ""),
        _sizes(source, sizes),
    )
    if not source.complaints and not set(source.tables) - {"title"}:
        source.at_key((), "there is no statement in it, such as `queries = 453_000_000`")
    source.finish()
    return found


def _within(source: Source) -> tuple[tuple[float, float], ...]:
    """Shares by seconds. Both rise."""
    found: list[tuple[float, float]] = []
    for name, share in source.table("within").items():
        at = ("within", name)
        try:
            seconds = float(name)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            source.at_key(at, f'`{name}` must be a time in seconds, as in "0.01" = 0.6')
        elif wrong := SpecKey(name, "number", minimum=0, maximum=1).mismatch(share):
            percent = isinstance(share, int | float) and 1 < share <= 100
            hint = f"a share: {share / 100:g} is {share:g} %" if percent else ""
            source.at_value(at, wrong, hint)
        else:
            found.append((seconds, float(share)))
    found.sort()
    for (first, less), (later, more) in pairwise(found):
        if more < less:
            source.at_key(("within",), f"{show(less)} are within {first:g} s, so {later:g} s cannot"
                          f" have only {show(more)}")  # fmt: skip
    return tuple(found)


def _bands(source: Source) -> tuple[tuple[float, bool], ...]:
    """Where bands lie, ascending."""
    given = source.tables.get("bands", [])
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        source.at_value(("bands",), "`bands` must be tables: [[bands]], and at_s = 0.03 below it")
        return ()
    found = []
    for i, band in enumerate(given):
        at = ("bands", str(i))
        known = [key.name for key in BAND]
        source.only(at, band, known, "[[bands]]")
        good = set(band) <= set(known)
        for key in BAND:
            if key.name in band and (wrong := key.mismatch(band[key.name])):
                source.at_value((*at, key.name), wrong)
                good = False
        if good and ("at_s" in band) == ("below_s" in band):
            source.at_key(at, "a band has one of `at_s` and `below_s`")
        elif good:
            found.append((float(band.get("at_s", band.get("below_s"))), "below_s" in band))
    return tuple(sorted(found))


def _range(source: Source, words: Mapping[str, Any], name: str) -> tuple[int, int] | None:
    """From how many to how many words."""
    if name not in words:
        return None
    given = words[name]
    both = [given, given] if isinstance(given, int) else list(given)
    if len(both) == 1:
        both *= 2
    if len(both) != 2 or both[0] > both[1]:
        source.at_value(("words", name), f"`{name}` must be from how many to how many words, as in "
                        f"[6, 50], not {show(given)}")  # fmt: skip
        return None
    return both[0], both[1]


def _sizes(source: Source, sizes: Mapping[str, Any]) -> tuple[int, ...]:
    """Where the groups of indexes begin, in bytes."""
    given = sizes.get("from", [])
    found: list[int] = []
    for i, text in enumerate([given] if isinstance(given, str) else given):
        try:
            size = size_bytes(text)
        except ValueError as error:
            source.at_each(("index_sizes", "from"), i, f"{show(text)} is not a size: {error}")
            continue
        if found and size <= found[-1]:
            source.at_each(("index_sizes", "from"), i, f"{show(text)} is not above the one before")
        found.append(size)
    return tuple(found)
