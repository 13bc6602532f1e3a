"""Jobs judged from records with a known truth: what differs is found, what does not is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from msgspec import structs, to_builtins

from records import Answer, Study, good_answer
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement
from searchbench.analysis.trial.jobs import held_back
from searchbench.record import PROBE, REPLIES, Trial, Writer, open_record
from searchbench.record.trial import (
    CoreTotals,
    DeviceTotals,
    HostTotals,
    JobDone,
    Queries,
    ServerTotals,
)
from searchbench.report import write_report
from searchbench.study.plan import Judging, Plan, Treatment
from searchbench.study.plan import Trial as Planned

SECOND = 1_000_000_000
QUERIES = 40
BLANK = {"phase": "captured", "outcome": 0, "total": None, "total_exact": True, "ids": [],
         "scores": [], "facets": "{}", "groups": "[]", "warnings": [], "error": None}  # fmt: skip
TIMES = {"full": [20.0] * 4, "quick": [10.0] * 4}


def host(seconds: float, others_s: float = 0.0) -> HostTotals:
    core = CoreTotals(cpu=0, busy_s=0.5 * seconds + others_s, interrupts_s=0, steal_s=0,
                      idle_s=0.5 * seconds - others_s)  # fmt: skip
    return HostTotals(busy_s=core.busy_s, idle_s=core.idle_s, steal_s=0.0, iowait_s=0.0, cores=1,
                      seconds=seconds, client_cpu_s=0.0, by_core=[core])  # fmt: skip


def done(seconds: float, others_s: float = 0.0, **more: object) -> JobDone:
    """A backup that took so long, half of it on the processor."""
    given: dict[str, object] = {
        "documents": 1000,
        "files": {"data": 50_000_000, "backup": 10_000_000},
        "lengths": {"data": 100_000_000, "backup": 10_000_000},
        "server": ServerTotals(cpu_s=0.5 * seconds, peak_rss_bytes=1 << 28, write_bytes=1e7),
    }
    start = -5 * SECOND
    return JobDone(name="backup", requests=1, start=start, end=start + round(seconds * SECOND),
                   host=host(seconds, others_s), **{**given, **more})  # type: ignore[arg-type]  # fmt: skip


def record(folder: Path, times: dict[str, list[float]], noise: float = 0.02, seed: int = 1,
           others: float = 0.0, asked: dict[str, Answer] | None = None,
           **more: object) -> Judgement:  # fmt: skip
    """A study of one job: for each treatment its time in each block, and a twin of the first.

    ``asked``: by treatment, what it answers to each of forty queries afterwards.
    """
    rng = np.random.default_rng(seed)
    blocks = len(next(iter(times.values())))
    treatments = tuple(
        Treatment(id=f"t{i:02d}", label=name, system="orientdb", engine="orientdb",
                  levels={"jobs.backup.compression": i},
                  settings={"jobs": {"backup": {"compression": i}}, "corpus": {}})
        for i, name in enumerate(times, 1)
    )  # fmt: skip
    planned = tuple(
        Planned(f"b{b + 1:02d}-{t.id}{'-aa' * twin}", b + 1, t.id, twin)
        for b in range(blocks) for t in treatments for twin in (False, True)
        if not twin or t.id == "t01"
    )  # fmt: skip
    judging = Judging(metric="backup_s", jobs=("backup",), driven=False, replicates=blocks,
                      ingest="per-trial", control="t01")  # fmt: skip
    plan = Plan(question="?", seed=1, treatments=treatments, trials=planned, judging=judging)
    writer = Writer(folder, study_text="", plan=plan, host={}, version="0")
    if asked:
        writer.queries("beef", [{"query": q, "text": f"word{q}"} for q in range(QUERIES)])
    for each in planned:
        t = plan.treatment(each.treatment)
        seconds = times[t.label][each.block - 1] * float(np.exp(noise * rng.standard_normal()))
        about = Trial(trial=each.id, treatment=t.id, block=each.block, control=each.control,
                      label=t.label, system="orientdb", engine="orientdb",
                      jobs=[done(seconds, others * seconds, **more)])  # fmt: skip
        replies = None
        if asked:
            queries = Queries(digest="beef", distinct=QUERIES, logged=QUERIES)
            about = structs.replace(about, queries=queries, outcomes=["ok", "error"])
            replies = pa.Table.from_pylist(
                [BLANK | {"query": q} | asked[t.label](q) for q in range(QUERIES)], schema=REPLIES
            )
        writer.trial(about, probe=PROBE.empty_table(), replies=replies)
    return judge(folder)


def some(n: int) -> Answer:
    """The same answers to the first ``n`` queries, and nothing found on the others."""
    return lambda query: good_answer(query) if query < n else {"total": 0}


def page_of(folder: Path, judged: Judgement) -> str:
    """Its page."""
    return write_report(open_record(folder), judged, folder / "report").html.read_text()


def test_a_job_that_takes_half_the_time_is_found(tmp_path: Path) -> None:
    found = record(tmp_path / "r", {"high": [20.0] * 3, "none": [10.0] * 3})
    (c,) = found.comparisons
    assert (c.metric, c.verdict) == ("backup_s", "faster")
    assert c.ratio is not None
    assert c.ratio.value == pytest.approx(2.0, rel=0.1)
    assert found.verdict.best == "t02"
    assert "none is 1.9" in found.verdict.decision
    assert "time of backup" in found.verdict.decision
    assert "quer" not in found.verdict.decision, "nothing was asked"
    page = page_of(tmp_path / "r", found)
    assert "Time of backup" in page
    assert "Latency" not in page


def test_what_finds_nothing_after_a_job_is_not_comparable_however_quick_it_was(
    tmp_path: Path,
) -> None:
    found = record(tmp_path / "r", TIMES, asked={"full": good_answer, "quick": some(0)})
    (c,) = found.comparisons
    assert (c.verdict, c.ratio) == ("not comparable", None)
    assert "asked afterwards, on none of 40 queries do both return the same totals" in c.reason
    assert (found.verdict.best, found.verdict.resolved) == (None, False)
    assert found.verdict.headline.startswith("Not comparable: asked afterwards, on none")
    assert "0 of 40" in page_of(tmp_path / "r", found)


def test_what_answers_otherwise_after_a_job_is_not_the_best(tmp_path: Path) -> None:
    found = record(tmp_path / "r", TIMES, asked={"full": good_answer, "quick": some(20)})
    (c,) = found.comparisons
    assert c.verdict == "not resolved"
    assert "they answer only 20 of 40 queries alike" in c.reason
    assert (found.verdict.best, found.verdict.resolved) == (None, False)
    assert "returned by full and quick on 20 of 40 queries" in found.verdict.decision
    assert any("20 of 40 queries are answered otherwise" in s for s in found.verdict.would_change)


def test_what_cannot_be_asked_after_a_job_is_not_answered_alike(tmp_path: Path) -> None:
    def broken(query: int) -> dict[str, object]:
        return {"outcome": 1, "error": "no such column"} if query < 30 else {**good_answer(query)}

    found = record(tmp_path / "r", TIMES, asked={"full": good_answer, "quick": broken})
    (c,) = found.comparisons
    assert c.verdict == "not resolved"
    assert "they answer only 10 of 40 queries alike" in c.reason
    assert found.verdict.best is None


def test_a_quicker_job_after_which_the_answers_are_the_same_is_the_best_and_that_is_said(
    tmp_path: Path,
) -> None:
    found = record(tmp_path / "r", TIMES, asked={"full": good_answer, "quick": good_answer})
    assert found.verdict.best == "t02"
    assert "both return the same totals on all 40 queries" in found.verdict.decision
    few = record(tmp_path / "few", TIMES, asked={"full": good_answer, "quick": some(38)})
    assert few.verdict.best == "t02", "nearly all alike"
    assert "on 38 of 40 queries" in few.verdict.decision


def test_where_nothing_was_asked_after_a_job_the_verdict_says_so(tmp_path: Path) -> None:
    found = record(tmp_path / "r", TIMES)
    assert found.verdict.best == "t02"
    assert "Nothing was asked of what the jobs left" in found.verdict.decision


def test_equal_jobs_are_told_apart_no_more_often_than_they_should(tmp_path: Path) -> None:
    wrong = [
        record(tmp_path / str(seed), {"a": [10.0] * 3, "b": [10.0] * 3}, 0.1, seed).verdict.resolved
        for seed in range(12)
    ]
    assert sum(wrong) <= 2


def test_what_others_took_of_the_processor_makes_a_trial_invalid(tmp_path: Path) -> None:
    quiet = record(tmp_path / "quiet", {"a": [10.0] * 2})
    assert {x.status for t in quiet.treatments for x in t.trials} == {"valid"}
    loud = record(tmp_path / "loud", {"a": [10.0] * 2}, others=0.4)
    (first, *_) = loud.treatments[0].trials
    assert first.status == "invalid"
    assert first.reason.startswith("foreign CPU: backup: ")


def test_sizes_are_exact_and_say_how_far_they_differ(tmp_path: Path) -> None:
    judged = record(tmp_path / "r", {"a": [10.0] * 2})
    (found,) = judged.jobs
    assert found.files == {"data": (50_000_000,) * 2, "backup": (10_000_000,) * 2}
    assert found.documents == 1000
    assert found.figures["documents_per_s"].value == pytest.approx(100, rel=0.1)
    page = page_of(tmp_path / "r", judged)
    rows = (tmp_path / "r/report/jobs.csv").read_text().splitlines()
    assert any("files backup,bytes,10000000" in row for row in rows)
    assert "of 100 MB" in page, "the length, where a file system makes less of it"


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({}, "none"),
        ({"server": ServerTotals(cpu_s=9.6)}, "processor"),
        ({"server": ServerTotals()}, "unknown"),
    ],
)
def test_what_held_a_job_back(tmp_path: Path, more: dict[str, object], part: str) -> None:
    (found,) = record(tmp_path / "r", {"a": [10.0] * 2}, noise=0.0, **more).jobs
    assert found.bottleneck is not None
    assert found.bottleneck.part == part


def test_a_disk_that_was_busy_all_the_time_held_it_back(tmp_path: Path) -> None:
    disk = DeviceTotals(name="loop7", reads=0, read_bytes=0, read_s=0, writes=9, written_bytes=4e8,
                        write_s=9.9, busy_s=9.8, waited_s=9.9)  # fmt: skip
    busy = structs.replace(host(10.0), devices=[disk])
    job = structs.replace(done(10.0), host=busy, own_devices=["loop7"])
    assert held_back(Trial(trial="b", treatment="t"), job).part == "disk"


def driven(folder: Path, times: dict[str, float], others: float = 0.0) -> Judgement:
    """A study of one job after which each system is driven with requests too."""
    study = Study(blocks=3, queries=20, judging={"metric": "backup_s", "jobs": ("backup",)})
    for name, seconds in times.items():
        job = done(seconds, others * seconds)
        study.add(name, system=name, extra={"jobs": [to_builtins(job)]})
    return judge(study.write(folder))


def test_a_job_is_judged_whether_or_not_a_load_was_driven_too(tmp_path: Path) -> None:
    found = driven(tmp_path / "r", {"high": 20.0, "none": 10.0})
    assert {t.status for each in found.treatments for t in each.trials} == {"valid"}
    (c,) = (c for c in found.comparisons if c.metric == "backup_s")
    assert c.verdict == "faster"
    assert c.ratio is not None
    assert c.ratio.value == pytest.approx(2.0)
    assert "No verdict" not in found.verdict.decision
    assert "time of backup" in found.verdict.decision
    assert {c.metric for c in found.comparisons} >= {"backup_s", "throughput"}
    same = driven(tmp_path / "s", {"high": 20.0, "none": 20.0})
    assert same.verdict.best is None


def test_what_disturbed_a_job_is_found_whether_or_not_a_load_was_driven_too(tmp_path: Path) -> None:
    found = driven(tmp_path / "r", {"high": 20.0, "none": 10.0}, others=0.4)
    kinds = {f.kind for t in found.treatments for one in t.trials for f in one.findings}
    assert "foreign CPU" in kinds | {f.kind for f in found.findings}
