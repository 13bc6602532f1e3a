"""What only one of two records answered well when asked alone is not answered the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from records import OUTCOMES, Answer, Study, good_answer, lognormal
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judgement import RecordComparison
from searchbench.analysis.roles import faults
from searchbench.record import open_record

ERROR = {"error": "boom", "outcome": OUTCOMES.index("engine_error")}


def failing(first: int, last: int) -> Answer:
    """Well, but for the queries from ``first`` on and before ``last``, which fail."""

    def answer(query: int) -> Mapping[str, Any]:
        return good_answer(query) | (ERROR if first <= query < last else {})

    return answer


def compared(folder: Path, a: Answer, b: Answer, measure: str) -> RecordComparison:
    """Two records of forty queries each, which differ in nothing but what is answered alone."""
    sides = []
    for seed, (name, answer) in enumerate((("a", a), ("b", b)), 1):
        study = Study(blocks=1, seed=seed, control=None, judging={"measure": measure}, queries=40)
        study.add("c4", system="srv", server=lognormal(0.004, 0.1), clients=4, seconds=11.0,
                  levels={"load.clients": 4}, answer=answer, subject="srv")  # fmt: skip
        sides.append(open_record(study.write(folder / name)))
    return compare_records(*sides)


@pytest.mark.parametrize("measure", ["sweep", "trials"])
def test_queries_that_failed_alone_in_one_record_are_answers_that_differ(
    tmp_path: Path, measure: str
) -> None:
    found = compared(tmp_path, good_answer, failing(10, 40), measure)
    assert [*(found.answers_changed or {}).values()] == [(30, 40)]
    assert "are the same" not in found.decision
    assert "Of 40 queries, totals differ on 30; " in found.decision
    assert "Of these, answered well when asked alone: 30 by the first only." in found.decision
    assert [f.number for f in found.findings if f.kind == "answers changed"] == [
        f"30 of 40 queries of {next(iter(found.agreement or {}))}"
    ]


def test_what_failed_on_both_sides_differs_in_nothing_and_what_was_mended_does(
    tmp_path: Path,
) -> None:
    same = compared(tmp_path / "same", failing(30, 40), failing(30, 40), "sweep")
    assert [*(same.answers_changed or {}).values()] == [(0, 30)]
    assert "The answers to all 30 queries that both answered are the same" in same.decision
    mended = compared(tmp_path / "mended", failing(20, 40), failing(35, 40), "sweep")
    assert [*(mended.answers_changed or {}).values()] == [(15, 35)]
    assert "Of 35 queries that either answered, totals differ on 15; " in mended.decision
    assert "Of these, answered well when asked alone: 15 by the second only." in mended.decision


def test_no_more_first_hits_are_said_to_be_the_same_than_were_listed(tmp_path: Path) -> None:
    def three(query: int) -> dict[str, Any]:
        full = good_answer(query)
        return {**full, "ids": full["ids"][:3], "scores": full["scores"][:3]}

    cut = compared(tmp_path / "cut", three, three, "trials")
    assert "totals, first 3 hits and their order" in cut.decision
    whole = compared(tmp_path / "whole", good_answer, good_answer, "trials")
    assert "totals, first 10 hits and their order" in whole.decision


@pytest.mark.parametrize("tied", [True, False])
def test_hits_of_equal_score_may_swap_after_a_fault(tmp_path: Path, tied: bool) -> None:
    def answer(query: int) -> dict[str, Any]:
        full = good_answer(query)
        scores = [5.0, 5.0, *full["scores"][2:]] if tied else full["scores"]
        return {**full, "scores": scores}

    study = Study(blocks=1, control=None, queries=40)
    study.add("x", system="x", server=lognormal(0.004, 0.1), answer=answer)
    record = open_record(study.write(tmp_path / "r"))
    (trial,) = record.trials
    replies = record.replies(trial.trial)
    alone = replies.filter(pc.equal(replies["phase"], "captured")).to_pylist()
    swapped = [{**row, "phase": "after", "ids": [row["ids"][1], row["ids"][0], *row["ids"][2:]]}
               for row in alone]  # fmt: skip
    rows = pa.Table.from_pylist([*alone, *swapped], schema=replies.schema)
    after = cast("Any", SimpleNamespace(replies=lambda name: rows))
    assert faults._answers(after, trial) == ((40, 40) if tied else (0, 40))
