"""Roles of a study that read: their keys, their usual values, every mistake in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchbench.errors import StudyError
from searchbench.study import inputs
from searchbench.study.planner import make_plan
from searchbench.study.quick import read_quick
from searchbench.study.read import parse_study
from searchbench.workload.roles import is_idle, only_reads
from test_study_roles import HEAD, WRITER, plan_of, read, wrong

REPORTS = '[roles.reports]\ndoes = "read"\n'
ASKED = "[roles.reports.queries]\ndistinct = 3\n"


def test_a_role_that_reads_has_the_usual_of_readers() -> None:
    def of(rest: str) -> dict[str, Any]:
        return (
            plan_of("[systems.groonga]\n" + REPORTS + rest + ASKED).treatments[0].roles["reports"]
        )

    clients = of("clients = 2\n")
    assert clients["queries"] == {"match": "all", "limit": 10, "seed": 1, "distinct": 3}
    assert (clients["think_s"], clients["timeout_s"]) == (0.0, 10.0)
    assert (of("rate_per_s = 5\n")["arrivals"], of("rate_per_s = 5\n")["connections"]) == (
        "poisson", 16,
    )  # fmt: skip
    assert of("every_s = 2\n")["connections"] == 1


def test_a_role_that_reads_is_idle_without_clients_or_rate_and_changes_no_index() -> None:
    varied = '[factors]\n"roles.reports.rate_per_s" = [0, 5]\n'
    plan = plan_of("[systems.groonga]\n" + REPORTS + ASKED + varied)
    assert [is_idle(t.roles["reports"]) for t in plan.treatments] == [True, False]
    assert all(only_reads(t.roles) for t in plan.treatments)
    both = plan_of("[systems.groonga]\n" + REPORTS + "clients = 1\n" + ASKED + WRITER)
    assert not only_reads(both.treatments[0].roles)


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("clients = 1\n",
         ["12:8: a role that reads needs `queries`: what it asks, with the keys of [queries], in "
          "[roles.reports.queries]"]),
        (ASKED, ["12:8: a role that reads needs a pace: `clients`, which ask as fast as they are "
                 "answered, `rate_per_s`, `every_s`, `stages`, `times`, or `speed`, at which its "
                 "log is replayed"]),
        ("clients = 1\nrate_per_s = 2\n" + ASKED,
         ["15:14: `clients` and `rate_per_s` are two paces of one role; keep one"]),
        ("clients = 1\nspeed = 2\n" + ASKED,
         ["15:9: `speed` is for a replay, and this role has `clients`; keep one"]),
        ("clients = 1\nbatch = 2\n" + ASKED,
         ['15:9: `batch` is not for a role with does = "read"']),
        ("clients = 1\narrivals = 'poisson'\n" + ASKED,
         ["15:12: `arrivals` is for a role with `rate_per_s` or `stages`"]),
        ("clients = 1\nqueries = 'q.txt'\n", ["15:11: `queries` must be a table, not \"q.txt\""]),
        ("clients = 1\n[roles.reports.queries]\nfil = 'q.txt'\n",
         ["16:1: [roles.reports.queries] has no key `fil` (did you mean `file`?)"]),
        ("clients = 1\n[roles.reports.queries]\nfile = 'nosuch.txt'\n",
         ['16:8: there is no file "nosuch.txt" in .']),
        ("clients = 1\n[roles.reports.queries]\nwords = 2\nfile = 'pyproject.toml'\n",
         ["16:9: `words` is for queries sampled from the corpus"]),
        ("clients = 1\n" + ASKED + '[factors]\n"roles.reports.queries.limits" = [1, 10]\n',
         ["18:1: `roles.reports.queries.limits`: [queries] of a role have no key `limits` (did you "
          "mean `limit`?)"]),
        ("clients = 1\n" + ASKED + '[factors]\n"roles.reports.queries.facets" = ["a"]\n',
         ["18:1: `roles.reports.queries.facets` cannot be a factor: its values are lists or tables "
          "(as a level of a linked factor they can)"]),
        ("clients = 1\n" + ASKED + '[factors]\n"roles.reports.queries.limit" = [1, "ten"]\n',
         ["18:37: level of `roles.reports.queries.limit`: `limit` must be an integer from 0 to "
          '100000, not "ten"']),
        ("clients = 1\n" + ASKED + '[factors]\n"roles.reports.queries.distinct" = [1, 10]\n',
         ['16:1: `distinct` is set here and varied as "roles.reports.queries.distinct" in '
          "[factors], at 18:1; keep one of them"]),
        ("clients = 1\n" + ASKED + '[factors]\n"roles.reports.queries.file" = ["nosuch.txt"]\n',
         ["16:12: `distinct` is for queries sampled from the corpus",
          '18:33: there is no file "nosuch.txt" in .']),
        ("every_s = 2\n" + ASKED + WRITER
         + '[factors]\n"roles.writer.queries.limit" = [1, 10]\n',
         ["21:1: `roles.writer.queries.limit`: only a role with does = \"read\" asks queries, and "
          'this one has "write"']),
    ],
)  # fmt: skip
def test_each_mistake_of_a_role_that_reads_has_its_place_and_a_remedy(
    rest: str, said: list[str]
) -> None:
    assert wrong("[systems.groonga]\n" + REPORTS + rest) == said


def test_what_a_role_asks_may_be_a_factor_with_levels_of_one_key_or_of_several() -> None:
    head = "[systems.groonga]\n" + REPORTS
    varied = '[factors]\n"roles.reports.queries.limit" = [1, 100]\n'
    plan = plan_of(head + "clients = 1\n" + ASKED + varied)
    asked = [t.roles["reports"]["queries"] for t in plan.treatments]
    usual = {"match": "all", "seed": 1, "distinct": 3}
    assert asked == [{**usual, "limit": 1}, {**usual, "limit": 100}]
    # Beside the readers' own limit it has a name of its own.
    assert [t.label for t in plan.treatments] == [
        "reports.queries.limit=1", "reports.queries.limit=100",
    ]  # fmt: skip
    linked = """[[factors.reports]]
name = "none"
set = { "roles.reports.clients" = 0, "roles.reports.queries.facets" = [] }
[[factors.reports]]
name = "colors"
set = { "roles.reports.clients" = 1, "roles.reports.queries.facets" = ["category"] }
"""
    plan = plan_of(head + ASKED + linked)
    assert [(t.label, is_idle(t.roles["reports"])) for t in plan.treatments] == [
        ("reports=none", True), ("reports=colors", False),
    ]  # fmt: skip
    assert [t.roles["reports"]["queries"]["facets"] for t in plan.treatments] == [[], ["category"]]


def test_a_level_of_what_a_role_asks_that_an_engine_cannot_do_is_left_out() -> None:
    varied = '[factors]\n"roles.reports.queries.match" = ["all", "fuzzy"]\n'
    plan = plan_of("[systems.sphinx]\n" + REPORTS + "clients = 1\n" + ASKED + varied)
    assert [t.levels["roles.reports.queries.match"] for t in plan.treatments] == ["all"]
    assert plan.excluded[0].reason.startswith("sphinx cannot do fuzzy: ")


def test_what_an_engine_cannot_be_asked_is_said_of_the_role_or_left_out() -> None:
    fuzzy = REPORTS + "clients = 1\n" + ASKED + 'match = "fuzzy"\n'
    (found,) = wrong("[systems.sphinx]\n" + fuzzy)
    assert found.startswith("12:8: sphinx cannot do fuzzy: ")
    plan = plan_of("[systems.sphinx]\n[systems.lucene]\n" + fuzzy)
    assert [t.system for t in plan.treatments] == ["lucene"]
    assert plan.excluded[0].reason.startswith("sphinx cannot do fuzzy: ")


def test_files_of_a_role_that_reads_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text(
        '{"match": {"mode": "all", "terms": ["red"]}, "sort": ["nosuch"]}\n'
    )
    (tmp_path / "words.txt").write_text("red lamp\nblue chair\n")

    def looked(rest: str) -> list[str]:
        text = HEAD + "[systems.groonga]\n" + REPORTS + rest
        study = parse_study(text, "study.toml", tmp_path)
        with pytest.raises(StudyError) as found:
            inputs.look(study, make_plan(study))
        return [str(complaint) for complaint in found.value.complaints]

    (field,) = looked('clients = 1\n[roles.reports.queries]\nfile = "bad.jsonl"\n')
    assert field.startswith("study.toml:16:8: ")
    assert "nosuch" in field
    (times,) = looked('speed = 1\n[roles.reports.queries]\nfile = "words.txt"\n')
    assert "words.txt has no times, and a role without another pace replays them" in times
    (late,) = looked("every_s = 10\n" + ASKED)
    assert late.startswith(
        "study.toml:14:11: the role first asks after the drive has ended, at 6 s"
    )
    (short,) = looked("stages = [[3, 10], [2, 20]]\n" + ASKED)
    assert "add a stage for the rest, as in [1, 0], which asks nothing" in short


def test_a_search_for_capacity_beside_readers_has_the_same_requests_in_each_trial() -> None:
    head = HEAD.replace("clients = 1\n", 'find_capacity = true\nslo = "p99 < 50ms"\n')
    head = head.replace("seconds = 5\n", "")
    assert read("[systems.groonga]\n" + REPORTS + "clients = 1\n" + ASKED, head)
    (found,) = wrong("[systems.groonga]\n" + REPORTS + "stages = [[6, 10]]\n" + ASKED, head)
    assert "has to have the same requests; give `rate_per_s` in place of `stages`" in found


def test_a_first_look_at_readers_that_seldom_ask_sees_them_ask(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(HEAD.replace("seconds = 5", "seconds = 60") + "[systems.groonga]\n" + REPORTS
                    + "every_s = 30\n" + ASKED.replace("3", "5_000"))  # fmt: skip
    quick = read_quick(path)
    assert quick.roles["reports"]["every_s"] < quick.load["seconds"]
    assert quick.roles["reports"]["queries"]["distinct"] < 5_000
    inputs.look(quick, make_plan(quick))


def test_a_role_that_reads_does_not_go_beside_operations() -> None:
    head = HEAD.replace("[queries]\ndistinct = 5\n", "") + "[operations.fetch]\nrows = 1\n"
    head += "[operations.fetch.methods.plain]\ntext = 'SELECT 1'\n"
    found = wrong("[systems.mariadb]\n" + REPORTS + "clients = 1\n" + ASKED, head)
    assert any("a role that reads asks queries, and goes on beside [queries]" in f for f in found)


def test_readers_go_beside_those_of_a_system_that_runs_already_as_they_change_nothing() -> None:
    attached = '[systems.groonga]\nattach = "127.0.0.1:10041"\n'
    reports = REPORTS + "clients = 1\n" + ASKED
    assert plan_of(attached + reports).treatments[0].attach
    (found,) = wrong(attached + reports + WRITER)
    assert "they are only for systems that searchbench starts" in found
