"""Where the time of an operation goes: the instants of single statements, of a real MariaDB."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from searchbench.analysis.judge import judge
from searchbench.engines.mariadb import MariaDB
from searchbench.lab.get.install import missing
from searchbench.measure.run import run as measure
from searchbench.record import Record
from searchbench.report.document.assemble import document
from searchbench.report.document.blocks import Table

pytestmark = pytest.mark.slow

STUDY = '''question = "Where does the time go?"
replicates = 2
[control]
aa = false
[corpus]
family = "table"
table = "data"
rows = 300
[load]
clients = 2
requests = 12
warmup_requests = 2
[systems.mariadb]
[operations.fetch]
key = "id"
rows = 20
draws = 2
statement_times = true
[operations.fetch.methods.temporary]
sql = """
CREATE TEMPORARY TABLE wanted (id BIGINT);
-- @each 3
INSERT INTO wanted VALUES [each ",": ({id})];
-- @ignored
SELECT SLEEP(0.02);
SELECT data.* FROM data JOIN wanted USING (id);
DROP TEMPORARY TABLE wanted;
-- @after
DROP TEMPORARY TABLE IF EXISTS wanted;
"""
[operations.fetch.methods.pipelined]
sql = """
-- @each 3 @prepared @pipelined 4
SELECT * FROM data WHERE id IN ([each ",": {id}]);
"""
[operations.fetch.methods.in]
sql = 'SELECT * FROM data WHERE id IN ([each ",": {id}]);'
'''


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    if lacking := missing(MariaDB()):
        pytest.skip(lacking)
    folder = tmp_path_factory.mktemp("statements")
    path = folder / "study.toml"
    path.write_text(STUDY)
    return measure(path, folder / "record", work=folder / "work")


def test_each_statement_that_is_timed_is_on_record_with_its_instants(record: Record) -> None:
    assert [t.reason for t in record.trials if t.status != "ok"] == []
    for trial in record.trials:
        assert trial.operation is not None
        samples, statements = record.samples(trial.trial), record.statements(trial.trial)
        each = trial.operation.exchanges
        assert statements.num_rows == each * samples.num_rows
        assert sum(part.exchanges for part in trial.operation.parts) == each
        assert sum(p.statements for p in trial.operation.parts) == trial.operation.statements
        names = ("sent", "first_byte", "done")
        sent, first, done = (statements.column(name).to_numpy() for name in names)
        assert (sent <= first).all()
        assert (first <= done).all()
        # The first is sent with its operation, and the last is answered with it.
        number, of = (statements.column(n).to_numpy() for n in ("exchange", "sample"))
        whole_sent, whole_done = (samples.column(n).to_numpy() for n in ("sent", "done"))
        assert (sent[number == 0] == whole_sent[of[number == 0]]).all()
        assert (done[number == each - 1] == whole_done[of[number == each - 1]]).all()
        assert np.bincount(of).tolist() == [each] * samples.num_rows


def test_the_statement_that_takes_long_is_named(record: Record) -> None:
    (operation,) = judge(record).operations
    points = {m.method: m.points[0] for m in operation.methods}
    temporary = points["temporary"]
    taken = {part.text: part for part in temporary.parts}
    assert [*taken] == [
        "CREATE TEMPORARY TABLE wanted (id BIGINT)",
        'INSERT INTO wanted VALUES [each ",": ({id})]',
        "SELECT SLEEP(0.02)",
        "SELECT data.* FROM data JOIN wanted USING (id)",
        "DROP TEMPORARY TABLE wanted",
        "between the statements",
    ]
    assert [part.statements for part in temporary.parts] == [1, 7, 1, 1, 1, 0]
    slept = taken["SELECT SLEEP(0.02)"]
    assert slept.seconds is not None
    assert slept.seconds.value >= 0.02
    assert slept.share == max(part.share for part in temporary.parts)
    assert sum(part.share for part in temporary.parts) == pytest.approx(1)
    # 20 rows are seven statements in two pieces; one text, for the last block is shorter.
    assert [p.statements for p in points["pipelined"].parts] == [7, 0]
    # One statement has nothing between.
    assert [part.share for part in points["in"].parts] == [pytest.approx(1)]


def test_the_page_says_where_the_time_goes(record: Record) -> None:
    section = next(s for s in document(record, judge(record)).sections if s.id == "operations")
    tables = [block for block in section.blocks if isinstance(block, Table)]
    said = [t for t in tables if [column.name for column in t.columns][1:2] == ["Statement"]]
    assert len(said) == 1
    cells = [cell.text for row in said[0].rows for cell in row]
    assert "SELECT SLEEP(0.02)" in cells


def test_without_being_asked_for_nothing_of_it_is_kept(tmp_path: Path) -> None:
    if lacking := missing(MariaDB()):
        pytest.skip(lacking)
    path = tmp_path / "study.toml"
    short = STUDY.replace("statement_times = true\n", "").replace(
        "replicates = 2", "replicates = 1"
    )
    path.write_text(short)
    kept = measure(path, tmp_path / "record", work=tmp_path / "work")
    assert not list(kept.path.glob("trials/*/statements.parquet"))
    (operation,) = judge(kept).operations
    assert all(not p.parts for m in operation.methods for p in m.points)
