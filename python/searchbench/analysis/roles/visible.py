"""Commit to visible: from the answer to a write until a question finds its document.

Markers are asked for again and again over a connection of its own. A marker became visible after
the last ask that did not find it was sent, and before the first that did was answered; it is known
no more closely than that. Markers that one publish has shown are alike, so an interval is at least
as wide as trials differ. One that was not found until the drive ended took longer than it was
looked for. One that was looked for less long than the slowest took says nothing either way: whether
it is counted would depend on how fast it was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.roles.accepted import Written
from searchbench.analysis.roles.model import Visible
from searchbench.analysis.stats.intervals import mean_interval
from searchbench.analysis.trial.latency import LEVEL, interval_ranks, minimum_samples, rank
from searchbench.record import Record, Trial
from searchbench.record.roles import RoleRun

_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Seen:
    """One marker: seconds from the answer to its write, at least and at most until it was found.

    ``latest_s`` infinite: it was not found; ``looked_s``: for how long it was asked for.
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
    if not len(sent):
        return []
    by_id: dict[str, list[int]] = {}
    for at, ids in enumerate(np.asarray(asks["ids"].to_numpy(zero_copy_only=False))[good]):
        for name in ids:
            by_id.setdefault(str(name), []).append(at)
    found = []
    marked = made.well & np.array([marker is not None for marker in made.marker], np.bool_)
    for marker, acknowledged in zip(made.marker[marked], made.done[marked], strict=True):
        places = by_id.get(marker)
        looked_s = max(0.0, (int(sent[-1]) - int(acknowledged)) / 1e9)
        if places is None:
            found.append(Seen(marker, looked_s, math.inf, looked_s))
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
    whole = [one for each in every for one in each]
    slowest_s = max((s.latest_s for s in whole if math.isfinite(s.latest_s)), default=0.0)
    counted = [s for s in whole if s.looked_s >= slowest_s]
    if not counted:
        return None
    earliest = np.sort([s.earliest_s for s in counted])
    latest = np.sort([s.latest_s for s in counted])
    quantiles: dict[str, Estimate] = {}
    if len(counted) < minimum_samples(0.5):
        both = Interval(float(earliest[0]), float(latest[-1]), 1.0, "least to greatest of markers")
        at = rank(len(counted), 0.5)
        middle = (float(earliest[at]) + float(latest[at])) / 2
        quantiles["p50"] = Estimate(middle, "s", len(counted), both)
    for name, q in _QUANTILES.items():
        ranks = interval_ranks(len(counted), q)
        if ranks is None:
            continue
        at = rank(len(counted), q)
        middle = (float(earliest[at]) + float(latest[at])) / 2
        low, high = float(earliest[ranks[0]]), float(latest[ranks[1]])
        over = _over_trials([[s for s in each if s.looked_s >= slowest_s] for each in every], q)
        if over is not None:
            low, high = min(low, max(0.0, over.low)), max(high, over.high)
        interval = Interval(
            low, high, LEVEL,
            "order statistics, widened by what asking leaves open and by how trials differ",
        )  # fmt: skip
        quantiles[name] = Estimate(middle, "s", len(counted), interval)
    known = [s.width_s for s in counted if math.isfinite(s.latest_s)]
    return Visible(
        quantiles,
        markers=len(counted),
        unseen=sum(math.isinf(s.latest_s) for s in counted),
        resolution_s=float(np.median(known)) if known else math.inf,
        asks_per_s=asks_per_s,
        ask_p50_s=ask_p50_s,
    )


def _over_trials(trials: Sequence[Sequence[Seen]], q: float) -> Interval | None:
    """Of the quantile of each trial that has one; None: fewer than two, or not all were seen."""
    found = []
    for own in trials:
        if len(own) >= minimum_samples(q):
            at = rank(len(own), q)
            ends = ([s.earliest_s for s in own], [s.latest_s for s in own])
            found.append(float(sum(np.sort(each)[at] for each in ends)) / 2)
    return mean_interval(found)
