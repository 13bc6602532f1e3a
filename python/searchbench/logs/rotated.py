"""Which files are one log that was rotated, in which order, and which of them go on with another.

    query.log.2.gz  query.log.1  query.log              the higher the number, the older
    query.log-20261125  query.log-20261126  query.log   by date, and what has none is the newest

Numbers that rise with the time are told by the times of the first entries. A file goes on with the
one before it only if none is missing between them: the number is the next one, or the date is as
far away as others are.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from pathlib import Path

from searchbench import _core
from searchbench.errors import QueryError
from searchbench.logs.counts import Options, insist_known, named_format, settings
from searchbench.logs.parquet import readable, with_names
from searchbench.logs.sources import STANDARD_INPUT, Source

_PACKED = (".gz", ".zst")
_NUMBER = re.compile(r"(?P<base>.+)\.(?P<number>\d{1,5})")
_DATE = re.compile(
    r"(?P<base>.+?)[-_.](?P<year>20\d\d)-?(?P<month>[01]\d)-?(?P<day>[0-3]\d)"
    r"(?:[-_T.]?(?P<time>\d{2,6}))?(?P<end>\.log|\.json|\.csv)?"
)
_FAR = 1.5  # times the least distance of two dates: further away, one is missing
_LATE_NS = 2 * 3600 * 10**9  # by which a file may begin before the one that it follows
_FEW = 3  # lines of a file that may be the rest of one, and look like another format
_CUT_BYTES = 64 << 10  # of a line that was cut, at most
_NEXT, _WITHIN = 1, 2  # as of the core


@dataclass(frozen=True, slots=True)
class _File:
    """A source that is part of a log. ``place``: its number, or its date in seconds; None: it has
    neither. ``first_ns``: of its first entry. ``joins`` and so on: as of the core.
    """

    at: int
    place: float | None
    dated: bool
    format: str
    joins: bool
    first_ns: int | None
    begins: bool
    twice: bool
    waits: bool


def in_order(sources: Sequence[Source], options: Options) -> list[Source]:
    """The sources, those of one log one after another, from the oldest; each knows whether it
    follows the one before it. A file that was read before follows none.

    QueryError where an option is wrong.
    """
    insist_known(options)
    sources = list(sources)
    logs: dict[tuple[str, str, str], list[tuple[int, float | None, bool]]] = defaultdict(list)
    for at, source in enumerate(sources):
        if source.path != STANDARD_INPUT and not source.lines and not source.again_from:
            base, place, dated = _parts(Path(source.path).name)
            folder = str(Path(source.path).absolute().parent)
            logs[folder, base, source.server if place is None else ""].append((at, place, dated))
    logs = _with_newest(logs)
    chains: dict[int, list[Source]] = {}
    within: set[int] = set()
    for members in logs.values():
        if len(members) < 2 or all(place is None for _, place, _ in members):
            continue
        files = _sorted([_looked_at(sources[m[0]], options, *m) for m in members])
        form, untold = _untold(files, sources)
        for at in untold:
            sources[at] = replace(sources[at], format=form)
        files = [_looked_at(sources[f.at], options, f.at, f.place, f.dated) if f.at in untold
                 else f for f in files]  # fmt: skip
        files = _sorted(files)
        chains[min(f.at for f in files)] = _linked(files, sources, options)
        within |= {f.at for f in files}
    found: list[Source] = []
    for at, source in enumerate(sources):
        found += chains.get(at, [] if at in within else [source])
    return found


def _with_newest(
    logs: dict[tuple[str, str, str], list[tuple[int, float | None, bool]]],
) -> dict[tuple[str, str, str], list[tuple[int, float | None, bool]]]:
    """The same, the file without number or date with those that have one."""
    found: dict[tuple[str, str, str], list[tuple[int, float | None, bool]]] = defaultdict(list)
    for (folder, base, _), members in logs.items():
        found[folder, base, ""] += members
    return found


def _parts(name: str) -> tuple[str, float | None, bool]:
    """The name without what rotation adds, the number or the date that it adds, which it is."""
    for ending in _PACKED:
        name = name.removesuffix(ending)
    if (dated := _DATE.fullmatch(name)) and (day := _day(dated)) is not None:
        base = dated["base"] + (dated["end"] or "")
        return base, day * 86_400.0 + _seconds(dated["time"] or ""), True
    if numbered := _NUMBER.fullmatch(name):
        return numbered["base"], float(numbered["number"]), False
    return name, None, False


def _day(found: re.Match[str]) -> int | None:
    try:
        return date(int(found["year"]), int(found["month"]), int(found["day"])).toordinal()
    except ValueError:
        return None


def _seconds(time: str) -> int:
    """``13``, ``1305``, ``130500``: the seconds of the day."""
    padded = time.ljust(6, "0")
    return int(padded[:2]) * 3600 + int(padded[2:4]) * 60 + int(padded[4:6])


def _looked_at(
    source: Source,
    options: Options,
    at: int,
    place: float | None,
    dated: bool,
    before: bytes = b"",
) -> _File:
    """``before``: as of the core."""
    named = named_format(options) or source.format
    with readable([source]) as (path,):
        try:
            found = _core.look_at_ends_of_log(
                path, server=source.server, named=named, before=before, **settings(options)
            )
        except ValueError as error:
            raise QueryError(with_names(str(error), [source], [path])) from None
    return _File(at, place, dated, *found)


def _untold(files: Sequence[_File], sources: Sequence[Source]) -> tuple[str, set[int]]:
    """The format of one log, and which of its files, in their order, do not tell it: one that has
    only the rest of an entry has none, or looks like another.
    """
    # A file of many lines tells more than several of a few.
    lines = Counter[str]()
    for file in files:
        if file.format:
            lines[file.format] += _breaks(sources[file.at]) + 1
    if not lines:
        return "", set()
    (form, _), *_ = lines.most_common(1)
    others = {f.at for f in files if f.format != form}
    # A few lines after one that was cut may look like another format than they have.
    few = {f.at for f in files if not f.format}
    few |= {b.at for a, b in pairwise(files)
            if _breaks(sources[b.at]) < _FEW and _cut(sources[a.at], b"")}  # fmt: skip
    # A server does not change its format for the time of one file.
    between = zip(files, files[1:], files[2:], strict=False)
    amid = {b.at for a, b, c in between if a.format == c.format == form}
    return form, others & (few | amid)


def _breaks(source: Source) -> int:
    """How many line breaks a file has, up to ``_FEW``; a packed file has as many."""
    return _FEW if _is_packed(source) else min(_FEW, _end(source).count(b"\n"))


def _is_packed(source: Source) -> bool:
    return Path(source.path).suffix in _PACKED


def _end(source: Source) -> bytes:
    """The last bytes of a file."""
    try:
        with Path(source.path).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _CUT_BYTES))
            return file.read()
    except OSError:
        return b""


def _cut(source: Source, before: bytes) -> bytes:
    """What stands behind the last line break of a file that follows a line that was cut."""
    if _is_packed(source):
        return b""
    end = _end(source)
    _, broken, rest = end.rpartition(b"\n")
    found = rest if broken else before + end
    return found if len(found) < _CUT_BYTES else b""


def _sorted(files: list[_File]) -> list[_File]:
    """From the oldest to the newest; what has no number or date is the newest."""
    placed = [f for f in files if f.place is not None]
    newest = [f for f in files if f.place is None]
    placed.sort(key=lambda f: f.place or 0.0)
    timed = [f.first_ns for f in placed if f.first_ns is not None]
    # A long search began before what is in the file before it, so one pair says little.
    ups = [(a < b) - (a > b) for a, b in pairwise(timed)]
    rising = 2 * sum(ups) > len(ups)
    if not placed[0].dated and not rising:
        placed.reverse()
    return placed + newest


def _linked(files: list[_File], sources: Sequence[Source], options: Options) -> list[Source]:
    days = [b.place - a.place for a, b in pairwise(files)
            if a.dated and b.dated and a.place is not None and b.place is not None]  # fmt: skip
    least = min((d for d in days if d > 0), default=0.0)
    found = [sources[files[0].at]]
    before = _cut(found[0], b"")
    for number, one in enumerate(files[:-1]):
        two = files[number + 1]
        if before and two.format:
            # Where a line was cut, what seems to begin an entry may be the rest of it.
            source = sources[two.at]
            two = _looked_at(source, options, two.at, two.place, two.dated, before)
            files[number + 1] = two
        follows = _follows(one, two, least)
        before = _cut(sources[two.at], before if follows == _WITHIN else b"")
        if sources[two.at].known_as or sources[two.at].skip_bytes:
            follows = 0
        found.append(replace(sources[two.at], follows=follows))
    return found


def _follows(one: _File, two: _File, least: float) -> int:
    """How the second file goes on with the first, as of the core."""
    same = one.format == two.format and one.format not in ("", "csv")
    if not same or not _next(one, two, least):
        return 0
    first_ns = two.first_ns if two.first_ns is not None else one.first_ns
    if one.first_ns is not None and first_ns is not None and first_ns < one.first_ns - _LATE_NS:
        return 0
    if not two.begins:
        return _WITHIN
    return _NEXT if one.joins or one.waits or two.twice else 0


def _next(one: _File, two: _File, least: float) -> bool:
    """Whether no file is missing between two that follow each other."""
    if one.place is None or (one.dated != two.dated and two.place is not None):
        return False
    if two.place is None:
        return one.dated or one.place <= 1
    apart = abs(two.place - one.place)
    return 0 < apart <= _FAR * least if one.dated else apart == 1
