"""Errors that do not depend on the rate: a share of all requests that fails whatever the rate is.

No rate decides over such a share: one trial has a few more errors than are allowed and the next a
few less, by chance, and an interval by them would be an interval of nothing. So the errors of all
trials up to a rate are taken together, unless they rise (or fall) with the rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from searchbench.analysis.capacity.promise import Judged, Kept
from searchbench.analysis.stats.distributions import beta, share_at_least, share_at_most
from searchbench.analysis.trial.throughput import KEEPS_UP
from searchbench.analysis.words import per_s, percent
from searchbench.workload.load_table import Condition

RISE = 2.5  # errors by which the rate decides go with this power of it at least
SURELY = 2.0  # standard errors
RISES = 0.01  # the chance that a share which is constant is said to rise, or to fall
TAIL = 0.025  # on each side of the share
SAME = 0.001  # of a rate driven again
BY_FAR = 2  # times what is allowed
ENDED = 10  # times the share of a window's second half in its first: they ended
SURE_TAIL = 0.005  # for an end of the search: the share is looked at after every trial


@dataclass(frozen=True, slots=True)
class Failing:
    """A share that fails at all rates from ``lowest`` to ``highest`` (requests a second).

    ``index``: of the condition in the promise. ``low``, ``high``: the 95 % interval of ``share``.
    ``settled``: so many that no further trial is needed. ``unclear``: too few, or too few
    bursts of them, to say whether the rate decides over them. ``passing``: more at one time of the
    search than at another, so a state of the server may decide that passes. ``as_the_rate``: they
    may be in proportion to the rate; ``mean_per_s``: the rate of a request on average; ``rates``:
    those of the trials, ascending.
    """

    index: int
    condition: Condition
    lowest: float
    highest: float
    share: float
    low: float
    high: float
    settled: bool
    unclear: bool = False
    passing: bool = False
    mean_per_s: float = 0.0
    as_the_rate: bool = False
    rates: tuple[float, ...] = ()

    @property
    def too_many(self) -> bool:
        """Surely more than may."""
        return self.low >= self.condition.allowed and not self.unclear and not self.passing

    @property
    def too_many_from(self) -> float:
        """The lowest of the rates at which they are more than may, also if they are in proportion
        to the rate, unless they surely are not.
        """
        least = self.mean_per_s * self.condition.allowed / self.share if self.as_the_rate else 0.0
        return next((rate for rate in self.rates if rate >= least), self.highest)

    @property
    def few(self) -> bool:
        """Surely fewer than may."""
        return self.high < self.condition.allowed and not self.unclear

    @property
    def sentence(self) -> str:
        """What it means for the promise."""
        text = self.condition.text
        if self.passing and not self.few:
            return (
                f"{percent(self.share)} of all requests failed, whatever the rate, and more of "
                "them at one time of the search than at another. So it may be a state that passes, "
                f"and it is not known which rate keeps {text}: look at the outcomes and at the "
                "server's log, and search again."
            )
        if self.unclear:
            return (
                f"{percent(self.share)} of all requests fail: too few, or in too few bursts, to "
                "say whether that depends on the rate. So it is not known which rate "
                f"keeps {text}: longer trials (more effort) would show more."
            )
        seems = "as far as these trials show " if self.too_many and self.as_the_rate else ""
        said = (
            f"{percent(self.share)} of all requests fail, {seems}whatever the rate "
            f"(from {per_s(self.lowest)} to {per_s(self.highest)})"
        )
        if self.few:
            return f"{said}, which {text} allows."
        if self.too_many:
            known = f"{said}: no rate from {per_s(self.too_many_from)} on keeps {text}."
            if self.as_the_rate:
                known += (
                    " Whether a lower one does is not known, because errors that rise slowly with "
                    "the rate would look the same."
                )
            return f"{known} See why they fail, or promise more errors."
        return (
            f"{said}. In the long run that may be {percent(self.low)} to {percent(self.high)} "
            f"(95 %), so it is not known whether any rate keeps {text}: longer trials (more "
            "effort) would show more, or promise another share of errors."
        )


def whatever_the_rate(rates: Sequence[float], judged: Sequence[Judged]) -> list[Failing]:
    """Of each condition on errors that a trial seems to break: a share that hides no limit.

    Both in the order in which the trials were driven.
    """
    if not any(one.answered_per_s for one in judged):
        return []
    order = sorted(range(len(rates)), key=lambda i: rates[i])
    at = [rates[i] for i in order]
    conditions = range(len(judged[0].kept))
    found = [_failing(at, [judged[i].kept[n] for i in order], n) for n in conditions]
    return [_in_time(one, rates, judged) for one in found if one is not None]


def of_start(rates: Sequence[float], judged: Sequence[Judged]) -> list[int]:
    """Which trials broke the promise by errors that passed, as those of a start do; the first ones.

    Both in the order driven. None of the first ones surely has few errors, and after them errors
    never broke the promise up to the rate of the last of these, where they are surely fewer, or
    ended within it.
    """
    found = 0
    for kept in zip(*(one.kept for one in judged), strict=True):
        condition, effect = kept[0].condition, _clusters(kept)
        if condition.limit_ns is not None:
            continue
        for last, (rate, own) in enumerate(zip(rates, kept, strict=True)):
            if own.requests and own.high < condition.allowed:
                break  # from here on it is no start
            after = list(zip(rates, kept, strict=True))[last + 1 :]
            if own.share < condition.allowed or any(
                k.share >= condition.allowed for at, k in after if at <= rate
            ):
                continue
            as_high = [k for at, k in after if at >= rate * (1 - SAME)]
            of = [own.requests / effect, sum(k.requests for k in as_high) / effect]
            failed = [own.share * of[0], sum(k.share * k.requests for k in as_high) / effect]
            fewer = failed[1] < condition.allowed * of[1] and depends(failed, of)
            if fewer or (own.share >= BY_FAR * condition.allowed and ended(own)):
                found = max(found, last + 1)
    return list(range(found))


def _in_time(found: Failing, rates: Sequence[float], judged: Sequence[Judged]) -> Failing:
    """With whether the share differs in the order in which the trials were driven."""
    own = [
        one.kept[found.index]
        for rate, one in zip(rates, judged, strict=True)
        if rate <= found.highest
    ]
    effect = _clusters(own)
    of = [k.requests / effect for k in own]
    failed = [k.share * requests for k, requests in zip(own, of, strict=True)]
    longest = max(judged, key=lambda one: one.lasted_s).kept[found.index]
    passed = found.too_many and ended(longest)
    if not passed and (len(own) < 2 or not depends(failed, of)):
        return found
    return replace(found, passing=True, settled=False)


def apart(one: Judged, rate_per_s: float, failing: Sequence[Failing]) -> Judged:
    """The same trial, judged by what depends on the rate alone."""
    out = {f.index for f in failing if rate_per_s <= f.highest}
    if not out:
        return one
    kept = tuple(
        replace(k, share=0.0, low=0.0, high=0.0) if i in out else k for i, k in enumerate(one.kept)
    )
    verdict, verdicts = one.verdict, {k.verdict for k in kept}
    if verdict == "fails" and "fails" not in verdicts and one.achieved_high >= KEEPS_UP:
        verdict = "unclear"
    if verdict == "unclear" and verdicts == {"holds"} and one.achieved >= KEEPS_UP:
        verdict = "holds"
    return replace(one, kept=kept, verdict=verdict)


def _failing(rates: Sequence[float], kept: Sequence[Kept], index: int) -> Failing | None:
    """``rates`` ascend. From the lowest up to the rate from which on the errors rise or fall."""
    condition = kept[0].condition
    if condition.limit_ns is not None or not any(k.requests for k in kept):
        return None
    effect = _clusters(kept)
    of = [k.requests / effect for k in kept]
    failed = [k.share * requests for k, requests in zip(kept, of, strict=True)]
    n = len(rates)
    while n > 1 and depends(failed[:n], of[:n]):
        n -= 1
    if not any(k.share >= condition.allowed for k in kept[:n]):
        return None
    unclear = not _apart_from(RISE, rates[:n], failed[:n], of[:n], -1)
    x, requests = math.fsum(failed[:n]), math.fsum(of[:n])
    low, sure = (share_at_least(tail, x, requests) for tail in (TAIL, SURE_TAIL))
    high = share_at_most(TAIL, x, requests)
    # Few errors, or few bursts of them, may show neither: that the rate decides, or does not.
    shown = n < len(rates) or high < condition.allowed or _apart_from(0, rates, failed, of, 1)
    if unclear and shown:
        return None
    share, settled = x / requests, sure >= condition.allowed
    ends = rates[0], rates[n - 1]
    return Failing(
        index, condition, *ends, share, low, high, settled and not unclear, unclear,
        mean_per_s=math.fsum(a * b for a, b in zip(rates[:n], of[:n], strict=True)) / requests,
        as_the_rate=not _apart_from(1.0, rates[:n], failed[:n], of[:n], -1),
        rates=tuple(rates[:n]),
    )  # fmt: skip


def _clusters(kept: Sequence[Kept]) -> float:
    """As how many requests one counts: errors come in bursts alike in all trials, at least 1.

    A trial that met no burst, or few errors, does not show it: each counts by its errors.
    """
    errors = [k.share * k.requests for k in kept]
    effects = (n * k.requests / k.effective for n, k in zip(errors, kept, strict=True) if n)
    return math.fsum(effects) / math.fsum(errors) if any(errors) else 1.0


def ended(one: Kept) -> bool:
    """Whether errors ended within a window: hardly any are in its second half."""
    requests, failed = one.first_half
    later, then = one.requests - requests, one.share * one.requests - failed
    few = then < one.condition.allowed * later
    return few and failed * later > ENDED * then * requests


def depends(failed: Sequence[float], of: Sequence[float]) -> bool:
    """Whether more (or fewer) fail above some rate than up to it, by an exact test of each split;
    or after some time than before, where both are in the order driven.

    Of x failed ones as many as a binomial says are above, in the share of the requests there.
    """
    tail = RISES / 2 / (len(of) - 1)
    for k in range(1, len(of)):
        above, below = sum(failed[k:]), sum(failed[:k])
        share = sum(of[k:]) / sum(of)
        if above and beta(tail, above, below + 1) > share:
            return True
        if below and beta(tail, below, above + 1) > 1 - share:
            return True
    return False


def _apart_from(
    power: float, rates: Sequence[float], failed: Sequence[float], of: Sequence[float], side: int
) -> bool:
    """Whether too many failed at low rates (``side`` -1) or at high ones (1) for a share that goes
    with a power of the rate.

    If it did, each failed one would be in a trial with a chance of its requests by that power.
    """
    x = math.fsum(failed)
    at = np.log(np.asarray(rates) / rates[-1])
    chances = np.asarray(of) * np.exp(power * at)
    chances /= chances.sum()
    mean = float(chances @ at)
    spread = math.sqrt(float(chances @ (at - mean) ** 2) * x)
    return side * (float(np.asarray(failed) @ at) - x * mean) > SURELY * spread
