"""Numbers as people read them: three significant digits, and the unit that suits the size.

The exact value goes beside each (``exact``), so nothing is lost by rounding.
"""

from __future__ import annotations

import math

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.words import limits, told

# unit → its names by divisor, smallest first; those in _FROM_TWO are used from two on.
_PER_S = {1: "/s", 1e6: " M/s"}
_SCALES: dict[str, dict[float, str]] = {
    "s": {1e-9: " ns", 1e-6: " µs", 1e-3: " ms", 1: " s", 60: " min", 3600: " h"},
    "bytes": {1: " B", 1e3: " kB", 1e6: " MB", 1e9: " GB", 1e12: " TB"},
    "bytes/s": {1: " B/s", 1e3: " kB/s", 1e6: " MB/s", 1e9: " GB/s"},
    "1/s": _PER_S,
    "queries/s": _PER_S,
    "documents/s": _PER_S,
    "share": {0.01: " %"},
    "ratio": {1: "×"},
    "cores": {1: ""},
    "": {1: ""},
}
NOT_KNOWN = "not known"  # of an interval
_FROM_TWO = (" min", " h")


def digits(value: float, significant: int = 3) -> str:
    """``value`` to so many significant digits, never in powers of ten below 1e15.

    >>> digits(12345.6), digits(0.012345), digits(3.0)
    ('12,300', '0.0123', '3')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    rounded = round(value, significant - 1 - size)
    size = math.floor(math.log10(abs(rounded)))
    places = max(0, significant - 1 - size)
    text = f"{rounded:,.{min(places, 12)}f}"
    if float(value).is_integer() and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")


def human(value: float, unit: str) -> str:
    """``value`` with its unit, for people: 0.00123 s is "1.23 ms"."""
    if math.isinf(value):
        return digits(value)
    divisor, name = _scale(abs(value), unit)
    if name == " B" and float(value).is_integer():
        return f"{value:,.0f} B"
    return digits(value / divisor) + name


def between(interval: Interval, unit: str, like: float) -> str:
    """Both ends of an interval in the unit that ``like`` has: "1.20–1.26 ms".

    Of a ratio an end that says nothing is left out. Of a share one end may be nought; any other
    interval that tells nothing is "not known".
    """
    divisor, name = _scale(abs(like), unit)
    if unit == "ratio" and (ends := limits(interval.low, interval.high)) != (True, True):
        below, above = ends
        if above:
            return f"up to {digits(interval.high)}{name}"
        return f"{digits(interval.low)}{name} and more" if below else NOT_KNOWN
    if unit != "share" and not told(interval):
        return NOT_KNOWN
    low, high = digits(interval.low / divisor), digits(interval.high / divisor)
    return f"{low}{name}" if low == high else f"{low}–{high}{name}"


def exact(estimate: Estimate) -> str:
    """The whole estimate with nothing rounded, its interval, method and size."""
    unit = f" {estimate.unit}" if estimate.unit else ""
    text = f"{estimate.value!r}{unit}, n = {estimate.n}"
    if estimate.interval:
        i = estimate.interval
        text += f"; {i.level:.0%} interval {i.low!r} to {i.high!r} ({i.method})"
    return text


def count(number: int) -> str:
    """A whole number with its thousands apart."""
    return f"{number:,}"


def counted(number: int, one: str, many: str = "") -> str:
    """``number`` and what is counted, in the right number: "1 trial", "3 trials"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def percent(share: float) -> str:
    """A share as per cent; what is not quite all or nothing is never rounded to that."""
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def quantile_name(quantile: float) -> str:
    """The name of a quantile: 0.5 is "p50", 0.999 is "p99.9", 1 is "max"."""
    return "max" if quantile >= 1 else f"p{100 * quantile:.6g}"


def _scale(size: float, unit: str) -> tuple[float, str]:
    scale = _SCALES.get(unit, {1: f" {unit}"})
    if unit == "s" and size == 0:
        return 1, scale[1]
    starts = {by: by * 2 if name in _FROM_TWO else by for by, name in scale.items()}
    by = max((by for by in scale if size >= starts[by] * 0.9995), default=min(scale))
    return by, scale[by]
