"""What a fault or an overload did to the second of two records, and not to the first.

Times of a trial with a fault say little of it: what fails then has none. So three things are looked
at: whether answers were normal again, and when; what of acknowledged writes is gone; and the share
of requests that were not answered well. All else that is known of it stands in each record's own
report, and is not compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

from searchbench.analysis.compare import chance as by_chance
from searchbench.analysis.compare import loads
from searchbench.analysis.compare.further import Further, gathered
from searchbench.analysis.compare.run import Key, Run
from searchbench.analysis.judgement import Estimate, OverloadResult, RecordLine
from searchbench.analysis.roles.faults import WHAT
from searchbench.analysis.roles.model import Durable, FaultResult
from searchbench.analysis.stats.intervals import ALPHA
from searchbench.analysis.trial.recovery_said import over_trials
from searchbench.analysis.trial.validity import ERRORS_INVALID
from searchbench.analysis.words import digits, percent, plural
from searchbench.workload.roles import SERVER

ALLOWED = ERRORS_INVALID  # more of all requests that failed than before are a loss in any trial
LEAST_TRIALS = 3  # of each side, to tell that answers are normal again later
AGAIN = "run both more often to know whether that is chance"
REST = (
    "After a fault or an overload, compare looks at whether and when answers were normal again, "
    "whether they stayed normal, acknowledged writes, requests that were not answered well, and "
    "answers that differ from those before. It compares nothing else of them."
)
Result = FaultResult | OverloadResult


@dataclass(frozen=True)
class _Side:
    """A fault, or an overload, in the runs of a side: ``known``: in so many trials it is known
    whether answers were normal again, and in so many of these they were ``not_within`` the time
    that was looked at. ``unknown``: in so many it is not, for the reason ``why``. ``normal``: until
    then, in seconds; None: not known, or not normal again in some. ``unanswered``, ``later``: the
    shares of requests from the fault on, or due in the overload, that were not answered well, and
    of the time after ``normal`` in which answers were not. ``step_s``: how closely it is known;
    ``since``: from when on it counts.
    ``otherwise``: of the answers afterwards, of ``compared``. ``units``: how many trials, or of
    several runs how many of these, are independent of each other.
    """

    known: int
    not_within: int
    unknown: int
    why: str
    normal: Estimate | None
    unanswered: Estimate | None
    later: Estimate | None
    step_s: float
    since: str = "after that"
    durable: Durable | None = None
    otherwise: int = 0
    compared: int = 0
    units: int = 1


@dataclass(frozen=True)
class _Case:
    """``when``: after what, the beginning of a clause; ``during``: when requests were due of which
    ``unanswered`` is the share.
    """

    label: str
    when: str
    during: str
    a: _Side
    b: _Side

    @property
    def drives(self) -> by_chance.Drives:
        return by_chance.Drives(
            (self.a.not_within, self.a.known), (self.b.not_within, self.b.known)
        )


def of(
    before: Sequence[Run], after: Sequence[Run], lines: Sequence[RecordLine], threshold: float
) -> Further:
    """What is worse in the second after a fault or an overload of the treatments of ``lines``.
    ``threshold``: the share that answers may be normal later.
    """
    found, said = list[_Case](), list[str]()
    for line in {line.label: line for line in lines}.values():
        own = [[(run, key) for run in runs if (key := run.key_of(line)) in run.by_key and key]
               for runs in (before, after)]  # fmt: skip
        each = [_results(side) for side in own]
        if not any(each):
            continue
        if why := _apart(own[0], own[1]):
            said.append(
                f"{line.label}: what a fault or an overload did is not compared, because {why}."
            )
            continue
        for what in dict.fromkeys((*each[0], *each[1])):
            if what in each[0] and what in each[1]:
                found.append(_Case(line.label, *what, *(_side(side[what]) for side in each)))
            else:
                which = "second" if what in each[0] else "first"
                said.append(f"{line.label}: what happened {what[0]} is not compared, because the "
                            f"{which} has no result for it.")  # fmt: skip
    lost, later, unknown = list[tuple[str, str]](), list[tuple[str, str]](), list[tuple[str, str]]()
    several = min(len(before), len(after)) > 1
    ranges = [chance for case in found if (chance := _of_ranges(case))]
    for case, chance in zip(found, by_chance.of_each([c.drives for c in found]), strict=True):
        label = case.label
        gone, open_ = _back(case, chance)
        lost += [(label, why) for why in (gone, _written(case)[0]) if why]
        both, is_later = _both(case), _is_later(case, threshold)
        few = is_later and _of_ranges(case) * len(ranges) >= ALPHA
        # Who is not normal again, or later, also leaves more requests without an answer.
        more = () if gone or (is_later and not few) else _shares(case)
        unknown += [(label, why) for why in (open_, _written(case)[1], *more) if why]
        if both and few:
            unknown.append((label, f"{both}; {AGAIN}"))
        elif both and is_later:
            rest = "; these runs alone do not show whether other runs would differ as much"
            later.append((label, both if several else f"{both}{rest}"))
        elif both:
            said.append(f"{label}: {both}.")
    said += [REST] if found else []
    return Further(gathered(lost), gathered(later), gathered(unknown), said)


def _results(own: Sequence[tuple[Run, Key]]) -> dict[tuple[str, str], list[Result]]:
    """By what they come after, and when that was, the faults and overloads of a treatment in the
    runs of a side.
    """
    found: dict[tuple[str, str], list[Result]] = {}
    for run, key in own:
        treatment, roles = run.by_key[key].treatment, run.judged.roles
        for fault in roles.faults if roles is not None else ():
            if fault.treatment == treatment:
                who = "the server" if fault.of == SERVER else fault.of
                what = f"after {who} was {WHAT[fault.fault]}"
                found.setdefault((what, what), []).append(fault)
        for one in run.judged.overloads:
            if one.treatment == treatment:
                what = f"overload {one.number}" if one.number > 1 else "the overload"
                found.setdefault((f"after {what}", f"in {what}"), []).append(one)
    return found


def _apart(a: Sequence[tuple[Run, Key]], b: Sequence[tuple[Run, Key]]) -> str:
    """Why nothing after it may be compared: another load, or other roles; empty: it may."""
    sides = [[trial for run, key in own if (trial := run.first_trial(key))] for own in (a, b)]
    if not all(sides):
        return ""
    return loads.differing(sides[0][0], sides[1][0])


def _side(results: Sequence[Result]) -> _Side:
    trials = sum(one.trials for one in results)
    unknown = sum(one.unknown for one in results)
    not_within = sum(one.not_within for one in results)
    faults = [one for one in results if isinstance(one, FaultResult)]
    loads_ = [one.first for one in results if isinstance(one, OverloadResult)]
    durable = [one.durable for one in faults if one.durable is not None]
    steps = (*(f.resolution_s for f in faults), *(o.resolution_s for o in loads_))
    return _Side(
        known=trials - unknown,
        not_within=not_within,
        unknown=unknown,
        why=next((why for why in (*(f.why for f in faults), *(o.why for o in loads_)) if why), ""),
        normal=None if not_within else _pooled(results, "normal_s"),
        unanswered=_pooled(results, "unanswered_share" if faults else "failed"),
        later=None if not_within else _pooled(results, "later"),
        step_s=max(steps),
        since=_since(faults),
        durable=_sum(durable) if durable else None,
        otherwise=sum(one.otherwise for one in faults),
        compared=sum(one.compared for one in faults),
        units=len(results) if len(results) > 1 else max(1, trials - unknown),
    )


def _since(found: Sequence[FaultResult]) -> str:
    if not found or not all(one.back for one in found):
        return "after that"
    return "after it went on" if found[0].fault == "freeze" else "after its new start"


def _pooled(results: Sequence[Result], name: str) -> Estimate | None:
    """A figure over all runs: with several of them the run is the unit. ``n`` counts trials."""
    each = [one.figures[name] for one in results if name in one.figures]
    if len(each) < 2:
        return each[0] if each else None
    found = over_trials([one.value for one in each], each[0].unit)
    ranges = [one.interval for one in each if one.interval and one.interval.level == 1]
    if found is not None and ranges:  # trials are unlike, so that all of them count
        low = min(min(span.low for span in ranges), *(one.value for one in each))
        high = max(max(span.high for span in ranges), *(one.value for one in each))
        found = replace(found, interval=replace(ranges[0], low=low, high=high))
    return found and replace(found, n=sum(one.n for one in each))


def _sum(each: Sequence[Durable]) -> Durable:
    return Durable(**{f.name: sum(getattr(one, f.name) for one in each) for f in fields(Durable)})


def _back(case: _Case, chance: float) -> tuple[str, str]:
    """Why it is lost that answers were normal again, and else why that may be; empty: neither."""
    a, b = case.a, case.b
    if not a.known:
        if not b.not_within:
            return "", ""
        return "", (
            f"{case.when}, answers were not normal again in {b.not_within} of {b.known} trials of "
            f"the second, and whether they were is not known in any of the first: {a.why}"
        )
    how = (
        f"{case.when}, answers were not normal again in {b.not_within} of {b.known} trials of the "
        f"second, and in {a.not_within} of {a.known} of the first"
    )
    if b.not_within * a.known > a.not_within * b.known:
        surely = 2 * b.not_within >= b.known and chance < ALPHA
        return (how, "") if surely else ("", f"{how}; {AGAIN}")
    if a.since != b.since:
        which = "second" if a.since != "after that" else "first"
        return "", (
            f"{case.when}, in some trials of the {which} the process was not running again before "
            "the window ended"
        )
    if b.unknown * (a.known + a.unknown) > a.unknown * (b.known + b.unknown):
        of_b = f"{b.unknown} of {b.known + b.unknown} trials of the second"
        return "", f"{case.when}, when answers were normal is not known in {of_b}: {b.why}"
    return "", ""


def _written(case: _Case) -> tuple[str, str]:
    """That acknowledged writes are gone in the second and none in the first; and else that they may
    be, or are more. Empty: neither.
    """
    a, b = case.a.durable, case.b.durable
    if b is None:
        return "", ""
    if not _gone(b)[0]:
        if b.never_back and not (a and a.never_back):
            trials = plural(b.never_back, "trial", "trials")
            return "", (
                f"{case.when}, it did not come back in {b.never_back} {trials} of the second, so "
                f"what is gone of {b.unlooked:,} acknowledged documents is unknown"
            )
        if b.unapplied and not (a and a.unapplied):
            return (
                "",
                f"{case.when}, {b.unapplied:,} acknowledged deletes seem undone in the second",
            )
        return "", ""
    how = f"{case.when}, {_counted(b)} in the second"
    if a is None or not _gone(a)[1]:
        return "", f"{how}, and nothing was counted in the first"
    if not _gone(a)[0]:
        none = "none by the count of" if a.hides else "none of"
        return f"{how}, and {none} {_gone(a)[1]:,} in the first", ""
    (x, n), (y, m) = _gone(a), _gone(b)
    return "", f"{how}, and {_counted(a)} in the first" if y * n > x * m else ""


def _gone(found: Durable) -> tuple[int, int]:
    """How many documents are gone, and of how many: of those that were counted, or where nothing
    was, or nothing of these lacks, of those that were asked for.
    """
    if found.counted and (found.lost or not found.missing):
        return found.lost, found.acknowledged
    return found.missing, found.asked


def _counted(found: Durable) -> str:
    gone, of = _gone(found)
    if not (found.counted and found.lost):
        return f"{gone:,} of {of:,} acknowledged documents asked for are missing"
    least = "at least " if found.hides else ""
    return f"{least}{gone:,} of {of:,} acknowledged documents are gone"


def _shares(case: _Case) -> Iterator[str]:
    """What else is clearly more in the second, as it may be a loss."""
    a, b = case.a, case.b
    if a.unanswered and b.unanswered and _clearly_more(a.unanswered, b.unanswered):
        yield (
            f"{case.during}, {percent(b.unanswered.value)} of the requests were not answered well "
            f"in the second, and {percent(a.unanswered.value)} in the first"
        )
    if a.later and b.later and _clearly_more(a.later, b.later):
        yield (
            f"{case.when}, answers became normal and then were not for {percent(b.later.value)} of "
            f"the remaining time in the second, and for {percent(a.later.value)} in the first"
        )
    if b.otherwise * a.compared > a.otherwise * b.compared:
        yield (
            f"{case.when}, {b.otherwise:,} of {b.compared:,} answers differed from those before in "
            f"the second, and {a.otherwise:,} of {a.compared:,} in the first"
        )


def _clearly_more(a: Estimate, b: Estimate) -> bool:
    """Whether a share is greater in the second by more than may fail in any trial, and by more than
    its intervals; where one has none, as far as is known.
    """
    if b.value - a.value <= ALLOWED:
        return False
    return not (a.interval and b.interval) or b.interval.low > a.interval.high


def _both(case: _Case) -> str:
    """When answers were normal on both sides, a clause; empty: it is not known of both."""
    a, b = case.a.normal, case.b.normal
    if a is None or b is None or case.a.since != case.b.since:
        return ""
    return (
        f"{case.when}, answers were normal again {_seconds(b)} {case.b.since} in the second, and "
        f"{_seconds(a)} {case.a.since} in the first"
    )


def _seconds(found: Estimate) -> str:
    span = found.interval
    if span is None:
        return f"{digits(found.value)} s"
    what = "95 % interval " if span.level < 1 else "least to greatest "
    return f"{digits(found.value)} s ({what}{digits(span.low)} to {digits(span.high)})"


def _of_ranges(case: _Case) -> float:
    """The chance that all trials (of several runs, all runs) of the second are later than all of
    the first though both are alike: 1 / C(m + n, n). 0 where both have the interval of a mean,
    which has it, or where they are further apart than all that trials of either differ by.
    """
    a, b = case.a.normal, case.b.normal
    if a is None or b is None or a.interval is None or b.interval is None:
        return 0.0
    widths = sum(span.high - span.low for span in (a.interval, b.interval))
    if max(a.interval.level, b.interval.level) < 1:
        return 0.0
    if b.interval.low - a.interval.high >= widths:
        return 0.0
    return 1 / math.comb(case.a.units + case.b.units, case.b.units)


def _is_later(case: _Case, threshold: float) -> bool:
    """Whether it is resolved that answers were normal later: beyond the intervals over the trials
    or runs, the threshold, and how closely either is known.
    """
    a, b = case.a.normal, case.b.normal
    if a is None or b is None or not a.interval or not b.interval or not _both(case):
        return False
    if min(a.n, b.n) < LEAST_TRIALS or b.interval.low <= a.interval.high:
        return False
    beyond = max(case.a.step_s, case.b.step_s)
    return b.value - a.value > beyond and a.value < (1 - threshold) * b.value
