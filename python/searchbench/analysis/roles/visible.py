"""Commit to visible: from the answer to a write until a question finds its document.

Markers are asked for again and again over a connection of its own. A marker became visible after
the last ask that did not find it was sent, and before the first that did was answered; it is known
no more closely than that. Markers that one publish has shown depend on each other, and so do those
of one trial. An interval is at least as wide as trials differ; that of one trial as wide as the
groups of markers differ that one ask has shown.

One that was not found until the drive ended took longer than it was looked for. Nothing more is
assumed of it: the later ones, which are looked for less long, may be those that take longest, and
those after the last publish are all of this kind. So the lower end of an interval is that of
markers found as they were given up, and the upper end that of markers never found. Those of the
last part of a drive (``LAST``) are left out, by when they were written alone: nearly every drive
ends before its last ones can be found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.roles.accepted import Written
from searchbench.analysis.roles.model import Visible
from searchbench.analysis.trial.latency import LEVEL, minimum_samples, rank
from searchbench.analysis.trial.pooled import FOREVER_NS, ends_of_share, pooled_quantile
from searchbench.record import Record, Trial
from searchbench.record.roles import RoleRun

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LAST = 0.1  # of the longest time for which a marker is looked for
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Seen:
    """One marker: seconds from the answer to its write, at least and at most until it was found.

    ``latest_s`` infinite: it was not found; ``looked_s``: for how long it was asked for, also
    where the last asks got no answer, so that ``earliest_s`` is less.
    ``lost``: it was found, and later not. ``width_s``: between the last ask that did not find it
    and the answer to the first that did; both may be before the answer to the write. ``shown_ns``:
    when the first ask was sent that found it; -1: none.
    """

    marker: str
    earliest_s: float
    latest_s: float
    looked_s: float
    lost: bool = False
    width_s: float = math.inf
    shown_ns: int = -1


def seen(record: Record, trial: Trial, watcher: RoleRun, made: Written) -> list[Seen]:
    """Each marker whose write was answered well."""
    asks = record.asks(trial.trial, watcher.name)
    good = asks["error"].is_null().to_numpy()
    sent, done = (asks[name].to_numpy()[good].astype(np.int64) for name in ("sent", "done"))
    # Asks that got no good answer found nothing, and the markers were looked for all the same.
    ended = (
        record.of_role(trial.trial, watcher.name)["sent"].fill_null(-1).to_numpy().max(initial=-1)
    )
    if ended < 0:
        return []
    by_id: dict[str, list[int]] = {}
    for at, ids in enumerate(np.asarray(asks["ids"].to_numpy(zero_copy_only=False))[good]):
        for name in ids:
            by_id.setdefault(str(name), []).append(at)
    found = []
    marked = made.well & np.array([marker is not None for marker in made.marker], np.bool_)
    for marker, acknowledged in zip(made.marker[marked], made.done[marked], strict=True):
        places = by_id.get(marker)
        looked_s = max(0.0, (int(ended) - int(acknowledged)) / 1e9)
        if places is None:
            asked_ns = int(sent[-1]) - int(acknowledged) if len(sent) else 0
            found.append(Seen(marker, max(0, asked_ns) / 1e9, math.inf, looked_s))
            continue
        first = places[0]
        # Asks go over one connection, so they are answered in the order in which they were sent.
        # If the first good ask found it, it is not known when it could not yet be found.
        last = int(sent[first - 1]) if first else min(int(sent[0]), int(acknowledged))
        earliest = max(0, last - int(acknowledged)) / 1e9
        latest = max(0, int(done[first]) - int(acknowledged)) / 1e9
        lost, width_s = len(places) < len(sent) - first, (int(done[first]) - last) / 1e9
        found.append(Seen(marker, earliest, latest, looked_s, lost, width_s, int(sent[first])))
    return found


def visible(
    every: Sequence[Sequence[Seen]], asks_per_s: float, ask_p50_s: float | None
) -> Visible | None:
    """Of the markers of all trials; None where there are none."""
    longest_s = max((s.looked_s for each in every for s in each), default=0.0)
    trials = [[s for s in each if s.looked_s >= LAST * longest_s] for each in every]
    whole = [one for each in trials for one in each]
    if not whole:
        return None
    looked = [s.looked_s for s in whole if math.isinf(s.latest_s)]
    quantiles: dict[str, Estimate] = {}
    if len(whole) < minimum_samples(0.5):
        least, greatest = float(_sorted(whole, 0)[0]), float(_sorted(whole, 1)[-1])
        both = Interval(least, greatest, 1.0, "least to greatest of markers")
        quantiles["p50"] = Estimate(_middle(whole, 0.5), "s", len(whole), both)
    for name, q in _QUANTILES.items():
        if len(whole) >= minimum_samples(q):
            quantiles[name] = Estimate(_middle(whole, q), "s", len(whole), _interval(trials, q))
    known = [s.width_s for s in whole if math.isfinite(s.latest_s)]
    return Visible(
        quantiles,
        markers=len(whole),
        unseen=len(looked),
        unseen_s=max(looked, default=0.0),
        resolution_s=float(np.median(known)) if known else math.inf,
        asks_per_s=asks_per_s,
        ask_p50_s=ask_p50_s,
    )


def _sorted(markers: Sequence[Seen], side: int) -> Floats:
    """The earliest (0) or the latest (1) that each may have been found."""
    return np.sort([(s.earliest_s, s.latest_s)[side] for s in markers])


def _middle(markers: Sequence[Seen], q: float) -> float:
    """The quantile, halfway between what asking leaves open; infinite where that is no bound."""
    at = rank(len(markers), q)
    return float(sum(_sorted(markers, side)[at] for side in (0, 1))) / 2


def _interval(trials: Sequence[Sequence[Seen]], q: float) -> Interval | None:
    """From the lower end by when markers may have been found at the earliest to the upper end by
    when they were at the latest. None: how trials, or publishes, differ is not known well enough.
    """
    there = [own for own in trials if own]
    ends = [_of_side(there, side, q) for side in (0, 1)]
    earliest, latest = ends
    if earliest is None or latest is None:
        return None
    method = f"{latest.method}; widened by the time between two asks"
    return Interval(max(0.0, earliest.low), latest.high, LEVEL, method)


def _of_side(trials: Sequence[Sequence[Seen]], side: int, q: float) -> Interval | None:
    """By the earliest (0) or the latest (1) that each may have been found."""
    each = [_ns(own, side) for own in trials]
    pooled = np.sort(np.concatenate(each))
    found = pooled_quantile(each, pooled, q)
    span = found.interval if found is not None else None
    if span is None:
        return None
    # One publish shows many markers, and a slow one keeps many waiting. Fewer publishes than
    # markers are needed do not show the quantile, however alike they look.
    groups = [group for own in trials for group in _by_ask(own, side)]
    ends = ends_of_share(groups, pooled, q) if len(groups) >= minimum_samples(q) else None
    if ends is None:
        return None
    first, last = (float(pooled[rank(pooled.size, end)]) / 1e9 for end in ends)
    low, high = min(span.low, first), max(span.high, last)
    method = "the wider of order statistics and Woodruff's, with publishes as clusters"
    if len(trials) > 1:
        method = f"the wider of that of a quantile over trials ({span.method}) and {method[10:]}"
    return Interval(low, math.inf if high >= FOREVER_NS / 2e9 else high, LEVEL, method)


def _by_ask(markers: Sequence[Seen], side: int) -> list[Ints]:
    """Those that one ask was the first to find, for each; all that none found are of one group."""
    by: dict[int, list[Seen]] = {}
    for one in markers:
        by.setdefault(one.shown_ns, []).append(one)
    return [_ns(group, side) for group in by.values()]


def _ns(markers: Sequence[Seen], side: int) -> Ints:
    """Ascending, in nanoseconds; the greatest number for what took forever."""
    found = _sorted(markers, side)
    known = np.isfinite(found)
    ns: Ints = np.where(known, np.rint(1e9 * np.where(known, found, 0)), 0).astype(np.int64)
    ns[~known] = FOREVER_NS
    return ns
