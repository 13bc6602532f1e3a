"""Readers beside a writer are held against the idle treatment that begins with the same index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from searchbench.analysis.answer import Rank
from searchbench.analysis.judgement import Comparison, Estimate, Interval
from searchbench.analysis.roles import results
from searchbench.analysis.roles.compared import said_beside, with_verdicts
from searchbench.analysis.roles.model import Beside
from searchbench.report.tables import roles as tables
from searchbench.study.planner import make_plan
from searchbench.study.read import parse_study

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
[systems.groonga]
[roles.writer]
does = "write"
[factors]
"roles.writer.documents_per_s" = [0, 10]
"""
SHARES = '"roles.writer.share" = [0.1, 0.5]\n'
KINDS = """what = [
    { name = "inserts", set = { "roles.writer.insert" = 1, "roles.writer.update" = 0 } },
    { name = "updates", set = { "roles.writer.insert" = 0, "roles.writer.update" = 1 } },
]
"""


@pytest.mark.parametrize("factor", [SHARES, KINDS])
def test_what_a_writer_costs_is_not_what_an_index_of_another_size_costs(factor: str) -> None:
    """Readers are as fast as their index is small, and writing costs them nothing."""
    plan = make_plan(parse_study(HEAD + factor, "study.toml", Path()))
    treatments: list[Any] = []
    for t in plan.treatments:
        rate = 1000 / (1 - (t.roles["writer"]["share"] or 0.0))
        trials = [
            SimpleNamespace(block=b, counts=True,
                            figures={"throughput": Estimate(rate * (1 + 0.001 * b), "/s", 1)})
            for b in range(3)
        ]  # fmt: skip
        treatments.append(
            SimpleNamespace(treatment=t.id, label=t.label, levels=t.levels, trials=trials)
        )
    found = results._beside(treatments, {t.id: t for t in plan.treatments})
    assert len(found) == 2
    assert {one.idle for one in found} == {t.id for t in plan.treatments if results.idle(t)}
    assert [one.ratios["throughput"].value for one in found] == pytest.approx([1.0, 1.0])


def test_readers_beside_a_writer_have_the_ratio_and_the_verdict_of_their_comparison() -> None:
    """Raw figures may be of two mixes of queries: they said 0.5 where the comparison says 0.98."""
    raw = {
        name: Estimate(0.5, "ratio", 3) for name in ("throughput", "service_p99", "response_p50")
    }
    one = Beside("busy", "busy", "idle", "idle", raw)

    def compared(metric: str, ratio: float, verdict: Any) -> Comparison:
        found = Estimate(ratio, "ratio", 3, Interval(ratio / 1.1, ratio * 1.1, 0.95, "t"))
        return Comparison("busy", "idle", metric, verdict, found, 0.5, 1.0, 5, 0)

    lines = [compared("throughput", 1 / 0.98, "not resolved"), compared("service_p99", 2, "faster")]
    (found,) = with_verdicts([one], lines)
    values = {name: ratio.value for name, ratio in found.ratios.items()}
    assert values == pytest.approx({"throughput": 0.98, "service_p99": 2.0, "response_p50": 0.5})
    assert found.judged == {
        "throughput": "not resolved", "service_p99": "slower", "response_p50": "not judged"
    }  # fmt: skip
    text = str(tables.beside([found]))
    assert "not resolved" in text
    assert "not judged" in text


def beside(name: str, ratio: float, judged: str, metric: str = "throughput") -> Beside:
    found = Estimate(ratio, "ratio", 3, Interval(ratio / 1.1, ratio * 1.1, 0.95, "t"))
    return Beside(name, name, "idle", "idle", {metric: found}, judged={metric: judged})


def test_a_study_with_roles_begins_with_what_they_take_from_the_readers() -> None:
    half, some = beside("half", 0.5, "slower"), beside("some", 0.9, "slower")
    unsure = beside("unsure", 0.4, "not resolved")
    other = beside("other", 0.1, "not comparable")
    first, *rest = said_beside([unsure, some, other, half], "throughput")
    assert first.rank is Rank.ANSWER
    assert first.text.startswith("half: throughput is 0.5 times (95 % interval 0.455–0.55) that of")
    assert [s.text.partition(":")[0] for s in rest] == ["some", "unsure"]
    assert all(s.rank is Rank.MORE for s in rest)
    assert rest[-1].text.endswith("that of idle, which is not resolved.")
    # Of times the greatest ratio is the greatest loss.
    slow = [beside(n, r, "slower", "service_p99") for n, r in (("a", 1.2), ("b", 3.0))]
    assert said_beside(slow, "service_p99")[0].text.startswith("b: p99 of service time is 3 times")
    first, *rest = said_beside(
        [unsure, replace(unsure, label="too", treatment="too")], "throughput"
    )
    assert (first.rank, first.text) == (
        Rank.ANSWER,
        "What the roles take from the readers is resolved in none of 2 cases, by throughput.",
    )
    assert len(rest) == 2
    assert said_beside([other, beside("x", 0.5, "not judged")], "throughput") == []


def test_where_a_writer_always_writes_reports_are_held_against_the_writer_alone() -> None:
    head = (
        HEAD[: HEAD.index("[factors]")]
        + """documents_per_s = 10
[roles.reports]
does = "read"
[roles.reports.queries]
distinct = 3
[factors]
"roles.reports.clients" = [0, 1, 2]
"""
    )
    plan = make_plan(parse_study(head, "study.toml", Path()))
    treatments: list[Any] = []
    for t, rate in zip(plan.treatments, (1000, 500, 250), strict=True):
        figures = {"throughput": Estimate(rate, "/s", 1)}
        trials = [SimpleNamespace(block=b, counts=True, figures=figures) for b in range(3)]
        treatments.append(
            SimpleNamespace(treatment=t.id, label=t.label, levels=t.levels, trials=trials)
        )
    found = results._beside(treatments, {t.id: t for t in plan.treatments})
    alone, one, two = (t.id for t in plan.treatments)
    assert [(b.treatment, b.idle, b.at_work) for b in found] == [
        (alone, "", 0), (one, alone, 1), (two, alone, 1),
    ]  # fmt: skip
    assert [b.ratios["throughput"].value for b in found[1:]] == pytest.approx([0.5, 0.25])
