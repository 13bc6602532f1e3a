"""What roles got done beside the readers of the second record: less than in the first?

The lines of a comparison are about the readers. That a writer gets a tenth of its documents
acknowledged is in none of them, and may be why the readers are as fast as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log

import numpy as np

from searchbench.analysis.compare import doubts, less_beside
from searchbench.analysis.compare.further import Further, gathered
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judgement import RecordLine, TrialResult
from searchbench.analysis.stats.intervals import welch_log_ratio
from searchbench.analysis.words import digits

_DONE = {
    "write": "had {now} documents acknowledged per second",
    "read": "had {now} requests answered per second",
    "publish": "published {now} times per second",
    "job": "ran its job {now} times per second",
}


def of(before: Sequence[Run], after: Sequence[Run], lines: Sequence[RecordLine]) -> Further:
    """Of each treatment of which a role surely got less done: whether that is a loss, a comparison
    of the readers cannot tell.
    """
    found = []
    for line in lines:
        sides = doubts.trials_of(line, before, after)
        found += [(line.label, why) for why in _less(sides[0], sides[1])]
    return Further(not_known=gathered(dict.fromkeys(found)))


def _less(a: Sequence[TrialResult], b: Sequence[TrialResult]) -> Iterator[str]:
    mine, theirs = less_beside.by_key(a), less_beside.by_key(b)
    for (role, does, asked), first in mine.items():
        second = theirs.get((role, does, asked))
        if not second or not less_beside.less(second, first):
            continue
        # Trials scatter: what may be chance is not said. Of too few nothing tells that. Half of a
        # time more has a logarithm where there was none.
        half = less_beside.grain(first, second) / 2
        sides = [np.array([one.per_s + half for one in side]) for side in (first, second)]
        span = welch_log_ratio(*sides)
        if span is not None and span[0].high >= log(less_beside.LEAST):
            continue
        then, now = (digits(less_beside.mean(side)) for side in (first, second))
        got = _DONE[does].format(now=now)
        yield f"its role {role} {got} in the second record, and {then} in the first"
