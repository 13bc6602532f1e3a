"""Jobs of two treatments, paired by block: the times of what each did once."""

from __future__ import annotations

import math
from dataclasses import replace

from searchbench.analysis.judgement import Comparison, TreatmentResult
from searchbench.study.plan import Judging


def metrics(judging: Judging) -> tuple[str, ...]:
    """What is compared of the jobs: how long each took."""
    return tuple(f"{job}_s" for job in judging.jobs)


def draft(
    a: TreatmentResult, b: TreatmentResult, metric: str, floor: float
) -> tuple[Comparison, list[float]]:
    """The comparison before it is tested, and the log of its ratio in each block."""
    blank = Comparison(a.treatment, b.treatment, metric, "not resolved", None, None, floor, 0, 0)
    found = [
        {t.block: t.figures[metric].value for t in each.trials if t.counts and metric in t.figures}
        for each in (a, b)
    ]
    if lacking := [t.label for t, own in zip((a, b), found, strict=True) if not own]:
        why = f"no trial of {' or of '.join(lacking)} is valid"
        return replace(blank, verdict="not comparable", reason=why), []
    mine, other = found
    logs = [math.log(mine[block] / other[block]) for block in sorted(mine.keys() & other.keys())]
    return blank, logs
