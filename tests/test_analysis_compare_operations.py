"""Which methods of operations are compared, and what the verdict says of many operations."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from searchbench.analysis.agreement.agreement import Pair
from searchbench.analysis.answer import Rank, Said
from searchbench.analysis.compare import pairs
from searchbench.analysis.compare.family import asking, family
from searchbench.analysis.compare.verdict import decide
from searchbench.analysis.judgement import (
    Agreement,
    Comparison,
    Curve,
    Estimate,
    Interval,
    Judgement,
    TreatmentResult,
    TrialResult,
    Verdict,
)
from searchbench.record.trial import Load
from searchbench.report.document.blocks import Code, Text
from searchbench.report.document.notices import analysis

METHODS = (("mariadb", "sql"), ("sensei", "json"), ("sensei", "bql"))


def asked(operation: str, system: str, method: str, seconds: float = 0.001) -> TreatmentResult:
    """One method of an operation, measured at so many seconds."""
    levels = {"system": system, "operation": operation, "method": method, "load.clients": 1}
    name = f"{system} operation={operation} method={method}"
    figure = {"service_p50": Estimate(seconds, "s", 3)}
    return TreatmentResult(
        name, name, system, levels, figure, Curve("s", (), ()), Curve("r", (), ()), ()
    )


def of_ten() -> list[TreatmentResult]:
    """Ten operations; JSON is the fastest in all but the first."""
    found = []
    for number in range(10):
        times = {"sql": 0.05, "json": 0.01 if number else 0.06, "bql": 0.02 if number else 0.07}
        found += [asked(f"q{number}", s, m, times[m]) for s, m in METHODS]
    return found


def test_methods_that_only_their_own_system_is_asked_by_are_compared_and_operations_are_not() -> (
    None
):
    treatments = of_ten()
    by_id = {t.treatment: t for t in treatments}
    pairs = family(treatments)
    assert len(pairs) == 10 * 3
    assert all(by_id[a].levels["operation"] == by_id[b].levels["operation"] for a, b in pairs)
    # Two databases that both take two methods: only one thing differs in a pair.
    both = [asked(o, s, m) for o in "ab" for s in ("mariadb", "pg") for m in ("in", "or")]
    differ = [
        sum(by[a].levels[f] != by[b].levels[f] for f in by[a].levels)
        for by in [{t.treatment: t for t in both}]
        for a, b in family(both)
    ]
    assert differ == [1] * 8
    # However few there are, what answers another operation is no rival.
    few = [asked("a", "pg", "in"), asked("b", "pg", "in"), asked("a", "pg", "or")]
    assert family(few) == [(few[0].treatment, few[2].treatment)]


def scattered(method: str, draws: str, sd: float) -> TreatmentResult:
    """A method over five blocks, whose median time scatters so."""
    rng = np.random.default_rng([*method.encode(), *draws.encode()])
    trials = tuple(
        TrialResult(
            f"{method}-{b}", f"{method} {draws}", b, False, "valid", "",
            {"service_p50": Estimate(0.01 * math.exp(sd * rng.normal()), "s", 100)}, {}, (),
        )
        for b in range(5)
    )  # fmt: skip
    t = asked("fetch", "mariadb", method)
    return replace(t, treatment=f"{method} {draws}", draws=draws, trials=trials)


@pytest.mark.parametrize("several", [True, False])
def test_operations_that_draw_other_rows_share_no_noise(*, several: bool) -> None:
    """A study of a single operation has no factor that is called so."""
    few = [scattered(m, "ten", 0.3) for m in ("in", "or", "union", "singles")]
    many = [scattered(m, "a million", 0.01) for m in ("in", "or", "union", "singles")]
    if not several:
        few, many = (
            [replace(t, levels={"system": t.system, "method": t.levels["method"]}) for t in own]
            for own in (few, many)
        )
    of = pairs._noises([*few, *many], ["service_p50"])
    for pair, sd in ((few, 0.3), (many, 0.01)):
        noise = pairs._noise_of(of, "service_p50", pair[0], pair[1])
        assert noise is not None
        assert noise.df == 12
        assert 0.5 < (noise.variance / 2) ** 0.5 / sd < 2
    # What is compared all the same is as noisy as the noisier of the two.
    both = pairs._noise_of(of, "service_p50", many[0], few[0])
    assert both == pairs._noise_of(of, "service_p50", few[0], few[1])
    assert pairs._noise_of(of, "throughput", few[0], few[1]) is None


def compared(treatments: list[TreatmentResult]) -> list[Comparison]:
    """Every pair of an operation, resolved as its times are."""
    found = []
    for a, b in combinations(treatments, 2):
        if a.levels["operation"] == b.levels["operation"]:
            ratio = a.figures["service_p50"].value / b.figures["service_p50"].value
            span = Interval(ratio * 0.99, ratio * 1.01, 0.95, "t")
            verdict = "faster" if ratio > 1 else "slower"
            found.append(
                Comparison(
                    a.treatment, b.treatment, "service_p50", verdict,  # type: ignore[arg-type]
                    Estimate(ratio, "ratio", 3, span), 0.01, 1.0, 4, 0,
                    queries_measured=4, same_top_k=4,
                )
            )  # fmt: skip
    return found


def verdict(comparisons: list[Comparison]) -> Verdict:
    treatments = of_ten()
    loads = {t.treatment: Load(kind="closed") for t in treatments}
    return decide(treatments, comparisons, loads, "service_p50", None, "totals")


def test_of_many_operations_the_verdict_says_in_how_many_each_method_is_the_best() -> None:
    said = verdict(compared(of_ten())).decision
    best = "sensei method=json clients=1 is the best in 9 and mariadb method=sql clients=1 is the"
    assert f"Of 10 operations, {best} best in 1." in said
    assert verdict(compared(of_ten())).best is None
    only = [c for c in compared(of_ten()) if "operation=q3" in c.a]
    said = verdict(only).decision
    assert (
        "Of 10 operations, sensei method=json clients=1 is the best in 1 and in 9 nothing" in said
    )
    said = verdict([]).decision
    assert "In none of 10 operations is anything shown to be better than all else." in said


@pytest.mark.parametrize("text", ["\n    1  a\n   10  b", "\n\t1  a\n\t10  b\n"])
def test_lines_that_an_author_has_indented_stay_as_they_are(text: str) -> None:
    judged = Judgement(
        question="?", analysis=f"What was\npublished:\n{text}\n\nLook at it.",
        verdict=Verdict("", False, None), treatments=(), comparisons=(), noise_floor=None,
        agreement=(), findings=(), excluded=(), resources={},
    )  # fmt: skip
    first, table, last = analysis(judged)
    assert isinstance(first, Text)
    assert first.text == "The author of the study writes: What was published:"
    assert isinstance(table, Code)
    assert [line.split() for line in table.text.splitlines()] == [["1", "a"], ["10", "b"]]
    assert isinstance(last, Text)
    assert last.text == "Look at it."


def drawing(method: str, rows: int, storage: str) -> TreatmentResult:
    found = asked("fetch", "mariadb", method, 1e-5 * rows)
    levels = {**found.levels, "rows": str(rows), "systems.mariadb.storage": storage}
    name = f"{method} {rows} {storage}"
    return replace(found, treatment=name, label=name, levels=levels, draws=f"draws of {rows}")


def test_methods_are_compared_at_one_number_of_rows_and_none_leads_across_them() -> None:
    treatments = [
        drawing(method, rows, storage)
        for method in ("in", "or")
        for rows in (1, 10, 100, 1000, 10000)
        for storage in ("innodb", "myisam")
    ]
    by_id = {t.treatment: t for t in treatments}
    assert asking(treatments) == {"rows"}
    pairs = family(treatments)
    assert all(by_id[a].levels["rows"] == by_id[b].levels["rows"] for a, b in pairs)
    assert len(pairs) == 5 * 4, "two methods on each storage, two storages of each method"
    of_all = [
        Comparison(a, b, "service_p50", "not resolved", None, None, 1.0, 20, 0) for a, b in pairs
    ]
    loads = {t.treatment: Load(kind="closed", clients=1) for t in treatments}
    crossing = "or is faster than in from about 30 rows on (between 10 and 100)."
    first = [Said(crossing, Rank.ANSWER)]
    said = decide(treatments, of_all, loads, "service_p50", None, "totals", first=first)
    assert said.headline.startswith("or is faster than in from about 30 rows on")
    assert "In none of 5 levels of operation and rows is anything shown to be better" in (
        said.decision
    )
    assert "rows=1 leads" not in said.decision
    few = [drawing("in", 1, "innodb"), drawing("in", 10, "innodb")]
    assert family(few) == []


def test_methods_that_differ_on_any_draw_are_not_compared() -> None:
    """However many draws they agree on: the faster one may answer another question."""
    a, b = (replace(asked("q", "s", m), draws="d") for m in ("left", "inner"))
    other = replace(b, draws="e")
    agreed = Agreement(
        "a", "b", queries=30, totals_match=28 / 30, top_k_set_match=None, top_k_order_match=None,
        rbo_mean=None, k=10, unsupported_a=0, unsupported_b=0, errors_a=0, errors_b=0, causes={},
        examples=(), agreeing=28, differing=2,
    )  # fmt: skip
    pair = Pair(agreed, np.arange(28))
    said = "they do not return the same for 2 of 30 sets of rows that were drawn"
    assert pairs._other_rows(a, b, pair) == said
    assert pairs._other_rows(a, other, pair) == "", "they were asked other rows"
    assert pairs._other_rows(a, b, replace(pair, agreement=replace(agreed, require="none"))) == ""
    all_alike = replace(agreed, agreeing=30, differing=0)
    assert pairs._other_rows(a, b, replace(pair, agreement=all_alike)) == ""
    one_fails = replace(all_alike, only_a=1)
    assert pairs._other_rows(a, b, replace(pair, agreement=one_fails)) == "", "it is no other row"
