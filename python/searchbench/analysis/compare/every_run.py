"""Two sweeps, or two searches, over all runs of both sides.

The runs that stand for a load or a promise are the first of either side in which it counts, so the
order in which runs are given decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from searchbench.analysis.compare import limits_met, lost, sweeps, treatments
from searchbench.analysis.compare.fate import COUNTS, Of
from searchbench.analysis.compare.loads_met import loads
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judgement import RecordLine
from searchbench.errors import SearchbenchError

Over = Callable[
    [RecordLine, float | None, Sequence[RecordLine], Sequence[RecordLine]], sweeps.Draft
]
Match = Callable[[Run, Run], sweeps.Matched]


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
        if not one.capacity:
            of_load = lost.Case(one.label, a, b, lines, b.runs > 0, self._apart(one))
            # Loads of one kind are in ascending order.
            return replace(of_load, lacks=lost.NOT_WELL, subject=f"{one.subject} {one.key[0]}")
        unknown = limits_met.unknown(one, lines)
        return lost.Case(
            one.label, a, b, lines, b.runs > 0, self._apart(one), compared=False, unknown=unknown,
            lacks=lost.NOT_WELL, notes=[] if unknown else [*limits_met.not_found(one)],
        )  # fmt: skip

    def _apart(self, one: Of) -> bool:
        """Whether both answer nothing alike."""
        x, y = (names[i] for names, i in zip(one.names, one.stand, strict=True))
        found = self.matched.agreed.get(x if x == y else f"{x} and {y}")
        return found is not None and found.queries > 0 and not found.agreeing


def find(before: Sequence[Run], after: Sequence[Run], threshold: float, over: Over) -> Found:
    """Match all runs, and give each line over all of them (``over``: of a draft and the lines of
    further runs of either side). SearchbenchError where a further run has nothing in common, unless
    all of it failed or was spoilt, or the runs are of one class.
    """
    capacity = {before[0].judged.measure, after[0].judged.measure} == {"capacity"}
    each = [*(limits_met.limits(before, after, threshold) if capacity else loads(before, after))]
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
    agreed = dict(main.agreed)  # of all runs of the second, as they are least alike
    for run in after:
        for label, found in matched(before[i], run).agreed.items():
            if label in agreed and found.differing > agreed[label].differing:
                agreed[label] = found
    return Found(replace(main, only=(only[0], only[1]), agreed=agreed), (i, j), each)


def _draft(
    one: Of, before: Sequence[Run], after: Sequence[Run], matched: Match, over: Over
) -> None:
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
        counted = next((x for side in same for x in side if x.over == "counted"), None)
        if counted is not None and line.over != "counted":
            line = replace(line, over="counted", reason=counted.reason)
        line, p = over(line, p, *same)
        low = one.unordered(line.ratio)
        if low and line.verdict != "not comparable":
            why = f"{low}, so which is more depends on the rate"
            said = (line.reason,) if "depends on the rate" in line.reason else (line.reason, why)
            reason = "; ".join(filter(None, said))
            line, p = replace(line, verdict="not resolved", reason=reason), None
        elif (why := one.beyond(line.ratio)) and line.verdict != "not comparable":
            reason = "; ".join(filter(None, (line.reason, why)))
            line, p = replace(line, verdict="not resolved", reason=reason), None
        one.drafts.append((line, p))


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
