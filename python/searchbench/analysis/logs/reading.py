"""What is worth saying about how a log was read: files that are left out, damaged, or there twice;
lines that are none of it; clocks, zones and units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath

from searchbench import _core
from searchbench.analysis.logs.model import LogJudgement, Remark
from searchbench.analysis.words import listed
from searchbench.logs.counts import MOST_NAMES, OTHERS

COPIED = 10  # entries, from which on two files that are alike are no chance

_LARGE = 10_000  # bytes, from which on two files that are alike have the same lines
_ALIKE = 0.98  # of the entries of one form, that another has
_FAMILIES = ("slowlog", "postgresql")  # servers that may write a log in several forms at once

# Lines of another format are named from so many on, and from such a part of those not read.
_OTHERS_AT_LEAST = 20
_OTHERS_SHARE = 0.01

# Their stamps never name a zone.
NO_ZONE = frozenset(("sphinx", "sphinxql", "groonga"))
# Theirs always do.
_ZONE = frozenset(("access",))


def reading(of: LogJudgement) -> Iterator[Remark]:
    """Every remark on files."""
    yield from _copies(of)
    yield from _same_events(of)
    twice = [*_slow_requests(of)]
    yield from twice
    yield from _zones(of)
    yield from _mixed(of)
    named = _names(of)
    for source in of.sources:
        name = named(source)
        if source["refused"]:
            yield Remark("warning", "Left out", f"{source['refused']}.")
            continue
        lines, unread = int(str(source["lines"])), int(str(source["unread"]))
        if unread:
            examples = source["examples"]
            line, why, text = examples[0]  # type: ignore[index]
            yield Remark(
                "warning" if unread * 100 >= lines else "note", "Lines that could not be read",
                f"{name}: {unread:,} of {lines:,} lines. The first is line {line}: {why} "
                f"({text!r}).",
            )  # fmt: skip
        yield from _others(source, name, unread)
        notes = dict(source["notes"])  # type: ignore[call-overload]
        zoned = bool(of.zone) or source["server"] in of.zones
        yield from _set_back(source, name, notes, zoned=zoned)
        if twice:
            notes.pop(_core.LOG_SLOW_REQUEST, None)
        if notes.pop(_core.LOG_DAMAGED, 0):
            yield Remark(
                "warning", "A damaged file",
                f"{name} is packed, and damaged. Its first {lines:,} lines could be read; the "
                "figures lack what follows.",
                "Test it with gzip -t or zstd -t, and copy it again from where it was packed.",
            )  # fmt: skip
        if notes.pop(_core.LOG_CORRUPT, 0):
            yield Remark(
                "warning", "A damaged file",
                f"{name} is packed, and bytes of it were changed. {lines:,} lines were read. Those "
                "after the change may not be lines of the log, but are in the figures; other "
                "lines may be missing.",
                "Copy it again from where it was packed.",
            )  # fmt: skip
        if letters := notes.pop(_core.LOG_LETTERS, 0):
            yield Remark(
                "warning", "Zone not known",
                f"{name}: {letters:,} times name their zone in a way that is not understood, such "
                "as CET or Europe/Paris. These times are shown as the log writes them.",
                "Name the zone, as in --zone Europe/Paris, or that of this server alone, as in "
                f"--zone {source['server'] or 'NAME'}=Europe/Paris.",
            )  # fmt: skip
        if source.get("goes_on"):
            yield Remark(
                "note", "Rotated files",
                f"{name} was read as the continuation of the file before it: an entry that begins "
                "in one and ends in the other is counted once.",
            )  # fmt: skip
        yield from _long(source, name, notes)
        for what in (_core.LOG_OUTSIDE, _core.LOG_TIMELESS):
            notes.pop(what, None)
        for what in [what for what in notes if what.startswith("a duration ")]:
            yield Remark(
                "note", "Unit of times", f"{name}: {notes.pop(what):,} × {what}.",
                "If the unit is another, name it: --column NAME=duration:ms (or s, us, ns).",
            )  # fmt: skip
        for what, n in notes.items():
            yield Remark("note", "Not sure", f"{name}: {n:,} × {what}.")


def part_of_time(of: LogJudgement) -> Iterator[Remark]:
    """That not all of the log is counted."""
    if of.during is None:
        return
    outside, timeless = (sum(_noted(s, what) for s in of.sources)
                         for what in (_core.LOG_OUTSIDE, _core.LOG_TIMELESS))  # fmt: skip
    none = of.all is None and not of.others + of.parts
    yield Remark(
        "warning" if none else "note", "Part of the time",
        f"Only what began {of.during} is counted; {outside:,} other entries are left out.",
        "Read the log without --since and --until to see which times it has." if none else "",
    )  # fmt: skip
    if timeless:
        yield Remark(
            "warning", "Entries without a time",
            f"{timeless:,} entries have no time, so they are left out too.",
        )  # fmt: skip


def crowded(of: LogJudgement) -> Iterator[Remark]:
    """Kinds that have more names than are told apart."""
    kinds = {"server": "servers", "index": "indexes", "class": "classes", "user": "users",
             "part": "indexes of agents", "other": "classes of other entries"}  # fmt: skip
    for kind in of.crowded:
        yield Remark(
            "warning", "More names than are told apart",
            f"The logs have more than {MOST_NAMES:,} {kinds[kind]}. Those that came last are one, "
            f"called {OTHERS}; which these are may differ from one call to the next.",
        )  # fmt: skip


def lettered(source: Mapping[str, object]) -> int:
    """Entries whose stamp has letters for its zone that do not say which zone it is."""
    return _noted(source, _core.LOG_LETTERS)


def _noted(source: Mapping[str, object], what: str) -> int:
    """How often something was noted of a source."""
    return int(dict(source["notes"]).get(what, 0))  # type: ignore[call-overload]


def _names(of: LogJudgement) -> Callable[[Mapping[str, object]], str]:
    """How files are called: by their names, with the folder where several have the same."""
    paths = [PurePath(str(source["path"])) for source in of.sources]
    several = {name for name, n in Counter(path.name for path in paths).items() if n > 1}

    def named(source: Mapping[str, object]) -> str:
        path = PurePath(str(source["path"]))
        return "/".join(path.parts[-2:]) if path.name in several else path.name

    return named


def _copies(of: LogJudgement) -> Iterator[Remark]:
    """Files that are one log twice, such as a packed copy beside it: no two logs of like names have
    as many bytes and lines, and a longest line as long.
    """
    named = _names(of)
    alike: dict[tuple[object, ...], list[str]] = {}
    sizes = ("format", "bytes", "lines", "entries", "longest_line")
    for source in of.sources:
        path = PurePath(str(source["path"]))
        if int(str(source["entries"])) >= COPIED and not source.get("skipped_bytes"):
            # Logs of so many bytes are not alike by chance, whatever they are called.
            name = path.name.partition(".")[0] if int(str(source["bytes"])) < _LARGE else ""
            key = name, *(source[size] for size in sizes)
            alike.setdefault(key, []).append(named(source))
    for first, *rest in (names for names in alike.values() if len(names) > 1):
        one = len(rest) == 1
        yield Remark(
            "warning", "Counted twice",
            f"{listed(rest)} {'has' if one else 'have'} as many bytes, lines and entries as "
            f"{first}, and {'is' if one else 'are'} probably {'a copy' if one else 'copies'} of "
            "it. Then all of it counts more than once: read only one of them.",
        )  # fmt: skip


def _same_events(of: LogJudgement) -> Iterator[Remark]:
    """Logs of one server in two forms, as OpenSearch and PostgreSQL may write both."""
    named = _names(of)
    for family in _FAMILIES:
        # Whatever their servers are called: that is by the folder, or by each file.
        each: dict[str, list[Mapping[str, object]]] = {}
        for source in of.sources:
            if source["entries"] and str(source["format"]).startswith(family):
                each.setdefault(str(source["format"]), []).append(source)
        n = {form: sum(int(str(s["entries"])) for s in own) for form, own in each.items()}
        if len(n) < 2 or min(n.values()) < COPIED or min(n.values()) < _ALIKE * max(n.values()):
            continue
        one, *others = [listed([named(s) for s in own[:3]]) for own in each.values()]
        yield Remark(
            "warning", "Counted twice",
            f"{one} and {listed(others)} have about the same number of entries, in different forms "
            f"({listed(list(each))}). If one server wrote them all, every entry counts more than "
            "once.",
            "If so, read only one of the forms.",
        )  # fmt: skip


def _slow_requests(of: LogJudgement) -> Iterator[Remark]:
    """Solr's log of slow requests beside that of all requests: the slow ones are in both."""
    solr = [s for s in of.sources if s["format"] == "solr" and s["entries"]]
    slow = [_noted(s, _core.LOG_SLOW_REQUEST) for s in solr]
    n, all_ = sum(slow), sum(int(str(s["entries"])) for s in solr)
    if 0 < n < all_:
        named = _names(of)
        names = sorted({named(s) for s, m in zip(solr, slow, strict=True) if m})
        yield Remark(
            "warning", "Counted twice",
            f"{n:,} requests are in {listed(names)} because they were slow. Solr also writes them "
            "to its log of all requests. If that is among these files, they are counted twice, and "
            "searches look slower than they were.",
            "Read only the log of all requests, not that of slow ones.",
        )  # fmt: skip


def _zones(of: LogJudgement) -> Iterator[Remark]:
    """Zones that the user named for servers of which there is no log."""
    servers = sorted({str(s["server"]) for s in of.sources})
    for name in sorted(set(of.zones) - set(servers)):
        yield Remark(
            "warning", "A zone for no log",
            f"--zone {name}={of.zones[name]} changed nothing: no log is from a server {name}.",
            f"The servers are {listed(servers[:10])}" + (", .." if len(servers) > 10 else "") + ".",
        )  # fmt: skip


def _mixed(of: LogJudgement) -> Iterator[Remark]:
    """Times in UTC beside times as their servers' clocks show them, on one axis."""
    sources = [s for s in of.sources if s["entries"]]
    local = [s for s in sources if not of.zone and s["server"] not in of.zones
             and (s["format"] in NO_ZONE or lettered(s))]  # fmt: skip
    known = [s for s in sources if s["format"] in _ZONE or s["server"] in of.zones]
    if local and known:
        names = [listed(sorted({str(s["server"]) for s in part})[:3]) for part in (local, known)]
        yield Remark(
            "warning", "Clocks side by side",
            f"The times of {names[0]} are in a zone that their logs do not name, and those of "
            f"{names[1]} are in UTC. The same hour and minute mean the same time in both only if "
            "that zone is UTC too.",
            "Name that zone, as in --zone Europe/Paris.",
        )  # fmt: skip


def _set_back(
    source: Mapping[str, object], name: str, notes: dict[str, int], *, zoned: bool
) -> Iterator[Remark]:
    """Clocks that were set back, or went back; what is said of it is taken out of ``notes``.
    ``zoned``: the zone of the log is known, so its hours are told apart.
    """
    hours = notes.pop(_core.LOG_HOUR_BACK, 0)
    if zoned:
        hours = 0
    if hours:
        yield Remark(
            "warning", "A clock that was set back",
            f"{name}: {hours:,} × the clock goes back by about an hour in the night from "
            "Saturday to Sunday. If clocks were set back then, that hour has the entries of two "
            "hours.",
            "Name the zone of the log with --zone.",
        )  # fmt: skip
    others = int(str(source["back"])) - hours
    if others > 0:
        yield Remark(
            "note", "A clock that went back",
            f"{name}: {others:,} × an entry is more than a minute earlier than the one above it.",
        )  # fmt: skip
    if second := notes.pop(_core.LOG_SECOND, 0):
        first = notes.pop(_core.LOG_TWICE, 0)
        yield Remark(
            "note", "An hour that passed twice",
            f"{name}: the clock was set back between two entries. {first:,} entries are of the "
            f"first passing of that hour, {second:,} of the second.",
        )  # fmt: skip


def _others(source: Mapping[str, object], name: str, unread: int) -> Iterator[Remark]:
    """Lines that another format can read, where they are no few."""
    for form, lines, first in source.get("other_formats", ()):  # type: ignore[attr-defined]
        if lines < _OTHERS_AT_LEAST or lines < _OTHERS_SHARE * unread:
            continue
        yield Remark(
            "warning", "Two formats",
            f"{name} was read as {source['format']}, and {lines:,} of the {unread:,} lines that "
            f"could not be read look like {form} (line {first:,} is the first).",
            f"Read it a second time with --format {form}, or split it into a file for each format.",
        )  # fmt: skip


def _long(source: Mapping[str, object], name: str, notes: dict[str, int]) -> Iterator[Remark]:
    """Lines that are longer than those of a log usually are; they are taken out of ``notes``."""
    long, cut = notes.pop(_core.LOG_LONG_LINES, 0), notes.pop(_core.LOG_CUT_LINES, 0)
    if long:
        most = int(str(source["longest_line"])) / 1e6
        yield Remark(
            "note", "Long lines",
            f"{name}: {long:,} × {_core.LOG_LONG_LINES}; the longest that was read has "
            f"{most:,.1f} MB.",
        )  # fmt: skip
    if cut:
        yield Remark("warning", "Lines that were cut", f"{name}: {cut:,} × {_core.LOG_CUT_LINES}.",
                     "Look at the line: it may be no log, or lack its line breaks.")  # fmt: skip
