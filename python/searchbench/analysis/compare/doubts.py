"""What else could make the ratio of two records: states, failed requests, builds, few queries."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import product

from searchbench.analysis.compare import builds, failed, standing, state
from searchbench.analysis.compare.run import Key, Run
from searchbench.analysis.judgement import RecordLine


def built_once(
    lines: Iterable[RecordLine], before: Sequence[Run], after: Sequence[Run]
) -> set[Key]:
    """Treatments whose difference may be that of two builds that have no replicate."""
    found = ((before[0].key_of(line), line.run_sd is not None) for line in lines if line.ratio)
    return {
        key
        for key, known in dict.fromkeys(found)
        if key is not None
        and builds.over_runs(
            [run.builds(key, 0) for run in before], [run.builds(key, 1) for run in after], known
        )
    }


def of(
    line: RecordLine, before: Sequence[Run], after: Sequence[Run], once: Collection[Key]
) -> tuple[RecordLine, Sequence[str]]:
    """The line with what else could make its ratio (states, failed requests, builds), and why it
    is not resolved if any of these could. ``once``: treatments with builds that have no replicate.
    """
    key = before[0].key_of(line)
    if line.ratio is None or key is None:
        return line, ()
    sides = [
        [
            (f"further run {i} of the {which}" if i else f"the {which}", run)
            for i, run in enumerate(runs)
            if key in run.by_key and run.first_trial(key)
        ]
        for which, runs in (("first", before), ("second", after))
    ]
    log = math.log(line.ratio.value)
    states = max(
        (state.floor((x, a.states[key]), (y, b.states[key]), log)
         for (x, a), (y, b) in product(*sides)),
        key=lambda one: one.ratio,
    )  # fmt: skip
    shares = [max(failed.share(run.by_key[key]) for _, run in side) for side in sides]
    winners, rivals = sides if log < 0 else sides[::-1]
    by_failed = max(
        failed.floor(a.by_key[key], b.by_key[key], a.load(key), line.metric)
        for (_, a), (_, b) in product(winners, rivals)
    )
    by_build = builds.floor(len(once), line.ratio) if key in once else 1.0
    own: tuple[str, ...] = (
        line.reason,
        failed.said([("the first", shares[0]), ("the second", shares[1])]),
    )
    used, measured = line.queries_used, line.queries_measured
    if measured is None:
        own += ("over all requests, as it is not known of each",)
    elif not standing.covered(line):
        own += (
            f"in one block only {measured} of these {used} queries were measured on both sides",
        )
    line = replace(
        line, state=states.kind, state_floor=states.ratio, failed=(shares[0], shares[1]),
        failed_floor=by_failed, build_floor=by_build, reason="; ".join(filter(None, own)),
    )  # fmt: skip
    winner = "the second" if log > 0 else "the first"
    limits = (
        (states.ratio, states.said),
        (by_failed, failed.why(winner)),
        (by_build, builds.said(by_build)),
    )
    return line, [why for most, why in limits if most > 1 and abs(log) <= math.log(most)]
