"""Steps and the verdict of a sweep, on records whose truth is computed beforehand.

Longer than most files: the records that it makes serve steps, comparisons and verdicts alike.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from records import Study, exponential, lognormal, single_queue, warming
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge, steps_json, to_json
from searchbench.analysis.judgement import Estimate, Judgement, Step
from searchbench.analysis.stats import within
from searchbench.analysis.sweep.points import Point, level_of
from searchbench.analysis.sweep.words import _errors as errors
from searchbench.record import Record, open_record


def load_run(blocks: int = 1, **study: Any) -> Study:
    """A sweep that is to be described: no control, judged as one."""
    judging = {"measure": "sweep", "command": ["load", "http://127.0.0.1:1"]}
    judging |= study.pop("judging", {})
    return Study(blocks=blocks, control=None, judging=judging, trial_noise=0.0, block_noise=0.0,
                 **study)  # fmt: skip


def by_clients(levels: tuple[int, ...], workers: int = 4, system: str = "new", factor: float = 1.0,
               run: Study | None = None, **more: Any) -> Study:  # fmt: skip
    """A server of so many workers, 4 ms each: throughput grows with the clients up to it."""
    run = run or load_run()
    for n in levels:
        service = 0.004 * max(1.0, n / workers) * factor
        run.add(f"{system}-{n}", system=system, server=lognormal(service, 0.1), clients=n,
                levels={"system": system, "load.clients": n}, **more)  # fmt: skip
    return run


def judged(run: Study, path: Path) -> Judgement:
    return judge(open_record(run.write(path)))


def ordered(found: Judgement) -> list[Step]:
    """The steps by treatment; a described study is driven in random order, a load run is not."""
    return sorted(found.steps, key=lambda step: (step.clients_asked or 0, step.requests))


def line_of(found: Judgement, step: Step) -> tuple[str, ...]:
    """Its line in the table for terminals."""
    return found.verdict.lines[found.steps.index(step)]


def test_a_step_counts_its_clients_in_the_trace(tmp_path: Path) -> None:
    run = by_clients((3,))
    path = run.write(tmp_path / "r")
    (step,) = judge(open_record(path)).steps
    assert (step.clients_asked, step.clients, step.status) == (3, 3, "valid")
    assert step.clients_by_littles_law == pytest.approx(3, rel=0.02)
    # One of the three falls silent: its requests are taken out of the trace.
    samples = next(path.glob("trials/*/samples.parquet"))
    table = pq.read_table(samples)
    pq.write_table(table.filter(pc.not_equal(table.column("connection"), 2)), samples)
    again = judge(open_record(path))
    assert again.steps[0].clients == 2
    assert again.steps[0].clients_by_littles_law == pytest.approx(2, rel=0.02)
    assert again.steps[0].status == "void"
    assert again.void == (
        "Void: the only step says nothing about what the server sustains (Little's law), so there "
        "is no answer."
    )
    assert again.verdict.decision.startswith("Void: ")
    assert "at most" not in again.verdict.decision


def test_quantiles_have_intervals_that_hold_the_truth(tmp_path: Path) -> None:
    run = load_run()
    run.add("c4", server=exponential(0.004), clients=4, levels={"load.clients": 4}, seconds=21)
    (step,) = judged(run, tmp_path / "r").steps
    for name, q in within.LANDMARKS.items():
        truth = -0.004 * np.log(1 - q)
        found = step.response[name]
        assert found.interval is not None
        assert found.interval.low * 0.97 < truth < found.interval.high * 1.03, name
    assert step.response["max"].value >= step.response["p999"].value
    assert step.answered is not None
    assert step.answered.value == pytest.approx(1000, rel=0.05)


def test_equal_queues_are_rarely_told_apart_though_their_requests_wait_for_each_other() -> None:
    rng = np.random.default_rng(5)
    window = (1_000_000_000, 11_000_000_000)

    def trial() -> dict[str, Any]:
        due = np.sort(rng.uniform(0, 11, 11_000))
        response = single_queue(1 / 1250)(due, None, rng)
        kept = due >= 1
        return within.quantiles(
            (response[kept] * 1e9).astype(np.int64), (due[kept] * 1e9).astype(np.int64), window
        )

    pairs = [(trial(), trial()) for _ in range(60)]
    for name in ("p50", "p90", "p99"):
        truth = -np.log(1 - within.LANDMARKS[name]) / (1250 - 1000)
        told = [within.resolved(within.ratio(a[name], b[name])[0]) for a, b in pairs]
        held = [e.interval.low <= truth <= e.interval.high for p in pairs for x in p
                if (e := x[name]).interval is not None]  # fmt: skip
        assert sum(told) <= 6, name
        assert np.mean(held) > 0.85, name


def test_more_clients_bring_nothing_where_the_workers_are_all_busy(tmp_path: Path) -> None:
    found = judged(by_clients((1, 2, 4, 8, 16)), tmp_path / "r")
    said = found.verdict.decision
    assert found.void == ""
    assert "More than 4 clients bring no more throughput" in said
    assert "the response p99 goes from" in said
    assert "at 16 clients" in said
    assert "may sustain more" not in said
    assert said.count("--repeat") == 1
    kinds = {f.kind for f in found.findings}
    assert not kinds & {"no A/A control", "too few replicates"}


@pytest.mark.parametrize(("foreign_s", "shared"), [(3.0, False), (3.0, True), (0.4, False)])
def test_a_step_beside_which_others_worked_is_void_unless_the_machine_is_shared(
    tmp_path: Path, foreign_s: float, shared: bool
) -> None:
    run = by_clients((1, 2))
    used = 1.1 * 5  # by the server and the generator
    one = {"interrupts_s": 0, "steal_s": 0, "idle_s": 0}
    cores = [{"cpu": cpu, "busy_s": (used + foreign_s) / 2, **one} for cpu in (0, 1)]
    run.treatments[1].extra = {"host_window": {"by_core": cores, "shared": shared}}
    first, second = ordered(judged(run, tmp_path / "r"))
    assert first.status == "valid"
    assert (second.status == "void") is (foreign_s > 2 and not shared)
    assert ("foreign CPU: 30 % of all cores" in second.reason) is (second.status == "void")


def test_the_last_step_as_the_best_means_that_the_most_is_not_known(tmp_path: Path) -> None:
    said = judged(by_clients((1, 2, 4)), tmp_path / "r").verdict.decision
    assert "at 4 clients." in said
    assert "it may sustain more: nothing is known beyond 4 clients" in said


def test_a_rate_beyond_capacity_is_an_answer_and_no_void_step(tmp_path: Path) -> None:
    run = load_run()
    for rate in (100, 200, 400):  # M/M/1 of 300 a second
        run.add(f"r{rate}", server=single_queue(1 / 300), rate_per_s=rate,
                levels={"load.rate_per_s": rate}, seconds=11.0, warmup_s=1.0)  # fmt: skip
    found = judged(run, tmp_path / "r")
    steps = ordered(found)
    assert [s.keeps_up for s in steps] == [True, True, False]
    assert [s.status for s in steps] == ["valid"] * 3
    assert "keeps up with 200 requests per second" in found.verdict.decision
    assert "tantivy does not keep up with 400 requests per second: " in found.verdict.decision
    assert " of the load was answered within the window, " in found.verdict.decision
    over = steps[2]
    assert over.answered is not None
    assert over.achieved is not None
    assert over.answered.value == pytest.approx(300, rel=0.08)
    assert over.achieved.value == pytest.approx(0.75, abs=0.06)
    assert over.response_growth == pytest.approx(0.33, abs=0.12)
    assert "not kept up" in {f.kind for f in over.findings}
    assert "not kept up" in line_of(found, over)[-1]


def test_a_replay_is_told_with_its_worst_minute(tmp_path: Path) -> None:
    def busy(due: Any, query: Any, rng: np.random.Generator) -> Any:
        return np.where((due >= 61) & (due < 121), 0.5, 0.01) * rng.uniform(0.5, 1, due.size)

    run = load_run()
    run.add("replay", server=busy, rate_per_s=20, seconds=181.0, levels={"load.speed": 2.0})
    run.treatments[0].load |= {"kind": "replay", "speed": 2.0}
    found = judged(run, tmp_path / "r")
    (step,) = found.steps
    assert step.worst_minute["from_s"] == 60
    assert step.worst_minute["response_p99"] == pytest.approx(0.5, rel=0.03)
    assert "keeps up with the log at 2 times its own speed" in found.verdict.decision
    assert "In the worst minute, from 60 s of the window on" in found.verdict.decision


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({(2, 1): 0.02}, "In 1 of 3 drives at 2 clients, more than 1 % of"),
        ({(2, 1): 0.02, (2, 2): 0.02, (2, 3): 0.02}, "At 2 clients, more than 1 % of"),
        ({(n, i): 0.02 for n in (2, 4) for i in (1, 2, 3)}, "From 2 clients on, more"),
        ({(1, 2): 0.02, (4, 1): 0.4}, "In 2 of 6 drives at 1 client and 4 clients, more"),
    ],
)
def test_that_requests_fail_from_a_load_on_is_said_only_if_they_do_from_there_on(
    tmp_path: Path, shares: dict[tuple[int, int], float], said: str
) -> None:
    """Of 1, 2 and 4 clients in three drives each."""
    run = load_run()
    run.blocks = 3
    found = judged(by_clients((1, 2, 4), run=run), tmp_path / "r")
    each = [
        replace(s, error_share=Estimate(share, "share", 1000), outcomes={"ok": 9, "timeout": 1})
        for n in (1, 2, 4)
        for i, s in enumerate((s for s in found.steps if s.clients_asked == n), 1)
        for share in (shares.get((n, i), 0.0),)
    ]
    points = [
        Point("new", n, "closed", tuple(s for s in each if s.clients_asked == n)) for n in (1, 2, 4)
    ]
    assert [len(p.steps) for p in points] == [3, 3, 3]
    (sentence,) = errors("new", points)
    assert sentence.startswith(said)
    assert ("From " in sentence) is said.startswith("From ")


def test_errors_are_a_result_and_not_a_fault_of_the_measurement(tmp_path: Path) -> None:
    found = judged(by_clients((1, 2), error_share=0.05), tmp_path / "r")
    assert [s.status for s in found.steps] == ["valid", "valid"]
    assert "more than 1 % of the requests to new failed" in found.verdict.decision
    share = ordered(found)[1].error_share
    assert share is not None
    assert share.interval is not None
    assert share.interval.low < 0.05 < share.interval.high
    assert ordered(found)[1].outcomes["engine_error"] > 0
    assert "engine error" in found.verdict.decision


def test_a_late_client_makes_a_step_void_and_the_others_stand(tmp_path: Path) -> None:
    run = by_clients((1, 2))
    run.treatments[1].lag_ns = 2_000_000
    found = judged(run, tmp_path / "r")
    assert [s.status for s in ordered(found)] == ["valid", "void"]
    assert found.void.startswith("Void: 1 of 2 steps")
    assert "generator lag" in found.void
    assert found.verdict.decision.startswith(found.void)
    assert "void: generator lag" in line_of(found, ordered(found)[1])[-1]
    assert "at 2 clients" not in found.verdict.decision


def test_two_systems_are_compared_at_each_step_and_an_equal_pair_is_not_resolved(
    tmp_path: Path,
) -> None:
    run = by_clients((1, 2, 4), system="old", factor=2.0)
    by_clients((1, 2, 4), system="new", run=run)
    by_clients((1, 2, 4), system="twin", run=run)
    found = judged(run, tmp_path / "r")
    assert "At equal loads new answers " in found.verdict.decision
    assert (
        "(the range of the 95 % intervals) as many queries per second as old"
        in found.verdict.decision
    )
    assert found.verdict.best is None, "not told apart from its twin"
    system = {t.treatment: t.system for t in found.treatments}
    twins = [c for c in found.comparisons if {system[c.a], system[c.b]} == {"new", "twin"}]
    assert twins
    assert {c.verdict for c in twins} == {"not resolved"}
    agreed = {(a.label_a, a.label_b): a for a in found.agreement}
    assert set(agreed) == {("old", "new"), ("old", "twin"), ("new", "twin")}
    assert all(a.agreeing == a.queries for a in agreed.values())


def test_replies_that_nobody_could_read_are_not_said_to_differ(tmp_path: Path) -> None:
    unread = {"total": None, "ids": [], "scores": []}
    run = by_clients((1,), system="old", factor=2.0, answer=lambda q: unread)
    by_clients((1,), system="new", run=run, answer=lambda q: unread)
    found = judged(run, tmp_path / "r")
    assert found.agreement == ()
    assert "not comparable" not in {c.verdict for c in found.comparisons}
    assert not {f.kind for f in found.findings} & {"little agreement", "answers changed"}


def test_repeated_steps_are_as_sure_as_both_windows_and_repetition_allow(tmp_path: Path) -> None:
    run = by_clients((1, 4), run=load_run(blocks=3))
    run.trial_noise = 0.05
    found = judged(run, tmp_path / "r")
    assert "--repeat" not in found.verdict.decision
    assert len(found.steps) == 6
    assert [s.block for s in found.steps if s.treatment == "new-1"] == [0, 1, 2]


def test_the_json_has_an_object_a_step_with_names_that_stay(tmp_path: Path) -> None:
    found = judged(by_clients((1, 2)), tmp_path / "r")
    told = json.loads(json.dumps(steps_json(found)))
    assert sorted(step["clients"] for step in told) == [1, 2]
    documented = (Path(__file__).parent.parent / "FORMATS.md").read_text("utf-8")
    for name in told[0]:
        assert f"`{name}`" in documented, name
    assert to_json(found)["measure"] == "sweep"


def test_connect_times_are_told_where_connections_were_opened(tmp_path: Path) -> None:
    path = by_clients((2,)).write(tmp_path / "r")
    assert judge(open_record(path)).steps[0].connect == {}
    samples = next(path.glob("trials/*/samples.parquet"))
    table = pq.read_table(samples)
    due = table.column("due").to_numpy()
    if "connect" in table.column_names:
        table = table.drop_columns(["connect"])
    table = table.append_column("connect", pa.array(due))
    table = table.set_column(table.column_names.index("free"), "free", pa.array(due + 2000))
    pq.write_table(table, samples)
    found = judge(open_record(path)).steps[0].connect
    assert found["p50"].value == pytest.approx(2e-6)


def compared(tmp_path: Path, before: Study, after: Study) -> Any:
    return compare_records(_opened(before, tmp_path / "a"), _opened(after, tmp_path / "b"))


def _opened(run: Study, path: Path) -> Record:
    return open_record(run.write(path))


def test_an_upgrade_that_halves_the_speed_is_a_regression_at_every_step(tmp_path: Path) -> None:
    before = by_clients((1, 4), system="a:1", seconds=11.0)
    after = by_clients((1, 4), system="a:2", factor=2.0, seconds=11.0)
    found = compared(tmp_path, before, after)
    assert found.beyond_threshold
    assert found.regressed is None
    lines = [line for line in found.comparisons if line.metric == "throughput"]
    assert [line.verdict for line in lines] == ["differs", "differs"]
    assert lines[0].ratio is not None
    assert lines[0].ratio.value == pytest.approx(0.5, rel=0.03)
    assert "driven once" in found.decision
    assert "(--repeat 5 shows more)" in found.decision
    after.judging["command"] = ()
    studied = compare_records(open_record(tmp_path / "a"), _opened(after, tmp_path / "d"))
    assert "(`replicates = 5` shows more)" in studied.decision
    again = by_clients((1, 4), system="a:3", factor=1.02, run=load_run(seed=5))
    known = compare_records(
        open_record(tmp_path / "a"), open_record(tmp_path / "b"), 0.05,
        [_opened(again, tmp_path / "c")],
    )  # fmt: skip
    assert [line.runs for line in known.comparisons if line.metric == "throughput"] == [(2, 1)] * 2


def test_the_same_again_is_not_resolved(tmp_path: Path) -> None:
    found = compared(tmp_path, by_clients((1, 4)), by_clients((1, 4), run=load_run(seed=9)))
    assert not found.regressed
    assert {line.verdict for line in found.comparisons} == {"not resolved"}


def test_a_rate_that_is_no_longer_kept_up_is_a_regression(tmp_path: Path) -> None:
    def at(mean_s: float) -> Study:
        run = load_run()
        run.add("r", server=single_queue(mean_s), rate_per_s=250, seconds=41.0,
                levels={"load.rate_per_s": 250})  # fmt: skip
        return run

    found = compared(tmp_path, at(1 / 1500), at(1 / 150))
    assert found.beyond_threshold
    assert "does not keep up with this rate" in found.decision + "".join(
        x.reason for x in found.comparisons
    )


def test_other_answers_after_an_upgrade_are_told_beside_the_speeds(tmp_path: Path) -> None:
    def other(query: int) -> dict[str, Any]:
        return {"total": 1, "ids": [f"x{query}"], "scores": [1.0]}

    found = compared(tmp_path, by_clients((1, 2)), by_clients((1, 2), answer=other))
    assert found.answers_changed == {"new": (40, 40)}
    assert "Of 40 queries, totals differ on 40; the first 10 hits differ on 40" in found.decision
    (said,) = [f.meaning for f in found.findings if f.kind == "answers changed"]
    assert "The ratios are over all requests" in said


def test_other_requests_make_two_load_runs_not_comparable(tmp_path: Path) -> None:
    before, after = by_clients((1,)), by_clients((1,))
    after.treatments[0].extra = {"queries": {"digest": "other"}}
    path = after.write(tmp_path / "b")
    (path / "queries" / "beef.jsonl").rename(path / "queries" / "other.jsonl")
    found = compare_records(_opened(before, tmp_path / "a"), open_record(path))
    assert {line.verdict for line in found.comparisons} == {"not comparable"}
    assert "requests are not the same" in found.comparisons[0].reason


def test_a_sweep_of_several_configurations_of_a_system_is_compared_by_subject(
    tmp_path: Path,
) -> None:
    run = load_run()
    for parts, factor in ((1, 2.0), (2, 1.0)):
        for n in (1, 2, 4):
            run.add(
                f"p{parts}-{n}", system="sphinx", subject=f"sphinx parts={parts}", clients=n,
                server=lognormal(0.004 * factor, 0.1),
                levels={"load.cpus": 7, "systems.sphinx.parts": parts, "load.clients": n},
            )  # fmt: skip
    found = judged(run, tmp_path / "r")
    assert {(s.system, s.subject) for s in found.steps} == {
        ("sphinx", "sphinx parts=1"),
        ("sphinx", "sphinx parts=2"),
    }
    assert sorted({level_of(s) for s in found.steps}) == [1, 2, 4], "not the first load level"
    assert "At equal loads sphinx parts=2 answers " in found.verdict.decision
    assert found.verdict.best == "sphinx parts=2"
    assert found.verdict.header[:2] == ("subject", "clients")
    copy = shutil.copytree(tmp_path / "r", tmp_path / "copy")
    plan = copy / "plan.json"
    plan.write_text(plan.read_text() + "\n")  # else it is refused
    again = compare_records(open_record(tmp_path / "r"), open_record(copy))
    assert len(again.comparisons) == 18
    assert again.only_in_a == ()


def cold_pair(cold: bool, blocks: int = 1) -> Study:
    """Two equal systems at 1 and 4 clients, the second perhaps cold when it is first driven."""
    run = load_run(blocks=blocks)
    for system in ("warm", "cold"):
        for n in (1, 4):
            slow = cold and (system, n) == ("cold", 1)
            server = warming(lognormal(0.004), 2.5, 7) if slow else lognormal(0.004)
            run.add(f"{system}{n}", system=system, server=server, clients=n, seconds=8,
                    levels={"system": system, "load.clients": n})  # fmt: skip
    return run


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_step_that_was_not_steady_resolves_nothing_and_all_say_so(
    tmp_path: Path, blocks: int
) -> None:
    found = judged(cold_pair(True, blocks), tmp_path / "r")
    assert (found.verdict.best, found.verdict.resolved) == (None, False)
    first = [c for c in found.comparisons if c.b == "cold1"]
    assert {(c.verdict, c.state, c.state_floor) for c in first} == {
        ("not resolved", "not steady", float("inf"))
    }
    said = found.verdict.decision
    assert (
        "cold was not steady at 1 client: its times still changed, so its figures there decide "
        "nothing. Warm" in said
    )
    against = "cold 1 against warm 1 by throughput is not resolved: cold 1 was not steady in"
    assert (against in said) == (blocks > 1), "once, it may be chance too"
    assert {"cold 1 was not steady in" in c.reason for c in first} == {True}
    assert (
        "By throughput, which of warm and cold is better is not resolved at any of 2 equal loads"
        in said
    )
    cold = [s for s in found.steps if s.treatment == "cold1"]
    assert {(s.steadiness, line_of(found, s)[-1]) for s in cold} == {("not steady", "not steady")}
    assert {s["steadiness"] for s in steps_json(found) if s["treatment"] == "cold1"} == {
        "not steady"
    }


def test_of_many_subjects_the_best_is_told_with_intervals(tmp_path: Path) -> None:
    run = load_run()
    for i, system in enumerate("abcd"):
        by_clients((1, 2, 4), system=system, factor=1.5**i, run=run, seconds=15.0)
    found = judged(run, tmp_path / "r")
    assert found.verdict.best == "a"
    said = found.verdict.decision
    assert "Of 4 configurations a is the best by throughput at all equal loads" in said
    assert re.search(r"it is 1\.5\d? times \(95 % interval 1\.[45]\d*–1\.5\d*\) as good as b", said)


def test_nothing_is_the_best_of_a_sweep_by_one_query_alone(tmp_path: Path) -> None:
    run = load_run(queries=1)
    by_clients((1, 4), system="old", factor=2.0, run=run, seconds=15.0)
    by_clients((1, 4), system="new", run=run, seconds=15.0)
    found = judged(run, tmp_path / "r")
    assert found.verdict.best is None
    assert "as many queries per second as old, over only 1 query." in found.verdict.decision


def test_from_where_on_clients_bring_nothing_is_unknown_where_the_most_was_not_steady(
    tmp_path: Path,
) -> None:
    run = by_clients((1, 2), run=load_run())
    cold = warming(lognormal(0.002), 2.5, 7)
    run.add("new-4", system="new", server=cold, clients=4, seconds=8,
            levels={"system": "new", "load.clients": 4})  # fmt: skip
    by_clients((8,), run=run)
    said = judged(run, tmp_path / "r").verdict.decision
    assert (
        "How many clients are enough is unknown, because the step with 4 clients was not steady."
        in said
    )
    assert "no more throughput" not in said


def test_of_two_sweeps_a_cold_one_is_no_regression(tmp_path: Path) -> None:
    found = compared(tmp_path, cold_pair(False), cold_pair(True))
    assert not found.beyond_threshold
    (line,) = (of for of in found.comparisons if (of.label, of.metric) == ("cold 1", "throughput"))
    assert (line.verdict, line.state) == ("not resolved", "not steady")
    assert "the second was not steady in 1 of 1 trials. Warm up longer" in found.decision


def test_first_asks_of_a_sweep_are_those_that_no_step_before_had_asked(tmp_path: Path) -> None:
    run = load_run(queries=3000)
    for system, median_s in (("fast", 0.001), ("slow", 0.01)):
        for step in (1, 2):
            run.add(f"{system}{step}", system=system, server=lognormal(median_s, 0.1),
                    clients=step, seconds=6.0,
                    levels={"system": system, "load.clients": step})  # fmt: skip
    found = judged(run, tmp_path / "r")
    asks = {t.treatment: t.figures["first_asks"].value for t in found.treatments}
    first, then = (s.treatment for s in found.steps if s.system == "slow")
    assert asks[first] == pytest.approx(1.0)
    assert asks[then] < 0.6
    of_first = [c for c in found.comparisons if c.b == first]
    assert {(c.verdict, c.state) for c in of_first} == {("not resolved", "other first asks")}
    assert found.verdict.best is None
    assert "were the first of their query. Warm up both until every query" in found.verdict.decision


def test_a_server_that_is_overloaded_is_not_steady_only_if_it_becomes_faster(
    tmp_path: Path,
) -> None:
    run = load_run()
    for name, mean_s in (("steady", lambda t: 1 / 300), ("cold", lambda t: 1 / (150 + 15 * t))):

        def server(due: Any, query: Any, rng: np.random.Generator, mean_s: Any = mean_s) -> Any:
            done, free_at = np.empty(due.size), 0.0
            for i, t in enumerate(due.tolist()):
                free_at = max(free_at, t)
                free_at += mean_s(free_at) * np.exp(0.3 * rng.standard_normal() - 0.045)
                done[i] = free_at
            return done - due

        run.add(name, system=name, server=server, rate_per_s=400, seconds=11.0,
                levels={"system": name, "load.rate_per_s": 400})  # fmt: skip
    found = judged(run, tmp_path / "r")
    assert {s.system: (s.keeps_up, s.steadiness == "not steady") for s in found.steps} == {
        "steady": (False, False),
        "cold": (False, True),
    }
    own = {s.system: {f.kind for f in s.findings} & {"not steady", "warm-up limit"}
           for s in found.steps}  # fmt: skip
    assert own == {"steady": set(), "cold": {"not steady"}}, "whoever is accused has a finding"


def test_what_was_refused_is_said_first_though_the_step_is_void_for_another_reason(
    tmp_path: Path,
) -> None:
    run = by_clients((2,), error_share=0.9)
    run.treatments[0].lag_ns = 3_000_000
    found = judged(run, tmp_path / "r")
    assert found.void
    assert re.match(r"(8|9)\d[.\d]* % of the requests failed at new 2 ", found.verdict.headline)
    clean = by_clients((2,), error_share=0.02)
    clean.treatments[0].lag_ns = 3_000_000
    assert "of the requests failed" not in judged(clean, tmp_path / "c").verdict.headline
