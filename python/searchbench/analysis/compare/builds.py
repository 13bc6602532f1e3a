"""Which build of an index each trial was measured on, and what two builds may make of a ratio."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

from searchbench.analysis.judgement import Estimate
from searchbench.analysis.stats.distributions import normal
from searchbench.analysis.stats.intervals import ALPHA
from searchbench.analysis.words import listed
from searchbench.record import Record

# How far the speeds of two builds of one index are taken to scatter (standard deviation) where
# nothing was built twice: segments fall otherwise, pages lie elsewhere. A convention.
SD = 0.02
# The same of two starts of one system, which all steps of a sweep share: memory is laid out
# otherwise, a compiler finds other paths hot, threads fall on other cores. A convention too, and a
# wide one, as nothing on record hints at how far starts of this system scatter.
STARTS_SD = 0.05

Builds = Mapping[str, Mapping[int, str]]  # by treatment and block, what built the index


def of(record: Record) -> dict[str, dict[int, str]]:
    """By treatment and block the trial that built its index; of a system that ran already, the
    system. Absent where there is no index: nothing was put in.
    """
    found: dict[str, dict[int, str]] = {}
    for trial in record.trials:
        if trial.status != "ok" or trial.control:
            continue
        build = f"attached {trial.system}" if trial.attached is not None else ""
        if not build and trial.ingest is not None:
            build = trial.ingest.reused or trial.trial
        if build:
            found.setdefault(trial.treatment, {})[trial.block] = build
    return found


def once(a: str, b: str, found: Builds) -> bool:
    """Whether their difference may be that of two builds: not one index, and not one each block."""
    mine, other = found.get(a, {}), found.get(b, {})
    blocks = mine.keys() & other.keys()
    if len(blocks) < 2 or all(mine[block] == other[block] for block in blocks):
        return False
    return any(len({side[block] for block in blocks}) < len(blocks) for side in (mine, other))


def over_runs(a: Sequence[Mapping[int, str]], b: Sequence[Mapping[int, str]], known: bool) -> bool:
    """The same of runs on either side; the builds of each by block, no name given to two of them.

    ``known``: how much runs differ is, and builds are in that, if all runs are built alike (once,
    or in each block) and no two of a side have a build in common.
    """
    sides = [[set(run.values()) for run in side if run] for side in (a, b)]
    if len(set().union(*sides[0], *sides[1])) < 2:
        return False
    once = {len(set(run.values())) < len(run) for run in (*a, *b) if run}
    if not known:
        return True in once
    return len(once) > 1 or any(x & y for side in sides for x, y in combinations(side, 2))


def alike(pairs: int, sd: float = SD) -> float:
    """The ratio that two builds of equal systems pass in 5 % of studies with so many ``pairs``, or
    two of what else scatters by ``sd``.

    Two builds differ by √2 standard deviations; Šidák (1967) over the pairs, which holds however
    they depend on each other. 1.06 for one pair.
    """
    each = 1 - (1 - ALPHA) ** (1 / max(1, pairs))
    return math.exp(normal(1 - each / 2) * math.sqrt(2) * sd)


def floor(pairs: int, ratio: Estimate, sd: float = SD) -> float:
    """The same with the noise of this ``ratio``, half its interval, on top, in quadrature, as what
    is independent adds up.
    """
    span = ratio.interval
    noise = (math.log(span.high) - math.log(span.low)) / 2 if span else 0.0
    return math.exp(math.hypot(math.log(alike(pairs, sd)), noise))


def sentence(floors: Sequence[float]) -> str:
    """That two builds differ, which no interval covers; empty where all ``floors`` are 1."""
    least = min((size for size in floors if size > 1), default=1.0)
    if least == 1:
        return ""
    return (
        "An index was built only once, or used as it was found, so no difference below "
        f"{100 * (least - 1):.1f} % is resolved: another build of it may be faster or slower. By "
        f"how much is not known: {100 * SD:g} % (standard deviation) is assumed, and the noise of "
        'the ratio is added. To know, build it in each block ([ingest] index = "per-block").'
    )


def said(ratio: float) -> str:
    """Why a difference is not resolved that is below this floor."""
    share = f"{100 * (ratio - 1):.1f} %"
    return (
        f"the index was built once, or used as it was found, and below {share} a difference may be "
        "that of two builds"
    )


DRIVE_AGAIN = "drive each several times (--repeat 5), which starts it anew"


def of_starts(floors: Sequence[float], again: str = DRIVE_AGAIN, *, found: bool = False) -> str:
    """That two starts differ, which no interval covers; empty where all ``floors`` are 1.

    ``again``: what to do about it, a clause. ``found``: systems ran already.
    """
    least = min((size for size in floors if size > 1), default=1.0)
    if least == 1:
        return ""
    once = "Each system was started once"
    if found:
        once = "Systems that ran already were not started by searchbench: one start of each was met"
    return (
        f"{once}, so no difference below {100 * (least - 1):.0f} % is "
        "resolved: another start of a system may be faster or slower at all loads. By how much is "
        f"not known: {100 * STARTS_SD:g} % (standard deviation) is assumed, and the noise of the "
        f"ratio is added. To know it, {again}."
    )


def said_of_starts(ratio: float, *, found: bool = False) -> str:
    """Why a difference is not resolved that is below this floor. ``found``: they ran already."""
    share = f"{100 * (ratio - 1):.0f} %"
    once = "each was started once"
    if found:
        once = "they ran already and were not started by searchbench"
    return f"{once}, and below {share} a difference may be that of two starts"


def of_running(names: Sequence[str]) -> str:
    """That one start of each of these systems was met, which ran already; empty where none did."""
    if not names:
        return ""
    each = "it" if len(names) == 1 else "each"
    return (
        f"{listed(names)} ran already, so one start of {each} was measured, however often it was "
        "driven. Another start may be faster or slower. By how much shows only if searchbench "
        "starts it, or if records of several starts are compared (compare --same)."
    )
