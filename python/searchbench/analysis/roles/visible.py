"""Commit to visible: from the answer to a write until a question finds its document.

Markers are asked for again and again over a connection of its own. A marker became visible after
the last ask that did not find it was sent, and before the first that did was answered; it is known
no more closely than that. Markers that one publish has shown are alike, so an interval is at least
as wide as trials differ.

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
from searchbench.analysis.stats.intervals import mean_interval
from searchbench.analysis.trial.latency import LEVEL, interval_ranks, minimum_samples, rank
from searchbench.record import Record, Trial
from searchbench.record.roles import RoleRun

Floats = NDArray[np.float64]
LAST = 0.1  # of the longest time for which a marker is looked for
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Seen:
    """One marker: seconds from the answer to its write, at least and at most until it was found.

    ``latest_s`` infinite: it was not found; ``looked_s``: for how long it was asked for, also
    where the last asks got no answer, so that ``earliest_s`` is less.
    ``lost``: it was found, and later not. ``width_s``: between the last ask that did not find it
    and the answer to the first that did; both may be before the answer to the write.
    """

    marker: str
    earliest_s: float
    latest_s: float
    looked_s: float
    lost: bool = False
    width_s: float = math.inf


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
        last = int(sent[max(0, first - 1)])
        earliest = max(0, last - int(acknowledged)) / 1e9
        latest = max(0, int(done[first]) - int(acknowledged)) / 1e9
        lost, width_s = len(places) < len(sent) - first, (int(done[first]) - last) / 1e9
        found.append(Seen(marker, earliest, latest, looked_s, lost, width_s))
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
    earliest, latest = (_sorted(whole, side) for side in (0, 1))
    quantiles: dict[str, Estimate] = {}
    if len(whole) < minimum_samples(0.5):
        both = Interval(float(earliest[0]), float(latest[-1]), 1.0, "least to greatest of markers")
        quantiles["p50"] = Estimate(_middle(whole, 0.5), "s", len(whole), both)
    for name, q in _QUANTILES.items():
        ranks = interval_ranks(len(whole), q)
        if ranks is None:
            continue
        low, high = float(earliest[ranks[0]]), float(latest[ranks[1]])
        over = _over_trials(trials, q)
        if over is not None:
            low, high = min(low, max(0.0, over.low)), max(high, over.high)
        interval = Interval(
            low, high, LEVEL,
            "order statistics, widened by what asking leaves open and by how trials differ",
        )  # fmt: skip
        quantiles[name] = Estimate(_middle(whole, q), "s", len(whole), interval)
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


def _over_trials(trials: Sequence[Sequence[Seen]], q: float) -> Interval | None:
    """Of the quantile of each trial that has one; None: fewer than two, or not all are known."""
    found = [_middle(own, q) for own in trials if len(own) >= minimum_samples(q)]
    return mean_interval(found) if all(map(math.isfinite, found)) else None
