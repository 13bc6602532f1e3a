"""What the audit says of a trial that is not shown to be steady: why, by how much, what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np

from searchbench.analysis.judgement import Finding, Steadiness
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.trial.steadiness import FEWEST, MARGIN, slows
from searchbench.analysis.trial.warmup import Warmup
from searchbench.analysis.words import at_least_one, percent
from searchbench.record import Trial

TOO_LONG_S = 600.0  # a window that nobody waits for, to show that a system was steady
SERIOUS = 0.20  # a change that cannot be excluded and may well alter a ratio
ANY = 10.0  # an interval that reaches beyond tenfold says nothing
_SLOWER = (
    "It becomes slower, which no warm-up cures: look for a leak, merges, a growing queue, other "
    "load."
)

Row = tuple[str, Literal["warning", "note"], str, str, str]  # a finding without its trial


def unsteady(trace: Trace, warm: Warmup) -> Iterator[Row]:
    """At most one: of a trial that is steady, none."""
    declared_s, end_s = (ns / 1e9 for ns in trace.window)
    what, found, reached_s = warm.what.replace("_", " "), warm.steadiness, warm.steady_from_s
    if warm.moved == "never steady":
        yield (
            "never steady",
            "warning",
            f"{what} off by {percent(warm.off_by)}",
            "No steady state was found in the first half of the trial, so it may have been warming "
            "up all through it.",
            f"Warm up {at_least_one(2 * end_s)} s and measure longer.",
        )
    elif warm.moved == "warm-up limit":
        yield _at_limit(found, declared_s)
    elif warm.moved and reached_s is not None:
        yield (
            "warm-up not reached",
            "warning",
            f"measured from {declared_s:.1f} s, steady from {reached_s:.1f} s at the earliest",
            f"The window began before the system was warm: its {what} was {percent(warm.off_by)} "
            "off the level that it reached later. So this trial is not steady.",
            f"Warm up at least {at_least_one(np.ceil(1.2 * reached_s))} s.",
        )
    elif found.answer == "not steady":
        yield _not_steady(found, end_s)
    elif found.answer == "unknown":
        yield _unknown(found, end_s)


def overloaded(trial: Trial, trace: Trace, found: Steadiness) -> Iterator[Finding]:
    """That a server which fell behind was not steady, ``found`` by how long it worked on requests.

    The audit goes by response times, which grow there however steady the server is.
    """
    if found.answer == "not steady":
        start_s, end_s = (ns / 1e9 for ns in trace.window)
        at_limit = trial.warmup is not None and trial.warmup.at_limit
        row = _at_limit(found, start_s) if at_limit else _not_steady(found, end_s)
        kind, severity, number, meaning, remedy = row
        yield Finding(kind, severity, trial.trial, number, meaning, remedy)


def _at_limit(found: Steadiness, limit_s: float) -> Row:
    """That a warm-up until steady was ended by its limit, and what the window shows then."""
    accused = found.answer == "not steady"
    so = "Whether it was steady in the window is unknown."
    if accused:
        so = f"Its {found.what} still changed in the window, so this trial is not steady."
    return (
        "warm-up limit",
        "warning",
        f"after {limit_s:.0f} s; {_change(found, least=False)}",
        "The warm-up ended at its limit before the system was seen to be warm (it may still have "
        f"become faster, or queries were still asked for the first time). {so}",
        _SLOWER
        if accused and slows(found)
        else f"Set `load.warmup_limit_s` to {math.ceil(2 * limit_s)} or more, or draw fewer "
        "distinct queries; else accept that differences may stay unresolved.",
    )


def _not_steady(found: Steadiness, end_s: float) -> Row:
    return (
        "not steady",
        "warning",
        _change(found, least=True),
        f"The {found.what} of the same queries changed within the window by more than "
        f"{percent(MARGIN)}, so this trial is not steady.",
        _SLOWER
        if slows(found)
        else f"Warm up {at_least_one(2 * end_s)} s. If it still changes: look for merges, other "
        "load.",
    )


def _unknown(found: Steadiness, end_s: float) -> Row:
    """That steadiness was not shown: a warning unless a change by a fifth or more is excluded."""
    spans = [e.interval for e in found.changes.values() if e.interval is not None]
    small = bool(spans) and all(s.low >= -SERIOUS and s.high <= SERIOUS for s in spans)
    needed = found.window_needed_s
    remedy = f"Warm up at least {at_least_one(end_s)} s longer"
    if found.load_changed:
        return (
            "steadiness unknown",
            "note" if small else "warning",
            f"{percent(found.load_changed, signed=True)} of the offered load; "
            + _change(found, least=False),
            f"The offered load itself changed over the window, so that the {found.what} of a "
            "steady system would change, too: whether it was steady is unknown.",
            "To see whether the system is steady, drive it at one rate.",
        )
    if not spans:
        remedy += f", and measure longer: fewer than {FEWEST} requests say nothing."
    elif needed is None:
        remedy += ", and measure longer, with fewer distinct queries or more clients."
    else:
        far = needed > TOO_LONG_S
        remedy += (
            ", and use a quieter machine: here it would take longer than ten minutes to show."
            if far
            else f", and measure about {float(f'{needed:.2g}'):.0f} s."
        )
    return (
        "steadiness unknown",
        "note" if small else "warning",
        _change(found, least=False),
        f"The window shows neither that the {found.what} of the same queries stays within "
        f"{percent(MARGIN)} nor that it does not: the system may still have been warming up.",
        remedy,
    )


def _change(found: Steadiness, *, least: bool) -> str:
    """In words the change that is greatest at the ``least``, or of which most is possible."""
    where = {
        "window": "over the window",
        "ahead": f"in {found.ahead_s:.0f} s at this pace",
        "first fifth": "in the window's first fifth against the rest",
        "last fifth": "in the window's last fifth against the rest",
    }
    spans = {w: e.interval for w, e in found.changes.items() if e.interval is not None}
    if not spans:
        return f"{found.requests:,} requests"

    def size(where: str) -> float:
        low, high = spans[where].low, spans[where].high
        if least:
            return 0.0 if where == "ahead" else max(low, -high)
        return max(-low / (1 + low + 1e-9), high)  # a half is as much as the double

    worst = max(spans, key=size)
    low, high = spans[worst].low, spans[worst].high
    if high > ANY:
        if least:
            return f"{percent(low, signed=True)} or more {where[worst]}"
        return f"{found.requests:,} requests, any change possible"
    return f"{percent(low, signed=True)} to {percent(high, signed=True)} {where[worst]}"
