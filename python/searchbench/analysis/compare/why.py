"""Why a verdict is what it is: what would change it, first what stands in the way, then doubts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from searchbench.analysis.compare import late, pairs, standing
from searchbench.analysis.judgement import Comparison, Finding, TreatmentResult
from searchbench.analysis.stats.intervals import ALPHA
from searchbench.analysis.trial.steadiness import slows
from searchbench.analysis.words import listed, most_frequent, of_job, words

# Findings of the machine, by what is to be done.
REMEDIES = {
    "A machine left alone: the audit found {}.": ("foreign CPU", "steal", "pressure"),
    "More memory: the audit found {}.": ("reads from disk", "major faults"),
    "A higher CPU limit: the one there is was reached.": ("CPU limit",),
}
MORE = " Other comparisons need the same, with other figures."
Change = tuple[bool, str]  # whether it stands in the way of a verdict, and what would change it


def explained(
    c: Comparison, a: TreatmentResult, b: TreatmentResult, shared: Sequence[Finding]
) -> Comparison:
    """With what would change its verdict, the most effective first.

    ``shared``: findings that most trials have, which the trials themselves no longer name.
    """
    order = (_trials, _agreement, _state, _lag, _build, _order, _blocks, _unknown, _windows)
    found = [change for each in order for change in each(c, a, b)]
    found += _machine(c, a, b, shared)
    found.sort(key=lambda change: not change[0])
    return replace(c, would_change=tuple(said for _, said in found))


def of_all(own: Sequence[Comparison]) -> tuple[str, ...]:
    """What would change most of the verdicts that are not resolved, else of all; at most three."""
    open_ones = [c for c in own if c.verdict not in ("faster", "slower")]
    said: dict[str, list[str]] = {}
    for change in (change for c in open_ones or own for change in c.would_change):
        said.setdefault(change.partition(":")[0], []).append(change)
    often = sorted(said.values(), key=len, reverse=True)
    return tuple(same[0] + (MORE if len(set(same)) > 1 else "") for same in often[:3])


def _trials(c: Comparison, a: TreatmentResult, b: TreatmentResult) -> Iterator[Change]:
    for t in (a, b):
        if t.trials and not any(x.counts for x in t.trials):
            reason, n = most_frequent([x.reason for x in t.trials])
            yield True, f"Valid trials of {t.label}: {reason} ({n} of {len(t.trials)} trials)."


def _agreement(c: Comparison, a: TreatmentResult, b: TreatmentResult) -> Iterator[Change]:
    if c.queries_left_out:
        n, of = c.queries_left_out, c.queries_left_out + c.queries_used
        if of_job(c.metric):  # of all that it did: other answers are not left out
            said = f"Answers that agree: afterwards {n} of {of} queries are answered otherwise."
            yield c.queries_used < standing.MOST * of, said
            return
        said = f"Answers that agree: {n} of {of} queries are left out."
        yield not c.queries_used, said


def _state(c: Comparison, a: TreatmentResult, b: TreatmentResult) -> Iterator[Change]:
    in_the_way = c.ratio is not None and _size(c) <= c.state_floor
    if c.state == "not steady":
        accused = [x.steadiness for t in (a, b) for x in t.trials
                   if x.steadiness is not None and x.steadiness.answer == "not steady"]  # fmt: skip
        if accused and all(map(slows, accused)):
            yield True, "A server that does not become slower and slower, which no warm-up cures."
        else:
            yield (
                True,
                "A longer warm-up (see the findings): at least one of the two was not steady while "
                "it was measured.",
            )
    elif c.state == "other caches":
        yield (
            True,
            "No caching of answers: on one side, the cache answered a larger share of the "
            "requests.",
        )
    elif c.state == "other first asks":
        said = "A warm-up that asks every query, so that first asks do not make the difference."
        yield True, said
    elif c.state == "cold and warm":
        yield True, "The same state for both: the same `cold` and `restart` of their places."
    elif c.state == "unknown":
        needed = [
            x.steadiness.window_needed_s
            for t in (a, b)
            for x in t.trials
            if x.steadiness is not None and x.steadiness.window_needed_s
        ]
        usual = float(f"{median(needed or [math.inf]):.2g}")
        about = f"windows of about {usual:g} s" if usual <= 600 else "far more requests"
        yield in_the_way, f"To know whether both were steady: {about} would show it."


def _lag(c: Comparison, a: TreatmentResult, b: TreatmentResult) -> Iterator[Change]:
    if late.LATE in c.reason:
        yield True, late.REMEDY


def _build(c: Comparison, a: TreatmentResult, b: TreatmentResult) -> Iterator[Change]:
    if c.build_floor > 1 and c.ratio is not None:
        said = 'A build of the index in each block: [ingest] index = "per-block".'
        yield _size(c) <= c.build_floor, said


def _order(c: Comparison, a: TreatmentResult, b: TreatmentResult) -> Iterator[Change]:
    if c.order_doubt:
        yield (
            True,
            "An even number of blocks: every second block has the order of the block before it, "
            "reversed.",
        )


def _blocks(c: Comparison, a: TreatmentResult, b: TreatmentResult) -> Iterator[Change]:
    if c.blocks_needed is not None and c.ratio is not None:
        many, n = pairs.blocks(*c.blocks_needed), c.ratio.n
        said = f"More blocks: {many} in place of {n}, if the difference is as large as it looks."
        yield True, said
    elif c.ratio is not None and c.ratio.n < 2:
        yield True, "More blocks: at least 2."


def _unknown(c: Comparison, a: TreatmentResult, b: TreatmentResult) -> Iterator[Change]:
    if c.blocks_unknown:
        n = c.blocks_unknown
        what = f"{n} {'block has' if n == 1 else 'blocks have'}"
        yield True, f"Longer windows: {what} no ratio by {words(c.metric)}."


def _windows(c: Comparison, a: TreatmentResult, b: TreatmentResult) -> Iterator[Change]:
    if c.queries_measured is not None and c.queries_measured < c.queries_used:
        few = f"{c.queries_measured} of {c.queries_used}"
        said = f"Longer windows: in one block only {few} queries were measured on both sides."
        yield not standing.covered(c), said


def _machine(
    c: Comparison, a: TreatmentResult, b: TreatmentResult, shared: Sequence[Finding]
) -> Iterator[Change]:
    noisy = c.ratio is not None and (_size(c) <= c.floor or c.blocks_needed is not None)
    trials = {x.trial for t in (a, b) for x in t.trials}
    found = [f for t in (a, b) for x in t.trials for f in x.findings] + [
        f for f in shared if not f.trial or f.trial in trials
    ]
    kinds = dict.fromkeys(f.kind for f in found if f.severity != "note")
    told = [(said, [k for k in kinds if k in of]) for said, of in REMEDIES.items()]
    yield from ((noisy, said.format(listed(own))) for said, own in told if own)
    if any(own for _, own in told):
        return
    if c.ratio is None or c.floor <= 1 or c.verdict != "not resolved" or c.p_value is None:
        return
    if _size(c) <= c.floor or (c.blocks_needed is None and c.p_value >= ALPHA):
        yield (
            True,
            (
                "Longer trials, or a quieter machine: two trials of one treatment differ by up to "
                f"{100 * (c.floor - 1):.1f} %, and more blocks do not lower that."
            ),
        )


def _size(c: Comparison) -> float:
    assert c.ratio is not None
    return max(c.ratio.value, 1 / c.ratio.value)
