"""Searches of a log as a file that a study replays, and beside it what the file is.

OUT.jsonl             a search a line: what is asked, ``t`` (seconds), ``class``, ``index``
OUT.jsonl.about.json  where it comes from, what it lacks, how to replay it
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from searchbench.errors import QueryError
from searchbench.logs.searches import UNNAMED, Searches, limits
from searchbench.whole import beside, not_written, on_disk

FORMAT = 1
_SECOND = 1_000_000_000
_MUCH = 0.01  # of the time: a share that is worth a word
_NO_SEARCHES = ("parts of searches", "no searches: writes, settings, pages")


def write_searches(path: Path, of: Searches, told: Mapping[str, Any]) -> Path:
    """Write the file, and beside it what it is (``about``): both or none. Where that stands.

    QueryError where they cannot be written.
    """
    heads = [orjson.dumps(line)[:-1] for line in of.lines]
    place = about_path(path)
    try:
        with beside(path, waits=False) as part, beside(place, waits=False) as said:
            with part.open("wb", buffering=1 << 20) as file:
                if of.at_ns is None:
                    file.writelines(heads[i] + b"}\n" for i in of.line.tolist())
                else:
                    times = zip(of.line.tolist(), of.at_ns.tolist(), strict=True)
                    file.writelines(b'%s,"t":%s}\n' % (heads[i], _seconds(at)) for i, at in times)
            said.write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n")
            # Both, before one takes its place.
            on_disk(part)
            on_disk(said)
    except OSError as error:
        raise QueryError(not_written(path, error)) from error
    return place


def about_path(path: Path) -> Path:
    """Where it is written what a file is."""
    return path.with_name(path.name + ".about.json")


def about(
    path: Path,
    written: Searches,
    log: Searches,
    *,
    cut: Mapping[str, Any] | None = None,
    anonymised: Mapping[str, Any] | None = None,
    warmup_s: float = 0.0,
) -> dict[str, Any]:
    """What a file is: of ``log``, the searches that were ``written``."""
    at, times = written.at_ns, log.at_ns
    within = None if log.within is None else str(log.within)
    if anonymised is not None:
        times = None  # would say when somebody asked
        within = within and "in a part of its time"
    return {
        "searchbench": "searches of a log",
        "format": FORMAT,
        "file": path.name,
        "kind": written.kind,
        "searches": len(written),
        "distinct": len(np.unique(written.asked)),
        "of": len(log),
        "within": within,
        "of_seconds": None if log.at_ns is None else int(log.at_ns[-1] - log.at_ns[0]) / _SECOND,
        "first_s": None if times is None else int(times[0]) / _SECOND,
        "last_s": None if times is None else int(times[-1]) / _SECOND,
        "zone": log.zone,
        "seconds": None if at is None else int(at[-1] - at[0]) / _SECOND,
        "step_s": None if at is None else log.step_ns / _SECOND,
        "faithful": is_faithful(log),
        "sentence": sentence(log, within),
        "missing": dict(log.missing),
        "limits": limits(log),
        "left_out": dict(log.left_out),
        "left_out_share_of_time": log.lost.share_of_time if log.lost else 0.0,
        "left_out_classes": dict(log.lost.classes) if log.lost else {},
        "sources": list(log.files),
        "cut": cut,
        "anonymised": anonymised,
        "study": study_of(path, written, warmup_s),
    }


def is_faithful(log: Searches) -> bool:
    """Whether everything that was asked can be asked again as it was, at the log's times."""
    lost = any(reason not in _NO_SEARCHES for reason in log.left_out)
    return not (lost or log.missing or limits(log) or log.step_ns >= _SECOND)


def sentence(log: Searches, within: str | None = None) -> str:
    """How far the file is what production was asked. ``within``: of which part of its time."""
    lost = {why: n for why, n in log.left_out.items() if why not in _NO_SEARCHES}
    every = len(log) + sum(lost.values())
    part = f" that began {within}" if within else ""
    if is_faithful(log):
        whole = (
            f"The only search of the log{part} can be asked again as it was, at the log's own time"
            if every == 1
            else f"All {every:,} searches of the log{part} can be asked again as they were, at "
            "the log's own times"
        )
        return f"{whole} (to {_step(log.step_ns)})."
    told = [f"{n:,} {what}" for what, n in log.missing.items()]
    told += [
        f"{n:,} {'is' if n == 1 else 'are'} left out ({why})"
        for why, n in sorted(lost.items(), key=lambda x: -x[1])
    ]
    if log.lost and (share := log.lost.share_of_time) and share >= _MUCH:
        (name, n), *_ = log.lost.classes
        told.append(
            f"the searches that are left out took {share:.0%} of the time of all searches; {n:,} "
            f"of them {'is' if n == 1 else 'are'} of {name if name == UNNAMED else f'class {name}'}"
        )
    if nowhere := limits(log):
        told.append("the log has no " + ", no ".join(nowhere))
    told += _coarse(log)
    of = f"{len(log):,} of the log's {every:,}" if lost else f"All {every:,}"
    of += f" searches{part}"
    if every == 1:
        of = f"The only search{part}"
    return f"{of} can be asked again, but not exactly as in production: {'; '.join(told)}."


def _coarse(log: Searches) -> list[str]:
    """What is to be known of times that are whole seconds or minutes; and whose they are."""
    found = []
    every = len(log) and bool((log.steps_ns >= _SECOND).all())
    for step_ns in np.unique(log.steps_ns[log.steps_ns >= _SECOND]).tolist():
        files = [f for f in log.files if f["step_s"] == step_ns / _SECOND]
        named = ", ".join(str(f["name"]) for f in files[:3])
        named += f" and {len(files) - 3} more" if len(files) > 3 else ""
        one = every and step_ns == log.step_ns == int(log.steps_ns.min())
        whose = "its times" if one else f"the times of {named}"
        n = "" if one else f" ({int((log.steps_ns == step_ns).sum()):,} searches)"
        found.append(
            f"{whose}{n} are whole {'seconds' if step_ns == _SECOND else 'minutes'}, and the "
            "searches of one are spread evenly over it"
        )
    return found


def study_of(path: Path, written: Searches, warmup_s: float) -> str:
    """The tables with which a study replays a file."""
    table = "queries" if written.kind == "words" else "requests"
    file = orjson.dumps(path.name).decode()
    load = '\n[load]\nkind = "replay"\n' if written.at_ns is not None else ""
    if warmup_s and load:
        load += f"warmup_s = {warmup_s:g}\n"
    return f"[{table}]\nfile = {file}\n{load}"


def _step(ns: int) -> str:
    for unit, name in ((_SECOND, "s"), (1_000_000, "ms"), (1_000, "µs")):
        if ns >= unit:
            return f"{ns / unit:g} {name}"
    return f"{ns} ns"


def _seconds(ns: int) -> bytes:
    whole, rest = divmod(ns, _SECOND)
    if not rest:
        return b"%d" % whole
    return (b"%d.%09d" % (whole, rest)).rstrip(b"0")
