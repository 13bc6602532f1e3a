"""The roles of a study: their keys, what varies, what is left out, every mistake in its place.

Longer than most files, because each mistake has its table beside it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pages import tables, text_of
from searchbench.cli import app
from searchbench.corpora.corpus import Schema
from searchbench.engines import ENGINES, defaults
from searchbench.engines.write import TakesWrites
from searchbench.errors import StudyError
from searchbench.study import Study, operations
from searchbench.study.plan import Plan
from searchbench.study.planner import make_plan
from searchbench.study.quick import read_quick
from searchbench.study.read import parse_study
from searchbench.study.roles import look

HEAD = """\
question = "?"
[corpus]
family = "generated"
documents = 1000
[queries]
distinct = 5
[load]
clients = 1
warmup_s = 1
seconds = 5
"""
# Attached only, or no search system.
NOT_STARTED = ("droonga", "manticore", "null")
WRITER = '[roles.writer]\ndoes = "write"\ndocuments_per_s = 10\n'


def read(rest: str, head: str = HEAD) -> Study:
    return parse_study(head + rest, "study.toml", Path())


def wrong(rest: str, head: str = HEAD) -> list[str]:
    with pytest.raises(StudyError) as found:
        read(rest, head)
    return [str(complaint).removeprefix("study.toml:") for complaint in found.value.complaints]


def plan_of(rest: str) -> Plan:
    return make_plan(read(rest))


def writers(plan: Plan) -> list[dict[str, Any]]:
    return [t.roles["writer"] for t in plan.treatments]


def test_a_writer_inserts_a_tenth_of_the_corpus_unless_it_says_otherwise() -> None:
    (table,) = writers(plan_of("[systems.groonga]\n" + WRITER))
    assert (table["insert"], table["update"], table["delete"]) == (1.0, 0.0, 0.0)
    assert table["share"] == 0.1
    (table,) = writers(plan_of("[systems.groonga]\n" + WRITER + "update = 3\n"))
    assert (table["insert"], table["update"], table["share"]) == (0.0, 3.0, None)


def test_a_rate_is_a_factor_like_any_other_and_nought_is_a_level() -> None:
    varied = '[factors]\n"roles.writer.documents_per_s" = [0, 10, 100]\n'
    plan = plan_of('[systems.groonga]\n[roles.writer]\ndoes = "write"\n' + varied)
    assert [t.label for t in plan.treatments] == [f"documents_per_s={n}" for n in (0, 10, 100)]
    assert [table["documents_per_s"] for table in writers(plan)] == [0, 10, 100]
    assert "roles" not in plan_of("[systems.groonga]\n").treatments[0].settings


def test_a_job_that_one_system_has_is_left_out_of_the_others() -> None:
    job = '[roles.merge]\ndoes = "job"\njob = "merge"\nafter_s = 1\n'
    varied = '[factors]\n"roles.merge.idle" = [true, false]\n'
    plan = plan_of("[systems.lucene]\n[systems.groonga]\n" + job + varied)
    assert [t.label for t in plan.treatments] == [
        "lucene idle=true", "lucene idle=false", "groonga idle=true",
    ]  # fmt: skip
    (left_out,) = plan.excluded
    assert left_out.reason == ('groonga has no job "merge" that can be done while it is asked')


def test_what_cannot_publish_while_it_is_written_to_has_no_publisher() -> None:
    publisher = '[roles.publisher]\ndoes = "publish"\nevery_s = 1\n'
    plan = plan_of("[systems.sensei]\n[systems.groonga]\n" + WRITER + publisher)
    assert [t.system for t in plan.treatments] == ["groonga"]
    assert plan.excluded[0].reason.startswith("sensei loses documents that come in while its index")
    assert len(plan_of("[systems.sensei]\n" + WRITER).treatments) == 1
    assert len(plan_of("[systems.sensei]\n" + publisher).treatments) == 1


def test_levers_without_which_a_document_is_not_found_leave_the_crossing_out() -> None:
    varied = '[factors]\n"systems.tantivy.keys" = [false, true]\n'
    plan = plan_of("[systems.tantivy]\n" + WRITER + "delete = 1\n" + varied)
    assert [t.parameters["keys"] for t in plan.treatments] == [True]
    assert "say keys = true" in plan.excluded[0].reason
    assert len(plan_of("[systems.tantivy]\n" + WRITER).treatments) == 1
    with pytest.raises(StudyError) as found:
        plan_of("[systems.sphinx]\n" + WRITER)
    assert 'say index = "realtime"' in str(found.value)
    changing = WRITER + "update = 1\ndelete = 1\n"
    plan = plan_of('[systems.sphinx]\nindex = "main+delta"\n' + changing
                   + '[factors]\n"systems.sphinx.parts" = [1, 2]\n')  # fmt: skip
    assert [t.parameters["parts"] for t in plan.treatments] == [1]
    assert "there is one main and one delta" in plan.excluded[0].reason


def test_every_mistake_is_named_in_its_place() -> None:
    groonga = "[systems.groonga]\n"
    assert wrong(groonga + "[roles]\n") == ["12:2: [roles] names no role (as in [roles.writer])"]
    assert wrong(groonga + '[roles.readers]\ndoes = "write"\nclients = 1\n') == [
        '12:8: a role cannot be called "readers" ([queries] and [load] are the readers)'
    ]
    assert wrong(groonga + "[roles.w]\nbatch = 2\n") == [
        '12:8: a role needs `does`: "read", "write", "publish", "job" or "fault"'
    ]
    (pace,) = wrong(groonga + '[roles.w]\ndoes = "write"\n')
    assert pace == (
        "12:8: a writer needs a pace: `documents_per_s`, `every_s`, `stages`, `times`, or "
        "`clients`, which send as fast as the system accepts"
    )
    assert wrong(groonga + WRITER + "clients = 2\n") == [
        "15:11: `documents_per_s` and `clients` are two paces of one writer; keep one"
    ]
    assert wrong(groonga + WRITER + "insert = 0\n") == [
        "15:10: `insert`, `update` and `delete` are all 0: nothing is written"
    ]
    assert wrong(groonga + WRITER + 'job = "merge"\n') == [
        '15:7: `job` is not for a role with does = "write"'
    ]
    assert wrong(groonga + WRITER + WRITER.replace("writer", "other")) == [
        "15:8: writer writes already; a trial has one writer (several connections: `clients` or "
        "`connections`)"
    ]
    assert wrong(groonga + WRITER + '[factors]\n"roles.writer.does" = ["write"]\n') == [
        "16:1: `roles.writer.does`: `does` of a role cannot be a factor (did you mean `documents`?)"
    ]
    (unknown,) = wrong(groonga + '[roles.m]\ndoes = "job"\njob = "merge"\nafter_s = 1\n')
    assert unknown == '12:8: groonga has no job "merge" that can be done while it is asked'


@pytest.mark.parametrize("guessed", ["updates_per_s", "writes_per_s", "rate", "qps"])
def test_the_rate_of_a_role_is_found_by_the_names_that_others_give_it(guessed: str) -> None:
    writer = '[systems.groonga]\n[roles.writer]\ndoes = "write"\n'
    (unknown,) = (w for w in wrong(f"{writer}{guessed} = 10\n") if "no key" in w)
    assert unknown.startswith(f"14:1: [roles.writer] has no key `{guessed}` (here it is called "
                              "`documents_per_s`: write: documents a second")  # fmt: skip
    assert "`update`" in unknown, "where the kind of a change is said"
    (level,) = (w for w in wrong(f'{writer}[factors]\n"roles.writer.{guessed}" = [0, 10]\n')
                if "factor" in w)  # fmt: skip
    assert "here it is called `documents_per_s`" in level


def test_the_rate_of_a_reader_is_another_key_than_that_of_a_writer() -> None:
    reader = '[systems.groonga]\n[roles.r]\ndoes = "read"\n{} = 10\n'
    reader += "[roles.r.queries]\ndistinct = 3\n"
    assert "(here it is called `rate_per_s`: read: " in " ".join(wrong(reader.format("rate")))
    (said,) = (w for w in wrong(reader.format("documents_per_s")) if "is not for" in w)
    assert said.endswith('does = "read"; its rate is `rate_per_s`')
    writer = '[systems.groonga]\n[roles.w]\ndoes = "write"\nrate_per_s = 3\n'
    (said,) = (w for w in wrong(writer) if "is not for" in w)
    assert said.endswith('does = "write"; its rate is `documents_per_s`')
    load = HEAD.replace("clients = 1", "qps = 3")
    assert "[load] has no key `qps` (here it is called `rate_per_s`: " in " ".join(wrong("", load))


def test_an_engine_that_has_not_declared_it_is_refused_with_those_that_have() -> None:
    (found,) = wrong("[systems.orientdb]\n" + WRITER)
    assert found.startswith(
        "12:8: orientdb has not declared how documents are changed while it is asked; engines that "
        "have: tantivy, sqlite, lucene"
    )
    (found,) = wrong('[systems.groonga]\nattach = "127.0.0.1:10041"\n' + WRITER)
    assert found == (
        "13:8: groonga runs already, and roles change its documents or its processes: they are "
        "only for systems that searchbench starts"
    )


def test_what_does_not_go_with_roles_is_named() -> None:
    groonga = "[systems.groonga]\n" + WRITER
    steady = HEAD.replace("warmup_s = 1\n", "")
    assert wrong(groonga, steady) == [
        "7:2: with roles the window must be known beforehand: give `warmup_s`"
    ]
    swept = HEAD.replace("clients = 1", "clients = [1, 2]")
    (found,) = wrong(groonga, swept)
    assert found.startswith("12:2: roles are for trials and for capacity searches, and this is")
    counted = HEAD.replace("seconds = 5", "requests = 50").replace("warmup_s", "warmup_requests")
    assert any("`warmup_s`" in each for each in wrong(groonga, counted))


SEARCH = HEAD.replace("clients = 1\n", 'find_capacity = true\nslo = "p99 < 50ms"\n').replace(
    "seconds = 5\n", ""
)


def test_a_search_for_capacity_may_have_roles_and_then_takes_a_warm_up() -> None:
    study = read("[systems.groonga]\n" + WRITER, SEARCH)
    assert study.measure == "capacity"
    (treatment,) = make_plan(study).treatments
    assert treatment.roles["writer"]["documents_per_s"] == 10
    assert treatment.load["warmup_s"] == 1
    (missing,) = wrong("[systems.groonga]\n" + WRITER, SEARCH.replace("warmup_s = 1\n", ""))
    assert missing.startswith("7:2: with roles each trial of a search begins with a system that")


def test_what_cannot_go_beside_a_search_is_named_with_what_can() -> None:
    lucene = "[systems.lucene]\n"
    fault = '[roles.loss]\ndoes = "fault"\nfault = "kill"\nafter_s = 1\n'
    lasts = "12:8: in a capacity search a fault lasts for all of each trial, and is of a"
    assert wrong(lucene + fault, SEARCH)[0].startswith(lasts)
    (found,) = wrong(lucene + fault.replace("after_s = 1\n", ""), SEARCH)
    assert found.startswith(lasts)
    node = fault.replace("after_s = 1\n", 'of = "n2"\n')
    cluster = "[systems.opensearch]\nnodes = 2\nreplicas = 1\n"
    assert read(cluster + node, SEARCH).measure == "capacity"
    assert wrong(cluster + node + "for_s = 2\n", SEARCH)[0].startswith("14:8: in a capacity search")
    assert wrong(cluster + node)[0].startswith("14:8: a fault needs `after_s`, above 0")
    job = '[roles.merge]\ndoes = "job"\njob = "merge"\n'
    (found,) = wrong(lucene + job + "after_s = 1\n", SEARCH)
    assert found.startswith("12:8: the trials of a capacity search are of many lengths")
    assert found.endswith("give `every_s`")
    assert read(lucene + job + "every_s = 5\n", SEARCH).measure == "capacity"
    assert read(lucene + job + "every_s = 5\n").measure == "trials"
    (found,) = wrong(lucene + job + "every_s = 500\n", SEARCH)
    assert found.startswith("15:11: each trial of a capacity search is as long as `every_s`")
    (found,) = wrong(lucene + job)
    assert found.endswith("or `every_s`: how often it does")


def test_documents_must_last_for_the_longest_trial_of_a_search() -> None:
    def told(writer: str, head: str) -> list[str]:
        study = parse_study(head + "[systems.groonga]\n" + writer, "study.toml", Path())
        try:
            look(study, make_plan(study))
        except StudyError as found:
            return [str(complaint) for complaint in found.complaints]
        return []

    (found,) = told(WRITER, SEARCH)  # 10 a second for 138 s, of 100 documents
    assert "in the longest trial of the search (138 s) the writer has 1,380 changes" in found
    assert found.endswith("or less `effort`")
    little = SEARCH.replace("warmup_s = 1\n", "warmup_s = 1\neffort = 0.05\n")
    assert len(told(WRITER, little)) == 1  # 20 s and 3 s
    assert told(WRITER + "share = 0.3\n", little) == []


EVENTS = {
    "publish": {"tantivy", "sqlite", "lucene", "lucene10", "opensearch", "elasticsearch", "sensei"},
    "merge": {"lucene", "lucene10", "opensearch", "elasticsearch"},
    "backup": {"mariadb", "postgresql", "orientdb"},
}
IN_WORDS = {
    "Lucene 9": "lucene", "10": "lucene10", "SenseiDB": "sensei", "SQLite": "sqlite",
    "MariaDB": "mariadb", "PostgreSQL": "postgresql", "OrientDB": "orientdb",
    "OpenSearch": "opensearch", "Elasticsearch": "elasticsearch", "tantivy": "tantivy",
    "Groonga": "groonga", "Sphinx": "sphinx",
}  # fmt: skip


def test_the_page_names_which_engines_have_which_event() -> None:
    """By what each engine declares; publishing what is found at once is no event."""
    schema = Schema(())
    able = {name: e for name, e in ENGINES.items() if name not in NOT_STARTED}
    writes = {n: e for n, e in able.items() if isinstance(e, TakesWrites)}
    has = {
        "documents come in": set(writes) - {"sphinx-api"},
        "publish": {n for n, e in writes.items() if e.publish(schema, defaults(able[n])).requests},
        "merge": {n for n, e in able.items() if "merge" in {job.name for job in e.jobs}},
        "backup": {n for n, e in able.items() if {"dump", "backup"} & {j.name for j in e.jobs}},
        "a node is lost": {"opensearch", "elasticsearch", "sphinx"},
    }
    assert {event: has[event] for event in EVENTS} == EVENTS
    table = next(t for t in tables(text_of("docs/ROLES.md")) if t[0][0] == "documents come in")
    told = {row[0]: row[2] for row in table}
    for event, names in has.items():
        named = {IN_WORDS[w] for w in re.findall("|".join(IN_WORDS), told[event])}
        assert named == names, event


@pytest.mark.parametrize("cold", ["trial", "each query"])
def test_a_cold_system_has_no_roles(cold: str) -> None:
    place = f'[places.cold]\ncold = "{cold}"\n'
    with pytest.raises(StudyError) as found:
        plan_of("[systems.groonga]\n" + place + WRITER)
    assert "cold" in str(found.value)


def lacking(text: str, base: Path = Path()) -> list[str]:
    """What a study is told of its writer's documents once it is planned."""
    study = parse_study(text, "study.toml", base)
    try:
        look(study, make_plan(study))
    except StudyError as found:
        return [str(complaint).removeprefix("study.toml:") for complaint in found.complaints]
    return []


GENERATED = 'family = "generated"\ndocuments = 1000\n'


def of(corpus: str, writer: str = WRITER) -> str:
    return HEAD.replace(GENERATED, corpus) + "[systems.groonga]\n" + writer


def test_a_clock_that_needs_more_than_was_kept_back_is_named_before_anything_is_read() -> None:
    assert lacking(of(GENERATED)) == []  # 60 of 100
    fast = WRITER.replace("10", "20")
    assert lacking(of(GENERATED, fast)) == [
        "14:19: the writer has 120 changes to make by its clock, and of the documents that it may "
        "insert 100 are kept back: keep back more (`documents`, `share`), take a larger corpus, or "
        "write less"
    ]
    assert lacking(of(GENERATED, fast + "share = 0.12\n")) == []
    assert lacking(of(GENERATED, fast + "idle = true\n")) == []
    assert len(lacking(of(GENERATED + "scale = 0.5\n"))) == 1
    assert lacking(of(GENERATED + "scale = 2\n", fast)) == []
    assert len(lacking(of('family = "table"\nrows = 500\n'))) == 1
    assert lacking(of('family = "cars"\n', WRITER.replace("10", "200"))) == []
    assert len(lacking(of('family = "cars"\n', WRITER.replace("10", "300")))) == 1
    assert lacking(of('family = "debian"\n', WRITER.replace("10", "1000000"))) == []
    (all_of_them,) = lacking(of(GENERATED, WRITER + "documents = 1000\n"))
    too_many = "15:13: 1,000 documents are to be kept back, and there are only 1,000"
    assert all_of_them.startswith(too_many)
    changed = WRITER.replace("10", "200") + "update = 1\n"
    (few,) = lacking(of(GENERATED, changed))
    assert "the documents that it may update or delete 1,000 are there" in few


def test_the_level_that_asks_for_too_much_is_named() -> None:
    writer = '[roles.w]\ndoes = "write"\n[factors]\n"roles.w.documents_per_s" = [0, 10, 100]\n'
    (found,) = lacking(of(GENERATED, writer))
    assert found.startswith("15:37: the writer has 600 changes to make by its clock")


def test_files_are_counted_where_that_is_cheap(tmp_path: Path) -> None:
    rows = "".join(f'{{"id": "{n}", "t": "x"}}\n' for n in range(500))
    (tmp_path / "rows.jsonl").write_text(rows)
    corpus = 'files = "{}"\nfields = {{t = "text"}}\n'
    assert len(lacking(of(corpus.format("rows.jsonl")), tmp_path)) == 1
    fields = {"id": [str(n) for n in range(500)], "t": ["x"] * 500}
    pq.write_table(pa.table(fields), tmp_path / "rows.parquet")
    assert len(lacking(of(corpus.format("rows.parquet")), tmp_path)) == 1
    long = WRITER + "share = 0.2\n"
    assert lacking(of(corpus.format("rows.parquet"), long), tmp_path) == []
    (tmp_path / "long.jsonl").write_text(rows * 100)
    assert lacking(of(corpus.format("long.jsonl"), WRITER.replace("10", "99999")), tmp_path) == []


def test_check_says_it(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(of(GENERATED, WRITER.replace("10", "20")))
    with pytest.raises(StudyError, match="120 changes to make by its clock"):
        app(["check", str(path)])


def test_a_first_look_keeps_back_its_share_and_enough(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    large = HEAD.replace("documents = 1000", "documents = 100_000") + "[systems.groonga]\n"
    text = large + WRITER + "documents = 2_000\n"
    path.write_text(text)
    quick = read_quick(path)
    assert quick.corpus["decimate"] == 10
    assert quick.roles["writer"]["documents"] == 200
    path.write_text(text.replace("_per_s = 10", "_per_s = 300"))
    quick = read_quick(path)
    assert quick.corpus == {"family": "generated", "documents": 100_000}
    assert quick.roles["writer"]["documents"] == 2_000


ROWS = """
[operations.fetch]
key = "id"
rows = 450
[operations.fetch.methods.in]
sql = 'SELECT * FROM data WHERE id IN ([each ",": {id}])'
"""


def test_roles_go_beside_operations() -> None:
    head = HEAD.replace(GENERATED, 'family = "table"\ntable = "data"\nrows = 500\n')
    head = head.replace("[queries]\ndistinct = 5\n", "")
    nobody = "roles go on beside readers: give [queries] or [operations.NAME]"
    assert any(each.endswith(nobody) for each in wrong("[systems.mariadb]\n" + WRITER, head))
    varied = '[factors]\n"roles.writer.documents_per_s" = [0, 5]\n'
    writer = '[systems.mariadb]\n[roles.writer]\ndoes = "write"\n'
    study = read(ROWS + writer + varied, head)
    plan = make_plan(study)
    rates = [(t.operation["method"], t.roles["writer"]["documents_per_s"]) for t in plan.treatments]
    assert rates == [("in", 0), ("in", 5)]
    operations.look(study, plan)
    more = read(ROWS.replace("450", "451") + writer + varied, head)
    few = r"450 that are not kept back \(50 are\): ask for fewer"
    with pytest.raises(StudyError, match=few):
        operations.look(more, make_plan(more))
    counted = head.replace("seconds = 5", "requests = 50").replace("warmup_s = 1\n", "")
    assert any("`warmup_s`" in each for each in wrong(ROWS + writer + varied, counted))


def test_a_first_look_does_what_is_done_at_a_time_within_its_window(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    job = '[roles.merge]\ndoes = "job"\njob = "merge"\nafter_s = 20\n'
    path.write_text(HEAD.replace("seconds = 5", "seconds = 60") + "[systems.lucene]\n" + job)
    quick = read_quick(path)
    assert quick.roles["merge"]["after_s"] < quick.load["seconds"]


def not_in_time(rest: str) -> str:
    """What is said of a writer with this pace on Groonga, once the whole study is known."""
    study = read('[systems.groonga]\n[roles.w]\ndoes = "write"\nshare = 0.5\n' + rest)
    with pytest.raises(StudyError) as found:
        look(study, make_plan(study))
    (complaint,) = found.value.complaints
    return str(complaint).removeprefix("study.toml:")


def test_what_is_wrong_with_the_rates_of_a_writer_is_said_in_its_place() -> None:
    own = '[systems.groonga]\n[roles.w]\ndoes = "write"\n'
    assert wrong(own + "stages = [[6]]\n") == [
        "14:10: stage 1 must be [SECONDS, RATE] or [SECONDS, FROM, TO], as in [60, 100]"
    ]
    assert wrong(own + "stages = [[6, 0]]\n") == [
        "14:10: all rates of `stages` are 0; for a writer that does nothing: idle = true"
    ]
    assert wrong(own + "stages = [[6, 5]]\ndocuments_per_s = 1\n") == [
        "14:10: `documents_per_s` and `stages` are two paces of one writer; keep one"
    ]
    assert wrong(own + 'clients = 1\narrivals = "poisson"\n') == [
        "15:12: `arrivals` is for a writer with `documents_per_s` or `stages`"
    ]
    assert wrong(own + "clients = 1\nspeed = 2\n") == [
        "15:9: `speed` is that of a file of `times`, and there is none"
    ]
    (missing,) = wrong(own + 'times = "nobody-has-this.txt"\n')
    assert missing.startswith('14:9: there is no file "nobody-has-this.txt" in ')


def test_the_stages_of_a_writer_are_as_long_as_the_drive() -> None:
    assert not_in_time("stages = [[4, 5]]\n") == (
        "15:10: the stages last 4 s, and the drive 6 s (its window begins at 1 s): add a stage for "
        "the rest, as in [2, 0], which writes nothing"
    )
    assert not_in_time("stages = [[4, 5], [10, 8]]\n") == (
        "15:10: the stages last 14 s, and the drive 6 s (its window begins at 1 s): shorten them, "
        "or make the window longer"
    )
    assert "the writer has 1,200 changes to make" in not_in_time("stages = [[6, 200]]\n")
    assert "may have up to 1,340 changes" in not_in_time(
        'documents_per_s = 200\narrivals = "poisson"\n'
    )
    writer = WRITER.replace("documents_per_s = 10", "stages = [[6, 9]]")
    whole = read("[systems.groonga]\n" + writer)
    look(whole, make_plan(whole))


def test_the_times_of_a_writer_have_to_reach_the_window(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("10\n10.5\n")
    text = '[systems.groonga]\n[roles.w]\ndoes = "write"\ntimes = "t.txt"\n'
    study = parse_study(HEAD + text, "study.toml", tmp_path)
    with pytest.raises(StudyError) as found:
        look(study, make_plan(study))
    assert str(found.value.complaints[0]) == (
        "study.toml:14:9: none of the times is in the window, 1 s to 6 s of the drive, and the "
        "last is at 0.5 s: take a longer file, or another `speed`"
    )
    (tmp_path / "t.txt").write_text("10\n10.5\n14\n")
    look(study, make_plan(study))


def test_a_search_for_capacity_has_no_writer_whose_rate_changes() -> None:
    head = HEAD.replace("clients = 1", 'find_capacity = true\nslo = "p99 < 50ms"').replace(
        "seconds = 5\n", ""
    )
    own = '[systems.groonga]\n[roles.w]\ndoes = "write"\n'
    (said,) = wrong(own + "stages = [[6, 9]]\n", head)
    assert "give `documents_per_s` in place of `stages`" in said
    assert read(own + 'documents_per_s = 9\narrivals = "poisson"\n', head).roles


def test_a_first_look_keeps_the_drive_of_a_writer_with_stages(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    writer = '[systems.groonga]\n[roles.w]\ndoes = "write"\nstages = [[51, 1]]\n'
    path.write_text(HEAD.replace("seconds = 5", "seconds = 50") + writer)
    quick = read_quick(path)
    assert quick.load["seconds"] == 50
    look(quick, make_plan(quick))
