"""Operations that fail on real databases: what they leave behind, and what the answer says of them.

A method that breaks at a size is a point on the curve, with the server's words. The trials of the
others are not touched by it.

Longer than most files, because each is one way to fail, of the same methods on the same tables.
"""

from __future__ import annotations

import contextlib
import csv
import os
import re
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from placing import needs
from searchbench.analysis.judge import judge, to_json
from searchbench.analysis.judgement import Judgement, TrialResult
from searchbench.analysis.operations.model import Point
from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Request
from searchbench.engines.mariadb import MariaDB, table
from searchbench.engines.mysql_form import request
from searchbench.engines.postgresql import Postgresql
from searchbench.errors import LabError, StudyError
from searchbench.lab.conduct.watch import Silence
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.system.running import NO_FIELDS
from searchbench.lab.wire.exchange import Endpoint, ask
from searchbench.measure.run import run as measure
from searchbench.record import Record, Trial
from searchbench.study.plan import Trial as Planned
from searchbench.terminal.answer import answer, exit_code

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


def test_a_backend_of_postgresql_that_crashes_is_a_point_with_the_words_of_the_log(
    tmp_path: Path,
) -> None:
    if lacking := missing(Postgresql()):
        pytest.skip(f"no postgresql here: {lacking}")
    # A shell that a backend has started knows it as its parent. The third time it is killed: first
    # the method is asked alone.
    times = tmp_path / "times"
    kills = f"echo >> {times}; test $(wc -l < {times}) -lt 3 || kill -9 $PPID"
    crashes = f'''
[operations.fetch.methods.crashes]
sql = """
-- @ignored
DO 'BEGIN IF {{rows}} > 5 THEN COPY (SELECT 1) TO PROGRAM ''{kills}''; END IF; END';
SELECT * FROM data WHERE id IN ([each ",": {{id}}]);
"""
'''
    record, judged = measured(tmp_path, crashes, systems="[systems.postgresql]\n")
    assert_answered(judged, "in")
    assert_answered(judged, "crashes", many=False)
    assert re.match(
        r"a backend of the server ended \(signal 9, SIGKILL\) after 1 good answer; its log: .*"
        r"was terminated by signal 9: Killed \| .*Failed process was running: ",
        points(judged, "crashes")[1].failed,
    )
    (end,) = [end for t in record.trials for end in t.server_ends]
    assert (end.process, end.code, end.phase, end.under_way) == ("backend", -9, "drive", 1)
    assert exit_code(record, judged) == 1 or starved(judged)


def test_a_backend_of_postgresql_that_is_told_to_end_says_so_itself(tmp_path: Path) -> None:
    if lacking := missing(Postgresql()):
        pytest.skip(f"no postgresql here: {lacking}")
    ends = '''
[operations.fetch.methods.ends]
sql = """
-- @ignored
SELECT CASE WHEN {rows} > 5 THEN pg_terminate_backend(pg_backend_pid()) END;
SELECT * FROM data WHERE id IN ([each ",": {id}]);
"""
'''
    record, judged = measured(tmp_path, ends, systems="[systems.postgresql]\n")
    assert_answered(judged, "ends", many=False)
    said = points(judged, "ends")[1].failed
    assert said == "terminating connection due to administrator command (57P01)"
    assert [end for t in record.trials for end in t.server_ends] == [], "no process crashed"
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


def asleep(server: psutil.Process) -> bool:
    """Is a statement of a method under way that sleeps? So says the server itself."""
    engine = ENGINES["mariadb"]
    service = engine.service(defaults(engine), NO_FIELDS)
    sql = ("SELECT IF(COUNT(*) > 0, 'asleep', 'awake') AS x FROM information_schema.processlist "
           "WHERE info LIKE 'SELECT SLEEP(%'")  # fmt: skip
    with contextlib.suppress(psutil.Error, LabError):
        for each in server.net_connections("tcp"):
            if each.status == psutil.CONN_LISTEN:
                at = (each.laddr.ip, each.laddr.port)
                endpoint = Endpoint(at, service.wire, service.login, service.whole)
                return b"asleep" in ask(endpoint, [request(sql)], timeout_s=5.0)[0]
    return False


def servers() -> list[psutil.Process]:
    """Those that run now and are ours."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.name() in ("mariadbd", "mysqld") and child.status() != psutil.STATUS_ZOMBIE:
                found.append(child)
    return found


class Killer(Silence):
    """Ends the server without warning in the trials of one method, with many rows, and in a phase.

    ``when``: "begins", before it is asked for anything; "asked", while the first statement is under
    way; "answered", while one is, after some good answers. ``most``: so many times at most.
    """

    def __init__(
        self, phase: str, when: str, how: signal.Signals = signal.SIGKILL, most: int = 9
    ) -> None:
        self.phase, self.when, self.how, self.most = phase, when, how, most
        self.killed, self.said = 0, list[str]()
        self._here, self._waits = False, list[threading.Thread]()

    def told(self, text: str) -> None:
        self.said.append(text)

    def begins(self, trial: Planned, label: str, done: int, of: int) -> None:
        self._here = "method=dies" in label and str(MANY) in label

    def stage(self, name: str) -> None:
        if not self._here or name != self.phase or self.killed >= self.most:
            return
        if self.when == "begins":
            self._kill()
        elif self.when == "asked":
            self.wait()

    def tick(self, completed: int, elapsed_ns: int, recent: bytes) -> None:
        answered = self._here and self.when == "answered" and completed > 3
        if answered and self.killed < self.most:
            self._here = False
            self._kill()

    def ends(self, trial: Planned, about: Trial, invalid: str) -> None:
        for each in self._waits:
            each.join()

    def wait(self) -> None:
        """From now on for a statement of the method."""
        self._waits.append(threading.Thread(target=self._once_asked, daemon=True))
        self._waits[-1].start()

    def _once_asked(self) -> None:
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up:
            if any(map(asleep, servers())):
                return self._kill()
            time.sleep(0.02)
        raise AssertionError("nobody asked it for anything")

    def _kill(self) -> None:
        there = servers()
        for server in there:
            os.kill(server.pid, self.how)
            self.killed += 1
        # Whoever waits for it here would take its exit code from its parent.
        while any(server in servers() for server in there):
            time.sleep(0.01)


# With many rows a statement is under way nearly always.
DIES = """
[operations.fetch.methods.dies]
sql = '''
-- @ignored
SELECT SLEEP(IF({rows} > 5, 0.5, 0));
SELECT * FROM data WHERE id IN ([each ",": {id}]);
'''
"""


def trials_of(judged: Judgement, treatment: str) -> tuple[TrialResult, ...]:
    (found,) = [t for t in judged.treatments if t.treatment == treatment]
    return found.trials


def starved(judged: Judgement) -> bool:
    """What a generator without a processor saw says nothing of a server."""
    return any(f.kind == "client starved" for f in judged.findings)


@pytest.mark.parametrize(
    ("phase", "how", "words"),
    [
        ("drive", signal.SIGKILL, r"the server ended \(signal 9, SIGKILL\); its log: "),
        # It writes its report while others of its threads still answer.
        (
            "drive",
            signal.SIGSEGV,
            r"the server ended \(signal 11, SIGSEGV\)( after \d+ good answers?)?; its log: "
            r"[^|]*\[ERROR\] \S*mariadbd got signal 11 ; \| ",
        ),
        (
            "capture",
            signal.SIGKILL,
            r"the server ended \(signal 9, SIGKILL\) while it was asked alone, before anything "
            r"was timed; its log: ",
        ),
    ],
)
def test_a_method_whose_server_dies_while_it_is_asked_is_a_point_and_the_others_are_valid(
    tmp_path: Path, phase: str, how: signal.Signals, words: str
) -> None:
    killer = Killer(phase, "asked", how)
    record, judged = measured(tmp_path, DIES, killer)
    assert killer.killed == 1
    assert_answered(judged, "in")
    assert_answered(judged, "dies", many=False)
    (trial,) = trials_of(judged, points(judged, "dies")[1].treatment)
    assert re.match(words, points(judged, "dies")[1].failed)
    assert {"operation failed", "server ended"} <= {f.kind for f in trial.findings}
    (end,) = [end for t in record.trials for end in t.server_ends]
    assert (end.process, end.code, end.phase, end.under_way) == ("", -how, phase, 1)
    assert [said for said in killer.said if "the server ended (signal" in said]
    assert exit_code(record, judged) == 1 or starved(judged)


@pytest.mark.parametrize("phase", ["capture", "drive"])
def test_a_server_that_dies_while_nothing_is_asked_makes_its_trial_invalid(
    tmp_path: Path, phase: str
) -> None:
    killer = Killer(phase, "begins")
    record, judged = measured(tmp_path, DIES, killer)
    assert killer.killed == 1
    assert_answered(judged, "in")
    (trial,) = trials_of(judged, points(judged, "dies")[1].treatment)
    assert trial.status == "invalid"
    assert "server ended" in {f.kind for f in trial.findings if f.severity == "invalid"}
    assert points(judged, "dies")[1].failed == ""
    assert [end.under_way for t in record.trials for end in t.server_ends] == [0]
    assert exit_code(record, judged) == 1 or starved(judged)


def test_good_answers_before_a_server_dies_are_no_time_of_its_method(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # In the first of its two trials; it lives through the other.
    killer = Killer("drive", "answered", most=1)
    path = tmp_path / "study.toml"
    window = "seconds = 4\nwarmup_s = 0"
    text = TOP.replace("requests = 3\nwarmup_requests = 0", window)
    text = text.replace("replicates = 1", "replicates = 2")
    text = text.replace("timeout_s = 2", "timeout_s = 30")
    path.write_text(text + DIES + "[systems.mariadb]\n")
    record = measure(path, tmp_path / "record", work=tmp_path / "work", watch=killer)
    judged = judge(record)
    assert killer.killed == 1
    others = [t for t in judged.treatments if t.levels["method"] == "in"]
    assert [(x.status, x.reason) for t in others for x in t.trials] == [("valid", "")] * 4
    few, many = points(judged, "dies")
    assert few.seconds is not None
    assert (many.seconds, many.by_block) == (None, {})
    assert re.match(r"the server ended \(signal 9, SIGKILL\) after \d+ good answers, in 1 of 2 "
                    r"trials; its log: ", many.failed)  # fmt: skip
    trials = trials_of(judged, many.treatment)
    assert [(x.status, dict(x.figures)) for x in trials] == [("valid", {})] * 2
    assert all(x.outcomes["ok"] >= 3 for x in trials)
    own = [c for c in judged.comparisons if many.treatment in (c.a, c.b)]
    assert {(c.verdict, c.ratio) for c in own} == {("not comparable", None)}
    assert exit_code(record, judged) == 1 or starved(judged)

    # So it is in every form.
    page = answer(record, tmp_path / "page")
    shown = " ".join(capsys.readouterr().out.split())
    assert "dies fails at 4,000 rows: the server ended (signal 9, SIGKILL)" in shown
    assert page.verdict.best is None
    (point,) = [
        p for o in to_json(judged)["operations"] for m in o["methods"] for p in m["points"]
        if p["treatment"] == many.treatment
    ]  # fmt: skip
    assert (point["seconds"], point["failed"]) == (None, many.failed)
    with (tmp_path / "page" / "operations.csv").open() as file:
        (row,) = [r for r in csv.DictReader(file) if r["treatment"] == many.treatment]
    assert (row["seconds"], row["failed"]) == ("", many.failed)
    html = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert "the server ended (signal 9, SIGKILL)" in html


HUNGRY = '''
[operations.fetch.methods.hungry]
sql = """
-- @connection
SET SESSION max_heap_table_size = 2147482624;
-- @connection
SET SESSION tmp_memory_table_size = 1073741824;
-- @ignored
SELECT COUNT(*) FROM (SELECT a.id * 10000 + b.id AS k, COUNT(*) FROM data a, data b
WHERE {rows} > 5 GROUP BY k) grouped;
SELECT * FROM data WHERE id IN ([each ",": {id}]);
"""
[places.small]
memory = "400MB"
'''


def test_a_method_that_takes_more_memory_than_its_place_has_is_a_point(tmp_path: Path) -> None:
    needs("memory")
    placed = '[systems.mariadb]\nplace = "small"\n'
    record, judged = measured(tmp_path, HUNGRY, systems=placed, timeout_s=60)
    assert_answered(judged, "in")
    assert_answered(judged, "hungry", many=False)
    assert re.match(
        r"the server ended \(signal 9, SIGKILL\).*; the kernel killed a process of the system, "
        r"which needed more memory than place small has: `memory` = 400MB; give it more; its log: ",
        points(judged, "hungry")[1].failed,
    )
    assert exit_code(record, judged) == 1 or starved(judged)


LEFT = TABLE.replace("methods.table", "methods.dies").replace("9, 0", "0.5, 0")


def test_what_a_method_left_in_the_server_that_it_ended_is_there_for_no_other(
    tmp_path: Path,
) -> None:
    killer = Killer("drive", "asked", most=1)
    path = tmp_path / "study.toml"
    text = TOP.replace("replicates = 1", "replicates = 2")
    text = text.replace("timeout_s = 2", "timeout_s = 30")
    path.write_text(text + LEFT + "[systems.mariadb]\n")
    record = measure(path, tmp_path / "record", work=tmp_path / "work", watch=killer)
    assert killer.killed == 1
    found = [t for t in record.trials if t.levels["method"] == "dies"]
    said = {t.trial: t.said for t in found if not t.server_ends}
    assert set(map(str, said.values())) == {"{}"}, "no table was there already"
    ended = next(t for t in found if t.server_ends)
    later = [t for t in record.trials if t.position > ended.position]
    assert later
    assert later[0].ingest is not None
    assert later[0].ingest.reused is None, "the index was made anew"


def test_a_server_that_dies_when_its_method_is_tried_ends_the_run_and_is_named(
    tmp_path: Path,
) -> None:
    class Early(Killer):
        def begins(self, trial: Planned, label: str, done: int, of: int) -> None:
            raise AssertionError("no trial begins")

    killer = Early("", "asked")
    killer.wait()
    with pytest.raises(StudyError) as found:
        measured(tmp_path, DIES.replace("IF({rows} > 5, 0.5, 0)", "2"), killer)
    (complaint,) = map(str, found.value.complaints)
    assert "fetch, method dies" in complaint
    assert "mariadb ended when it was tried with 2 rows: signal 9, SIGKILL" in complaint


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
