"""The highest rate that still keeps a promise: found in few probes, bracketed from both sides.

    double or halve until the answer lies between two rates → bisect where it lies, by all probes
    together → probe both ends of a bracket until it holds the answer with 95 %

What is reported is a bracket of two rates that were driven: [holds, fails]. That the greatest rate
is below ``holds`` has a chance of 2.5 % at most, and as much that it is above ``fails``; both are
of all probes together (posterior.py), since one probe near the answer is nearly always unclear.
A side for which that cannot be said stays open, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from searchbench.lab.posterior import Posterior, posterior

if TYPE_CHECKING:
    from searchbench.analysis.promise import Judged

WIDTH = 0.05
PROBES = 9
DOUBT = 0.025  # on each side
LATE_ONES = 250  # that a full probe should have, where as many are late as may be
LIMITS = 100  # and how many times its limit it should last
SHORTEST_S = 1.0
LONGEST_S = 120.0
_SHORT = 0.2  # the length of a probe that only looks for the side, of a full one
_WARMUP = 0.15
_LAST = 3
_STEPS = (4.0, 4.0, 8.0)
_STEPS_DOWN = (2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class Probe:
    """One rate driven for ``seconds`` (measured, after the warm-up)."""

    rate_per_s: float
    seconds: float
    judged: Judged


@dataclass(frozen=True, slots=True)
class Found:
    """``holds`` and ``fails`` in requests a second; None where that side stayed open.

    ``sentence`` says what was found and, of an open side, why. ``probes`` in the order made.
    ``chance_inside``: that the greatest rate is in the bracket, by all probes; None without one.
    """

    holds: float | None
    fails: float | None
    probes: tuple[Probe, ...]
    sentence: str
    chance_inside: float | None = None

    @property
    def width(self) -> float | None:
        """How wide the bracket is, relative to its lower end; None without one."""
        if self.holds is None or self.fails is None:
            return None
        return self.fails / self.holds - 1


def warmup_s(seconds: float) -> float:
    """What is to be driven before a probe's window: a queue that starts empty has to build up."""
    return max(0.5, _WARMUP * seconds)


def seek(
    probe: Callable[[float, float], Judged],
    start_per_s: float,
    *,
    lowest_per_s: float = 1.0,
    highest_per_s: float = math.inf,
    width: float = WIDTH,
    most_probes: int = PROBES,
    effort: float = 1.0,
) -> Found:
    """Search from ``start_per_s``; the nearer it is to the answer, the better (the throughput of a
    closed loop is near).

    ``probe(rate_per_s, seconds)`` drives an open loop at a rate, ``warmup_s(seconds)`` first and
    then a window of so many seconds, and judges it. ``effort`` multiplies the lengths of probes.
    """
    return _Search(probe, lowest_per_s, highest_per_s, width, most_probes, effort).run(start_per_s)


@dataclass
class _Search:
    drive: Callable[[float, float], Judged]
    lowest: float
    highest: float
    width: float
    most: int
    effort: float
    probes: list[Probe] = field(default_factory=list)
    client_limit: float | None = None

    def run(self, start_per_s: float) -> Found:
        rate: float | None = min(max(start_per_s, self.lowest), self.highest)
        short = True
        while rate is not None and len(self.probes) < self.most:
            self.probe(rate, short=short)
            rate, short = self.next()
        return self.found()

    @property
    def used(self) -> list[Probe]:
        """Probes that say something about the system."""
        return [p for p in self.probes if not p.judged.own_fault]

    def where(self) -> Posterior:
        return posterior([p.judged.offered_per_s for p in self.used], [p.judged for p in self.used])

    def probe(self, rate: float, *, short: bool) -> None:
        seconds = self.seconds(rate, short=short)
        judged = self.drive(rate, seconds)
        self.probes.append(Probe(rate, seconds, judged))
        if judged.own_fault:
            self.client_limit = min(rate, self.client_limit or math.inf)

    def seconds(self, rate: float, *, short: bool) -> float:
        """Enough requests for the quantile, and long beside the limit."""
        if not self.probes:
            return SHORTEST_S * self.effort
        conditions = [k.condition for k in self.probes[0].judged.kept]
        limits = [c.limit_ns / 1e9 for c in conditions if c.limit_ns is not None]
        # Of errors there are none or many; 4 / allowed requests without one say it is kept.
        requests = max((LATE_ONES if c.limit_ns is not None else 4) / c.allowed for c in conditions)
        seconds = max(SHORTEST_S, requests / rate, LIMITS * max(limits, default=0.0))
        if short:
            seconds = max(SHORTEST_S, _SHORT * seconds)
        elif self.most - len(self.probes) <= _LAST:
            seconds *= 2
        return min(LONGEST_S, seconds) * self.effort

    def next(self) -> tuple[float | None, bool]:
        """The rate to probe next and whether shortly; None where all is said."""
        used = self.used
        if not used:
            return self.down(self.probes[-1].rate_per_s), True
        rates = sorted(p.rate_per_s for p in used)
        looks = [_looks_kept(p.judged) for p in used]
        if not any(looks):
            return self.down(rates[0]), True
        if all(looks):
            return self.up(rates[-1]), True
        where = self.where()
        low, middle, high = (where.quantile(q) for q in (DOUBT, 0.5, 1 - DOUBT))
        if high / low > 1 + 3 * self.width:
            guess = self.secant()
            return guess or middle, guess is None and high / low > 1.5
        if high / low <= 1 + self.width and self.confirmed(middle):
            return None, False
        below = sum(middle * 0.9 < r < middle for r in rates)
        above = sum(middle < r < middle * 1.1 for r in rates)
        aside = max(1 + 0.4 * self.width, math.sqrt(high / low) ** 0.5)
        return (middle / aside if below < above else middle * aside), False

    def confirmed(self, middle: float) -> bool:
        """Whether full probes stand on both sides of the answer, near it."""
        near = [p.rate_per_s / middle for p in self.used if p.seconds >= self.full(p) * 0.9]
        return any(0.9 < n < 1 for n in near) and any(1 < n < 1.1 for n in near)

    def full(self, probe: Probe) -> float:
        return self.seconds(probe.rate_per_s, short=False) / (
            2 if self.most - len(self.probes) <= _LAST else 1
        )

    def secant(self) -> float | None:
        """Where the limit over the quantile is 1, on a line between the nearest rates about it.

        In a queue of capacity c a quantile is about k / (c - rate), so its inverse is straight;
        an overloaded system says what c is. None where a rate near it was tried already.
        """
        points = [(p.rate_per_s, p.judged.answered_per_s, _room(p.judged)) for p in self.used]
        below = [(rate, room) for rate, _, room in points if room > 1]
        above = [
            (rate, room) if room > 0.3 else (min(rate, answered), 0.0)
            for rate, answered, room in points
            if room <= 1
        ]
        if not below or not above:
            return None
        (low, most), (high, least) = max(below), min(above)
        if not low < high:
            return None
        rate = low + (most - 1) / (most - least) * (high - low)
        tried = any(abs(math.log(p.rate_per_s / rate)) < self.width / 5 for p in self.used)
        return None if tried else rate

    def up(self, rate: float) -> float | None:
        most = min(self.highest, (self.client_limit or math.inf))
        if self.client_limit is not None:
            step = math.sqrt(most / rate)
            return rate * step if step > 1.15 else None
        if rate >= most:
            return None
        rose = sum(p.rate_per_s > self.probes[0].rate_per_s for p in self.probes)
        return min(rate * _STEPS[min(rose, len(_STEPS) - 1)], most)

    def down(self, rate: float) -> float | None:
        if rate <= self.lowest:
            return None
        at = min(self.probes, key=lambda p: p.rate_per_s)
        fell = sum(p.rate_per_s < self.probes[0].rate_per_s for p in self.probes)
        lower = rate / _STEPS_DOWN[min(fell, len(_STEPS_DOWN) - 1)]
        # An overloaded server says itself what it can answer.
        answered = 0.95 * at.judged.answered_per_s
        if at.judged.achieved < 0.95 and rate / 20 < answered < 0.9 * rate:
            lower = answered
        return max(lower, self.lowest)

    def found(self) -> Found:
        probes = tuple(self.probes)
        used = self.used
        if not used:
            return Found(None, None, probes, "client")
        where = self.where()
        low, high = where.quantile(DOUBT), where.quantile(1 - DOUBT)
        slack = 0.98 * (1 + self.width) / (high / low)
        if slack > 1:
            low, high = low / math.sqrt(slack), high * math.sqrt(slack)
        rates = sorted({p.rate_per_s for p in used})
        looks = [_looks_kept(p.judged) for p in used]
        if not any(looks):
            return Found(None, min(rates), probes, "open")
        if all(looks):
            return Found(max(rates), None, probes, "open")
        return Found(
            low, high, probes, "bracket", where.chance_below(high) - where.chance_below(low)
        )


def _room(judged: Judged) -> float:
    """The least of limit / quantile; 0 where it is not kept for another reason."""
    rooms = [
        k.condition.limit_ns / k.quantile_ns if k.quantile_ns else 0.0
        for k in judged.kept
        if k.condition.limit_ns
    ]
    least = min(rooms, default=2.0)
    return least if least <= 1 or _looks_kept(judged) else 0.0


def _looks_kept(judged: Judged) -> bool:
    return judged.achieved >= 0.99 and all(k.share < k.condition.allowed for k in judged.kept)
