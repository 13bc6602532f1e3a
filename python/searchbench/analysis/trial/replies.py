"""Replies that count as answered and may be none: redirects, and of unknown engines other sizes.

Where no engine that is known answers, replies are not read. What is known of them is their status
and their size, under load and of some requests also as they were asked alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Finding
from searchbench.analysis.trial.measured import Trace, read_trace
from searchbench.analysis.trial.validity import ERRORS_INVALID
from searchbench.analysis.words import percent
from searchbench.record import Record, Trial

Ints = NDArray[np.int64]

REDIRECTS = "redirects"
# The figure of a trial: the share of replies under load that were other than alone. Its ``n``: of
# how many that were looked at.
OTHERWISE = "otherwise_share"
SIZES = "other sizes under load"
ONE_SIZE = "replies of one size"
NOT_COMPARED = "answers not compared"
IN_PART = "answers compared in part"
NO_ANSWERS = (REDIRECTS, SIZES, ONE_SIZE)  # kinds of findings: replies that may be no answers
MOVED = 2.0  # times as large or as small: totals and times in a reply move it by far less
LESS = 0.9  # of a size: a timestamp, a time taken or a compressed body moves it by less
FEW = 0.05  # of the replies may be smaller by that much, beyond what is scatter
FOR_SCATTER = 5  # queries, from which on they show how far the sizes of replies scatter
OF_SCATTER = 0.2  # of the replies, which fewer queries may scatter by
ODD = 0.05  # of the replies to a query: where fewer are as large as alone, or as small, it is odd
LIGHT = 5  # replies to a query under the lightest load: they show how small and large it may be
_LEVELS = {"closed": "clients", "open": "rate_per_s", "replay": "speed"}
DISTINCT = 20  # requests, from which on it is odd that all replies have one size


@dataclass(frozen=True, slots=True)
class Range:
    """By query (the index), the least and most bytes of a reply under a light load, and of how many
    replies."""

    least: Ints
    most: Ints
    replies: Ints

    def around(self, query: Ints, was: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """For each reply, the least and most bytes that are known of its query, alone and under the
        light load, and whether it had enough replies there."""
        at = np.minimum(query, self.replies.size - 1)
        enough = (query < self.replies.size) & (self.replies[at] >= LIGHT)
        return np.minimum(was, self.least[at]), np.maximum(was, self.most[at]), enough


def findings(record: Record, trial: Trial, trace: Trace) -> Iterator[Finding]:
    """What of a trial's replies may be no answers."""
    yield from _redirects(trial)
    alone = _alone(trial)
    unread = any(note.kind == NOT_COMPARED for note in trial.notes)
    if not unread:
        yield from _in_part(trial, trace)
    if not alone and not unread:
        return
    query, size = _replied(record, trial, trace)
    distinct = np.unique(query).size
    if unread and distinct >= DISTINCT and size.min() == size.max():
        yield Finding(
            "replies of one size",
            "note",
            trial.trial,
            f"{size[0]:,} bytes with headers, to {distinct:,} distinct requests",
            "All replies of the trial have the same size. Answers to so many requests seldom do: "
            "they may be empty, or one and the same page.",
            "Look at a reply.",
        )
    if alone and query.size:
        yield from _sizes(trial, query, size, alone, _lightest(record, trial))


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
            "Ask more of them alone (--captures).",
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


def _sizes(
    trial: Trial, query: Ints, size: Ints, alone: dict[int, int], light: Range | None
) -> Iterator[Finding]:
    """``query`` and ``size`` (bytes) of each measured reply; ``alone``: by query, asked alone;
    ``light``: what these were under the lightest load, as far as it is known.
    """
    query, size, was = _with_alone(query, size, alone)
    moved, meaning = _moved(query, size, was, light)
    n = int(np.count_nonzero(moved))
    if not n:
        return
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


def of_other_size(record: Record, trial: Trial, trace: Trace) -> tuple[int, int]:
    """Of how many measured replies the size is not theirs as alone, and of how many that is known;
    (0, 0) where it is of no more than may be. A lighter load is not looked at.
    """
    alone = _alone(trial)
    if not alone:
        return 0, 0
    query, size, was = _with_alone(*_replied(record, trial, trace), alone)
    n = int(np.count_nonzero(_moved(query, size, was, None)[0]))
    return n, size.size if n else 0


def _with_alone(query: Ints, size: Ints, alone: dict[int, int]) -> tuple[Ints, Ints, Ints]:
    """Query and size of the replies whose size alone is known, with that; 0 bytes: not known."""
    known = np.zeros(max(int(query.max(initial=0)), *alone) + 1, np.int64)
    known[list(alone)] = list(alone.values())
    asked = (known[query] > 0) & (size > 0)
    return query[asked], size[asked], known[query][asked]


def _moved(
    query: Ints, size: Ints, was: Ints, light: Range | None
) -> tuple[NDArray[np.bool_], str]:
    """Which replies have a size that is not theirs, and what that means; none: all of them do.

    ``was``: the size of the same query's reply alone.
    """
    if not size.size:
        return np.zeros(0, np.bool_), ""
    moved = (size >= MOVED * was) | (was >= MOVED * size)
    if np.count_nonzero(moved) > ERRORS_INVALID * size.size:
        return moved, (
            "Under load these replies were twice as large or half as large as when the same was "
            "asked alone, so they may be other answers, such as a notice that the server is busy."
        )
    least, most, known = was, was, np.ones(size.size, np.bool_)
    if light is not None:
        least, most, known = light.around(query, was)
        if 2 * np.count_nonzero(known) < size.size:
            light, least, most, known = None, was, was, np.ones(size.size, np.bool_)
    smaller, larger = known & (size <= LESS * least), known & (LESS * size >= most)
    if _shifted(query, smaller, larger, light) > FEW:
        less = percent(1 - float(np.median(size[smaller] / was[smaller])))
        beside = " or under light load" if light is not None else ""
        return smaller, (
            f"Under load these replies were smaller than when the same was asked alone{beside}, "
            f"typically by {less}, so they may be cut short: fewer hits, or fields left out."
        )
    either = smaller | larger
    if 2 * np.count_nonzero(either) > size.size and (
        light is not None
        or _shifted(query, larger, smaller, light) > FEW
        or 2 * _of_odd_queries(query, size, was) > size.size
    ):
        return either, (
            "Under load most replies were larger or smaller by a tenth or more than when the same "
            "was asked alone, so they may be other answers, such as a notice that the server is "
            "busy."
        )
    return np.zeros(size.size, np.bool_), ""


def _shifted(
    query: Ints, some: NDArray[np.bool_], others: NDArray[np.bool_], light: Range | None
) -> float:
    """The share of replies that are ``some``, as far as that is no scatter.

    One reply alone may by chance be larger than usual, and all under load are then smaller; among
    many queries as many are larger. So without a light load, whose replies show how far sizes
    scatter, that share counts which is not met by ``others``, less two standard errors over
    queries.
    """
    if light is not None:
        return float(some.mean())
    n = np.bincount(query)
    by_query = (np.bincount(query, some) - np.bincount(query, others))[n > 0] / n[n > 0]
    more = float(some.mean() - others.mean())
    if by_query.size < FOR_SCATTER:
        return more - OF_SCATTER
    return more - 2 * float(by_query.std(ddof=1)) / math.sqrt(by_query.size)


def _of_odd_queries(query: Ints, size: Ints, was: Ints) -> int:
    """How many replies are of queries whose reply alone has a size that hardly any has under load.

    By chance, one reply in ten lies beyond a twentieth of the others at either end.
    """
    n = np.bincount(query)
    above, below = (np.bincount(query, x) for x in (size >= was, size <= was))
    odd = np.minimum(above, below) < ODD * n
    return int(n[odd].sum())


def _lightest(record: Record, trial: Trial) -> Range | None:
    """The sizes by query under the lightest load of the same subject in the same block; None where
    there is no lighter one, or its own replies have other sizes than alone.
    """
    if trial.asked or trial.load.promise is not None:
        return None  # in a search each trial is judged before those after it are driven
    level = _LEVELS[trial.load.kind]
    own = [
        (load, other)
        for other in record.trials
        if (other.status, other.subject, other.block, other.load.kind)
        == ("ok", trial.subject, trial.block, trial.load.kind)
        and other.queries.digest == trial.queries.digest
        and other.window is not None
        and (load := getattr(other.load, level)) is not None
    ]
    load = getattr(trial.load, level)
    if not own or load is None:
        return None
    lightest, other = min(own, key=lambda one: one[0])
    if lightest >= load:
        return None
    trace = read_trace(record, other)
    query, size = _replied(record, other, trace)
    alone = _alone(other)
    if any(_sizes(other, query, size, alone, None)) if alone and query.size else True:
        return None
    n = max(int(query.max()), *alone) + 1
    least, most = np.full(n, np.iinfo(np.int64).max), np.zeros(n, np.int64)
    np.minimum.at(least, query, size)
    np.maximum.at(most, query, size)
    return Range(least, most, np.bincount(query, minlength=n))


def _alone(trial: Trial) -> dict[int, int]:
    """By query, the size of its reply as it was asked alone."""
    sizes = trial.captured.sizes if trial.captured is not None else {}
    return {int(query): size for query, size in sizes.items()}


def _replied(record: Record, trial: Trial, trace: Trace) -> tuple[Ints, Ints]:
    """Query and size (bytes) of each reply that was measured and ended well."""
    every: Ints = record.samples(trial.trial, ["bytes"]).column(0).to_numpy().astype(np.int64)
    good = trace.measured() & (trace.outcome == 0) & (trace.done >= 0)
    return trace.query[good].astype(np.int64), every[good]
