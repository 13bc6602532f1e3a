"""Two records: a loss stands whatever is answered, and what our own machine spoilt is no loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec import structs

from records import Answer, Array, Server, Study, Treatment, by_query, good_answer, lognormal
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judgement import RecordComparison
from searchbench.cli.compare import compare
from searchbench.record import PROBE, REPLIES, Record, Trial, Writer, open_record
from searchbench.record.trial import Queries
from searchbench.report.document.records import _badge
from searchbench.study.plan import Judging, Plan
from searchbench.study.plan import Treatment as Planned
from searchbench.study.plan import Trial as PlannedTrial
from test_analysis_jobs import BLANK, QUERIES, done


def written(
    path: Path, seed: int, *, blocks: int = 3, second: Mapping[str, Any] | None = None, **how: Any
) -> Record:
    """A record of x, and of y if ``second`` says how it is."""
    study = Study(blocks=blocks, seed=seed, trial_noise=0.003, block_noise=0.01)
    usual: dict[str, Any] = {"server": by_query(0.004, {}), "clients": 4}
    study.add("x", **{**usual, "system": "x", **how})
    if second is not None:
        study.add("y", **{**usual, "system": "y", **second})
    return open_record(study.write(path))


def line(found: RecordComparison, metric: str, label: str = "x") -> Any:
    return next(c for c in found.comparisons if (c.metric, c.label) == (metric, label))


# Other answers


def other_total(query: int) -> Mapping[str, Any]:
    """Half of the queries find one document more."""
    answer = good_answer(query)
    return answer | ({"total": answer["total"] + 1} if query % 2 else {})


def odd(factor: float) -> Server:
    return by_query(0.004, {q: factor for q in range(40) if q % 2})


def test_a_loss_on_queries_that_are_answered_otherwise_is_a_loss(tmp_path: Path) -> None:
    first = [written(tmp_path / f"a{i}", 10 + i) for i in range(2)]
    later = [written(tmp_path / f"b{i}", 20 + i, answer=other_total, server=odd(10.0))
             for i in range(2)]  # fmt: skip
    found = compare_records(first[0], later[0], 0.05, first[1:], later[1:])
    rate, tail = line(found, "throughput"), line(found, "service_p99")
    assert (rate.verdict, rate.over, rate.runs) == ("slower", "asked", (2, 2))
    assert rate.ratio.value == pytest.approx(2 / 11, rel=0.05)
    assert (tail.verdict, tail.over) == ("slower", "asked")
    assert (found.regressed, found.beyond_threshold) == (True, True)
    assert "over everything asked, whatever is answered" in found.decision
    assert compare(first[0].path, later[0].path, as_json=True) == 1


@pytest.mark.parametrize(("median_s", "status"), [(0.008, 1), (0.002, 2), (0.004, 2)])
def test_where_nothing_is_answered_alike_a_loss_stands_and_a_gain_is_not_known(
    tmp_path: Path, median_s: float, status: int
) -> None:
    first = written(tmp_path / "a", 10)
    after = written(tmp_path / "b", 20, answer=half, server=by_query(median_s, {}))
    found = compare_records(first, after)
    rate = line(found, "throughput")
    assert rate.verdict == ("differs" if status == 1 else "not comparable")
    assert found.beyond_threshold is (status == 1)
    assert "on no query do both return the same totals" in rate.reason
    assert "totals differ on 40" in found.decision
    assert compare(first.path, after.path, as_json=True) == status


def test_a_gain_by_other_answers_wins_nothing(tmp_path: Path) -> None:
    after = written(tmp_path / "b", 20, answer=other_total, server=odd(0.1))
    found = compare_records(written(tmp_path / "a", 10), after)
    rate = line(found, "throughput")
    assert (rate.verdict, rate.over) == ("not resolved", "alike")
    assert not found.beyond_threshold


def test_a_loss_on_queries_that_are_answered_alike_is_not_outweighed(tmp_path: Path) -> None:
    """The even queries take longer, and the odd ones that are answered otherwise less."""
    even = {q: 1.5 if q % 2 == 0 else 0.1 for q in range(40)}
    after = written(tmp_path / "b", 20, answer=other_total, server=by_query(0.004, even))
    found = compare_records(written(tmp_path / "a", 10), after)
    rate = line(found, "throughput")
    assert (rate.verdict, rate.over) == ("differs", "alike")
    assert rate.ratio.value == pytest.approx(1 / 1.5, rel=0.05)


def test_queries_that_the_second_does_not_support_are_lost_answers(tmp_path: Path) -> None:
    dropped = tuple((q, "phrase: dropped") for q in range(12))
    first = written(tmp_path / "a", 10)
    after = written(tmp_path / "b", 20, unsupported=dropped)
    found = compare_records(first, after)
    assert found.answers_changed == {"x": (12, 40)}
    assert (found.regressed, found.beyond_threshold) == (True, True)
    assert "12 of 40 queries" in found.lost["x"]
    assert "Lost answers: x (12 of 40 queries" in found.headline
    assert "are the same: totals" not in found.decision
    both = compare_records(after, written(tmp_path / "c", 30, unsupported=dropped))
    assert (both.answers_changed, both.lost) == ({"x": (0, 28)}, {})
    assert "The answers to all 28 queries that both answered are the same" in both.decision
    mended = compare_records(after, first)
    assert (mended.answers_changed, mended.lost) == ({"x": (12, 40)}, {})


class Flaky(Study):
    """Half of the documents are missing in ``bad`` blocks, counted from 0."""

    bad: tuple[int, ...] = ()

    def _write_trial(
        self, writer: Any, planned: Any, position: int, t: Treatment, *rest: Any
    ) -> Any:
        if planned.block in self.bad:
            t = dataclasses.replace(t, answer=half)
        return super()._write_trial(writer, planned, position, t, *rest)


def half(query: int) -> Mapping[str, Any]:
    answer = good_answer(query)
    return {key: answer[key][::2] for key in ("ids", "scores")} | {"total": answer["total"] // 2}


@pytest.mark.parametrize("bad", [(1,), (1, 2)])
def test_the_answers_of_all_trials_count(tmp_path: Path, bad: tuple[int, ...]) -> None:
    def flaky(name: str, seed: int, bad: tuple[int, ...]) -> Record:
        study = Flaky(blocks=3, seed=seed, control=None)
        study.bad = bad
        study.add("x", system="x", server=lognormal(0.004))
        return open_record(study.write(tmp_path / name))

    first, same = flaky("a", 1, ()), flaky("b", 2, ())
    found = compare_records(first, flaky("c", 3, bad))
    assert found.answers_changed == {"x": (40, 40)}
    assert "are the same" not in found.decision
    # Further runs count too, whichever is given first.
    of_runs = compare_records(first, same, 0.05, (), [flaky("d", 4, bad)])
    assert of_runs.answers_changed == {"x": (40, 40)}
    well = compare_records(first, same)
    assert well.answers_changed == {"x": (0, 40)}
    assert "The answers to all 40 queries are the same" in well.decision


# Time that is in no latency


def hanging(base: Server, since_s: float, until_s: float) -> Server:
    """As ``base``, but that nothing ends in between."""

    def server(due: Array, query: Array, rng: np.random.Generator) -> Array:
        took = base(due, query, rng)
        held = (due + took > since_s) & (due < until_s)
        return np.where(held, until_s - due + took, took)

    return server


def test_a_hang_is_not_passed_over(tmp_path: Path) -> None:
    first = written(tmp_path / "a", 10, seconds=6.0, warmup_s=1.0)
    held = hanging(by_query(0.004, {}), 0.9, 3.5)
    after = written(tmp_path / "b", 20, seconds=6.0, warmup_s=1.0, server=held)
    found = compare_records(first, after)
    rate = line(found, "throughput")
    assert rate.over == "counted"
    assert rate.ratio.value == pytest.approx(0.5, rel=0.1)
    assert "clients waited for replies that no latency contains" in rate.reason
    assert "enough samples" not in found.decision
    status = compare(first.path, after.path, as_json=True)
    assert status == (1 if rate.verdict == "differs" else 3)
    assert (status == 3) is bool(found.not_known)
    turned = line(compare_records(after, first), "throughput")
    assert (turned.verdict, turned.over) == ("not resolved", "counted"), "a gain is not resolved"


def test_who_asked_more_of_what_is_costly_did_not_do_less(tmp_path: Path) -> None:
    """Counted rates of equal systems whose windows stand at other places of the log."""
    from searchbench.analysis.compare.run import Run
    from searchbench.analysis.compare.whole import counted

    def run(name: str, warmup_s: float, slower: float = 1.0) -> Run:
        study = Study(blocks=2, seed=3, queries=400, block_noise=0.0, control=None)
        costly = dict.fromkeys(range(200, 400), 5.0)
        study.add("x", system="x", server=by_query(0.002 * slower, costly, 0.05), clients=1,
                  seconds=warmup_s + 6, warmup_s=warmup_s)  # fmt: skip
        return Run(open_record(study.write(tmp_path / name)))

    a = run("a", 2.4)
    (key,) = a.by_key
    for name, warmup_s, slower in (("b", 2.8, 1.0), ("c", 2.8 * 1.2, 1.2)):
        b = run(name, warmup_s, slower)
        rates = [own.by_key[key].figures["throughput"].value for own in (a, b)]
        assert slower * rates[1] / rates[0] < 0.93, "as they are"
        for x, y in counted(a, b, key, sorted(a.valid(key))):
            assert y / x == pytest.approx(1 / slower, rel=0.03)


# Runs that failed or were spoilt


LAG: dict[str, Any] = {"lag_ns": 500_000}


def test_what_the_load_generator_spoilt_is_not_lost(tmp_path: Path) -> None:
    first = written(tmp_path / "a", 1, second={})
    after = written(tmp_path / "b", 2, second=LAG)
    found = compare_records(first, after)
    assert (found.lost, found.beyond_threshold, found.regressed) == ({}, False, None)
    assert "generator lag" in found.not_known["y"]
    assert "Cannot tell whether these became slower: y" in found.headline
    assert _badge(found).tone == "unsure"
    assert compare(first.path, after.path, as_json=True) == 3
    assert compare(first.path, written(tmp_path / "c", 3, second={}).path, as_json=True) == 0


def test_the_order_of_the_runs_decides_nothing(tmp_path: Path) -> None:
    first = [written(tmp_path / f"a{i}", 10 + i, blocks=2, second={}) for i in range(2)]
    spoilt = written(tmp_path / "b", 20, blocks=2, second=LAG)
    good = [written(tmp_path / f"c{i}", 30 + i, blocks=2, second={}) for i in range(2)]
    for later in ([spoilt, *good], [*good, spoilt]):
        found = compare_records(first[0], later[0], 0.05, first[1:], later[1:])
        assert (found.lost, found.not_known, found.beyond_threshold) == ({}, {}, False)
        assert line(found, "throughput", "y").runs == (2, 2)
        assert "y: 1 of 3 runs of the second has no valid trial of it (generator lag" in (
            found.decision
        )


@pytest.mark.parametrize(("median_s", "status"), [(0.04, 3), (0.004, 0), (0.0004, 0)])
def test_a_loss_of_which_no_interval_is_known_is_no_pass(
    tmp_path: Path, median_s: float, status: int
) -> None:
    first = written(tmp_path / "a", 10, blocks=1)
    after = written(tmp_path / "b", 20, blocks=1, server=by_query(median_s, {}))
    found = compare_records(first, after)
    assert line(found, "throughput").ratio.interval is None
    assert [*found.not_known] == (["x"] if status else [])
    assert status == compare(first.path, after.path, as_json=True)
    if status:
        assert "it seems 90" in found.not_known["x"]
        assert "No resolved loss" not in found.headline
    else:
        assert "how large a one may be is not known" in found.decision


@pytest.mark.parametrize("place", [0, 3])
def test_a_treatment_that_fails_in_most_runs_is_lost(tmp_path: Path, place: int) -> None:
    first = [written(tmp_path / f"a{i}", 10 + i, blocks=2, second={}) for i in range(2)]
    broken = [written(tmp_path / f"b{i}", 20 + i, blocks=2, second={"fails_at": "deploy"})
              for i in range(3)]  # fmt: skip
    later = [*broken]
    later.insert(place, written(tmp_path / "c", 30, blocks=2, second={}))
    found = compare_records(first[0], later[0], 0.05, first[1:], later[1:])
    assert [*found.lost] == ["y"]
    assert "deploy" in found.lost["y"]
    assert "in 3 of 4 runs" in found.lost["y"]
    assert (found.regressed, found.beyond_threshold) == (True, True)
    # What fails in one run of three is said, and is no loss by itself.
    once = [later[place], *first[1:], broken[0]]
    found = compare_records(first[0], once[0], 0.05, (), once[1:])
    assert (found.lost, found.beyond_threshold) == ({}, False)
    assert "the system failed in 2 of 6 trials of the second" in found.not_known["y"]
    assert "y: 1 of 3 runs of the second has no valid trial of it (failed in deploy" in (
        found.decision
    )
    # And what fails in both records is no loss of the second.
    found = compare_records(broken[0], broken[1])
    assert (found.lost, found.beyond_threshold) == ({}, False)


class Breaking(Study):
    """The server ends in the ``bad`` blocks, counted from 0."""

    bad: tuple[int, ...] = ()

    def _write_trial(
        self, writer: Any, planned: Any, position: int, t: Treatment, *rest: Any
    ) -> Any:
        if planned.block in self.bad:
            t = dataclasses.replace(t, dies_at_s=2.0)
        return super()._write_trial(writer, planned, position, t, *rest)


def breaking(path: Path, seed: int, bad: tuple[int, ...], blocks: int = 4) -> Record:
    study = Breaking(blocks=blocks, seed=seed, control=None)
    study.bad = bad
    study.add("x", system="x", server=lognormal(0.004))
    return open_record(study.write(path))


def test_trials_in_which_the_system_failed_are_said(tmp_path: Path) -> None:
    whole, broken = breaking(tmp_path / "a", 1, ()), breaking(tmp_path / "b", 2, (1, 2))
    found = compare_records(whole, broken)
    assert "x: the system failed in 2 of 4 trials of the second" in found.decision
    assert line(found, "throughput").ratio is not None
    # Half of four trials may be chance: it is no loss, and nothing that passes.
    assert (found.lost, found.regressed) == ({}, None)
    assert "the system failed in 2 of 4 trials" in found.not_known["x"]
    assert compare(whole.path, broken.path, as_json=True) == 3
    assert "the system failed" not in compare_records(broken, whole).decision


@pytest.mark.parametrize(
    ("bad", "status"), [((0, 1, 2), 1), ((2,), 3), ((), 0)], ids=["most", "some", "none"]
)
def test_a_system_that_dies_in_most_trials_of_every_run_is_lost(
    tmp_path: Path, bad: tuple[int, ...], status: int
) -> None:
    """Every run has valid trials, so no run is lost by itself; the trials are counted."""
    n = 6 if status == 3 else 3
    first = [breaking(tmp_path / f"a{i}", i, (), 5) for i in range(n)]
    later = [breaking(tmp_path / f"b{i}", 20 + i, bad, 5) for i in range(n)]
    found = compare_records(first[0], later[0], 0.05, first[1:], later[1:])
    assert [*found.lost] == (["x"] if status == 1 else [])
    assert [*found.not_known] == (["x"] if status == 3 else [])
    deaths = f"the system failed in {n * len(bad)} of {5 * n} trials of the second"
    assert (deaths in found.headline) is (status > 0)
    paths = [[record.path for record in side] for side in (first, later)]
    assert status == compare(
        paths[0][0], paths[1][0], same=tuple(paths[0][1:]), same_b=tuple(paths[1][1:]), as_json=True
    )


# Jobs


def job_record(folder: Path, backup_s: float, seed: int, answer: Answer = good_answer) -> Record:
    """A study of an import of 20 s and a backup, asked afterwards."""
    rng = np.random.default_rng(seed)
    jobs: dict[str, Any] = {"import": {}, "backup": {}}
    treatment = Planned(id="t01", label="orientdb", system="orientdb", engine="orientdb",
                        levels={}, settings={"jobs": jobs, "corpus": {}})  # fmt: skip
    planned = tuple(PlannedTrial(f"b{b:02d}-t01", b, "t01", False) for b in range(1, 4))
    judging = Judging(metric="import_s", jobs=("import", "backup"), driven=False, replicates=3,
                      ingest="per-trial", control=None)  # fmt: skip
    plan = Plan(question="?", seed=1, treatments=(treatment,), trials=planned, judging=judging)
    writer = Writer(folder, study_text="", plan=plan, host={}, version="0")
    writer.queries("beef", [{"query": q, "text": f"word{q}"} for q in range(QUERIES)])
    for each in planned:
        jobs_done = []
        for name, seconds in (("import", 20.0), ("backup", backup_s)):
            took = done(seconds * float(np.exp(0.01 * rng.standard_normal())))
            jobs_done.append(structs.replace(took, name=name))
        replies = [{**BLANK, "query": q, **answer(q)} for q in range(QUERIES)]
        about = Trial(trial=each.id, treatment="t01", block=each.block, control=False,
                      label="orientdb", system="orientdb", engine="orientdb", jobs=jobs_done,
                      queries=Queries(digest="beef", distinct=QUERIES, logged=QUERIES),
                      outcomes=["ok", "error"])  # fmt: skip
        writer.trial(about, probe=PROBE.empty_table(),
                     replies=pa.Table.from_pylist(replies, schema=REPLIES))  # fmt: skip
    return open_record(folder)


def test_jobs_are_compared_by_their_seconds(tmp_path: Path) -> None:
    first = [job_record(tmp_path / f"a{i}", 5, i) for i in range(2)]
    later = [job_record(tmp_path / f"b{i}", 50, 10 + i) for i in range(2)]
    found = compare_records(first[0], later[0], 0.05, first[1:], later[1:])
    assert [c.metric for c in found.comparisons] == ["import_s", "backup_s"]
    backup = line(found, "backup_s", "orientdb")
    assert (backup.verdict, backup.runs) == ("slower", (2, 2))
    assert backup.ratio.value == pytest.approx(0.1, rel=0.05)
    assert line(found, "import_s", "orientdb").verdict == "not resolved"
    assert found.regressed
    turned = compare_records(later[0], first[0], 0.05, later[1:], first[1:])
    assert line(turned, "backup_s", "orientdb").verdict == "faster"
    assert not turned.beyond_threshold


def test_a_job_that_left_other_answers_wins_nothing_and_loses_what_it_loses(
    tmp_path: Path,
) -> None:
    first = job_record(tmp_path / "a", 50, 1)
    for seconds, verdict in ((5.0, "not resolved"), (500.0, "differs")):
        after = job_record(tmp_path / f"b{seconds}", seconds, 2, other_total)
        backup = line(compare_records(first, after), "backup_s", "orientdb")
        assert backup.verdict == verdict
        assert ("may have done less" in backup.reason) is (seconds < 50)
