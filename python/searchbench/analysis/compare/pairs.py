"""The comparisons within a study: which pairs, over which queries, and whether they resolve.

A difference is resolved only where all of this holds: two valid blocks or more; the 95 %
interval of the ratio, paired by block, leaves out 1; p after Holm's correction over all
comparisons of the study is below 0.05; and the ratio is beyond three floors: the noise of the A/A
control, what the states of the two could make (``state``), and what two builds of an index could
(``builds``); and neither failed requests (``failed``) nor the load generator (``late``) could make
it, nor the order of the trials within blocks (``order``). Everything else is "not resolved", with
the reason.

Longer than most files: what a pair must pass is read in one piece.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.agreement.agreement import Pair
from searchbench.analysis.compare import (
    asked,
    builds,
    failed,
    jobs,
    kept,
    late,
    less_beside,
    order,
    otherwise,
    sittings,
    standing,
    state,
    taken,
)
from searchbench.analysis.compare.family import family
from searchbench.analysis.compare.mix import MINGLED, Mix, adds_up, timed
from searchbench.analysis.judgement import Comparison, Floor, TreatmentResult, TrialResult
from searchbench.analysis.stats.distributions import normal
from searchbench.analysis.stats.intervals import (
    ALPHA,
    Noise,
    block_noise,
    holm,
    inverse,
    paired_ratio,
    replicates_to_resolve,
)
from searchbench.analysis.trial import latency
from searchbench.analysis.trial.measured import Measured, Samples
from searchbench.analysis.words import of_job, plural
from searchbench.record.trial import Load
from searchbench.study.plan import Judging

MANY_TWINS = 20  # from here on the floor is the 95 % quantile, not the greatest

Floats = NDArray[np.float64]
Noises = Mapping[tuple[str, str], Noise | None]  # by metric, and by what was asked (``_asked``)
_NO_JOBS = Judging()


def metrics_for(load: Load, wanted: str) -> tuple[str, ...]:
    """What is compared under this kind of load, the study's own metric first.

    An open loop's throughput is what was offered, so it is not compared there.
    """
    usual = (
        ("throughput", "service_p50", "service_p99")
        if load.kind == "closed"
        else ("response_p50", "response_p99")
    )
    if wanted == "throughput" and load.kind != "closed":
        return usual
    return (wanted, *(metric for metric in usual if metric != wanted))


def _driven_metrics(a: Load, b: Load, wanted: str) -> list[str]:
    """What of drives is compared under both loads."""
    other = metrics_for(b, wanted)
    return [name for name in metrics_for(a, wanted) if name in other and not of_job(name)]


def value(trial: TrialResult, samples: Samples, metric: str, keep: Any) -> float | None:
    """A trial's metric (a latency, if not over all) over the queries in ``keep`` (None: all)."""
    if keep is None:
        figure = trial.figures.get(metric)
        return figure.value if figure is not None and figure.value > 0 else None
    measured = samples.measured(trial.trial)
    chosen = _chosen(measured, keep)
    kind, _, name = metric.partition("_")
    durations = (measured.service_ns if kind == "service" else measured.response_ns)[chosen]
    if name in ("mean", "max"):
        summary = durations.mean if name == "mean" else durations.max
        return float(summary()) / 1e9 if durations.size else None
    q = latency.quantile_of(name)
    if durations.size < latency.minimum_samples(q):
        return None
    at = latency.rank(durations.size, q)
    return float(np.partition(durations, at)[at]) / 1e9


def noise_floors(treatments: Sequence[TreatmentResult], metrics: Sequence[str]) -> dict[str, Floor]:
    """By metric, the noise floor as a ratio (1.03: 3 %), from every A/A pair of the same block.

    The pairs of all treatments count alike. The greatest |log ratio| seen; from 20 pairs on
    their 95 % quantile. With n pairs, a further one exceeds the greatest with probability
    1/(n + 1), if it is of a treatment that is as noisy as theirs.
    """
    twins = [
        (own[block], twin)
        for own, twins in ((asked.by_block(t), asked.by_block(t, control=True)) for t in treatments)
        for block, twin in twins.items()
        if block in own
    ]
    floors = {}
    for metric in metrics:
        values = [(t.treatment, t.figures.get(metric), u.figures.get(metric)) for t, u in twins]
        ordered = sorted(
            (abs(math.log(y.value / x.value)), treatment)
            for treatment, x, y in values
            if x and y and x.value > 0 and y.value > 0
        )
        if n := len(ordered):
            at = n - 1 if n < MANY_TWINS else math.ceil(0.95 * (n + 1)) - 1
            value, of = math.exp(ordered[min(at, n - 1)][0]), len({who for _, who in ordered})
            floors[metric] = Floor(value, "ratio", n, treatments=of)
    return floors


class Answered(Protocol):
    """How two treatments answered what they are compared over, and how many queries that is."""

    def pair(self, a: str, b: str) -> Pair | None:
        """How they agree; None where documents or queries are not the same."""
        ...

    def distinct(self, treatment: str) -> int:
        """How many distinct queries."""
        ...

    def otherwise(self, a: str, b: str) -> NDArray[np.int64]:
        """The numbers of all queries asked of either that both do not answer alike."""
        ...


@dataclass(frozen=True)
class Drafts:
    """Comparisons that are not yet corrected for each other.

    ``each``: a comparison, the logs of its ratio by block, and what the states of both could make.
    ``whole``: the treatments over all queries, where these are over one class.
    """

    each: Sequence[tuple[Comparison, list[float], str]]
    by_id: Mapping[str, TreatmentResult]
    loads: Mapping[str, Load]
    noises: Noises
    by_jobs: Mapping[tuple[str, str], str]
    whole: Mapping[str, TreatmentResult] | None = None
    samples: Samples | None = None

    @property
    def p_values(self) -> list[float | None]:
        """Of each, before any correction."""
        return [comparison.p_value for comparison, _, _ in self.each]


def drafts(
    treatments: Sequence[TreatmentResult],
    loads: Mapping[str, Load],
    samples: Samples,
    answers: Answered,
    floors: Mapping[str, Floor],
    metric: str,
    built: builds.Builds,
    judging: Judging = _NO_JOBS,
    *,
    members: NDArray[np.int64] | None = None,
    places: order.Places | None = None,
    also: Collection[tuple[str, str]] = (),
) -> Drafts:
    """Every comparison of the study, to be decided. ``built``: as ``builds.of`` has it.

    ``judging``: which jobs there are, and whether anything was driven. ``members``: the numbers of
    the queries that they are over, with ``treatments`` and ``answers`` of these alone; None: all.
    ``places``: by trial its place in its block; None: not known. ``also``: as of ``family``.
    """
    by_id = {t.treatment: t for t in treatments}
    states = {t.treatment: (t.label, state.of(t)) for t in treatments}
    compared = family(treatments, also)
    once = {pair for pair in compared if builds.once(*pair, built)}
    named = {name for t in treatments for name in t.figures}
    noises = _noises(treatments, named)
    places = places or {}
    of_places = {m: order.effect(treatments, places, m) for m in named} if places else {}

    def in_order(c: Comparison, a: TreatmentResult, b: TreatmentResult) -> Comparison:
        return _in_order(c, a, b, places, of_places)

    found: list[tuple[Comparison, list[float], str]] = []
    by_jobs: dict[tuple[str, str], str] = {}
    for a, b in compared:
        if why := failed.methods(by_id[a], by_id[b]):
            by_jobs[a, b] = ""
            found += [
                (Comparison(a, b, name, "not comparable", None, None, 1.0, 0, 0, why), [], "")
                for name in _driven_metrics(loads[a], loads[b], metric)
            ]
            continue
        pair, distinct = answers.pair(a, b), answers.distinct(a)
        by_jobs[a, b] = jobs.doubt(pair)
        for name in jobs.metrics(judging):
            floor = floors[name].value if name in floors else 1.0
            no_ground = "" if pair is None else apart(pair)
            draft, logs = jobs.draft(by_id[a], by_id[b], name, floor, pair, no_ground)
            ratio, p = paired_ratio(logs, _noise_of(noises, name, by_id[a], by_id[b]))
            draft = replace(draft, ratio=ratio, p_value=p)
            draft = in_order(draft, by_id[a], by_id[b])
            found.append((draft, logs, ""))
        if not judging.driven:
            continue
        both, others = (by_id[a], by_id[b]), answers.otherwise(a, b)
        measured = asked.fewest_on_both(*both, samples, pair)
        alike = asked.requests_alike(*both, samples, others, members)
        untimed = [t.label for t in both if any(trial.untimed for trial in t.trials)]
        for name in _driven_metrics(loads[a], loads[b], metric):
            floor = floors[name].value if name in floors else 1.0
            if name == "throughput" and untimed:
                why = (
                    f"throughput includes the set-up and clean-up of {' and of '.join(untimed)}, "
                    "which are not timed"
                )
                blank = Comparison(a, b, name, "not comparable", None, None, floor, 0, 0, why)
                found.append((blank, [], ""))
                continue
            draft, logs = _draft(*both, loads, samples, pair, name, floor, distinct, members)
            said = ""
            shares = [(t.label, failed.share(t)) for t in both]
            draft = replace(draft, failed=(shares[0][1], shares[1][1]))
            if clause := failed.said(shares):
                draft = replace(draft, reason=_join(draft.reason, clause))
            if logs:
                ratio, p = paired_ratio(logs, _noise_of(noises, name, *both))
                known = state.floor(states[a], states[b], sum(logs))
                said = known.said
                draft = replace(
                    draft, ratio=ratio, p_value=p, state=known.kind, state_floor=known.ratio,
                    build_floor=builds.floor(len(once), ratio) if (a, b) in once and ratio else 1.0,
                    answers_floor=asked.by_the_queue(both, samples, loads, others, name, sum(logs)),
                )  # fmt: skip
                draft = in_order(draft, *both)
            draft = replace(draft, queries_measured=measured, requests_alike=alike)
            found.append((draft, logs, said))
    return Drafts(found, by_id, loads, noises, by_jobs, samples=samples)


def decided(of: Drafts, beside: Sequence[float | None] = ()) -> tuple[Comparison, ...]:
    """The comparisons, corrected together, and with others whose p-values are ``beside``."""
    adjusted = holm([*of.p_values, *beside])
    tests = sum(p is not None for p in adjusted)
    return tuple(
        _decide(
            _remarked(comparison),
            logs,
            _noise_of(of.noises, comparison.metric, of.by_id[comparison.a], of.by_id[comparison.b]),
            p,
            tests,
            said,
            of.by_jobs[comparison.a, comparison.b] or taken.against(comparison, of.by_id)
            if of_job(comparison.metric)
            else failed.against(comparison, of.by_id, of.loads, of.whole, of.samples)
            or late.against(comparison, of.by_id, of.loads, of.samples)
            or taken.against(comparison, of.by_id)
            or less_beside.against(comparison, of.by_id)
            or sittings.against(comparison, of.by_id),
        )
        for (comparison, logs, said), p in zip(of.each, adjusted, strict=False)
    )


def of(treatment: str, c: Comparison) -> Comparison:
    """The same comparison with ``treatment`` as its ``b``, so that the ratio is of it."""
    if treatment == c.b:
        return c
    turned: dict[str, Literal["faster", "slower"]] = {"faster": "slower", "slower": "faster"}
    ratio = inverse(c.ratio) if c.ratio else None
    verdict = turned.get(c.verdict, c.verdict)
    return replace(c, a=c.b, b=c.a, ratio=ratio, verdict=verdict, failed=c.failed[::-1])


def _in_order(
    c: Comparison, a: TreatmentResult, b: TreatmentResult, places: order.Places,
    effects: Mapping[str, order.Effect],
) -> Comparison:  # fmt: skip
    """With why the order within blocks could make it, if it could."""
    by, of = order.later(a, b, places), effects.get(c.metric)
    if c.ratio is None or of is None:
        return c
    if order.could_turn(c.ratio) and (label := order.at_the_turn(a, b, places)):
        return replace(c, order_doubt=order.said_of_turn(label))
    if not order.could_make(c.ratio, by, of, faster=c.metric == "throughput"):
        return c
    return replace(c, order_doubt=order.said(a.label, b.label, by))


def _draft(
    a: TreatmentResult,
    b: TreatmentResult,
    loads: Mapping[str, Load],
    samples: Samples,
    pair: Pair | None,
    metric: str,
    floor: float,
    distinct: int,
    members: NDArray[np.int64] | None,
) -> tuple[Comparison, list[float]]:
    used = distinct if pair is None else int(pair.agreeing.size)
    alike = members if pair is None else pair.agreeing
    keep = alike if members is not None or used < distinct else None
    left_out = 0 if pair is None else max(0, distinct - used)
    reason = "they were not asked the same over the same documents, so answers are not compared"
    ids, reason = (a.treatment, b.treatment), reason if pair is None else ""
    blank = Comparison(*ids, metric, "not resolved", None, None, floor, used, left_out, reason)
    if pair is not None:
        if used:
            same, empty = standing.first_hits(pair.agreement), pair.agreement.empty
            ranked = standing.ranked_alike(pair.agreement)
            blank = replace(blank, same_top_k=same, ranked_alike=ranked, empty=empty)
        if why := apart(pair) or _other_rows(a, b, pair):
            return replace(blank, verdict="not comparable", reason=why), []
    mine, other = asked.by_block(a), asked.by_block(b)
    unusable = [t.label for t, found in ((a, mine), (b, other)) if not found]
    if unusable:
        why = f"no trial of {' or of '.join(unusable)} is valid"
        return replace(blank, verdict="not comparable", reason=why), []
    own_loads = loads[a.treatment], loads[b.treatment]
    logs: list[float] = []
    lacking: dict[str, None] = {}
    mingled = False
    shares: list[tuple[kept.Kept | None, kept.Kept | None]] = []
    every: list[float] = []  # of all that was answered
    both_valid = sorted(mine.keys() & other.keys())
    for block in both_valid:
        trials = mine[block], other[block]
        if metric == "throughput" and alike is not None:
            both = [samples.measured(trial.trial) for trial in trials]
            mix = Mix(both[0], both[1], alike)
            sides = list(zip((a, b), both, own_loads, strict=True))
            short = [t.label for t, m, load in sides if not adds_up(m, load)]
            lacking |= dict.fromkeys(short)
            # Of one class it is not known which of its requests the time was spent on.
            x, y = (
                mix.by_times(m, load) if members is None else mix.value(m, load, metric)
                for _, m, load in sides
            )
            mingled |= mix.queries > 0 and any(
                mix.by_times(m, load) is None for _, m, load in sides
            )
            if x and y:
                first, second = (kept.in_trial(m, load) for _, m, load in sides)
                shares.append((first, second))
                rates = [m.query.size / m.window_s for _, m, _ in sides]
                every.append(math.log(rates[1] / rates[0]))
        elif timed(metric) and alike is not None:
            both = [samples.measured(trial.trial) for trial in trials]
            mix = Mix(both[0], both[1], alike)
            x, y = (mix.value(*of, metric) for of in zip(both, own_loads, strict=True))
        else:
            x, y = (value(trial, samples, metric, keep) for trial in trials)
        if x and y:
            logs.append(math.log(y / x) if metric == "throughput" else math.log(x / y))
    if members is None:
        fail = any(map(failed.share, (a, b)))
        logs, counted = kept.as_counted(logs, shares, every if fail else [], lacking=bool(lacking))
        if counted:
            blank = replace(blank, reason=_join(blank.reason, counted))
            lacking = {}
    if logs:
        blank = replace(blank, blocks_unknown=len(both_valid) - len(logs))
    if lacking:
        why = (
            f"the latencies of {' and of '.join(lacking)} would give more throughput than was "
            "counted, so clients waited for replies that no latency contains"
        )
        blank = replace(blank, reason=_join(blank.reason, why))
    if mingled:
        blank = replace(blank, reason=_join(blank.reason, MINGLED))
    return blank, logs


def _remarked(c: Comparison) -> Comparison:
    """With the reason that few queries were measured on both sides, if that is so."""
    if c.ratio is None or c.queries_measured is None or standing.covered(c):
        return c
    found, used = c.queries_measured, c.queries_used
    said = f"in one block only {found} of these {used} queries were measured on both sides"
    return replace(c, reason=_join(c.reason, said))


def _decide(
    comparison: Comparison,
    logs: Sequence[float],
    noise: Noise | None,
    p: float | None,
    tests: int,
    of_state: str,
    of_failed: str,
) -> Comparison:
    """``of_state``: why the states of both may make a difference; empty: both are steady.

    ``of_failed``: that failed requests may, or the load generator, or of a job other answers
    afterwards; empty: they may not.
    """
    if comparison.verdict == "not comparable":
        return comparison
    comparison = replace(comparison, p_value=p)
    ratio = comparison.ratio
    if len(logs) < 2 or ratio is None or ratio.interval is None or p is None:
        found = "no block has" if not logs else "only one block has"
        extra = (
            f"{found} a valid trial of both with enough samples; at least 2 are needed to know "
            "how much repetition changes the result"
        )
        return replace(comparison, reason=_join(comparison.reason, extra))
    size, against = max(ratio.value, 1 / ratio.value), []
    excludes_one = ratio.interval.low > 1 or ratio.interval.high < 1
    if size <= comparison.floor:
        against.append(
            f"the difference of {_percent(size - 1)} is within the noise floor of "
            f"{_percent(comparison.floor - 1)} that the A/A control shows"
        )
    elif not excludes_one or p >= ALPHA:
        why = "the interval includes 1, that is, no difference"
        if excludes_one:
            why = f"p = {p:.2g} after correcting for {tests} comparisons"
        if size <= (expected := _expected_floor(comparison, noise)):
            why += (
                f"; with more blocks the noise floor would be about {_percent(expected - 1)}, no "
                "less than the difference"
            )
        elif needed := replicates_to_resolve(logs, noise, tests):
            least, most = needed
            least = max(least, len(logs) + 1)
            needed = least, most and max(least, most)
            comparison = replace(comparison, blocks_needed=needed)
            many = blocks(*needed)
            why += f"; if the difference is as large as it looks, about {many} would resolve it"
        against.append(why)
    against += within_floors(comparison, of_state, of_failed)
    for why in against:
        comparison = replace(comparison, reason=_join(comparison.reason, why))
    if against:
        return comparison
    return replace(comparison, verdict="faster" if ratio.value > 1 else "slower")


def within_floors(c: Comparison, of_state: str, of_failed: str) -> list[str]:
    """What could make this ratio by itself: states, failed requests (or the load generator), two
    builds of an index.
    """
    size = max(c.ratio.value, 1 / c.ratio.value) if c.ratio else 1.0
    against = [of_state] if size <= c.state_floor and of_state else []
    if c.blocks_unknown and c.ratio is not None:
        n = c.blocks_unknown
        against.append(
            f"{n} of {c.ratio.n + n} blocks {plural(n, 'is', 'are')} not in the ratio, as it is "
            "not known there, and might say otherwise"
        )
    if of_failed:
        against.append(of_failed)
    if c.order_doubt:
        against.append(c.order_doubt)
    quantile = timed(c.metric) and c.metric != "throughput"
    if quantile and c.queries_measured is not None and not standing.covered(c):
        # What lies beyond a quantile may be just those that one side did not come to.
        against.append(
            f"a time needs {100 * standing.MOST:g} % of them on both sides; longer windows would "
            "bring that"
        )
    if c.ratio is not None and otherwise.could_make(c.ratio, c.answers_floor):
        against.append(otherwise.said(c.queries_left_out, c.queries_left_out + c.queries_used))
    if 1 < size <= c.start_floor:  # a start comes with a build, where there is one
        against.append(builds.said_of_starts(c.start_floor))
    elif 1 < size <= c.build_floor:
        against.append(builds.said(c.build_floor))
    return against


def _expected_floor(comparison: Comparison, noise: Noise | None) -> float:
    """What the noise floor comes to with many blocks: 95 % of A/A pairs are within it."""
    if comparison.floor <= 1 or noise is None:
        return 1.0
    return math.exp(normal(0.975) * math.sqrt(noise.variance))


def blocks(least: int, most: int | None) -> str:
    """How many blocks, in words; ``most`` None: above a thousand."""
    count = f"{least} or many more" if most is None else f"{least} to {most}"
    return f"{least if most == least else count} blocks"


def _noises(
    treatments: Sequence[TreatmentResult], metrics: Collection[str]
) -> dict[tuple[str, str], Noise | None]:
    """The study's noise in each metric, by what was asked.

    Operations of ten rows and of a million scatter as differently as they last, so those that
    ask for other rows share no noise. A twin is its treatment measured again.
    """
    alike: dict[str, list[TreatmentResult]] = {}
    for t in treatments:
        alike.setdefault(_asked(t), []).append(t)
    return {
        (metric, what): _noise(each, metric) for what, each in alike.items() for metric in metrics
    }


def _asked(t: TreatmentResult) -> str:
    """The operation, where there are several, and what it draws; of queries nothing, as all of a
    study count as one.
    """
    return f"{t.levels.get('operation', '')} {t.draws}".strip()


def _noise_of(of: Noises, metric: str, a: TreatmentResult, b: TreatmentResult) -> Noise | None:
    """That of two treatments; where one of them alone is an operation, that of the noisier kind."""
    found = [noise for t in (a, b) if (noise := of.get((metric, _asked(t))))]
    return max(found, key=lambda one: one.variance, default=None)


def _noise(treatments: Sequence[TreatmentResult], metric: str) -> Noise | None:
    cells = {
        (t.treatment, trial.block, trial.control): math.log(trial.figures[metric].value)
        for t in treatments
        for trial in t.trials
        if trial.status == "valid" and metric in trial.figures and trial.figures[metric].value > 0
    }
    return block_noise(cells)


def apart(pair: Pair) -> str:
    """Why answers compare nothing: none agree, or none of those finds anything; empty: they do."""
    return all_empty(pair) if pair.agreeing.size else _nothing_agrees(pair)


def _other_rows(a: TreatmentResult, b: TreatmentResult, pair: Pair) -> str:
    """That two methods of an operation do not return the same whatever they are asked; empty: they
    do. A method that does so for some draws alone answers another question.
    """
    found = pair.agreement
    of = found.queries
    differ = of - found.agreeing
    if not (a.draws and a.draws == b.draws) or found.require == "none" or not differ:
        return ""
    return f"they do not return the same for {differ} of {of} sets of rows that were drawn"


def _nothing_agrees(pair: Pair) -> str:
    found = pair.agreement
    if not found.queries:
        return "there is no query that both answered"
    why = ", ".join(f"{cause} {n}" for cause, n in found.causes.items())
    return f"on none of {found.queries} queries do both return the same {found.require} ({why})"


def all_empty(pair: Pair) -> str:
    """That both find nothing wherever they agree, which compares no search; else empty."""
    found = pair.agreement
    if found.require == "none" or not found.agreeing or found.empty < found.agreeing:
        return ""
    n = found.agreeing
    which = f"any of the {n} queries" if n > 1 else "the one query"
    return f"both find nothing on {which} on which they agree"


def _chosen(measured: Measured, keep: NDArray[np.int64]) -> NDArray[np.bool_]:
    top = int(max(measured.query.max(initial=0), keep.max(initial=0)))
    table = np.zeros(top + 1, dtype=bool)
    table[keep] = True
    return table[measured.query]


def _join(first: str, second: str) -> str:
    return f"{first}; {second}" if first else second


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
