"""What judging a record yields: plain data, which the report renders and ``--json`` prints.

Nothing here computes. Times are in seconds unless a name says otherwise. One file, though a long
one: it is what a reader of ``--json`` looks up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from searchbench.analysis.operations.model import OperationResult
    from searchbench.analysis.roles.model import RolesJudged

Level = str | int | float | bool
KnownState = Literal[
    "", "steady", "unknown", "not steady", "other caches", "other first asks", "cold and warm"
]


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval; ``method`` names how it was made, for a reader to look up."""

    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its unit, its interval (None: not enough data) and how many it rests on."""

    value: float
    unit: str
    n: int
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Floor(Estimate):
    """The noise floor as a ratio; ``n``: its A/A pairs, ``treatments``: how many they are of."""

    treatments: int = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """Something the audit noticed: the number, what it means, what to do.

    ``invalid`` findings take the trial out of every estimate; ``trial`` empty: the whole study.
    """

    kind: str
    severity: Literal["invalid", "warning", "note"]
    trial: str
    number: str
    meaning: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a plot: x, y and an optional band; ``label`` says which."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class StageSeen:
    """A stage of a load with several rates, in one trial. ``judged``: it is the measured window.

    ``requests`` were due in it, ``answered`` of them well, be it later; ``came``: good answers that
    came in it, of whatever stage. Times are of all, infinite where those that were not answered
    decide; None where they are too few.
    """

    start_s: float
    seconds: float
    first_per_s: float
    last_per_s: float
    judged: bool
    requests: int
    answered: int
    p50_s: float | None
    p99_s: float | None
    came: int


@dataclass(frozen=True, slots=True)
class OverloadSeen:
    """Stages at a greater rate between two at the same one, in one trial. Rates are per second.

    ``before``, ``after``: the numbers of these two stages, from 1. ``most_per_s``: the greatest
    rate in between, ``times``: of the capacity, None where that is not given. ``answered_per_s``:
    good answers that came in this time; ``in_time_per_s``: of the requests due in it those answered
    well within their limits (``in_time`` has them: those of ``promise``, or twice the p99 before),
    of which ``limit_s`` is the least, and 0 where there is none. ``failed``: the share of
    the requests due in it that were not answered well. ``normal_s``: from its end until answers
    were as before, infinite where they were not in the ``looked_s`` of the stage after it, None
    where that is not known, for the reason ``why``; ``bounds``: what normal is; ``resolution_s``:
    how closely it is known; ``later``: the share of the time from then on in which answers were not
    normal, of all of it where they never were for good. ``lag_p99_s``: how late the generator was
    itself, in the overload and after it.
    """

    before: int
    after: int
    start_s: float
    seconds: float
    base_per_s: float
    most_per_s: float
    times: float | None
    offered_per_s: float
    answered_per_s: float
    in_time_per_s: float
    failed: float
    limit_s: float
    in_time: str
    promise: str
    normal_s: float | None
    looked_s: float
    resolution_s: float
    later: float
    bounds: str
    why: str
    lag_p99_s: float


@dataclass(frozen=True, slots=True)
class Shaped:
    """A trial with such a load: its stages; response times and the offered rate over time.

    ``in_time``: good answers a second within the limit of its first overload, by when they were
    due; None where there is none.
    """

    stages: tuple[StageSeen, ...]
    median: Curve
    tail: Curve
    offered: Curve
    overloads: tuple[OverloadSeen, ...] = ()
    in_time: Curve | None = None


@dataclass(frozen=True, slots=True)
class OverloadResult:
    """An overload of one treatment, over its valid trials that are no controls.

    ``number``: of this treatment's overloads, from 1. ``figures``, with intervals over the trials:
    ``offered_per_s``, ``answered_per_s``, ``in_time_per_s``, ``in_time_share`` (of what was
    offered), ``failed``, ``normal_s`` (where answers of a trial were not as before within the stage
    after it, its upper end is infinite; where those of the middle trial were not, all of it),
    ``later``; as of ``OverloadSeen``, of which ``first`` is that of the first trial of which
    it is known what is normal, or of the first.
    ``not_within``: in so many trials they were not; ``unknown``: in so many that is not known.
    ``late``: the generator itself was late by so much of the limit, at p99, in the worst trial.
    """

    treatment: str
    label: str
    levels: Mapping[str, Level]
    number: int
    trials: int
    figures: Mapping[str, Estimate]
    not_within: int
    unknown: int
    late: float
    first: OverloadSeen


Answer = Literal["steady", "not steady", "unknown"]


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Whether a measured window was steady: shown to be, shown not to be, or unknown.

    ``what``: the times that it rests on, each compared with those of the same query. ``requests``:
    how many. ``changes``: by what share they changed, by where: "window" (from its beginning to its
    end), "ahead" (in ``ahead_s`` at the same pace), "first fifth" and "last fifth" (against the
    rest); below 0: they became shorter. Empty with too few requests. ``window_needed_s``: where it
    is unknown, the window that would tell at the same rate; None: not known either. ``alike``: each
    query was compared with itself; else all as one kind, as few were asked more than once.
    ``by_mean`` False: the changes would do, but the mean of the times may have moved, or stalls
    took a part of the window. ``load_changed``: by what share the offered load itself changed over
    the window, where that is a tenth or more and no chance (then 1 is the double): longer times may
    come from that, so they do not accuse the system; else 0.
    """

    answer: Answer
    what: str
    requests: int
    ahead_s: float
    changes: Mapping[str, Estimate]
    window_needed_s: float | None = None
    alike: bool = True
    by_mean: bool = True
    load_changed: float = 0.0


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What held a treatment back, as ``trials`` of its ``of`` valid trials say; the figure of one.

    "processor": the server's cores; "one thread" of it; "waits": cores were idle while requests
    waited, so for a lock, for another process or for the network; "disk"; "memory": pages were read
    again that had been read before; "client": the generator; "none": nothing was used up.
    """

    part: str
    number: str
    trials: int
    of: int


@dataclass(frozen=True, slots=True)
class ClassSeen:
    """What one class of requests met, in a trial or over those of a treatment.

    ``requests``: due within the window (of a treatment, of all its windows together). ``figures``:
    "share" (of all requests due), "throughput" (those of them answered well per second),
    "error_share", and times as of the whole: service_p50, response_p99, ...
    """

    name: str
    requests: int
    figures: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Worked:
    """What a role got done beside the readers of a trial: ``per_s`` documents acknowledged,
    requests answered well, or times that it published or had its job done, a second of the window.
    ``does``: "write", "read", "publish" or "job". ``asked``: its keys in the study, the same where
    it was asked for the same. ``grain``: by how much one time more would change ``per_s``; 0 of
    what is done many times a second.
    """

    role: str
    does: str
    asked: str
    per_s: float
    grain: float = 0.0


@dataclass(frozen=True, slots=True)
class TrialResult:
    """One trial, as judged. ``figures``: throughput, service_p50, response_p99, error_share, ...

    ``steady_from_s``: seconds since the drive began; None where it was not found to be steady.
    ``steadiness``: None of a trial that was not driven, or that was cold for each query; ``cold``:
    the state in which each query of that was asked, in words; "" of all others. ``shaped``: None of
    a load with one rate. ``classes``: what each class of queries met; empty where there are none.
    ``failed``: of an operation, why its method failed, which is a result and has no figures.
    ``taken``: the share of the window in which others may have had a core that it needed;
    ``taken_of_jobs``: by the metric of each job, the same of its time.
    ``untimed``: how many statements of an operation go before or after what is timed.
    ``sitting``: the pass through the plan in which it was measured, from 0; what was spoilt or
    failed may be of a later one than the others of its block.
    ``compiling``: the compilers of its server's JVM were still busy in the window. ``worked``: of
    each role that wrote or read beside its readers.
    """

    trial: str
    treatment: str
    block: int
    control: bool
    status: Literal["valid", "invalid", "failed"]
    reason: str
    figures: Mapping[str, Estimate]
    outcomes: Mapping[str, int]
    findings: tuple[Finding, ...]
    warmup: Curve | None = None
    steady_from_s: float | None = None
    steadiness: Steadiness | None = None
    shaped: Shaped | None = None
    cold: str = ""
    classes: tuple[ClassSeen, ...] = ()
    failed: str = ""
    taken: float = 0.0
    untimed: int = 0
    sitting: int = 0
    compiling: bool = False
    worked: tuple[Worked, ...] = ()
    taken_of_jobs: Mapping[str, float] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """Whether estimates rest on it: it is valid, and no control."""
        return self.status == "valid" and not self.control


@dataclass(frozen=True, slots=True)
class TreatmentResult:
    """One treatment over its valid replicates.

    ``service`` and ``response`` are quantile curves: x the quantile (0..1), y seconds, with
    their intervals; quantiles that have too few samples are absent. ``bottleneck``: None where no
    trial is valid. ``classes``: what each class of queries met; empty where there are none.
    ``failed``: of an operation, why its method failed at this size, so that it has no figures and
    is compared with nothing.
    ``draws``: of an operation, the digest of what it draws; treatments of others are asked other
    questions. Empty where there is none, or none is on record.
    """

    treatment: str
    label: str
    system: str
    levels: Mapping[str, Level]
    figures: Mapping[str, Estimate]
    service: Curve
    response: Curve
    trials: tuple[TrialResult, ...]
    bottleneck: Bottleneck | None = None
    classes: tuple[ClassSeen, ...] = ()
    failed: str = ""
    draws: str = ""


@dataclass(frozen=True, slots=True)
class JobResult:
    """One job of one treatment, over its valid trials.

    ``figures``: ``seconds``, ``documents_per_s``, ``cpu_s``, ``peak_memory_bytes``, ``write_bytes``
    (by the server's own account), ``device_bytes`` (to the devices of its storages, until all was
    there), ``request_p50_s`` and others; absent where not known. The intervals of times are of
    their means, those of bytes from the least to the greatest. ``files``: by kind of file the bytes
    that were allocated after it, ``lengths`` as the files' lengths, ``running`` the same when it
    had just ended, before the server stopped: least and greatest over the trials.
    ``bottleneck``: what held it back. ``durable``: what a kill may take of it. ``compared``: what
    was seen to be the same in what it made. ``progress``: documents by seconds, of one trial.
    """

    job: str
    treatment: str
    label: str
    levels: Mapping[str, Level]
    trials: int
    documents: int | None
    figures: Mapping[str, Estimate]
    files: Mapping[str, tuple[int, int]]
    lengths: Mapping[str, tuple[int, int]]
    running: Mapping[str, tuple[int, int]]
    bottleneck: Bottleneck | None
    durable: str = ""
    compared: tuple[str, ...] = ()
    progress: Curve | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """``b`` against ``a`` by one metric, paired by block.

    ``ratio`` is b/a of a quantity where more is better (throughput; for latencies the inverse),
    so above 1 means b is faster. ``p_value`` is after Holm's correction. ``floor`` is the
    noise floor as a ratio (1.03: differences up to 3 % are noise). ``queries_used`` may count: both
    return the same; ``queries_measured``: how many of these were measured on both sides, in the
    block with the fewest; None: not known, as where answers were not compared. ``same_top_k``: on
    how many of those used that list hits the first are the same too; None: as before;
    ``ranked_alike``: on how many both were seen to rank alike, and on how many that could be seen,
    where only totals need to agree; else None. ``empty``: on how many of those used both find
    nothing. Of a job its ratio is over no query: these are how
    many of those that were asked afterwards both answer the same, and (left out) how many not.
    ``failed``: the shares of requests of ``a`` and of ``b`` that did not end well.
    ``state``: what is known of both while they were measured: "steady", "unknown", "not steady"
    (either), "other caches", "other first asks", "cold and warm"; ``state_floor``: the ratio that
    this could make by itself, infinite where it could make any. ``build_floor``: the same of an
    index that was built once; 1 where builds are in the interval. ``start_floor``: the same of a
    system of a sweep that was started once; 1 where starts are in the interval.
    ``blocks_needed``: how many would resolve a difference as large as it looks, least and most
    (None: above a thousand), where the interval stands in the way. ``would_change``: what would
    change the verdict or settle it, the most effective first. ``answers_doubt``: of sweeps, why
    whoever is in front may be so by other answers; else empty. ``not_read``: nobody read the
    replies of either. ``requests_alike``: of studies, the share of the requests that ask what both
    answer alike, of the side with less; ``answers_floor``: of studies, the ratio that the others
    could make of the rest, which share the server with them, infinite where any.
    ``blocks_unknown``: of studies, how many blocks have a valid trial of both and are not in the
    ratio: of a time there were too few requests, or which clients asked what hides the throughput.
    ``order_doubt``: of studies, why the order of trials within blocks could make it; else empty.
    """

    a: str
    b: str
    metric: str
    verdict: Literal["faster", "slower", "not resolved", "not comparable"]
    ratio: Estimate | None
    p_value: float | None
    floor: float
    queries_used: int
    queries_left_out: int
    reason: str = ""
    queries_measured: int | None = None
    same_top_k: int | None = None
    ranked_alike: tuple[int, int] | None = None
    state: KnownState = ""
    state_floor: float = 1.0
    build_floor: float = 1.0
    start_floor: float = 1.0
    blocks_needed: tuple[int, int | None] | None = None
    would_change: tuple[str, ...] = ()
    empty: int = 0
    failed: tuple[float, float] = (0.0, 0.0)
    answers_doubt: str = ""
    not_read: bool = False
    requests_alike: float = 1.0
    answers_floor: float = 1.0
    blocks_unknown: int = 0
    order_doubt: str = ""


@dataclass(frozen=True, slots=True)
class ClassComparison:
    """The same two treatments compared over the queries of one class alone.

    ``compared``: as of the whole; its ``p_value`` is corrected for the comparisons of the study and
    of all its classes together.
    """

    name: str
    compared: Comparison


@dataclass(frozen=True, slots=True)
class Difference:
    """One query that two systems answer differently, with the cause if it is known.

    ``titles``: of the documents listed, by id, as far as the record has them.
    """

    query: int
    text: str
    cause: str
    total_a: int | None
    total_b: int | None
    hits_a: tuple[tuple[str, float | None], ...]
    hits_b: tuple[tuple[str, float | None], ...]
    titles: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupAgreement:
    """The measures of the Sphinx comparison study, over all hits on record; b against a, the first.

    Pairs are (how many, of how many): queries, but for ``document_mismatch`` documents of the
    first that the second lacks, of all that the first returned. Ties are not excused but in
    ``document_groups_match``. ``max_mismatch``, ``median_mismatch``, ``distribution`` (queries by
    their number of mismatches, "1" to "10") and ``above_10`` are about documents above the
    first's lowest group that are not in the same group of the second.
    ``kendall_tau``: mean tau-b over the documents both return, of ``kendall_queries`` queries.
    ``score_difference_*``: absolute, over ``score_documents`` documents that both return; None
    where scores need not be equal (another engine or way of scoring), or where there are no scores.
    """

    total_results_match: tuple[int, int]
    total_found_match: tuple[int, int]
    top_10_match: tuple[int, int]
    document_set_match: tuple[int, int]
    document_groups_match: tuple[int, int]
    document_mismatch: tuple[int, int]
    max_mismatch: int
    median_mismatch: float
    distribution: Mapping[str, int]
    above_10: int
    kendall_tau: float | None
    kendall_queries: int
    score_difference_mean: float | None
    score_difference_max: float | None
    score_documents: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two systems return the same, over the distinct queries both answered.

    ``totals_match`` is a share 0..1 of ``queries``; the other ``*_match`` and ``rbo_mean`` are over
    those for which either lists a hit (None: no query is such), as two empty lists have no first
    hits that could agree; ``without_hits``: for how many queries neither does.
    Hits tied in score may swap, within a list and across its cut. ``causes`` counts differing
    queries by cause; the cause "tie" counts those that differ by such ties alone and are matches
    all the same. ``rbo_mean`` is by rank
    alone: ties that swap lower it. ``a`` and ``b`` are treatments; each stands for all that answer
    as it does, which ``label_a`` and ``label_b`` name.
    ``require`` is the level at which a query counts as agreeing, ``agreeing`` how many do,
    ``differing`` how many do not; the rest cannot be decided. ``same_top_k``: of ``agreeing``,
    those that list hits and whose top k are the same too; ``ranked_alike``: of ``agreeing``, those
    on which both were seen to rank alike, and those on which that could be seen; ``empty``: those
    on which both find nothing.
    ``without_order``: of ``queries``, those that one of them answers with one score for all hits,
    or whose hits agree only if a tie excuses more than half of them: their order says nothing, and
    is never the same.
    ``groups``: the measures of the Sphinx comparison study. ``examples``: of each cause the least
    alike first, by RBO.
    ``levels``: by what is compared ("totals", "set" and "order" of the top k, "extras": facets and
    groups) on how many queries it is the same, differs, and is unknown; whatever ``require`` is.
    ``agreeing_changed``: of ``agreeing``, those that differ at another level. ``only_a``,
    ``only_b``: beside ``queries``, those asked of both that only that one answered well.
    ``dropped_a``, ``dropped_b``: beside these, those that this one cannot be asked (it does not
    support them), and that the other answered well.
    ``by_class``: by class of queries, how many of them agree, and of how many. ``uncompared``:
    beside all of these, the distinct queries of the set of which not both have a reply on record.
    """

    a: str
    b: str
    queries: int
    totals_match: float
    top_k_set_match: float | None
    top_k_order_match: float | None
    rbo_mean: float | None
    k: int
    unsupported_a: int
    unsupported_b: int
    errors_a: int
    errors_b: int
    causes: Mapping[str, int]
    examples: tuple[Difference, ...]
    label_a: str = ""
    label_b: str = ""
    require: str = "totals"
    agreeing: int = 0
    differing: int = 0
    same_top_k: int = 0
    ranked_alike: tuple[int, int] = (0, 0)
    without_order: int = 0
    groups: GroupAgreement | None = None
    empty: int = 0
    levels: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    agreeing_changed: int = 0
    without_hits: int = 0
    only_a: int = 0
    only_b: int = 0
    dropped_a: int = 0
    dropped_b: int = 0
    by_class: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    uncompared: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer. ``headline`` and ``points``: what is read first, see analysis/answer.py;
    ``decision``: all of it, in one paragraph, of a sweep one a line; ``lines``: a short table for
    a terminal.

    ``resolved``: did any comparison come out above the noise. ``best``: what is resolved as better
    than every rival, over most of the queries on which they agree; None: nothing is. ``doubts``:
    what keeps the one in front from being the best, with its rivals; empty: nothing does.
    ``would_change``: what would change most of the comparisons that are not resolved, else of all.
    """

    decision: str
    resolved: bool
    best: str | None
    lines: tuple[tuple[str, ...], ...] = ()
    header: tuple[str, ...] = ()
    would_change: tuple[str, ...] = ()
    headline: str = ""
    points: tuple[str, ...] = ()
    doubts: str = ""


@dataclass(frozen=True, slots=True)
class Fit:
    """A model fitted to a scaling curve: its R², and what the data say of it.

    ``parameters``: those whose interval leaves out 0, that is no such effect. ``peak``: the x of
    the greatest y; None unless its interval lies within the levels measured. ``intervals``: of
    the parameters and of ``peak``, by name.
    """

    model: str
    parameters: Mapping[str, float]
    r_squared: float
    peak: float | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scale:
    """One metric against one numeric factor, all other factors held.

    ``held``: the levels of the others. ``best``: of the levels that no other is resolved to be
    better than, the one with the best mean. ``best_not_resolved_from``: levels that it is not shown
    to be better than, by the rule for the best; empty: it is the best, else it only leads.
    """

    factor: str
    metric: str
    unit: str
    held: Mapping[str, Level]
    curve: Curve
    best: float
    best_not_resolved_from: tuple[float, ...] = ()
    fit: Fit | None = None


PromiseVerdict = Literal["kept", "broken", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Promised:
    """Whether one load step kept a promise, and ``why`` that is so, for the end of a sentence.

    ``condition``: the worst of the promise, ``share``: of the requests due within the window those
    that broke it, with its interval, ``allowed``: fewer than this share may. Empty and None where
    the step cannot be believed. ``conditions``: by its words, the verdict on each condition alone.
    """

    promise: str
    verdict: PromiseVerdict
    why: str
    condition: str = ""
    share: Estimate | None = None
    allowed: float | None = None
    by_others: bool = False
    conditions: Mapping[str, PromiseVerdict] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One load step as it was really driven: one trial of a sweep or of a search for capacity.

    ``subject``: the configuration without the step of its load. ``speed_asked``: of a replay,
    multiples of the log's own speed.
    ``status``: "void" where the client or the machine spoils it, or in a sweep the server gave
    other answers under load, "failed" where it was not driven to its end; a server that errs or
    does not keep up is a result, and "valid". ``reason``: of a step that is not valid.
    ``clients``: counted in the trace, distinct clients that had a request under way within the
    window (closed loops; of open loops the connections used); ``clients_by_littles_law``: what
    the times of all requests add up to, ``littles_law_share`` the same by ``clients_asked``.
    ``offered``: requests due per second; ``answered``: replies that came well per second, both
    within the window; ``achieved``: replies that came well over requests due, as a share.
    ``falls_behind``: open loops: replies of any kind came to fewer than 99 %, or the queue grew;
    ``keeps_up``: it did not, at least 99 % was achieved, and at most 1 % failed. Both None where
    the window does not tell, and of closed loops, which cannot fall behind.
    ``service``, ``response``, ``connect``, ``lag``, ``backlog``: by name (p50, p90, p95, p99,
    p999, max, mean) in seconds, of requests that ended well; absent where there are too few.
    ``connect``: of connections opened within the window; ``lag``: sent late by the client's own
    doing; ``backlog``: waited for a free connection (open loops). ``backlog_growth`` and
    ``response_growth``: seconds by which the median grows each second.
    ``steadiness``: whether the window was shown to be steady; of a rate that was not kept up with,
    by the times that the server worked on each request; None of a step that was not driven.
    ``client_cpu_share`` and ``run_wait_share``: of the busiest measuring thread's time;
    ``worst_minute``: of windows of two minutes or more, the minute with the worst p99.
    ``promises``: of a sweep with promises, each against this step. ``classes``: what each class of
    requests met; empty where there are none.
    """

    system: str
    subject: str
    trial: str
    treatment: str
    block: int
    label: str
    kind: Literal["closed", "open", "replay"]
    levels: Mapping[str, Level]
    status: Literal["valid", "void", "failed"]
    reason: str = ""
    window_s: float = 0.0
    clients_asked: int | None = None
    clients: int | None = None
    clients_by_littles_law: float | None = None
    littles_law_share: float | None = None
    rate_asked_per_s: float | None = None
    speed_asked: float | None = None
    requests: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    error_share: Estimate | None = None
    offered: Estimate | None = None
    answered: Estimate | None = None
    achieved: Estimate | None = None
    falls_behind: bool | None = None
    keeps_up: bool | None = None
    service: Mapping[str, Estimate] = field(default_factory=dict)
    response: Mapping[str, Estimate] = field(default_factory=dict)
    connect: Mapping[str, Estimate] = field(default_factory=dict)
    lag: Mapping[str, Estimate] = field(default_factory=dict)
    backlog: Mapping[str, Estimate] = field(default_factory=dict)
    backlog_growth: float | None = None
    response_growth: float | None = None
    client_cpu_s_per_request: float | None = None
    client_cpu_share: float | None = None
    run_wait_share: float | None = None
    steal_share: float | None = None
    server_cores: float | None = None
    worst_minute: Mapping[str, float] = field(default_factory=dict)
    promises: tuple[Promised, ...] = ()
    findings: tuple[Finding, ...] = ()
    steadiness: Answer | None = None
    classes: tuple[ClassSeen, ...] = ()


@dataclass(frozen=True, slots=True)
class CapacityTrial:
    """One rate driven in a search for capacity, against one promise.

    ``trial``: its name on record. ``excess``: the share of requests that broke the promise's worst
    condition over the share that may, with its interval: below 1 it is kept. ``condition``: that
    condition's words. ``verdict``: "holds", "fails", "unclear", or "left out": it says nothing
    about the system. ("void" is what the audit says of a step; what is left out is void too.)
    """

    trial: str
    rate_per_s: float
    seconds: float
    verdict: str
    condition: str
    excess: float | None
    excess_low: float | None
    excess_high: float | None
    achieved: float | None


@dataclass(frozen=True, slots=True)
class BreaksFirst:
    """The chance that a condition is the first of its promise to break as the rate grows.

    ``condition``: its words; empty: that the system keeps up. ``of_class``: empty where it is of
    all requests.
    """

    condition: str
    of_class: str
    chance: float


@dataclass(frozen=True, slots=True)
class Capacity:
    """The greatest rate that keeps a promise, as an interval; None where that side is open.

    ``levels``: those of the subject, without the step of its load. ``sentence``: what was found,
    and of an open side why. ``chance_inside``: that the greatest rate is in the interval; None
    where a side is open. ``searches``: how many searches (one a block) the interval covers; of
    several it is the hull. ``trials``: every rate that was driven, in the order driven. ``doubt``:
    why the upper end in the sentence may not be the system's, and is open here; empty: it is.
    ``effort``: what multiplied the lengths of the trials; below ``enough`` (0.3, more if requests
    take long) the interval is a rough one.
    ``speeds``: the standard deviation of the logarithm of its speed from trial to trial, if that
    was seen to differ; else 0. ``first``: of a promise with conditions for classes, which of them
    breaks first, the likeliest first; empty where nothing broke. ``broken_up_to``: the greatest
    rate that broke the promise because so little came, though higher rates keep it; None: no such.
    ``blocks``: by block the ends of the interval of its own search.
    """

    subject: str
    system: str
    levels: Mapping[str, Level]
    promise: str
    holds: float | None
    fails: float | None
    sentence: str
    trials: tuple[CapacityTrial, ...]
    chance_inside: float | None = None
    searches: int = 1
    doubt: str = ""
    effort: float = 1.0
    enough: float = 0.3
    speeds: float = 0.0
    first: tuple[BreaksFirst, ...] = ()
    broken_up_to: float | None = None
    blocks: Mapping[int, tuple[float | None, float | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Everything a report shows, except what it copies from the record (machine, config).

    ``findings``: those of the study first, then of its trials, the most severe first.
    ``scaling``: by numeric factor, throughput, a curve for each combination of held levels;
    ``scales`` has this and the latencies, with units, best levels and fits. ``resources``: by
    treatment, by name (``server_cores``, ``cpu_s_per_query``, ``peak_memory_bytes``,
    ``index_bytes``, ``ingest_s``, ``ingest_documents_per_s``, ``read_bytes``, ``write_bytes``,
    ``jvm_compilers_s``, ``jvm_collectors_s``, ``client_cpu_share``) an Estimate.
    ``metric``: the one that the verdict is about. ``measure``: what the plan says was done. Of a
    sweep or a search for capacity ``steps`` has an entry for each trial, ``void`` says in a
    sentence which steps say nothing about the server (empty: none), and of a search ``capacity``
    has an entry for each subject and promise. ``first_look``: figures alone, nothing is decided.
    ``jobs``: an entry for each job of each treatment; not ``driven``: there is nothing else.
    ``operations``: an entry for each, with its methods. ``roles``: what went on beside the readers;
    None where nothing was to. ``class_comparisons``: of queries with classes, ``comparisons`` over
    each class alone. ``overloads``: an entry for each overload of each treatment.
    """

    question: str
    analysis: str
    verdict: Verdict
    treatments: tuple[TreatmentResult, ...]
    comparisons: tuple[Comparison, ...]
    noise_floor: Floor | None
    agreement: tuple[Agreement, ...]
    findings: tuple[Finding, ...]
    excluded: tuple[tuple[Mapping[str, Level], str], ...]
    scaling: Mapping[str, tuple[Curve, ...]] = field(default_factory=dict)
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    scales: tuple[Scale, ...] = ()
    metric: str = "throughput"
    measure: Literal["trials", "sweep", "capacity"] = "trials"
    steps: tuple[Step, ...] = ()
    capacity: tuple[Capacity, ...] = ()
    jobs: tuple[JobResult, ...] = ()
    driven: bool = True
    void: str = ""
    first_look: bool = False
    operations: tuple[OperationResult, ...] = ()
    roles: RolesJudged | None = None
    class_comparisons: tuple[ClassComparison, ...] = ()
    overloads: tuple[OverloadResult, ...] = ()

    @property
    def void_first(self) -> bool:
        """Whether ``void`` stands before the answer: not where a search has an interval by trials
        that are not void.
        """
        known = any(c.holds is not None or c.fails is not None for c in self.capacity)
        return not (known and any(s.status == "valid" for s in self.steps))


@dataclass(frozen=True, slots=True)
class RecordLine:
    """One treatment's metric in two records.

    ``ratio``: b over a of a quantity where more is better (throughput), a over b of one where less
    is (times, costs): above 1 b is better.

    ``runs``: how many runs of each side it rests on. ``run_sds``: how much runs of either side
    differ, as the standard deviation of the log of a run's value; None: not known, as of a single
    run. ``run_sd``: over both sides, with ``sum(runs) - 2`` degrees of freedom. "faster" and
    "slower" are said where both are known. Where one is, ``ratio`` is over all runs too, as if
    runs of the other differed by as much, and "differs" says that it lies outside these. Where
    none is, interval, ``p_value`` and ``floor`` are of the noise within the two runs, and
    "differs" says that these two runs differ by more than that. ``within``: the interval is that
    within the runs, as it is wider than that between them.
    ``state``: what is known of the states that both were measured in, further runs among them;
    a ratio up to ``state_floor`` could be made by these, up to ``failed_floor`` by the failed
    requests of the better side, up to ``build_floor`` by builds that have no replicate, and of
    sweeps up to ``start_floor`` by starts that have none.
    ``failed``: the greatest share of requests of a run of either side that did not end well.
    ``queries_used``: on how many queries both return the same; ``queries_measured``: how many of
    these both measured, in the block with the fewest. Of sweeps ``queries_used`` is how many either
    measured, in closed loops; of open ones these are 0 and None, and ``build_floor`` is 1. Of
    searches ``state`` is empty, and the rest is 1, 0 and None.
    ``answers_doubt``: why a gain of up to ``answers_floor`` may be that of other answers; else
    empty.
    ``over``: of trials and steps, what the ratio is over: "alike", those that both answer alike;
    "asked", all that both measured, where that is the lesser ratio; "counted", all requests, as no
    mix is known (``reason`` says why). ``ran_already``: a run of either side is of a system that
    ran already, so searchbench started none. ``answered``: of
    throughput where requests failed and ``ratio`` weighs them by what they cost, the second's
    requests answered in a second over the first's, each counted alike; None: else.
    """

    label: str
    levels: Mapping[str, Level]
    metric: str
    verdict: Literal["faster", "slower", "differs", "not resolved", "not comparable"]
    value_a: Estimate | None
    value_b: Estimate | None
    ratio: Estimate | None
    p_value: float | None
    floor: float
    reason: str = ""
    runs: tuple[int, int] = (1, 1)
    run_sd: float | None = None
    run_sds: tuple[float | None, float | None] = (None, None)
    within: bool = True
    state: KnownState = ""
    state_floor: float = 1.0
    failed: tuple[float, float] = (0.0, 0.0)
    failed_floor: float = 1.0
    build_floor: float = 1.0
    queries_used: int = 0
    queries_measured: int | None = None
    answers_doubt: str = ""
    answers_floor: float = 1.0
    over: Literal["alike", "asked", "counted"] = "alike"
    start_floor: float = 1.0
    ran_already: bool = False
    answered: float | None = None

    @property
    def runs_known(self) -> bool:
        """Whether it is known of both sides how much their runs differ."""
        return None not in self.run_sds

    @property
    def single(self) -> str:
        """Which side's runs alone are not known to differ by how much, "first" or "second"; else
        empty.
        """
        if self.run_sd is None or self.runs_known:
            return ""
        return ("first", "second")[self.run_sds.index(None)]


@dataclass(frozen=True, slots=True)
class ClassLine:
    """One treatment's metric in two records, over the queries of one class alone.

    ``line``: as of the whole; its ``p_value`` is corrected for the lines of the whole and of all
    classes together.
    """

    name: str
    line: RecordLine


@dataclass(frozen=True, slots=True)
class SetupDifference:
    """One thing in which two records differ. ``of``: a system, "load", "corpus", "machine", ..."""

    of: str
    what: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class RecordComparison:
    """Two records, treatment by treatment. ``same`` and ``same_b``: further runs of either.

    ``answers_changed``: by treatment label, the captured replies that differ at
    ``answers_level`` (what the first study requires), and of how many; all levels are in
    ``agreement``. Both are None where no answers were compared, as those of an unknown engine.
    ``beyond_threshold``: a loss of more than ``threshold`` (0.05: 5 % less of a quantity where
    more is better) that is "slower" or "differs", or anything in ``lost``; the exit status.
    ``lost``: by label, why most runs of b have no valid trial of a treatment of which a has some,
    which queries b no longer answers, which classes it fails, or what it lost after a fault or an
    overload. ``not_known``: by label, why nothing can be told of what
    both were to measure, such as trials that the load generator or the machine spoilt.
    ``regressed``: as ``beyond_threshold``, without "differs"; None where there is none, and how
    much runs of both sides differ is not known of every line, or something is ``not_known``.
    ``header`` and ``lines`` are a short table for a terminal.
    ``agreement``: by label, how far the two return the same, where both were asked the same.
    ``differences``: what else they do not have in common. ``would_change``: what would change the
    answer, the most effective first.
    ``metric``: the one that decides. ``headline``, ``points``: of ``decision``, what is read first.
    ``by_class``: the same for each class of queries, where all runs were asked one list that has
    classes; the exit status does not rest on it. ``normal_later``: by label, that after a fault or
    an overload answers were normal again later, beyond the threshold and the noise.
    """

    a: str
    b: str
    threshold: float
    comparisons: tuple[RecordLine, ...]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    answers_changed: Mapping[str, tuple[int, int]] | None
    findings: tuple[Finding, ...]
    regressed: bool | None
    decision: str
    header: tuple[str, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()
    beyond_threshold: bool = False
    same: tuple[str, ...] = ()
    same_b: tuple[str, ...] = ()
    metric: str = ""
    agreement: Mapping[str, Agreement] | None = None
    differences: tuple[SetupDifference, ...] = ()
    would_change: tuple[str, ...] = ()
    lost: Mapping[str, str] = field(default_factory=dict)
    not_known: Mapping[str, str] = field(default_factory=dict)
    answers_level: str = ""
    headline: str = ""
    points: tuple[str, ...] = ()
    by_class: tuple[ClassLine, ...] = ()
    normal_later: Mapping[str, str] = field(default_factory=dict)
