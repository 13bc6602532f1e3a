"""Which capacity searches claim 95 %, and how many of these are wrong? In virtual time.

    python benches/figures.py judge-sure

Heavy-tailed services above all: a few requests take most of the time, so late ones come in few and
great clusters, and all trials of a search may have been lucky together. Beside them services that
hardly vary, or vary as usual: no rule is worth anything that leaves these without an answer.

A search is *sure* if it claims 95 % for an end of its interval, and then wrong if that end is
on the wrong side of the truth (by more than two standard errors of the truth itself); *rough* if it
names a rate, but claims no 95 %; *open* if it names none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from tests.queues import fixed, heavy, mixed, pareto, random

from benches.figure import Figure
from benches.judge_capacity import MD4, MM4, Case, search
from benches.table import Table
from searchbench.analysis.capacity.pace import Seen, least_effort
from searchbench.analysis.stats.distributions import beta

EFFORTS = (0.3, 1.0)  # the least that claims 95 %, and the default
STREAM = 47  # no rule was chosen by these seeds
MOST_WRONG = 5.0  # percent of those that claim 95 %
USUAL = ("M/D/4", "M/M/4", "M/M/1")  # constant and exponential services


@dataclass(frozen=True, slots=True)
class Sure:
    """A server whose limit is known to ``error`` (a share of it; 0: exactly)."""

    case: Case
    error: float = 0.0


SERVERS = (
    Sure(Case("M/D/4", lambda: fixed(4, 0.002), MD4, "p99 < 10ms"), 0.0004),
    Sure(Case("M/M/4", lambda: random(4, 0.004), MM4, "p99 < 50ms")),
    Sure(Case("M/M/1", lambda: random(1, 0.001), 1000 - math.log(100) / 0.012, "p99 < 12ms")),
    Sure(Case("lognormal, sd of log 1.5", lambda: heavy(4, 0.004, 1.5), 758, "p99 < 100ms"), 0.005),
    Sure(Case("lognormal, sd of log 2", lambda: heavy(4, 0.002, 2.0), 1276, "p99 < 100ms"), 0.005),
    Sure(Case("Pareto, shape 2.5", lambda: pareto(4, 0.004, 2.5), 920, "p99 < 60ms"), 0.0035),
    Sure(Case("1 ms, 0.2 % take 60 ms, one worker",
              lambda: mixed(1, 0.05, [(0.998, 0.001), (0.002, 0.06)]), 708.6, "p99 < 120ms"),
         0.005),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Counted:
    """What searches of one server said. ``closed``: of the sure ones, those with both ends.

    ``widths``: of these, upper end over lower end, less one.
    """

    right: int = 0
    wrong: int = 0
    closed: int = 0
    rough: int = 0
    open: int = 0
    widths: tuple[float, ...] = ()

    @property
    def sure(self) -> int:
        return self.right + self.wrong


def count(server: Sure, effort: float, searches: int, stream: int = STREAM) -> Counted:
    """So many searches of one server."""
    right = wrong = rough = ends = 0
    widths = []
    for seed in range(searches):
        found, driven, _, _ = search(server.case, seed, effort, stream)
        if found.holds is None and found.fails is None:
            ends += 1
        elif least_effort(Seen(driven), effort) > effort:
            rough += 1
        else:
            slack = 1 + 2 * server.error
            holds, fails = found.holds or 0.0, found.fails or math.inf
            missed = holds > server.case.truth * slack or fails < server.case.truth / slack
            wrong, right = wrong + missed, right + (not missed)
            if found.holds and found.fails:
                widths.append(fails / holds - 1)
    return Counted(right, wrong, len(widths), rough, ends, tuple(widths))


def figures(searches: int = 5) -> Iterator[Figure | Table]:
    """Of every server at both efforts: sure and right, sure and wrong, rough, open."""
    rows, found = [], []
    for server in SERVERS:
        for effort in EFFORTS:
            one = count(server, effort, searches)
            found.append((server.case.name, effort, one))
            rows.append(_row(server.case, effort, one))
    columns = ("server", "effort", "sure and right", "sure and wrong", "both ends", "rough", "open",
               "width of both, median")  # fmt: skip
    yield Table("Searches for capacity that claim 95 %, in virtual time", columns, tuple(rows))
    sure, wrong = sum(c.sure for *_, c in found), sum(c.wrong for *_, c in found)
    low, high = (100 * end for end in span(wrong, sure))
    yield Figure(
        "answers of capacity searches that claim 95 % and are wrong", 100 * wrong / max(1, sure),
        "%", at_most=MOST_WRONG, note=f"{wrong} of {sure}; 95 % interval {low:.1f} to {high:.1f} %",
    )  # fmt: skip
    usual = [c for name, effort, c in found if name in USUAL and effort == 1]
    asked = searches * len(usual)
    yield Figure(
        "constant and exponential services with an answer that claims 95 %, by default",
        100 * sum(c.sure for c in usual) / asked, "%", at_least=75, note=f"of {asked} searches",
    )  # fmt: skip


def _row(case: Case, effort: float, one: Counted) -> tuple[str, ...]:
    width = f"{100 * median(one.widths):.1f} %" if one.widths else ""
    numbers = (one.right, one.wrong, one.closed, one.rough, one.open)
    return (f"{case.name}; {case.promise}", f"{effort:g}", *map(str, numbers), width)


def span(wrong: int, of: int) -> tuple[float, float]:
    """The exact (binomial) 95 % interval of a share."""
    low = beta(0.025, wrong, of - wrong + 1) if wrong else 0.0
    return low, beta(0.975, wrong + 1, of - wrong) if wrong < of else 1.0
