"""Roles that read, held to hosts of known truth and to real engines.

The null host serves one request at a time where it is told to. Then a reader beside one report
waits for that report each time, so it takes twice as long, and nothing else may be said of it.
Longer than most files, because each case has its study beside it.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from searchbench.analysis.compare import pairs
from searchbench.analysis.judge import judge, to_json
from searchbench.analysis.judgement import Finding, Judgement
from searchbench.analysis.roles import reading
from searchbench.engines import defaults
from searchbench.engines.groonga import Groonga
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.measure.run import run as measure
from searchbench.record import Record, Trial, open_record
from searchbench.record.roles import RoleRun
from searchbench.report.write import write_report
from searchbench.terminal.answer import further_readers
from searchbench.workload.reading import seed_of

pytestmark = pytest.mark.slow

SHARED = """
question = "How much slower are searches while a report runs?"
replicates = 2
[control]
aa = false
[corpus]
family = "generated"
documents = 500
[queries]
distinct = 20
[systems.shared]
engine = "null"
delay_us = 20000
total = 10
workers = 1
[systems.apart]
engine = "null"
delay_us = 20000
total = 10
[roles.reports]
does = "read"
[roles.reports.queries]
distinct = 7
limit = 1000
match = "any"
[load]
clients = 1
seconds = 2
warmup_s = 0.5
[factors]
"roles.reports.clients" = [0, 1]
"""
# In every fifth of a second replies take fifty times as long: longer than the role waits for them.
FAILING = """
question = "What of reports that are given up?"
replicates = 1
[control]
aa = false
[corpus]
family = "generated"
documents = 100
[queries]
distinct = 5
[systems.some]
engine = "null"
delay_us = 5000
total = 3
slow_every_ms = 500
slow_ms = 100
slow_factor = 50
[systems.all]
engine = "null"
delay_us = 200000
total = 3
[roles.reports]
does = "read"
clients = 2
timeout_s = 0.1
[roles.reports.queries]
distinct = 5
[roles.clock]
does = "read"
rate_per_s = 40
arrivals = "constant"
connections = 20
[roles.clock.queries]
distinct = 3
[roles.few]
does = "read"
rate_per_s = 60
connections = 1
[roles.few.queries]
distinct = 3
[roles.seldom]
does = "read"
every_s = 0.5
after_s = 0.25
[roles.seldom.queries]
distinct = 3
[load]
rate_per_s = 30
seconds = 3
warmup_s = 0.5
"""
GROONGA = """
question = "What do reports take from searches while documents come in?"
replicates = 1
[control]
aa = false
[corpus]
family = "generated"
documents = 1500
[queries]
distinct = 20
[systems.groonga]
[roles.writer]
does = "write"
share = 0.2
documents_per_s = 40
marker_every_s = 0.5
[roles.reports]
does = "read"
rate_per_s = 20
[roles.reports.queries]
distinct = 6
limit = 500
match = "any"
facets = ["category"]
[load]
clients = 1
seconds = 2
warmup_s = 0.5
[factors]
meanwhile = [
  { name = "nothing", set = { "roles.writer.idle" = true, "roles.reports.idle" = true } },
  { name = "reports", set = { "roles.writer.idle" = true, "roles.reports.idle" = false } },
  { name = "both", set = { "roles.writer.idle" = false, "roles.reports.idle" = false } },
]
"""


def run(text: str, folder: Path) -> Record:
    path = folder / "study.toml"
    path.write_text(text)
    return measure(path, folder / "record", work=folder / "work")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: Any) -> Record:
    """Readers alone and beside reports, on a host that serves one at a time, and on one of many."""
    return run(SHARED, tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def failing(tmp_path_factory: Any) -> Record:
    """Reports that are given up, beside others that go by a clock."""
    return run(FAILING, tmp_path_factory.mktemp("failing"))


@pytest.fixture
def copied(shared: Record, tmp_path: Path) -> Callable[[str, Callable[[pa.Table], pa.Table]], Any]:
    """A record in which a file of the reports was changed, in all trials that have it."""

    def change(file: str, made: Callable[[pa.Table], pa.Table]) -> Record:
        target = tmp_path / "copy"
        shutil.copytree(shared.path, target)
        for path in target.glob(f"trials/*/roles/{file}.parquet"):
            pq.write_table(made(pq.read_table(path)), path)
        return open_record(target)

    return change


def busy(record: Record, system: str) -> list[tuple[Trial, RoleRun]]:
    """Trials on a system in which the reports were asked, with their role."""
    return [(t, t.beside[0]) for t in record.trials if t.system == system and not t.beside[0].idle]


def read_in(record: Record, trial: Trial, name: str) -> reading.Read:
    role = next(each for each in trial.beside if each.name == name)
    found = reading.of_trial(record, trial, role)
    assert found is not None
    return found


def median_of_readers(record: Record, system: str, idle: bool) -> float:
    """The median service time of the readers of the study."""
    every = [
        record.samples(t.trial)
        for t in record.trials
        if t.system == system and t.beside[0].idle is idle
    ]
    took = [
        (table["done"].to_numpy() - table["sent"].to_numpy())[table["outcome"].to_numpy() == 0]
        for table in every
    ]
    return float(np.median(np.concatenate(took)))


def judged_on_any_machine(record: Record, monkeypatch: pytest.MonkeyPatch) -> Judgement:
    """Judged without the audit of what else the machine did, which is no matter of roles; and as if
    no role was sent late.
    """
    monkeypatch.setattr("searchbench.analysis.trial.validity.audit", lambda *_: ())
    monkeypatch.setattr("searchbench.analysis.trial.validity.lag", lambda *_: iter(()))
    return judge(record)


def of_kind(findings: tuple[Finding, ...] | list[Finding], kind: str) -> list[Finding]:
    return [f for f in findings if f.kind == kind and "reports" in f.number]


def test_a_second_reader_has_one_clock_with_the_first_and_files_of_its_own(shared: Record) -> None:
    for trial, role in busy(shared, "shared"):
        assert trial.reason == ""
        assert trial.roles == ["readers", "reports"]
        assert trial.drive is not None
        assert role.drive is not None
        assert role.drive.started_unix_ns == trial.drive.started_unix_ns
        assert set(shared.samples(trial.trial)["role"].to_pylist()) == {0}
        samples = shared.of_role(trial.trial, "reports")
        assert set(samples["role"].to_pylist()) == {1}
        assert set(samples["query"].to_pylist()) == set(range(7))
        assert role.queries is not None
        assert role.queries.distinct == 7
        assert role.queries.digest != trial.queries.digest
        asked = shared.queries(role.queries.digest)
        assert [line["algebra"]["limit"] for line in asked] == [1000] * 7
        replies = shared.replies_of_role(trial.trial, "reports")
        alone = replies.filter(pc.equal(replies["phase"], "captured"))
        assert sorted(alone["query"].to_pylist()) == list(range(7))
        assert set(replies["phase"].to_pylist()) == {"captured", "under_load"}
    idle = [t for t in shared.trials if t.beside[0].idle]
    assert len(idle) == 4
    assert all(t.beside[0].drive is None for t in idle)


def test_each_level_of_what_a_role_asks_is_asked_and_held_against_its_own_answers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "study.toml"
    text = SHARED.replace("replicates = 2", "replicates = 1").replace("seconds = 2", "seconds = 1")
    text = text.replace("distinct = 7\n", "")
    text = text.replace("[roles.reports]\n", "[roles.reports]\nclients = 1\n")
    varied = '"roles.reports.queries.distinct" = [3, 7]'
    text = text.replace('"roles.reports.clients" = [0, 1]', varied)
    path.write_text(text)
    record = measure(path, tmp_path / "record", work=tmp_path / "work")
    seen = set()
    for trial in record.trials:
        (role,) = trial.beside
        wanted = trial.levels["roles.reports.queries.distinct"]
        assert role.queries is not None
        assert role.queries.distinct == role.keys["queries"]["distinct"] == wanted
        seen.add((trial.system, wanted, role.queries.digest))
        replies = record.replies_of_role(trial.trial, "reports")
        alone = replies.filter(pc.equal(replies["phase"], "captured"))
        assert sorted(alone["query"].to_pylist()) == list(range(int(wanted)))
        asked = record.of_role(trial.trial, "reports")["query"].to_pylist()
        assert set(asked) == set(range(int(wanted)))
    assert len({digest for _, _, digest in seen}) == 2
    assert len(seen) == 4, "both systems are asked the same at each level"
    judged = judge(record)
    assert judged.roles is not None
    assert {(r.levels["roles.reports.queries.distinct"], r.asks) for r in judged.roles.results} == {
        (3, 3), (7, 7),
    }  # fmt: skip
    # Either is as much at work as the other, so there is none to be held against.
    assert {b.idle for b in judged.roles.beside} == {""}


@pytest.mark.timed
def test_readers_beside_a_report_take_as_much_longer_as_they_must(shared: Record) -> None:
    """One at a time: twice as long. Each for itself: as long as alone."""
    alone, beside = (median_of_readers(shared, "shared", idle) for idle in (True, False))
    assert beside / alone == pytest.approx(2, rel=0.15)
    alone, beside = (median_of_readers(shared, "apart", idle) for idle in (True, False))
    assert beside / alone == pytest.approx(1, rel=0.15)


@pytest.mark.timed
def test_the_comparison_says_how_much_slower_readers_are_beside_reports(
    shared: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = judged_on_any_machine(shared, monkeypatch)
    assert judged.roles is not None
    beside = {pair.label.split()[0]: pair for pair in judged.roles.beside}
    slower = beside["shared"]
    assert slower.idle_label == "shared reports.clients=0"
    assert slower.ratios["service_p50"].value == pytest.approx(2, rel=0.15)
    assert slower.ratios["throughput"].value < 0.8
    assert beside["apart"].ratios["service_p50"].value == pytest.approx(1, rel=0.15)
    own = {c.metric: c for c in judged.comparisons if {c.a, c.b} == {slower.treatment, slower.idle}}
    for metric in ("service_p50", "throughput"):
        verdict = pairs.of(slower.treatment, own[metric]).verdict
        assert slower.judged[metric] == verdict != "faster"


def test_a_report_has_the_figures_of_its_own_requests(shared: Record) -> None:
    for trial, role in busy(shared, "shared"):
        found = read_in(shared, trial, "reports")
        samples = shared.of_role(trial.trial, "reports")
        assert trial.window is not None
        due = samples["due"].to_numpy()
        inside = (due >= trial.window.start) & (due < trial.window.end)
        took = (samples["done"].to_numpy() - samples["sent"].to_numpy())[inside]
        assert found.requests == inside.sum() > 10
        assert (found.failed, found.offered) == (0, None)
        assert found.service_ns.tolist() == sorted(took.tolist())
        assert reading.load_in_words(role.keys) == "1 client"


def test_page_sheet_json_and_terminal_have_what_reports_met(
    shared: Record, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    judged = judged_on_any_machine(shared, monkeypatch)
    assert judged.roles is not None
    found = {r.label: r for r in judged.roles.results}
    busy_one = found["shared reports.clients=1"]
    assert found["shared reports.clients=0"].idle
    assert busy_one.load == "1 client"
    assert busy_one.asks == 7
    plain = to_json(judged)["roles"]["results"]
    (same,) = [each for each in plain if each["label"] == "shared reports.clients=1"]
    assert same["figures"]["requests"]["value"] == busy_one.figures["requests"].value
    said = further_readers(judged)
    assert any(
        s.startswith("reports (1 client), shared reports.clients=1: answered ") for s in said
    )
    report = write_report(shared, judged, tmp_path / "report")
    page = report.html.read_text(encoding="utf-8")
    assert "How the other readers fared." in page
    assert "Nothing was written, so trials shared an index." in page
    sheet = (tmp_path / "report" / "roles.csv").read_text()
    assert ",service_p50,s," in sheet


def test_other_answers_to_a_report_under_load_are_found(copied: Any) -> None:
    def other(table: pa.Table) -> pa.Table:
        loaded = np.array(table["phase"].to_pylist()) == "under_load"
        total = np.where(loaded, 11, table["total"].to_numpy())
        at = table.schema.get_field_index("total")
        return table.set_column(at, table.schema.field(at), pa.array(total))

    record = copied("reports.replies", other)
    trial, _ = busy(record, "shared")[0]
    (found,) = of_kind([*reading.findings(record, trial)], "other answers under load")
    assert found.severity == "invalid"
    n = record.replies_of_role(trial.trial, "reports").num_rows - 7
    assert found.number == f"reports: {n} of {n} sampled replies"


def test_the_same_answers_are_no_finding(shared: Record) -> None:
    for trial, _ in busy(shared, "shared"):
        assert not of_kind([*reading.findings(shared, trial)], "other answers under load")


def test_figures_of_a_report_that_the_generator_sent_late_are_left_out(copied: Any) -> None:
    def late(table: pa.Table) -> pa.Table:
        sent = table["sent"].to_numpy() + 30_000_000
        at = table.schema.get_field_index("sent")
        return table.set_column(at, table.schema.field(at), pa.array(sent))

    record = copied("reports", late)
    trial, _ = busy(record, "shared")[0]
    found = read_in(record, trial, "reports")
    assert found.late
    assert reading.figures([found]) == {}
    (said,) = of_kind([*reading.findings(record, trial)], "a role's lag")
    assert said.severity == "warning"
    assert "left out of those of reports" in said.meaning


def test_requests_that_failed_took_forever(failing: Record) -> None:
    (trial,) = (t for t in failing.trials if t.system == "some")
    found = read_in(failing, trial, "reports")
    assert 0.01 * found.requests < found.failed < 0.5 * found.requests
    figures = reading.figures([found])
    assert figures["error_share"].value == found.failed / found.requests
    assert math.isfinite(figures["response_p50"].value)
    assert math.isinf(figures["response_p99"].value)
    (said,) = of_kind([*reading.findings(failing, trial)], "errors of a role")
    assert said.severity == "warning"
    assert "timed_out" in said.number


def test_a_role_that_gets_no_answer_at_all_makes_the_trial_invalid(failing: Record) -> None:
    (trial,) = (t for t in failing.trials if t.system == "all")
    (said,) = of_kind([*reading.findings(failing, trial)], "a role got no answers")
    assert said.severity == "invalid"
    others = {f.number.split(":")[0] for f in reading.findings(failing, trial)
              if f.kind == "a role got no answers"}  # fmt: skip
    assert others == {"reports"}, "the others wait longer"


def test_a_role_with_too_few_connections_is_told_so(failing: Record) -> None:
    """On a host that takes a fifth of a second, of sixty a second over one connection most wait."""
    (trial,) = (t for t in failing.trials if t.system == "all")
    found = [f for f in reading.findings(failing, trial) if f.kind == "a role's connections"]
    # Where the machine is busy, those of "clock" may be too few for a while, too.
    said = {f.number.split(":")[0]: f.number for f in found}
    assert "few" in said
    assert said["few"].endswith("waited for one of its 1")
    assert "seldom" not in said, "one at a time is what it asks for"
    few = read_in(failing, trial, "few")
    assert few.behind_s is not None
    assert few.behind_s > 0
    assert few.failed > 0, "those that were never sent have no answer"


def test_each_of_several_roles_keeps_its_own_clock(failing: Record) -> None:
    for trial in failing.trials:
        reports, clock, _, seldom = trial.beside
        assert (reports.planned, clock.planned, seldom.planned) == (0, 140, 6)
        due = np.sort(failing.of_role(trial.trial, "clock")["due"].to_numpy())
        assert np.unique(np.diff(due)).tolist() == pytest.approx([25_000_000], abs=2)
        due = np.sort(failing.of_role(trial.trial, "seldom")["due"].to_numpy())
        assert due.tolist() == [750_000_000 + n * 500_000_000 for n in range(6)]
        found = read_in(failing, trial, "clock")
        assert found.offered is not None
        assert found.offered.value == pytest.approx(40, rel=0.02)


def test_two_readers_do_not_ask_the_same_at_the_same_time() -> None:
    assert len({seed_of(name, seed) for name in ("a", "b") for seed in (1, 2)} | {1, 2}) == 6


def test_answers_to_reports_are_held_to_before_and_after_while_documents_come_in(
    tmp_path: Path,
) -> None:
    if lacking := missing(Groonga()):
        pytest.skip(f"no groonga here: {lacking}")
    record = run(GROONGA, tmp_path)
    assert [trial.reason for trial in record.trials] == [""] * 3
    by_name = {str(t.levels["meanwhile"]): t for t in record.trials}
    phases = {
        name: set(record.replies_of_role(by_name[name].trial, "reports")["phase"].to_pylist())
        for name in ("reports", "both")
    }
    assert phases["reports"] == {"captured", "under_load"}
    assert phases["both"] == {"captured", "while_written", "after"}
    own = {f.kind for t in record.trials for f in reading.findings(record, t)}
    assert not own & {"other answers under load", "answers of no time", "a role got no answers"}
    judged = judge(record)
    assert judged.roles is not None
    pairs = {(pair.label, pair.idle_label) for pair in judged.roles.beside}
    assert pairs == {("meanwhile=reports", "meanwhile=nothing"),
                     ("meanwhile=both", "meanwhile=nothing")}  # fmt: skip
    # What was written is in the answers to reports, and an answer of no time is found.
    both = by_name["both"]
    path = record.path / "trials" / both.trial / "roles" / "reports.replies.parquet"
    table = pq.read_table(path)
    before = dict(zip(table["query"].to_pylist(), table["total"].to_pylist(), strict=True))
    at = table.schema.get_field_index("total")
    written = np.array(table["phase"].to_pylist()) == "while_written"
    wrong = np.where(written, 10 * max(before.values()) + 1, table["total"].to_numpy())
    pq.write_table(table.set_column(at, table.schema.field(at), pa.array(wrong)), path)
    found = [f for f in reading.findings(record, both) if f.kind == "answers of no time"]
    assert len(found) == 1
    assert found[0].number.startswith("reports: ")


RUNS_ALREADY = """
question = "What do reports take from searches of the one that runs?"
replicates = 1
[control]
aa = false
[corpus]
files = "documents.jsonl"
fields = {{ text = "text" }}
[queries]
file = "queries.txt"
[systems.ours]
engine = "groonga"
attach = "{address}"
[roles.reports]
does = "read"
[roles.reports.queries]
file = "reports.txt"
limit = 5
[load]
seconds = 0.5
warmup_s = 0.2
[factors]
"roles.reports.clients" = [0, 2]
"""


def test_roles_that_only_read_go_beside_the_readers_of_a_system_that_runs_already(
    tmp_path: Path,
) -> None:
    engine = Groonga()
    if lacking := missing(engine):
        pytest.skip(f"no groonga here: {lacking}")
    lines = [f'{{"id": "{n}", "text": "red fox {n}"}}' for n in range(6)]
    (tmp_path / "documents.jsonl").write_text("\n".join(lines))
    (tmp_path / "queries.txt").write_text("red\nfox 1\n")
    (tmp_path / "reports.txt").write_text("fox\n")
    with Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "server") as server:
        address = "{}:{}".format(*server.target)
        record = run(RUNS_ALREADY.format(address=address), tmp_path)
        assert server.lives()
    assert [trial.reason for trial in record.trials] == ["", ""]
    (trial,) = (t for t in record.trials if not t.beside[0].idle)
    assert trial.attached == address
    replies = record.replies_of_role(trial.trial, "reports")
    assert set(replies["total"].to_pylist()) == {6}
    assert {len(ids) for ids in replies["ids"].to_pylist()} == {5}
    assert read_in(record, trial, "reports").requests > 10
