"""The highest rate that still keeps a promise: found in few probes, bracketed from both sides.

    quadruple or halve until the answer lies between two rates → guess it from what these said
    → full probes on both sides of it, in turn, until all together say it to within ``width``

What is reported is a bracket [holds, fails]: by all probes together (posterior.py) the greatest
rate is below ``holds`` with a chance of 2.5 % at most, and above ``fails`` with as much. One probe
near the answer says little by itself: the late requests of 30 s may come in five clusters. A side
for which nothing can be said stays open, with the reason. No I/O but the calls of ``probe``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from searchbench.analysis.capacity.posterior import Posterior, posterior

if TYPE_CHECKING:
    from searchbench.analysis.capacity.promise import Judged

WIDTH = 0.05
PROBES = 9
_BEYOND = 1.05  # an end so far outside of all probes rests on the shape of the curve alone
DOUBT = 0.025  # on each side
LATE_ONES = 300  # that a full probe should have, where as many are late as may be
CLUSTER = 150  # of more late requests at a time, probes are longer in proportion, up to twice
LIMITS = 100  # and how many times its limit it should last
SHORTEST_S, LONGEST_S = 1.0, 120.0
_KEEPS_UP = 0.99
_FULL_OF_WIDTH = 0.98  # a bracket that could be narrower is made so wide, for it is surer
_SHORT = 0.2  # the length of a probe that only looks for the side, of a full one's
_WARMUP = 0.15
_LAST = 3  # so many last probes are twice as long
_UP, _DOWN = (4.0, 4.0, 8.0), (2.0, 4.0, 8.0)
_CLIENT_STEP = 1.15
_LATE = 3


@dataclass(frozen=True, slots=True)
class Probe:
    """One rate driven for ``seconds`` (measured, after the warm-up). ``full``: not a short look."""

    rate_per_s: float
    seconds: float
    judged: Judged
    full: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """``holds`` and ``fails`` in requests a second; None where that side stayed open.

    ``sentence`` says what was found and, of an open side, why. ``probes`` in the order made: they
    are the curve around the bracket. ``chance_inside``: that the greatest rate is in the bracket,
    by all probes; None where a side is open.
    """

    holds: float | None
    fails: float | None
    probes: tuple[Probe, ...]
    sentence: str
    chance_inside: float | None = None

    @property
    def width(self) -> float | None:
        """How wide the bracket is, relative to its lower end; None where a side is open."""
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
    """Search from ``start_per_s``; the throughput of a short closed loop is a good start.

    ``probe(rate_per_s, seconds)`` drives an open loop at a rate, ``warmup_s(seconds)`` first and
    then a window of so many seconds, waits until the system is idle again, and judges the window.
    ``effort`` multiplies the lengths of probes. ValueError where the rates are in no order.
    """
    if not 0 < lowest_per_s <= highest_per_s or start_per_s <= 0 or most_probes < 1:
        raise ValueError("a search needs 0 < lowest <= highest, a start and at least one probe")
    search = _Search(probe, lowest_per_s, highest_per_s, width, most_probes, effort)
    return search.run(min(max(start_per_s, lowest_per_s), highest_per_s))


@dataclass
class _Search:
    drive: Callable[[float, float], Judged]
    lowest: float
    highest: float
    width: float
    most: int
    effort: float
    probes: list[Probe] = field(default_factory=list)

    def run(self, start_per_s: float) -> Found:
        rate: float | None = start_per_s
        full = False
        while rate is not None and len(self.probes) < self.most:
            seconds = self.seconds(rate, full=full)
            self.probes.append(Probe(rate, seconds, self.drive(rate, seconds), full))
            rate, full = self.next()
        return self.found()

    @property
    def used(self) -> list[Probe]:
        """Probes that say something about the system, not about the client."""
        return [p for p in self.probes if not p.judged.own_fault]

    def client_limit(self, rate: float) -> float:
        """The lowest rate above this one that the client could not send on time."""
        late = [p.rate_per_s for p in self.probes if p.judged.own_fault]
        return min((r for r in late if r > rate), default=math.inf)

    def where(self) -> Posterior:
        """Rates as they were drawn: at random times there are never just as many as meant."""
        used = self.used
        return posterior([p.judged.offered_per_s for p in used], [p.judged for p in used])

    def seconds(self, rate: float, *, full: bool) -> float:
        """Enough requests for the quantile, and long beside the limit."""
        if not self.probes:
            return SHORTEST_S * self.effort
        conditions = [k.condition for k in self.probes[0].judged.kept]
        limits = [c.limit_ns / 1e9 for c in conditions if c.limit_ns is not None]
        # Of errors there are none or many; 4 / allowed requests without one say it is kept.
        requests = max((LATE_ONES if c.limit_ns is not None else 4) / c.allowed for c in conditions)
        seconds = max(SHORTEST_S, requests / rate, LIMITS * max(limits, default=0.0))
        if not full:
            seconds = max(SHORTEST_S, min(_SHORT * seconds, LONGEST_S / 10))
        else:
            seconds *= self.clustered() * (2 if self.most - len(self.probes) <= _LAST else 1)
        return min(LONGEST_S, seconds) * self.effort

    def clustered(self) -> float:
        """How much longer a full probe has to be, as late requests come in great clusters."""
        effects = [
            k.requests / k.effective
            for p in self.used
            if p.full and 0.74 < _room(p.judged) < 1.35
            for k in p.judged.kept
            if k.condition.limit_ns is not None and k.effective
        ]
        return min(2.0, max(1.0, sum(effects) / len(effects) / CLUSTER)) if effects else 1.0

    def next(self) -> tuple[float | None, bool]:
        """The rate to probe next and whether in full; None where all is said."""
        used = self.used
        if not used:
            # Thrice late at ever lower rates: the client is not fit to judge anything.
            return (None if len(self.probes) >= _LATE else self.down(self.probes[-1])), False
        rates = [p.rate_per_s for p in used]
        keeps = [_seems_kept(p.judged) for p in used]
        if not any(keeps):
            return self.down(min(used, key=lambda p: p.rate_per_s)), False
        if all(keeps):
            return self.up(max(rates)), False
        where = self.where()
        low, middle, high = (where.quantile(q) for q in (DOUBT, 0.5, 1 - DOUBT))
        near = any(p.full and 0.74 < _room(p.judged) < 1.35 for p in used)
        if high / low > (1.3 if near else 1 + 3 * self.width):
            guess = self.guess()
            return self.capped(guess or middle), guess is not None or high / low <= 1.5
        fulls = [p.rate_per_s / middle for p in used if p.full]
        below, above = (sum(a < f < b for f in fulls) for a, b in ((0.9, 1), (1, 1.1)))
        if high / low <= 1 + self.width and below and above:
            return None, False
        aside = max(1 + 0.4 * self.width, (high / low) ** 0.25)
        return self.capped(middle / aside if below < above else middle * aside), True

    def guess(self) -> float | None:
        """Where limit / quantile is 1, on a line between the nearest rates about it.

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

    def capped(self, rate: float) -> float:
        """Within what may be sent."""
        return max(self.lowest, min(rate, self.highest))

    def up(self, rate: float) -> float | None:
        """Every probe seems to keep the promise: higher, as far as it may and the client can."""
        limit = self.client_limit(rate)
        if limit < math.inf:
            step = math.sqrt(limit / rate)
            return rate * step if step > _CLIENT_STEP else None
        if rate >= self.highest:
            return None
        rose = sum(p.rate_per_s > self.probes[0].rate_per_s for p in self.probes)
        return min(rate * _UP[min(rose, len(_UP) - 1)], self.highest)

    def down(self, least: Probe) -> float | None:
        """No probe seems to keep the promise: lower."""
        rate = least.rate_per_s
        if rate <= self.lowest:
            return None
        fell = sum(p.rate_per_s < self.probes[0].rate_per_s for p in self.probes)
        if fell > 1 and not any(p.judged.answered_per_s for p in self.probes):
            # Three rates and never an answer: it is not the rate.
            return None
        lower = rate / _DOWN[min(fell, len(_DOWN) - 1)]
        # An overloaded system says itself what it can answer.
        answered = 0.95 * least.judged.answered_per_s
        if least.judged.achieved < 0.95 and rate / 20 < answered < 0.9 * rate:
            lower = answered
        return max(lower, self.lowest)

    def found(self) -> Found:
        """The bracket, or which side is open and why."""
        probes, used = tuple(self.probes), self.used
        if not used:
            least = min(p.rate_per_s for p in probes)
            return Found(
                None, None, probes,
                f"The client was late with its own requests even at {least:,.4g}/s, so nothing is "
                "known of the system: give the client more processors, or a longer limit.",
            )  # fmt: skip
        rates = [p.rate_per_s for p in used]
        if not any(p.judged.answered_per_s for p in used):
            return Found(
                None, min(rates), probes,
                f"Not one request was answered well, down to {min(rates):,.4g}/s: this is no "
                "matter of the rate; look at the outcomes.",
            )  # fmt: skip
        keeps = [_seems_kept(p.judged) for p in used]
        if not any(keeps):
            return Found(None, min(rates), probes, _nothing_holds(used, self.lowest))
        if all(keeps):
            return self.all_hold(max(used, key=lambda p: p.rate_per_s))
        where = self.where()
        low, high = where.quantile(DOUBT), where.quantile(1 - DOUBT)
        slack = (1 + _FULL_OF_WIDTH * self.width) / (high / low)
        if slack > 1:
            low, high = low / math.sqrt(slack), high * math.sqrt(slack)
        inside = where.chance_below(high) - where.chance_below(low)
        if low < min(rates) / _BEYOND or high > max(rates) * _BEYOND:
            return self.beyond(low, high, where)
        sentence = (
            f"The promise holds at {low:,.4g}/s and fails at {high:,.4g}/s; the greatest rate lies "
            f"between with a chance of {min(inside, 0.999):.1%}, by {len(used)} probes together."
        )
        if high / low > 1 + self.width:
            sentence += (
                f" That is {high / low - 1:.1%} wide, not {self.width:.0%} as asked: more effort "
                "(longer probes) or a start nearer to it narrows it."
            )
        return Found(low, high, probes, sentence, inside)

    def beyond(self, low: float, high: float, where: Posterior) -> Found:
        """An end lies where nothing was driven: that side is open, however the curve goes on."""
        rates = sorted(p.rate_per_s for p in self.used)
        holds = low if low >= rates[0] / _BEYOND else None
        fails = high if high <= rates[-1] * _BEYOND else None
        sides = []
        if holds is None:
            sides.append(f"that it holds at {rates[0]:,.4g}/s, the lowest")
        if fails is None:
            sides.append(f"that it fails at {rates[-1]:,.4g}/s, the highest")
        known = f"The promise holds at {holds:,.4g}/s. " if holds is not None else ""
        known = f"The promise fails at {fails:,.4g}/s. " if fails is not None else known
        return Found(
            holds, fails, tuple(self.probes),
            f"{known}Of the rates that were driven it cannot be said with 95 % "
            f"{' nor '.join(sides)}; most likely the limit is near {where.quantile(0.5):,.4g}/s. "
            "Times scatter too much from probe to probe: a quieter machine, or more effort (longer "
            "probes).",
        )  # fmt: skip

    def all_hold(self, top: Probe) -> Found:
        """Nothing seems to break the promise: what kept the search from going higher."""
        rate = top.rate_per_s
        limit = self.client_limit(rate)
        if limit < math.inf:
            why = (
                f"above it, at {limit:,.4g}/s, the client itself was late with its "
                "requests: the client is the limit, not the system"
            )
        elif rate >= self.highest:
            why = "which is the highest rate that was allowed"
        else:
            why = f"the highest of {len(self.probes)} probes; start nearer to the answer"
        if top.judged.verdict != "holds":
            why += "; that probe alone is too short to say so with 95 %"
        holds = [p.rate_per_s for p in self.used if p.judged.verdict == "holds"]
        return Found(
            max(holds, default=None), None, tuple(self.probes),
            f"The promise was still kept at {rate:,.4g}/s, {why}. Where it fails is not known.",
        )  # fmt: skip


def _nothing_holds(used: list[Probe], lowest: float) -> str:
    least = min(used, key=lambda p: p.rate_per_s)
    broken = [
        f"{k.condition.text}: {k.share:.2%} of the requests broke it"
        for k in least.judged.kept
        if k.share >= k.condition.allowed
    ]
    reason = "; ".join(broken) or f"only {least.judged.achieved:.1%} of the offered was achieved"
    where = (
        "the lowest allowed" if least.rate_per_s <= lowest else f"the lowest of {len(used)} probes"
    )
    return (
        f"The promise was broken even at {least.rate_per_s:,.4g}/s, {where} ({reason}). "
        "At which rate it holds is not known."
    )


def _room(judged: Judged) -> float:
    """The least of limit / quantile; 0 where the promise is broken for another reason."""
    rooms = [
        k.condition.limit_ns / k.quantile_ns if k.quantile_ns else 0.0
        for k in judged.kept
        if k.condition.limit_ns
    ]
    least = min(rooms, default=2.0)
    return least if least <= 1 or _seems_kept(judged) else 0.0


def _seems_kept(judged: Judged) -> bool:
    """As far as one can see, without asking for 95 %."""
    return judged.achieved_high >= _KEEPS_UP and all(
        k.share < k.condition.allowed for k in judged.kept
    )
