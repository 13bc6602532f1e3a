"""The jobs of a study: a list or a table for each, their levers, and every mistake in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchbench.errors import StudyError
from searchbench.study import Study
from searchbench.study.plan import Plan
from searchbench.study.planner import make_plan
from searchbench.study.quick import read_quick
from searchbench.study.read import parse_study

TRIPLES = '[corpus]\nfamily = "triples"\ntriples = 100\n'
ORIENTDB = 'question = "?"\n{}\n' + TRIPLES + "[systems.orientdb]\n{}\n"


def read(top: str, rest: str = "") -> Study:
    return parse_study(ORIENTDB.format(top, rest), "study.toml", Path())


def wrong(top: str, rest: str = "") -> list[str]:
    with pytest.raises(StudyError) as found:
        read(top, rest)
    return [str(complaint).removeprefix("study.toml:") for complaint in found.value.complaints]


def test_a_list_is_short_for_a_table_for_each() -> None:
    short = read('jobs = ["import", "backup"]')
    long = read("", "[jobs.import]\n[jobs.backup]\n")
    assert list(short.jobs) == list(long.jobs) == ["import", "backup"]
    assert short.ingest == "per-trial"
    assert not short.driven
    levels = make_plan(short).treatments[0].jobs
    assert levels == {"import": {"triples": 1}, "backup": {"compression": 9, "buffer_kb": 1024}}


def plan_of(rest: str) -> Plan:
    return make_plan(read("", rest))


def test_a_lever_of_a_job_is_a_factor_like_any_other() -> None:
    plan = plan_of('[jobs.import]\n[jobs.backup]\n[factors]\n"jobs.backup.compression" = [0, 9]\n')
    assert [t.jobs["backup"]["compression"] for t in plan.treatments] == [0, 9]
    assert [t.label for t in plan.treatments] == ["compression=0", "compression=9"]
    assert "load" not in plan.treatments[0].settings
    assert "queries" not in plan.treatments[0].settings
    assert (plan.judging.jobs, plan.judging.driven) == (("import", "backup"), False)
    assert plan.judging.metric == "import_s"
    decided = plan_of('[jobs.import]\n[jobs.backup]\n[verdict]\nmetric = "backup_s"\n')
    assert decided.judging.metric == "backup_s"


def test_a_study_of_jobs_may_have_queries_and_a_load_too() -> None:
    asked = plan_of("[jobs.opening]\n[queries]\ndistinct = 5\n")
    assert "queries" in asked.treatments[0].settings
    assert not asked.judging.driven
    driven = plan_of("[jobs.opening]\n[queries]\ndistinct = 5\n[load]\nclients = 1\n")
    assert driven.judging.driven
    assert driven.treatments[0].load["clients"] == 1


def test_a_first_look_at_jobs_drives_nothing_either(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(ORIENTDB.format('jobs = ["import"]', ""))
    study = read_quick(path)
    assert not study.driven
    assert not study.load
    assert not study.queries


@pytest.mark.parametrize(
    ("top", "rest", "sentence"),
    [
        ('jobs = ["bakcup"]', "", 'orientdb has no job "bakcup"'),
        ("jobs = []", "", "empty list"),
        ('jobs = ["import", "import"]', "", "is named twice"),
        ('jobs = ["backup", "import"]', "", "so it must come first"),
        ('jobs = ["import", "restore"]', "", 'comes after "backup"'),
        ("", "[jobs.backup]\ncompression = 10\n", "from 0 to 9"),
        ("", "[jobs.backup]\nlevel = 1\n", "has no key `level`"),
        ("", '[jobs.backup]\n[factors]\n"jobs.backup.level" = [1, 2]\n', "has no lever `level`"),
        ("", '[jobs.backup]\n[factors]\n"jobs.index.level" = [1, 2]\n', "there is no job `index`"),
        ("", '[jobs.backup]\n[ingest]\nindex = "once"\n', "an index of its own"),
        ("", "[jobs.backup]\n[load]\nclients = [1, 2]\n", "jobs are for trials"),
        ("", '[jobs.backup]\n[verdict]\nmetric = "throughput"\n', '"backup_s"'),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(top: str, rest: str, sentence: str) -> None:
    found = wrong(top, rest)
    assert len(found) == 1, found
    assert sentence in found[0]
    text = ORIENTDB.format(top, rest).splitlines()
    line = int(found[0].split(":")[0])
    assert text[line - 1].strip(), "it stands at a line that has something"


def test_what_the_corpus_cannot_be_used_for_is_left_out_with_the_reason() -> None:
    text = ORIENTDB.format('jobs = ["import"]', "")
    text = text.replace('"triples"\ntriples', '"generated"\ndocuments')
    with pytest.raises(StudyError, match=r'needs a \[corpus\] with family = "triples"'):
        make_plan(parse_study(text, "study.toml", Path()))
