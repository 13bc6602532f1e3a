"""Steps of two sweeps over one mix of queries (``mix``), so that each is compared by the same.

A step's interval is of its slices, over all requests. Over the mix it is moved to the new value,
and wider where the mix rests on fewer requests, or weighs them unequally.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from searchbench.analysis.compare.mix import Mix
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judgement import Estimate, Step
from searchbench.analysis.sweep.points import Point
from searchbench.analysis.trial.measured import Measured

_LATENCIES = ("p50", "p99")


def points(a: tuple[Run, Point], b: tuple[Run, Point]) -> tuple[Point, Point, int, int] | None:
    """Both over one mix, of closed loops; of the block that measured the smallest share of them on
    both sides, how many queries either measured, and how many both. None: in no block any.
    """
    steps: list[tuple[Step, Step]] = []
    counts: list[tuple[int, int]] = []
    sides = [{step.block: step for step in point.steps} for _, point in (a, b)]
    for block in sorted(sides[0].keys() & sides[1].keys()):
        both = sides[0][block], sides[1][block]
        x, y = (run.samples.measured(s.trial) for (run, _), s in zip((a, b), both, strict=True))
        asked = np.union1d(x.query, y.query).astype(np.int64)
        mix = Mix(x, y, asked)
        counts.append((int(asked.size), mix.queries))
        if mix.queries:
            steps.append((_of(a[0], both[0], mix, x), _of(b[0], both[1], mix, y)))
    if not steps:
        return None
    first, second = (tuple(own) for own in zip(*steps, strict=True))
    fewest = min(counts, key=lambda one: one[1] / one[0])
    return replace(a[1], steps=first), replace(b[1], steps=second), *fewest


def _of(run: Run, step: Step, mix: Mix, measured: Measured) -> Step:
    """One step over the mix. What failed is in its rate as before."""
    load, wider = run.trials[step.trial].load, mix.wider(measured)
    mean = mix.value(measured, load, "response_mean")
    answered = step.answered
    if answered is not None and mean is not None and answered.value > 0:
        think = load.think_s or 0.0  # Little's law: the rate goes with one over the cycle
        cycles = (float(measured.response_ns.mean()) / 1e9 + think) / (mean + think)
        answered = _moved(answered, answered.value * cycles, wider)
    response = dict(step.response)
    for name in _LATENCIES:
        value = mix.value(measured, load, f"response_{name}")
        old = response.pop(name, None)
        if value and old is not None:
            response[name] = _moved(old, value, wider)
    return replace(step, answered=answered, response=response)


def _moved(old: Estimate, value: float, wider: float) -> Estimate:
    """The estimate at another value, its interval moved with it and wider on the log."""
    span = old.interval
    if span is not None and span.low > 0:
        low = value * (span.low / old.value) ** wider
        high = value * math.exp(min(700.0, wider * math.log(span.high / old.value)))
        span = replace(span, low=low, high=high)
    return replace(old, value=value, interval=span)
