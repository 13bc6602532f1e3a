"""What else could make the ratio of two records: states, failed requests, builds, few queries."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain, product, starmap

from searchbench.analysis.compare import builds, failed, kept, otherwise, standing, state, whole
from searchbench.analysis.compare.run import Key, Run
from searchbench.analysis.judgement import RecordLine
from searchbench.analysis.words import of_job


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
    line: RecordLine,
    before: Sequence[Run],
    after: Sequence[Run],
    once: Collection[Key],
    trials: bool,
) -> tuple[RecordLine, Sequence[str]]:
    """The line with what else could make its ratio (states, failed requests, builds), and why it
    is not resolved if any of these could. ``once``: treatments with builds that have no replicate;
    ``trials``: else the records are sweeps.
    """
    if line.ratio is None:
        return line, ()
    ratio, log = line.ratio, math.log(line.ratio.value)
    gain = log > 0 and otherwise.least(ratio) <= line.answers_floor > 1
    if line.metric.startswith("capacity"):  # a search drives rates of its own, and has no state
        return line, _once(line) if gain else []
    sides = [
        [
            (f"further run {i} of the {which}" if i else f"the {which}", run, key)
            for i, run in enumerate(runs)
            if (key := run.key_of(line)) in run.by_key and key and run.first_trial(key)
        ]
        for which, runs in (("first", before), ("second", after))
    ]
    if not all(sides):
        return line, ()
    if of_job(line.metric):  # it has no state and no requests, and makes what is built
        return line, [line.answers_doubt] if gain else []
    states = max(
        (state.floor((x, a.states[i]), (y, b.states[j]), log)
         for (x, a, i), (y, b, j) in product(*sides)),
        key=lambda one: one.ratio,
    )  # fmt: skip
    line = replace(line, state=states.kind, state_floor=states.ratio)
    limits = [(states.ratio, states.said)]
    line = _of_requests(line, sides, once, trials)
    at = int(log > 0)
    winner = ("the first", "the second")[at]
    others = any(failed.otherwise(run.by_key[key]) for _, run, key in sides[at])
    limits += [
        (line.failed_floor, failed.why(winner, failed=bool(line.failed[at]), otherwise=others)),
        (line.build_floor, builds.said(line.build_floor)),
    ]
    if gain:
        limits.append((math.inf, line.answers_doubt))
    if log > 0 and line.over == "counted":
        limits.append((math.inf, "a gain is not resolved without one mix of queries"))
    elif line.over == "counted" and not all(starmap(_clients_known, chain(*sides))):
        limits.append((math.inf, whole.NO_CLIENTS))
    return line, [why for most, why in limits if most > 1 and abs(log) <= math.log(most)]


def _once(line: RecordLine) -> list[str]:
    """The doubt about answers, said once: the line's reason may have it."""
    return ["" if line.answers_doubt in line.reason else line.answers_doubt]


def _clients_known(_: str, run: Run, key: Key) -> bool:
    """Whether it is on record of every trial which client asked what; of one client it always is.

    Else counted requests are weighed by what may be whom the server favours.
    """
    load = run.load(key)
    return (load.clients or 1) == 1 or all(
        run.samples.measured(t.trial).client is not None for t in run.valid(key).values()
    )


def _of_requests(
    line: RecordLine,
    sides: Sequence[Sequence[tuple[str, Run, Key]]],
    once: Collection[Key],
    trials: bool,
) -> RecordLine:
    """The line with its floors of failed requests and builds, and a remark on few queries."""
    assert line.ratio is not None
    shares = [max(failed.share(run.by_key[key]) for _, run, key in side) for side in sides]
    winners, rivals = sides if line.ratio.value < 1 else sides[::-1]
    by_failed = max(
        max(
            failed.floor(a.by_key[i], b.by_key[j], a.load(i), line.metric),
            failed.uncounted(a.entire[i], b.entire[j], (a.load(i), b.load(j)), line.metric),
        )
        for (_, a, i), (_, b, j) in product(winners, rivals)
    )
    if line.metric == "throughput":
        each = [[kept.of(run.by_key[key], run.load(key), run.samples) for _, run, key in side]
                for side in (winners, rivals)]  # fmt: skip
        by_failed = max(by_failed, kept.made(*each))
    key = sides[0][0][2]
    by_build = builds.floor(len(once), line.ratio) if key in once else 1.0
    own = [line.reason, failed.said([("the first", shares[0]), ("the second", shares[1])])]
    used, measured = line.queries_used, line.queries_measured
    if measured is None:
        own.append("over all requests, as it is not known of each" if trials else "")
    elif not standing.covered(line):
        which = f"these {used} queries" if trials else f"{used} queries"
        own.append(f"in one block only {measured} of {which} were measured on both sides")
    return replace(
        line, failed=(shares[0], shares[1]), failed_floor=by_failed, build_floor=by_build,
        reason="; ".join(filter(None, own)),
    )  # fmt: skip
