"""What two records do not have in common: versions, levers, how systems are reached and where they
stand, what goes on beside the readers, load, documents, the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import msgspec

from searchbench.analysis import clocks
from searchbench.analysis.compare import answered, unread
from searchbench.analysis.compare.run import Run
from searchbench.analysis.compare.unread import Unread
from searchbench.analysis.judgement import Agreement, Finding, SetupDifference
from searchbench.record import Record

MACHINE = (
    "cpu",
    "cores",
    "memory_bytes",
    "kernel",
    "governor",
    "clocksource",
    "halt_poll_ns",
    "virtual",
)
HARDWARE = ("cpu", "cores")  # a kernel may be what is compared
MISSING = "not on record"
_EVERY_RUN = ("boot_id",)  # facts of a machine that are others after each start
_OF_QUERIES = ("name", "digest", "distinct")
_TABLES = ("place", "ingest", "jobs", "roles", "operation")  # of a treatment, none of the others
# What is no part of the thing that runs are of, or is looked at elsewhere: other documents, queries
# and loads of a further run are refused, and a search chooses its loads itself.
# Runs that built their index once, and in each block, are judged by a rule of their own.
_OF_A_RUN = ("load", "corpus", "queries", "study", "searchbench", "machine", "ingest")
_OF_CORPUS = ("name", "digest", "documents", "text_bytes")


def differences(a: Record, b: Record) -> tuple[SetupDifference, ...]:
    """Whatever both records say and say otherwise, or one of them alone says."""
    x, y = _facts(a), _facts(b)
    return tuple(
        SetupDifference(*key, x.get(key, MISSING), y.get(key, MISSING))
        for key in dict.fromkeys((*x, *y))
        if x.get(key) != y.get(key)
    )


def unlike(side: Sequence[Record]) -> list[str]:
    """In which versions and settings runs of one side differ, which are said to be of one thing.

    What one record lacks is no difference: an older one does not have everything, and one with
    trials that are missing does not have all values of a factor.
    """
    found: dict[tuple[str, str], dict[str, None]] = {}
    for first, other in combinations(map(_seen, side), 2):
        for key in first.keys() & other.keys():
            x, y = (dict.fromkeys(sorted(seen[key])) for seen in (first, other))
            if key[0] not in _OF_A_RUN and not (x.keys() <= y.keys() or y.keys() <= x.keys()):
                found.setdefault(key, {}).update({", ".join(x): None, ", ".join(y): None})
    return [f"{of}: {what} {' and '.join(each)}" for (of, what), each in sorted(found.items())]


def other_machine(before: Sequence[Record], after: Sequence[Record]) -> str:
    """What tells the machines of all runs of one side from those of the other; empty: nothing."""
    for fact in HARDWARE:
        sides = [[r.host.get(fact) for r in side] for side in (before, after)]
        x, y = ({str(value) for value in own} for own in sides)
        if not any(None in own for own in sides) and not x & y:
            return f"{fact}: {', '.join(sorted(x))} and {', '.join(sorted(y))}"
    return ""


def slower_clock(before: Sequence[Record], after: Sequence[Record]) -> dict[int, str]:
    """By side (0: before, 1: after), how much slower its processor was, throughout all of its runs.
    Of two machines nothing is said: that is a reason by itself.
    """
    return {} if other_machine(before, after) else clocks.slower(before, after)


def is_mixed(*sides: Sequence[Run]) -> bool:
    """Whether the runs of any side are not of the same versions and settings."""
    return any(unlike([run.record for run in side]) for side in sides)


def findings(
    before: Sequence[Record],
    after: Sequence[Record],
    agreed: Mapping[str, Agreement],
    not_read: Mapping[str, Unread],
    trials: bool,
) -> Iterator[Finding]:
    """What of it bears on the answer. ``agreed``: by label, how far both return the same.

    ``not_read``: by label, replies that nobody read. ``trials``: else they are sweeps or searches.
    """
    records = [*before, *after]
    # An older record lacks what was not looked at yet, which is no other machine.
    hosts = {
        f: list(dict.fromkeys(str(r.host[f]) for r in records if f in r.host)) for f in MACHINE
    }
    differing = [f"{f}: {' and '.join(found)}" for f, found in hosts.items() if len(found) > 1]
    if differing:
        yield Finding(
            "other machine",
            "warning",
            "",
            "; ".join(differing),
            "The records were made on machines that differ, so a difference in speed may be "
            "the machine's.",
            "Run both studies on one machine, one after the other.",
        )
    if clock := slower_clock(before, after):
        yield Finding(
            "CPU frequency",
            "warning",
            "",
            "; ".join(clock.values()),
            "The CPU frequency was lower in all runs of one side than in any run of the other, so "
            "it may be the reason for a difference in speed.",
            "cpupower frequency-set -g performance; turn turbo off; check the cooling. Then run "
            "both again, in turn.",
        )
    for side in (before, after):
        if found := unlike(side):
            yield Finding(
                "not the same",
                "warning",
                "",
                "; ".join(found),
                "Records said to be of the same thing are not of the same versions or settings, so "
                "they differ by more than runs of one thing do, and nothing is resolved.",
                "Give only records of the same version and settings with --same or --same-b.",
            )
    starts = [
        [min((t.started for t in record.trials), default="") for record in side]
        for side in (before, after)
    ]
    apart = max(starts[0]) < min(starts[1]) or max(starts[1]) < min(starts[0])
    if len(records) > 2 and all(map(all, starts)) and apart:
        yield Finding(
            "not interleaved",
            "warning",
            "",
            f"{min(map(min, starts))} to {max(map(max, starts))}",
            "All runs of one side were made before those of the other, so whatever changed on the "
            "machine in between counts as the change.",
            "Run both in turn: the first again after the second, at least.",
        )
    if together := _at_one_time(records):
        yield Finding(
            "at one time",
            "warning",
            "",
            " and ".join(together),
            "Trials of two records were under way at the same time on one machine, so each "
            "disturbed the other, and their difference may be of that.",
            "Run them one after the other.",
        )
    windows = [_windows(record) for record in (before[0], after[0])]
    if all(windows) and windows[0] != windows[1]:
        yield Finding(
            "other windows",
            "warning",
            "",
            " and ".join(", ".join(sorted(own)) for own in windows),
            "The two were not measured, or not warmed up, for the same time. So one may be further "
            "from its steady state, and the shorter window asks fewer queries.",
            "Run both with the same seconds and warmup_s.",
        )
    versions = [_versions(side[0]) for side in (before, after)]
    if versions[0] != versions[1]:
        yield Finding(
            "other versions",
            "note",
            "",
            " and ".join(", ".join(sorted(f"{e} {v}" for e, v in own)) for own in versions),
            "The engines are not of the same version.",
            "Nothing, if that is what you compare.",
        )
    yield from answered.findings(agreed, trials)
    yield from unread.findings(not_read)


def _at_one_time(records: Sequence[Record]) -> list[str]:
    """The first two records of one machine of which trials overlap in time; empty: none do."""
    for i, one in enumerate(records):
        for other in records[i + 1 :]:
            machine = one.host.get("boot_id")
            if machine is None or other.host.get("boot_id") != machine:
                continue
            # Instants of one form in one zone are in the order of their texts.
            spans = [[(t.started, t.ended) for t in r.trials if t.ended] for r in (one, other)]
            if any(a < d and c < b for a, b in spans[0] for c, d in spans[1]):
                return [str(one.path), str(other.path)]
    return []


def _facts(record: Record) -> dict[tuple[str, str], str]:
    """By what it is of and what it is; several values of a treatment's own are listed."""
    return {key: ", ".join(sorted(values)) for key, values in _seen(record).items()}


def _seen(record: Record) -> dict[tuple[str, str], dict[str, None]]:
    """The same, each with its values."""
    seen: dict[tuple[str, str], dict[str, None]] = {}
    for of, what, value in _each(record):
        if value not in (None, "", [], {}):
            seen.setdefault((of, what), {})[_said(value)] = None
    return seen


def _each(record: Record) -> Iterator[tuple[str, str, Any]]:
    trials = record.trials
    for t in trials:
        yield t.system, "engine", t.engine
        yield t.system, "version", t.version
    for t in trials:
        for lever, value in t.parameters.items():
            yield t.system, lever, value
        yield t.system, "cores", t.service.cpus
        for one in t.elsewhere:
            machine = f"{one.hostname} ({one.cpu}, {one.cores} cores, Linux {one.kernel})"
            yield t.system, f"host {one.host}", machine
    for t in trials:
        for key, value in msgspec.to_builtins(t.load).items():
            yield "load", key, value
        for of, table, keys in (
            ("corpus", t.corpus, _OF_CORPUS),
            ("queries", t.queries, _OF_QUERIES),
        ):
            for key in keys:
                yield of, key, getattr(table, key)
    for treatment in record.plan.treatments:
        for what, value in msgspec.to_builtins(treatment.access).items():
            yield treatment.system, f"access: {what}", value
        for name in _TABLES:
            for what, value in _levers(treatment.settings.get(name, {})):
                if name == "place":
                    yield treatment.system, f"place: {what}", value
                else:
                    yield name, what, value
    yield "study", "seed", record.plan.seed
    yield "study", "replicates", record.plan.judging.replicates
    yield "study", "index", record.plan.judging.ingest
    rule = record.plan.judging.agreement
    yield "study", "capture", rule.capture
    yield "study", "required agreement", rule.require
    yield "searchbench", "version", record.about.get("searchbench")
    for key, value in record.host.items():
        if key not in (*_EVERY_RUN, "searchbench"):
            yield "machine", key, value
    yield "machine", "said to be shared", any(t.host_window.shared for t in trials)


def _levers(table: Mapping[str, Any], of: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a table by its name, such as ``writer.documents_per_s``."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _levers(value, f"{of}{key}.")
        else:
            yield f"{of}{key}", value


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _windows(record: Record) -> set[str]:
    """How long its trials were measured and warmed up; a search chooses that itself."""
    if record.plan.judging.measure == "capacity":
        return set()
    loads = {(t.load.seconds, t.load.warmup_s) for t in record.trials}
    return {
        f"{'a whole log' if s is None else f'{s:g} s'} after "
        f"{'a warm-up until steady' if w is None else f'{w:g} s of warm-up'}"
        for s, w in loads
    }


def _versions(record: Record) -> set[tuple[str, str]]:
    return {(t.engine, t.version) for t in record.trials if t.version}
