"""Two records: what changed, and whether it is a regression.

Longer than most files: two records may differ in many ways, and a few helpers write them all.
"""

from __future__ import annotations

import itertools
import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from records import Study, by_query, good_answer, lognormal, warming
from searchbench.analysis.compare import builds, setup
from searchbench.analysis.compare.pairs import noise_floors
from searchbench.analysis.compare.reconsider import _at_threshold
from searchbench.analysis.compare.records import compare_records, compare_runs
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judge import judge, to_json
from searchbench.analysis.judgement import Estimate
from searchbench.analysis.stats.intervals import ratio_over_runs, runs_to_resolve
from searchbench.cli.compare import compare
from searchbench.errors import SearchbenchError
from searchbench.record import Record, open_record
from searchbench.report.document.records import _badge


def record(
    path: Path, median_s: float = 0.004, seed: int = 1, sigma: float = 0.4, **treatment: Any
) -> Record:
    study = Study(blocks=5, seed=seed, block_noise=0.0)
    study.add("a", server=lognormal(median_s, sigma), **treatment)
    return open_record(study.write(path))


def runs(path: Path, slower_by: Sequence[float], **treatment: Any) -> list[Record]:
    """Runs of one thing, each slower than 4 ms by so much."""
    return [
        record(path / str(i), 0.004 * (1 + share), seed=100 + i, **treatment)
        for i, share in enumerate(slower_by)
    ]


def test_two_runs_that_differ_are_not_said_to_show_a_regression(tmp_path: Path) -> None:
    found = compare_records(record(tmp_path / "a"), record(tmp_path / "b", 0.0046, seed=2), 0.05)
    assert found.beyond_threshold
    assert found.regressed is None
    line = found.comparisons[0]
    assert line.verdict == "differs"
    assert line.run_sd is None
    assert "does not cover how much runs of one thing differ" in line.reason
    assert line.ratio is not None
    assert line.ratio.value == pytest.approx(1 / 1.15, rel=0.03)
    assert line.ratio.interval is not None
    assert line.ratio.interval.low <= 1 / 1.15 <= line.ratio.interval.high
    assert "These two runs differ by more than 5 %" in found.decision
    assert "How much runs of the same thing differ is not known" in found.decision
    for word in ("regression", "slower", "faster"):
        assert word not in found.decision + " ".join(sum(found.lines, ()))
    lenient = compare_records(record(tmp_path / "a2"), record(tmp_path / "b2", 0.0046, seed=2), 0.2)
    assert not lenient.beyond_threshold
    assert lenient.comparisons[0].verdict == "differs"


def test_runs_of_the_same_thing_turn_a_difference_into_a_regression(tmp_path: Path) -> None:
    first, *same = runs(tmp_path, (0.0, 0.01, -0.01, 0.005), sigma=0.1)
    second, *same_b = runs(tmp_path / "b", (0.3, 0.31, 0.29), sigma=0.1)
    found = compare_records(first, second, 0.05, same, same_b)
    line = found.comparisons[0]
    assert (line.verdict, line.runs) == ("slower", (4, 3))
    assert line.run_sd == pytest.approx(0.0085, abs=0.004)
    assert line.ratio is not None
    assert line.ratio.interval is not None
    assert line.ratio.interval.low < 1 / 1.3 < line.ratio.interval.high
    assert "t over runs" in line.ratio.interval.method
    assert found.regressed
    assert found.beyond_threshold
    assert "A regression beyond 5 %" in found.decision
    assert " % in 4 runs and those of the second differ by " in found.decision
    assert "in 3 runs (standard deviation), and the intervals cover it." in found.decision
    assert found.same == tuple(str(run.path) for run in same)


def test_a_difference_that_runs_of_one_thing_show_too_is_not_resolved(tmp_path: Path) -> None:
    first, *same = runs(tmp_path, (0.0, 0.08, -0.05, 0.04))
    after = record(tmp_path / "b", 0.0044)
    assert compare_records(first, after).beyond_threshold, "within the two runs it is clear"
    found = compare_records(first, after, 0.05, same)
    assert {line.verdict for line in found.comparisons} == {"not resolved"}
    assert found.regressed is None, "how much runs of the second differ is not known"
    assert not found.beyond_threshold
    assert "is not excluded" in found.decision
    more = runs(tmp_path / "more", (0.05, 0.12))
    found = compare_records(first, after, 0.05, same, more)
    assert {line.verdict for line in found.comparisons} == {"not resolved"}
    assert found.regressed is False


def test_a_cold_run_on_either_side_is_no_regression(tmp_path: Path) -> None:
    def run(name: str, seed: int, cold: bool = False) -> Record:
        study = Study(blocks=3, seed=seed, block_noise=0.005)
        server = lognormal(0.004)
        study.add("a", server=warming(server, 2.0, 7.2) if cold else server, seconds=8, warmup_s=1)
        return open_record(study.write(tmp_path / name))

    first, *same = [run(f"a{i}", i) for i in range(4)]
    cold = run("cold", 50, cold=True)
    for further in ([], same):
        found = compare_records(first, cold, 0.05, further)
        line = found.comparisons[0]
        assert (line.verdict, line.state, line.state_floor) == (
            "not resolved",
            "not steady",
            math.inf,
        )
        assert not found.regressed
        assert not found.beyond_threshold
        assert "the second was not steady in " in found.decision
        assert "Warm up longer" in found.decision
    found = compare_records(first, run("b", 60), 0.05, [*same[:2], cold])
    assert found.comparisons[0].state == "not steady"
    assert "further run 3 of the first was not steady" in "".join(found.would_change)
    json.dumps(to_json(found), allow_nan=False)


def test_runs_of_both_sides_count(tmp_path: Path) -> None:
    first, *same = runs(tmp_path / "a", (0.0, 0.01), sigma=0.1)
    second, *same_b = runs(tmp_path / "b", (0.2, 0.21), sigma=0.1)
    line = compare_records(first, second, 0.05, same, same_b).comparisons[0]
    assert (line.verdict, line.runs) == ("slower", (2, 2))


def test_a_run_counts_once_and_has_to_be_of_the_same_study(tmp_path: Path) -> None:
    a, b = record(tmp_path / "a"), record(tmp_path / "b", seed=3)
    with pytest.raises(SearchbenchError, match="given twice"):
        compare_records(a, b, 0.05, [a])
    with pytest.raises(SearchbenchError, match="given as both A and B"):
        compare_records(a, open_record(tmp_path / "b" / ".." / "a"))
    other = record(tmp_path / "c", seed=2, levels={"load.clients": 8})
    with pytest.raises(SearchbenchError, match="nothing in it can be compared"):
        compare_records(a, b, 0.05, [other])


def test_copies_of_a_run_and_of_parts_of_it_are_no_runs(tmp_path: Path) -> None:
    """They show no noise, wherever they stand among other runs."""
    before, *same = runs(tmp_path / "a", [1.0, 1.01, 1.02])
    after, other = runs(tmp_path / "b", [1.3, 1.31])
    whole = shutil.copytree(after.path, tmp_path / "whole")
    part = shutil.copytree(after.path, tmp_path / "part")
    shutil.rmtree(sorted((part / "trials").iterdir())[0])
    edited = shutil.copytree(after.path, tmp_path / "edited")
    for path in edited.glob("trials/*/trial.json"):
        trial = json.loads(path.read_text())
        path.write_text(json.dumps(trial | {"started": "2026-02-01T12:00:00Z", "version": "2.0"}))
    for path in (whole, part, edited):
        copied = open_record(path)
        with pytest.raises(SearchbenchError, match=r"so they are copies of one run, or of parts"):
            compare_records(before, after, same=same, same_b=[other, copied])
        with pytest.raises(SearchbenchError, match=f"{after.path} and {path} have the same trials"):
            compare_records(after, before, same=[copied], same_b=same)
    with pytest.raises(SearchbenchError, match=f"{after.path} and {whole} have .* is of A or of B"):
        compare_records(after, open_record(whole), same=same)
    found = compare_records(before, after, same=same, same_b=[other])
    assert found.comparisons[0].runs == (3, 2), "what is no copy counts"


def test_failed_trials_that_began_and_ended_at_the_same_instants_are_copies(tmp_path: Path) -> None:
    """Two runs may fail alike, but their phases do not take the same nanoseconds."""
    a, *same = (record(tmp_path / f"a{i}", seed=i) for i in range(3))
    spans = [[{"phase": "deploy", "start": 0, "end": end}] for end in (1_203_417, 1_198_022)]
    b, other = (
        record(tmp_path / f"b{i}", seed=i, fails_at="deploy", extra={"spans": own})
        for i, own in enumerate(spans)
    )
    assert compare_records(a, b, same=same, same_b=[other]).lost
    copied = open_record(shutil.copytree(b.path, tmp_path / "copied"))
    with pytest.raises(SearchbenchError, match="copies of one run"):
        compare_records(a, b, same=same, same_b=[other, copied])


def test_what_runs_of_several_settings_lost_is_not_known_to_be_lost(tmp_path: Path) -> None:
    a, *same = (record(tmp_path / f"a{i}", seed=i) for i in range(3))
    b, other = (
        record(
            tmp_path / f"b{i}", seed=i, fails_at="deploy",
            extra={"spans": [{"phase": "deploy", "start": 0, "end": 1_203_417 + i}]},
        )
        for i in range(2)
    )  # fmt: skip
    label = b.plan.treatments[0].label
    found = compare_records(a, b, same=same, same_b=[other])
    assert (found.regressed, [*found.lost]) == (True, [label])
    for path in other.path.glob("trials/*/trial.json"):
        trial = json.loads(path.read_text())
        path.write_text(json.dumps(trial | {"parameters": {"threads": 4}}))
    for path in b.path.glob("trials/*/trial.json"):
        trial = json.loads(path.read_text())
        path.write_text(json.dumps(trial | {"parameters": {"threads": 2}}))
    found = compare_records(a, open_record(b.path), same=same, same_b=[open_record(other.path)])
    assert (found.regressed, found.beyond_threshold, found.lost) == (None, False, {})
    assert "the runs of a side are not of the same versions and settings" in found.not_known[label]


def test_runs_of_other_versions_or_made_apart_are_findings(tmp_path: Path) -> None:
    first, *same = runs(tmp_path / "a", (0.0, 0.01), extra={"started": "2026-01-30T12:00:00Z"})
    same += runs(tmp_path / "c", (0.02,), extra={"started": "2026-01-30T13:00:00Z"}, version="2.0")
    found = compare_records(first, record(tmp_path / "b"), 0.05, same)
    assert {"not the same", "not interleaved"} <= {f.kind for f in found.findings}
    inside = compare_records(first, record(tmp_path / "d"), 0.05, [record(tmp_path / "e", seed=3)])
    assert "not interleaved" not in {f.kind for f in inside.findings}


def booted(found: Record, boot_id: str) -> Record:
    """The same record, of a machine that was started under this name."""
    path = found.path / "host.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"boot_id": boot_id}))
    return open_record(found.path)


def test_trials_of_two_records_that_overlap_in_time_on_one_machine_are_a_finding(
    tmp_path: Path,
) -> None:
    later = {"started": "2026-01-31T12:00:10Z", "ended": "2026-01-31T12:00:20Z"}
    a = booted(record(tmp_path / "a"), "one")
    for name, other, overlaps in (
        ("b", booted(record(tmp_path / "b", seed=2), "one"), True),
        ("c", booted(record(tmp_path / "c", seed=2), "another"), False),
        ("d", booted(record(tmp_path / "d", seed=2, extra=later), "one"), False),
    ):
        found = [f for f in compare_records(a, other).findings if f.kind == "at one time"]
        assert bool(found) is overlaps, name
        assert all(f.number == f"{a.path} and {other.path}" for f in found)


def test_equal_systems_are_seldom_called_different_where_runs_differ(tmp_path: Path) -> None:
    # Runs differ by 2 %, trials by 0.5 %; each of a few records stands for the second in turn.
    effects = norm.ppf((np.arange(8) + 0.5) / 8) * 0.02
    shares = np.random.default_rng(4).permutation(effects)
    pool = [Run(one) for one in runs(tmp_path, shares, sigma=0.1)]
    pairs = list(itertools.permutations(range(8), 2))
    alone = [compare_runs([pool[i]], [pool[j]]) for i, j in pairs[:28]]
    assert sum(one.comparisons[0].verdict == "differs" for one in alone) > 14
    assert not any(one.regressed for one in alone)
    known = [compare_runs([pool[(j + i) % 8] for i in range(1, 6)], [pool[j]]) for j in range(8)]
    assert all(one.comparisons[0].verdict == "not resolved" for one in known)


def test_the_same_again_is_not_resolved_and_no_regression(tmp_path: Path) -> None:
    found = compare_records(record(tmp_path / "a"), record(tmp_path / "b", seed=9), 0.0)
    assert {line.verdict for line in found.comparisons} == {"not resolved"}
    assert not found.beyond_threshold
    assert found.regressed is None
    told = "The answers to all 40 queries are the same: totals, first 10 hits and their order."
    assert told in found.decision
    assert found.findings == ()


def test_an_improvement_is_faster_and_no_regression(tmp_path: Path) -> None:
    found = compare_records(record(tmp_path / "a"), record(tmp_path / "b", 0.003, seed=2))
    assert {line.verdict for line in found.comparisons} == {"differs"}
    assert not found.beyond_threshold
    first, *same = runs(tmp_path / "runs", (0.0, 0.01, -0.01, 0.005), sigma=0.1)
    second, *more = runs(tmp_path / "more", (-0.25, -0.26, -0.24), sigma=0.1)
    found = compare_records(first, second, 0.05, same)
    assert {line.verdict for line in found.comparisons} == {"differs"}
    assert found.regressed is None
    found = compare_records(first, second, 0.05, same, more)
    assert {line.verdict for line in found.comparisons} == {"faster"}
    assert found.regressed is False


def test_changed_answers_are_counted_and_left_out_of_the_ratio(tmp_path: Path) -> None:
    def other(query: int) -> dict[str, Any]:
        return good_answer(query) | ({"total": 0, "ids": [], "scores": []} if query < 5 else {})

    after = record(tmp_path / "b", seed=2, answer=other, version="2.0")
    found = compare_records(record(tmp_path / "a"), after)
    assert found.answers_changed == {"tantivy": (5, 40)}
    kinds = {f.kind for f in found.findings}
    assert kinds == {"answers changed", "other versions"}
    said = "Of 40 queries, totals differ on 5; the first 10 hits differ on 5 and their order"
    assert said in found.decision


def test_two_records_are_compared_over_one_mix_of_queries(tmp_path: Path) -> None:
    """Equal systems; windows of two and a half passes through the log, from another place of it."""

    def run(name: str, warmup_s: float, slower: float = 1.0) -> Record:
        study = Study(blocks=3, seed=3, queries=400, block_noise=0.0)
        costly = dict.fromkeys(range(200, 400), 5.0)  # a pass: 0.4 s and 2 s
        server = by_query(0.002 * slower, costly, 0.05)
        study.add("a", server=server, clients=1, seconds=warmup_s + 6, warmup_s=warmup_s)
        return open_record(study.write(tmp_path / name))

    first = run("a", 2.4)
    for name, warmup_s, slower in (("b", 2.8, 1.0), ("c", 2.8 * 1.2, 1.2)):
        found = compare_records(first, run(name, warmup_s, slower))
        line = found.comparisons[0]
        assert line.ratio is not None
        assert line.value_a is not None
        assert line.value_b is not None
        assert slower * line.value_b.value / line.value_a.value < 0.93, "as they are"
        assert line.ratio.value == pytest.approx(1 / slower, rel=0.01)
        assert line.verdict == ("differs" if slower > 1 else "not resolved")
        assert (line.queries_used, line.queries_measured) == (400, 400)
        said = "over the 400 queries on which both return the same totals, all of them measured"
        assert said in found.decision


def test_what_rests_on_few_queries_is_said_so_wherever_it_is_said(tmp_path: Path) -> None:
    def run(name: str, slower: float) -> Record:
        study = Study(blocks=3, seed=3, queries=2000, block_noise=0.0)
        server = by_query(0.005 * slower, {}, 0.05)
        study.add("a", server=server, clients=1, seconds=6.0, warmup_s=0.05)
        return open_record(study.write(tmp_path / name))

    a, b = run("a", 1), run("b", 20)
    found = compare_records(a, b)
    line = found.comparisons[0]
    assert line.verdict == "differs"
    assert line.queries_measured is not None
    few = line.queries_measured
    assert 0 < few < 80
    assert f" in the second, over only {few} queries." in found.decision
    assert f"only {few} were measured on both sides in one block of tantivy" in found.decision
    assert f"only {few} of these 2000 queries" in line.reason
    assert any(said.startswith(f"tantivy: only {few} of 2000") for said in found.would_change)
    assert _badge(replace(found, beyond_threshold=False, regressed=False)).tone != "good"


def test_what_is_not_known_of_each_request_is_compared_over_all_of_them(tmp_path: Path) -> None:
    def other(query: int) -> dict[str, Any]:
        return good_answer(query) | ({"total": 0, "ids": [], "scores": []} if query < 5 else {})

    def run(name: str, **treatment: Any) -> Record:
        study = Study(blocks=2, judging={"metric": "cpu_s_per_query"})
        study.add("a", server=lognormal(0.004, 0.05), error_share=0.002, **treatment)
        return open_record(study.write(tmp_path / name))

    line = compare_records(run("a"), run("b", answer=other)).comparisons[0]
    assert (line.metric, line.queries_measured) == ("cpu_s_per_query", None)
    assert line.ratio is not None
    assert "over all requests" in line.reason


def test_failed_requests_win_nothing_and_hide_no_loss(tmp_path: Path) -> None:
    first, *same = runs(tmp_path / "a", (0.0, 0.01, -0.01, 0.005), sigma=0.05)
    for further in ([], same):
        after = record(tmp_path / f"b{len(further)}", 0.0032, sigma=0.05, error_share=0.005)
        lines = {c.metric: c for c in compare_records(first, after, 0.05, further).comparisons}
        p99 = lines["service_p99"]
        assert (p99.verdict, p99.failed_floor) == ("not resolved", math.inf)
        assert "what the second failed to answer could make the whole difference" in p99.reason
        assert p99.failed[0] == 0 < p99.failed[1] < 0.01
        assert lines["throughput"].verdict == "differs"
    after = record(tmp_path / "c", sigma=0.05, error_share=0.005)
    found = compare_records(first, after, 0.05, same)
    assert "what the second failed to answer may hide one" in found.decision
    assert "Failed requests are in none of these figures" in found.decision
    assert _badge(found).tone != "good"


@pytest.mark.parametrize(
    ("slower", "made", "verdict"),
    [
        (1.04, "by others", "not resolved"),
        (1.15, "by others", "slower"),
        (1.04, "in each run", "slower"),
        (1.04, "in each block", "slower"),
    ],
)
def test_runs_on_one_build_of_an_index_do_not_tell_builds_apart(
    tmp_path: Path, slower: float, made: str, verdict: str
) -> None:
    def run(name: str, seed: int, factor: float) -> Record:
        study = Study(blocks=3, seed=seed, block_noise=0.0, trial_noise=0.002)
        if made != "in each block":
            study.judging["ingest"] = "once"
        if made == "by others":
            study.built["tantivy"] = name[0]  # one build for all runs of a side
        study.add("a", server=lognormal(0.004 * factor, 0.05))
        return open_record(study.write(tmp_path / name))

    first, *same = [run(f"a{i}", i, 1.0) for i in range(4)]
    second, *same_b = [run(f"b{i}", 50 + i, slower) for i in range(2)]
    found = compare_records(first, second, 0.02, same, same_b)
    line = found.comparisons[0]
    assert line.verdict == verdict, line.reason
    assert (line.build_floor > 1.05) is (made == "by others")
    assert ("An index was built only once" in found.decision) is (made == "by others")
    if verdict == "not resolved":
        assert "may be that of two builds" in line.reason
        assert "Build the index in each block" in "".join(found.would_change)
        assert not found.regressed
    alone = compare_records(first, second, 0.02)
    assert (alone.comparisons[0].build_floor > 1) is (made != "in each block")


def test_runs_that_are_built_alike_hold_how_much_builds_differ() -> None:
    def runs(*names: str) -> list[dict[int, str]]:  # a letter for the build of each block
        return [dict(enumerate(name)) for name in names]

    assert builds.over_runs(runs("aa"), runs("bb"), known=False)
    assert not builds.over_runs(runs("ab"), runs("cd"), known=False)
    assert not builds.over_runs(runs("aa"), runs("aa"), known=False), "one index"
    assert not builds.over_runs(runs(""), runs(""), known=True), "nothing was put in"
    assert not builds.over_runs(runs("aa", "bb"), runs("cc"), known=True)
    assert builds.over_runs(runs("aa", "aa"), runs("cc"), known=True)
    assert builds.over_runs(runs("ab", "cd"), runs("ee"), known=True), "once against each block"


def test_other_machines_are_a_finding(tmp_path: Path) -> None:
    a, b = record(tmp_path / "a"), record(tmp_path / "b")
    host = tmp_path / "b" / "host.json"
    host.write_text(json.dumps(json.loads(host.read_text()) | {"cores": 64}))
    found = compare_records(a, open_record(b.path))
    assert [f.number for f in found.findings if f.kind == "other machine"] == ["cores: 2 and 64"]


def test_a_fact_that_an_older_record_lacks_makes_no_other_machine(tmp_path: Path) -> None:
    a, b = record(tmp_path / "a"), record(tmp_path / "b")

    def found(facts: dict[str, Any]) -> list[str]:
        for side, own in ((a, {}), (b, {"halt_poll_ns": 0})):
            host = side.path / "host.json"
            known = json.loads(host.read_text()) | own | facts.get(side.path.name, {})
            host.write_text(json.dumps(known))
        compared = compare_records(open_record(a.path), open_record(b.path))
        return [f.number for f in compared.findings if f.kind == "other machine"]

    assert found({}) == []
    assert found({"a": {"halt_poll_ns": 200_000}}) == ["halt_poll_ns: 200000 and 0"]


def test_treatments_are_matched_by_their_levels(tmp_path: Path) -> None:
    a = record(tmp_path / "a", levels={"load.clients": 4})
    b = record(tmp_path / "b", levels={"load.clients": 8})
    found = compare_records(a, b)
    assert found.comparisons == ()
    assert found.only_in_a == ("4",)
    assert found.only_in_b == ("8",)
    assert not found.regressed


def test_a_record_without_valid_trials_is_not_comparable(tmp_path: Path) -> None:
    found = compare_records(record(tmp_path / "a"), record(tmp_path / "b", fails_at="deploy"))
    assert {line.verdict for line in found.comparisons} == {"not comparable"}
    assert found.regressed
    assert "No resolved loss" not in found.decision
    json.dumps(to_json(found), allow_nan=False)
    found = compare_records(open_record(tmp_path / "b"), open_record(tmp_path / "a"))
    assert (found.lost, found.beyond_threshold) == ({}, False)
    assert "No resolved loss" not in found.decision


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"fails_at": "deploy"}, "deploy"),
        ({"dies_at_s": 1.0}, ""),
        (None, "the second does not have it"),
    ],
)
def test_a_treatment_that_no_longer_works_is_a_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: dict[str, Any] | None, why: str
) -> None:
    def run(name: str, seed: int, of_second: dict[str, Any] | None) -> Path:
        study = Study(blocks=3, seed=seed, block_noise=0.0)
        study.add("a", server=lognormal(0.004), levels={"load.clients": 4})
        if of_second is not None:
            study.add("b", server=lognormal(0.004), levels={"load.clients": 8}, **of_second)
        return study.write(tmp_path / name)

    a, b = run("a", 1, {}), run("b", 2, broken)
    assert compare(a, b, as_json=True) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["beyond_threshold"], told["regressed"]) == (True, True)
    assert [*told["lost"]] == ["8"]
    assert why in told["lost"]["8"]
    assert f"none in the second: 8 ({told['lost']['8']})" in told["decision"]
    assert "Of the others, no resolved loss exceeds 5 %" in told["decision"]
    found = compare_records(open_record(a), open_record(b))
    assert "no valid trial of 8" in found.would_change[0]
    assert compare_records(open_record(b), open_record(a)).lost == {}


def test_the_floor_pools_the_twins_of_all_treatments(tmp_path: Path) -> None:
    study = Study(blocks=4, trial_noise=0.01)
    for name in ("a", "b"):
        study.add(name, server=lognormal(0.004))
    found = judge(open_record(study.write(tmp_path / "r")))
    quiet, noisy = found.treatments
    # The twin of a quiet treatment in two blocks, of one that is noisier in the others.
    quiet = replace(quiet, trials=tuple(t for t in quiet.trials if not t.control or t.block < 2))
    twins = [
        replace(t, control=True, figures={"throughput": Estimate(figure.value * 1.3, "1/s", 1)})
        for t in noisy.trials
        if t.block >= 2 and (figure := t.figures["throughput"])
    ]
    noisy = replace(noisy, trials=(*noisy.trials, *twins))
    floor = noise_floors([quiet, noisy], ["throughput"])["throughput"]
    assert (floor.n, floor.treatments) == (4, 2)
    assert floor.value == pytest.approx(1.3)
    assert "(4 pairs of 1 treatment)" in found.verdict.decision


def test_the_page_has_how_far_both_answer_the_same_by_all_measures(tmp_path: Path) -> None:
    def other(query: int) -> dict[str, Any]:
        found = good_answer(query)
        return found | {"ids": found["ids"][::-1] if query == 7 else ["x", *found["ids"][1:]]}

    a = record(tmp_path / "a")
    found = compare_records(a, record(tmp_path / "b", seed=2, answer=other))
    agreed = found.agreement["tantivy"]
    assert (agreed.queries, agreed.totals_match) == (40, 1.0)
    assert agreed.top_k_set_match == pytest.approx(1 / 40)
    assert agreed.groups is not None
    assert agreed.groups.document_set_match == (1, 40)
    assert agreed.groups.kendall_tau is not None
    least = agreed.examples[0]
    assert least.query == 7, "all in reverse is less alike than another first hit"
    assert least.text == 'word7 <b>&"common"</b>'
    assert found.answers_changed == {"tantivy": (0, 40)}, "totals are what this study requires"


def test_what_else_differs_is_listed_and_what_is_the_same_is_not(tmp_path: Path) -> None:
    a = record(tmp_path / "a", version="1.0", parameters={"heap": "1g", "gc": "zgc"})
    b = record(tmp_path / "b", version="2.0", parameters={"heap": "2g", "gc": "zgc"}, clients=8)
    host = b.path / "host.json"
    host.write_text(json.dumps(json.loads(host.read_text()) | {"governor": "powersave"}))
    found = compare_records(a, open_record(b.path)).differences
    assert {(d.of, d.what, d.a, d.b) for d in found} >= {
        ("tantivy", "version", "1.0", "2.0"),
        ("tantivy", "heap", "1g", "2g"),
        ("load", "clients", "4", "8"),
        ("machine", "governor", "performance", "powersave"),
    }
    assert not {"gc", "cores", "digest"} & {d.what for d in found}
    again = open_record(shutil.copytree(a.path, tmp_path / "again"))
    assert setup.differences(a, again) == ()
    with pytest.raises(SearchbenchError, match=r"again is a copy of .*, so comparing them shows"):
        compare_records(a, again)


def test_how_systems_are_reached_and_where_they_stand_is_not_left_out(tmp_path: Path) -> None:
    a = record(tmp_path / "a")
    b = shutil.copytree(a.path, tmp_path / "b")
    plan = json.loads((b / "plan.json").read_text())
    for one in plan["treatments"]:
        one["access"] = {"headers": ["X-Slow: 1"], "compressed": True}
        one["settings"]["place"] = {"name": "small", "memory_bytes": 256_000_000}
        one["settings"]["ingest"] = {"connections": 4}
    plan["judging"]["agreement"]["capture"] = "after"
    (b / "plan.json").write_text(json.dumps(plan))
    found = compare_records(a, open_record(b)).differences
    assert {(d.of, d.what, d.a, d.b) for d in found} == {
        ("tantivy", "access: headers", "not on record", "X-Slow: 1"),
        ("tantivy", "access: compressed", "not on record", "yes"),
        ("tantivy", "place: name", "not on record", "small"),
        ("tantivy", "place: memory_bytes", "not on record", "256000000"),
        ("ingest", "connections", "not on record", "4"),
        ("study", "capture", "before", "after"),
    }


def test_a_threshold_that_would_change_the_answer_is_rounded_to_the_side_that_holds() -> None:
    lines: Any = [SimpleNamespace(verdict="slower", ratio=Estimate(1 - 0.12041, "ratio", 3))]
    (said,) = _at_threshold(lines, 0.05)
    assert said == "With a threshold of 12.1 % or more, no loss would be beyond it."
    (said,) = _at_threshold(lines, 0.5)
    assert said == "With a threshold below 12.0 %, a loss would be beyond it."


def test_what_would_change_the_answer_comes_with_its_figures(tmp_path: Path) -> None:
    first, *same = runs(tmp_path, (0.0, 0.08, -0.05, 0.04))
    after = record(tmp_path / "b", 0.0044, seed=2)
    alone = compare_records(first, after).would_change
    assert alone[0].startswith("Further runs of both (--same and --same-b, three or more of each")
    assert "if runs of the same thing differ by less than about 5." in alone[0]
    assert alone[-1].startswith("With a threshold of ")
    known = compare_records(first, after, 0.05, same).would_change
    assert known[0].startswith("About ")
    assert "runs of each would resolve the difference of tantivy" in known[0]
    assert any(x.startswith("Further runs of the second (--same-b, three or") for x in known)
    quiet = compare_records(first, record(tmp_path / "d", 0.00401, seed=2)).would_change
    assert quiet[0].startswith("The noise of the trials within a run decides the interval of")
    assert quiet[1].startswith("Further runs of both")
    broken = compare_records(first, record(tmp_path / "c", fails_at="deploy")).would_change
    assert broken[0].startswith("The second has no valid trial of tantivy (failed in deploy")
    assert any("trials of the second could not be used" in said for said in broken)


def test_the_runs_that_would_resolve_a_difference_do_so_four_times_in_five() -> None:
    rng = np.random.default_rng(1)
    found = runs_to_resolve(0.05, 0.02, 1000)
    assert found is not None
    n = found[0]
    logs = rng.normal(0, 0.02, (2000, 2, n)) + np.array([0, 0.05])[:, None]
    resolved = [bool((r := ratio_over_runs(a, b)) and r.p < 0.05) for a, b in logs]
    assert np.mean(resolved) == pytest.approx(0.8, abs=0.07)
    assert runs_to_resolve(0.0, 0.02, 3) is None
