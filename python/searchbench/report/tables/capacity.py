"""The tables of a search for capacity: its intervals, and the trials that each rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from searchbench.analysis.judgement import Capacity
from searchbench.report.document.blocks import Cell, Column, Table
from searchbench.report.document.text import line
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import NONE, named


def intervals(found: Sequence[Capacity]) -> Table:
    """A row for each configuration, a column for each promise."""
    promises = list(dict.fromkeys(c.promise for c in found))
    by_place = {(c.subject, c.promise): c for c in found}
    columns = (
        Column("Configuration", weight=1.4),
        *(Column(line(promise), number=True, weight=1.6) for promise in promises),
    )
    rows = tuple(
        (
            named(subject),
            *(_interval(by_place.get((subject, promise))) for promise in promises),
        )
        for subject in dict.fromkeys(c.subject for c in found)
    )
    return Table(columns, rows)


def between(found: Capacity) -> str:
    """The interval in short: "755–839/s", "≥ 755/s", "< 839/s", "not found"."""
    if found.holds is not None and found.fails is not None:
        return f"{_rate(found.holds)}–{_rate(found.fails)}/s"
    if found.holds is not None:
        return f"≥ {_rate(found.holds)}/s"
    if found.fails is not None:
        return f"< {_rate(found.fails)}/s"
    return "not found"


def _rate(rate: float) -> str:
    """Four digits: the two ends of an interval may be less than one part in a hundred apart."""
    return numbers.digits(rate, 4)


def _allowance(share: float) -> str:
    """How much of what is allowed was used up; below a thousandth nobody needs the digits."""
    return "< 0.001" if 0 < share < 0.001 else numbers.digits(share)


def trials(found: Capacity) -> Table:
    """A row for each trial of a search, in the order they were driven."""
    columns = (
        Column("Rate", number=True),
        Column("Window", number=True),
        Column("Verdict", weight=1.2),
        Column("Of what is allowed", number=True, weight=1.4),
        Column("Condition", weight=1.4),
        Column("Achieved", number=True),
    )
    tones: dict[str, Literal["good", "bad", "quiet"]] = {"holds": "good", "fails": "bad"}
    rows = []
    for t in found.trials:
        used = NONE
        if t.excess is not None:
            below = ""
            if t.excess_low is not None and t.excess_high is not None:
                low, high = _allowance(t.excess_low), _allowance(t.excess_high)
                below = f"{high}×" if low == high else f"{low.removeprefix('< ')}–{high}×"
            text = f"{_allowance(t.excess)}×"
            used = Cell(text, repr(t.excess), "" if below == text else below)
        achieved = NONE
        if t.achieved is not None:
            achieved = Cell(numbers.percent(t.achieved), repr(t.achieved))
        rows.append((
            Cell(f"{_rate(t.rate_per_s)}/s", f"{t.rate_per_s!r} per second, {t.trial}"),
            Cell(numbers.human(t.seconds, "s")),
            Cell(line(t.verdict), tone=tones.get(t.verdict, "quiet")),
            used,
            Cell(line(t.condition) or "–"),
            achieved,
        ))  # fmt: skip
    return Table(columns, tuple(rows))


def _interval(found: Capacity | None) -> Cell:
    if found is None:
        return Cell("–", "not searched for", tone="quiet")
    odds = [] if found.chance_inside is None else [numbers.percent(found.chance_inside)]
    count = numbers.counted(len(found.trials), "trial")
    if found.searches > 1:
        count += f" in {found.searches} searches"
    ends = f"holds at {found.holds!r}, fails at {found.fails!r} requests per second"
    exact = ends.replace("None", "no rate that was driven")
    missing = found.holds is None and found.fails is None
    return Cell(between(found), exact, " · ".join([*odds, count]), tone="quiet" if missing else "")
