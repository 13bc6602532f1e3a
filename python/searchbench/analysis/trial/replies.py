"""Replies that count as answered and may be none: redirects, and of unknown engines other sizes.

Where no engine that is known answers, replies are not read. What is known of them is their status
and their size, under load and of some requests also as they were asked alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Finding
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.trial.validity import ERRORS_INVALID
from searchbench.analysis.words import percent
from searchbench.record import Record, Trial

Ints = NDArray[np.int64]

REDIRECTS = "redirects"
SIZES = "other sizes under load"
ONE_SIZE = "replies of one size"
NOT_COMPARED = "answers not compared"
IN_PART = "answers compared in part"
NO_ANSWERS = (REDIRECTS, SIZES, ONE_SIZE)  # kinds of findings: replies that may be no answers
MOVED = 2.0  # times as large or as small: totals and times in a reply move it by far less
LESS = 0.9  # of their size alone: where most replies are at most that, it is no scatter
DISTINCT = 20  # requests, from which on it is odd that all replies have one size


def findings(record: Record, trial: Trial, trace: Trace) -> Iterator[Finding]:
    """What of a trial's replies may be no answers."""
    yield from _redirects(trial)
    sizes = trial.captured.sizes if trial.captured is not None else {}
    alone = {int(query): size for query, size in sizes.items()}
    unread = any(note.kind == NOT_COMPARED for note in trial.notes)
    if not unread:
        yield from _in_part(trial, trace)
    if not alone and not unread:
        return
    every: Ints = record.samples(trial.trial, ["bytes"]).column(0).to_numpy().astype(np.int64)
    good = trace.measured() & (trace.outcome == 0) & (trace.done >= 0)
    query, size = trace.query[good], every[good]
    distinct = np.unique(query).size
    if unread and distinct >= DISTINCT and size.min() == size.max():
        yield Finding(
            "replies of one size",
            "note",
            trial.trial,
            f"{size[0]:,} bytes with headers, to {distinct:,} distinct requests",
            "All replies have the same size. Answers to so many requests seldom do: they may be "
            "empty, or one and the same page.",
            "Look at a reply.",
        )
    if alone and query.size:
        yield from _sizes(trial, query.astype(np.int64), size, alone)


def _in_part(trial: Trial, trace: Trace) -> Iterator[Finding]:
    """That more distinct requests were measured than were asked alone, so as to be compared."""
    asked = trial.captured.distinct if trial.captured is not None else 0
    measured = int(np.unique(trace.query[trace.measured()]).size)
    if 0 < asked < measured:
        yield Finding(
            "answers compared in part",
            "note",
            trial.trial,
            f"{asked:,} distinct requests asked alone, {measured:,} measured",
            "Answers under load are compared with those of the requests that were asked alone. "
            "It is unknown whether the others get the same answers under load as alone.",
            "Ask more of them alone (--captures; in a study: captures in [agreement]).",
        )


def _redirects(trial: Trial) -> Iterator[Finding]:
    """304 is none: who sent a conditional request has the answer."""
    statuses = trial.drive.statuses if trial.drive is not None else {}
    found = {int(s): n for s, n in statuses.items() if 300 <= int(s) < 400 and int(s) != 304}
    n, of = sum(found.values()), sum(statuses.values())
    if not n:
        return
    kinds = ", ".join(f"{count:,} {_named(status)}" for status, count in found.items())
    severity: Literal["invalid", "warning"] = "invalid" if n > ERRORS_INVALID * of else "warning"
    yield Finding(
        "redirects",
        severity,
        trial.trial,
        f"{n:,} of {of:,} replies, warm-up included ({percent(n / of)}): {kinds}",
        "The server sent these requests elsewhere, perhaps to a login, and they were not followed: "
        "they count as answered, but are not answers.",
        "Ask where it points to, or log in (headers).",
    )


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _sizes(trial: Trial, query: Ints, size: Ints, alone: dict[int, int]) -> Iterator[Finding]:
    """``query`` and ``size`` (bytes) of each measured reply; ``alone``: by query, asked alone."""
    known = np.zeros(max(int(query.max()), *alone) + 1, np.int64)
    known[list(alone)] = list(alone.values())
    was = known[query]
    size, was = size[was > 0], was[was > 0]
    moved = (size >= MOVED * was) | (was >= MOVED * size)
    meaning = (
        "Under load these replies were twice as large or half as large as when the same was asked "
        "alone, so they may be other answers, such as a notice that the server is busy."
    )
    if np.count_nonzero(moved) <= ERRORS_INVALID * size.size:
        moved = size <= LESS * was
        if 2 * np.count_nonzero(moved) <= size.size:
            return
        less = percent(1 - float(np.median(size[moved] / was[moved])))
        meaning = (
            f"Under load most replies were smaller than when the same was asked alone, typically "
            f"by {less}, so they may be cut short: fewer hits, or fields left out."
        )
    n = int(np.count_nonzero(moved))
    now, before = (int(np.median(of[moved])) for of in (size, was))
    yield Finding(
        "other sizes under load",
        "warning",
        trial.trial,
        f"{n:,} of {size.size:,} replies ({percent(n / size.size)}), typically {now:,} bytes and "
        f"not {before:,}",
        f"{meaning} They count as answered; what they say is unknown.",
        "Look at replies under load; lower the load until the sizes agree; name the engine if it "
        "is one that is known (--engine).",
    )
