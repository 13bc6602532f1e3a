"""What became of each load of a sweep, or of each limit of a search, in all runs of both sides.

The runs that stand for it are the first of either side in which it counts, so the order in which
runs are given decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from searchbench.analysis.agreement import answers
from searchbench.analysis.compare import lost, sweeps, treatments
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judgement import Capacity, RecordLine, Step
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep.words import percent
from searchbench.analysis.trial import driven
from searchbench.errors import SearchbenchError

COUNTS = "counts"
SPOILT = "spoilt"
NOT_DRIVEN = "it was not driven"
NONE_WELL = "no request was answered well"


@dataclass(frozen=True)
class Fate:
    """What became of it in one run: that it ``counts``, was ``spoilt``, or why it was lost there.

    ``trials``: how many the load generator and the machine did not spoil; ``broken``: why of those
    in which the system failed. ``stands``: whether there is something to be compared, of a search
    both ends of a limit; ``known``: of a search, whether it tells of a loss.
    """

    what: str
    why: str = ""
    trials: int = 0
    broken: tuple[str, ...] = ()
    stands: bool = True
    known: bool = True


@dataclass
class Of:
    """A load (``key``: kind and level) or a promise of a ``subject``, as the first run has it.

    ``names``: by side and run, what the subject is called there; ``fates``: what became of it,
    None where that run does not plan it.
    """

    label: str
    subject: str
    key: tuple[Hashable, ...]
    names: tuple[Sequence[str], Sequence[str]]
    fates: tuple[Sequence[Fate | None], Sequence[Fate | None]]
    capacity: bool = False
    drafts: list[sweeps.Draft] = field(default_factory=list)

    @property
    def stand(self) -> tuple[int, int]:
        """Which runs stand for either side."""
        first, second = (_first(own) for own in self.fates)
        return first, second

    def seen(self, side: int) -> lost.Seen:
        """The same as counts of runs and of trials."""
        found = lost.Seen()
        for fate in self.fates[side]:
            if fate is None:
                continue
            found.trials += fate.trials
            found.broken += fate.broken
            if fate.what == COUNTS:
                found.valid += 1
            elif fate.what == SPOILT:
                found.spoilt.append(fate.why)
            else:
                found.failed.append(fate.why)
        return found


def _first(fates: Sequence[Fate | None]) -> int:
    """The first that counts; else the first with something to compare; else the first there is."""
    there = [(i, fate) for i, fate in enumerate(fates) if fate is not None]
    ranks = [(_rank(fate), i) for i, fate in there]
    return min(ranks)[1] if ranks else 0


def _rank(fate: Fate) -> int:
    """0: best to be compared."""
    if fate.what != COUNTS:
        return 4 - fate.stands
    return 2 - fate.known - (fate.known and fate.stands)


@dataclass
class Found:
    """``matched``: what is said of the runs that ``stand`` for most; ``of``: each load, or each
    promise.
    """

    matched: sweeps.Matched
    stand: tuple[int, int]
    of: Sequence[Of]

    def drafts(self) -> list[sweeps.Draft]:
        """All lines, over all runs."""
        return [draft for one in self.of for draft in one.drafts]

    def gone(self, lines: Sequence[RecordLine], threshold: float) -> lost.Lost:
        """What the second lost. ``lines``: those of ``drafts``, decided, in the same order."""
        rest = iter(lines)
        return lost.told(
            [self._case(one, [next(rest) for _ in one.drafts]) for one in self.of], threshold
        )

    def _case(self, one: Of, lines: Sequence[RecordLine]) -> lost.Case:
        a, b = one.seen(0), one.seen(1)
        unknown = _unknown(one, lines) if one.capacity else ""
        return lost.Case(
            one.label, a, b, lines, there=b.runs > 0, apart=self._apart(one),
            unknown=unknown, compared=not one.capacity, lacks=lost.NO_LIMIT if one.capacity else
            lost.NOT_WELL,
        )  # fmt: skip

    def _apart(self, one: Of) -> bool:
        """Whether both answer nothing alike."""
        x, y = (names[i] for names, i in zip(one.names, one.stand, strict=True))
        found = self.matched.agreed.get(x if x == y else f"{x} and {y}")
        return found is not None and found.queries > 0 and not found.agreeing


def find(before: Sequence[Run], after: Sequence[Run], threshold: float, over: Any) -> Found:
    """Match all runs, and give each line over all of them (``over``: of a draft and the lines of
    further runs of either side). SearchbenchError where a further run has nothing in common, unless
    all of it failed or was spoilt, or the runs are of one class.
    """
    capacity = {before[0].judged.measure, after[0].judged.measure} == {"capacity"}
    each = [*(_limits(before, after, threshold) if capacity else _loads(before, after))]
    pair = Counter(one.stand for one in each).most_common(1)
    known: dict[tuple[int, int], sweeps.Matched] = {}

    def matched(x: Run, y: Run) -> sweeps.Matched:
        if (id(x), id(y)) not in known:
            match = sweeps.match_capacities if capacity else sweeps.match
            known[id(x), id(y)] = match(x, y)
        return known[id(x), id(y)]

    i, j = pair[0][0] if pair else (0, 0)
    main = matched(before[i], after[j])
    for one in each:
        _draft(one, before, after, matched, over)
    if before[0].members is None and any(
        treatments.is_estimate(line) for one in each for line, _ in one.drafts
    ):
        for side, runs in enumerate((before, after)):
            for n, run in enumerate(runs):
                if n != (i, j)[side]:
                    _has_part(run, before[i], matched(before[i], run), each, side, n)
    met = [{one.label for one in each if one.seen(side).runs} for side in (1, 0)]
    only = [tuple(x for x in own if x not in there)
            for own, there in zip(main.only, met, strict=True)]  # fmt: skip
    return Found(replace(main, only=(only[0], only[1])), (i, j), each)


def _draft(one: Of, before: Sequence[Run], after: Sequence[Run], matched: Any, over: Any) -> None:
    """Give it its lines, over all runs of both sides."""
    i, j = one.stand
    own, key = before[i], (one.names[0][i], *one.key)
    further: list[list[dict[str, RecordLine]]] = [[], []]
    for side, runs in enumerate((before, after)):
        for n, run in enumerate(runs):
            if n != (i, j)[side]:
                lines = _of(matched(own, run), key)
                further[side].append({line.metric: line for line, _ in lines})
    for line, p in _of(matched(own, after[j]), key):
        same = [[each[line.metric] for each in runs if line.metric in each] for runs in further]
        one.drafts.append(over(line, p, *same))


def _of(found: sweeps.Matched, key: tuple[Hashable, ...]) -> list[sweeps.Draft]:
    return [draft for draft, name in zip(found.drafts, found.keys, strict=True) if name == key]


def _has_part(
    run: Run, first: Run, found: sweeps.Matched, each: Sequence[Of], side: int, n: int
) -> None:
    lines = [line for line, _ in found.drafts]
    fates = [fate for one in each if (fate := one.fates[side][n]) is not None]
    if any(map(treatments.is_estimate, lines)) or any(
        fate.what != COUNTS or not fate.known or not fate.stands for fate in fates
    ):
        return
    why = next((f" ({line.reason})" for line in lines if line.verdict == "not comparable"), "")
    raise SearchbenchError(
        f"{run.record.path}: nothing in it can be compared with {first.record.path}{why}, so it "
        "does not show how much runs differ; give runs of the same study"
    )


def _names(first: Run, runs: Sequence[Run], subjects: Mapping[str, Any]) -> list[dict[str, str]]:
    """By subject of the first run, what it is called in each of these."""
    found = []
    for run in runs:
        own = dict.fromkeys(s.subject for s in run.judged.steps)
        pairs = dict(sweeps.in_pairs(first.record, run.record, (subjects, own)))
        planned = set(driven.subjects(run.record).values())
        found.append({x: pairs.get(x, x) for x in subjects if x in pairs or x in planned})
    return found


# Sweeps


def _loads(before: Sequence[Run], after: Sequence[Run]) -> Iterator[Of]:
    """Each load at which a run of the first was driven."""
    first = before[0]
    subjects = dict.fromkeys(s.subject for s in first.judged.steps)
    names = [_names(first, runs, subjects) for runs in (before, after)]
    for subject in subjects:
        own = [[one.get(subject, "") for one in side] for side in names]
        steps = [
            [_by_load(run, name) for run, name in zip(runs, called, strict=True)]
            for runs, called in zip((before, after), own, strict=True)
        ]
        keys = {key for side in steps[0] for key, there in side.items() if there}
        for key in sorted(keys):
            mine = [each.get(key) for each in steps[0]]
            there = [s for several in mine for s in several or ()]
            other = [
                _same_load(several, run, there, before)
                for several, run in zip((each.get(key) for each in steps[1]), after, strict=True)
            ]
            most = _most_failed(mine)
            of_a = [several if several is None else _fate(several, at.ERRORS) for several in mine]
            of_b = [several if several is None else _fate(several, most) for several in other]
            beside = next((s for several in other for s in several or ()), None)
            yield Of(sweeps.label_of(there[0], beside), subject, key, (own[0], own[1]),
                     (of_a, of_b))  # fmt: skip


def _by_load(run: Run, subject: str) -> dict[tuple[at.Kind, float], list[Step]]:
    """Its steps by kind and level; none of one that is planned and was not driven."""
    found: dict[tuple[at.Kind, float], list[Step]] = {}
    for step in run.judged.steps:
        if step.subject == subject:
            found.setdefault((step.kind, at.level_of(step)), []).append(step)
    if subject:
        found |= {key: [] for key in sweeps.not_driven(run, subject) if key not in found}
    return found


def _same_load(
    steps: list[Step] | None, run: Run, there: Sequence[Step], before: Sequence[Run]
) -> list[Step] | None:
    """These steps, if they were driven and asked as the first's were; else None."""
    if not steps:
        return steps
    x = next((r.trials[s.trial] for r in before for s in there if s.trial in r.trials), None)
    y = run.trials.get(steps[0].trial)
    if x is None or y is None:
        return steps
    if sweeps.driven_otherwise(x, y):
        return None
    asked = x.status == y.status == "ok" and not answers.same_question(x, y)
    return None if asked else steps


def _most_failed(mine: Sequence[Sequence[Step] | None]) -> float | None:
    """The share of requests beyond which more fail than in the first; None: too many do there."""
    good = [share for several in mine if several and (share := _share(several)) is not None]
    well = [high for value, _, high in good if value < at.ERRORS]
    if 2 * len(well) <= len(good):
        return None
    return max(at.ERRORS, sum(well) / len(well))


def _share(steps: Sequence[Step]) -> tuple[float, float, float] | None:
    """The mean share of failed requests, and of both ends of its interval; None: not known."""
    own = [s.error_share for s in steps if s.error_share is not None and at.valid(s)]
    if not own:
        return None
    ends = [(e.interval.low, e.interval.high) if e.interval else (e.value, e.value) for e in own]
    n = len(own)
    return sum(e.value for e in own) / n, sum(x for x, _ in ends) / n, sum(y for _, y in ends) / n


def _fate(steps: Sequence[Step], most: float | None) -> Fate:
    """What became of a load in a run. ``most``: the share of requests that may fail there."""
    if not steps:
        return Fate("lost", NOT_DRIVEN, stands=False)
    good = [s for s in steps if _answered(s)]
    broken = [s for s in steps if not _answered(s) and _by_server(s)]
    failing = [s for s in good if most is not None and _fails(s, most)]
    why = [*map(_why, broken), *map(_failed, failing)]
    share = _share(good)
    told = partial(Fate, trials=len(good) + len(broken), broken=tuple(why))
    if good and most is not None and share is not None and share[1] > most:
        return told("lost", f"{percent(share[0])} of its requests failed")
    if good:
        return told(COUNTS)
    if broken:
        return told("lost", Counter(map(_why, broken)).most_common(1)[0][0],
                    stands=any(map(at.by_server, broken)))  # fmt: skip
    return told(SPOILT, Counter(map(_why, steps)).most_common(1)[0][0], stands=False)


def _answered(step: Step) -> bool:
    return at.valid(step) and step.answered is not None and step.answered.value > 0


def _by_server(step: Step) -> bool:
    """Whether it is the server's doing that a step does not count."""
    kinds = {f.kind for f in step.findings if f.severity == "invalid"}
    return step.status != "void" or at.by_server(step) or bool(kinds & lost.BY_SYSTEM)


def _fails(step: Step, most: float) -> bool:
    share = _share([step])
    return share is not None and share[1] > most


def _failed(step: Step) -> str:
    return f"{percent(step.error_share.value if step.error_share else 0.0)} of its requests failed"


def _why(step: Step) -> str:
    return step.reason.rstrip(".") or NONE_WELL


# Searches


def _limits(before: Sequence[Run], after: Sequence[Run], threshold: float) -> Iterator[Of]:
    """Each promise of each subject of the first run that the second searched too."""
    first = before[0]
    subjects = dict.fromkeys(c.subject for c in first.judged.capacity)
    names = [_names(first, runs, subjects) for runs in (before, after)]
    for subject in subjects:
        own = [[one.get(subject, "") for one in side] for side in names]
        for promise in (c.promise for c in first.judged.capacity if c.subject == subject):
            found = [
                [_capacity(run, name, promise) for run, name in zip(runs, called, strict=True)]
                for runs, called in zip((before, after), own, strict=True)
            ]
            holds = [c.holds for c in found[0] if c is not None and c.holds is not None]
            held = min(holds, default=None)
            searched = [
                next(((run, c) for run, c in zip(runs, side, strict=True) if c), None)
                for runs, side in zip((before, after), found, strict=True)
            ]
            if searched[0] and searched[1] and sweeps.searched_otherwise(*searched):  # type: ignore[arg-type]
                held = None
            fates = [
                [
                    None if not name or c is None else _of_search(run, name, c, held, threshold, i)
                    for run, name, c in zip(runs, called, side, strict=True)
                ]
                for i, (runs, called, side) in enumerate(
                    zip((before, after), own, found, strict=True)
                )
            ]
            if any(fates[1]):
                yield Of(subject, subject, (promise,), (own[0], own[1]), (fates[0], fates[1]), True)


def _capacity(run: Run, name: str, promise: str) -> Capacity | None:
    own = (c for c in run.judged.capacity if (c.subject, c.promise) == (name, promise))
    return next(own, None)


def _of_search(
    run: Run, name: str, one: Capacity, held: float | None, threshold: float, side: int
) -> Fate:
    """What became of a search. ``held``: the least rate that every run of the first sustained."""
    if name in at.all_otherwise(run.judged.steps):
        return Fate("lost", at.CHANGED)
    limit = one.holds if side else one.holds or one.fails
    failed = sweeps.failed_below(run, name, held if side else one.holds, limit)
    if failed and (side or not limit):
        return Fate("lost", failed)
    own = [s for s in run.judged.steps if s.subject == name]
    if own and not one.holds and not one.fails and not any(map(_counts, own)):
        return Fate(SPOILT, Counter(map(_why, own)).most_common(1)[0][0])
    closed = one.holds is not None and one.fails is not None
    reaches = held is None or (one.holds or 0.0) >= (1 - threshold) * held
    return Fate(COUNTS, stands=closed, known=closed or bool(side and reaches))


def _counts(step: Step) -> bool:
    return at.valid(step) or _by_server(step)


def _unknown(one: Of, lines: Sequence[RecordLine]) -> str:
    """Why the limits of the second may hide a loss: in half of its runs or more none was found that
    tells; empty: they may not.
    """
    own = [fate for fate in one.fates[1] if fate is not None and fate.what == COUNTS]
    unknown = [fate for fate in own if not fate.known]
    if not own or 2 * len(unknown) < len(own) or any(_resolved(line) for line in lines):
        return ""
    reason = next((line.reason for line in lines if line.reason), "no limit was found")
    return reason if len(own) == 1 else f"{reason}, in {len(unknown)} of {len(own)} runs"


def _resolved(line: RecordLine) -> bool:
    return line.verdict in ("slower", "differs", "faster", "not comparable")
