"""Operations that fail on real databases: what they leave behind, and what the answer says of them.

A method that breaks at a size is a point on the curve, with the server's words. The trials of the
others are not touched by it.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement
from searchbench.analysis.operations.model import Point
from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Request
from searchbench.engines.mariadb import MariaDB, table
from searchbench.engines.mysql_form import request
from searchbench.engines.postgresql import Postgresql
from searchbench.errors import StudyError
from searchbench.lab.conduct.watch import Silence
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.exchange import ask
from searchbench.measure.run import run as measure
from searchbench.record import Record
from searchbench.study.plan import Trial as Planned
from searchbench.terminal.answer import exit_code

pytestmark = pytest.mark.slow

FEW, MANY = 5, 4000
TOP = f"""question = "Which method fails, and where?"
replicates = 1
[control]
aa = false
[corpus]
family = "table"
table = "data"
rows = 5000
[load]
clients = 1
requests = 3
warmup_requests = 0
timeout_s = 2
[factors]
"operations.fetch.rows" = [{FEW}, {MANY}]
[operations.fetch]
key = "id"
draws = 1
[operations.fetch.methods.in]
sql = 'SELECT * FROM data WHERE id IN ([each ",": {{id}}]);'
"""
# What it makes outlives its connection, and it makes it once only.
TABLE = '''
[operations.fetch.methods.table]
sql = """
CREATE TABLE wanted (id BIGINT);
INSERT INTO wanted VALUES [each ",": ({id})];
-- @ignored
SELECT SLEEP(IF({rows} > 5, 9, 0));
SELECT data.* FROM data JOIN wanted USING (id);
-- @after
DROP TABLE wanted;
"""
'''
UNION = """
[operations.fetch.methods.union]
sql = '[each " UNION ALL ": SELECT * FROM data WHERE id = {id}];'
"""
_IN = 'SELECT * FROM data WHERE id IN ([each ",": {id}]) AND 1 = '
DEEP = f"""
[operations.fetch.methods.stack]
sql = '{_IN}[each "": IF(1,]1[each "": ,2)];'
[operations.fetch.methods.parser]
sql = '{_IN}[each "": {"(" * 60}]1[each "": {")" * 60}];'
"""
NESTED = f"""
[operations.fetch.methods.nested]
sql = '{_IN}[each "": (SELECT ]1[each "": )];'
"""
BLOCKS = """
[operations.fetch.methods.blocks]
sql = '''
-- @each 1000
SELECT * FROM data WHERE id IN ([each ",": {id}]);
'''
"""


@pytest.fixture(autouse=True)
def _server() -> None:
    if lacking := missing(MariaDB()):
        pytest.skip(f"no mariadb here: {lacking}")


def measured(
    folder: Path,
    methods: str,
    watch: Silence | None = None,
    systems: str = "[systems.mariadb]\n",
    timeout_s: int = 30,
    few: int = FEW,
) -> tuple[Record, Judgement]:
    path = folder / "study.toml"
    top = TOP.replace("timeout_s = 2", f"timeout_s = {timeout_s}").replace(f"[{FEW},", f"[{few},")
    path.write_text(top + methods + systems)
    record = measure(path, folder / "record", work=folder / "work", watch=watch or Silence())
    return record, judge(record)


def points(judged: Judgement, method: str) -> list[Point]:
    (operation,) = judged.operations
    return [p for m in operation.methods if m.method == method for p in m.points]


def outcomes(record: Record, method: str, rows: int) -> list[str]:
    (trial,) = [
        t for t in record.trials
        if t.levels["method"] == method and t.levels["operations.fetch.rows"] == rows
    ]  # fmt: skip
    codes = record.samples(trial.trial).column("outcome").to_pylist()
    return [trial.outcomes[code] for code in codes]


def assert_answered(judged: Judgement, method: str, *, many: bool = True) -> None:
    found = points(judged, method)
    assert [p.rows for p in found] == [FEW, MANY]
    names = {t.treatment for t in found}
    for t in judged.treatments:
        if t.treatment in names:
            assert [(x.status, x.reason) for x in t.trials] == [("valid", "")], t.label
    assert found[0].seconds is not None
    assert (found[1].seconds is not None) is many


def test_a_table_of_an_operation_that_timed_out_is_there_for_no_other(tmp_path: Path) -> None:
    record, judged = measured(tmp_path, TABLE, timeout_s=4)
    # Each would find the table of the one before, and so would the trials after it.
    # Asked alone it had run out of time too, so it was not asked three times more.
    assert outcomes(record, "table", MANY) == ["timed_out"]
    assert outcomes(record, "table", FEW) == ["ok"] * 3
    assert_answered(judged, "in")
    assert_answered(judged, "table", many=False)
    assert points(judged, "table")[1].failed == "it took longer than 4 s (`timeout_s`)"
    assert exit_code(record, judged) == 0


def test_what_the_parser_does_not_take_is_a_point_with_its_words(tmp_path: Path) -> None:
    record, judged = measured(tmp_path, UNION + DEEP + NESTED)
    said = {
        "stack": "Thread stack overrun: ",
        "parser": "memory exhausted near '((((",
        "nested": "Too high level of nesting for select",
    }
    assert_answered(judged, "in")
    for method, words in said.items():
        assert_answered(judged, method, many=False)
        assert points(judged, method)[1].failed.startswith(words)
    # Some thousand branches are within what this server takes.
    assert_answered(judged, "union")
    assert exit_code(record, judged) == 0


def test_what_postgresql_cannot_parse_is_a_point_with_its_words(
    tmp_path: Path,
) -> None:
    if lacking := missing(Postgresql()):
        pytest.skip(f"no postgresql here: {lacking}")
    record, judged = measured(tmp_path, NESTED, systems="[systems.postgresql]\n")
    assert_answered(judged, "in")
    assert_answered(judged, "nested", many=False)
    assert points(judged, "nested")[1].failed.startswith("memory exhausted at or near ")
    assert exit_code(record, judged) == 0


def test_a_packet_too_large_is_a_point_with_the_servers_words(tmp_path: Path) -> None:
    engine = ENGINES["mariadb"]
    with Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "run") as server:
        host, port = server.target
        address = f"mysql://root@{host}:{port}/{table.DATABASE}"
        first = f'[systems.mariadb]\nattach = "{address}"\n[ingest]\nbatch = 50\n'
        ask(server.endpoint, [request("SET GLOBAL max_allowed_packet = 16384")])
        record, judged = measured(tmp_path, BLOCKS, systems=first)
        assert_answered(judged, "in", many=False)
        assert (
            "Got a packet bigger than 'max_allowed_packet' bytes" in points(judged, "in")[1].failed
        )
        assert_answered(judged, "blocks")
        assert exit_code(record, judged) == 0


def test_more_branches_of_a_union_than_files_is_a_point_with_the_servers_words(
    tmp_path: Path,
) -> None:
    engine = ENGINES["mariadb"]
    levers = {**defaults(engine), "storage": "myisam"}
    with Deployment(engine, levers, tmp_path / "data", tmp_path / "run") as server:
        # Each branch opens the table, so their number is that of the files that it may open.
        server.processes[0].rlimit(psutil.RLIMIT_NOFILE, (1000, 1000))
        host, port = server.target
        address = f"mysql://root@{host}:{port}/{table.DATABASE}"
        first = f'[systems.mariadb]\nstorage = "myisam"\nattach = "{address}"\n'
        record, judged = measured(tmp_path, UNION, systems=first)
        assert_answered(judged, "in")
        assert_answered(judged, "union", many=False)
        said = points(judged, "union")[1].failed
        assert "Out of resources when opening file" in said
        assert "Too many open files" in said
        assert exit_code(record, judged) == 0


class Killer(Silence):
    """Kills the server without warning in one phase of the trials of one method."""

    def __init__(self, method: str, phase: str) -> None:
        self.method, self.phase, self.killed, self.here = method, phase, 0, False

    def begins(self, trial: Planned, label: str, done: int, of: int) -> None:
        self.here = f"method={self.method}" in label and str(MANY) in label

    def stage(self, name: str) -> None:
        if self.here and name == self.phase:
            for child in psutil.Process().children(recursive=True):
                if child.name() in ("mariadbd", "mysqld"):
                    os.kill(child.pid, signal.SIGKILL)
                    self.killed += 1


DIES = """
[operations.fetch.methods.dies]
sql = 'SELECT * FROM data WHERE id IN ([each ",": {id}]) AND SLEEP(0) = 0;'
"""


@pytest.mark.parametrize("phase", ["capture", "drive"])
def test_a_method_whose_server_dies_is_a_point_and_the_others_are_valid(
    tmp_path: Path, phase: str
) -> None:
    killer = Killer("dies", phase)
    record, judged = measured(tmp_path, DIES, killer)
    assert killer.killed == 1
    assert_answered(judged, "in")
    died = next(t for t in judged.treatments if t.treatment == points(judged, "dies")[1].treatment)
    (trial,) = died.trials
    assert "server ended" in {f.kind for f in trial.findings}
    if phase == "drive":
        assert trial.status == "valid"
        assert points(judged, "dies")[1].failed.startswith("the server ended; its log ends: ")
    else:  # it answered afterwards, so no method ended it: who did is not known
        assert trial.status == "invalid"
    # What a generator without a processor saw says nothing of a server.
    starved = "client starved" in {f.kind for f in trial.findings}
    assert starved or exit_code(record, judged) == 1


LOSSY = """
[operations.fetch.methods.lossy]
sql = 'SELECT * FROM data WHERE id IN ([each ",": {id}]) ORDER BY id LIMIT 1;'
[operations.fetch.methods.or]
sql = 'SELECT * FROM data WHERE [each " OR ": id = {id}];'
"""


def test_methods_that_disagree_end_the_run_before_anything_is_timed(tmp_path: Path) -> None:
    with pytest.raises(StudyError) as found:
        # One row would not show it.
        measured(tmp_path, LOSSY, few=1)
    assert not list((tmp_path / "record").glob("trials/*"))
    (complaint,) = map(str, found.value.complaints)
    # Where the text of the one is, and where that of the one it is held against.
    where, of = (f"{tmp_path}/study.toml:{n}" for n in (23, 20))
    assert complaint.startswith(
        f"{where}:1: fetch, method lossy, line 1: mariadb returns other rows than method in ({of})"
    )
    assert "for the same question: 2 by in, 1 by lossy; only in returns “" in complaint
    assert "; only lossy" not in complaint


LEAVES = """question = "What is left behind?"
[corpus]
family = "table"
table = "data"
rows = 100
[load]
clients = 1
requests = 3
[operations.kinds.methods.bad]
rows_at = "1.0.0"
http = '''
# @before
GET /d/table_create?name=Left&flags=TABLE_NO_KEY
###
GET /d/select?table=Nothing
###
# @after
GET /d/table_remove?name=Left
'''
[systems.groonga]
attach = "{address}"
"""


def test_a_method_that_is_refused_over_http_leaves_nothing_behind(tmp_path: Path) -> None:
    engine = ENGINES["groonga"]
    if lacking := missing(engine):
        pytest.skip(f"no groonga here: {lacking}")
    with Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "run") as server:
        path = tmp_path / "study.toml"
        path.write_text(LEAVES.replace("{address}", "{}:{}".format(*server.target)))
        with pytest.raises(StudyError, match=r"line 4: groonga refuses it: .*Nothing"):
            measure(path, tmp_path / "record", work=tmp_path / "work")
        get = b"GET /d/table_list HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        (tables,) = ask(server.endpoint, [Request((get,))])
        assert b"Docs" in tables
        assert b"Left" not in tables
