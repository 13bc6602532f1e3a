"""When a trial became steady: rates or medians in time bins, a truncation rule, and the test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Curve, Estimate, Interval, Steadiness
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.trial.steadiness import moves, steadiness

BINS = 100
PER_BIN = 30  # fewer requests make the bins too noisy to say anything
SUMS = 5  # batches of so many, at least, in which a few slow requests are seen as a speed
MILESTONES = ("two_thirds_s", "two_thirds_requests", "steady_s", "steady_requests")
LEVEL_SHIFT = 0.05  # what happens before steady state must differ by this share to matter

Floats = NDArray[np.float64]
Quantity = Literal["throughput", "response_p50"]


@dataclass(frozen=True, slots=True)
class Warmup:
    """The curve over the entire trace, and when it became steady.

    ``steady_from_s``: None where that is not known. ``moved``: what the curve shows: no steady
    state in the first half of the trace, or only after the window had begun; empty: nothing. Or
    that the warm-up was ended by its limit.
    ``off_by``: how far the measured window's beginning is from the level later, as a share; 0
    where the curve shows nothing. ``steadiness``: the answer.
    """

    curve: Curve
    what: Quantity
    steady_from_s: float | None
    off_by: float
    moved: Literal["", "never steady", "warm-up not reached", "warm-up limit"]
    steadiness: Steadiness


def _binned(trace: Trace, what: Quantity) -> Curve:
    """Completions per second, or median response in seconds, by time since the drive began.

    Bins are of equal width up to the end of the window (what comes later is the tail of
    requests in flight), 100 or as many as hold ``PER_BIN`` requests on average. x is the middle
    of a bin. Empty bins of a median are left out.
    """
    good = (trace.outcome == 0) & (trace.done >= 0)
    at = trace.done[good] if what == "throughput" else trace.due[good]
    bins = min(BINS, at.size // PER_BIN)
    if bins < 10 or trace.window[1] <= 0:
        return Curve(what, (), ())
    edges = np.linspace(0, trace.window[1], bins + 1)
    middle = (edges[:-1] + edges[1:]) / 2e9
    number = np.minimum((at / (trace.window[1] / bins)).astype(np.int64), bins)
    counts = np.bincount(number, minlength=bins + 1)[:bins]
    if what == "throughput":
        y = counts / ((edges[1] - edges[0]) / 1e9)
        return Curve(what, tuple(middle.tolist()), tuple(y.tolist()))
    response = (trace.done[good] - trace.due[good]) / 1e9
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(counts)
    values = response[order]
    full = np.flatnonzero(counts)
    medians = [float(np.median(values[ends[i] - counts[i] : ends[i]])) for i in full]
    return Curve(what, tuple(middle[full].tolist()), tuple(medians))


def truncation(y: Floats, batch: int = 5) -> int | None:
    """How many leading values to leave out before the series is steady, by MSER-5.

    White (1997): average over batches of five, then leave out as many leading batches as make
    the squared standard error of the mean of the rest least. The search goes to half of the
    series; a minimum at that very end means none was found: None.
    """
    batches = y.size // batch
    if batches < 4:
        return 0
    means = y[: batches * batch].reshape(batches, batch).mean(axis=1)
    limit = batches // 2
    errors = [float(means[d:].var() / (batches - d)) for d in range(limit + 1)]
    best = int(np.argmin(errors))
    return None if best == limit else best * batch


def find(trace: Trace, closed: bool, *, at_limit: bool = False) -> Warmup:
    """The warm-up curve of a trial and whether its measured window is steady.

    ``at_limit``: a warm-up until steady was ended by its limit; then any change that is more than
    chance makes the window not steady, unless it is shown to be.
    The curve can only accuse: that it shows nothing is no proof. As it also moves with the mix of
    queries, it accuses only where the times of the same queries moved too, by more than chance.
    """
    what: Quantity = "throughput" if closed else "response_p50"
    curve, tested, start_s = _binned(trace, what), steadiness(trace, closed), trace.window[0] / 1e9
    from_s, off_by = _settled(curve, start_s)
    if tested.answer == "steady":
        return Warmup(curve, what, start_s if from_s is None else from_s, 0.0, "", tested)
    if at_limit:
        if tested.changes and moves(tested):
            tested = replace(tested, answer="not steady", window_needed_s=None)
        return Warmup(curve, what, None, off_by, "warm-up limit", tested)
    if (from_s is None or (off_by and from_s > start_s)) and moves(tested):
        moved = replace(tested, answer="not steady", window_needed_s=None)
        return Warmup(
            curve,
            what,
            from_s,
            off_by,
            "never steady" if from_s is None else "warm-up not reached",
            moved,
        )
    return Warmup(curve, what, None, 0.0, "", tested)


def milestones(trace: Trace, found: Warmup) -> dict[str, Estimate]:
    """After how long and how many requests the speed came to two thirds of its peak, and steady.

    Of each, seconds since the first request and requests completed by then; and the same of the
    warm-up. The peak is the speed in the measured window, each query compared with itself: requests
    in the order of completion, ``PER_BIN`` at a time. Absent: not known.
    """
    ends: dict[str, float | None] = {"warmup": trace.window[0] / 1e9}
    if found.steadiness.answer != "not steady":  # else its window has no speed to be compared with
        ends["two_thirds"] = _two_thirds_s(trace, found.what)
    if found.steadiness.answer == "steady":
        ends["steady"] = found.steady_from_s
    done = np.sort(trace.done[(trace.outcome == 0) & (trace.done >= 0)])
    figures = {}
    for name, at_s in ends.items():
        if at_s is not None:
            n = int(np.searchsorted(done, at_s * 1e9))
            figures[f"{name}_s"] = Estimate(at_s, "s", n)
            figures[f"{name}_requests"] = Estimate(float(n), "requests", n)
    return figures


def over_trials(each: Sequence[Estimate], trials: int) -> Estimate | None:
    """A milestone of several trials, where some have none, as they did not come to it or it is not
    known: the median and the range of the others; None: all have it, and it is a figure like any.
    """
    if len(each) == trials or not each:
        return None
    values = sorted(e.value for e in each)
    span = Interval(values[0], values[-1], 1.0, "least to greatest of trials")
    return Estimate(float(np.median(values)), each[0].unit, len(each), span)


def _two_thirds_s(trace: Trace, what: Quantity) -> float | None:
    """When the speed came to two thirds of that in the window.

    That is the later of two points: up to one, most batches are slower by the mean logarithm, which
    a few slow requests hardly move; up to the other, all requests of a closed loop before the
    window took together longer than they may, as where a few of them wait for a disk (the greatest
    of the sums up to each batch). A request may take half as long again as the same query does in
    the window.
    """
    good = np.flatnonzero((trace.outcome == 0) & (trace.done >= 0) & (trace.sent >= 0))
    good = good[np.argsort(trace.done[good], kind="stable")]
    began = (trace.sent if what == "throughput" else trace.due)[good]
    took = np.maximum(1, trace.done[good] - began).astype(np.float64)
    query, inside = trace.query[good], trace.measured()[good]
    asked = np.bincount(query[inside], minlength=int(query.max(initial=0)) + 1)
    known = asked[query] > 0

    def more(values: Floats, by: Callable[[Floats, Floats], Floats]) -> Floats:
        """Of each batch the mean of ``by``: what its requests had, and the same queries have."""
        usual = np.bincount(query[inside], values[inside], minlength=asked.size)
        each = by(values[known], (usual / np.maximum(1, asked))[query[known]])
        means: Floats = each[: each.size // PER_BIN * PER_BIN].reshape(-1, PER_BIN).mean(axis=1)
        return means

    slower = more(np.log(took), np.subtract)
    if not slower.size:
        return None
    at = _up_to(np.where(slower > np.log(1.5), 1.0, -1.0))
    if what == "throughput":  # else one stall is the wait of all that come meanwhile
        before = int(np.count_nonzero(~inside[known])) // PER_BIN
        in_all = _up_to(more(took, lambda mine, usual: mine - 1.5 * usual)[:before])
        at = max(at, in_all if in_all >= SUMS else 0)  # less may be one slow request
    if at == slower.size:
        return None
    return float(began[known][at * PER_BIN]) / 1e9 if at else 0.0


def _up_to(excess: Floats) -> int:
    """How many of the first have together the most; 0 where no beginning has any."""
    sums = np.cumsum(excess)
    return int(np.argmax(sums)) + 1 if sums.max(initial=0.0) > 0 else 0


def _settled(curve: Curve, start_s: float) -> tuple[float | None, float]:
    """From when on the curve stays at one level (None: never), and how far off the window begins.

    MSER alone cuts a little off pure noise. So a cut is believed only where what it leaves out
    differs from the rest by 5 % and by three standard errors; else it is the first bin.
    """
    if not curve.x:
        return 0.0, 0.0
    x, y = np.array(curve.x), np.array(curve.y)
    cut = truncation(y)
    if cut is None:
        half = y.size // 2
        shift = _shift(y[x >= start_s][: max(5, half // 2)], y[half:])
        return None if shift else 0.0, shift
    rest = y[cut:]
    if not _shift(y[:cut], rest):  # 0 where nothing is cut
        return 0.0, 0.0
    cut = _walk_back(y, cut)
    from_s = max(0.0, float(x[cut] - (x[1] - x[0]) / 2))
    return from_s, _shift(y[:cut][x[:cut] >= start_s], rest)


def _walk_back(y: Floats, cut: int, batch: int = 5) -> int:
    """The earliest beginning from which on all batches are at the level of what follows ``cut``.

    MSER's minimum is flat, so that it often cuts too much; what was already at the level is given
    back.
    """
    rest = y[cut:]
    level = float(np.median(rest))
    near = max(LEVEL_SHIFT * level, 3 * float(rest.std(ddof=1)) / batch**0.5)
    while cut >= batch and abs(float(np.mean(y[cut - batch : cut])) - level) <= near:
        cut -= batch
    return cut


def _shift(early: Floats, rest: Floats) -> float:
    """How far the early level is from the rest, as a share; 0 where that may be chance."""
    if not early.size or rest.size < 2:
        return 0.0
    level = float(np.median(rest))
    if level == 0:
        return 0.0
    # 1.2533 is the ratio of the standard errors of median and mean for normal values.
    error = 1.2533 * float(rest.std(ddof=1)) / early.size**0.5
    off = float(np.mean(early)) - level
    return abs(off) / level if abs(off) > max(LEVEL_SHIFT * level, 3 * error) else 0.0
