"""Operations judged: curves with a known truth, where they cross, what a row costs, who differs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
import pytest

from searchbench.analysis.answer import Rank
from searchbench.analysis.judgement import (
    Comparison,
    Curve,
    Estimate,
    Interval,
    TreatmentResult,
    TrialResult,
)
from searchbench.analysis.operations import crossing
from searchbench.analysis.operations.crossing import crossovers, judged, sentences
from searchbench.analysis.operations.model import Crossover, MethodCurve, OperationResult, Point
from searchbench.analysis.operations.results import _for_rows, _held, _point, _slope
from searchbench.analysis.operations.rows import Returned, differing, every_way
from searchbench.analysis.stats.intervals import block_noise, holm, paired_ratio
from searchbench.analysis.trial.operations import failed, failure
from searchbench.record import Trial
from searchbench.record.ends import ServerEnd
from searchbench.record.roles import FaultDone, RoleRun
from searchbench.record.trial import Load, Note, OperationAbout
from searchbench.report.tables.operations import side_by_side

Verdict = Literal["faster", "slower", "not resolved", "not comparable"]
ROWS = (1, 10, 100, 1000, 10000)
METRIC = "service_p50"


def curve(
    name: str, fixed_s: float, row_s: float, noise: float = 0.0, blocks: int = 3, seed: int = 1
) -> MethodCurve:
    """A method that takes so long, on so many blocks, with that relative noise on each."""
    rng = np.random.default_rng([seed, *name.encode()])
    points = []
    for rows in ROWS:
        true = fixed_s + row_s * rows
        by_block = {b: true * float(np.exp(noise * rng.normal())) for b in range(1, blocks + 1)}
        seconds = Estimate(float(np.mean([*by_block.values()])), "s", blocks)
        points.append(Point(f"{name}-{rows}", rows, seconds, by_block))
    return MethodCurve(name, "", tuple(points), _slope(points))


def crossed(curves: list[MethodCurve]) -> tuple[Crossover, ...]:
    """What crosses by the verdicts of a study of two methods, each level with its own noise."""
    a, b = curves
    tests = []
    for p, q in zip(a.points, b.points, strict=True):
        logs = [math.log(p.by_block[k] / q.by_block[k]) for k in p.by_block]
        cells = {
            (t.treatment, k, False): math.log(v) for t in (p, q) for k, v in t.by_block.items()
        }
        tests.append((p, q, paired_ratio(logs, block_noise(cells))))
    adjusted = holm([p for _, _, (_, p) in tests])
    verdicts = {}
    for (p, q, (ratio, _)), corrected in zip(tests, adjusted, strict=True):
        resolved = corrected is not None and corrected < 0.05
        said: Verdict = "not resolved"
        if resolved and ratio is not None:
            said = "faster" if ratio.value > 1 else "slower"
        pair = (p.treatment, q.treatment)
        verdicts[*pair, METRIC] = replace(verdict(*pair, said), ratio=ratio, p_value=corrected)
    return crossovers(curves, verdicts, METRIC)


def test_a_crossing_is_found_where_it_is_and_its_interval_holds_it() -> None:
    # 30 us a row against 1 ms and 1 us a row: equal at 34.5 rows.
    truth = 1e-3 / 29e-6
    held = 0
    for seed in range(200):
        singles = curve("singles", 0.0, 30e-6, 0.1, seed=seed)
        temporary = curve("temporary", 1e-3, 1e-6, 0.1, seed=seed)
        (found,) = crossed([singles, temporary])
        assert (found.below, found.above) == ("singles", "temporary")
        assert 10 < found.rows < 100
        assert found.interval is not None
        assert found.interval.low <= found.rows <= found.interval.high
        held += found.interval.low <= truth <= found.interval.high
    assert held >= 190
    # The other way round is the same crossing.
    (turned,) = crossed([temporary, singles])
    assert turned.rows == pytest.approx(found.rows)
    assert (turned.below, turned.above) == ("singles", "temporary")


@pytest.mark.parametrize("switches_at", [15, 900])
def test_a_method_that_is_suddenly_slower_crosses_within_the_interval(switches_at: int) -> None:
    """It takes 1 ms, and 10 ms from so many rows on, against 2 ms."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        found = []
        for name in ("a", "b"):
            points = []
            for rows in ROWS:
                true = 2e-3 if name == "b" else 1e-3 if rows < switches_at else 1e-2
                by_block = {k: true * float(np.exp(0.01 * rng.normal())) for k in range(3)}
                points.append(Point(f"{name}-{rows}", rows, Estimate(true, "s", 3), by_block))
            found.append(MethodCurve(name, "", tuple(points)))
        (crossing,) = crossed(found)
        assert crossing.interval is not None
        assert crossing.interval.low <= switches_at <= crossing.interval.high


def test_a_crossing_within_the_noise_is_not_resolved_and_says_why() -> None:
    a, b = curve("a", 1e-3, 1.00e-6, 0.3), curve("b", 1e-3, 1.01e-6, 0.3)
    assert all(c.interval is None and c.why for c in crossed([a, b]))
    one = crossed([curve("a", 0.0, 30e-6, blocks=1), curve("b", 1e-3, 1e-6, blocks=1)])
    assert [c.interval for c in one] == [None]
    assert "one block" in one[0].why


def nearly(
    noises: tuple[float, ...], first: float, seed: int, blocks: int = 3
) -> list[MethodCurve]:
    """Two methods of which b takes ``first`` times as long as a at one row, 1.5 times elsewhere."""
    rng = np.random.default_rng(seed)
    found = []
    for name in ("a", "b"):
        points = []
        for i, noise in enumerate(noises):
            true = 1e-3 * 10**i * ((first if i == 0 else 1.5) if name == "b" else 1.0)
            by_block = {k: true * float(np.exp(noise * rng.normal())) for k in range(blocks)}
            points.append(Point(f"{name}{i}", 10**i, Estimate(true, "s", blocks), by_block))
        found.append(MethodCurve(name, "", tuple(points)))
    return found


@pytest.mark.parametrize("noise", [0.2, 0.1, 0.05, 0.005])
@pytest.mark.parametrize("blocks", [3, 5])
def test_a_level_that_is_noisier_than_the_rest_makes_no_crossing(noise: float, blocks: int) -> None:
    """b is slower everywhere; with one scatter for all levels 20 to 23 % of studies said else."""
    wrong = 0
    for seed in range(300):
        found = crossed(nearly((noise / 2**0.5, *[0.005] * 5), 1.001, seed, blocks))
        wrong += any(c.interval is not None for c in found)
    assert wrong <= 15


def test_a_noisy_level_does_not_hide_a_crossing_that_the_others_resolve() -> None:
    found = 0
    for seed in range(100):
        noises = (0.01, 0.01, 0.3, 0.01, 0.01)
        a, b = nearly(noises, 0.5, seed)
        # a is slower at one row, and faster from ten on.
        found += any(
            c.interval is not None and c.interval.low <= 10 and (c.below, c.above) == ("b", "a")
            for c in crossed([a, b])
        )
    assert found >= 90


def verdict(a: str, b: str, said: Verdict, left_out: int = 0) -> Comparison:
    return Comparison(a, b, METRIC, said, None, 1.0, 1.0, 20, left_out)


def test_what_crosses_is_resolved_by_the_verdicts_on_both_sides() -> None:
    a, b = curve("singles", 0.0, 30e-6, 0.01), curve("temporary", 1e-3, 1e-6, 0.01)
    of = OperationResult("fetch", "set", (a, b))

    def crossing(
        said: dict[int, Verdict], left_out: int = 0, **kept: bool
    ) -> tuple[Crossover, ...]:
        compared = [
            verdict(f"singles-{n}", f"temporary-{n}", said[n], left_out) for n in ROWS if n in said
        ]
        (found,) = judged([of], compared, "service_p50", first_look=kept.get("first_look", False))
        return found.crossovers

    sure: dict[int, Verdict] = {n: "slower" if n < 100 else "faster" for n in ROWS}
    (found,) = crossing(sure)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((10, 100))
    assert crossing(sure, first_look=True) == ()
    assert crossing(dict.fromkeys(ROWS, "not comparable")) == ()
    assert crossing(sure, left_out=1) == ()
    assert crossing({}) == ()
    (unsure,) = crossing({**sure, 1: "not resolved", 10: "not resolved"})
    assert unsure.interval is None
    assert "within the noise" in unsure.why
    compared = [verdict(f"singles-{n}", f"temporary-{n}", said) for n, said in sure.items()]
    cold = [
        replace(c, verdict="not resolved", state="unknown", state_floor=10.0, p_value=0.001)
        if c.verdict == "slower" else c
        for c in compared
    ]  # fmt: skip
    (open_,) = judged([of], cold, "service_p50", first_look=False)[0].crossovers
    assert open_.interval is None
    assert open_.why == (
        "the difference below it is open, as it is not known whether both were steady there"
    )
    (other,) = crossing(dict.fromkeys(ROWS, "faster"))
    assert other.interval is None, "by the study's metric one is faster at every number of rows"
    (wider,) = crossing({**sure, 10: "not resolved"})
    assert wider.interval is not None
    assert wider.interval.low == 1


def test_nothing_crosses_beyond_what_was_measured() -> None:
    assert crossed([curve("a", 1e-3, 1e-6), curve("b", 2e-3, 2e-6)]) == ()
    # Equal at 100,000 rows, which nobody asked for.
    assert crossed([curve("a", 0.0, 30e-6), curve("b", 2.9, 1e-6)]) == ()


def test_a_line_has_its_slope_and_what_bends_is_called_no_line() -> None:
    slope = curve("line", 1e-3, 5e-6, 0.02).slope
    assert slope is not None
    assert slope.linear
    assert slope.per_row.interval is not None
    assert slope.per_row.interval.low < 5e-6 < slope.per_row.interval.high
    assert slope.exponent is not None
    assert slope.exponent.value == pytest.approx(1.0, abs=0.1)
    points = [Point("bent", n, Estimate(1e-6 * n**2, "s", 1), {1: 1e-6 * n**2}) for n in ROWS]
    bent = _slope(points)
    assert bent is not None
    assert not bent.linear
    assert bent.exponent is not None
    assert bent.exponent.value == pytest.approx(2.0)
    assert _slope(points[:2]) is None


@pytest.mark.parametrize("levels", [ROWS[:3], ROWS[:4], ROWS])
def test_what_a_row_costs_is_known_no_better_than_its_blocks_are_alike(
    levels: tuple[int, ...],
) -> None:
    """All trials of a block are as slow as the machine is then; by the levels alone 77 % held."""
    held = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        factors, points = np.exp(0.03 * rng.normal(size=3)), []
        for rows in levels:
            true = 1e-3 + 5e-6 * rows
            by_block = {k: true * float(f * np.exp(0.02 * rng.normal()))
                        for k, f in enumerate(factors)}  # fmt: skip
            seconds = Estimate(float(np.mean([*by_block.values()])), "s", 3)
            points.append(Point("line", rows, seconds, by_block))
        slope = _slope(points)
        assert slope is not None
        assert slope.per_row.interval is not None
        held += slope.per_row.interval.low <= 5e-6 <= slope.per_row.interval.high
    assert held >= 186


def test_each_method_that_differs_at_any_draw_is_named() -> None:
    """ "b" differs at the first draw, and "c" only at the second."""
    usual = {draw: ("x", 1, ["1\ta"]) for draw in (0, 1)}
    other = ("y", 1, ["2\ta"])
    several = [Returned("a", "", 1, usual), Returned("d", "", 1, usual),
               Returned("b", "", 1, {0: other, 1: other}),
               Returned("c", "", 1, {0: usual[0], 1: other})]  # fmt: skip
    found = differing(several)
    assert [(d.a, d.b, d.draw) for d in found] == [("a", "b", 0), ("a", "c", 1)]


def returned(label: str, rows: list[str], digest: str = "") -> Returned:
    return Returned(label, "", len(rows), {0: (digest or repr(rows), len(rows), rows)})


def test_the_first_row_that_differs_is_named_and_the_odd_one_out() -> None:
    same = ["1\ta", "2\tb", "3\tc"]
    three = [returned("in", same), returned("or", same), returned("singles", ["1\ta", "3\tc"])]
    (found,) = differing(three)
    assert (found.a, found.b, found.alike) == ("in", "singles", 2)
    assert (found.place, found.only_a, found.only_b) == (1, ("2\tb",), ())
    assert found.counts == (3, 2)
    assert differing(three[:2]) == []
    # A difference beyond the rows on record.
    (found,) = differing([returned("a", same, "x"), returned("b", same, "y")])
    assert found.place == -1


def test_up_to_three_rows_that_only_one_method_returns_are_shown() -> None:
    same = [f"{n}\ta" for n in range(1, 8)]
    (found,) = differing([returned("in", same), returned("or", ["0\tb", "1\ta", "1\ta", "7\ta"])])
    assert found.only_a == ("2\ta", "3\ta", "4\ta")
    assert found.only_b == ("0\tb", "1\ta")  # the second of two
    assert not found.order
    # Sorted answers of which the last rows are not known: those up to where both are.
    cut = Returned("or", "", 7, {0: ("x", 7, ["1\ta", "2\tb", "3\ta"])})
    (found,) = differing([returned("in", same), cut])
    assert (found.place, found.only_a, found.only_b) == (1, ("2\ta",), ("2\tb",))
    # In order: the same rows at other places.
    turned = [same[0], same[2], same[1], *same[3:]]
    (found,) = differing([returned("in", same), returned("or", turned)], ordered=True)
    assert (found.place, found.order) == (1, True)
    assert (found.only_a, found.only_b) == (("2\ta", "3\ta"), ("3\ta", "2\ta"))


def trial(**more: object) -> Trial:
    operation = OperationAbout(name="fetch", method="UNION", rows=10_000)
    return Trial(
        trial="b01-t01", treatment="t01", operation=operation, load=Load(timeout_s=5.0), **more
    )  # type: ignore[arg-type]


def test_a_method_that_always_fails_does_so_in_the_servers_words() -> None:
    broken = trial(said={"engine_error": "Thread stack overrun (error 1436)"})
    assert failure(broken, {"engine_error": 30}) == "Thread stack overrun (error 1436)"
    (found,) = failed(broken, {"engine_error": 30})
    assert found.severity == "note"
    assert "UNION does not answer 10,000 rows here: Thread stack" in found.meaning
    assert failure(trial(), {"timed_out": 3}) == "it took longer than 5 s (`timeout_s`)"
    # Where some succeed, the rest are errors like any others.
    assert failed(broken, {"engine_error": 3, "ok": 30}) == ()
    assert failed(Trial(trial="b01-t01", treatment="t01"), {"engine_error": 3}) == ()


def test_a_method_that_ends_its_server_fails_in_the_words_of_the_servers_log() -> None:
    note = Note(kind="server ended", number="its log ends: got signal 11", meaning="it ended")
    dead = trial(notes=[note])
    assert failure(dead, {"refused": 3}) == "the server ended; its log ends: got signal 11"
    found = failed(dead, {"refused": 3})
    assert [(f.kind, f.severity) for f in found] == [
        ("operation failed", "note"), ("server ended", "note"),
    ]  # fmt: skip
    # An older record does not say whether it was asked for anything then.
    assert failed(dead, {"ok": 1, "refused": 3}) == ()


def test_a_method_that_ends_its_server_after_good_answers_fails_all_the_same() -> None:
    note = Note(kind="server ended", number="signal 11, SIGSEGV; its log: a trace")
    end = ServerEnd(code=-11, under_way=1, log="a trace")
    dead = trial(notes=[note], server_ends=[end])
    counts = {"ok": 1200, "reset": 1, "refused": 30}
    assert failure(dead, counts) == (
        "the server ended (signal 11, SIGSEGV) after 1,200 good answers; its log: a trace"
    )
    kinds = [(f.kind, f.severity, f.number) for f in failed(dead, counts)]
    assert kinds == [
        ("operation failed", "note", "31 of 1,231"), ("server ended", "note", note.number),
    ]  # fmt: skip
    only = trial(server_ends=[ServerEnd(code=3, under_way=1, cause="memory is too small")])
    assert failure(only, {"ok": 1, "reset": 1}) == (
        "the server ended (exit code 3) after 1 good answer; memory is too small"
    )
    alone = trial(server_ends=[ServerEnd(phase="capture", under_way=1)])
    assert failure(alone, {"ok": 30}) == (
        "the server ended while it was asked alone, before anything was timed"
    )


@pytest.mark.parametrize(
    "more",
    [
        {"server_ends": [ServerEnd(code=-9, under_way=0)]},
        {
            "server_ends": [ServerEnd(code=-9, under_way=1)],
            "beside": [RoleRun(name="writer", number=1, does="write")],
        },
    ],
    ids=["nothing was under way", "a writer was at work"],
)
@pytest.mark.parametrize("counts", [{"ok": 3, "refused": 9}, {"refused": 9}])
def test_a_server_that_ended_for_a_reason_that_is_not_known_is_no_failure_of_a_method(
    more: dict[str, Any], counts: dict[str, int]
) -> None:
    assert failed(trial(**more), counts) == ()
    idle = RoleRun(name="writer", number=1, does="write", idle=True)
    ended = trial(server_ends=[ServerEnd(code=-9, under_way=1)], beside=[idle])
    assert len(failed(ended, counts)) == 1


def test_a_system_that_a_fault_took_away_is_no_failure_of_a_method() -> None:
    fault = FaultDone(fault="kill", of="server", begun=10, ended=20)
    killed = trial(beside=[RoleRun(name="loss", number=1, does="fault", fault=fault)])
    assert failed(killed, {"reset": 1, "refused": 9}) == ()
    # What the server says itself is its answer all the same.
    assert failure(killed, {"engine_error": 9}) == "engine error"


def test_a_method_that_has_no_valid_trial_is_not_said_to_fail() -> None:
    known = MethodCurve("sql", "", (Point("t1", 1, Estimate(0.1, "s", 1)),))
    invalid = MethodCurve("json", "", (Point("t2", 1, None),))
    failed = MethodCurve("bql", "", (Point("t3", 1, None, failed="no such column"),))
    asked = OperationResult("colors", "set", (known, invalid, failed), by_rows=False)
    (row,) = side_by_side([asked], {}).rows
    assert [cell.text for cell in row[:4]] == ["colors", "100 ms", "no valid trial", "fails"]


def test_a_slope_is_not_told_from_medians_and_means_together() -> None:
    """The mean of times that scatter is greater, as if a row cost more where there are many."""
    points = curve("m", 0.0, 1e-6).points
    assert _slope(points) is not None
    assert _slope([*points[:-1], replace(points[-1], median=False)]) is None


@pytest.mark.parametrize("fails", [False, True])
def test_a_trial_that_failed_does_not_turn_a_median_into_a_mean(fails: bool) -> None:
    blank = Curve("", (), ())
    figures = {"service_p50": Estimate(1.0, "s", 400), "service_mean": Estimate(1.5, "s", 400)}
    judged_ = [
        TrialResult(f"t{b}", "t", b, False, "failed" if fails and b == 5 else "valid", "",
                    {} if fails and b == 5 else figures, {"ok": 400}, ())
        for b in range(1, 6)
    ]  # fmt: skip
    trials = [
        SimpleNamespace(trial=f"t{b}", block=b, control=False, operation=None, status="ok",
                        outcomes=["ok"], stage="", reason="", said={}, beside=[])
        for b in range(1, 6)
    ]  # fmt: skip
    record: Any = SimpleNamespace(
        samples=lambda trial, columns: pa.table({"bytes": [1], "outcome": [0]})
    )
    of = TreatmentResult("t", "t", "s", {}, {}, blank, blank, tuple(judged_))
    found = _point(record, of, 10, cast("Any", trials))
    assert found is not None
    assert found.seconds is not None
    assert (found.median, found.seconds.value) == (True, pytest.approx(1.0))


def test_other_rows_in_a_later_trial_are_seen() -> None:
    def replies(trial: str) -> pa.Table:
        other = trial == "b2"
        facets = json.dumps({"rows": [["other" if other else "same", 2]]})
        row = {"query": 0, "phase": "captured", "ids": ["1", "9" if other else "2"],
               "facets": facets, "error": None}  # fmt: skip
        return pa.Table.from_pylist([row])

    def ways(method: str) -> list[Returned]:
        record: Any = SimpleNamespace(replies=replies)
        trials = [SimpleNamespace(trial=f"{method}{b}", block=b, operation=None) for b in (1, 2, 3)]
        return every_way(record, cast("Any", trials), method, "")

    assert [one.label for one in ways("a")] == ["a"], "all of its trials returned the same"
    (found,) = differing([*ways("a"), *ways("b")])
    assert (found.a, found.b, found.only_b) == ("a", "b, in block 2", ("9",))


def compared_at_each(a: str, b: str, **other: Verdict) -> dict[tuple[str, str, str], Comparison]:
    """Every number of rows resolved, but for those that are named, as ``at_10``."""
    found = [
        verdict(f"{a}-{n}", f"{b}-{n}", other.get(f"at_{n}", "faster")) for n in ROWS
    ]  # fmt: skip
    return {(c.a, c.b, c.metric): c for c in found}


def test_who_asks_from_how_many_rows_on_is_answered_first() -> None:
    a, b = curve("singles", 0.0, 30e-6, 0.01), curve("temporary", 1e-3, 1e-6, 0.01)
    both = OperationResult("fetch", "set", (a, b), crossovers=crossed([a, b]))
    compared = compared_at_each("singles", "temporary")
    (said,) = sentences([both], compared, METRIC)
    assert said.startswith("temporary is faster than singles (median time) from about ")
    assert said.endswith(", up to 10,000 rows.")
    unsure = tuple(replace(c, interval=None) for c in both.crossovers)
    (said,) = sentences([replace(both, crossovers=unsure)], compared, METRIC)
    assert said == (
        "Whether singles and temporary change places between 1 and 10,000 rows is not resolved."
    )
    slow = curve("slow", 2e-3, 60e-6)
    apart = OperationResult("fetch", "set", (a, slow))
    but_ten = compared_at_each("slow", "singles", at_10="not resolved")
    (said,) = sentences([apart], but_ten, METRIC)
    assert said == (
        "slow took longer than singles (median time) at each number of rows between 1 and "
        "10,000 rows, which is resolved at 4 of 5; nothing shows that they change places there."
    )
    open_ = compared_at_each("slow", "singles", **{f"at_{n}": "not resolved" for n in ROWS})
    (said,) = sentences([apart], open_, METRIC)
    assert said == (
        "Which of singles and slow is faster is not resolved at any number of rows between 1 and "
        "10,000 rows."
    )
    # Methods that do not return the same rows are not held against each other.
    other = compared_at_each("slow", "singles", at_10="not comparable")
    assert sentences([apart], other, METRIC) == []
    assert sentences([apart], {}, METRIC) == []
    assert sentences([OperationResult("fetch", "set", (a, b, slow))], compared, METRIC) == []
    assert sentences([replace(apart, by_rows=False)], compared, METRIC) == []


def test_a_crossing_by_the_median_rests_on_what_is_known_of_the_median() -> None:
    """The study asks for the p99, which changes places, and the medians are equal."""
    a, b = curve("a", 1e-3, 1e-9, 0.002), curve("b", 1e-3, 1e-9, 0.002, seed=4)
    by_median = [verdict(f"a-{n}", f"b-{n}", "not resolved") for n in ROWS]
    by_p99 = [
        replace(verdict(f"a-{n}", f"b-{n}", "slower" if n < 100 else "faster"),
                metric="service_p99")
        for n in ROWS
    ]  # fmt: skip
    of = OperationResult("fetch", "set", (a, b))
    (found,) = judged([of], [*by_p99, *by_median], "service_p99", first_look=False)
    assert found.crossovers
    assert all(c.interval is None for c in found.crossovers)


@pytest.mark.parametrize("named", ["as the rows", "as some of the rows"])
def test_a_linked_level_stands_for_the_rows_only_if_all_are_called_as_they_are(named: str) -> None:
    """10 clients beside 10 rows are no rows, and join no curve of 1 client beside 1 row."""
    nothing = Curve("s", (), ())
    treatments, planned = [], {}
    for rows in (1, 10, 100):
        for clients in (1, 10):
            name = f"{rows} {clients}"
            level = str(rows) if named == "as the rows" else str(clients)
            of = {"method": "in", "size": level, "load.clients": clients}
            treatments.append(TreatmentResult(name, name, "db", of, {}, nothing, nothing, ()))
            planned[name] = SimpleNamespace(operation={"name": "fetch", "rows": rows})
    for_rows = _for_rows(treatments, cast("Any", planned))
    assert for_rows == ({"size"} if named == "as the rows" else set())
    labels = {_held(t, "fetch", for_rows) for t in treatments}
    alone = {"clients=1", "clients=10"}
    assert labels == (alone if named == "as the rows" else
                      {"size=1, clients=1", "size=10, clients=10"})  # fmt: skip


@pytest.mark.parametrize(("sure", "told"), [(2, ""), (5, "Of 7 crossings that the times")])
def test_of_many_crossings_their_number_is_the_headline(sure: int, told: str) -> None:
    span = Interval(10.0, 100.0, 0.95, "from level to level")
    found = [Crossover("a", f"b{i}", "", 30.0, span if i < sure else None, "") for i in range(7)]
    of = OperationResult("fetch", "set", (), crossovers=tuple(found))
    first = crossing.said([of], [], METRIC)[0]
    assert first.rank is Rank.ANSWER
    assert first.text.startswith(told or "b0 is faster than a ")


def test_one_change_of_places_is_told_once() -> None:
    seconds = {1: 0.5, 10: 1.1, 100: 0.9, 1000: 2.0}  # of a; b takes a second
    a, b = (
        MethodCurve(name, "", tuple(
            Point(f"{name}-{n}", n, Estimate(x, "s", 3), {k: x + 0.001 * k for k in range(3)})
            for n, x in of.items()
        ))
        for name, of in (("a", seconds), ("b", dict.fromkeys(seconds, 1.0)))
    )  # fmt: skip
    sides: dict[int, Verdict] = {
        1: "slower", 10: "not resolved", 100: "not resolved", 1000: "faster",
    }  # fmt: skip
    compared = {(f"a-{n}", f"b-{n}", METRIC): verdict(f"a-{n}", f"b-{n}", v)
                for n, v in sides.items()}  # fmt: skip
    resolved = [c for c in crossovers([a, b], compared, METRIC) if c.interval is not None]
    assert [(c.interval and c.interval.low, c.interval and c.interval.high) for c in resolved] == [
        (1, 1000)
    ]
