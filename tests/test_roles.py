"""Roles beside the readers, held to hosts of known truth and to real engines.

The null host finds a written document a known time after its write was answered, and can lose one,
find it under another's id, or find it late: what is injected must be found, and nothing else.
Longer than most files, because each case has its study beside it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement, TrialResult
from searchbench.analysis.roles import truth
from searchbench.analysis.roles.accepted import Written, behind_s, written
from searchbench.analysis.roles.model import Visible
from searchbench.analysis.roles.results import _figures
from searchbench.analysis.roles.visible import Seen, seen, visible
from searchbench.engines.groonga import Groonga
from searchbench.engines.job import Work
from searchbench.engines.lucene import Lucene
from searchbench.engines.mariadb import MariaDB
from searchbench.engines.opensearch import OpenSearch
from searchbench.lab.get.install import missing
from searchbench.measure.run import run as measure
from searchbench.record import Record, Trial
from searchbench.record.roles import Applied, Drawn, RoleRun
from searchbench.report.document.roles import _behind as behind_at_worst
from searchbench.report.write import write_report

pytestmark = pytest.mark.slow

PUBLISH_S = 0.15
OF_ROLES = {
    "a role ended", "the writer died", "writes refused", "writes lost", "writes not applied",
    "a write is missing", "a wrong row", "deleted and still there",
}  # fmt: skip
NULL = """
question = "Is what is measured of roles true?"
replicates = 1
[control]
aa = false
[corpus]
family = "generated"
documents = 1500
[queries]
distinct = 20
[systems.true]
engine = "null"
publish_ms = 150
[systems.losing]
engine = "null"
publish_ms = 150
lose_every = 25
[systems.swapping]
engine = "null"
publish_ms = 150
swap_every = 7
[systems.late]
engine = "null"
publish_ms = 150
late_every = 4
late_ms = 400
[roles.writer]
does = "write"
documents = 700
documents_per_s = 150
marker_every_s = 0.05
ask_every_ms = 5
[load]
clients = 1
seconds = 3
warmup_s = 0.5
"""
CHANGES = """
question = "What do changes take from readers?"
replicates = 2
[control]
aa = false
[corpus]
family = "generated"
documents = 2000
[queries]
distinct = 40
[systems.groonga]
[roles.writer]
does = "write"
share = 0.2
insert = 2
update = 1
delete = 1
batch = 3
connections = 2
marker_every_s = 0.2
[load]
clients = 1
seconds = 3
warmup_s = 0.5
[factors]
"roles.writer.documents_per_s" = [0, 60]
"""


def run(text: str, folder: Path) -> Record:
    path = folder / "study.toml"
    path.write_text(text)
    return measure(path, folder / "record", work=folder / "work")


@pytest.fixture(scope="module")
def known(tmp_path_factory: Any) -> Record:
    """One trial on each null host: one that is right, and three that are not."""
    return run(NULL, tmp_path_factory.mktemp("null"))


def by_system(record: Record) -> dict[str, Trial]:
    return {trial.system: trial for trial in record.trials}


def judged_by_system(judged: Judgement) -> dict[str, TrialResult]:
    return {t.system: t.trials[0] for t in judged.treatments}


def wrong(result: TrialResult) -> set[str]:
    """The kinds of findings about its roles for which the trial is not believed.

    What else runs on the machine may spoil a trial too; that is no fault of its roles.
    """
    return {f.kind for f in result.findings if f.severity == "invalid"} & OF_ROLES


def of_markers(record: Record, system: str) -> Visible:
    """Commit to visible on one system, whatever else is to be said of its trial."""
    found = visible([seen_by(record, by_system(record)[system])], 0.0, None)
    assert found is not None
    return found


def seen_by(record: Record, trial: Trial) -> list[Seen]:
    writer, watcher = trial.beside
    return seen(record, trial, watcher, written(record, trial, writer))


def test_all_roles_have_one_clock_and_files_of_their_own(known: Record) -> None:
    trial = by_system(known)["true"]
    assert trial.reason == ""
    assert trial.roles == ["readers", "writer", "writer-watcher"]
    writer, watcher = trial.beside
    assert trial.drive is not None
    assert writer.drive is not None
    assert watcher.drive is not None
    assert writer.drive.started_unix_ns == watcher.drive.started_unix_ns
    assert writer.drive.started_unix_ns == trial.drive.started_unix_ns
    assert set(known.samples(trial.trial)["role"].to_pylist()) == {0}
    samples = known.of_role(trial.trial, "writer")
    assert set(samples["role"].to_pylist()) == {1}
    assert samples.num_rows == writer.planned == known.writes(trial.trial, "writer").num_rows
    assert samples["query"].to_pylist() == list(range(writer.planned))
    due, every_ns = samples["due"].to_numpy(), 1e9 / 150
    # Markers are earlier than the clock, by no more than one request.
    early = (np.arange(len(due)) + 0.5) * every_ns - due
    assert np.all((early > -1) & (early < every_ns))
    assert np.median(np.diff(due)) == pytest.approx(every_ns, abs=1)


@pytest.mark.timed
def test_commit_to_visible_is_right_to_within_what_asking_leaves_open(known: Record) -> None:
    trial = by_system(known)["true"]
    markers = seen_by(known, trial)
    assert len(markers) > 40
    found = [one for one in markers if math.isfinite(one.latest_s)]
    # The host counts from when it had read the write; a machine that is busy may be told of the
    # answer later than it was given, and be late to ask, so each marker is known less well there.
    assert all(one.earliest_s <= PUBLISH_S + 0.001 for one in found)
    assert np.median([one.latest_s for one in found]) >= PUBLISH_S - 0.001
    half = of_markers(known, "true").quantiles["p50"]
    assert half.interval is not None
    assert half.interval.low <= PUBLISH_S <= half.interval.high


def test_nothing_is_wrong_where_nothing_was_injected(known: Record) -> None:
    trial = by_system(known)["true"]
    assert not wrong(judged_by_system(judge(known))["true"])
    applied = trial.beside[0].applied
    assert applied is not None
    assert (applied.before, applied.after) == (800, 800 + trial.beside[0].planned)
    assert len(applied.drawn) > 50
    assert all(drawn.found == [drawn.id] for drawn in applied.drawn)


def test_a_lost_write_is_found_by_the_count_and_by_asking_for_it(known: Record) -> None:
    result = judged_by_system(judge(known))["losing"]
    assert result.status == "invalid"
    assert wrong(result) == {"writes lost", "a write is missing"}
    (lost,) = (f for f in result.findings if f.kind == "writes lost")
    assert "800 before + 525 inserted − 0 deleted = 1,325" in lost.number


def test_a_wrong_row_is_found_by_the_word_of_another(known: Record) -> None:
    assert wrong(judged_by_system(judge(known))["swapping"]) == {"a wrong row"}


def test_a_late_publish_is_in_the_quantiles_and_no_fault(known: Record) -> None:
    judged = judge(known)
    assert not wrong(judged_by_system(judged)["late"])
    found = of_markers(known, "late")
    tail = found.quantiles["p90"]
    assert tail.value > PUBLISH_S + 0.3
    assert found.quantiles["p50"].value < PUBLISH_S + 0.3
    late = [s for s in seen_by(known, by_system(known)["late"]) if s.earliest_s > PUBLISH_S + 0.3]
    assert 0.1 < len(late) / len(seen_by(known, by_system(known)["late"])) < 0.45


def marker(name: int, took: float, looked: float) -> Seen:
    """One that was found if it took no longer than it was looked for."""
    found = took < looked
    shown = name if found else -1
    latest = took if found else math.inf
    return Seen(str(name), min(took, looked) - 0.01, latest, looked, shown_ns=shown)


def test_markers_that_were_looked_for_too_short_do_not_make_it_look_fast() -> None:
    """Slow ones that are written near the end cannot be seen; fast ones are seen there."""
    rng = np.random.default_rng(1)
    looked, slow = np.linspace(0.2, 10, 400), rng.random(400) < 0.6
    took = np.where(slow, 4.0, 0.1)
    found = visible([[marker(*one) for one in zip(range(400), took, looked, strict=True)]], 50, 0)
    assert found is not None
    half, counted = found.quantiles["p50"].interval, looked >= 1
    assert half is not None
    assert half.low <= 4.0 <= half.high
    assert math.isinf(found.quantiles["p90"].value), "more than a tenth of them was never seen"
    assert found.markers == int(counted.sum())
    assert found.unseen == int((counted & slow & (looked <= 4.0)).sum())
    assert 3.5 < found.unseen_s <= 4.0
    never = visible([[Seen(f"n{i}", 3.0, math.inf, 3.0) for i in range(20)]], 50.0, 0.001)
    assert never is not None
    assert never.unseen == 20
    assert math.isinf(never.quantiles["p50"].value)


def test_one_slow_marker_does_not_hide_those_that_are_never_seen() -> None:
    """It takes 50 s, the next eleven less than one, and then none is seen any more."""
    took = np.concatenate([[50.0], np.linspace(0.2, 1, 11), np.full(48, math.inf)])
    markers = [marker(i, each, 59.5 - i) for i, each in enumerate(took)]
    found = visible([markers] * 3, 50.0, 0.001)
    assert found is not None
    assert (found.markers, found.unseen, found.unseen_s) == (162, 126, 47.5)
    half = found.quantiles["p50"]
    assert math.isinf(half.value)
    assert half.interval is not None
    assert math.isinf(half.interval.high)


@pytest.mark.parametrize("grows", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("per_trial", [20, 100])
def test_an_indexer_that_falls_behind_is_within_the_interval(grows: float, per_trial: int) -> None:
    """A marker that is written at t takes ``grows`` times t, so the last ones take the longest."""
    held = asked = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        at = [np.sort(rng.uniform(0, 60, per_trial)) for _ in range(3)]
        found = visible(
            [[marker(i, grows * t, 60 - t) for i, t in enumerate(each)] for each in at], 50.0, 0.001
        )
        assert found is not None
        counted = np.concatenate([each[60 - each >= 0.1 * (60 - each[0])] for each in at])
        for name, q in (("p50", 0.5), ("p90", 0.9)):
            if (estimate := found.quantiles.get(name)) and estimate.interval:
                asked += 1
                true = float(np.quantile(grows * counted, q))
                held += estimate.interval.low <= true <= estimate.interval.high
    assert asked >= 30
    assert held >= 0.95 * asked


def test_inserts_updates_and_deletes_of_a_real_engine_add_up_and_spoil_no_shared_index(
    tmp_path: Path,
) -> None:
    if lacking := missing(Groonga()):
        pytest.skip(f"no groonga here: {lacking}")
    record = run(CHANGES, tmp_path)
    assert [trial.reason for trial in record.trials] == [""] * 4
    written_in = [trial for trial in record.trials if not trial.beside[0].idle]
    for trial in written_in:
        applied, kinds = trial.beside[0].applied, record.writes(trial.trial, "writer")["kind"]
        assert applied is not None
        assert applied.before == 1600
        inserted, updated, deleted = (
            3 * kinds.to_pylist().count(kind) for kind in ("insert", "update", "delete")
        )
        assert min(updated, deleted) > 30
        assert applied.after == 1600 + inserted - deleted
        assert applied.updated == updated
        assert {drawn.kind for drawn in applied.drawn} == {"insert", "update"}
        assert all(drawn.found == [drawn.id] for drawn in applied.drawn)
        assert applied.gone == []
        assert applied.looked > 0
        phases = set(record.replies(trial.trial)["phase"].to_pylist())
        assert phases == {"captured", "while_written", "after"}
    for trial in record.trials:  # all begin with the same documents, whoever came before
        assert trial.facts.documents == 1600
    judged = judge(record)
    assert all(not wrong(t) for treatment in judged.treatments for t in treatment.trials)
    assert judged.roles is not None
    (beside,) = judged.roles.beside
    assert beside.idle_label == "documents_per_s=0"
    assert beside.ratios["throughput"].interval is not None
    write_report(record, judged, record.path / "report")
    text = (record.path / "report" / "report.html").read_text()
    for said in ("Beside the readers", "From commit to visible", "What was written"):
        assert said in text


MERGED = """
question = "What does a merge take from readers?"
replicates = 1
[control]
aa = false
[corpus]
family = "generated"
documents = 3000
[queries]
distinct = 20
[ingest]
batch = 300
[systems.lucene]
segments = "as-is"
heap_mb = 128
[systems.sqlite]
[roles.writer]
does = "write"
documents = 300
documents_per_s = 50
marker_every_s = 0.1
[roles.publisher]
does = "publish"
every_s = 0.5
[roles.merge]
does = "job"
job = "merge"
after_s = 1
[load]
clients = 1
seconds = 3
warmup_s = 0.5
[factors]
"roles.merge.idle" = [false, true]
"""
DUMPED = """
question = "What does a dump take from readers?"
replicates = 1
[control]
aa = false
[corpus]
family = "generated"
documents = 500
[queries]
distinct = 10
[systems.mariadb]
[roles.backup]
does = "job"
job = "dump"
after_s = 0.5
[load]
clients = 1
seconds = 3
warmup_s = 0.5
"""


def test_what_is_published_and_merged_is_drawn_where_it_happened(tmp_path: Path) -> None:
    if lacking := missing(Lucene()):
        pytest.skip(f"no lucene here: {lacking}")
    record = run(MERGED, tmp_path)
    assert [trial.reason for trial in record.trials] == [""] * 3
    (left_out,) = record.plan.excluded
    assert "sqlite has no job" in left_out.reason
    judged = judge(record)
    assert judged.roles is not None
    for trial in record.trials:
        writer, _, publisher, merge = trial.beside
        assert trial.roles[1:] == [each.name for each in trial.beside]
        assert [each.number for each in trial.beside] == [1, 2, 3, 4]
        assert publisher.planned == 6
        assert publisher.publishing is not None
        assert publisher.publishing.how == "commit"
        assert writer.applied is not None
        assert writer.applied.after == 2700 + writer.planned
        events = judged.roles.over_time[trial.treatment].events
        names = [event.name for event in events]
        assert names.count("commit") == 6
        (treatment,) = (t for t in judged.treatments if t.treatment == trial.treatment)
        done = {w.role: w for w in treatment.trials[0].worked}
        assert trial.window is not None
        ended = [e.end_s for e in events if e.name == "commit"]
        inside = sum(trial.window.start <= 1e9 * at < trial.window.end for at in ended)
        assert inside >= 4
        assert done["publisher"].per_s == pytest.approx(inside * done["publisher"].grain)
        assert done["publisher"].grain == pytest.approx(1 / 3, rel=0.05)
        assert ("merge" in done) is not merge.idle
        assert names.count("merge") == (not merge.idle)
        for event in events:
            if event.name == "merge":
                assert 1.5 <= event.start_s <= event.end_s
    visible = [r.visible for r in judged.roles.results if r.does == "write"]
    # How late is true is held against a host whose delay is known; here the machine says.
    assert all(found is not None and found.markers > 0 for found in visible)
    assert all(found.quantiles["p50"].value > 0.0 for found in visible if found)


def test_a_program_of_the_engine_is_a_job_beside_the_readers(tmp_path: Path) -> None:
    if lacking := missing(MariaDB()):
        pytest.skip(f"no mariadb here: {lacking}")
    record = run(DUMPED, tmp_path)
    (trial,) = record.trials
    assert trial.reason == ""
    (backup,) = trial.beside
    assert backup.failed == ""
    assert backup.start is not None
    assert backup.end is not None
    assert 1e9 <= backup.start < backup.end
    judged = judge(record)
    assert judged.roles is not None
    (result,) = judged.roles.results
    assert result.figures["times"].value == 1


def test_a_job_with_a_clock_is_done_again_and_again(tmp_path: Path) -> None:
    if lacking := missing(MariaDB()):
        pytest.skip(f"no mariadb here: {lacking}")
    record = run(DUMPED.replace("after_s = 0.5", "every_s = 1.5"), tmp_path)
    (trial,) = record.trials
    assert trial.reason == ""
    (backup,) = trial.beside
    assert (backup.failed, backup.planned) == ("", 2)
    (first, second) = backup.spans  # due at 1.5 and 3.0 s of 3.5 s
    assert (backup.start, backup.end) == (first[0], second[1])
    assert 1.5e9 <= first[0] < first[1] <= second[0] < second[1]
    judged = judge(record)
    assert judged.roles is not None
    (result,) = judged.roles.results
    assert result.figures["times"].value == 2
    (over,) = judged.roles.over_time.values()
    assert [event.name for event in over.events] == ["dump", "dump"]


def test_a_role_that_cannot_go_on_makes_its_trial_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its dump fails: there is no such program."""
    if lacking := missing(MariaDB()):
        pytest.skip(f"no mariadb here: {lacking}")
    real = MariaDB.work

    def broken(self: MariaDB, job: str, *rest: Any) -> Work:
        work = real(self, job, *rest)
        return replace(work, commands=(("false", *work.commands[0][1:]),))

    monkeypatch.setattr(MariaDB, "work", broken)
    judged = judge(run(DUMPED, tmp_path))
    result = judged.treatments[0].trials[0]
    assert wrong(result) == {"a role ended"}
    assert "false" in result.reason
    assert "exit code 1" in result.reason


def test_a_writer_whose_last_requests_are_not_answered_has_died() -> None:
    run = RoleRun(name="writer", number=1, does="write", keys={}, planned=40)
    n = 40
    steps = np.arange(n, dtype=np.int64) * 10**8
    fatal = np.arange(n) >= 25
    none = np.array([None] * n, dtype=object)
    made = Written(
        np.arange(n), steps, steps, steps, np.where(fatal, -1, steps), ~fatal, fatal, fatal,
        np.ones(n, np.int64), (~fatal).astype(np.int64), np.array(["insert"] * n, dtype=object),
        none, none,
    )  # fmt: skip
    ((kind, severity, number, *_),) = truth.died(run, made)
    assert (kind, severity) == ("the writer died", "invalid")
    assert "the last 15 of 40 requests it sent" in number
    assert "from 2.5 s on" in number
    alive = replace(made, fatal=np.zeros(n, np.bool_))
    assert list(truth.died(run, alive)) == []


REFRESHED = """
question = "What do changes and refreshes take from readers?"
replicates = 1
[control]
aa = false
[corpus]
family = "generated"
documents = 1000
[queries]
distinct = 10
[systems.opensearch]
segments = "as-is"
[roles.writer]
does = "write"
documents = 200
insert = 2
update = 1
delete = 1
batch = 5
documents_per_s = 50
marker_every_s = 0.1
[roles.publisher]
does = "publish"
every_s = 1
[load]
clients = 1
seconds = 6
warmup_s = 1
"""


def test_a_system_that_must_refresh_shows_changes_after_its_refreshes(tmp_path: Path) -> None:
    if lacking := missing(OpenSearch()):
        pytest.skip(f"no opensearch here: {lacking}")
    record = run(REFRESHED, tmp_path)
    (trial,) = record.trials
    assert trial.reason == ""
    judged = judge(record)
    assert not wrong(judged.treatments[0].trials[0])
    assert judged.roles is not None
    writer, publisher = judged.roles.results
    assert writer.how == "refresh"
    assert "nothing is ever visible" in writer.unasked
    assert publisher.figures["times"].value >= 3
    found = writer.visible
    assert found is not None
    assert found.quantiles["p50"].value > 0
    refreshed = record.of_role(trial.trial, "publisher")["sent"].to_numpy().min()
    asks = record.asks(trial.trial, "writer-watcher")
    before = asks.filter(pc.less(asks["done"], refreshed))
    assert before.num_rows > 0
    assert sum(before["total"].to_pylist()) == 0, "nothing is found before the first refresh"
    assert max(asks["total"].to_pylist()) > 5
    kinds = record.writes(trial.trial, "writer")["kind"].to_pylist()
    applied = trial.beside[0].applied
    assert applied is not None
    assert applied.after == 800 + 5 * (kinds.count("insert") - kinds.count("delete"))


@pytest.mark.parametrize("kinds", [("insert",), ("delete",), ("insert", "delete")])
def test_inserts_that_are_lost_and_deletes_that_are_not_done_are_not_told_apart(
    kinds: tuple[str, ...],
) -> None:
    n, each = 40, {"insert": 1, "delete": -1}
    kind = np.array([kinds[i % len(kinds)] for i in range(n)], dtype=object)
    steps, none = np.arange(n, dtype=np.int64) * 10**8, np.array([None] * n, dtype=object)
    no, one = np.zeros(n, np.bool_), np.ones(n, np.int64)
    made = Written(
        np.arange(n), steps, steps, steps, steps, ~no, no, no, one, one, kind, none, none
    )
    after = 100 + sum(each[str(k)] for k in kind)
    applied = Applied(
        before=100,
        after=after,
        drawn=[Drawn(word="w", request=0, kind="insert", id="1", found=["1"])],
    )
    run = RoleRun(name="writer", number=1, does="write", keys={}, planned=n, applied=applied)
    found = [row[:2] for row in truth._counted(run, made)]
    assert found == ([("changes counted together", "note")] if len(kinds) > 1 else [])
    proofs = truth.proofs([(run, made)])
    assert [p.counted for p in proofs] == ([len(kinds) == 1] if "insert" in kinds else [])
    if len(kinds) > 1:
        assert "a lost insert and a delete that was not done cancel out" in truth.said_of(proofs[0])
        assert "of 20 that were acknowledged, 1 were asked for" in truth.said_of(proofs[0])


def test_one_trial_in_which_a_role_was_slow_is_not_averaged_away() -> None:
    """A publish of 10 s that was seen is the longest, and a writer that fell behind once did so."""
    rows = [
        {"behind_s": behind, "accepted_per_s": 100.0, "took_max": longest}
        for behind, longest in ((0.001, 0.1), (0.001, 0.1), (30.0, 10.0))
    ]
    found = _figures(rows)
    assert (found["took_max"].value, found["took_max"].interval) == (10.0, None)
    behind = found["behind_s"]
    assert behind.value == 0.001
    assert behind.interval is not None
    assert (behind.interval.high, behind.interval.level) == (30.0, 1.0)
    assert found["accepted_per_s"].value == 100.0
    assert behind_at_worst(SimpleNamespace(figures=found)) == 30.0  # type: ignore[arg-type]
    even = _figures([{"behind_s": 2.0}, {"behind_s": 2.1}])
    assert behind_at_worst(SimpleNamespace(figures=even)) == pytest.approx(2.05)  # type: ignore[arg-type]
    assert behind_at_worst(SimpleNamespace(figures={})) == 0.0  # type: ignore[arg-type]


def test_a_writer_that_is_blocked_to_the_end_is_behind_by_all_that_time() -> None:
    due, end = np.arange(60, dtype=np.int64) * 10**9, 60 * 10**9
    sent = np.where(due < 12 * 10**9, due + 1000, -1)
    no = np.zeros(60, np.bool_)
    assert behind_s(due, sent, sent < 0, end) == 48.0
    assert behind_s(due, np.full(60, -1), ~no, end) == 60.0, "nothing was ever sent"
    assert behind_s(due[:12], sent[:12], no[:12], end) == 1e-6
    assert behind_s(due, due + 3 * 10**9, no, end) == 3.0
    assert behind_s(due[:0], sent[:0], no[:0], end) == 0.0
    refused = np.where((due >= 20e9) & (due < 25e9), -1, due + 1000)
    assert behind_s(due, refused, no, end) == 1e-6, "refused at once, and punctual afterwards"
