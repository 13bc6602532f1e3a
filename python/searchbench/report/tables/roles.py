"""Tables of the roles: a row a treatment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from searchbench.analysis.capacity.verdict import between
from searchbench.analysis.judgement import Estimate
from searchbench.analysis.roles.model import (
    Beside,
    CapacityBeside,
    FaultResult,
    Pace,
    RoleResult,
    Visible,
    WriterStage,
)
from searchbench.report.document.blocks import Cell, Table
from searchbench.report.document.text import line
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import (
    NONE,
    Made,
    known,
    named,
    number,
    of_estimate,
    table,
    text,
    title_of,
)
from searchbench.workload.roles import SERVER

_WRITER = {
    "offered_per_s": "Offered",
    "accepted_per_s": "Accepted",
    "service_p50": "Service p50",
    "service_p99": "Service p99",
    "response_p99": "Response p99",
    "behind_s": "Behind at the end",
}
_OTHER = {"times": "Times", "took_p50": "Took, median", "took_max": "Longest"}


_FAULT = {
    "first_error_s": "First bad answer",
    "error_share": "Failed meanwhile",
    "partial_share": "In part meanwhile",
    "without_s": "Without a good answer",
    "down_s": "Down",
    "ready_s": "Ready after the start",
}


def beside(rows: Sequence[Beside]) -> Table:
    """Each treatment's readers over those of the idle one."""
    metrics = list(dict.fromkeys(metric for row in rows for metric in row.ratios))

    def cell(metric: str, row: Beside) -> Cell:
        return _judged(row.ratios.get(metric), row.judged.get(metric, ""))

    return table(
        rows,
        text("Treatment", lambda r: named(r.label), 2),
        text("Beside", lambda r: named(r.idle_label) if r.idle else NONE, 2),
        *(number(title_of(metric), partial(cell, metric)) for metric in metrics),
    )


def _judged(ratio: Estimate | None, verdict: str) -> Cell:
    """A ratio, and whether the comparison of the two resolves it."""
    cell = of_estimate(ratio)
    if ratio is None or verdict in ("", "faster", "slower"):
        return cell
    below = "; ".join(filter(None, (cell.below, verdict)))
    return Cell(cell.text, cell.exact, below, tone="quiet")


def beside_of_operations(rows: Sequence[Beside]) -> Table:
    """A row an operation, a column a method: its time over that of the idle one."""
    ratios = {(r.operation, r.at, r.method, r.system): r for r in rows}
    places = list(dict.fromkeys((r.operation, r.at) for r in rows))
    ways = dict.fromkeys((r.method, r.system) for r in rows)

    def cell(way: tuple[str, str], place: tuple[str, str]) -> Cell:
        row = ratios.get((*place, *way))
        if row is None:
            return NONE
        metric = "service_p50" if "service_p50" in row.ratios else "service_mean"
        return _judged(row.ratios.get(metric), row.judged.get(metric, ""))

    return table(
        places,
        text("Operation", lambda place: named(place[0]), 1.6),
        text("At", lambda place: Cell(line(place[1])), when=len({at for _, at in places}) > 1),
        *(number(line(", ".join(filter(None, way))), partial(cell, way)) for way in ways),
    )


def capacity(found: Sequence[CapacityBeside]) -> Table:
    """A row for each configuration with roles and each promise; for each of its writers, if any."""
    rows = [(one, pace) for one in found for pace in one.paces or (None,)]
    wrote = any(one.paces for one in found)

    def asked(row: _Row) -> Cell:
        pace = row[1]
        if pace is None:
            return NONE
        if pace.asked_per_s is None:
            return Cell("as fast as it can")
        return known(pace.asked_per_s, _documents_per_s)

    def acknowledged(row: _Row) -> Cell:
        pace = row[1]
        if pace is None:
            return NONE
        trials = numbers.counted(pace.trials, "trial")
        low, high = (numbers.digits(r) for r in (pace.from_per_s, pace.up_to_per_s))
        where = f"{trials}, {low} to {high}/s"
        said = _documents_per_s(pace.acknowledged_per_s)
        return Cell(said, repr(pace.acknowledged_per_s), where, tone="bad" if pace.short else "")

    def behind(row: _Row) -> Cell:
        return known(row[1].behind_s if row[1] else None, lambda s: numbers.human(s, "s"))

    return table(
        rows,
        text("Configuration", lambda r: named(r[0].subject), 2),
        text("Promise", lambda r: Cell(line(r[0].promise)), 1.4),
        number("Capacity", lambda r: Cell(between(r[0].holds, r[0].fails)), 1.4),
        text("Beside", lambda r: named(r[0].idle) if r[0].idle else NONE, 1.6),
        number("Idle", lambda r: _idle(r[0]), 1.4),
        number("Ratio", lambda r: _ratio(r[0]), 1.4),
        text("Writer", lambda r: Cell(line(r[1].role)) if r[1] else NONE, when=wrote),
        number("Asked", asked, when=wrote),
        number("Acknowledged", acknowledged, 1.4, when=wrote),
        number("Behind at most", behind, when=wrote),
        source="capacity_beside.csv",
    )


_Row = tuple[CapacityBeside, Pace | None]


def _documents_per_s(rate: float) -> str:
    return f"{numbers.digits(rate)} documents/s"


def _idle(one: CapacityBeside) -> Cell:
    return Cell(between(one.idle_holds, one.idle_fails)) if one.idle else NONE


def _ratio(one: CapacityBeside) -> Cell:
    """The ratio; a bound of it where an interval is open; and whether the two are told apart."""
    if one.ratio is None:
        return NONE
    if one.ratio.interval is None:
        sign = "≤" if one.ratio.value < 1 else "≥"
        return Cell(f"{sign} {numbers.digits(one.ratio.value)}", repr(one.ratio))
    cell = of_estimate(one.ratio)
    if not one.unresolved:
        return cell
    return Cell(cell.text, cell.exact, f"{cell.below}; not told apart", tone="quiet")


def writers(rows: Sequence[RoleResult]) -> Table:
    """What each writer got done."""
    return table(rows, text("Treatment", lambda r: named(r.label), 2), *_figures(rows, _WRITER))


def readers(rows: Sequence[RoleResult]) -> Table:
    """What each role that reads met: a row a role and a treatment."""

    def cell(name: str, r: RoleResult) -> Cell:
        return _lasting(r.figures.get(name))

    def asked(r: RoleResult) -> Cell:
        offered = r.figures.get("offered_per_s")
        below = f"{numbers.digits(offered.value)}/s in the window" if offered else ""
        return Cell(line(r.load), below=below)

    return table(
        rows,
        text("Treatment", lambda r: named(r.label), 2),
        text("Role", lambda r: Cell(line(r.role), below=_asks(r))),
        text("Load", asked),
        number("Requests", _requests),
        number("Answered", partial(cell, "answered_per_s")),
        *(number(title_of(name), partial(cell, name)) for name in _READER),
        number("Failed", partial(cell, "error_share")),
        source="roles.csv",
    )


_READER = ("response_p50", "response_p99")  # of those in the file of the table


def _asks(r: RoleResult) -> str:
    return numbers.counted(r.asks, "distinct query", "distinct queries") if r.asks else ""


def _requests(r: RoleResult) -> Cell:
    """How many were due in the windows; in how many trials nobody can say what they met."""
    found = r.figures.get("requests")
    below = f"{numbers.counted(r.left_out, 'trial')} left out" if r.left_out else ""
    if found is None:
        return Cell(NONE.text, below=below, tone="quiet")
    return Cell(f"{found.value:,.0f}", repr(found), below)


def _lasting(found: Estimate | None) -> Cell:
    """An estimate; of a time that is that of requests that failed, "forever"."""
    if found is None or math.isfinite(found.value):
        high = found.interval.high if found is not None and found.interval else 0.0
        if found is None or math.isfinite(high):
            return of_estimate(found)
        assert found.interval is not None
        below = f"{numbers.human(found.interval.low, 's')} to forever"
        return Cell(numbers.human(found.value, "s"), repr(found), below)
    return Cell("forever", repr(found), tone="bad")


def stages(rows: Sequence[RoleResult]) -> Table:
    """A row for each stage of each writer, with what the readers met meanwhile."""
    found = [(r, at, stage) for r in rows for at, stage in enumerate(r.stages, 1)]

    def asked(row: _OfStage) -> Cell:
        first, last = row[2].first_per_s, row[2].last_per_s
        if first == last:
            return Cell(f"{numbers.digits(first)}/s", repr(first))
        return Cell(f"{numbers.digits(first)} to {numbers.digits(last)}/s")

    def per_s(name: str, row: _OfStage) -> Cell:
        rate = float(getattr(row[2], name)) / row[2].seconds
        return Cell(f"{numbers.digits(rate)}/s", repr(rate))

    def time(name: str, row: _OfStage) -> Cell:
        return known(getattr(row[2], name), lambda s: numbers.human(s, "s"))

    return table(
        found,
        text("Treatment", lambda r: named(r[0].label), 2),
        text("Stage", lambda r: Cell(
            f"{r[1]}: {r[2].start_s:g} to {r[2].start_s + r[2].seconds:g} s"), 1.6),
        number("Documents asked", asked),
        number("Due", partial(per_s, "offered")),
        number("Acknowledged", partial(per_s, "acknowledged")),
        number("Service p50", partial(time, "service_p50_s")),
        number("Behind at the end", partial(time, "behind_s")),
        number("Readers' p50", partial(time, "readers_p50_s")),
        number("Readers' p99", partial(time, "readers_p99_s")),
        source="role_stages.csv",
    )  # fmt: skip


_OfStage = tuple[RoleResult, int, WriterStage]


def others(rows: Sequence[RoleResult]) -> Table:
    """How often others did what they do, and how long it took."""
    return table(
        rows,
        text("Treatment", lambda r: named(r.label), 2),
        text("Role", lambda r: Cell(f"{r.role}: {r.how}" if r.how else r.role)),
        *_figures(rows, _OTHER),
    )


def faults(rows: Sequence[FaultResult]) -> Table:
    """What each fault did to the readers, and to what was written."""

    def cell(name: str, r: FaultResult) -> Cell:
        return of_estimate(r.figures.get(name))

    shown = [name for name in _FAULT if any(name in r.figures for r in rows)]
    durable = any(r.durable is not None for r in rows)
    return table(
        rows,
        text("Treatment", lambda r: named(r.label), 2),
        text("Fault", lambda r: Cell(f"{r.fault} of the {r.of}" if r.of == SERVER
                                     else f"{r.fault} of {r.of}")),
        *(number(_FAULT[name], partial(cell, name)) for name in shown),
        number("Until normal", _until_normal),
        number("Acknowledged", lambda r: _documents(r, "acknowledged"), when=durable),
        number("Lost", lambda r: _documents(r, "lost"), when=durable),
    )  # fmt: skip


def _until_normal(r: FaultResult) -> Cell:
    found = r.figures.get("normal_s")
    if found is None:
        return NONE
    if r.not_within:
        below = f"in {r.not_within} of {r.trials} trials" if r.not_within < r.trials else ""
        return Cell("not within the window", repr(found), below)
    return of_estimate(found)


def _documents(r: FaultResult, name: str) -> Cell:
    if r.durable is None or not (r.durable.counted or r.durable.never_back):
        return NONE
    found = r.durable
    unknown = found.unlooked + found.uncounted
    if name == "acknowledged":
        return Cell(f"{found.acknowledged + unknown:,}")
    below = f"{unknown:,} more unknown" if unknown else ""
    if not found.counted:
        return Cell("unknown", below=below)
    return Cell(
        f"at least {found.lost:,}" if found.hides or below else f"{found.lost:,}", below=below
    )


def visible(rows: Sequence[RoleResult]) -> Table:
    """From the answer to a write until its document was found."""
    names = list(dict.fromkeys(q for r in rows if r.visible for q in r.visible.quantiles))

    def cell(name: str, r: RoleResult) -> Cell:
        return seconds(r.visible.quantiles.get(name)) if r.visible else NONE

    return table(
        rows,
        text("Treatment", lambda r: named(r.label), 2),
        *(number(name, partial(cell, name)) for name in names),
        number("Markers", _markers),
        number("Known to within", lambda r: _resolution(r.visible)),
        number("Asked for", _asked),
    )


def seconds(found: Estimate | None) -> Cell:
    """A time of which an end, or all, may be beyond what was looked for."""
    if found is None:
        return NONE
    interval = found.interval
    if math.isinf(found.value):
        if interval is None:
            return Cell("unknown", repr(found))
        return Cell(f"above {numbers.human(interval.low, 's')}", repr(found))
    below = ""
    if interval is not None and interval.high <= 0:  # found before the write was answered
        return Cell("at once", repr(found))
    if interval is not None and interval.low <= 0 and math.isfinite(interval.high):
        return Cell(f"at most {numbers.human(interval.high, 's')}", repr(found))
    if interval is not None:
        high = "∞" if math.isinf(interval.high) else numbers.human(interval.high, "s")
        below = f"{numbers.human(interval.low, 's')} to {high}"
    return Cell(numbers.human(found.value, "s"), repr(found), below)


def _markers(r: RoleResult) -> Cell:
    if r.visible is None:
        return NONE
    unseen = ""
    if r.visible.unseen:
        unseen = f"{r.visible.unseen:,} not seen in up to {numbers.human(r.visible.unseen_s, 's')}"
    return Cell(f"{r.visible.markers:,}", below=unseen)


def _resolution(found: Visible | None) -> Cell:
    if found is None or math.isinf(found.resolution_s):
        return NONE
    return known(found.resolution_s, lambda s: numbers.human(s, "s"))


def _asked(r: RoleResult) -> Cell:
    if r.visible is None:
        return NONE
    took = r.visible.ask_p50_s
    below = f"{numbers.human(took, 's')} each" if took is not None else ""
    return Cell(f"{numbers.digits(r.visible.asks_per_s)}/s", below=below)


def _figures(rows: Sequence[RoleResult], titles: Mapping[str, str]) -> Iterator[list[Made]]:
    def cell(name: str, r: RoleResult) -> Cell:
        return of_estimate(r.figures.get(name))

    for name, title in titles.items():
        if any(name in r.figures for r in rows):
            yield number(title, partial(cell, name))
