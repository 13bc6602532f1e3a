"""What roles got done beside the readers of the second record: less than in the first?

The lines of a comparison are about the readers. That a writer gets a tenth of its documents
acknowledged is in none of them, and may be why the readers are as fast as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log
from statistics import fmean

import numpy as np

from searchbench.analysis.compare import less_beside
from searchbench.analysis.compare.further import Further, gathered
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judgement import RecordLine, TrialResult
from searchbench.analysis.stats.intervals import welch_log_ratio
from searchbench.analysis.words import digits


def of(before: Sequence[Run], after: Sequence[Run], lines: Sequence[RecordLine]) -> Further:
    """Of each treatment of which a role surely got less done: whether that is a loss, a comparison
    of the readers cannot tell.
    """
    found = []
    for line in {line.label: line for line in lines}.values():
        sides = [[*_trials(runs, line)] for runs in (before, after)]
        found += [(line.label, why) for why in _less(sides[0], sides[1])]
    return Further(not_known=gathered(found))


def _less(a: Sequence[TrialResult], b: Sequence[TrialResult]) -> Iterator[str]:
    mine, theirs = less_beside.per_s(a), less_beside.per_s(b)
    for (role, does, asked), first in mine.items():
        second = theirs.get((role, does, asked))
        if not second or fmean(second) >= less_beside.LEAST * fmean(first):
            continue
        # Trials scatter: what may be chance is not said. Of too few nothing tells that.
        span = welch_log_ratio(np.array(first), np.array(second))
        if span is not None and span[0].high >= log(less_beside.LEAST):
            continue
        what = "documents" if does == "write" else "requests"
        done = "acknowledged" if does == "write" else "answered"
        yield (
            f"its role {role} had {digits(fmean(second))} {what} a second {done} in the second, "
            f"and {digits(fmean(first))} in the first"
        )


def _trials(runs: Sequence[Run], line: RecordLine) -> Iterator[TrialResult]:
    for run in runs:
        key = run.key_of(line)
        if key is not None and key in run.by_key:
            yield from run.valid(key).values()
