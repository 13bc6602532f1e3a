"""What failed requests may make of a comparison: times are of those that ended well alone.

A system that fails what would have taken it long looks faster than one that answers it. So does
one that answers it otherwise under load than alone (a time limit does that), and one whose clients
wait long for what then fails: fewer requests are answered than its times give.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from searchbench.analysis.compare import kept
from searchbench.analysis.compare.mix import timed
from searchbench.analysis.judgement import Comparison, Estimate, TreatmentResult, TrialResult
from searchbench.analysis.trial import latency
from searchbench.analysis.trial.measured import Samples
from searchbench.analysis.trial.replies import OTHERWISE
from searchbench.analysis.words import digits, listed, percent
from searchbench.record.trial import Load

NAMED = 3  # methods that failed; more are counted
TAIL = 0.1  # of the mass beyond a quantile may have failed


def share(t: TreatmentResult) -> float:
    """The mean share of its requests that did not end well."""
    found = [x.figures["error_share"].value for x in _valid(t) if "error_share" in x.figures]
    found += [1.0 for x in _valid(t) if _failed(x)]
    return sum(found) / len(found) if found else 0.0


def otherwise(t: TreatmentResult) -> float:
    """The share of its replies, of those looked at, that were other than when asked alone.

    Over all trials together: left out one by one where they have many, the rest would be luck.
    """
    found = [x.figures[OTHERWISE] for x in t.trials if OTHERWISE in x.figures]
    looked = sum(one.n for one in found)
    return sum(one.value * one.n for one in found) / looked if looked else 0.0


def floor(winner: TreatmentResult, rival: TreatmentResult, load: Load, metric: str) -> float:
    """The ratio that the winner's failed requests, and those that it answered otherwise under load,
    could make; infinite: any. ``load``: its own.

    Of a quantile any, once they are a tenth of what lies beyond it. Of all figures any, once an
    operation failed throughout a trial: the others are those in which it did not. Of throughput and
    means that which is made if each would have taken as long as the slowest that either answered;
    in an open loop those that timed out as long as the timeout (in a closed one see ``uncounted``).
    """
    failed = share(winner) + otherwise(winner)
    if not failed:
        return 1.0
    kind, _, name = metric.partition("_")
    if not timed(metric) or any(map(_failed, _valid(winner))):
        return math.inf
    if name and name != "mean":
        q = 1.0 if name == "max" else latency.quantile_of(name)
        return math.inf if failed >= TAIL * (1 - q) * (1 - 1e-9) else 1.0
    kind = kind if name else "response"
    longest = max(
        (x.figures[f"{kind}_max"].value for t in (winner, rival) for x in _valid(t)
         if f"{kind}_max" in x.figures), default=0.0,
    )  # fmt: skip
    usual = [x.figures[f"{kind}_mean"].value for x in _valid(winner) if f"{kind}_mean" in x.figures]
    if not usual or not longest:
        return 1.0
    think = (load.think_s or 0.0) if not name else 0.0
    cycle = sum(usual) / len(usual) + think
    longer = _timed_out(winner) * max(0.0, (load.timeout_s or 0.0) - longest)
    if load.kind == "closed":
        longer = 0.0
    return max(1.0, 1 + failed * ((longest + think) / cycle - 1) + longer / cycle)


def _timed_out(t: TreatmentResult) -> float:
    """The mean share of its requests that timed out."""
    each = [x.outcomes.get("timed_out", 0) / max(1, sum(x.outcomes.values())) for x in _valid(t)]
    return sum(each) / len(each) if each else 0.0


def uncounted(
    winner: TreatmentResult, rival: TreatmentResult, loads: tuple[Load, Load], metric: str
) -> float:
    """The ratio that is made by time which is in no latency; 1 where nothing shows such time.

    In a closed loop a client is always in a request (or thinks), so its requests that ended well
    and their times must make up the window. What is lacking went into requests that failed, however
    long that took, or that began before the window. Over all requests, so the mix is no reason.
    ``loads``: of the winner and of the rival.
    """
    if metric.partition("_")[2] not in ("", "mean") or not timed(metric):
        return 1.0
    mine, other = (_lacking(t, load) for t, load in zip((winner, rival), loads, strict=True))
    return max(1.0, mine / other)


def _lacking(t: TreatmentResult, load: Load) -> float:
    """By what factor its latencies give more throughput than was counted; 1 if not beyond the first
    and the last request of each client."""
    if load.kind != "closed":
        return 1.0
    factors, think = [], load.think_s or 0.0
    for figures in (x.figures for x in _valid(t)):
        if not {"throughput", "response_mean", "response_max"} <= figures.keys():
            continue
        mean, rate = figures["response_mean"], figures["throughput"].value
        if not rate or not mean.value + think:
            continue
        factor = (load.clients or 1) / (mean.value + think) / rate
        edges = 2 * (figures["response_max"].value + think) * rate / mean.n
        factors.append(factor if factor > 1 + edges else 1.0)
    return sum(factors) / len(factors) if factors else 1.0


def against(
    c: Comparison,
    by_id: Mapping[str, TreatmentResult],
    loads: Mapping[str, Load],
    whole: Mapping[str, TreatmentResult] | None = None,
    samples: Samples | None = None,
) -> str:
    """Why the winner's failed requests keep a ratio from being resolved; empty: they do not.

    ``whole``: of treatments that have the figures of one class, those with the figures of all: a
    client's time is spent on requests of every class. ``samples``: by which it is known how much of
    that time is in no latency, beyond what the edges of windows are.
    """
    if c.ratio is None or not c.ratio.value:
        return ""
    a, b = by_id[c.a], by_id[c.b]
    winner, rival = (b, a) if c.ratio.value > 1 else (a, b)
    ratio, own = max(c.ratio.value, 1 / c.ratio.value), loads[winner.treatment]
    if ratio <= floor(winner, rival, own, c.metric):
        return why(winner.label, failed=bool(share(winner)), otherwise=bool(otherwise(winner)))
    of_both, of_all = (own, loads[rival.treatment]), whole or by_id
    every = of_all[winner.treatment], of_all[rival.treatment]
    lacking = uncounted(*every, of_both, c.metric)
    if kept.COUNTED in c.reason:
        if kept.ALIKE in c.reason:
            return kept.BY_COST
        lacking = 1.0  # it is in the ratio
    elif samples is not None and c.metric == "throughput":
        each = [[kept.of(t, load, samples)] for t, load in zip(every, of_both, strict=True)]
        lacking = max(lacking, kept.made(*each))
    return why(winner.label, failed=bool(share(winner))) if ratio <= lacking else ""


def of_count(ratio: Estimate, rates: Sequence[float], names: Sequence[str]) -> str:
    """Why a ratio of throughputs, of b over a, that weighs requests by what they cost says more
    than was counted, where some failed, a clause; empty: it does not.

    If a query fails on one side and is answered on the other, who answers it did more work by its
    cost, though both answered as many. ``rates``: the requests answered in a second of a and of b.
    """
    sign = 1 if ratio.value > 1 else -1
    log, counted = sign * math.log(ratio.value), sign * math.log(rates[1] / rates[0])
    half = 0.0
    if span := ratio.interval:
        half = math.log(span.high / span.low) / 2 if span.low > 0 else math.inf
    if counted >= log - max(half, kept.MARGIN):
        return ""
    both = zip(names, rates, strict=True)
    each = " and ".join(f"{name} answered {digits(rate)}" for name, rate in both)
    return (
        f"{each} requests in a second, so the difference is in what these cost, and what those "
        "that failed would have cost is not known"
    )


def why(winner: str, *, failed: bool, otherwise: bool = False) -> str:
    """Why a ratio is not resolved that does not pass the floor. ``failed``: some requests did;
    ``otherwise``: some were answered otherwise under load.
    """
    what = f"what {winner} failed to answer"
    if otherwise:
        what = f"what {winner} answered otherwise under load than alone"
        what += ", or failed to answer," if failed else ""
    elif not failed:
        what = f"the time that clients of {winner} spent on requests that no latency contains"
    return f"{what} could make the whole difference"


def said(shares: Sequence[tuple[str, float]]) -> str:
    """A clause with the share of each that has any, by label; empty: none has."""
    some = any(failed for _, failed in shares)
    each = (f"{percent(failed)} of {label}" if failed else f"none of {label}"
            for label, failed in shares)  # fmt: skip
    return f"failed requests: {', '.join(each)}" if some else ""


def sentence(own: Sequence[Comparison], labels: Mapping[str, str]) -> str:
    """That requests failed, which no figure holds; empty: none did."""
    found = {t: failed for c in own for t, failed in zip((c.a, c.b), c.failed, strict=True)}
    each = [
        f"{percent(failed)} of those to {labels.get(t, t)}" for t, failed in found.items() if failed
    ]
    return f"Failed requests are in none of these figures: {listed(each)}." if each else ""


def methods(*both: TreatmentResult) -> str:
    """That methods of operations failed, so that there is nothing to compare, a clause; else empty:
    neither did.
    """
    return "; ".join(f"{t.label} fails: {t.failed}" for t in both if t.failed)


def in_records(a: TreatmentResult, b: TreatmentResult) -> str:
    """That a method failed in one of two records or in both, a clause; else empty."""
    sides = (("first", a.failed), ("second", b.failed))
    return "; ".join(f"it fails in the {which} record: {why}" for which, why in sides if why)


def said_of_methods(treatments: Sequence[TreatmentResult]) -> list[str]:
    """A sentence on each method that fails at a size, or how many do where these are many."""
    found = [t for t in treatments if t.failed]
    if len(found) <= NAMED:
        return [f"{t.label} fails: {t.failed}." for t in found]
    return [f"{len(found)} of {len(treatments)} treatments fail, for example {found[0].label}: "
            f"{found[0].failed}."]  # fmt: skip


def _failed(x: TrialResult) -> bool:
    """Whether its method failed, which is a result and has no figures."""
    return bool(x.failed)


def _valid(t: TreatmentResult) -> list[TrialResult]:
    return [x for x in t.trials if x.counts]
