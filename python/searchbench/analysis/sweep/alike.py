"""Two points of one load, of one record or of two: did both do the same work there?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.compare import otherwise
from searchbench.analysis.compare.same_work import SIDES, Names, SameWork, under_load
from searchbench.analysis.judgement import Estimate, Step
from searchbench.analysis.sweep.points import Point
from searchbench.analysis.trial.measured import Samples
from searchbench.analysis.trial.replies import SIZES
from searchbench.record.trial import Load

Of = tuple[Samples, Samples]


def at_load(found: SameWork, a: Point, b: Point, samples: Of, names: Names = SIDES) -> SameWork:
    """``found``, and of replies that nobody read the sizes that they had in these steps."""
    return in_steps(found, (a.steps, b.steps), samples, names)


def in_steps(
    found: SameWork, steps: tuple[Sequence[Step], Sequence[Step]], samples: Of, names: Names = SIDES
) -> SameWork:
    """``found``, and of replies that nobody read the sizes that they had in steps of either."""
    if not found.not_read:
        return found
    changed = ""
    for name, own in zip(names, steps, strict=True):
        if seen := [f.number for s in own for f in s.findings if f.kind == SIZES]:
            changed = f"replies of {name} had other sizes under load than alone ({seen[-1]})"
    x, y = (_sizes([s.trial for s in own], of) for own, of in zip(steps, samples, strict=True))
    return under_load(found, x, y, changed)


def floor(
    found: SameWork,
    points: tuple[Point, Point],
    samples: Of,
    loads: tuple[Load, Load],
    metric: str,
    ratio: Estimate,
    *,
    rest: bool = False,
    seen: bool = False,
) -> tuple[float, str]:
    """The ratio that what is answered otherwise could make, and how, a clause: where all requests
    count, and of the ``rest`` alone.

    ``ratio``: above 1 where the second is better. The greatest of all blocks. ``seen``: as of
    ``otherwise.by_the_queue``.
    """
    other = found.elsewhere
    if not other.size or ratio.value == 1:
        return 1.0, ""
    a, b = points
    rival_at = points[int(ratio.value < 1)]
    at = int(ratio.value > 1)
    mine, theirs = ({s.block: s.trial for s in p.steps} for p in (a, b))
    both = mine.keys() & theirs.keys()
    trials = [(mine[k], theirs[k]) for k in sorted(both)] or [(a.steps[0].trial, b.steps[0].trial)]
    found_in, alone = [], []
    for pair in trials:
        sides = [own.measured(trial) for own, trial in zip(samples, pair, strict=True)]
        winner, rival = sides[at], sides[1 - at]
        slowed = otherwise.by_the_queue(winner, rival, loads[1 - at], other, metric, seen=seen)
        made = slowed if rest else otherwise.floor(winner, rival, other, metric, slowed)
        alone.append(1.0 if rest else otherwise.floor(winner, rival, other, metric))
        if metric == "answered" and rival_at.kind != "closed":
            made = max(made, otherwise.behind(rival, other))
        found_in.append(made)
    themselves = not rest and max(alone) >= otherwise.least(ratio)
    return max(found_in), found.made if themselves else found.shared


def _sizes(trials: Sequence[str], samples: Samples) -> NDArray[np.int64]:
    """By request the mean size of the replies to it in all these trials; 0: not known."""
    each = [samples.sizes(trial) for trial in trials]
    n = max((counts.size for counts, _ in each), default=0)
    counts, sizes = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for count, size in each:
        counts[: count.size] += count
        sizes[: size.size] += size
    return sizes // np.maximum(1, counts)
