"""What is told of two records: which answers changed, both values, the direction, the reasons."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from records import Study, good_answer, lognormal
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import to_json
from searchbench.cli.compare import compare
from searchbench.record import Record, open_record
from searchbench.report.document.records import _badge


def record(path: Path, median_s: float = 0.004, seed: int = 1, **treatment: Any) -> Record:
    study = Study(blocks=5, seed=seed, block_noise=0.0)
    study.add("a", server=lognormal(median_s), **treatment)
    return open_record(study.write(path))


@pytest.mark.parametrize("require", ["totals", "set", "order", "none"])
def test_another_ranking_is_never_called_the_same_answers(tmp_path: Path, require: str) -> None:
    def ranked(query: int) -> dict[str, Any]:
        found = good_answer(query)
        if query < 8:
            return found | {"ids": found["ids"][::-1]}
        return found | ({"ids": ["x", *found["ids"][1:]]} if query < 20 else {})

    def run(name: str, **treatment: Any) -> Record:
        study = Study(blocks=2, judging={"agreement": {"require": require}})
        study.add("a", server=lognormal(0.004), **treatment)
        return open_record(study.write(tmp_path / name))

    found = compare_records(run("a"), run("b", answer=ranked))
    assert "are the same:" not in found.decision
    said = (
        "Of 40 queries, totals are the same on all; the first 10 hits differ on 12 and their "
        "order differs on 20. Cause: scoring (20)."
    )
    assert said in found.decision
    changed = {"totals": 0, "set": 12, "order": 20, "none": 0}[require]
    assert (found.answers_level, found.answers_changed) == (require, {"tantivy": (changed, 40)})
    assert found.agreement["tantivy"].levels == {
        "totals": (40, 0, 0), "set": (28, 12, 0), "order": (20, 20, 0)
    }  # fmt: skip
    told = {f.kind: f.number for f in found.findings}
    hidden = f"{20 - changed} of {40 - changed} queries of tantivy"
    assert told.get("other hits") == (hidden if changed < 20 else None)
    assert ("answers changed" in told) is (changed > 0)
    json.dumps(to_json(found), allow_nan=False)


def test_queries_are_not_counted_once_for_each_system(tmp_path: Path) -> None:
    def answer(query: int) -> dict[str, Any]:
        return good_answer(query) | ({"total": 0, "ids": [], "scores": []} if query < 13 else {})

    def run(name: str, systems: int) -> Record:
        study = Study(blocks=2)
        for system in ("tantivy", "sqlite")[:systems]:
            study.add(system, system=system, server=lognormal(0.004), answer=answer)
        return open_record(study.write(tmp_path / f"{name}{systems}"))

    for systems, said in (
        (1, "The answers to all 40 queries (13 of these find nothing on either side) are the same"),
        (2, "All 80 answers (40 queries of each of 2 treatments; 26 of these find nothing on "
            "either side) are the same"),
    ):  # fmt: skip
        assert said in compare_records(run("a", systems), run("b", systems)).decision


def test_hits_that_are_not_on_record_are_not_called_the_same(tmp_path: Path) -> None:
    def counted(query: int) -> dict[str, Any]:
        return {"total": 3, "ids": [], "scores": []}

    a, b = (record(tmp_path / name, answer=counted) for name in "ab")
    said = "the first 10 hits are unknown on 40 and their order is unknown on 40"
    assert said in compare_records(a, b).decision


@pytest.mark.parametrize(("turned", "same"), [(False, True), (True, False)])
def test_lists_without_an_order_are_the_same_only_if_they_are_identical(
    tmp_path: Path, turned: bool, same: bool
) -> None:
    def unranked(query: int) -> dict[str, Any]:
        return {"total": 2, "ids": ["a", "b"], "scores": [1.0, 1.0]}

    def other(query: int) -> dict[str, Any]:
        return unranked(query) | ({"ids": ["b", "a"]} if turned else {})

    found = compare_records(
        record(tmp_path / "a", answer=unranked), record(tmp_path / "b", answer=other)
    )
    assert ("answers to all 40 queries are the same" in found.decision) is same
    assert ("their order is unknown on 40" in found.decision) is turned
    assert found.findings == ()


def test_the_page_calls_no_change_good_where_answers_changed(tmp_path: Path) -> None:
    a, b = record(tmp_path / "a"), record(tmp_path / "b", answer=_another_first_hit)
    found = compare_records(a, b)
    good = replace(found, regressed=False, beyond_threshold=False, threshold=0.99)
    assert _badge(good).tone == "unsure"
    assert "answers changed" in _badge(good).explanation
    assert _badge(replace(good, findings=())).tone == "good"


def _another_first_hit(query: int) -> dict[str, Any]:
    found = good_answer(query)
    return found | {"ids": ["x", *found["ids"][1:]]}


def test_no_line_of_the_terminal_can_be_read_upside_down(
    tmp_path: Path,
) -> None:
    a, b = record(tmp_path / "a"), record(tmp_path / "b", 0.008, seed=2)
    found = compare_records(a, b)
    assert found.header[2:5] == ("first", "second", "second is")
    lines = {row[1]: row for row in found.lines}
    before, after = (lines["service p50"][i] for i in (2, 3))
    assert float(before.removesuffix(" ms")) == pytest.approx(4, rel=0.05)
    assert float(after.removesuffix(" ms")) == pytest.approx(8, rel=0.05)
    assert lines["service p50"][4].startswith("0.50")
    assert lines["service p50"][4].endswith("× as fast")
    assert lines["throughput"][2].endswith("/s")
    assert lines["throughput"][4].endswith("× as much")


def test_the_terminal_says_why_a_line_is_not_resolved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = record(tmp_path / "a"), record(tmp_path / "b", seed=9)
    assert compare(a.path, b.path) == 0
    told = " ".join(capsys.readouterr().out.split())
    for line in compare_records(a, b).comparisons:
        assert line.reason in told
    assert "Not resolved: tantivy by throughput" in told
