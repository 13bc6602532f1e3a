"""Commit to visible: from the answer to a write until a question finds its document.

Markers are asked for again and again over a connection of its own. A marker became visible after
the last ask that did not find it was sent, and before the first that did was answered; it is known
no more closely than that. Markers that one publish has shown are alike, so an interval is at least
as wide as trials differ.

One that was not found until the drive ended took longer than it was looked for, which for the last
ones is not long. The quantiles are those of the product-limit estimate (Kaplan and Meier,
Nonparametric estimation from incomplete observations, 1958), which needs no marker to be left out:
to leave out those that were looked for less long than the slowest took would let one slow marker
hide all later ones. Its intervals invert the log-log bands of Greenwood's variance (Brookmeyer and
Crowley, 1982). Where each that was not found was looked for longer than any of the others took,
they are order statistics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.roles.accepted import Written
from searchbench.analysis.roles.model import Visible
from searchbench.analysis.stats.intervals import mean_interval
from searchbench.analysis.trial.latency import LEVEL, interval_ranks, minimum_samples
from searchbench.record import Record, Trial
from searchbench.record.roles import RoleRun

Floats = NDArray[np.float64]
Z = float(special.ndtri((1 + LEVEL) / 2))
LOOKED = 1 / 3
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
    if not whole:
        return None
    found = [s.latest_s for s in whole if math.isfinite(s.latest_s)]
    looked = [s.looked_s for s in whole if math.isinf(s.latest_s)]
    cut = bool(looked) and min(looked) < max(found, default=0.0)
    quantiles: dict[str, Estimate] = {}
    if len(whole) < minimum_samples(0.5):
        latest = [s.latest_s for s in whole]
        both = Interval(
            min(s.earliest_s for s in whole), max(latest), 1.0, "least to greatest of markers"
        )
        quantiles["p50"] = Estimate(_middle(whole, 0.5), "s", len(whole), both)
    for name, q in _QUANTILES.items():
        ranks = interval_ranks(len(whole), q)
        if ranks is None:
            continue
        if cut:
            low, high = _Survival.of(whole, 0).least_s(q), _Survival.of(whole, 1).most_s(q)
        else:
            low, high = (float(_sorted(whole, side)[ranks[side]]) for side in (0, 1))
        over = _over_trials(every, q)
        if over is not None:
            low, high = min(low, max(0.0, over.low)), max(high, over.high)
        how = "product-limit estimate" if cut else "order statistics"
        interval = Interval(
            low, high, LEVEL, f"{how}, widened by what asking leaves open and by how trials differ"
        )
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


@dataclass(frozen=True, slots=True)
class _Survival:
    """The share of markers that take longer than each time in ``at_s``, with its 95 % band.

    Up to ``longest_s``, for which ``LOOKED`` of the markers were looked for: beyond it, the first
    few would speak for all, as if nothing had changed in the drive.
    """

    longest_s: float
    at_s: Floats
    share: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, markers: Sequence[Seen], side: int) -> _Survival:
        """``side``: by the earliest (0) or the latest (1) that each may have taken."""
        seen = np.array([math.isfinite(s.latest_s) for s in markers])
        took = np.array([(s.earliest_s, s.latest_s)[side] if math.isfinite(s.latest_s)
                         else s.looked_s for s in markers])  # fmt: skip
        longest_s = float(np.quantile([s.looked_s for s in markers], 1 - LOOKED))
        at_s, events = np.unique(took[seen & (took <= longest_s)], return_counts=True)
        at_risk = took.size - np.searchsorted(np.sort(took), at_s)
        share = np.cumprod(1 - events / at_risk).astype(np.float64)
        last = at_risk == events
        terms = np.where(last, 0.0, events / (at_risk * np.where(last, 1, at_risk - events)))
        inner = np.clip(share, 1e-12, 1 - 1e-12)
        error = Z * np.sqrt(np.cumsum(terms)) / np.abs(np.log(inner))
        low, high = (np.where(last, 0.0, inner ** np.exp(sign * error)) for sign in (1, -1))
        return cls(longest_s, at_s, share, low, high)

    def quantile_s(self, q: float) -> float:
        """Infinite: not known, as too few were seen."""
        return self._first(self.share, q)

    def least_s(self, q: float) -> float:
        """The lower end of its interval."""
        return min(self._first(self.low, q), self.longest_s)

    def most_s(self, q: float) -> float:
        """The upper end of its interval."""
        return self._first(self.high, q)

    def _first(self, share: Floats, q: float) -> float:
        below = np.flatnonzero(share <= 1 - q + 1e-9)
        return float(self.at_s[below[0]]) if below.size else math.inf


def _middle(markers: Sequence[Seen], q: float) -> float:
    """The quantile, halfway between what asking leaves open."""
    return sum(_Survival.of(markers, side).quantile_s(q) for side in (0, 1)) / 2


def _sorted(markers: Sequence[Seen], side: int) -> Floats:
    return np.sort([(s.earliest_s, s.latest_s)[side] for s in markers])


def _over_trials(trials: Sequence[Sequence[Seen]], q: float) -> Interval | None:
    """Of the quantile of each trial that has one; None: fewer than two, or not all are known."""
    found = [_middle(own, q) for own in trials if len(own) >= minimum_samples(q)]
    return mean_interval(found) if all(map(math.isfinite, found)) else None
