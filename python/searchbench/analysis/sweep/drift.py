"""Load or time: did a subject become slower or faster from block to block, at the same loads?

The steps of a block are driven in the order of the study, mostly by ascending load. So a server
that becomes slower with the hours looks like one that more load makes slower. Only the same load,
driven again in a later block, shows the difference; and if each block started its system anew, only
where the steps were in another order.

Where blocks had different orders, a load is driven early in one and late in another, and the change
with time is that of loads *within* blocks: whatever makes one block faster than another as a whole
is left out of it, and said by itself (a jump). Where all had one order, only whole blocks can be
held against each other. Systems that each block started anew differ from start to start too, which
is no drift: there the blocks must agree better than starts that merely scatter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate
from searchbench.analysis.stats import intervals, within
from searchbench.analysis.stats.distributions import f_quantile, student
from searchbench.analysis.sweep.points import Point
from searchbench.analysis.words import listed, percent

F64 = NDArray[np.float64]

MATTERS = 1.05  # less than this in the time of one pass alters nothing that is said of steps
LEVEL = 0.95  # that a trend, of whichever direction, is more than scatter
TREND = 4  # blocks, from which on they show their own scatter about a trend
TURNED = 0.25  # share of the spread of times within blocks that is not the same in all of them
STARTS = 3  # the same where each started its system anew: two of them scatter, and show no trend
MEANWHILE = "A server or machine that became slower meanwhile looks like an effect of the load."

JUMP = 0.99  # that blocks differ as wholes, and not only as their loads scatter


@dataclass(frozen=True)
class Drift:
    """``ratio``: of the speed at the end of one pass through the loads over that at its beginning,
    at the same loads; below 1 the subject became slower. ``blocks``: that show it. ``sure``: more
    than blocks that merely scatter would show in 95 %; else such blocks look so too, and often.
    """

    ratio: float
    blocks: int
    sure: bool = True


@dataclass(frozen=True)
class Jump:
    """``ratio``: of the speed in the block ``fastest`` over that in the block ``slowest``, at the
    same loads.
    """

    ratio: float
    fastest: int
    slowest: int


def jump(own: Sequence[Point]) -> Jump | None:
    """Whether the blocks of a system that ran on differ as wholes by more than the scatter of
    their loads; None where they do not, or by too little to matter, or it cannot be told.

    Analysis of variance of the logs of the speeds in two ways without replication, by block and
    load (F with B - 1 and (B - 1)(L - 1) degrees of freedom). Loads that not all blocks had are
    left out.
    """
    speeds = [_speeds(point) for point in own]
    blocks = sorted({block for one in speeds for block in one})
    used = [one for one in speeds if len(one) == len(blocks)]
    if len(blocks) < 2 or len(used) < 2:
        return None
    logs = np.log([[one[block].value for one in used] for block in blocks])
    of_block = logs.mean(axis=1)
    rest = logs - of_block[:, None] - logs.mean(axis=0) + logs.mean()
    freedom = len(blocks) - 1, (len(blocks) - 1) * (len(used) - 1)
    among = len(used) * float(((of_block - of_block.mean()) ** 2).sum()) / freedom[0]
    chance = float((rest**2).sum()) / freedom[1]
    low, high = int(of_block.argmin()), int(of_block.argmax())
    size = float(of_block[high] - of_block[low])
    if size < math.log(MATTERS) or among <= f_quantile(JUMP, *freedom) * chance:
        return None
    return Jump(math.exp(size), blocks[high], blocks[low])


def of(own: Sequence[Point], order: Mapping[str, int], *, anew: bool = False) -> Drift | None:
    """The drift of one subject; None where blocks show none that matters, or cannot.

    ``own``: its points. ``order``: by trial, when it was driven, counted in steps of the sweep.
    ``anew``: each block started it.
    """
    speeds = [_speeds(point) for point in own]
    blocks = sorted({block for one in speeds for block in one})
    used = [i for i, one in enumerate(speeds) if len(one) == len(blocks)]
    at = [{s.block: order[s.trial] for s in point.steps} for point in own]
    passes = [[one[block] for one in at if block in one] for block in blocks]
    if len(blocks) < 2 or not used:
        return None
    pass_steps = sum(max(steps) - min(steps) for steps in passes) / len(blocks)
    when = np.array([[float(at[i][block]) for i in used] for block in blocks])
    logs = np.log([[speeds[i][block].value for i in used] for block in blocks])
    turned = _within(when, logs)
    if turned is not None:
        slope, sure = turned
        matters = sure and abs(slope * pass_steps) >= math.log(MATTERS)
        return Drift(math.exp(slope * pass_steps), len(blocks)) if matters else None
    x, y = (of_block - of_block.mean() for of_block in (when.mean(axis=1), logs.mean(axis=1)))
    slope = float((x * y).sum() / (x * x).sum())
    change = slope * pass_steps
    if abs(change) < math.log(MATTERS):
        return None
    sure = False
    if len(blocks) >= STARTS:
        rest, freedom = y - slope * x, len(blocks) - 2
        error = math.sqrt(float((rest * rest).sum()) / freedom / float((x * x).sum()))
        sure = abs(slope) > student(0.5 + LEVEL / 2, freedom) * error
    if anew or len(blocks) >= TREND:
        shown = sure
    elif len(blocks) > 2:
        shown = all((b - a) * slope > 0 for a, b in pairwise(y.tolist()))
    else:
        shown = _all_changed([speeds[i] for i in used], slope)
    return Drift(math.exp(change), len(blocks), sure) if shown else None


def _within(when: F64, logs: F64) -> tuple[float, bool] | None:
    """The change of log speed with a step of time within blocks, and whether it is more than
    scatter; None where the blocks had one order, or there is no scatter to hold it against.

    ``when``, ``logs``: by block and load. Ordinary least squares with an effect of each load, one
    of each block, and one slope; in a balanced table that is the slope of what both means leave.
    """
    x, y = (t - t.mean(axis=0) - t.mean(axis=1, keepdims=True) + t.mean() for t in (when, logs))
    own, freedom = when - when.mean(axis=1, keepdims=True), (len(x) - 1) * (x.shape[1] - 1) - 1
    told = float((x * x).sum())
    if freedom < 1 or told < TURNED * float((own * own).sum()):
        return None
    slope = float((x * y).sum()) / told
    rest = y - slope * x
    error = math.sqrt(float((rest * rest).sum()) / freedom / told)
    return slope, abs(slope) > student(0.5 + LEVEL / 2, freedom) * error


def sentence(name: str, found: Drift | None) -> str:
    """That a subject drifted, and what that leaves unknown; empty: it is not shown to."""
    if found is None:
        return ""
    how = f"{'slower' if found.ratio < 1 else 'faster'} (by about {percent(abs(found.ratio - 1))}"
    scatter = f", or its blocks only scatter ({TREND} or more of them would tell)"
    return (
        f"{name} became {how} in the time of one pass, at the same loads, over {found.blocks} "
        f"blocks){'' if found.sure else scatter}, so whether the load or the time made the "
        "difference between two of its steps is unknown. Look for what grows meanwhile (a leak, "
        "merges, heat), or list the loads in another order."
    )


def jumped(name: str, found: Jump | None) -> str:
    """That a system that ran on was another in another block; empty: it is not shown to be."""
    if found is None:
        return ""
    return (
        f"{name} was {percent(found.ratio - 1)} faster in block {found.fastest} than in block "
        f"{found.slowest} at the same loads, which is more than scatter explains. So the system "
        "or its machine was not the same in both blocks, and a mean over the blocks may be a "
        "speed that the system never had: find out what changed, and measure again."
    )


def in_every_block(names: Sequence[str]) -> str:
    """That each block began with new processes of these, which drove loads in one order."""
    return (
        f"Each block started {listed(names)} again and drove the loads in the same order, so a "
        "warm-up or a leak looks like an effect of the load in every block. Measure again: every "
        "second block then drives the loads backwards."
    )


def close(own: Sequence[Point], order: Mapping[str, int]) -> list[Point]:
    """The loads of a subject whose drives, in all of its blocks, lie within at most half of the
    time from its first step to its last, so that what lasted no longer could have met all of them.

    That is so of two blocks, the second of which goes backwards: the loads at the turn are driven
    one after another. ``order`` as of ``of``, which stands for the time.
    """
    blocks = {s.block for p in own for s in p.steps}
    if len(blocks) < 2 or len(own) < 2:
        return []
    whole = _extent([order[s.trial] for p in own for s in p.steps])
    each = ((p, _extent([order[s.trial] for s in p.steps])) for p in own)
    return [p for p, extent in each if len(p.steps) == len(blocks) and 2 * extent <= whole]


def _extent(places: Sequence[int]) -> int:
    return max(places) - min(places) + 1


def at_the_turn(name: str, loads: str, blocks: int) -> str:
    """That all drives of some ``loads``, in words, were close to each other in time."""
    return (
        f"{'Both' if blocks == 2 else f'All {blocks}'} passes drove {name} at {loads} close "
        "together in time: within half of the run or less. If the machine or the server was "
        "slower or faster for a while, that would look like an effect of these loads. More "
        "passes (--repeat 5) drive them at other times too."
    )


def hidden(own: Sequence[Point], order: Mapping[str, int], *, anew: bool = False) -> bool:
    """Whether no load was driven at two ages of the system, as loads rose or fell all the time.

    ``anew``: each block started it; else all blocks had one that became older.
    """
    blocks = sorted({s.block for p in own for s in p.steps})
    if len(own) < 2 or (len(blocks) > 1 and not anew):
        return False
    passes = [[order[s.trial] for p in own for s in p.steps if s.block == b] for b in blocks]
    rising, falling = (
        all(when == sorted(when, reverse=back) for when in passes) for back in (False, True)
    )
    return (rising or falling) and any(len(when) > 1 for when in passes)


def _speeds(point: Point) -> dict[int, Estimate]:
    """By block, what grows with the speed of the server at this load, in 1/s.

    Of a rate at which it does not fall behind, that is no throughput: it is one over the median
    response.
    """
    if point.kind == "closed" or point.falls_behind:
        return point.values("answered")
    return {block: intervals.inverse(e) for block, e in point.values("response_p50").items()}


def _all_changed(speeds: Sequence[Mapping[int, Estimate]], slope: float) -> bool:
    """Whether two blocks differ at every load in one direction, and at most loads surely."""
    ratios = [within.ratio(*(one[block] for block in sorted(one)))[0] for one in speeds]
    same = all(math.log(ratio.value) * slope > 0 for ratio in ratios)
    return same and 2 * sum(within.resolved(ratio) for ratio in ratios) > len(ratios)
