"""What became of each load of a sweep in all runs of both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from searchbench.analysis.agreement import answers
from searchbench.analysis.compare import lost, sweeps
from searchbench.analysis.compare.fate import COUNTS, SPOILT, Fate, Of, by_server, names, why
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judgement import Step
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep.words import percent
from searchbench.analysis.trial import driven

NOT_DRIVEN = "it was not driven"


def loads(before: Sequence[Run], after: Sequence[Run]) -> Iterator[Of]:
    """Each load at which a run of the first was driven."""
    first = before[0]
    subjects = dict.fromkeys(s.subject for s in first.judged.steps)
    subjects |= dict.fromkeys(driven.subjects(first.record).values())
    called_in = [names(first, runs, subjects) for runs in (before, after)]
    for subject in subjects:
        own = [[one.get(subject, "") for one in side] for side in called_in]
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
            most, kept = _most_failed(mine), _kept_up(mine)
            of_a = [None if several is None else _fate(several, at.ERRORS, kept, run)
                    for several, run in zip(mine, before, strict=True)]  # fmt: skip
            of_b = [None if several is None else _fate(several, most, kept, run)
                    for several, run in zip(other, after, strict=True)]  # fmt: skip
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


def _kept_up(mine: Sequence[Sequence[Step] | None]) -> bool:
    """Whether most drives of the first kept up with a rate; of clients there is nothing to keep."""
    good = [s.keeps_up for several in mine for s in several or () if at.valid(s)]
    return 2 * sum(up is True for up in good) > len(good)


def _fate(steps: Sequence[Step], most: float | None, kept: bool, run: Run) -> Fate:
    """What became of a load in a run. ``most``: the share of requests that may fail there.
    ``kept``: whether its rate is to be kept up with; a drive that falls behind has failed.
    """
    if not steps:
        if not run.aborted:
            return Fate(SPOILT, lost.ENDED, stands=False)
        return Fate("lost", NOT_DRIVEN, stands=False)
    good = [s for s in steps if _answered(s)]
    broken = [s for s in steps if not _answered(s) and by_server(s)]
    failing = [s for s in good if most is not None and _fails(s, most)]
    behind = [s for s in good if kept and s.falls_behind and s not in failing]
    whys = [*map(why, broken), *map(_failed, failing), *map(_behind, behind)]
    share = _share(good)
    told = partial(Fate, trials=len(good) + len(broken), broken=tuple(whys))
    if good and most is not None and share is not None and share[1] > most:
        return told("lost", f"{percent(share[0])} of its requests failed")
    if good:
        return told(COUNTS)
    if broken:
        return told("lost", Counter(map(why, broken)).most_common(1)[0][0],
                    stands=any(map(at.by_server, broken)))  # fmt: skip
    return told(SPOILT, Counter(map(why, steps)).most_common(1)[0][0], stands=False)


def _behind(step: Step) -> str:
    share = step.achieved.value if step.achieved is not None else 0.0
    return f"it fell behind the rate, of which it answered {percent(share)} in time"


def _answered(step: Step) -> bool:
    return at.valid(step) and step.answered is not None and step.answered.value > 0


def _fails(step: Step, most: float) -> bool:
    share = _share([step])
    return share is not None and share[1] > most


def _failed(step: Step) -> str:
    return f"{percent(step.error_share.value if step.error_share else 0.0)} of its requests failed"
