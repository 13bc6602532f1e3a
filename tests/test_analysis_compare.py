"""Two records: what changed, and whether it is a regression."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from records import Study, good_answer, lognormal
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import to_json
from searchbench.record import Record, open_record


def record(path: Path, median_s: float = 0.004, seed: int = 1, **treatment: Any) -> Record:
    study = Study(blocks=5, seed=seed, block_noise=0.0)
    study.add("a", server=lognormal(median_s), **treatment)
    return open_record(study.write(path))


def test_a_slowdown_beyond_the_threshold_is_a_regression(tmp_path: Path) -> None:
    found = compare_records(record(tmp_path / "a"), record(tmp_path / "b", 0.0046, seed=2), 0.05)
    assert found.regressed
    line = found.comparisons[0]
    assert line.verdict == "slower"
    assert line.ratio is not None
    assert line.ratio.value == pytest.approx(1 / 1.15, rel=0.03)
    assert line.ratio.interval is not None
    assert line.ratio.interval.low <= 1 / 1.15 <= line.ratio.interval.high
    assert "regression" in found.decision
    lenient = compare_records(record(tmp_path / "a2"), record(tmp_path / "b2", 0.0046, seed=2), 0.2)
    assert not lenient.regressed
    assert lenient.comparisons[0].verdict == "slower"


def test_the_same_again_is_not_resolved_and_no_regression(tmp_path: Path) -> None:
    found = compare_records(record(tmp_path / "a"), record(tmp_path / "b", seed=9), 0.0)
    assert {line.verdict for line in found.comparisons} == {"not resolved"}
    assert not found.regressed
    assert "answers to all 40 queries are the same" in found.decision


def test_an_improvement_is_faster_and_no_regression(tmp_path: Path) -> None:
    found = compare_records(record(tmp_path / "a"), record(tmp_path / "b", 0.003, seed=2))
    assert {line.verdict for line in found.comparisons} == {"faster"}
    assert not found.regressed


def test_changed_answers_are_counted_and_left_out_of_the_ratio(tmp_path: Path) -> None:
    def other(query: int) -> dict[str, Any]:
        return good_answer(query) | ({"total": 0, "ids": [], "scores": []} if query < 5 else {})

    after = record(tmp_path / "b", seed=2, answer=other, version="2.0")
    found = compare_records(record(tmp_path / "a"), after)
    assert found.answers_changed == {"tantivy": (5, 40)}
    kinds = {f.kind for f in found.findings}
    assert kinds == {"answers changed", "other versions"}
    assert "Answers changed on 5 of 40 queries" in found.decision


def test_other_machines_are_a_finding(tmp_path: Path) -> None:
    a, b = record(tmp_path / "a"), record(tmp_path / "b")
    host = tmp_path / "b" / "host.json"
    host.write_text(json.dumps(json.loads(host.read_text()) | {"cores": 64}))
    found = compare_records(a, open_record(b.path))
    assert [f.number for f in found.findings if f.kind == "other machine"] == ["cores: 2 and 64"]


def test_treatments_are_matched_by_their_levels(tmp_path: Path) -> None:
    a = record(tmp_path / "a", levels={"load.clients": 4})
    b = record(tmp_path / "b", levels={"load.clients": 8})
    found = compare_records(a, b)
    assert found.comparisons == ()
    assert found.only_in_a == ("4",)
    assert found.only_in_b == ("8",)
    assert not found.regressed


def test_a_record_without_valid_trials_is_not_comparable(tmp_path: Path) -> None:
    found = compare_records(record(tmp_path / "a"), record(tmp_path / "b", fails_at="deploy"))
    assert {line.verdict for line in found.comparisons} == {"not comparable"}
    assert not found.regressed
    json.dumps(to_json(found), allow_nan=False)
