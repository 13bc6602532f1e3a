"""What worked in the first record and not in the second, over all runs of both.

What failed by the system itself is a loss if it is more than chance (``chance``), and what was not
driven because a run was aborted at a broken promise is one. What the load generator or the machine
spoilt, and what an interrupted run did not come to, tells nothing of the system. The order of the
runs plays no part.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from searchbench.analysis.compare import chance as by_chance
from searchbench.analysis.compare import otherwise, uncounted
from searchbench.analysis.compare.run import Key, Run
from searchbench.analysis.judgement import RecordLine, TrialResult
from searchbench.analysis.stats.distributions import more_often
from searchbench.analysis.stats.intervals import ALPHA, LEVEL, holm
from searchbench.analysis.trial.by_system import by_system
from searchbench.analysis.words import of_job, plural

# What is said of runs that lack something while others have it, of one run and of several.
NO_TRIAL = "has no valid trial of it", "have no valid trial of it"
NOT_WELL = "did not answer well there", "did not answer well there"
ABSENT = "the second does not have it"
ENDED = "the run ended before it was measured"
SPOILT = "by the load generator or the machine, which says nothing about the system"


@dataclass
class Seen:
    """Of one treatment in the runs of one side: how many have a valid trial, the reasons of those
    in which the system ``failed`` or which do not have it, and of those that were ``spoilt``.
    ``trials``: how many there are in all runs, but for those that were spoilt; ``broken``: the
    reasons of those of them in which the system failed. ``untried``: of those that ``failed``, how
    many have no trial that counts, as a run was aborted before them, or they are searches.
    """

    valid: int = 0
    failed: list[str] = field(default_factory=list)
    spoilt: list[str] = field(default_factory=list)
    absent: int = 0
    trials: int = 0
    broken: list[str] = field(default_factory=list)
    untried: int = 0

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return self.valid + len(self.failed) + len(self.spoilt) + self.absent

    @property
    def lacking(self) -> int:
        """How many runs show that the system does not do it."""
        return len(self.failed) + self.absent

    @property
    def missing(self) -> int:
        """How many of these show it without a trial, so that it is no chance."""
        return self.absent + self.untried

    def why(self) -> str:
        """The most frequent reason, a clause."""
        reasons = self.failed or ([ABSENT] if self.absent else self.spoilt)
        return Counter(reasons).most_common(1)[0][0]


@dataclass(frozen=True)
class Case:
    """A treatment, a load or a promise in the runs of both sides, and its ``lines``.

    ``there``: whether any run of the second has it. ``apart``: whether doubts about answers mean
    that nothing is answered alike. ``compared``: whether a line without a ratio leaves it unknown;
    ``unknown``: why else it is. ``lacks``: what is said of runs that lack it; ``notes``: sentences
    on other runs. ``subject``: of a load, whose; its loads stand one after another, in ascending
    order.
    """

    label: str
    a: Seen
    b: Seen
    lines: Sequence[RecordLine]
    there: bool = True
    apart: bool = True
    compared: bool = True
    unknown: str = ""
    lacks: tuple[str, str] = NO_TRIAL
    notes: Sequence[str] = ()
    subject: str = ""

    @property
    def drives(self) -> by_chance.Drives:
        """How many trials of either side failed."""
        a, b = ((len(side.broken), side.trials) for side in (self.a, self.b))
        return by_chance.Drives(a, b, self.subject)


@dataclass(frozen=True)
class Lost:
    """By label why the second lost it, and why nothing can be told of it; and sentences on runs
    that count for nothing.
    """

    lost: Mapping[str, str]
    not_known: Mapping[str, str]
    partly: Sequence[str]


def of(
    before: Sequence[Run], after: Sequence[Run], lines: Sequence[RecordLine], threshold: float
) -> Lost:
    """What the second lost, and of what nothing can be told; empty where they share no treatment.

    ``lines``: those that were compared. A loss of more than ``threshold`` that is more than chance,
    and that something else could make, is not known.
    """
    labels: dict[Key, str] = {}
    for run in (*before, *after):
        labels |= {key: t.label for key, t in run.by_key.items() if key not in labels}
    theirs = {key for run in after for key in run.by_key}
    mine = {key for run in before for key in run.by_key}
    if not mine & theirs:
        return Lost({}, {}, ())
    keys = [key for key in labels if key in mine]
    own = {
        key: [one for one in lines if before[0].key_of(one) == key or one.label == labels[key]]
        for key in keys
    }
    return told(
        [
            Case(labels[key], seen(before, key), seen(after, key), own[key], key in theirs)
            for key in keys
        ],
        threshold,
    )


def of_unlike(gone: Lost) -> Lost:
    """Where the runs of a side are not of one thing, another setting may have done it."""
    why = "but the runs of a side are not of the same versions and settings"
    unknown = {label: f"{reason}, {why}" for label, reason in gone.lost.items()}
    return Lost({}, {**gone.not_known, **unknown}, gone.partly)


def told(cases: Sequence[Case], threshold: float) -> Lost:
    """``of`` these."""
    lost: dict[str, str] = {}
    not_known: dict[str, str] = {}
    partly: list[str] = []
    altogether = by_chance.of_each([case.drives for case in cases])
    for case, chance, gone in zip(cases, _by_chance(cases), altogether, strict=True):
        a, b, label, own = case.a, case.b, case.label, case.lines
        most = a.valid > a.lacking and 0 < b.lacking >= b.valid
        if most and (gone < ALPHA or 0 < b.missing >= b.valid):
            lost.setdefault(label, _of_runs(b))
            continue
        if why := _most_trials(a, b, chance):
            lost.setdefault(label, why)
            continue
        met = a.valid or any(why != ENDED for why in a.spoilt)
        if met and not (a.lacking and not a.valid) and case.there:
            for side, which in ((b, "second"), (a, "first")):
                if not side.valid and side.spoilt and not side.lacking:
                    not_known.setdefault(label, _spoilt(side, which))
        if a.valid and not b.valid and b.lacking and case.there:
            not_known.setdefault(label, _of_no_run(a, b))
        partly += [*_partly(case, a, "first"), *_partly(case, b, "second")]
        partly += [*_broken(case, a, b), *case.notes]
        if case.unknown:
            not_known.setdefault(label, case.unknown)
        if case.compared and a.valid and own and not any(line.ratio for line in own):
            not_known.setdefault(label, own[0].reason)
        apart = next((line for line in own if _apart(line, threshold, case.apart)), None)
        if apart is not None:
            not_known.setdefault(label, apart.answers_doubt)
        seems = next((line for line in own if _seems_lost(line, threshold)), None)
        if seems is not None and seems.ratio is not None:
            worse = f"{100 * (1 - seems.ratio.value):.1f} % worse by {_words(seems.metric)}"
            not_known.setdefault(label, f"it seems {worse}, which is not resolved: {seems.reason}")
        fewer = next((why for line in own if (why := _fewer(line, threshold))), "")
        if fewer:
            not_known.setdefault(label, fewer)
        if why := _more_often(a, b, chance):
            not_known[label] = f"{not_known[label]}; {why}" if label in not_known else why
        if most:
            not_known.setdefault(label, _of_no_run(a, b))
    for label in lost:
        not_known.pop(label, None)
    return Lost(lost, not_known, list(dict.fromkeys(partly)))


def _seems_lost(line: RecordLine, threshold: float) -> bool:
    """Whether it lost more than the threshold, surely but for what else could make that; or as far
    as is known, where nothing tells how sure that is: without an interval, and by searches of
    little effort. (Other searches without one say it themselves.) Also where its clients surely
    waited for what no latency contains, and only how much the rest scatters leaves it open.
    """
    ratio, span = line.ratio, line.ratio.interval if line.ratio else None
    if line.verdict != "not resolved" or ratio is None or ratio.value >= 1 - threshold:
        return False
    if span is None:
        return not line.metric.startswith("capacity")
    if span.level < LEVEL or uncounted.SURE in line.reason:
        return True
    if line.metric.startswith("capacity") and line.start_floor > 1:
        return span.high < 1
    if line.p_value is None or line.p_value >= ALPHA:
        return False
    noise = line.run_sd is None and abs(math.log(ratio.value)) <= math.log(line.floor)
    return span.high < 1 - threshold if noise else span.high < 1


def _fewer(line: RecordLine, threshold: float) -> str:
    """That it answered fewer requests than before by more than the threshold, though not by what
    they cost: some of them failed before. A clause; empty: it did not.
    """
    if line.answered is None or line.ratio is None or line.answered >= 1 - threshold:
        return ""
    if line.verdict != "not resolved" or line.ratio.value < 1 - threshold:
        return ""
    fewer = 100 * (1 - line.answered)
    return f"it answered {fewer:.1f} % fewer requests in a second, though not by what they cost"


def _apart(line: RecordLine, threshold: float, nothing: bool) -> bool:
    """Whether both answer ``nothing`` alike, and no loss is resolved all the same; or whether a
    loss of more than the threshold may be hidden by what is gained from the queries answered
    otherwise: by a gain, or by throughput that is much the same because both cancel out.
    """
    open_ones = ("not resolved", "slower", "differs")
    if line.verdict not in open_ones or not line.answers_doubt or of_job(line.metric):
        return False
    unresolved = line.verdict == "not resolved"
    if otherwise.SHARED not in line.answers_doubt:
        return nothing and unresolved
    if line.ratio is None or line.ratio.value / line.answers_floor >= 1 - threshold:
        return False
    if unresolved and line.p_value is not None and line.p_value < ALPHA:
        return True
    told = line.ratio.value < 1 - threshold and not unresolved
    cancel = otherwise.hides(line.ratio, line.answers_floor) and not told
    return cancel and line.metric == "throughput"


def _words(metric: str) -> str:
    return metric.replace("_", " ")


def seen(runs: Sequence[Run], key: Key) -> Seen:
    """What became of a treatment in the runs of one side."""
    found = Seen()
    for run in runs:
        own = [t for t in run.by_key[key].trials if not t.control] if key in run.by_key else None
        if own is None:
            found.absent += 1
            continue
        bad = [t for t in own if t.status != "valid"]
        broken = [t for t in bad if by_system(t)]
        found.trials += len(own) - len(bad) + len(broken)
        found.broken += [_why([trial]) for trial in broken]
        found.broken += [t.failed for t in own if t.failed]  # an operation's method: they are valid
        if why := run.by_key[key].failed:
            found.failed.append(why)
        elif len(own) > len(bad):
            found.valid += 1
        elif broken:
            found.failed.append(_why(broken))
        elif bad:
            found.spoilt.append(_why(bad))
        elif run.aborted:
            found.failed.append("none was measured")
            found.untried += 1
        else:
            found.spoilt.append(ENDED)
    return found


def _by_chance(cases: Sequence[Case]) -> list[float]:
    """Of each the chance that so many more trials of the second fail by themselves if both sides
    fail as often (Fisher's exact test, one-sided), corrected for all of them.

    One of which no trial failed can show nothing, so it takes nothing from the others (Tarone).
    """
    each = [
        more_often(len(case.a.broken), case.a.trials, len(case.b.broken), case.b.trials)
        if case.a.broken or case.b.broken
        else None
        for case in cases
    ]
    return [1.0 if p is None else p for p in holm(each)]


def _most_trials(a: Seen, b: Seen, chance: float) -> str:
    """That the system failed in half of the second's trials or more, and clearly more often than in
    the first; empty: it did not.
    """
    if 2 * len(b.broken) < b.trials or chance >= ALPHA:
        return ""
    return _how_often(a, b)


def _more_often(a: Seen, b: Seen, chance: float) -> str:
    """Why the failures of the second may hide a loss, though they are not in most of its trials or
    runs, or may be chance; empty: they are no more than those of the first.
    """
    whole_runs = len(b.failed) * a.runs > len(a.failed) * b.runs
    most = b.trials and len(b.broken) * 2 >= b.trials and len(a.broken) * 2 < a.trials
    if a.valid and b.valid and (whole_runs or most or chance < ALPHA):
        return f"{_how_often(a, b)}; run both more often to know whether that is chance"
    return ""


def _how_often(a: Seen, b: Seen) -> str:
    why = Counter(b.broken).most_common(1)[0][0] if b.broken else b.why()
    if not b.broken:
        return (
            f"it failed in {len(b.failed)} of {b.runs} runs of the second ({why}), and in "
            f"{len(a.failed)} of {a.runs} of the first"
        )
    return (
        f"the system failed in {len(b.broken)} of {b.trials} trials of the second ({why}), and in "
        f"{len(a.broken)} of {a.trials} of the first"
    )


def _broken(case: Case, a: Seen, b: Seen) -> Iterator[str]:
    """That the system failed in more trials of the second, of which others are valid. (At a load of
    a sweep the figures are of all drives to the end, also of those that fell behind.)
    """
    if not b.valid or len(b.broken) * a.trials <= len(a.broken) * b.trials:
        return
    rest = "" if case.lacks == NOT_WELL else "; the figures are of the others"
    yield f"{case.label}: {_how_often(a, b)}{rest}."


def _why(trials: Sequence[TrialResult]) -> str:
    """The most frequent reason of trials of which none is valid."""
    grave = [f.kind for t in trials for f in t.findings if f.severity == "invalid"]
    reasons = [t.reason for t in trials if t.reason] or grave or ["none was measured"]
    return Counter(reason.rstrip(".") for reason in reasons).most_common(1)[0][0]


def _of_runs(b: Seen) -> str:
    why = b.why()
    return why if b.lacking == b.runs == 1 else f"{why}, in {b.lacking} of {b.runs} runs"


def _of_no_run(a: Seen, b: Seen) -> str:
    """That half of the second's runs or more lack what most or some of the first's have, and that
    this may be chance.
    """
    return (
        f"{b.why()}, in {b.lacking} of {b.runs} runs of the second, and in {a.lacking} of {a.runs} "
        "of the first; run both more often to know whether that is chance"
    )


def _spoilt(side: Seen, which: str) -> str:
    runs = "" if side.runs == 1 else f" of its {side.runs} runs"
    if side.why() == ENDED:
        where = "" if side.runs == 1 else f" in any of its {side.runs} runs"
        return (
            f"the {which} has no valid trial of it{where}, as {ENDED}; run the same command again "
            "to continue"
        )
    return (
        f"no trial of it{runs} in the {which} is valid ({side.why()}), spoilt {SPOILT}; run it "
        "again while nothing else uses the machine"
    )


def _partly(case: Case, side: Seen, which: str) -> Iterator[str]:
    """That some runs of a side, and not all, have no valid trial."""
    if not side.valid:
        return
    ended = [why for why in side.spoilt if why == ENDED]
    spoilt = [why for why in side.spoilt if why != ENDED]
    for reasons, how in (
        ([*side.failed, *["it is not in that record"] * side.absent], "The system failed there"),
        (spoilt, f"They were spoilt {SPOILT}, so they count for nothing"),
        (ended, "Interrupted runs say nothing about the system and do not count"),
    ):
        if reasons:
            n = len(reasons)
            why = Counter(reasons).most_common(1)[0][0]
            yield (
                f"{case.label}: {n} of {side.runs} runs of the {which} {plural(n, *case.lacks)} "
                f"({why}). {how}."
            )
