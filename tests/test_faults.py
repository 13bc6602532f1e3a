"""Faults of real systems: killed, frozen, partly lost and back; what is injected must be found.

What a kill takes of acknowledged writes is known of tantivy: all that was not committed. Its
commits are requests of ours, so each lost document can be counted beforehand. Longer than most
files, because each kind of fault is made to a system of its own.
"""

from __future__ import annotations

import contextlib
import csv
import math
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from searchbench.analysis.judge import judge, to_json
from searchbench.analysis.judgement import Judgement, TrialResult
from searchbench.analysis.roles import faults, results
from searchbench.analysis.roles.accepted import written
from searchbench.analysis.roles.model import FaultResult
from searchbench.analysis.trial.measured import NEVER, Trace, whole_trace
from searchbench.engines import defaults
from searchbench.engines.groonga import Groonga
from searchbench.engines.sphinx import Sphinx
from searchbench.lab.conduct import beside
from searchbench.lab.conduct.session import Session
from searchbench.lab.get.install import missing
from searchbench.lab.system import deploy
from searchbench.lab.system.deploy import Deployment
from searchbench.measure.run import run as measure
from searchbench.record import Record, Trial
from searchbench.record.roles import FaultDone, RoleRun
from searchbench.record.trial import Load, Window
from searchbench.report.write import write_report
from searchbench.terminal.answer import disturbed

pytestmark = pytest.mark.slow

HEAD = """
question = "What does a fault do?"
replicates = 1
[control]
aa = false
[corpus]
family = "generated"
documents = 2000
[queries]
distinct = 20
"""
KILLED = (
    HEAD
    + """
[systems.groonga]
clear_locks = true
[roles.writer]
does = "write"
share = 0.2
insert = 3
update = 1
batch = 2
documents_per_s = 40
[roles.crash]
does = "fault"
fault = "kill"
after_s = 2
for_s = 0.5
[load]
rate_per_s = 200
connections = 8
warmup_s = 0.5
seconds = 9
[factors]
"roles.crash.idle" = [false, true]
"""
)
# Of 40 documents that are drawn to be asked for, the draw decides how many the kill takes.
LOSING = (
    "draw_seed = 1"
    + HEAD
    + """
[systems.tantivy]
keys = true
[roles.writer]
does = "write"
share = 0.3
batch = 2
documents_per_s = 60
marker_every_s = 0
[roles.publisher]
does = "publish"
every_s = 1
[roles.crash]
does = "fault"
fault = "kill"
after_s = 3.3
for_s = 0.2
[load]
rate_per_s = 300
connections = 4
warmup_s = 0.5
seconds = 5
"""
)
AGENT = (
    HEAD
    + """
[systems.sphinx]
parts = 2
part_kind = "agent"
agent_query_timeout_ms = 500
[roles.loss]
does = "fault"
fault = "kill"
of = "p1"
after_s = 2
for_s = 1.5
[load]
rate_per_s = 250
connections = 8
warmup_s = 0.5
seconds = 7
"""
)
FROZEN = (
    HEAD
    + """
[systems.tantivy]
[roles.pause]
does = "fault"
fault = "freeze"
after_s = 2
for_s = 1
[load]
rate_per_s = 300
connections = 8
warmup_s = 0.5
seconds = 7
"""
)
GONE = (
    HEAD
    + """
[systems.tantivy]
[roles.end]
does = "fault"
fault = "stop"
after_s = 2
[load]
clients = 1
warmup_s = 0.5
seconds = 4
"""
)
OF_FAULTS = {"errors", "partial results", "server died", "server ended", "overload", "no answers",
             "writes lost", "a write is missing", "the writer died", "no fault"}  # fmt: skip


def run(text: str, folder: Path) -> Record:
    path = folder / "study.toml"
    path.write_text(text)
    return measure(path, folder / "record", work=folder / "work")


def invalid(result: TrialResult) -> set[str]:
    """Why a trial is not believed, of what a fault could be the reason for.

    What else runs on the machine may spoil a trial too.
    """
    return {f.kind for f in result.findings if f.severity == "invalid"} & OF_FAULTS


def of_trial(record: Record, trial: Trial) -> FaultResult:
    """What the fault of one trial did, whatever else is to be said of it."""
    (treatment,) = [t for t in judge(record).treatments if t.treatment == trial.treatment]
    (found,) = faults.results(record, treatment, [trial])
    return found


def happened(trial: Trial) -> FaultDone:
    assert trial.status == "ok", trial.reason
    assert trial.fault is not None
    return trial.fault


def value(found: FaultResult, name: str) -> float:
    return found.figures[name].value


def was_normal(found: FaultResult) -> bool:
    """At times at least: others may use the machine after the fault. Or they did before it, where a
    second or two are few to know what is normal.
    """
    if "normal_s" not in found.figures:
        return found.why.startswith("before it ")
    return math.isfinite(value(found, "normal_s")) or value(found, "later") < 1


@pytest.fixture(scope="module")
def killed(tmp_path_factory: Any) -> tuple[Record, Judgement]:
    """Groonga killed while documents come in, and started again; and the same without."""
    if lacking := missing(Groonga()):
        pytest.skip(f"no groonga here: {lacking}")
    record = run(KILLED, tmp_path_factory.mktemp("killed"))
    return record, judge(record)


def crashed(record: Record) -> Trial:
    (trial,) = [t for t in record.trials if t.fault is not None]
    return trial


def test_a_killed_server_is_started_again_and_answers_as_before(
    killed: tuple[Record, Judgement],
) -> None:
    record, judged = killed
    assert [trial.reason for trial in record.trials] == [""] * 2
    trial = crashed(record)
    done = happened(trial)
    assert done.begun is not None
    assert done.ended is not None
    assert done.again is not None
    assert done.ready is not None
    assert 2.5e9 <= done.begun <= done.ended <= done.again <= done.ready
    assert done.again - done.begun >= 0.5e9
    assert (done.processes, done.trouble) == (1, "")
    found = of_trial(record, trial)
    assert found.back
    assert 0 <= value(found, "first_error_s") < value(found, "down_s")
    assert value(found, "error_share") > 0.9, "nobody is there who could answer"
    assert value(found, "without_s") >= value(found, "down_s") - 0.05
    assert was_normal(found), (found.figures, found.why)
    (result,) = [x for t in judged.treatments for x in t.trials if x.trial == trial.trial]
    assert not invalid(result), "failures in the time of the fault are a result"
    assert result.outcomes.get("refused", 0) + result.outcomes.get("reset", 0) > 10


def test_what_was_acknowledged_before_a_kill_is_counted_after_it(
    killed: tuple[Record, Judgement],
) -> None:
    record, _ = killed
    trial = crashed(record)
    writer = next(run for run in trial.beside if run.does == "write")
    assert writer.applied is not None
    assert writer.applied.after is not None
    found = of_trial(record, trial).durable
    assert found is not None
    assert found.counted == 1
    assert found.acknowledged > 20
    # Groonga maps its files into memory, and a kill takes nothing of what the kernel has.
    assert (found.lost, found.missing) == (0, 0)
    assert found.asked > 10


@pytest.mark.parametrize("cleared", [True, False])
def test_a_lock_that_a_kill_left_is_cleared_or_named(
    cleared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill leaves one by chance; ``lock_acquire`` does for certain."""
    if lacking := missing(Groonga()):
        pytest.skip(f"no groonga here: {lacking}")
    real = Deployment.start_again

    def locked(self: Deployment, name: str) -> None:
        database, config = str(self.data / "db"), ("--config-path", "/dev/null")
        for column in ("v_title", "v_body"):
            took = ("lock_acquire", f"Terms.{column}")
            # It waits for minutes where the kill itself has left the lock, which will do as well.
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(["groonga", *config, database, *took], check=True, timeout=2)
        real(self, name)

    monkeypatch.setattr(Deployment, "start_again", locked)
    monkeypatch.setattr(beside, "_TIMEOUT_S", 10.0)
    monkeypatch.setattr(deploy, "_STOP_TIMEOUT_S", 3.0)  # with such a lock it does not stop either
    text = KILLED.replace("clear_locks = true", f"clear_locks = {str(cleared).lower()}")
    text = text.replace('idle" = [false, true]', 'idle" = [false]')
    text = text.replace("seconds = 9", "timeout_s = 2\nseconds = 8")
    record = run(text, tmp_path)
    done = happened(crashed(record))
    (writer,) = (role for role in crashed(record).beside if role.does == "write")
    assert writer.applied is not None
    if cleared:
        assert done.trouble == ""
        assert writer.applied.after is not None
        return
    assert writer.applied.after is None
    assert "did not answer a query within 10 s" in done.trouble
    assert "`clear_locks = true`" in done.trouble
    log = record.path / "trials" / crashed(record).trial / "server.log"
    assert "lock failed" in log.read_text(errors="replace")


def test_a_fault_that_breaks_off_is_said_and_nobody_is_asked_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking := missing(Groonga()):
        pytest.skip(f"no groonga here: {lacking}")

    def broken(self: Deployment, name: str) -> None:
        raise OSError(f"no room to start {self.engine.name}{name}")

    monkeypatch.setattr(Deployment, "start_again", broken)
    text = KILLED.replace('idle" = [false, true]', 'idle" = [false]')
    record = run(text.replace("seconds = 9", "timeout_s = 2\nseconds = 3"), tmp_path)
    done, trial = happened(crashed(record)), crashed(record)
    assert (done.again, done.trouble) == (None, "")
    (role,) = (role for role in trial.beside if role.does == "fault")
    assert role.failed == "no room to start groonga"
    (writer,) = (role for role in trial.beside if role.does == "write")
    assert writer.applied is None
    (result,) = [x for t in judge(record).treatments for x in t.trials]
    (ended,) = [f for f in result.findings if f.kind == "a role ended"]
    assert (ended.severity, ended.number) == ("invalid", "crash: no room to start groonga")


def test_the_trial_is_judged_by_the_window_before_the_fault(
    killed: tuple[Record, Judgement],
) -> None:
    record, _ = killed
    trial = crashed(record)
    done = happened(trial)
    trace = whole_trace(record, trial)
    before = faults.undisturbed(trial, trace)
    assert trace.due.max() > 6e9, "it was driven to the end"
    assert before.window[0] == trace.window[0]
    assert before.window[1] <= (done.begun or 0)
    assert before.due.max() < before.window[1]
    assert (before.done < (done.begun or 0)).all(), "what was under way is the fault's"
    idle = next(t for t in record.trials if t.fault is None)
    assert faults.undisturbed(idle, trace) is trace


def test_the_fault_is_on_the_page_in_the_json_and_on_the_terminal(
    killed: tuple[Record, Judgement],
) -> None:
    record, judged = killed
    assert judged.roles is not None
    # Another process may have spoilt the trial, of which nothing would be said then.
    trial = crashed(record)
    found, over = of_trial(record, trial), {trial.treatment: results._over_time(record, trial)}
    judged = replace(judged, roles=replace(judged.roles, faults=(found,), over_time=over))
    assert judged.roles is not None
    assert found.label == "idle=false"
    said = " ".join(disturbed(judged))
    assert "the server was killed and was started again after" in said
    assert "acknowledged in the drive, none is gone" in said
    (plain,) = to_json(judged)["roles"]["faults"]
    assert plain["figures"]["without_s"]["value"] == found.figures["without_s"].value
    (event,) = [e for e in over[trial.treatment].events if e.name == "server killed"]
    assert event.end_s - event.start_s == pytest.approx(value(found, "down_s"))
    good = over[trial.treatment].good
    assert good is not None
    assert min(good.y) == 0
    report = write_report(record, judged, record.path / "report")
    (sheet,) = [path for path in report.csv if path.stem == "faults"]
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = {row["figure"]: row for row in csv.DictReader(file)}
    assert rows.keys() == found.figures.keys()
    down = rows["down_s"]
    assert (down["role"], down["fault"], down["label"]) == ("crash", "kill", "idle=false")
    assert (down["unit"], down["value"]) == ("s", repr(value(found, "down_s")))
    assert found.durable is not None
    assert int(down["writes_acknowledged"]) == found.durable.acknowledged > 0
    assert (down["writes_lost"], down["back"]) == ("0", "True")
    text = (record.path / "report" / "report.html").read_text()
    for wanted in ("What the fault did", "kill of the server", "Until normal", "Acknowledged",
                   "good answers/s"):  # fmt: skip
        assert wanted in text


def test_an_acknowledged_write_that_a_kill_took_is_found(tmp_path: Path) -> None:
    """tantivy keeps what it was given in memory until it is told to commit."""
    record = run(LOSING, tmp_path)
    (trial,) = record.trials
    done = happened(trial)
    writer = next(run for run in trial.beside if run.does == "write")
    made = written(record, trial, writer)
    commits = record.of_role(trial.trial, "publisher")
    sent, answered = (commits[name].fill_null(NEVER).to_numpy() for name in ("sent", "done"))
    assert done.begun is not None
    kept = (answered >= 0) & (answered < done.begun)
    assert kept.any()
    last_sent, last_done = int(sent[kept].max()), int(answered[kept].max())
    acknowledged = (made.done >= 0) & (made.done < done.begun)
    surely = int(made.taken[acknowledged & (made.sent > last_done)].sum())
    perhaps = int(made.taken[acknowledged & (made.done > last_sent)].sum())
    assert surely > 5, "documents were acknowledged after the last commit"
    found = of_trial(record, trial).durable
    assert found is not None
    assert surely - found.unknown <= found.lost <= perhaps
    assert found.missing > 0
    (result,) = [x for t in judge(record).treatments for x in t.trials]
    said = {f.kind: f.severity for f in result.findings}
    assert said["writes lost"] == "warning", "a result, and no reason not to believe the trial"
    assert said["a write is missing"] == "warning"
    assert not invalid(result)
    assert f"{found.lost:,} are gone" in faults.durability(found)


def test_a_lost_agent_makes_answers_partial_until_it_is_back(tmp_path: Path) -> None:
    if lacking := missing(Sphinx()):
        pytest.skip(f"no sphinx here: {lacking}")
    record = run(AGENT, tmp_path)
    (trial,) = record.trials
    done = happened(trial)
    assert done.of == "p1"
    found = of_trial(record, trial)
    assert value(found, "partial_share") > 0.5, "the other agent has the other half"
    assert value(found, "error_share") < 0.5
    assert was_normal(found), (found.figures, found.why)
    assert (found.otherwise, found.compared) == (0, 20), "all is there again"
    (result,) = [x for t in judge(record).treatments for x in t.trials]
    assert result.outcomes["partial"] > 20
    assert not invalid(result)
    assert any("p1 was killed" in said for said in faults.sentences(found))


def test_a_frozen_server_fails_nothing_and_answers_late(tmp_path: Path) -> None:
    record = run(FROZEN, tmp_path)
    (trial,) = record.trials
    done = happened(trial)
    assert done.ended is None
    found = of_trial(record, trial)
    assert value(found, "error_share") == 0
    assert "first_error_s" not in found.figures
    assert value(found, "without_s") == pytest.approx(value(found, "down_s"), abs=0.2)
    assert was_normal(found), (found.figures, found.why)
    assert any("All requests were answered well" in said for said in faults.sentences(found))
    (result,) = [x for t in judge(record).treatments for x in t.trials]
    assert not invalid(result)


def test_what_answers_nothing_after_a_fault_is_said_and_not_waited_for_query_by_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a lock that a killed process left behind, for which all threads of the next wait."""
    is_silent = beside._is_silent

    def hung(session: Session, timeout_s: float) -> bool:
        processes = session.there().processes
        for process in processes:
            process.suspend()
        try:
            return is_silent(session, 0.5)
        finally:
            for process in processes:
                process.resume()

    monkeypatch.setattr(beside, "_is_silent", hung)
    record = run(FROZEN, tmp_path)
    (trial,) = record.trials
    done = happened(trial)
    assert "did not answer a query within 60 s once all was over" in done.trouble
    (finding,) = (
        f
        for t in judge(record).treatments
        for x in t.trials
        for f in x.findings
        if f.kind == "did not come back"
    )
    assert finding.number == done.trouble


def test_what_is_not_brought_back_in_the_drive_is_gone_to_its_end(tmp_path: Path) -> None:
    record = run(GONE, tmp_path)
    (trial,) = record.trials
    done = happened(trial)
    assert trial.window is not None
    assert done.again is not None
    assert done.again >= trial.window.end, "it is there for those who count"
    found = of_trial(record, trial)
    assert not found.back
    assert "down_s" not in found.figures
    assert found.not_within + found.unknown == found.trials == 1
    assert found.compared == 20
    if found.not_within:
        assert any("without being started again" in said for said in faults.sentences(found))
    (result,) = [x for t in judge(record).treatments for x in t.trials]
    assert not invalid(result)


def test_what_cannot_be_started_again_is_said_and_is_no_failed_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Deployment.start_again

    def broken(self: Deployment, name: str) -> None:
        self._lines[name] = (["false"], {})
        real(self, name)

    monkeypatch.setattr(Deployment, "start_again", broken)
    record = run(GONE.replace("after_s = 2", "after_s = 2\nfor_s = 0.5"), tmp_path)
    (trial,) = record.trials
    assert "exit code 1" in happened(trial).trouble
    found = of_trial(record, trial)
    assert found.not_within + found.unknown == 1
    # A server that is told to stop answers for a while yet.
    assert value(found, "error_share") > 0
    assert value(found, "without_s") > 1
    (result,) = [x for t in judge(record).treatments for x in t.trials]
    assert "did not come back" in {f.kind for f in result.findings}
    assert not invalid(result)


def test_a_fault_after_the_drive_fails_its_trial_with_the_remedy(tmp_path: Path) -> None:
    record = run(GONE.replace("after_s = 2", "after_s = 20"), tmp_path)
    (trial,) = record.trials
    assert trial.status == "failed"
    assert "comes after the drive has ended: make `after_s` smaller" in trial.reason


def test_errors_are_dated_by_what_is_on_record_of_them() -> None:
    """Reset while under way: at the fault; refused: when it was due; timed out: after that."""
    s = 10**9
    outcomes = ["ok", "refused", "reset", "timed_out", "partial"]
    rows = [  # outcome, due, sent, done
        *((0, at * s // 100, at * s // 100, at * s // 100 + 10**6) for at in range(1000)),
        (2, 10 * s - 500_000, 10 * s - 500_000, NEVER),
        (1, 10 * s + 7, NEVER, NEVER),
        (3, 10 * s + 9, 10 * s + 9, NEVER),
        (4, 10 * s + 11, 10 * s + 11, 10 * s + 3 * 10**6),
    ]
    outcome, due, sent, done = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    trace = Trace(outcome * 0, outcome.astype(np.uint8), due, due, sent, done, (0, 20 * s))  # type: ignore[arg-type]
    fault = FaultDone(fault="kill", of="server", begun=10 * s)
    trial = Trial(
        trial="t", treatment="t01", outcomes=outcomes, load=Load(kind="open", timeout_s=2.0),
        window=Window(0, 20 * s),
        beside=[RoleRun(name="x", number=1, does="fault", fault=fault)],
    )  # fmt: skip

    def first(*codes: int) -> float:
        kept = np.isin(trace.outcome, [0, *codes])
        columns = ("query", "outcome", "due", "free", "sent", "done")
        some = replace(trace, **{name: getattr(trace, name)[kept] for name in columns})
        return faults._seen(trial, some).figures["first_error_s"]

    assert first(1, 2, 3, 4) == 0.0
    assert first(1, 3, 4) == pytest.approx(7e-9)
    assert first(3, 4) == pytest.approx(0.003)
    assert first(3) == pytest.approx(2.0, abs=1e-6)
    assert faults._seen(trial, trace).figures["partial_share"] == pytest.approx(1 / 3)


def test_a_fault_that_does_not_happen_makes_its_trial_invalid() -> None:
    planned = RoleRun(
        name="crash", number=1, does="fault", fault=FaultDone(fault="kill", of="server")
    )
    trial = Trial(trial="t", treatment="t01", beside=[planned])
    record: Any = None
    assert trial.fault is None
    (found,) = faults.findings(record, trial)
    assert (found.kind, found.severity) == ("no fault", "invalid")
    planned.idle = True
    assert list(faults.findings(record, trial)) == []


def test_a_process_is_killed_with_what_it_has_started_and_runs_again_on_its_files(
    tmp_path: Path,
) -> None:
    """groonga-httpd: a master with workers, and a process that writes."""
    if lacking := missing(Groonga()):
        pytest.skip(f"no groonga here: {lacking}")
    engine = Groonga()
    levers = {**defaults(engine), "server": "httpd"}
    with Deployment(engine, levers, tmp_path / "data", tmp_path / "run") as running:
        family, was, port = running.family(""), list(running.processes), running.target[1]
        assert len(family) == 3, "a master and two workers"
        with pytest.raises(KeyError):
            running.family("nobody")
        for process in family:
            process.kill()
        while not running.ended(""):
            time.sleep(0.01)
        assert not running.ended("writer")
        running.start_again("")
        running.wait_until_ready(0.01)
        assert running.target[1] == port
        assert running.lives()
        assert running.processes[0].pid == running.process.pid != was[0].pid
        assert running.processes[1] == was[1]
    assert not any(p.is_running() and p.status() != "zombie" for p in running.processes)
