"""What failed requests may make of a comparison: times are of those that ended well alone.

A system that fails what would have taken it long looks faster than one that answers it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from searchbench.analysis.compare.mix import timed
from searchbench.analysis.judgement import Comparison, TreatmentResult, TrialResult
from searchbench.analysis.trial import latency
from searchbench.analysis.words import listed, percent
from searchbench.record.trial import Load

TAIL = 0.1  # of the mass beyond a quantile may have failed


def share(t: TreatmentResult) -> float:
    """The mean share of its requests that did not end well."""
    found = [x.figures["error_share"].value for x in _valid(t) if "error_share" in x.figures]
    return sum(found) / len(found) if found else 0.0


def floor(winner: TreatmentResult, rival: TreatmentResult, load: Load, metric: str) -> float:
    """The ratio that the winner's failed requests could make; infinite: any. ``load``: its own.

    Of a quantile any, once they are a tenth of what lies beyond it. Of throughput and means that
    which is made if each would have taken as long as the slowest that either answered.
    """
    failed = share(winner)
    if not failed:
        return 1.0
    kind, _, name = metric.partition("_")
    if not timed(metric):
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
    return max(1.0, 1 + failed * ((longest + think) / cycle - 1))


def against(c: Comparison, by_id: Mapping[str, TreatmentResult], loads: Mapping[str, Load]) -> str:
    """Why the winner's failed requests keep a ratio from being resolved; empty: they do not."""
    if c.ratio is None or not c.ratio.value:
        return ""
    a, b = by_id[c.a], by_id[c.b]
    winner, rival = (b, a) if c.ratio.value > 1 else (a, b)
    most = floor(winner, rival, loads[winner.treatment], c.metric)
    return why(winner.label) if max(c.ratio.value, 1 / c.ratio.value) <= most else ""


def why(winner: str) -> str:
    """Why a ratio is not resolved that does not pass the floor."""
    return f"what {winner} failed to answer could make the whole difference"


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


def _valid(t: TreatmentResult) -> list[TrialResult]:
    return [x for x in t.trials if x.counts]
