"""What a log says, on a terminal: one sentence first, then remarks, then tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from searchbench.analysis.logs.model import Asked, Beside, LogJudgement, Row
from searchbench.analysis.logs.remarks import clock_of, seconds
from searchbench.report.document.text import line, short
from searchbench.terminal import out

_ROWS = 10
_WORST = 3


class Ticking:
    """How much was read, in one line of standard error."""

    def __call__(self, read_bytes: int) -> None:
        """Called by the core about ten times a second."""
        sys.stderr.write(f"\r{read_bytes / 1e6:,.0f} MB read ")
        sys.stderr.flush()

    def end(self) -> None:
        """Clears the line."""
        sys.stderr.write("\r" + " " * 30 + "\r")


def spark(tasks: int, again: int, *, same: bool) -> None:
    """What is to be known of a reading by Spark, on standard error; nothing where all went well."""
    if again:
        out.say(
            f"Spark: {again:,} of {tasks:,} tasks had to be done again, because an executor or its "
            "Python was lost. The answer is that of all tasks.",
            sys.stderr,
        )
    if not same:
        out.say(
            "Spark: there were more distinct queries (--distinct) or names than are counted "
            "exactly. Which of them are kept depends on the order of reading, so another reading, "
            "on one machine too, may give somewhat different counts.",
            sys.stderr,
        )


def show(of: LogJudgement, took_s: float, page: Path | None) -> None:
    """Print it."""
    findings(of, took_s)
    if of.published is not None:
        _beside(of.published)
    if of.all is None:
        return
    for title, rows in (
        ("class", of.by["class"]),
        ("index", of.by["index"]),
        ("server", of.by["server"]),
        ("user", of.by["user"]),
        ("words", of.words),
        ("size of index", of.sizes),
    ):
        if len(rows) > 1 or (rows and title == "class"):
            groups(title, rows, of)
    _served(of)
    _worst(of)
    _asked("asked most", of.most)
    _asked("most time in all", [a for a in of.longest if a.total_s > 0])
    _asked("without hits", [a for a in of.without_hits if a.zero], zero=True)
    if page is not None:
        out.say(f"\npage: {page}")


def _beside(of: Beside) -> None:
    """What was published, and what is so here; reasons below."""
    out.say(f"\n{of.title}")
    cells = [(s.what, s.published, s.verdict, s.here) for s in of.statements]
    out.table(("statement", "published", "verdict", "here"), cells)
    out.points([f"{s.what}, {s.published}: {s.why}." for s in of.statements if s.why])


def findings(of: LogJudgement, took_s: float) -> None:
    """One sentence of findings, what was read, and the remarks, without tables."""
    out.say(line(of.headline))
    out.say()
    read = sum(int(str(s["lines"])) for s in of.sources)
    formats = ", ".join(dict.fromkeys(str(s["format"]) for s in of.sources if s["format"]))
    out.say(f"{read:,} lines ({formats}) in {took_s:.1f} s")
    if of.first_s is not None and of.last_s is not None:
        out.say(f"{moment(of.first_s)} to {moment(of.last_s)}, {clock_of(of)}")
    out.say()
    # Warnings first: they could change how all else is read.
    ordered = sorted(of.remarks, key=lambda f: f.severity != "warning")
    out.points(
        [
            ("! " if f.severity == "warning" else "")
            + short(f"{f.title}: {f.text} {f.remedy}", 600)
            for f in ordered
        ]
    )


def moment(at_s: int) -> str:
    """A time for people, to the minute."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M")


def groups(title: str, rows: Sequence[Row], of: LogJudgement) -> None:
    """A table of groups, the first ten."""
    timed = any(row.quantiles_s for row in rows)
    known = any(row.zero is not None for row in rows)
    header = [title, "searches", "share"]
    header += ["time", "p50", "p95", "p99"] if timed else []
    header += ["no hits"] if known else []
    cells = []
    for row in rows[:_ROWS]:
        cell = [short(row.name, 44) or "(none)", f"{row.n:,}", f"{row.share:.1%}"]
        if timed:
            cell.append("–" if row.share_of_time is None else f"{row.share_of_time:.1%}")
            quantiles = (row.quantiles_s.get(q) for q in ("p50", "p95", "p99"))
            cell += [seconds(value, row.resolution_s or of.resolution_s) for value in quantiles]
        if known:
            cell.append("–" if row.zero is None else f"{row.zero:.1%}")
        cells.append(cell)
    out.say()
    out.table(header, cells, less=("p50", "share"))
    if len(rows) > _ROWS:
        out.say(f"and {len(rows) - _ROWS} more: see --json or the page")


def _asked(title: str, rows: Sequence[Asked], *, zero: bool = False) -> None:
    """A table of queries; ``zero``: with how often each found nothing."""
    if not rows:
        return
    out.say()
    several = any(a.indexes > 1 for a in rows)
    cells = [
        (
            f"{a.n:,}",
            *([f"{a.zero:,}"] if zero else []),
            *([f"{a.indexes:,}"] if several else []),
            seconds(a.total_s),
            seconds(a.max_s),
            short(a.text, 50) or "(no words)",
        )
        for a in rows[:5]
    ]
    more = [*(["no hits"] if zero else []), *(["indexes"] if several else [])]
    out.table(("times", *more, "in all", "longest", title), cells)


def _worst(of: LogJudgement) -> None:
    """The minutes in which most time was waited, where there are enough to choose from."""
    if len(of.over) < 2 or not of.worst:
        return
    out.say()
    cells = [
        (moment(m.at_s), f"{m.n:,}", seconds(m.mean_s), seconds(m.max_s), short(m.slowest, 50))
        for m in of.worst[:_WORST]
    ]
    out.table(("worst minutes", "searches", "mean", "longest", "the longest search"), cells)


def _served(of: LogJudgement) -> None:
    """What was asked beside what agents and shards did for it."""
    if of.all is None or of.served is None or not of.served.quantiles_s:
        return
    cells = []
    for name, row in (("as asked: searches", of.all), ("as served: parts", of.served)):
        quantiles = (row.quantiles_s.get(q) for q in ("p50", "p95", "p99"))
        times = (seconds(value, of.resolution_s) for value in quantiles)
        cells.append((name, f"{row.n:,}", *times, seconds(row.max_s, of.resolution_s)))
    out.say()
    out.table(("of agents and shards", "entries", "p50", "p95", "p99", "longest"), cells)
