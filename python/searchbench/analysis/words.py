"""Figures and names as sentences have them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from searchbench.analysis.judgement import Estimate, Interval

ABSURD = 1000.0  # times: an interval of a ratio that reaches so far knows no limit there
WIDEST = 100.0  # from its low to its high end, an interval that is told to people


def of_job(metric: str) -> str:
    """The job whose time a metric is, as in ``backup_s``; empty: it is of requests."""
    return metric.removesuffix("_s") if metric.endswith("_s") else ""


def words(metric: str) -> str:
    """A metric's name in a sentence: "throughput", "p99 of service time", "time of backup"."""
    if job := of_job(metric):
        return f"time of {job}"
    if metric == "throughput":
        return "throughput"
    kind, _, name = metric.partition("_")
    name = f"p99.{name[3:]}" if name.startswith("p999") else name
    return f"{name} of {kind} time"


def amount(figure: Estimate) -> str:
    """A figure with its unit and interval; times below a second in milliseconds."""
    by, unit = (1e3, "ms") if figure.unit == "s" and figure.value < 1 else (1.0, figure.unit)
    said = f"{digits(figure.value * by)} {unit}".replace("queries/s", "queries per second")
    return said + _between(figure.interval, by)


def at_least_one(seconds: float) -> str:
    """Whole seconds to wait, as advice: "0 s" would be none after a short window."""
    return f"{max(1.0, seconds):.0f}"


def times(ratio: Estimate | None) -> str:
    """A ratio with its interval."""
    if ratio is None:
        return "unknown"
    span = ratio.interval
    interval = f" (95 % interval {from_to(span.low, span.high)})" if span else ""
    return f"{digits(ratio.value)} times{interval}"


def from_to(low: float, high: float) -> str:
    """A ratio's interval; an end that says nothing is said to be unknown."""
    below, above = limits(low, high)
    if below and above:
        return f"{digits(low)}–{digits(high)}"
    if below:
        return f"from {digits(low)} on: no upper limit is known"
    if above:
        return f"up to {digits(high)}: no lower limit is known"
    return "not known"


def limits(low: float, high: float) -> tuple[bool, bool]:
    """Whether the lower and the upper end of a ratio's interval say anything: ``ABSURD``."""
    return low >= min(1.0, high) / ABSURD, high <= ABSURD * max(1.0, low)


def _between(span: Interval | None, by: float = 1.0) -> str:
    if span is None:
        return ""
    ends = f"{digits(span.low * by)}–{digits(span.high * by)}" if told(span) else "not known"
    return f" (95 % interval {ends})"


def told(span: Interval) -> bool:
    """Whether an interval says more than that nothing is known: it is neither two powers of ten
    wide nor does it reach down to nothing. One that is not told to people is in the JSON all the
    same.
    """
    if span.low <= 0:
        return span.low == span.high or span.high < 0
    return span.high <= WIDEST * span.low


def digits(x: float) -> str:
    """Three significant digits, thousands with commas; no exponent."""
    if x == 0 or x != x or abs(x) == float("inf"):
        return "0" if x == 0 else str(x)
    if abs(x) >= 1000:
        return f"{x:,.0f}"
    if abs(x) >= 0.001:
        return f"{float(f'{x:.3g}'):.10g}"
    return f"{x:.2e}"


def percent(share: float, *, signed: bool = False) -> str:
    """A share or a change as per cent: two digits, whole from 10 % on, and no exponent.

    ``signed``: with its sign, of which the minus is the typographic one.
    """
    x = 100 * share or 0.0  # and no −0
    if not math.isfinite(x):
        return f"{x} %"
    places = max(0, 1 - math.floor(math.log10(abs(x)))) if x else 0
    said = f"{x:{'+' if signed else ''},.{places}f}"
    said = said.rstrip("0").rstrip(".") if "." in said else said
    return f"{said.replace('-', '−') if signed else said} %"


def per_s(rate: float) -> str:
    """A rate in a sentence: "1,234/s"."""
    whole = float(f"{rate:.4g}")
    return f"{whole:,.0f}/s" if whole >= 1000 else f"{whole:g}/s"


def listed(names: Sequence[str]) -> str:
    """At most four names, and how many more."""
    shown = list(names[:4]) + ([f"{len(names) - 4} more"] if len(names) > 4 else [])
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


def plural(n: int, one: str, many: str) -> str:
    """The word for so many."""
    return one if n == 1 else many


def upper(text: str) -> str:
    """With a capital at the beginning."""
    return text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """With a capital and a full stop; empty as it is."""
    return f"{upper(text).rstrip('.')}." if text else ""


def most_frequent(reasons: Sequence[str]) -> tuple[str, int]:
    """The kind of reason that most trials have, with the figures of one, and how many they are."""
    kinds = Counter(reason.partition(":")[0] for reason in reasons)
    kind, n = kinds.most_common(1)[0]
    own = [reason for reason in reasons if reason.partition(":")[0] == kind]
    return own[0] if len(set(own)) == 1 else own[0].replace(": ", ", e.g. ", 1), n
