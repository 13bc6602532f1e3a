"""Operations asked over HTTP and in BQL, beside SQL: real servers, the same rows, and failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement
from searchbench.engines import ENGINES
from searchbench.errors import StudyError
from searchbench.lab.conduct.openings import Openings
from searchbench.lab.conduct.studies import conducting
from searchbench.lab.conduct.tapping import tap_operation
from searchbench.lab.conduct.watch import Silence
from searchbench.lab.drive.operations import Operations
from searchbench.lab.get.install import missing
from searchbench.lab.wire.exchange import ask
from searchbench.measure.run import run as measure
from searchbench.record import Record
from searchbench.report.document.assemble import document
from searchbench.report.write import write_report
from searchbench.study import read_study
from searchbench.study.planner import make_plan

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
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
[systems.groonga]
[systems.sensei]
columns = "plain"
"""
COUNT = '''
[operations.kinds.methods.sql]
sql = "SELECT kind, COUNT(*) FROM data WHERE amount < 30 GROUP BY kind"
[operations.kinds.methods.bql]
rows_at = "facets.kind: value, count"
bql = "SELECT kind FROM data WHERE amount < 30 BROWSE BY kind(false, 1, 100, hits) LIMIT 0, 1"
[operations.kinds.methods.json]
systems = "sensei"
http = """
# @before
GET /searchbench/facts
###
# @rows facets.kind: value, count
{"selections": [{"range": {"amount": {"to": "30", "include_upper": false}}}], "size": 1,
 "facets": {"kind": {"max": 100, "minCount": 1, "expand": false, "order": "hits"}}}
###
# @ignored
GET /searchbench/facts
"""
[operations.kinds.methods.command]
systems = "groonga"
rows_at = "1.1.2-"
http = "GET /d/select?table=Docs&limit=0&filter=v_amount%3C30&drilldown=v_kind&drilldown_limit=-1"
'''
FETCH = '''
[operations.fetch]
key = "id"
rows = 20
draws = 2
[operations.fetch.methods.sql]
sql = 'SELECT id, kind, amount FROM data WHERE id IN ([each ",": {id}])'
[operations.fetch.methods.bql]
rows_at = "hits: _uid, kind, amount as number"
bql = """SELECT _uid, kind, amount FROM data
WHERE _uid IN ([each ", ": {id}]) LIMIT 0, {rows}"""
[operations.fetch.methods.short]
rows_at = "hits: _uid, kind, amount as number"
bql = """SELECT _uid, kind, amount FROM data
WHERE _uid IN ([each ", ": {id}]) LIMIT 0, 19"""
[operations.fetch.methods.breaks]
rows_at = "hits: _uid, kind, amount as number"
bql = """SELECT _uid, kind, amount FROM data
WHERE _uid IN ([each ", ": {id}]) LIMIT 0, [each "": 9]"""
'''


@pytest.fixture(scope="module", autouse=True)
def _servers() -> None:
    if lacking := [m for e in ("mariadb", "groonga", "sensei") if (m := missing(ENGINES[e]))]:
        pytest.skip(f"not all servers are here: {lacking}")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """All methods of all systems, measured once."""
    folder = tmp_path_factory.mktemp("http")
    path = folder / "study.toml"
    path.write_text(TOP + COUNT + FETCH + SYSTEMS)
    return measure(path, folder / "record", work=folder / "work")


@pytest.fixture(scope="module")
def judged(record: Record) -> Judgement:
    return judge(record)


def rows_of(record: Record, operation: str) -> dict[str, list[tuple[str, int]]]:
    """By method the digests and numbers of rows of its captured answers."""
    found = {}
    for trial in record.trials:
        if trial.levels["operation"] == operation:
            replies = record.replies(trial.trial).to_pylist()
            facets = [r["facets"] for r in replies if r["phase"] == "captured" and not r["error"]]
            found[str(trial.levels["method"])] = [
                (d, n) for each in facets for d, n in json.loads(each)["rows"]
            ]
    return found


def test_sql_json_bql_and_commands_return_the_same_rows(record: Record) -> None:
    assert [t.reason for t in record.trials if t.status != "ok"] == []
    counted = rows_of(record, "kinds")
    assert {*counted} == {"sql", "command", "bql", "json"}
    assert [n for _, n in counted["sql"]] == [5]
    assert {tuple(each) for each in counted.values()} == {tuple(counted["sql"])}
    fetched = rows_of(record, "fetch")
    assert [n for _, n in fetched["sql"]] == [20, 20]
    assert fetched["bql"] == fetched["sql"]
    assert fetched["short"] != fetched["sql"]


def test_set_up_over_http_is_sent_and_not_timed(record: Record) -> None:
    about = next(t.operation for t in record.trials if t.levels["method"] == "json")
    assert about is not None
    assert (about.statements, about.untimed, about.exchanges) == (2, 1, 2)


def test_methods_of_different_systems_are_compared_unless_their_rows_differ(
    judged: Judgement,
) -> None:
    labels = {t.treatment: t.label for t in judged.treatments}
    pairs = {(labels[c.a], labels[c.b]): c for c in judged.comparisons if c.metric == judged.metric}
    across = [c for (a, b), c in pairs.items() if "mariadb" in a and "method=json" in b]
    assert [c.queries_used for c in across] == [1]
    # What answers another operation is compared with nothing of this one.
    assert all(("operation=kinds" in a) == ("operation=kinds" in b) for a, b in pairs)
    fetch = next(o for o in judged.operations if o.name == "fetch")
    assert {d.b.partition(",")[0] for d in fetch.differing} == {"short"}
    short = [c for both, c in pairs.items() if "method=short" in both[0] + both[1]]
    assert {c.verdict for c in short} == {"not comparable"}


def test_a_method_that_breaks_behind_a_good_status_is_a_point_with_the_servers_words(
    judged: Judgement,
) -> None:
    fetch = next(o for o in judged.operations if o.name == "fetch")
    broken = next(m for m in fetch.methods if m.method == "breaks").points[0]
    assert broken.seconds is None
    assert "9999999999" in broken.failed
    result = next(t for t in judged.treatments if "breaks" in t.label)
    assert [t.status for t in result.trials] == ["valid"]


def test_the_page_has_a_row_for_each_operation_and_a_column_for_each_method(
    record: Record, judged: Judgement, tmp_path: Path
) -> None:
    sections = {s.id: s for s in document(record, judged).sections}
    table = next(b for b in sections["answer"].blocks if b.kind == "table")
    assert [c.name for c in table.columns] == [
        "Operation", "sql, mariadb", "command, groonga", "bql, sensei", "json, sensei", "Rows",
    ]  # fmt: skip
    assert [[row[0].text, row[-1].text] for row in table.rows] == [["kinds", "the same"]]
    # One block resolves nothing, and nothing else is said.
    assert {cell.below for cell in table.rows[0][2:5]} == {"not resolved"}
    assert "The first row that differs" in repr(sections["operations"])
    assert write_report(record, judged, tmp_path / "page").html.is_file()


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("rows_at = \"hits: kind\"\nbql = '''\nSELECT kind FROM data;\nSELEC kind FROM data'''",
         "20:1: kinds, method bad, line 2: sensei refuses it: BQLParsingError: [line:1, col:0]"),
        ('rows_at = "facets.kinds: value"\nbql = "SELECT kind FROM data BROWSE BY kind"',
         "method bad, line 1: sensei answers, and 'facets.kinds' is not in the reply: 'facets' of "
         "the reply has kind"),
        ('rows_at = "hits: kind"\nhttp = "GET /nothing/here"',
         "method bad, line 1: sensei refuses it: HTTP 404"),
    ],
)  # fmt: skip
def test_what_is_not_understood_ends_the_run_before_anything_is_timed(
    tmp_path: Path, method: str, said: str
) -> None:
    path = tmp_path / "study.toml"
    bad = f"[operations.kinds.methods.bad]\n{method}\n"
    path.write_text(TOP + bad + '[systems.sensei]\ncolumns = "plain"\n')
    with pytest.raises(StudyError) as found:
        measure(path, tmp_path / "record", work=tmp_path / "work")
    assert not list((tmp_path / "record").glob("trials/*"))
    (complaint,) = found.value.complaints
    assert said in str(complaint)


def test_an_operation_over_http_is_shown_as_it_is_on_the_wire(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(TOP + COUNT + SYSTEMS)
    found = tap_operation(read_study(path), "json", 1)
    assert [when for when, _ in found.sent] == ["before", "timed", "timed"]
    assert found.sent[1][1].startswith(b"POST /sensei HTTP/1.1")
    assert (len(found.lines), found.error) == (5, "")


def test_the_ten_questions_about_cars_have_one_answer_each_and_the_published_counts() -> None:
    study = read_study(ROOT / "studies" / "cars.toml")
    study.corpus["scale"] = 1  # type: ignore[index]
    plan = make_plan(study)
    openings = Openings(study.base, study.seed, Silence())
    answers: dict[str, dict[str, tuple[str, list[str]]]] = {}
    with conducting(openings, plan, None, lambda _: True) as conductor:
        for system in ("mariadb", "sensei"):
            own = [t for t in plan.treatments if t.system == system and t.load["clients"] == 1]
            with conductor.made_ready(own[0]) as session:
                running = session.there()
                for each in own:
                    workload = openings.opened(each, plan.seed).workload
                    assert isinstance(workload, Operations)
                    compiled = workload.compiled(running.engine, session.levers)
                    (reply,) = ask(running.endpoint, compiled.requests[:1])
                    hits = workload.reader(running.engine, session.levers).decode(reply)
                    assert hits.error is None, each.label
                    digest = hits.facets["rows"][0][0]
                    by_method = answers.setdefault(each.operation["name"], {})
                    by_method[each.operation["method"]] = digest, [h.id for h in hits.hits]
    assert len(answers) == 11
    for name, by_method in answers.items():
        assert len(by_method) == (5 if "-by-" in name else 3), name
        assert len({digest for digest, _ in by_method.values()}) == 1, (name, by_method)
    # What was published is 200 times this.
    assert answers["1-range"]["bql"][1] == ["9016"]
    assert {"blue\t675", "gold\t657", "white\t1326"} <= {*answers["6-by-color"]["json"][1]}
    assert {"exotic\t1113", "van\t98"} <= {*answers["7-by-category"]["bql-facet"][1]}
    assert {"gold\t318", "black\t928"} <= {*answers["10-word-by-color"]["sql"][1]}


def of_the_page(language: str) -> str:
    """The example of that language on the page, from its section that is not SQL."""
    page = (ROOT / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")
    section = page.partition("## 5. Methods that are not SQL")[2]
    return section.partition(f"```{language}\n")[2].partition("```")[0]


def test_the_study_of_the_page_counts_the_same_colors_in_three_languages(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    text = of_the_page("toml")
    path.write_text(f"replicates = 1\n{text}[control]\naa = false\n")
    record = measure(path, tmp_path / "record", work=tmp_path / "work")
    (operation,) = judge(record).operations
    assert {(m.method, m.system) for m in operation.methods} == {
        ("sql", "mariadb"), ("json", "sensei"), ("bql", "sensei"),
    }  # fmt: skip
    assert all(m.points[0].seconds is not None for m in operation.methods)
    assert (operation.differing, operation.compared) == ((), 3)


def test_the_requests_of_the_page_are_answered_by_opensearch(tmp_path: Path) -> None:
    if lacking := missing(ENGINES["opensearch"]):
        pytest.skip(f"no OpenSearch here: {lacking}")
    (tmp_path / "ids.http").write_text(of_the_page("http"))
    path = tmp_path / "study.toml"
    fetch = '[operations.fetch]\nkey = "id"\nrows = 20\ndraws = 1\nanswer = "order"\n'
    method = '[operations.fetch.methods.ids]\nfile = "ids.http"\n'
    path.write_text(TOP + fetch + method + "[systems.opensearch]\n")
    found = tap_operation(read_study(path), "ids", 3)
    assert found.error == ""
    assert [when for when, _ in found.sent] == ["before", "timed"]
    wanted = found.sent[1][1].rpartition(b"[")[2].partition(b"]")[0].decode()
    assert {*found.lines} == {*wanted.split(", ")}
    assert len(found.lines) == 3
