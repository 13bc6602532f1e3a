"""The shortest cut of a log that stands for all of it, and how far it does.

A cut is one stretch of the log's time with all of its searches, so that its rate, its bursts and
its order are the log's own. Before it stands a *run-up*: what the stretch asks again, and what a
cache would hold when it begins, each once, in the order of their last use. So the searches of the
stretch that repeat an earlier one do so in the cut too, and a cache that keeps what was used
last is as full as it was. The run-up is to be sent as the warm-up.

Dispersion is the variance of the searches in each second (ten, sixty) over their mean: 1 where they
come independently of each other. It is taken within ten such counts in a row, so that the hours of
the day are no bursts.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.logs.minutes import holes_of
from searchbench.errors import QueryError
from searchbench.logs.entries import NO_WORDS, UNKNOWN
from searchbench.logs.searches import Searches

SCALES_S = (1, 10, 60)
CACHES = (100, 1_000, 10_000)
IN_A_ROW = 10  # counts within which the dispersion is taken
RATE, DISPERSION = 0.10, 0.20  # of the whole log's
SHARE, MIDDLE = 0.02, 0.05  # apart, of all searches
_SECOND = 1_000_000_000
_LEAST_S = 10
_LEAST_SEARCHES = 100
_LEAST_OF_CLASS = 100
_MOST_CLASSES = 20
_STARTS = 400
_STEP = 1.15  # from one length to the next
_CELLS = 200_000  # spans of time at whose edges windows can begin and end, at most

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bound:
    """One property. ``apart``: of ``cut`` from ``whole``, as a share of it (``relative``) or as a
    difference; infinite where the cut is too short to have it. ``allowed``: the greatest."""

    name: str
    whole: float
    cut: float
    apart: float
    allowed: float
    relative: bool

    @property
    def reached(self) -> bool:
        """Whether the cut is within the bound."""
        return self.apart <= self.allowed


@dataclass(frozen=True, eq=False)
class Cut:
    """``run_up`` and ``window``: numbers of searches, in the order in which they are to be sent.

    ``from_s``: where the window begins, in seconds from the first search; ``seconds``: how long it
    is, the ``warmup_s`` of the run-up before it not counted. ``whole``: no shorter one is within
    all bounds. ``skipped``: what the log cannot be held to, and why.
    """

    run_up: Ints
    window: Ints
    from_s: float
    seconds: float
    warmup_s: float
    bounds: tuple[Bound, ...]
    whole: bool
    skipped: tuple[str, ...] = ()

    @property
    def reached(self) -> bool:
        """Whether all bounds are."""
        return all(bound.reached for bound in self.bounds)


@dataclass(frozen=True, eq=False)
class _Property:
    """What is known of any window: ``values(start, length)`` for windows that begin at ``start``
    (int64, seconds from the first second of the log, a multiple of the grid) and are ``length``
    seconds long, a column for each; a row, or several, of which the greatest difference counts.
    ``whole``: of the whole log.
    """

    name: str
    allowed: float
    relative: bool
    whole: Floats
    values: Callable[[Ints, int], Floats]

    def apart(self, start: Ints, length: int) -> Floats:
        """How far each window is from the whole; infinite where it is too short to say."""
        found: Floats = self._each(start, length)[1].max(axis=0)
        return found

    def bound(self, start: int, length: int) -> Bound:
        """One window held against the whole, where they differ most."""
        values, apart = (found[:, 0] for found in self._each(np.array([start]), length))
        at = int(np.argmax(apart))
        return Bound(
            self.name, float(self.whole[at]), float(values[at]), float(apart[at]), self.allowed,
            self.relative,
        )  # fmt: skip

    def _each(self, start: Ints, length: int) -> tuple[Floats, Floats]:
        values = np.atleast_2d(self.values(start, length))
        whole = self.whole[:, None]
        apart = np.abs(values - whole)
        if self.relative:
            apart = apart / np.maximum(whole, 1e-12)
        return values, np.where(np.isnan(apart), np.inf, apart)


def cut_of(of: Searches, most_searches: int | None = None, most_s: float | None = None) -> Cut:
    """The shortest cut within all bounds, not longer than is said; else the best of that length.

    ``most_searches`` and ``most_s`` count the run-up. QueryError where the log has no times, or is
    too short to have a part.
    """
    if of.at_ns is None:
        raise QueryError("the log has no times, so no part of it can be shown to stand for the "
                         "whole; --queries without --cut writes all of it")  # fmt: skip
    at = (of.at_ns - of.at_ns[0] // _SECOND * _SECOND) / _SECOND
    seconds = math.floor(float(at[-1])) + 1
    if seconds < 2 * _LEAST_S or len(of) < 2 * _LEAST_SEARCHES:
        raise QueryError(
            f"the log has {len(of):,} searches in {seconds:,} s, which is too short to be cut; it "
            f"takes at least {2 * _LEAST_SEARCHES} searches and {2 * _LEAST_S} s"
        )
    skipped: list[str] = []
    known = _Known(of, at, seconds, most_searches)
    properties = [*known.rates(skipped), *known.repetition(skipped), *known.mix(skipped)]
    peak = known.peak_per_s()

    def made(start: int, length: int) -> Cut:
        first, last = np.searchsorted(at, (start, start + length)).tolist()
        run_up = known.run_up(first, last)
        return Cut(
            run_up, np.arange(first, last), float(start), float(length),
            math.ceil(1e3 * len(run_up) / peak) / 1e3,
            tuple(p.bound(start, length) for p in properties),
            length >= seconds, tuple(skipped),
        )  # fmt: skip

    def fits(cut: Cut) -> bool:
        n, long_s = len(cut.run_up) + len(cut.window), cut.warmup_s + cut.seconds
        return n <= (most_searches or math.inf) and long_s <= (most_s or math.inf)

    best: tuple[tuple[float, float], Cut] | None = None

    def tried(length: int) -> tuple[Cut, float] | None:
        """The best of this length that is allowed, and how many bounds it misses."""
        nonlocal best
        found = _best_start(known, properties, length)
        if found is None:
            return None
        start, how = found
        cut = made(start, length)
        if fits(cut) and (best is None or how < best[0]):
            best = how, cut
        return cut, how[0]

    lengths = _lengths(seconds, known.grid_s)
    for i, length in enumerate(lengths):
        now = tried(length)
        if now is None:
            continue
        cut, unmet = now
        before = _between(lengths[i - 1] if i else 0, length, known.grid_s)
        if not fits(cut):
            for less in before:
                tried(less)
            break
        # With its run-up a cut can be as long as the log; then the log itself is better.
        if not unmet and (cut.whole or len(cut.run_up) + len(cut.window) < len(of)):
            shorter = (found for less in before if (found := tried(less)) is not None)
            return next((one for one, missed in shorter if not missed), cut)
    if best is None:
        raise QueryError(
            "no cut of this log is so short: with its run-up the shortest that can be looked at "
            "is longer; allow more with --cut"
        )
    return best[1]


def _best_start(
    known: _Known, properties: Sequence[_Property], length: int
) -> tuple[int, tuple[float, float]] | None:
    """Where a window of this length is most like the whole: (start, (bounds unmet, how far))."""
    step = known.grid_s * max(1, (known.seconds - length) // known.grid_s // _STARTS)
    start = np.arange(0, known.seconds - length + 1, step)
    start = start[known.counted[start + length] - known.counted[start] >= _LEAST_SEARCHES]
    if length < known.seconds:  # a part that was missed is in no stretch
        start = start[known.off[start + length] == known.off[start]]
    if not len(start):
        return None
    far = np.array([p.apart(start, length) / p.allowed for p in properties])
    unmet, worst = (far > 1).sum(axis=0), np.minimum(far, 1e6).max(axis=0)
    at_best = int(np.lexsort((worst, unmet))[0])
    return int(start[at_best]), (float(unmet[at_best]), float(worst[at_best]))


def _lengths(seconds: int, grid_s: int) -> list[int]:
    """From the shortest to the whole log, each somewhat longer than the one before."""
    found: list[int] = []
    length = float(_LEAST_S)
    while (rounded := math.ceil(length / grid_s) * grid_s) < seconds:
        if not found or rounded > found[-1]:
            found.append(rounded)
        length = max(length * _STEP, length + 1)
    return [*found, seconds]


def _between(low: int, high: int, grid_s: int) -> list[int]:
    """Lengths between one that did not do and one that did, from the shortest on."""
    tried = {(low + (high - low) * i // 5) // grid_s * grid_s for i in range(1, 5)}
    return sorted(length for length in tried if max(low, _LEAST_S) < length < high)


def _coarser(of: Searches, scale_s: int) -> str:
    """The files whose times are coarser."""
    files = [str(f["name"]) for f in of.files if f["step_s"] and f["step_s"] > scale_s]
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")


class _Known:
    """Sums over the log up to each second, so that any window is a difference of two of them."""

    def __init__(self, of: Searches, at: Floats, seconds: int, most: int | None) -> None:
        self.of, self.seconds = of, seconds
        self.asked = of.asked
        self.grid_s = -(-seconds // _CELLS)
        self.second = at.astype(np.int64)
        counts = np.bincount(self.second, minlength=seconds)
        self.counted = np.concatenate(([0.0], np.cumsum(counts)))
        off = np.zeros(seconds)
        for start, end in holes_of(*np.unique(self.second // 60 * 60, return_counts=True)):
            off[start:end] = 1.0
        self.off = np.concatenate(([0.0], np.cumsum(off)))
        distinct = len(np.unique(self.asked))
        sizes = [n for n in CACHES if n < distinct and n <= len(of) // 100]
        # A run-up that fills a larger cache would leave no room for what is to be measured.
        self.caches = [n for n in sizes if most is None or n <= most // 4]
        self.too_large = [n for n in sizes if n not in self.caches]

    def peak_per_s(self) -> float:
        """Searches a second in the busiest minute, or in all of a shorter log."""
        span = min(60, self.seconds)
        return max(float((self.counted[span:] - self.counted[:-span]).max()) / span, 1e-3)

    def rates(self, skipped: list[str]) -> list[_Property]:
        """The mean rate (but for what was missed), and the dispersion of counts."""

        def rate(start: Ints, length: int) -> Floats:
            there = length - (self.off[start + length] - self.off[start])
            found: Floats = (self.counted[start + length] - self.counted[start]) / there
            return found

        found = [self._made("searches a second", RATE, rate, relative=True)]
        for scale in SCALES_S:
            name = f"dispersion at {scale} s"
            fine = self.of.steps_ns <= scale * _SECOND
            if not fine.any():
                skipped.append(f"{name}: the log's times are coarser than that")
            elif self.seconds < 2 * scale * IN_A_ROW:
                skipped.append(f"{name}: the log is too short for it")
            else:
                if not fine.all():
                    skipped.append(f"{name} of {int((~fine).sum()):,} searches: the times of "
                                   f"{_coarser(self.of, scale)} are coarser than that; it is that "
                                   "of the others")  # fmt: skip
                counts = np.bincount(self.second[fine], minlength=self.seconds)
                of_scale = _Dispersion(np.concatenate(([0.0], np.cumsum(counts))), scale)
                found.append(self._made(name, DISPERSION, of_scale, relative=True))
        return found

    def repetition(self, skipped: list[str]) -> list[_Property]:
        """Repeats, and what caches of several sizes save."""
        skipped += [f"saved by a cache of {size:,}: the cut may not be long enough to fill it"
                    for size in self.too_large]  # fmt: skip
        return [
            self._share("repeats of earlier words, on any index", [_repeats(self.asked)]),
            *(
                self._share(f"saved by a cache of {size:,}", [_saved(self.asked, size)])
                for size in self.caches
            ),
        ]

    def mix(self, skipped: list[str]) -> list[_Property]:
        """Words for each search, classes, and times by class."""
        found = []
        words = self.of.words
        known = words != NO_WORDS
        if known.any():
            up_to = [known & (words <= n) for n in range(1, 11)]
            found.append(self._share("words: share with up to 1, 2, .. 10", up_to, [known] * 10))
        else:
            skipped.append("words: the log does not say how many")
        names, of_class = self.of.classes()
        n = np.bincount(of_class, minlength=len(names))
        large = np.argsort(-n, kind="stable")[:_MOST_CLASSES]
        large = large[n[large] * 100 >= len(self.of)]
        if len(large) > 1:
            found.append(self._share("classes: share of each", [of_class == c for c in large]))
        timed = self.of.ns != UNKNOWN
        own = [mine for c in large if (mine := timed & (of_class == c)).sum() >= _LEAST_OF_CLASS]
        if not own:
            skipped.append("times by class: the log has none, or too few of each")
        for q, allowed in ((0.5, MIDDLE), (0.95, SHARE)) if own else ():
            limits = [np.quantile(self.of.ns[mine], q, method="inverted_cdf") for mine in own]
            within = [mine & (self.of.ns <= at) for mine, at in zip(own, limits, strict=True)]
            name = f"times by class: share within its p{100 * q:g}"
            found.append(self._share(name, within, own, allowed))
        return found

    def _share(
        self,
        name: str,
        flags: Sequence[NDArray[np.bool_]],
        of: Sequence[NDArray[np.bool_]] = (),
        allowed: float = SHARE,
    ) -> _Property:
        """Shares of searches with a flag, each ``of`` those with another, or of all."""
        sums = self._sums(flags)
        base = self._sums(of or [np.ones(len(self.of), bool)])

        def shares(start: Ints, length: int) -> Floats:
            end = -(-(start + length) // self.grid_s)
            start = start // self.grid_s
            with np.errstate(invalid="ignore", divide="ignore"):
                return (sums[:, end] - sums[:, start]) / (base[:, end] - base[:, start])

        return self._made(name, allowed, shares)

    def _made(
        self,
        name: str,
        allowed: float,
        values: Callable[[Ints, int], Floats],
        *,
        relative: bool = False,
    ) -> _Property:
        whole = np.atleast_2d(values(np.array([0]), self.seconds))[:, 0]
        return _Property(name, allowed, relative, whole, values)

    def _sums(self, flags: Sequence[NDArray[np.bool_]]) -> Floats:
        """By flag, how many searches have it before each place of the grid."""
        cells = -(-self.seconds // self.grid_s)
        found = np.zeros((len(flags), cells + 1))
        for row, flag in zip(found, flags, strict=True):
            counts = np.bincount(self.second[flag] // self.grid_s, minlength=cells)
            np.cumsum(counts, out=row[1:])
        return found

    def run_up(self, first: int, last: int) -> Ints:
        """Searches before ``first``, each of another query, in the order of their last use."""
        if not first:
            return np.zeros(0, np.int64)
        # The last use of each query before the window, the latest last.
        newest, at = np.unique(self.asked[:first][::-1], return_index=True)
        last_use = first - 1 - at
        order = np.argsort(last_use)
        held = np.zeros(len(order), bool)
        held[-max(self.caches, default=0) or len(held) :] = bool(self.caches)
        again = np.isin(newest[order], self.asked[first:last])
        chosen: Ints = last_use[order][held | again].astype(np.int64)
        return chosen


class _Dispersion:
    """The dispersion of counts of one scale in any window, from sums."""

    def __init__(self, counted: Floats, scale: int) -> None:
        self.scale = scale
        self.counted = counted
        span = scale * IN_A_ROW
        self.squares = _strided((counted[scale:] - counted[:-scale]) ** 2, scale)
        self.groups = _strided((counted[span:] - counted[:-span]) ** 2, span)

    def __call__(self, start: Ints, length: int) -> Floats:
        span = self.scale * IN_A_ROW
        groups = length // span
        if not groups:
            return np.full(len(start), np.nan)
        end = start + groups * span
        total = self.counted[end] - self.counted[start]
        squares = self.squares[start] - self.squares[end]
        of_groups = self.groups[start] - self.groups[end]
        within = (squares - of_groups / IN_A_ROW) / (groups * (IN_A_ROW - 1))
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = within / (total / (groups * IN_A_ROW))
        return found


def _strided(values: Floats, step: int) -> Floats:
    """At i the sum of the values at i, i + step, and so on; nothing behind the end."""
    rows = -(-len(values) // step) + 2
    held = np.zeros(rows * step)
    held[: len(values)] = values
    summed: Floats = held.reshape(rows, step)[::-1].cumsum(axis=0)[::-1].reshape(-1)
    return summed


def _repeats(asked: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Which searches ask what an earlier one asked."""
    found = np.ones(len(asked), bool)
    found[np.unique(asked, return_index=True)[1]] = False
    return found


def _saved(asked: NDArray[np.uint32], size: int) -> NDArray[np.bool_]:
    """Which searches a cache of so many answers saves that drops what was not used for longest."""
    held: OrderedDict[int, None] = OrderedDict()
    found = np.zeros(len(asked), bool)
    for i, query in enumerate(asked.tolist()):
        if query in held:
            found[i] = True
            held.move_to_end(query)
            continue
        held[query] = None
        if len(held) > size:
            held.popitem(last=False)
    return found
