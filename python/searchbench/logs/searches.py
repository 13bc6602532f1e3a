"""The searches of a log as what a study can send again: distinct lines, and the log of their use.

Entries that are no searches, parts of searches, and what cannot be asked again are left out and
counted; what the log does not say of those that are kept is counted too. Searches are in the order
in which they began. Where a log writes whole seconds, those of one second are spread evenly over
it, as for logs of requests: all would be due at once else. Each file has a clock of its own: one
that writes whole seconds does not make those of another coarser, which is read in the same call.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from searchbench.errors import QueryError
from searchbench.logs.asked import LIMITS, Asked, Kind, NotAsked, asked_of, identity
from searchbench.logs.entries import NO_TIME, NO_WORDS, SEARCH, UNKNOWN, Entries
from searchbench.logs.within import Within

_SECOND = 1_000_000_000
_FEW = 20  # searches of a file that do not show its clock
_FAILED = "failed in production"
_NO_TIME = "no time"
UNNAMED = "classes that are not named, for their words could not be told from names"
_BEHIND = "came after the log's clock had gone back, so they are mixed with earlier searches"
_BACK = 60 * _SECOND  # logs of searches that end in another order than they began go back less
_NAMES: dict[Kind, str] = {
    "words": "words to search for", "paths": "requests over HTTP", "statements": "statements",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lost:
    """Searches that are left out: their share of the time of all searches (None: not known), and
    how many are of which class, most first.
    """

    share_of_time: float | None
    classes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class Searches:
    """Searches in the order of their times.

    ``lines``: what is asked, distinct, without times, with ``class`` and ``index``; ``line``:
    uint32, the number of that of each search. ``same``: uint32, by line, which are the same to a
    study (in another letter case, of another index). ``at_ns``: int64, never decreasing, or None
    where the log has no times; ``steps_ns``: int64, by search, the finest difference between times
    that its file can write. ``ns`` (uint64, ``UNKNOWN``), ``resolution_ns`` and ``words`` as of
    the entries. ``entries``: how many the log has. ``left_out``: by reason; ``lost``: what of that
    are searches. ``missing``: what the log does not say, and of how many. ``formats``, ``files``:
    of what was read. ``failed``: bool, by search, whether its answer was an error. ``within``: the
    part of the log's time that was read; None: all of it.
    """

    kind: Kind
    lines: Sequence[dict[str, Any]]
    line: NDArray[np.uint32]
    same: NDArray[np.uint32]
    at_ns: NDArray[np.int64] | None
    steps_ns: NDArray[np.int64]
    ns: NDArray[np.uint64]
    resolution_ns: NDArray[np.uint32]
    words: NDArray[np.uint32]
    entries: int
    left_out: Mapping[str, int]
    missing: Mapping[str, int]
    formats: Sequence[str]
    files: Sequence[dict[str, Any]] = field(default_factory=tuple)
    zone: str = ""
    failed: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    lost: Lost | None = None
    within: Within | None = None

    def __len__(self) -> int:
        return len(self.line)

    @property
    def step_ns(self) -> int:
        """That of the coarsest file; 0 without times."""
        return int(self.steps_ns.max(initial=0))

    @property
    def asked(self) -> NDArray[np.uint32]:
        """By search, what it is to a study: equal numbers are repeats."""
        return self.same[self.line]

    def classes(self) -> tuple[list[str], NDArray[np.uint32]]:
        """The classes by name, and the number of that of each search."""
        names = sorted({str(line["class"]) for line in self.lines})
        number = {name: i for i, name in enumerate(names)}
        of_line = np.array([number[str(line["class"])] for line in self.lines], np.uint32)
        return names, of_line[self.line]

    def only(self, chosen: NDArray[np.int64]) -> Searches:
        """Those searches alone, in the order given, and the lines that they have."""
        used, line = np.unique(self.line[chosen], return_inverse=True)
        return replace(
            self,
            lines=[self.lines[i] for i in used],
            line=line.astype(np.uint32),
            same=self.same[used],
            at_ns=None if self.at_ns is None else self.at_ns[chosen],
            steps_ns=self.steps_ns[chosen],
            ns=self.ns[chosen],
            resolution_ns=self.resolution_ns[chosen],
            words=self.words[chosen],
            failed=self.failed[chosen],
        )


def searches_of(
    entries: Entries,
    zone: str = "",
    fields: Mapping[str, str] | None = None,
    within: Within | None = None,
) -> Searches:
    """The searches of a log. ``fields``: other names of those that its words are looked for in;
    "": of all. ``within``: the part of the log's time that the entries are of.

    QueryError where there are none that can be asked again, or where some are words and others
    requests: one study cannot send both.
    """
    left_out: Counter[str] = Counter()
    wanted = searches = np.flatnonzero(entries.kind == SEARCH)
    left_out["parts of searches"] = int((entries.kind == 1).sum())
    left_out["no searches: writes, settings, pages"] = int((entries.kind == 2).sum())
    wanted = _without_failed(entries, wanted, left_out)
    lines, of_row, same, kinds, missing_of = _lines(entries, wanted, left_out, fields or {})
    wanted = wanted[of_row[entries.asked[wanted]] >= 0]
    if not len(wanted):
        raise QueryError(_nothing(left_out, within))
    if len(kinds) > 1:
        (one, first), (other, second) = list(kinds.items())[:2]
        raise QueryError(
            f"these logs have {_NAMES[one]} ({first}) and {_NAMES[other]} ({second}), which one "
            "study cannot send: write a file for each"
        )
    (kind,) = kinds
    at = entries.at_ns[wanted]
    timed = at != NO_TIME
    if timed.any() and not timed.all():
        left_out[_NO_TIME] += int((~timed).sum())
        wanted, at = wanted[timed], at[timed]
    ns, at_ns, steps_ns = entries.ns[wanted], None, np.zeros(len(wanted), np.int64)
    missing: Counter[str] = Counter()
    if timed.any():
        if behind := _behind(at, ns, entries.source[wanted]):
            missing[_BEHIND] = behind
        stamp, steps_ns = _stamped(entries, wanted, at, ns)
        order = np.argsort(stamp, kind="stable")
        wanted, at_ns, ns, steps_ns = wanted[order], stamp[order], ns[order], steps_ns[order]
    line = of_row[entries.asked[wanted]].astype(np.uint32)
    for number, n in zip(*np.unique(line, return_counts=True), strict=True):
        for what in missing_of[int(number)]:
            missing[what] += int(n)
    formats = sorted({entries.sources[i]["format"] for i in np.unique(entries.source[wanted])})
    return Searches(
        kind, lines, line, same, at_ns, steps_ns, ns, entries.resolution_ns[wanted],
        entries.words[wanted], len(entries), {k: n for k, n in left_out.items() if n}, missing,
        formats, _files(entries, wanted, steps_ns), zone, entries.failed[wanted],
        _lost(entries, searches, np.setdiff1d(searches, wanted)), within,
    )  # fmt: skip


def _lost(entries: Entries, searches: NDArray[np.int64], lost: NDArray[np.int64]) -> Lost | None:
    """What the searches that are left out are; None where all are there."""
    if not len(lost):
        return None
    times = [entries.ns[of].astype(np.float64)[entries.ns[of] != UNKNOWN].sum()
             for of in (lost, searches)]  # fmt: skip
    classes: Counter[str] = Counter()
    for row, n in zip(*np.unique(entries.asked[lost], return_counts=True), strict=True):
        classes[entries.rows[int(row)].of_class] += int(n)
    share = float(times[0] / times[1]) if times[1] > 0 else None
    return Lost(share, tuple(sorted(classes.items(), key=lambda one: (-one[1], one[0]))))


def _without_failed(
    entries: Entries, wanted: NDArray[np.int64], left_out: Counter[str]
) -> NDArray[np.int64]:
    """Without statements that failed; of requests over HTTP an error is an answer too."""
    failed = wanted[entries.failed[wanted]]
    sql = ("sphinxql", "mysql", "postgresql")
    of_sql = {i for i in np.unique(entries.asked[failed]).tolist()
              if entries.rows[i].format.startswith(sql)}  # fmt: skip
    out = np.isin(entries.asked[wanted], list(of_sql)) & entries.failed[wanted]
    left_out[_FAILED] += int(out.sum())
    return wanted[~out]


def _lines(
    entries: Entries, wanted: NDArray[np.int64], left_out: Counter[str], fields: Mapping[str, str]
) -> tuple[list[dict[str, Any]], NDArray[np.int64], NDArray[np.uint32], dict[Kind, str],
           list[tuple[str, ...]]]:  # fmt: skip
    """Distinct lines; by row the number of its line, or -1; which lines are the same; the kinds,
    each with a file that has it; by line what the log lacks of it."""
    numbers, counts = np.unique(entries.asked[wanted], return_counts=True)
    of_row = np.full(len(entries.rows), -1, np.int64)
    known: dict[tuple[bytes, str, str, tuple[str, ...]], int] = {}
    alike: dict[bytes, int] = {}
    lines: list[dict[str, Any]] = []
    same: list[int] = []
    missing: list[tuple[str, ...]] = []
    kinds: dict[Kind, int] = {}
    for number, n in zip(numbers.tolist(), counts.tolist(), strict=True):
        row = entries.rows[number]
        try:
            found: Asked = asked_of(row, fields)
        except NotAsked as reason:
            left_out[str(reason)] += n
            continue
        kinds.setdefault(found.kind, number)
        key = _digest(identity(found.line))
        whole = (_digest(orjson.dumps(found.line)), row.of_class, row.index, found.missing)
        at = known.get(whole)
        if at is None:
            at = known[whole] = len(lines)
            lines.append({**found.line, "class": row.of_class, "index": row.index})
            same.append(alike.setdefault(key, len(alike)))
            missing.append(found.missing)
        of_row[number] = at
    where = {kind: _file_with(entries, row) for kind, row in kinds.items()}
    return lines, of_row, np.array(same, np.uint32), where, missing


def _digest(line: bytes) -> bytes:
    # What orjson gives keeps a kilobyte and more, however short it is.
    return hashlib.blake2b(line, digest_size=16).digest()


def _file_with(entries: Entries, row: int) -> str:
    source = int(entries.source[np.flatnonzero(entries.asked == row)[0]])
    return PurePath(str(entries.sources[source]["path"])).name


def _files(
    entries: Entries, wanted: NDArray[np.int64], steps_ns: NDArray[np.int64]
) -> list[dict[str, Any]]:
    """What was read; ``step_s``: how finely the times of its searches are known, if it has any."""
    of = entries.source[wanted]
    found = []
    for number, source in enumerate(entries.sources):
        steps = steps_ns[of == number]
        found.append({
            "name": PurePath(str(source["path"])).name,
            "format": source["format"],
            "refused": source["refused"],
            **{key: source[key] for key in ("lines", "entries", "unread")},
            "searches": len(steps),
            "step_s": int(steps[0]) / _SECOND if len(steps) and steps[0] else None,
        })  # fmt: skip
    return found


def _stamped(
    entries: Entries, wanted: NDArray[np.int64], at: NDArray[np.int64], ns: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The instants to go by, and the step of each, by the clock of its file.

    Few searches of a file may all stand at whole seconds by chance. Such a file is taken to be as
    fine as the others of its server and format.
    """
    source = entries.source[wanted]
    stamps, steps = at.copy(), np.ones(len(at), np.int64)
    files = {int(one): np.flatnonzero(source == one) for one in np.unique(source)}
    known = {one: _stamps(at[mine], ns[mine]) for one, mine in files.items()}
    finest: dict[tuple[str, str], int] = {}
    for one, (_, step_ns) in known.items():
        log = _log_of(entries, one)
        finest[log] = min(step_ns, finest.get(log, step_ns))
    for one, mine in files.items():
        own, step_ns = known[one]
        if len(mine) < _FEW and finest[_log_of(entries, one)] < step_ns:
            own, step_ns = at[mine], finest[_log_of(entries, one)]
        stamps[mine], steps[mine] = own, step_ns
    # Those of several files together: the first ones of each second would be due at once else.
    for step_ns in np.unique(steps[steps >= _SECOND]).tolist():
        mine = np.flatnonzero(steps == step_ns)
        mine = mine[np.argsort(stamps[mine], kind="stable")]
        stamps[mine] = _spread(stamps[mine], step_ns)
    return stamps, steps


def _log_of(entries: Entries, source: int) -> tuple[str, str]:
    found = entries.sources[source]
    return str(found["format"]), str(found["server"])


def _stamps(at: NDArray[np.int64], ns: NDArray[np.uint64]) -> tuple[NDArray[np.int64], int]:
    """The instants to go by, and the finest difference that they can have.

    Where the log writes when a search ended, in coarse steps, what is left of it once the time of
    the search is taken away only looks finer; so the step is that of whichever is coarser.
    """
    ended = at + np.where(ns == UNKNOWN, 0, ns).astype(np.int64)
    began_step, ended_step = _step(at), _step(ended)
    if ended_step >= _SECOND > began_step:
        return ended, ended_step
    return at, max(began_step, ended_step)


def _behind(at: NDArray[np.int64], ns: NDArray[np.uint64], source: NDArray[np.uint32]) -> int:
    """How many stand where the clock of their log had gone back: in autumn an hour comes twice.

    Of a search that took long only the beginning lies before what was written above it.
    """
    ended = at + np.where(ns == UNKNOWN, 0, ns).astype(np.int64)
    found = 0
    for one in np.unique(source):
        mine = source == one
        back = [np.maximum.accumulate(x[mine]) - x[mine] > _BACK for x in (at, ended)]
        found += int((back[0] & back[1]).sum())
    return found


def _step(at: NDArray[np.int64]) -> int:
    """The greatest power of ten, up to a second, or a minute, that divides all instants."""
    for step in (60 * _SECOND, _SECOND):
        if len(at) > 1 and not (at % step).any():
            return step
    step = 1
    while step < _SECOND and not (at % (step * 10)).any():
        step *= 10
    return step


def _spread(at: NDArray[np.int64], step_ns: int) -> NDArray[np.int64]:
    """Those of one step evenly over it."""
    _, start, size = np.unique(at, return_index=True, return_counts=True)
    within = np.arange(len(at)) - np.repeat(start, size)
    spread: NDArray[np.int64] = at + within * step_ns // np.repeat(size, size)
    return spread


def _nothing(left_out: Counter[str], within: Within | None) -> str:
    if within is not None and not any(left_out.values()):
        return f"the log has no entry that began {within}; the page of the log shows its times"
    told = ", ".join(f"{reason} ({n:,})" for reason, n in left_out.most_common(3) if n)
    return (
        "nothing in this log can be asked again" + (f": {told}" if told else "") + "; name a log "
        "that has the words, the paths or the statements of searches"
    )


def limits(of: Searches) -> list[str]:
    """What none of the entries has, by the formats that were read: "order of the hits"."""
    found = dict.fromkeys(what for form in of.formats for what in LIMITS.get(form, ()))
    if of.at_ns is None:
        found["times"] = None
    return list(found)


def has_words(of: Searches) -> NDArray[np.bool_]:
    """Of which searches the number of words is known."""
    known: NDArray[np.bool_] = of.words != NO_WORDS
    return known
