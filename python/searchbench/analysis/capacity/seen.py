"""What the trials of a search say about one promise: the evidence, before anything is decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from searchbench.analysis.capacity.posterior import Posterior, posterior
from searchbench.analysis.capacity.promise import Judged
from searchbench.analysis.trial.throughput import KEEPS_UP

NEAR = (0.74, 1.35)  # limit / quantile of a trial that is near the limit
LOWEST_PER_S = 1.0
ALIKE = 0.1  # logarithm of the ratio of two rates at which a curve is bent alike


@dataclass(frozen=True, slots=True)
class Driven:
    """One rate driven for ``seconds`` (measured, after the warm-up), against one promise.

    ``full``: long enough to judge this promise by, and not a short look. ``own``: it was driven for
    this promise and not for another of the same search.
    """

    rate_per_s: float
    seconds: float
    judged: Judged
    full: bool = True
    own: bool = True
    trial: str = ""

    @property
    def seems_kept(self) -> bool:
        """As far as one can see, without asking for 95 %."""
        return self.judged.achieved_high >= KEEPS_UP and all(
            k.share < k.condition.allowed for k in self.judged.kept
        )

    @property
    def room(self) -> float:
        """The least of limit / quantile; 0 where the promise is broken for another reason."""
        rooms = [
            k.condition.limit_ns / k.quantile_ns if k.quantile_ns else 0.0
            for k in self.judged.kept
            if k.condition.limit_ns
        ]
        least = min(rooms, default=2.0)
        return least if least <= 1 or self.seems_kept else 0.0

    @property
    def near(self) -> bool:
        """Whether it is a full trial beside the limit."""
        return self.full and NEAR[0] < self.room < NEAR[1]


@dataclass(frozen=True)
class Seen:
    """Every trial of one search in the order driven, against one promise."""

    driven: Sequence[Driven]

    @property
    def used(self) -> list[Driven]:
        """Trials that say something about the system: not about the client, and not empty."""
        return [d for d in self.driven if not d.judged.own_fault and d.judged.offered_per_s > 0]

    def client_limit(self, rate_per_s: float) -> float:
        """The lowest rate above this one that the client could not send on time."""
        late = [d.rate_per_s for d in self.driven if d.judged.own_fault]
        return min((r for r in late if r > rate_per_s), default=math.inf)

    def where(self) -> Posterior:
        """At the rates as drawn: random arrivals are never exactly as many as were meant."""
        used = self.used
        rates, judged = [d.judged.offered_per_s for d in used], [d.judged for d in used]
        return posterior(rates, judged, [self._alike(d) for d in used])

    def _alike(self, one: Driven) -> int:
        """How many trials for other promises are at about its rate; 1 if it was for this one."""
        if one.own:
            return 1
        return sum(
            not d.own and abs(math.log(d.rate_per_s / one.rate_per_s)) < ALIKE for d in self.used
        )
