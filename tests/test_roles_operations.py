"""Roles beside the readers of operations: on real servers, and what is injected is found.

A writer inserts cars into MariaDB and Groonga while their own questions are asked; a write that is
acknowledged and not made, a row under another key, and answers of no time must be seen.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from searchbench.analysis.judge import judge
from searchbench.analysis.roles import truth
from searchbench.corpora.corpus import Document
from searchbench.engines import ENGINES
from searchbench.engines.groonga import Groonga
from searchbench.engines.mariadb import MariaDB
from searchbench.engines.mysql_form import request
from searchbench.engines.write import Placed, insert
from searchbench.lab.drive import changes
from searchbench.lab.get.install import missing
from searchbench.measure.run import run as measure
from searchbench.record import Record, Trial
from searchbench.report.write import write_report

pytestmark = pytest.mark.slow

OF_ROLES = {
    "a role ended", "the writer died", "writes refused", "writes lost", "writes not applied",
    "a write is missing", "a wrong row", "deleted and still there", "answers of no time",
}  # fmt: skip
TOP = """
question = "What do inserts take from questions in SQL and in Groonga's words?"
replicates = 1
[control]
aa = false
[corpus]
family = "cars"
scale = 0.1
[systems.mariadb]
analysis = "engine"
[roles.writer]
does = "write"
documents = 600
marker_every_s = 0.1
[load]
clients = 1
seconds = 2
warmup_s = 0.5
timeout_s = 30
"""
BOTH = (
    TOP
    + """
[systems.groonga]
[factors]
"roles.writer.documents_per_s" = [0, 100]
[operations.by-color]
while_inserting = "counts"
[operations.by-color.methods.sql]
sql = "SELECT color, COUNT(*) FROM car GROUP BY color"
[operations.by-color.methods.command]
rows_at = "1.1.2-"
http = "GET /d/select?table=Docs&limit=0&drilldown=v_color&drilldown_limit=-1"
[operations.fetch]
key = "id"
rows = 20
draws = 2
[operations.fetch.methods.prepared]
sql = '''
-- @connection
SET @asked = 1;
-- @each @prepared
SELECT id, color, mileage FROM car WHERE id = {id};
'''
"""
)
ALONE = TOP.replace("[roles.writer]\n", "[roles.writer]\ndocuments_per_s = 100\n")
COUNTED = """
[operations.all.methods.sql]
sql = "SELECT COUNT(*) FROM car"
"""
# Right before and after, as both numbers of cars end in 0.
NO_TIME = """
[operations.leaps]
while_inserting = "counts"
[operations.leaps.methods.sql]
sql = "SELECT COUNT(*) + IF(MOD(COUNT(*), 10) = 5, 1000, 0) FROM car"
[operations.falls]
while_inserting = "counts"
[operations.falls.methods.sql]
sql = "SELECT COUNT(*) - 3 * MOD(COUNT(*), 2) FROM car"
"""


@pytest.fixture(scope="module", autouse=True)
def _servers() -> None:
    if lacking := [m for e in (MariaDB(), Groonga()) if (m := missing(e))]:
        pytest.skip(f"not all servers are here: {lacking}")


def run(text: str, folder: Path) -> Record:
    path = folder / "study.toml"
    path.write_text(text)
    return measure(path, folder / "record", work=folder / "work")


def of_roles(record: Record) -> dict[str, dict[str, str]]:
    """By trial the kinds and numbers of what is wrong with its roles.

    What else runs on the machine is no fault of theirs.
    """
    return {
        trial.trial: {f.kind: f.number for f in truth.findings(record, trial) if f.kind in OF_ROLES}
        for trial in record.trials
    }


def counted(record: Record, trial: Trial, phase: str) -> list[int]:
    """Of each answer the sum of what its rows count."""
    return [
        sum(int(line.rpartition("\t")[2]) for line in row["ids"])
        for row in record.replies(trial.trial).to_pylist()
        if row["phase"] == phase
    ]


@pytest.fixture(scope="module")
def record(tmp_path_factory: Any) -> Record:
    """Two operations, idle and while cars come in."""
    return run(BOTH, tmp_path_factory.mktemp("both"))


def busy(record: Record) -> list[Trial]:
    return [trial for trial in record.trials if not trial.beside[0].idle]


def test_every_method_is_asked_idle_and_beside_a_writer_of_the_same_index(record: Record) -> None:
    assert [t.reason for t in record.trials] == [""] * 6
    asked = sorted((t.levels["method"], t.beside[0].idle) for t in record.trials)
    assert asked == sorted(
        (method, idle) for method in ("sql", "command", "prepared") for idle in (True, False)
    )
    assert {t.facts.documents for t in record.trials} == {900}
    for trial in busy(record):
        writer, watcher = trial.beside
        assert trial.drive is not None
        assert writer.drive is not None
        assert writer.drive.started_unix_ns == trial.drive.started_unix_ns
        assert writer.applied is not None
        assert (writer.applied.before, writer.applied.after) == (900, 900 + writer.planned)
        assert len(writer.applied.drawn) > 40
        assert all(drawn.found == [drawn.id] for drawn in writer.applied.drawn)
        assert record.asks(trial.trial, watcher.name)["error"].null_count > 0


def test_readers_see_the_inserts_and_every_answer_is_one_of_its_time(record: Record) -> None:
    judged = judge(record)
    assert not any(of_roles(record).values())
    for trial in busy(record):
        phases = set(record.replies(trial.trial)["phase"].to_pylist())
        assert phases == {"captured", "while_written", "after"}
        if trial.levels["operation"] == "by-color":
            planned = trial.beside[0].planned
            assert counted(record, trial, "captured") == [900]
            assert counted(record, trial, "after") == [900 + planned]
            between = counted(record, trial, "while_written")
            assert min(between) >= 900
            assert max(between) <= 900 + planned
            assert len(set(between)) > 10
    assert judged.roles is not None
    held = {(h.operation, h.method): (h.kind, h.sampled) for h in judged.roles.answers}
    assert {pair: kind for pair, (kind, _) in held.items()} == {
        ("by-color", "sql"): "counts", ("by-color", "command"): "counts",
        ("fetch", "prepared"): "rows",
    }  # fmt: skip
    assert all(sampled > 20 for _, sampled in held.values())


def test_methods_agree_by_what_they_returned_before_anything_was_written(record: Record) -> None:
    by_color = next(o for o in judge(record).operations if o.name == "by-color")
    assert by_color.differing == ()
    assert by_color.compared == 4
    digests = {
        json.loads(row["facets"])["rows"][0][0]
        for trial in record.trials
        if trial.levels["operation"] == "by-color"
        for row in record.replies(trial.trial).to_pylist()
        if row["phase"] == "captured"
    }
    assert len(digests) == 1


def test_the_page_has_each_question_idle_and_while_inserting(
    record: Record, tmp_path: Path
) -> None:
    judged = judge(record)
    assert judged.roles is not None
    pairs = {pair.label: pair for pair in judged.roles.beside}
    assert len(pairs) == 3
    assert all("documents_per_s=0" in pair.idle_label for pair in pairs.values())
    assert all(pair.ratios["service_p50"].value > 0 for pair in pairs.values())
    page = write_report(record, judged, tmp_path / "page").html.read_text(encoding="utf-8")
    for said in (
        "Beside the readers", "Answers while documents changed", "by-color (sql, command)",
        "fetch (prepared)", "documents_per_s=100", "From commit to visible",
    ):  # fmt: skip
        assert said in page


def test_a_lost_write_is_found_beside_an_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every twentieth insert is acknowledged by the server, which was asked to do nothing."""

    def losing(engine: Any, added: Any, schema: Any, params: Any) -> Any:
        if added[0].at % 20 == 0:
            return request("DO 0")
        return insert(engine, added, schema, params)

    monkeypatch.setattr(changes, "insert", losing)
    record = run(ALONE + COUNTED, tmp_path)
    (trial,) = record.trials
    assert trial.reason == ""
    (result,) = judge(record).treatments[0].trials
    assert result.status == "invalid"
    assert {f.kind for f in result.findings} >= {"writes lost", "a write is missing"}
    (found,) = of_roles(record).values()
    assert set(found) == {"writes lost", "a write is missing"}
    planned = trial.beside[0].planned
    assert (
        f"900 before + {planned:,} inserted − 0 deleted = {900 + planned:,}" in found["writes lost"]
    )


def test_a_wrong_row_is_found_beside_an_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked for afterwards was written under a key that is no car's."""

    def other(placed: Placed) -> Placed:
        document = placed.document
        if "sbdrawn" not in document.values["contents"]:
            return placed
        return placed._replace(document=Document(str(10**6 + placed.at), document.values))

    def swapping(engine: Any, added: Any, schema: Any, params: Any) -> Any:
        return insert(engine, [other(each) for each in added], schema, params)

    monkeypatch.setattr(changes, "insert", swapping)
    record = run(ALONE + COUNTED, tmp_path)
    (result,) = judge(record).treatments[0].trials
    assert result.status == "invalid"
    assert "a wrong row" in {f.kind for f in result.findings}
    (found,) = of_roles(record).values()
    assert set(found) == {"a wrong row"}


def test_answers_of_no_time_are_found_where_the_ends_are_right(tmp_path: Path) -> None:
    record = run(ALONE + NO_TIME, tmp_path)
    assert {t.beside[0].planned % 10 for t in record.trials} == {0}
    found = of_roles(record)
    leaps, falls = (
        found[t.trial]
        for t in sorted(record.trials, key=lambda t: str(t.levels["operation"]), reverse=True)
    )
    assert set(leaps) == set(falls) == {"answers of no time"}
    assert not leaps["answers of no time"].startswith("0 of")
    assert re.search(r"leaps: [12],\d\d\d, not 900 to 1,150", leaps["answers of no time"])
    assert "that went back" in falls["answers of no time"]
    said = {f.kind for f in judge(record).findings}
    said |= {f.kind for t in judge(record).treatments for r in t.trials for f in r.findings}
    assert "answers of no time" in said


PUBLISHED = """
question = "What does publishing take from a question in OpenSearch's JSON?"
replicates = 1
[control]
aa = false
[corpus]
family = "cars"
scale = 0.1
[systems.opensearch]
segments = "as-is"
[roles.writer]
does = "write"
documents = 600
documents_per_s = 50
marker_every_s = 0.1
[roles.publisher]
does = "publish"
every_s = 1.2
[load]
clients = 1
seconds = 4
warmup_s = 0.5
[operations.all.methods.json]
rows_at = "hits.total.value"
http = '{"size": 0, "track_total_hits": true}'
"""
OF_SENSEI = (
    ALONE.replace('[systems.mariadb]\nanalysis = "engine"', '[systems.sensei]\ncolumns = "plain"')
    .replace('columns = "plain"', 'columns = "plain"\nfreshness_s = 0')
    .replace("documents_per_s = 100", "documents_per_s = 40\nupdate = 1\ninsert = 2\ndelete = 1")
    + """
[operations.all.methods.json]
rows_at = "numhits"
http = '{"size": 0}'
"""
)
DUMPED = (
    ALONE
    + COUNTED
    + """
[roles.backup]
does = "job"
job = "dump"
after_s = 0.3
"""
)


def test_what_is_published_beside_an_operation_is_seen_by_it(tmp_path: Path) -> None:
    if lacking := missing(ENGINES["opensearch"]):
        pytest.skip(f"no OpenSearch here: {lacking}")
    record = run(PUBLISHED, tmp_path)
    (trial,) = record.trials
    assert trial.reason == ""
    writer, _, publisher = trial.beside
    assert publisher.planned == 3
    assert publisher.failed == ""
    assert publisher.publishing is not None
    assert publisher.publishing.how == "refresh"
    judged = judge(record)
    assert not any(of_roles(record).values())
    assert counted(record, trial, "captured") == [900]
    assert counted(record, trial, "after") == [900 + writer.planned]
    between = set(counted(record, trial, "while_written"))
    assert 2 <= len(between) <= 1 + publisher.planned, "between two publishes nothing is seen"
    assert judged.roles is not None
    (visible,) = (r.visible for r in judged.roles.results if r.does == "write")
    assert visible is not None
    assert visible.quantiles["p50"].value > 0


def test_plain_columns_of_sensei_are_changed_while_they_are_asked(tmp_path: Path) -> None:
    if lacking := missing(ENGINES["sensei"]):
        pytest.skip(f"no SenseiDB here: {lacking}")
    record = run(OF_SENSEI, tmp_path)
    (trial,) = record.trials
    assert trial.reason == ""
    applied = trial.beside[0].applied
    kinds = record.writes(trial.trial, "writer")["kind"].to_pylist()
    assert min(map(kinds.count, ("insert", "update", "delete"))) > 10
    assert applied is not None
    assert applied.after == 900 + kinds.count("insert") - kinds.count("delete")
    assert {drawn.kind for drawn in applied.drawn} == {"insert", "update"}
    assert not any(of_roles(record).values())
    assert counted(record, trial, "after") == [applied.after]
    assert len(set(counted(record, trial, "while_written"))) > 5


def test_a_dump_is_made_beside_an_operation_and_a_writer(tmp_path: Path) -> None:
    record = run(DUMPED, tmp_path)
    (trial,) = record.trials
    assert trial.reason == ""
    assert trial.beside[-1].does == "job"
    assert trial.beside[-1].failed == ""
    assert trial.beside[-1].end is not None
    judged = judge(record)
    assert not any(of_roles(record).values())
    assert judged.roles is not None
    assert [e.name for e in judged.roles.over_time[trial.treatment].events] == ["dump"]
