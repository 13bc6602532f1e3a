"""A log of production beside a record of the laboratory: are their times the same?

Quantiles of the log's times and of the service times on record, by class of the searches, and their
ratio with an interval. Searches that follow each other depend on each other, so what is drawn with
replacement is not searches but blocks of time: of the log equal stretches, of the record the slices
of each valid trial's window (a block bootstrap; Künsch 1989). The blocks of a trial share its
start, so the draws scatter at least as the trials do. What a log writes as v lay up to its
resolution above or half of it below, and the interval is widened by that; where the clock steps
further than the log writes (``clock``), by a step to either side. That one is faster or slower is
said after Holm's correction over all quantiles of all classes: of sixty some are apart by chance.

The log has the server's own time, the record what a client saw of it: the way to the server and
the making of the reply are in the one and mostly not in the other. The answer says so, for nobody
can take it out afterwards.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Interval, Judgement, TreatmentResult
from searchbench.analysis.logs.clock import Clock, clock_of
from searchbench.analysis.logs.spread import Spread, Threshold, as_written
from searchbench.analysis.stats.intervals import ALPHA, holm
from searchbench.analysis.trial.measured import Samples
from searchbench.analysis.words import percent
from searchbench.errors import RecordError
from searchbench.logs.entries import UNKNOWN
from searchbench.logs.searches import Searches
from searchbench.record import Record
from searchbench.workload.queries.analysis import terms

Answer = Literal["the same", "faster", "slower", "not resolved", "too few"]

QUANTILES = (0.5, 0.95, 0.99)
ALIKE = 1.10  # a ratio within this is called the same
LEVEL = 0.95
METHOD = "block bootstrap over time"
ALL = "all"
OTHERS = "(in no class of the log)"
_DRAWS = 1_000
_BLOCKS = 60  # of the log's time
_LEAST = 10  # searches beyond a quantile on either side, at least
_STRETCHES = 10  # blocks that hold a class, at least; fewer do not show how much they differ
_COARSE = 0.002  # of the searches; fewer coarse times do not shift a quantile
_BIN = math.log(1.005)  # times in one bin differ by half a percent
_SEED = 0x74727574

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Line:
    """One quantile of one class: in the log and in the laboratory, in seconds, and laboratory /
    log. ``log_s`` 0: below the log's resolution. ``n``: searches of either."""

    of_class: str
    quantile: float
    n: tuple[int, int]
    log_s: float
    lab_s: float
    ratio: float | None
    interval: Interval | None
    answer: Answer


@dataclass(frozen=True, slots=True)
class Against:
    """One treatment of a record held against a log. ``shares``: by class, of the searches of the
    log and of the record. ``sentence``: what it comes to. ``step_s``: how finely the log's times
    are known."""

    treatment: str
    label: str
    lines: tuple[Line, ...]
    shares: Mapping[str, tuple[float, float]]
    sentence: str
    remarks: tuple[str, ...] = ()
    step_s: float = 0.0


@dataclass(eq=False)
class _Side:
    """Times in seconds, the block of each, and its class; ``step_s``: the finest difference;
    ``below_s``: how far below what is written a time may have been. ``steps``: the finest
    difference by search; None: as ``step_s``. ``trial``: of each block; None: there are none."""

    seconds: Floats
    block: NDArray[np.int64]
    of_class: NDArray[np.int64]
    step_s: float = 0.0
    seed: int = 0
    below_s: float = 0.0
    steps: Floats | None = None
    trial: NDArray[np.int64] | None = None
    drawn: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        blocks = int(self.block.max(initial=0)) + 1
        # Two sides of as many blocks must not draw the same ones.
        rng = np.random.default_rng([_SEED, self.seed])
        self.drawn = rng.multinomial(blocks, np.full(blocks, 1 / blocks), _DRAWS).astype(float)

    def unsure(self, mine: NDArray[np.bool_], value: float) -> tuple[float, float]:
        """How far above and below ``value`` a quantile may lie, as finely as times are written.

        Where logs differ in how finely they write, coarse times near a quantile shift it by as much
        as they are coarse, whatever the others are.
        """
        if self.steps is None:
            return self.step_s, self.below_s
        near = mine & (np.abs(self.seconds - value) <= self.steps)
        steps, n = np.unique(self.steps[near], return_counts=True)
        coarse = float(steps[n >= _COARSE * mine.sum()].max(initial=0.0))
        return max(self.step_s, coarse), max(self.below_s, coarse / 2)

    def stretches(self, mine: NDArray[np.bool_]) -> int:
        """How many blocks hold any of these: what lies in one is the same in all draws."""
        return int(np.unique(self.block[mine]).size)

    def quantiles(self, mine: NDArray[np.bool_]) -> dict[float, tuple[float, Floats]]:
        """By quantile its value, and its values in each of the draws; those with too few lack."""
        seconds, block = self.seconds[mine], self.block[mine]
        floor = max(self.step_s / 2, 1e-9)
        number = np.rint(np.log(np.maximum(seconds, floor)) / _BIN).astype(np.int64)
        bins, at = np.unique(number, return_inverse=True)
        # What stands for a bin is the mean of what is in it, so that few values stay exact.
        mean = np.bincount(at, seconds) / np.bincount(at)
        counts = np.zeros((self.drawn.shape[1], len(bins)))
        np.add.at(counts, (block, at), 1)
        drawn = np.cumsum(self.drawn @ counts, axis=1)
        ordered = np.sort(seconds)
        found = {}
        for q in QUANTILES:
            if len(seconds) * min(q, 1 - q) < _LEAST:
                continue
            value = float(ordered[min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1)])
            total = drawn[:, -1:]
            where = (drawn >= q * total).argmax(axis=1)
            draws = mean[where[total[:, 0] > 0]]
            found[q] = value, draws * self._as_trials_differ(q, counts, mean, draws)
        return found

    def _as_trials_differ(self, q: float, counts: Floats, mean: Floats, draws: Floats) -> Floats:
        """Factors for draws, by which they scatter as the mean of so many trials does (t, on the
        logarithms), where that is more than they do: blocks of one trial share its start.

        ``counts``: by block, of the bins with these means.
        """
        if self.trial is None:
            return np.ones(draws.size)
        own = [counts[self.trial == one].sum(axis=0) for one in np.unique(self.trial)]
        logs = [
            math.log(max(mean[(np.cumsum(one) >= q * one.sum()).argmax()], 1e-9))
            for one in own
            if one.sum() * min(q, 1 - q) >= 1
        ]
        if len(logs) < 2 or not draws.size:
            return np.ones(draws.size)
        within = float(np.log(np.maximum(draws, 1e-9)).var())
        more = max(0.0, float(np.var(logs, ddof=1)) / len(logs) - within)
        rng = np.random.default_rng([_SEED, self.seed, round(1000 * q)])
        return np.exp(math.sqrt(more) * rng.standard_t(len(logs) - 1, draws.size))


def against(of: Searches, record: Record, judged: Judgement | None = None) -> tuple[Against, ...]:
    """Each treatment of a record that has a valid trial, held against a log.

    RecordError where the log has no times of answers, or no trial of the record is valid.
    """
    if not ((of.ns != UNKNOWN) & ~of.failed).any():
        raise RecordError(
            "the log does not say how long its searches took, so there is nothing to compare "
            "with the record: have the server log it ($request_time in nginx, %D in Apache)"
        )
    judged = judge(record) if judged is None else judged
    names, of_class = of.classes()
    log = _of_log(of, of_class)
    cut = _spread(of.ns[of.ns != UNKNOWN], 1).threshold(of.formats)
    found = []
    for treatment in judged.treatments:
        trials = [trial.trial for trial in treatment.trials if trial.counts]
        if trials:
            lab, known = _of_record(record, trials, of, names)
            held = _held(treatment.treatment, treatment.label, log, lab, names, known)
            if len(trials) == 1:
                told = (
                    "The record has only one valid trial of it, so it is not known how much times "
                    "differ from one start of the server to the next. Measure it more often "
                    "(`replicates`)."
                )
                held = replace(held, remarks=(*held.remarks, told))
            known_ns = of.ns != UNKNOWN
            # What failed sooner than half of the answers came is not among the slowest.
            slow = of.failed & (of.ns > np.median(of.ns[known_ns & ~of.failed]))
            of_log, of_slow = (float(own[known_ns].mean()) for own in (of.failed, slow))
            held = _without_failed(held, of_log, of_slow, _failed(treatment))
            found.append(held if cut is None else _of_slow_ones(held, cut))
    if not found:
        raise RecordError(
            f"{record.path} has no valid trial to compare with the log{_invalid(judged)}"
        )
    return tuple(found)


def _failed(treatment: TreatmentResult) -> float:
    """The share of the requests of its valid trials that failed."""
    counts = Counter[str]()
    for trial in treatment.trials:
        if trial.counts:
            counts.update(trial.outcomes)
    return 1 - counts["ok"] / counts.total() if counts.total() else 0.0


def _without_failed(of: Against, log: float, slow: float, lab: float) -> Against:
    """What the shares that failed mean for times, which are of answers only: of the slowest
    requests of either side, which a high quantile is about, many may be missing. ``slow``: what of
    the log failed after longer than half of its answers took.
    """
    told = []
    if log:
        told.append(f"{log:.1%} of the log's searches failed. They are left out, as the record has "
                    "the times of answers only.")  # fmt: skip
    if lab:
        told.append(f"{percent(lab)} of the laboratory's requests failed, and have no time.")

    def open_(line: Line) -> bool:
        return line.answer != "too few" and max(slow, lab) > (1 - line.quantile) / 2

    if not any(map(open_, of.lines)):
        return replace(of, remarks=(*told, *of.remarks))
    told.append(
        "So quantiles are not compared where these would be half of the requests beyond, or more, "
        "if they had taken longest."
    )
    known = [replace(one, answer="not resolved") if open_(one) else one for one in of.lines]
    return replace(of, lines=tuple(known), sentence=_sentence(known), remarks=(*told, *of.remarks))


def _of_slow_ones(of: Against, cut: Threshold) -> Against:
    """Quantiles of slow searches are not those of all, whatever the record's are."""
    known = [replace(line, answer="not resolved") if line.answer != "too few" else line
             for line in of.lines]  # fmt: skip
    least = f"Hardly any of the log's times is below {cut.seconds:.3g} s"
    why = (
        f"{least}, and many are just above it, so the log seems to have only searches above a "
        "threshold of its server. Its quantiles are not those of all searches, so they say nothing "
        "about the record's."
        if cut.sure
        else f"{least}, and by default a log of this format has only searches above a threshold of "
        "its server. If this one does, its quantiles are not those of all searches, and say "
        "nothing about the record's."
    )
    told = (
        f"{why} Log all searches for a while: set "
        "long_query_time = 0 (MySQL, MariaDB), log_min_duration_statement = 0 (PostgreSQL), or "
        "thresholds of 0ms (OpenSearch, Elasticsearch)."
    )
    return replace(of, lines=tuple(known), sentence=_sentence(known), remarks=(told, *of.remarks))


def _invalid(judged: Judgement) -> str:
    """Why the trials are not valid, as far as it is said."""
    trials = [trial for treatment in judged.treatments for trial in treatment.trials]
    kinds = [f.kind for trial in trials for f in trial.findings if f.severity == "invalid"]
    told = dict.fromkeys([*kinds, *(trial.reason for trial in trials if trial.reason)])
    return f" ({', '.join(told)})" if told else ""


def _of_log(of: Searches, of_class: NDArray[np.uint32]) -> _Side:
    timed = (of.ns != UNKNOWN) & ~of.failed
    place = np.arange(len(of)) if of.at_ns is None else of.at_ns - of.at_ns[0]
    # Blocks of equal time, or, where there are no times, of equally many searches.
    block = place[timed] * _BLOCKS // (int(place.max(initial=0)) + 1)
    resolution_ns = float(np.median(of.resolution_ns[timed]))
    clock = _clock(of.ns[timed], round(resolution_ns))
    step_s = (resolution_ns if clock is None else clock.step_ns) / 1e9
    # Two readings of a clock that steps may be a step nearer to each other than what lay between.
    below_s = step_s / 2 if clock is None else step_s
    numbers = of_class[timed].astype(np.int64)
    last, at, n = np.unique(of.resolution_ns[timed], return_inverse=True, return_counts=True)
    fine = as_written(dict(zip(last.tolist(), n.tolist(), strict=True)))
    steps = np.array([fine[one] for one in last.tolist()])[at] / 1e9
    return _Side(of.ns[timed] / 1e9, block, numbers, step_s, 1, below_s, steps)


def _clock(ns: NDArray[np.uint64], resolution_ns: int) -> Clock | None:
    return clock_of(_spread(ns, resolution_ns))


def _spread(ns: NDArray[np.uint64], resolution_ns: int) -> Spread:
    values, n = np.unique(ns, return_counts=True)
    low = values.astype(float)
    return Spread(low, np.ones(len(low)), n, int(values.max(initial=0)), resolution_ns)


def _of_record(
    record: Record, trials: Sequence[str], of: Searches, names: Sequence[str]
) -> tuple[_Side, str]:
    """The measured requests of trials, and by what their classes are known; "": by nothing."""
    samples = Samples(record)
    seconds, blocks, classes, of_trial = [], [], [], []
    number = {name: i for i, name in enumerate(names)}
    how, known = "", _Lookup(of)
    first = 0
    for at, trial in enumerate(trials):
        measured = samples.measured(trial)
        lines = record.queries(samples.asked(trial))
        of_query = np.full(max((line["query"] for line in lines), default=-1) + 1, -1, np.int64)
        for line in lines:
            name = line.get("class") or known.of(line)
            how = how or ("record" if line.get("class") else "text" if name is not None else "")
            of_query[line["query"]] = -1 if name is None else number.get(name, -1)
        seconds.append(measured.service_ns / 1e9)
        blocks.append(measured.part.astype(np.int64) + first)
        classes.append(of_query[measured.query])
        parts = int(measured.part.max(initial=0)) + 1
        of_trial.append(np.full(parts, at, np.int64))
        first += parts
    side = _Side(
        np.concatenate(seconds), np.concatenate(blocks), np.concatenate(classes), seed=2,
        trial=np.concatenate(of_trial),
    )  # fmt: skip
    return side, how


class _Lookup:
    """The class of what a record asked, by what the log asked; where several have it, the one that
    asked it most often."""

    def __init__(self, of: Searches) -> None:
        times = np.bincount(of.line, minlength=len(of.lines))
        self.known: dict[object, str] = {}
        for at in np.argsort(times, kind="stable"):
            line = of.lines[int(at)]
            for key in _keys_of_line(line):
                self.known[key] = str(line["class"])

    def of(self, line: Mapping[str, Any]) -> str | None:
        """The class of a line of a record's queries."""
        algebra = line.get("algebra")
        if algebra is None:
            return self.known.get(str(line.get("text")))
        match = algebra.get("match")
        return next((self.known[k] for k in _keys(match) if k in self.known), None)


def _keys_of_line(line: Mapping[str, Any]) -> list[object]:
    if "path" in line or "sql" in line:
        return [str(line.get("path", line.get("sql")))]
    if "text" in line:
        words = terms(str(line["text"]))
        mode = line.get("match")
        return [words, *([(str(mode), words)] if mode else [])]
    return _keys(line["match"])


def _keys(match: Mapping[str, Any] | None) -> list[object]:
    """By what a match is known again: how and which words, or only which."""
    if match is None:
        return []
    if "terms" in match:
        words = tuple(match["terms"])
        return [(str(match.get("mode")), words), words]
    inner = [(kind, tuple(str(_keys(m)[:1]) for m in match.get(kind, ())))
             for kind in ("must", "should", "must_not")]  # fmt: skip
    return [tuple(inner)]


def _held(
    treatment: str, label: str, log: _Side, lab: _Side, names: Sequence[str], known: str
) -> Against:
    drafts = list(_lines(ALL, log, lab, np.ones(len(log.seconds), bool),
                         np.ones(len(lab.seconds), bool)))  # fmt: skip
    shares: dict[str, tuple[float, float]] = {}
    remarks = []
    if known:
        for number in np.argsort(-np.bincount(log.of_class, minlength=len(names)), kind="stable"):
            mine, theirs = log.of_class == number, lab.of_class == number
            shares[names[number]] = float(mine.mean()), float(theirs.mean())
            if len(names) > 1 and (theirs.any() or mine.mean() >= 0.01):
                drafts += _lines(names[number], log, lab, mine, theirs)
        strange = float((lab.of_class < 0).mean())
        if strange:
            shares[OTHERS] = 0.0, strange
        apart = max((abs(a - b) for a, b in shares.values()), default=0.0)
        if apart > 0.02:
            name = max(shares, key=lambda name: abs(shares[name][0] - shares[name][1]))
            remarks.append(
                f"The mix differs: `{name}` is {shares[name][0]:.1%} of the log and "
                f"{shares[name][1]:.1%} of the record. So compare class by class."
            )
    else:
        remarks.append(
            "The record's queries are not those of the log, and have no class. So all of them are "
            "compared together, and their mix may differ."
        )
    lines = _corrected(drafts)
    told = {line.of_class for line in lines if line.answer != "too few"}
    remarks += list(_in_few_stretches(log, names, told, f"{_BLOCKS} equal parts of the log's time"))
    remarks += list(_in_few_stretches(lab, names, told, "the slices of the record's windows"))
    below = [line for line in lines if line.log_s < log.step_s]
    if below:
        remarks.append(
            f"{len(below)} of {len(lines)} quantiles are below the log's resolution of "
            f"{log.step_s:.3g} s, so little is known about them."
        )
    return Against(
        treatment, label, tuple(lines), shares, _sentence(lines), tuple(remarks), log.step_s
    )


def _in_few_stretches(
    side: _Side, names: Sequence[str], told: set[str], what: str
) -> Iterator[str]:
    """Of each class with too few blocks of a side that it is not known how these differ."""
    found = [(ALL, np.ones(len(side.seconds), bool))] if ALL in told else []
    found += [(name, side.of_class == i) for i, name in enumerate(names) if name in told]
    for name, mine in found:
        if mine.any() and (n := side.stretches(mine)) < _STRETCHES:
            yield (
                f"The searches of `{name}` lie in only {n} of {what}, but {_STRETCHES} are needed "
                "to know how much their times vary."
            )


def _lines(
    name: str, log: _Side, lab: _Side, mine: NDArray[np.bool_], theirs: NDArray[np.bool_]
) -> Iterator[tuple[Line, float | None]]:
    """Each quantile, and the p that both are the same."""
    of_log, of_lab = log.quantiles(mine), lab.quantiles(theirs)
    n = int(mine.sum()), int(theirs.sum())
    few = min(log.stretches(mine), lab.stretches(theirs)) < _STRETCHES
    for q in QUANTILES:
        if q not in of_log or q not in of_lab:
            yield Line(name, q, n, math.nan, math.nan, None, None, "too few"), None
            continue
        (log_s, logs), (lab_s, labs) = of_log[q], of_lab[q]
        k = min(len(logs), len(labs))
        low_q, high_q = (1 - LEVEL) / 2, (1 + LEVEL) / 2
        with np.errstate(divide="ignore"):
            above_s, below_s = log.unsure(mine, log_s)
            lowest = labs[:k] / (logs[:k] + above_s)
            highest = labs[:k] / np.maximum(0.0, logs[:k] - below_s)
        low, high = float(np.quantile(lowest, low_q)), _quantile(highest, high_q)
        ratio = lab_s / log_s if log_s > 0 else None
        if few:
            yield Line(name, q, n, log_s, lab_s, ratio, None, "not resolved"), None
            continue
        interval = Interval(low, high, LEVEL, METHOD)
        yield (
            Line(name, q, n, log_s, lab_s, ratio, interval, _answer(low, high)),
            min(1.0, 2 * min(_tail(lowest), _tail(1 / np.maximum(highest, 1e-300)))),
        )


def _tail(ratios: Floats) -> float:
    """The chance of a ratio above 1 by as much as these draws are, if it is 1: their logs are taken
    as normal, as a thousand draws have no tails for many tests.
    """
    logs = np.log(np.maximum(ratios, 1e-300))
    mean, sd = float(logs.mean()), float(logs.std())
    if sd == 0:
        return 0.0 if mean > 0 else 1.0
    return math.erfc(mean / sd / math.sqrt(2)) / 2


def _corrected(drafts: Sequence[tuple[Line, float | None]]) -> list[Line]:
    """The lines, of which one is faster or slower only if it is so among all of them (Holm)."""
    adjusted = holm([p for _, p in drafts])
    return [
        replace(line, answer="not resolved")
        if line.answer in ("faster", "slower") and (p is None or p >= ALPHA)
        else line
        for (line, _), p in zip(drafts, adjusted, strict=True)
    ]


def _quantile(values: Floats, q: float) -> float:
    """A quantile of values that may be infinite, without the arithmetic between two of them."""
    ordered = np.sort(values)
    return float(ordered[min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1)])


def _answer(low: float, high: float) -> Answer:
    if low >= 1 / ALIKE and high <= ALIKE:
        return "the same"
    if low > 1:
        return "slower"
    if high < 1:
        return "faster"
    return "not resolved"


def _sentence(lines: Sequence[Line]) -> str:
    own = [line for line in lines if line.of_class != ALL] or list(lines)
    by = {answer: [line for line in own if line.answer == answer]
          for answer in ("the same", "faster", "slower", "not resolved", "too few")}  # fmt: skip
    known = len(own) - len(by["not resolved"]) - len(by["too few"])
    if not known:
        return (
            f"Whether the laboratory tells the truth about production is not resolved: none of "
            f"{len(own)} quantiles is known well enough. A longer log, finer times in it, or a "
            "longer window would show it."
        )
    parts = []
    if by["the same"]:
        parts.append(f"{_are(by['the same'])} the same within {ALIKE - 1:.0%}")
    for answer in ("faster", "slower"):
        if some := by[answer]:
            far = max(some, key=lambda line: abs(math.log(line.ratio or 1.0)))
            times = f", up to {_times(far.ratio)} ({_called(far)})" if far.ratio else ""
            parts.append(f"{_are(some)} {answer} in the laboratory{times}")
    for answer in ("not resolved", "too few"):
        if by[answer]:
            told = "not resolved" if answer == "not resolved" else "of too few searches"
            parts.append(f"{_are(by[answer])} {told}")
    if not (by["faster"] or by["slower"]):
        truth = "The laboratory tells the truth about production"
        if 2 * known < len(own):
            truth = (
                "Too little is known to say whether the laboratory tells the truth about production"
            )
        elif known < len(own):
            truth += ", as far as is known"
    elif not by["the same"]:
        truth = "The laboratory does not tell the truth about production"
    else:
        truth = "The laboratory tells the truth about production in part"
    return f"{truth}: of {len(own)} quantiles " + _listed(parts) + "."


def _are(lines: Sequence[Line]) -> str:
    return f"{len(lines)} {'is' if len(lines) == 1 else 'are'}"


def _times(ratio: float) -> str:
    return f"{max(ratio, 1 / ratio):.3g} times"


def _called(line: Line) -> str:
    return f"p{100 * line.quantile:g} of {line.of_class}"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
