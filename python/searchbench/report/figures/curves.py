"""Curves made ready to be drawn: thinned, cut to what an axis can show, labels kept apart."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from searchbench.analysis.judgement import Curve
from searchbench.report.document.text import line

# The name of a level whose value is a word of its own: no number, and not "true".
_NAMED_LEVEL = re.compile(r"\b[\w.-]+=(?!(?:true|false|none|yes|no|on|off)\b)(?=[^\W\d])")


def thinned(curve: Curve, most: int) -> Curve:
    """At most ``most`` points, evenly by index, the first and the last always among them."""
    n = len(curve.x)
    if n <= most:
        return curve
    keep = sorted({round(i * (n - 1) / (most - 1)) for i in range(most)})
    return _picked(curve, keep)


def drawable(curve: Curve) -> Curve:
    """Without points that are not finite."""
    points = enumerate(zip(curve.x, curve.y, strict=True))
    return _picked(curve, [i for i, (x, y) in points if math.isfinite(x) and math.isfinite(y)])


def nines(quantile: float) -> float:
    """Where a quantile stands on the axis: −log10(1 − q), so p90, p99, p99.9 are 1, 2, 3."""
    return -math.log10(1 - quantile)


def by_nines(curve: Curve, most: int) -> Curve:
    """A quantile curve with x in nines, without the maximum (which has no place there)."""
    keep = [i for i, q in enumerate(curve.x) if 0 <= q < 1 and curve.y[i] > 0]
    curve = _picked(curve, keep)
    curve = Curve(curve.label, tuple(map(nines, curve.x)), curve.y, curve.low, curve.high)
    if len(curve.x) <= most:
        return curve
    # Evenly along the axis, not by index: a curve of percentiles has most points at its left.
    left, right = curve.x[0], curve.x[-1]
    step, chosen, due = (right - left) / (most - 1), [0], left
    for i, x in enumerate(curve.x):
        if x >= due + step and i != chosen[-1]:
            chosen.append(i)
            due = x
    if chosen[-1] != len(curve.x) - 1:
        chosen.append(len(curve.x) - 1)
    return _picked(curve, chosen)


def log_ticks(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: 1-2-5 where there are few decades, else whole decades."""
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades <= 3.2 else (1,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def log_domain(values: Sequence[float]) -> tuple[float, float]:
    """The values' range, widened to ticks of 1-2-5 so that both ends are labelled."""
    low, high = min(values), max(values)
    if high < low * 1.5:
        low, high = low / 1.5, high * 1.5
    return _below(low), 1 / _below(1 / high)


def apart(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions moved as little as is needed to be ``gap`` apart, within ``low`` … ``high``.

    Pool-adjacent-violators on the positions less their due shifts, which minimises the squared
    moves. Where there is no room for all, they are spread evenly.
    """
    n = len(positions)
    if gap * (n - 1) >= high - low:
        gap = (high - low) / max(1, n - 1)
    order = sorted(range(n), key=lambda i: positions[i])
    blocks: list[tuple[float, int]] = []  # (sum of targets, how many)
    for rank, i in enumerate(order):
        total, size = positions[i] - rank * gap, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / size:
            before = blocks.pop()
            total, size = total + before[0], size + before[1]
        blocks.append((total, size))
    placed = [0.0] * n
    rank = 0
    for total, size in blocks:
        for _ in range(size):
            base = min(max(total / size, low), high - (n - 1) * gap)
            placed[order[rank]] = base + rank * gap
            rank += 1
    return placed


def names(labels: Sequence[str], limit: int) -> list[str]:
    """Labels of at most ``limit`` characters that still differ.

    Where one is too long, the words that all begin or end with give way first, then the names of
    levels that say themselves what they are (``place=disk``: ``disk``), then the middle.
    """
    whole = [line(label) for label in labels]
    if len(whole) > 1 and max(map(len, whole)) > limit:
        whole = _without_shared(whole)
    if max(map(len, whole), default=0) > limit:
        brief = [_NAMED_LEVEL.sub("", label) for label in whole]
        whole = brief if len(set(brief)) == len(set(whole)) else whole
    cut = [_middle(label, limit) for label in whole]
    return [
        name if cut.count(name) == 1 else f"{name} #{cut[: i + 1].count(name)}"
        for i, name in enumerate(cut)
    ]


def against(b: str, a: str) -> str:
    """Two labels of the same factors in one: the levels that differ first, what they share last."""
    mine, other = b.split(" "), a.split(" ")
    keys = [[word.partition("=")[0] for word in words] for words in (mine, other)]
    if keys[0] != keys[1] or not all("=" in word for word in (*mine, *other)):
        return f"{b} against {a}"
    apart = [(x, y) for x, y in zip(mine, other, strict=True) if x != y]
    shared = [x for x, y in zip(mine, other, strict=True) if x == y]
    if not apart or not shared:
        return f"{b} against {a}"
    theirs = " ".join(y.partition("=")[2] for _, y in apart)
    return f"{' '.join(x for x, _ in apart)} against {theirs}: {' '.join(shared)}"


def _without_shared(labels: Sequence[str]) -> list[str]:
    words = [label.split(" ") for label in labels]
    room = min(map(len, words)) - 1
    head = min(room, _alike(words))
    tail = min(room - head, _alike([w[::-1] for w in words]))
    kept = [w[head : len(w) - tail] for w in words]
    before, after = "… " if head else "", " …" if tail else ""
    return [f"{before}{' '.join(w).strip(',;: ')}{after}" for w in kept]


def _alike(words: Sequence[Sequence[str]]) -> int:
    """How many of the first words of all labels are the same."""
    apart = (i for i, each in enumerate(zip(*words, strict=False)) if len(set(each)) > 1)
    return next(apart, min(map(len, words)))


def _middle(label: str, limit: int) -> str:
    """At most ``limit`` characters; the middle gives way, since ends tell apart."""
    if len(label) <= limit:
        return label
    head = (limit - 1) // 2
    return f"{label[:head].rstrip()}…{label[len(label) - (limit - 1 - head) :].lstrip()}"


def _picked(curve: Curve, keep: Sequence[int]) -> Curve:
    def of(values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(values[i] for i in keep) if values else ()

    return Curve(curve.label, of(curve.x), of(curve.y), of(curve.low), of(curve.high))


def _below(value: float) -> float:
    power = math.floor(math.log10(value))
    return max(
        tick for step in (0.5, 1, 2, 5) if (tick := float(f"{step}e{power}")) <= value * 1.0000001
    )
