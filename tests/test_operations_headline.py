"""The sentence of a crossing reaches as far as what is known, in records with a known truth.

Singles cost 30 us a row and list costs 1 ms, so list is the faster one from 30 rows on. At other
numbers of rows one of them fails, returns other rows, or takes a time of which nobody can tell.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from records import Server, Study, Treatment, lognormal
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Comparison, Estimate, Judgement
from searchbench.analysis.operations.crossing import crossovers, sentence
from searchbench.analysis.operations.model import MethodCurve, OperationResult, Point
from searchbench.record import Record, open_record
from searchbench.report.document.operations import _crossing, _failures
from searchbench.report.figures.look import WIDE
from searchbench.report.figures.operations import curves
from searchbench.report.tables.operations import times
from searchbench.study import plan as plans
from searchbench.terminal.operations import said

ROWS = (10, 100, 1000)
FACTOR = "operations.fetch.rows"
CROSSING = "list is faster than singles (median time) from about "
Times = Callable[[int], Server]


def singles(rows: int) -> Server:
    return lognormal(30e-6 * rows, 0.02)


def listed(rows: int) -> Server:
    return lognormal(1e-3, 0.02)


def unknown(median_s: float) -> Server:
    """Every trial is slow or fast as a whole."""
    return lambda due, query, rng: (
        median_s * np.exp(rng.standard_normal() + 0.02 * rng.standard_normal(due.size))
    )


def of_two_plans(due: Any, query: Any, rng: np.random.Generator) -> Any:
    """Three operations of ten take another plan, so the mean is 6.7 ms: no median sees that."""
    slow = rng.random(due.size) < 0.3
    return np.where(slow, 0.02, 1e-3) * np.exp(0.02 * rng.standard_normal(due.size))


@dataclass
class Methods(Study):
    """``fails``: the blocks in which a treatment fails every operation."""

    fails: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def plan(self, trials: Sequence[plans.Trial]) -> plans.Plan:
        made = super().plan(trials)
        asked = [
            replace(t, settings={**t.settings, "operation": {**about(t.levels), "key": "id"}})
            for t in made.treatments
        ]
        return replace(made, treatments=tuple(asked))

    def _write_trial(
        self, writer: Any, planned: Any, position: int, t: Treatment, *rest: Any
    ) -> None:
        if planned.block in self.fails.get(t.id, ()):
            t = replaced(t, error_share=1.0, extra={**t.extra, "said": {"engine_error": "no room"}})
        super()._write_trial(writer, planned, position, t, *rest)


def about(levels: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": "fetch", "method": levels["method"], "rows": levels[FACTOR]}


def returned(query: int, rows: int = 10, which: str = "") -> dict[str, Any]:
    facets = json.dumps({"rows": [[f"{which}{query}-{rows}", rows]]})
    return {"total": rows, "ids": [f"{which}{query}-{n}" for n in range(5)], "facets": facets}


def recorded(
    folder: Path,
    one: Times = listed,
    other: Times = singles,
    *,
    rows: Sequence[int] = ROWS,
    fails: Mapping[str, Sequence[int]] | None = None,
    differs: Sequence[int] = (),
    metric: str = "service_p50",
    blocks: int = 3,
    seconds: float = 5.0,
    seed: int = 7,
    untimed: str = "",
) -> Record:
    """``differs``: at these numbers of rows list returns other rows than singles. ``untimed``: the
    method that has set-up and clean-up.
    """
    study = Methods(
        blocks=blocks, control=None, judging={"metric": metric}, queries=4, under_load=4,
        trial_noise=0.002, block_noise=0.0, fails=fails or {}, seed=seed,
    )  # fmt: skip
    for n in rows:
        for method, of in (("list", one), ("singles", other)):
            which = "x" if method == "list" and n in differs else ""
            levels = {"method": method, FACTOR: n}
            study.add(
                f"{method}{n}", system="mariadb", server=of(n), clients=1, levels=levels,
                answer=partial(returned, rows=n + len(which), which=which), seconds=seconds,
                extra={"operation": {**about(levels), "untimed": 2 * (method == untimed)}},
            )  # fmt: skip
    return open_record(study.write(folder))


def judged(folder: Path, *servers: Callable[[int], Any], **more: Any) -> Judgement:
    return judge(recorded(folder, *servers, **more))


def of(found: Judgement) -> OperationResult:
    (operation,) = found.operations
    return operation


def point(found: Judgement, method: str, rows: int) -> Point:
    return next(
        p for m in of(found).methods if m.method == method for p in m.points if p.rows == rows
    )


def test_a_sentence_reaches_to_the_last_number_of_rows_at_which_it_is_known(
    tmp_path: Path,
) -> None:
    found = judged(tmp_path / "r")
    assert found.verdict.headline.startswith(CROSSING)
    assert found.verdict.headline.endswith(" rows on (between 10 and 100), up to 1,000 rows.")
    assert not [line for line in said(found) if "faster" in line], "the headline has it"
    (crossing,) = of(found).crossovers
    assert (crossing.until, crossing.but) == (1000, "")
    assert _crossing(crossing) == found.verdict.headline


@pytest.mark.parametrize(
    ("how", "end"),
    [
        ({"fails": {"list1000": (0, 1, 2)}}, "at 1,000 rows list fails"),
        ({"fails": {"singles1000": (0, 1, 2)}}, "at 1,000 rows singles fails"),
        ({"fails": {"list1000": (0, 1, 2), "singles1000": (0, 1, 2)}},
         "at 1,000 rows list and singles fail"),
        ({"differs": (1000,)}, "at 1,000 rows they return other rows"),
        ({"one": lambda n: unknown(0.03) if n == 1000 else listed(n), "blocks": 5},
         "at 1,000 rows it is not resolved"),
        ({"one": lambda n: lognormal(0.1, 0.02) if n == 1000 else listed(n)},
         "at 1,000 rows singles is faster"),
    ],
    ids=["fails", "the other fails", "both fail", "other rows", "open", "crosses back"],
)  # fmt: skip
def test_a_sentence_ends_where_the_knowledge_ends_and_says_what_comes_then(
    tmp_path: Path, how: dict[str, Any], end: str
) -> None:
    found = judged(tmp_path / "r", **how)
    assert found.verdict.headline.startswith(CROSSING)
    assert found.verdict.headline.endswith(f" (between 10 and 100), up to 100 rows; {end}.")
    assert found.verdict.headline == _crossing(of(found).crossovers[0])


def test_two_crossings_are_told_each_as_far_as_it_goes(tmp_path: Path) -> None:
    found = judged(tmp_path / "r", lambda n: lognormal(0.1, 0.02) if n == 1000 else listed(n))
    first, second = (_crossing(c) for c in of(found).crossovers)
    assert first.endswith(", up to 100 rows; at 1,000 rows singles is faster.")
    assert second.startswith("singles is faster than list (median time) from about ")
    assert second.endswith(
        " (between 100 and 1,000), up to 1,000 rows; at 10 rows singles is faster."
    )
    assert second in found.verdict.points


def curve(name: str, seconds: Mapping[int, float], **more: Any) -> MethodCurve:
    """A method that takes so long at so many rows, in three blocks alike."""
    points = [
        Point(f"{name}{n}", n, Estimate(x, "s", 3), {k: x * (1 + 0.001 * k) for k in range(3)},
              **more)
        for n, x in seconds.items()
    ]  # fmt: skip
    return MethodCurve(name, "", tuple(points))


def verdicts(metric: str, faster: Mapping[int, str]) -> dict[tuple[str, str, str], Comparison]:
    """Who is faster at so many rows, of list and singles."""
    return {
        (f"list{n}", f"singles{n}", metric): Comparison(
            f"list{n}", f"singles{n}", metric, "faster" if who == "singles" else "slower",
            None, None, 1.0, 4, 0,
        )
        for n, who in faster.items()
    }  # fmt: skip


def test_what_is_known_beyond_a_sentence_is_told_by_time_and_by_throughput() -> None:
    few = {10: 3e-4, 100: 3e-3, 1000: 3e-2, 10_000: 3e-1, 100_000: 3.0}
    flat = {10: 1e-3, 100: 1e-3, 1000: 1.0, 10_000: 1e-3, 1_000_000: 1e-3}
    by_time = {10: "singles", 100: "list", 1000: "singles", 10_000: "list"}
    by_rate = {10: "singles", 100: "list", 1000: "list", 10_000: "singles"}
    found = crossovers(
        (curve("list", flat), curve("singles", few, median=False)),
        {**verdicts("service_p50", by_time), **verdicts("throughput", by_rate)},
        "service_p50",
    )
    first = sentence(found[0])
    assert first.startswith("list is faster than singles (median or mean time) from about ")
    assert first.endswith(
        " (between 10 and 100), up to 100 rows; at 1,000 rows singles is faster but list is faster "
        "by throughput; at 10,000 rows list is faster but singles is faster by throughput; at "
        "100,000 rows list was not measured; at 1,000,000 rows singles was not measured"
    )


def test_an_interval_does_not_reach_over_a_number_of_rows_at_which_it_is_surely_otherwise() -> None:
    few = dict.fromkeys((1, 10, 100, 1000, 10_000), 1e-3)
    flat = {1: 2e-3, 10: 2e-3, 100: 9.9e-4, 1000: 2e-3, 10_000: 5e-4}
    by_time = {1: "singles", 10: "singles", 1000: "singles", 10_000: "list"}
    open_ = replaced(verdicts("service_p50", {100: "list"})["list100", "singles100", "service_p50"],
                     verdict="not resolved")  # fmt: skip
    heeded = {**verdicts("service_p50", by_time), ("list100", "singles100", "service_p50"): open_}
    found = crossovers((curve("list", flat), curve("singles", few)), heeded, "service_p50")
    assert [c.interval and (c.interval.low, c.interval.high) for c in found] == [
        None, None, (1000, 10_000),
    ]  # fmt: skip


def test_what_is_not_so_below_a_crossing_is_said_too(tmp_path: Path) -> None:
    fails = {"singles1": (0, 1, 2), "list1000": (0, 1, 2)}
    headline = judged(tmp_path / "r", rows=(1, *ROWS), fails=fails).verdict.headline
    assert headline.endswith(", up to 100 rows; at 1 row singles fails; at 1,000 rows list fails.")


def test_within_the_interval_an_open_difference_is_no_exception_and_a_failure_is_one(
    tmp_path: Path,
) -> None:
    rows = (10, 30, 100)

    def near(n: int) -> Server:
        return unknown(9e-4) if n == 30 else listed(n)

    headline = judged(tmp_path / "open", near, rows=rows, blocks=5).verdict.headline
    assert headline.endswith(" (between 10 and 100), up to 100 rows.")
    headline = judged(tmp_path / "fails", rows=rows, fails={"list30": (0, 1, 2)}).verdict.headline
    assert headline.endswith(" (between 10 and 100), up to 100 rows; at 30 rows list fails.")


@pytest.mark.parametrize("metric", ["service_p50", "throughput"])
def test_faster_by_the_median_is_said_with_a_throughput_that_shows_the_opposite(
    tmp_path: Path, metric: str
) -> None:
    found = judged(tmp_path / "r", lambda _: of_two_plans, metric=metric, seconds=20)
    assert found.verdict.headline.startswith(CROSSING)
    assert found.verdict.headline.endswith(
        " (between 10 and 100), up to 1,000 rows; at 100 rows singles is faster by throughput."
    )


def test_that_one_takes_longer_covers_no_size_at_which_the_other_fails(tmp_path: Path) -> None:
    always = (0, 1, 2)

    def slow(n: int) -> Server:
        return lognormal(60e-6 * n, 0.02)

    between = judged(tmp_path / "a", slow, fails={"singles100": always}).verdict.headline
    assert between == (
        "list took longer than singles (median time) at 10 and 1,000 rows, which is resolved "
        "at 2 of 2; nothing shows that they change places there; at 100 rows singles fails."
    )
    beyond = judged(tmp_path / "b", slow, fails={"singles1000": always}).verdict.headline
    assert beyond == (
        "list took longer than singles (median time) at each number of rows between 10 and "
        "100 rows, which is resolved at 2 of 2; nothing shows that they change places there; "
        "at 1,000 rows singles fails."
    )


def test_that_one_takes_longer_is_said_with_a_throughput_that_shows_the_opposite(
    tmp_path: Path,
) -> None:
    found = judged(
        tmp_path / "r", lambda _: of_two_plans, lambda n: lognormal(2e-3 + 1e-6 * n, 0.02),
        seconds=20,
    )  # fmt: skip
    assert found.verdict.headline == (
        "singles took longer than list (median time) at each number of rows between 10 and "
        "1,000 rows, which is resolved at 3 of 3; at 10, 100 and 1,000 rows singles is faster by "
        "throughput."
    )


def test_a_point_says_in_how_many_trials_its_method_failed(tmp_path: Path) -> None:
    found = judged(tmp_path / "r", fails={"list1000": (0, 1)}, blocks=4)
    here = point(found, "list", 1000)
    assert here.seconds is not None
    assert (here.failed, here.failed_in) == ("", "in 2 of 4 trials: no room")
    assert point(found, "list", 100).failed_in == ""
    methods = of(found).methods
    (row,) = [r for r in times(methods).rows if r[0].text == "list"]
    assert [cell.below.endswith("fails in 2 of 4 trials: no room") for cell in row[1:]] == [
        False, False, True,
    ]  # fmt: skip
    (failures,) = [m for m in map(_failures, methods) if m]
    assert failures == ["list at 1,000 rows, in 2 of 4 trials: no room"]
    drawn = curves(methods, WIDE)
    assert "fails in 2 of 4 trials: no room" in json.dumps(drawn.to_dict())


def test_set_up_that_is_not_timed_is_said_and_throughput_is_not_compared(tmp_path: Path) -> None:
    found = judged(tmp_path / "r", untimed="list")
    said_ = "(median time, without the set-up and clean-up of list) from about "
    assert said_ in found.verdict.headline
    by_rate = [c for c in found.comparisons if c.metric == "throughput" and "list" in c.a + c.b]
    assert by_rate
    assert {c.verdict for c in by_rate} == {"not comparable"}
    assert {c.reason.partition(" of ")[0] for c in by_rate} == {
        "throughput includes the set-up and clean-up"
    }
    plain = judged(tmp_path / "plain")
    assert "set-up" not in plain.verdict.headline
    assert not any("clean-up" in c.reason for c in plain.comparisons)
