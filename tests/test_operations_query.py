"""Methods that are queries of the algebra, beside SQL and BQL: real engines, the same rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchbench.analysis.judge import judge
from searchbench.engines import ENGINES
from searchbench.errors import StudyError
from searchbench.lab.conduct.tapping import tap_operation
from searchbench.lab.get.install import missing
from searchbench.measure.run import run as measure
from searchbench.record import Record
from searchbench.study import read_study

pytestmark = pytest.mark.slow

TOP = """question = "Which language is asked best?"
replicates = 1
[control]
aa = false
[corpus]
family = "table"
table = "data"
rows = 300
[corpus.columns]
kind = {type = "keyword", distribution = "uniform", distinct = 5}
amount = {type = "integer", distribution = "cycle", distinct = 60}
[load]
clients = 1
requests = 8
warmup_requests = 2
"""
SYSTEMS = """[systems.mariadb]
[systems.lucene]
[systems.encoded]
engine = "sensei"
[systems.plain]
engine = "sensei"
columns = "plain"
"""
KINDS = """
[operations.kinds.methods.sql]
sql = "SELECT kind, COUNT(*) FROM data WHERE amount < 30 GROUP BY kind"
[operations.kinds.methods.bql]
systems = "plain"
rows_at = "facets.kind: value, count"
bql = "SELECT kind FROM data WHERE amount < 30 BROWSE BY kind(false, 1, 100, hits) LIMIT 0, 1"
[operations.kinds.methods.query]
rows_at = "facets.kind: value, count"
query = '''{"filters": [{"range": {"field": "amount", "high": 30, "include_high": false}}],
 "facets": ["kind"], "limit": 1}'''
"""
FETCH = """
[operations.fetch]
key = "amount"
rows = 3
draws = 2
[operations.fetch.methods.sql]
sql = 'SELECT id, kind FROM data WHERE amount IN ([each ", ": {amount}])'
[operations.fetch.methods.query]
systems = ["lucene", "encoded"]
rows_at = "hits: id, kind"
query = '''
{"filters": [{"in": {"field": "amount", "values": [[each ", ": {amount}]]}}],
 "fields": ["kind"], "limit": 100}
'''
"""
TOTAL = """
[operations.total.methods.sql]
sql = "SELECT COUNT(*) FROM data WHERE amount >= 50"
[operations.total.methods.query]
systems = ["mariadb", "lucene"]
file = "total.json"
"""
WRONG = """
[operations.few.methods.sql]
sql = "SELECT id, kind FROM data WHERE amount = 7 UNION ALL SELECT 999, 'wrong'"
[operations.few.methods.query]
systems = ["mariadb", "lucene"]
rows_at = "hits: id, kind"
query = '{"filters": [{"in": {"field": "amount", "values": [7]}}], "fields": ["kind"]}'
[systems.mariadb]
[systems.lucene]
"""


@pytest.fixture(scope="module", autouse=True)
def _servers() -> None:
    wanted = ("mariadb", "lucene", "sensei")
    if lacking := [m for e in wanted if (m := missing(ENGINES[e]))]:
        pytest.skip(f"not all servers are here: {lacking}")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """All methods of all systems, measured once."""
    folder = tmp_path_factory.mktemp("query")
    path = folder / "study.toml"
    path.write_text(TOP + KINDS + FETCH + TOTAL + SYSTEMS)
    (folder / "total.json").write_text(
        '{"filters": [{"range": {"field": "amount", "low": 50}}], "limit": 0}\n'
    )
    return measure(path, folder / "record", work=folder / "work")


def rows_of(record: Record, operation: str) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """By system and method the digests and numbers of rows of its captured answers."""
    found = {}
    for trial in record.trials:
        if trial.levels["operation"] == operation:
            replies = record.replies(trial.trial).to_pylist()
            facets = [r["facets"] for r in replies if r["phase"] == "captured" and not r["error"]]
            key = str(trial.levels["system"]), str(trial.levels["method"])
            found[key] = [(d, n) for each in facets for d, n in json.loads(each)["rows"]]
    return found


def test_algebra_sql_and_bql_return_the_same_rows(record: Record) -> None:
    assert [t.reason for t in record.trials if t.status != "ok"] == []
    algebra = ("mariadb", "lucene", "encoded")
    kinds, fetched, total = (rows_of(record, name) for name in ("kinds", "fetch", "total"))
    asked = [("mariadb", "sql"), *((system, "query") for system in algebra)]
    # A system that takes no queries with its levers is not asked them.
    assert {*kinds} == {*asked, ("plain", "bql")}
    assert {*fetched} == {*asked} - {("mariadb", "query")}
    assert {*total} == {("mariadb", "sql"), ("mariadb", "query"), ("lucene", "query")}
    for found, counts in ((kinds, [5]), (fetched, [15, 15]), (total, [1])):
        assert [n for _, n in found["mariadb", "sql"]] == counts
        assert {tuple(each) for each in found.values()} == {tuple(found["mariadb", "sql"])}


def test_methods_of_different_languages_are_compared(record: Record) -> None:
    judged = judge(record)
    assert [d for each in judged.operations for d in each.differing] == []
    names = ("operation", "system", "method")
    labels = {t.treatment: tuple(t.levels[n] for n in names) for t in judged.treatments}
    pairs = {frozenset((labels[c.a], labels[c.b])) for c in judged.comparisons}
    # MariaDB has a method called query too, but of another operation.
    assert frozenset((("fetch", "mariadb", "sql"), ("fetch", "lucene", "query"))) in pairs
    assert {c.verdict for c in judged.comparisons}.isdisjoint({"not comparable"})


def test_a_wrong_row_beside_the_algebra_ends_the_run_before_anything_is_timed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(TOP + WRONG)
    with pytest.raises(StudyError) as found:
        measure(path, tmp_path / "record", work=tmp_path / "work")
    assert not list((tmp_path / "record").glob("trials/*"))
    (complaint,) = map(str, found.value.complaints)
    assert "few, method sql" in complaint
    assert "5 by query of mariadb, 6 by sql of mariadb" in complaint
    assert "only sql of mariadb returns “999\twrong”" in complaint


def test_wire_shows_a_query_and_the_rows_that_come_back(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(TOP + WRONG)
    found = tap_operation(read_study(path), "query", 1, "lucene")
    assert len(found.lines) == 5
    assert b"amount" in found.sent[0][1]
    assert found.error == ""
