"""Jobs done by real engines: timed, weighed, counted; and what a job failed to do fails its trial.

OrientDB has the whole chain; a start takes it seconds, so one study is all that it is asked here.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from placing import home, needs
from searchbench.analysis.judge import judge
from searchbench.engines import postgres_form as form
from searchbench.engines.engine import Engine, Request
from searchbench.engines.job import Work
from searchbench.engines.lucene import Lucene
from searchbench.engines.mariadb import MariaDB
from searchbench.engines.opensearch import OpenSearch
from searchbench.engines.orientdb import OrientDB
from searchbench.engines.orientdb.jobs import LINK, RESTORED
from searchbench.engines.orientdb.rest import sql
from searchbench.engines.postgresql import Postgresql
from searchbench.lab.get.install import missing
from searchbench.measure.run import run as measure
from searchbench.record import Record, Trial

__all__ = ["home"]

pytestmark = pytest.mark.slow

CHAIN = """
question = "What does a backup cost?"
replicates = 1
[control]
aa = false
[corpus]
family = "triples"
triples = 60
[systems.orientdb]
[jobs.import]
triples = 20
[jobs.backup]
[jobs.restore]
[factors]
"jobs.backup.compression" = [9, 1, 0]
"""
OPENED = """
question = "How soon does it answer?"
replicates = 1
jobs = [{jobs}]
[control]
aa = false
[corpus]
family = "generated"
documents = 400
[queries]
distinct = 5
{systems}
"""


def run(text: str, folder: Path) -> Record:
    path = folder / "study.toml"
    path.write_text(text)
    return measure(path, folder / "record", work=folder / "work")


def by_level(record: Record) -> dict[Any, Trial]:
    return {t.levels["jobs.backup.compression"]: t for t in record.trials}


def test_a_chain_of_jobs_and_what_is_found_of_those_that_do_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking := missing(OrientDB()):
        pytest.skip(f"no orientdb here: {lacking}")
    real = OrientDB.work

    def less(self: OrientDB, job: str, levels: Any, *rest: Any) -> Work:
        """With level 0 nothing is backed up; with level 1 an edge is lost once it is restored."""
        work = real(self, job, levels, *rest)
        if job == "backup" and levels["compression"] == 0:
            return replace(work, requests=(Request((sql("SELECT 1"),)),))
        if job == "backup":
            self.lose = levels["compression"] == 1  # type: ignore[attr-defined]
        if job == "restore" and self.lose:  # type: ignore[attr-defined]
            lost = sql(f"DELETE EDGE {LINK} LIMIT 1", database=RESTORED)
            return replace(work, requests=(*work.requests, Request((lost,))))
        return work

    monkeypatch.setattr(OrientDB, "work", less)
    trials = by_level(run(CHAIN, tmp_path))
    whole = trials[9]
    assert whole.reason == ""
    assert [job.name for job in whole.jobs] == ["import", "backup", "restore"]
    imported, backup, restored = whole.jobs
    assert [job.documents for job in whole.jobs] == [60, 60, 60]
    assert imported.requests == 3
    assert [n for _, n in imported.progress] == [20, 40, 60]
    assert imported.start < imported.progress[0][0] <= imported.end < (imported.still or 0)
    assert "every 1000 ms" in imported.durable
    assert backup.levels == {"compression": 9, "buffer_kb": 1024}
    assert imported.files.keys() == {"data", "wal", "system"}
    assert 0 < backup.files["backup"] < backup.files["data"]
    assert restored.files["restored"] > 1_000_000
    assert restored.compared == ["the number of Thing", "the number of Link",
                                 "the names with most links"]  # fmt: skip
    for job in whole.jobs:
        assert job.seconds > 0
        assert (job.server.peak_rss_bytes or 0) > 50_000_000
        assert job.devices, "the probe saw disks"
    assert whole.drive is None
    assert whole.window is None
    assert trials[0].stage == "weigh backup"
    assert trials[0].reason == (
        "backup ended without an error and left no files of the kind backup"
    )
    assert trials[1].stage == "check restore"
    assert trials[1].reason == (
        "the number of Link is not the same in what restore made: 59 and not 60"
    )
    assert [job.name for job in trials[1].jobs] == ["import", "backup", "restore"]
    assert not list((tmp_path / "work").iterdir())


def test_opening_is_a_job_of_every_engine_that_keeps_its_index(tmp_path: Path) -> None:
    systems = "[systems.tantivy]\n[systems.sqlite]\n"
    record = run(OPENED.format(jobs='"opening"', systems=systems), tmp_path)
    assert [t.reason for t in record.trials] == ["", ""]
    for trial in record.trials:
        (opening,) = trial.jobs
        assert opening.documents == 400
        assert opening.files["data"] > 0
        assert opening.requests == 0
        assert trial.captured is not None, "the queries were asked, and nothing was driven"
        assert trial.drive is None
    judged = judge(record)
    assert {r.job for r in judged.jobs} == {"opening"}
    (pair,) = judged.agreement
    assert pair.queries == 5
    assert {c.metric for c in judged.comparisons} == {"opening_s"}


def test_files_are_weighed_as_each_file_system_has_them(home: Path) -> None:
    needs("zfs", "ext4")
    systems = """[systems.tantivy]
    [places.here]
    storage = "files"
    [storages.files]
    size = "200MB"
    [factors]
    "storages.files.filesystem" = ["zfs", "ext4"]
    """
    zfs, ext4 = run(OPENED.format(jobs='"opening"', systems=systems), home).trials
    assert (zfs.reason, ext4.reason) == ("", "")
    if zfs.levels["storages.files.filesystem"] != "zfs":
        zfs, ext4 = ext4, zfs
    for trial in (zfs, ext4):
        (opening,) = trial.jobs
        # zfs says so at once only if it is asked after all was written.
        assert opening.files["data"] > 0.8 * opening.lengths["data"]
    # Mounted anew, it may have another number.
    assert {name[:4] for name in ext4.jobs[0].own_devices} == {"loop"}
    assert zfs.jobs[0].own_devices == []


def test_an_index_is_made_anew_over_what_is_there(tmp_path: Path) -> None:
    if lacking := missing(Postgresql()):
        pytest.skip(f"no postgresql here: {lacking}")
    text = OPENED.format(jobs='"index"', systems="[systems.postgresql]\n[load]\nseconds = 0.3\n")
    (trial,) = run(text, tmp_path).trials
    assert trial.reason == ""
    (index,) = trial.jobs
    assert index.documents == 400
    assert index.requests > 1, "a statement for each index"
    assert trial.drive is not None, "with a load it is driven after the jobs"


def test_documents_that_are_gone_after_a_job_fail_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking := missing(Postgresql()):
        pytest.skip(f"no postgresql here: {lacking}")
    real = Postgresql.work

    def careless(self: Postgresql, *given: Any) -> Work:
        """It deletes a document."""
        work = real(self, *given)
        lost = "DELETE FROM docs WHERE ctid = (SELECT min(ctid) FROM docs)"
        return replace(work, requests=(*work.requests, Request((form.query(lost),))))

    monkeypatch.setattr(Postgresql, "work", careless)
    text = OPENED.format(jobs='"index"', systems="[systems.postgresql]\n")
    (trial,) = run(text, tmp_path).trials
    assert trial.stage == "check index"
    assert trial.reason == "after index there are 399 documents, and there should be 400"


DUMPED = """
question = "What does a dump cost?"
replicates = 1
jobs = ["dump", "restore"]
[control]
aa = false
[corpus]
family = "generated"
documents = 400
[queries]
distinct = 5
[systems.{engine}]
"""


@pytest.mark.parametrize("engine", [Postgresql(), MariaDB()], ids=lambda engine: engine.name)
def test_a_dump_is_restored_with_all_that_was_in_it(engine: Engine, tmp_path: Path) -> None:
    if lacking := missing(engine):
        pytest.skip(f"no {engine.name} here: {lacking}")
    record = run(DUMPED.format(engine=engine.name), tmp_path)
    (trial,) = record.trials
    assert (trial.status, trial.reason) == ("ok", "")
    dump, restore = trial.jobs
    assert dump.files["backup"] > 10_000
    assert (dump.documents, restore.documents) == (400, 400)
    assert restore.seconds > 0
    assert restore.server.cpu_s is not None
    hits = record.replies(trial.trial).column("total").to_pylist()
    assert len(hits) == 5
    assert all(hits), "what was restored is asked"


@pytest.mark.parametrize(
    ("left_out", "stage", "said"),
    [
        ("dump", "weigh dump", "left no files of the kind backup"),
        ("restore", "check restore", "docs"),
    ],
)
def test_a_dump_or_a_restoring_that_did_nothing_fails_its_trial(
    left_out: str, stage: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking := missing(Postgresql()):
        pytest.skip(f"no postgresql here: {lacking}")
    real = Postgresql.work

    def nothing(self: Postgresql, job: str, *rest: Any) -> Work:
        work = real(self, job, *rest)
        return replace(work, commands=(("true",),)) if job == left_out else work

    monkeypatch.setattr(Postgresql, "work", nothing)
    (trial,) = run(DUMPED.format(engine="postgresql"), tmp_path).trials
    assert (trial.status, trial.stage) == ("failed", stage)
    assert said in trial.reason


MERGED = """
question = "What does a merge cost?"
replicates = 1
jobs = ["merge"]
[control]
aa = false
[corpus]
family = "generated"
documents = 6000
[queries]
distinct = 5
[systems.{engine}]
segments = "as-is"
refresh_ms = 5  # a segment each time
"""


@pytest.mark.parametrize("engine", [Lucene(), OpenSearch()], ids=lambda engine: engine.name)
def test_a_forced_merge_leaves_one_segment_or_its_trial_fails(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking := missing(engine):
        pytest.skip(f"no {engine.name} here: {lacking}")
    text = MERGED.format(engine=engine.name)
    (tmp_path / "whole").mkdir()
    (trial,) = run(text, tmp_path / "whole").trials
    assert (trial.status, trial.reason) == ("ok", "")
    (job,) = trial.jobs
    assert (job.name, job.documents) == ("merge", 6000)
    real = type(engine).work

    def nothing(self: Engine, *rest: Any) -> Work:
        work = real(self, *rest)
        return replace(work, requests=(self.facts_request(),))

    monkeypatch.setattr(type(engine), "work", nothing)
    if engine.name == "opensearch":  # of which the facts are no answer of its own to look at
        monkeypatch.setattr(type(engine), "check", lambda self, reply: None)
    (tmp_path / "less").mkdir()
    (trial,) = run(text, tmp_path / "less").trials
    assert (trial.status, trial.stage) == ("failed", "check merge")
    assert trial.reason.startswith("after merge segments of a ")
