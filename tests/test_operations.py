"""Operations asked of real databases: text, prepared and pipelined, with set-up and clean-up.

And methods that disagree, that fail, and that are not understood.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement
from searchbench.engines.mariadb import MariaDB
from searchbench.engines.postgresql import Postgresql
from searchbench.errors import LabError, StudyError
from searchbench.lab.conduct.tapping import tap_operation
from searchbench.lab.conduct.watch import Silence
from searchbench.lab.get.install import missing
from searchbench.measure.run import run as measure
from searchbench.record import Record, Trial, open_record
from searchbench.report.document.assemble import document
from searchbench.report.write import write_report
from searchbench.study import read_study
from searchbench.study.plan import Trial as PlannedTrial

pytestmark = pytest.mark.slow

TOP = """question = "How are rows fetched best?"
replicates = 1
[control]
aa = false
[corpus]
family = "table"
table = "data"
rows = 300
[load]
clients = 1
requests = 8
warmup_requests = 2
[operations.fetch]
key = "id"
rows = 20
draws = 2
"""
METHODS = '''
[operations.fetch.methods.in]
sql = 'SELECT * FROM data WHERE id IN ([each ",": {id}]);'
[operations.fetch.methods.prepared]
sql = """
-- @each @prepared
SELECT * FROM data WHERE id = {id};
"""
[operations.fetch.methods.pipelined]
sql = """
-- @each 3 @prepared @pipelined 4
SELECT * FROM data WHERE id IN ([each ",": {id}]);
"""
[operations.fetch.methods.temporary]
sql = """
-- @connection
CREATE TEMPORARY TABLE IF NOT EXISTS wanted (id BIGINT);
-- @before
INSERT INTO wanted VALUES [each ",": ({id})];
-- @ignored
SELECT COUNT(*) FROM wanted;
SELECT data.* FROM data JOIN wanted USING (id);
-- @after
DELETE FROM wanted;
"""
'''
OF_MARIADB = '''
[operations.fetch.methods.lossy]
systems = "mariadb"
sql = 'SELECT * FROM data WHERE id IN ([each ",": {id}]) ORDER BY id LIMIT 19;'
[operations.fetch.methods.breaks]
systems = "mariadb"
sql = """SELECT * FROM data WHERE id IN ([each ",": {id}])
AND IF({rows} > 2, (SELECT 1 UNION SELECT 2), 1);"""
'''
SYSTEMS = "[systems.mariadb]\n[systems.postgresql]\n"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """All methods of both systems, measured once."""
    if lacking := [m for e in (MariaDB(), Postgresql()) if (m := missing(e))]:
        pytest.skip(f"no database here: {lacking}")
    folder = tmp_path_factory.mktemp("operations")
    path = folder / "study.toml"
    path.write_text(TOP + METHODS + OF_MARIADB + SYSTEMS)
    return measure(path, folder / "record", work=folder / "work")


@pytest.fixture(scope="module")
def judged(record: Record) -> Judgement:
    return judge(record)


class Impatient(Silence):
    """Ends the run where the second trial begins."""

    def begins(self, trial: PlannedTrial, label: str, done: int, of: int) -> None:
        if done:
            raise KeyboardInterrupt


def test_a_study_of_methods_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Each method has work of its own, which is not held against that of another."""
    if lacking := missing(MariaDB()):
        pytest.skip(f"no database here: {lacking}")
    path, place = tmp_path / "study.toml", tmp_path / "record"
    path.write_text(TOP + METHODS + "[systems.mariadb]\n")
    with pytest.raises(KeyboardInterrupt):
        measure(path, place, work=tmp_path / "work", watch=Impatient())
    assert len(open_record(place).trials) == 1
    found = measure(path, place, work=tmp_path / "work")
    assert [t.status for t in found.trials] == ["ok"] * len(found.plan.trials)
    assert len(found.trials) == 4


def trial_of(record: Record, method: str, system: str = "mariadb") -> Trial:
    return next(t for t in record.trials if t.levels["method"] == method and t.system == system)


def digests(record: Record, trial: Trial) -> list[str]:
    rows = record.replies(trial.trial).to_pylist()
    captured = [r for r in rows if r["phase"] == "captured"]
    return [json.loads(r["facets"])["rows"][0][0] for r in captured]


def test_every_method_is_measured_and_says_what_it_sent(record: Record) -> None:
    assert [t.reason for t in record.trials if t.status != "ok"] == []
    for trial in record.trials:
        ok = trial.outcomes.index("ok")
        samples = record.samples(trial.trial)
        assert samples.num_rows == 10
        if trial.levels["method"] != "breaks":
            assert set(samples.column("outcome").to_pylist()) == {ok}
            assert min(samples.column("bytes").to_pylist()) > 0
    about = {
        (t.system, t.levels["method"]): t.operation
        for t in record.trials
        if t.operation is not None
    }
    for system in ("mariadb", "postgresql"):
        each = about[system, "prepared"]
        assert (each.statements, each.exchanges, each.prepared, each.prelude) == (20, 20, 20, 1)
        # 20 rows are six blocks of three and one of two: two texts; four at once, then three.
        each = about[system, "pipelined"]
        assert (each.statements, each.exchanges, each.prepared, each.prelude) == (7, 2, 7, 2)
        each = about[system, "temporary"]
        assert (each.statements, each.untimed, each.prelude) == (2, 2, 1)
        # Values alone are sent, and no statement again.
        assert about[system, "prepared"].sent_bytes < 20 * 80


def test_the_same_rows_come_back_whatever_method_protocol_and_server(record: Record) -> None:
    wanted = digests(record, trial_of(record, "in"))
    assert len(wanted) == len(set(wanted)) == 2
    for method in ("prepared", "pipelined", "temporary"):
        assert digests(record, trial_of(record, method)) == wanted, method
    of_postgres = digests(record, trial_of(record, "in", "postgresql"))
    for method in ("prepared", "pipelined", "temporary"):
        assert digests(record, trial_of(record, method, "postgresql")) == of_postgres, method


def test_a_method_that_loses_a_row_is_shown_with_the_first_row_that_differs(
    judged: Judgement,
) -> None:
    (operation,) = judged.operations
    lossy = [d for d in operation.differing if "lossy" in d.b]
    assert [d.counts for d in lossy] == [(20, 19)]
    assert lossy[0].place >= 0
    (only,) = lossy[0].only_a
    assert only.count("\t") >= 4
    assert lossy[0].only_b == ()
    labels = {t.treatment: t.label for t in judged.treatments}
    compared = [c for c in judged.comparisons if "lossy" in labels[c.a] + labels[c.b]]
    assert {c.verdict for c in compared} <= {"not comparable"}


def test_a_method_that_breaks_is_a_point_with_the_servers_words(judged: Judgement) -> None:
    (operation,) = judged.operations
    broken = next(m for m in operation.methods if m.method == "breaks")
    assert "Subquery returns more than 1 row" in broken.points[0].failed
    assert broken.points[0].seconds is None
    result = next(t for t in judged.treatments if "breaks" in t.label)
    assert [t.status for t in result.trials] == ["valid"]
    assert not [f for t in result.trials for f in t.findings if f.severity == "invalid"]


def test_the_page_shows_all_of_it(record: Record, judged: Judgement, tmp_path: Path) -> None:
    sections = document(record, judged).sections
    said = repr(next(s for s in sections if s.id == "operations"))
    assert "Subquery returns more than 1 row" in said
    assert "The first row that differs" in said
    assert write_report(record, judged, tmp_path / "page").html.is_file()


def wrong(folder: Path, methods: str) -> list[str]:
    path = folder / "study.toml"
    path.write_text(TOP + methods + "[systems.mariadb]\n")
    with pytest.raises(StudyError) as found:
        measure(path, folder / "record", work=folder / "work")
    assert not list((folder / "record").glob("trials/*"))
    return [str(c).removeprefix(str(folder) + "/") for c in found.value.complaints]


def test_what_a_server_does_not_understand_ends_the_run_before_anything_is_timed(
    tmp_path: Path,
) -> None:
    if lacking := missing(MariaDB()):
        pytest.skip(f"no mariadb here: {lacking}")
    (tmp_path / "bad.sql").write_text("SELECT 1;\n\n-- why not\nSELEC {rows};\n")
    methods = '''[operations.fetch.methods.bad]
file = "bad.sql"
[operations.fetch.methods.worse]
sql = """
SELECT 1;
-- @each @prepared
SELECT * FROM data WHERE nothing = {id};
"""
[operations.fetch.methods.good]
sql = "SELECT 1"
'''
    bad, worse = sorted(wrong(tmp_path, methods))
    assert bad.startswith("bad.sql:4:1: fetch, method bad, line 4: mariadb refuses it: You have an")
    assert "near 'SELEC 2'" in bad
    # The text begins on the line below the quotes that open it.
    assert worse.startswith("study.toml:23:1: fetch, method worse, line 3: mariadb refuses it: ")
    assert "Unknown column 'nothing'" in worse


def test_an_operation_is_shown_as_it_is_on_the_wire(tmp_path: Path) -> None:
    if lacking := missing(Postgresql()):
        pytest.skip(f"no postgresql here: {lacking}")
    path = tmp_path / "study.toml"
    path.write_text(TOP + METHODS + "[systems.postgresql]\n")
    study = read_study(path)
    found = tap_operation(study, "fetch/temporary", 3)
    assert [when for when, _ in found.sent] == [
        "on each connection", "before", "timed", "timed", "after",
    ]  # fmt: skip
    assert b"INSERT INTO wanted VALUES" in found.sent[1][1]
    assert (len(found.lines), found.error) == (3, "")
    with pytest.raises(LabError, match="the study has no method 'tempory'; it has fetch/in, "):
        tap_operation(study, "tempory", 3)


def test_a_table_of_the_studys_own_is_not_taken_for_that_of_the_corpus(tmp_path: Path) -> None:
    if lacking := missing(MariaDB()):
        pytest.skip(f"no mariadb here: {lacking}")
    path = tmp_path / "study.toml"
    methods = '''
[operations.fetch.methods.in]
sql = """
-- @once
CREATE TABLE a_counter (n INT) ENGINE=MyISAM CHARACTER SET latin1;
SELECT * FROM data WHERE id IN ([each ",": {id}]);
"""
'''
    path.write_text(TOP + methods + "[systems.mariadb]\n")
    (trial,) = measure(path, tmp_path / "record", work=tmp_path / "work").trials
    assert trial.status == "ok", trial.reason
    assert trial.parameters["storage"] == "innodb"
