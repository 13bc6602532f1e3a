"""A writer beside Sphinx with main and delta: what is acknowledged is there, a loss is found."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import TrialResult
from searchbench.analysis.roles.accepted import spans_of, written
from searchbench.analysis.roles.visible import Seen, seen
from searchbench.engines.mysql_form import request
from searchbench.engines.sphinx import Sphinx
from searchbench.engines.write import insert
from searchbench.lab.drive import changes
from searchbench.lab.get.install import missing
from searchbench.measure.run import run as measure
from searchbench.record import Record, Trial
from searchbench.record.roles import RoleRun
from searchbench.report.write import write_report

pytestmark = pytest.mark.slow

OF_ROLES = {
    "a role ended", "the writer died", "writes refused", "writes lost", "writes not applied",
    "a write is missing", "a wrong row", "deleted and still there", "answers of no time",
}  # fmt: skip
STUDY = """
question = "What does a delta take from readers?"
replicates = 1
[control]
aa = false
[corpus]
family = "generated"
documents = 1000
[queries]
distinct = 20
[systems.sphinx]
index = "main+delta"
merge_every = 3
[roles.writer]
does = "write"
share = 0.3
insert = 2
update = 1
delete = 1
batch = 3
documents_per_s = 60
marker_every_s = 0.2
[roles.publisher]
does = "publish"
every_s = 0.6
[load]
clients = 1
seconds = 4
warmup_s = 0.5
"""
BY_ITSELF = STUDY.replace("merge_every = 3", "refresh_ms = 500").replace(
    '[roles.publisher]\ndoes = "publish"\nevery_s = 0.6\n', ""
)


@pytest.fixture(autouse=True, scope="module")
def _here() -> None:
    if lacking := missing(Sphinx()):
        pytest.skip(f"no Sphinx here: {lacking}")


def run(text: str, folder: Path) -> Record:
    path = folder / "study.toml"
    path.write_text(text)
    return measure(path, folder / "record", work=folder / "work")


def only(record: Record) -> tuple[Trial, TrialResult]:
    (trial,) = record.trials
    assert trial.reason == ""
    (result,) = judge(record).treatments[0].trials
    return trial, result


def wrong(result: TrialResult) -> dict[str, str]:
    """By kind, the number of findings about its roles for which the trial is not believed."""
    found = [f for f in result.findings if f.severity == "invalid" and f.kind in OF_ROLES]
    return {f.kind: f.number for f in found}


def role(trial: Trial, does: str) -> RoleRun:
    (found,) = [each for each in trial.beside if each.does == does]
    return found


def markers(record: Record, trial: Trial) -> list[Seen]:
    writer = role(trial, "write")
    return seen(record, trial, role(trial, "watch"), written(record, trial, writer))


def test_what_is_acknowledged_adds_up_and_shows_when_it_was_published(tmp_path: Path) -> None:
    record = run(STUDY, tmp_path)
    trial, result = only(record)
    assert wrong(result) == {}
    writer, publisher = role(trial, "write"), role(trial, "publish")
    assert publisher.publishing is not None
    assert publisher.publishing.how == "indexer --rotate delta"
    assert (publisher.failed, writer.failed) == ("", "")
    kinds = record.writes(trial.trial, "writer")["kind"].to_pylist()
    inserted, updated, deleted = (3 * kinds.count(k) for k in ("insert", "update", "delete"))
    assert min(inserted, updated, deleted) > 20
    applied = writer.applied
    assert applied is not None
    assert (applied.before, applied.after) == (700, 700 + inserted - deleted)
    assert applied.updated == updated
    assert all(drawn.found == [drawn.id] for drawn in applied.drawn)
    assert (applied.gone, applied.looked > 0) == ([], True)
    # It shows no earlier than a delta was begun that can have it, and no later than one that must
    # have it was there.
    published = spans_of(record, trial, publisher)
    assert len(published) >= 3
    found = [one for one in markers(record, trial) if math.isfinite(one.latest_s)]
    assert len(found) > 5
    made = written(record, trial, writer)
    instants = dict(zip(made.marker, zip(made.sent, made.done, strict=True), strict=True))
    for one in found:
        sent, done = instants[one.marker]
        begun = min(start for start, end in published if end > sent)
        there = min((end for start, end in published if start >= done), default=math.inf)
        assert done + one.latest_s * 1e9 >= begun - 1
        assert done + one.earliest_s * 1e9 <= there + 1
    judged = judge(record)
    write_report(record, judged, record.path / "report")
    text = (record.path / "report" / "report.html").read_text()
    for said in ("From commit to visible", "indexer --rotate delta", "refresh_ms = 0"):
        assert said in text


def test_a_delta_that_is_made_by_itself_shows_writes_without_a_publisher(tmp_path: Path) -> None:
    record = run(BY_ITSELF, tmp_path)
    trial, result = only(record)
    assert wrong(result) == {}
    assert sum(math.isfinite(one.latest_s) for one in markers(record, trial)) > 5


def test_a_lost_write_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some inserts are acknowledged by the source, which was asked to do nothing."""
    lost = 0

    def losing(engine: Any, added: Any, schema: Any, params: Any) -> Any:
        nonlocal lost
        if added[0].at % 5:
            return insert(engine, added, schema, params)
        lost += len(added)
        return request("PING")

    monkeypatch.setattr(changes, "insert", losing)
    _, result = only(run(STUDY, tmp_path))
    assert result.status == "invalid"
    assert lost > 0
    said = wrong(result)
    assert set(said) >= {"writes lost"}
    assert set(said) <= {"writes lost", "a write is missing"}


def test_an_old_version_that_is_not_hidden_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Updates come under another number, so nothing hides what main has of their documents."""
    update = Sphinx.update

    def beside(self: Any, changed: Any, schema: Any, params: Any) -> Any:
        moved = [each._replace(was=each.was + 10**6) for each in changed]
        return update(self, moved, schema, params)

    monkeypatch.setattr(Sphinx, "update", beside)
    _, result = only(run(STUDY, tmp_path))
    assert result.status == "invalid"
    assert "writes not applied" in wrong(result)
