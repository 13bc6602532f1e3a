"""Two sweeps or searches whose replies differ, or were never read: a gain may be an empty answer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from records import Study, good_answer, lognormal
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import to_json
from searchbench.analysis.judgement import RecordComparison
from searchbench.record import Record, open_record
from searchbench.report import write_comparison
from searchbench.report.document.records import _badge


def nothing_read(query: int) -> dict[str, Any]:
    return {"total": None, "ids": [], "scores": []}


def finds_nothing(query: int) -> dict[str, Any]:
    return {"total": 0, "ids": [], "scores": []}


def sweep(
    path: Path, size: float | None = None, *, seed: int = 1, service_s: float = 0.004,
    answer: Any = nothing_read,
) -> Record:  # fmt: skip
    """One step; ``size``: of each reply when it was asked alone, times what it is by the query."""
    study = Study(blocks=1, seed=seed, control=None, judging={"measure": "sweep"}, block_noise=0.0)
    sizes = {str(q): int((400 + 10 * q) * size) for q in range(40)} if size else {}
    study.add("c4", system="srv", server=lognormal(service_s, 0.1), clients=4, seconds=11.0,
              levels={"clients": 4}, answer=answer, extra={"captured": {"sizes": sizes}})  # fmt: skip
    return open_record(study.write(path))


def against(path: Path, after: Record, size: float | None = 1.0, **how: Any) -> RecordComparison:
    """``after`` against three runs of the same thing."""
    first, *same = (sweep(path / str(i), size, seed=i, **how) for i in (2, 3, 4))
    return compare_records(first, after, same=same)


def test_a_server_that_answers_less_and_sooner_is_not_called_faster(tmp_path: Path) -> None:
    found = against(tmp_path, sweep(tmp_path / "b", 0.2, service_s=0.002))
    assert {line.verdict for line in found.comparisons} == {"not resolved"}
    assert "the replies to 40 of 40 requests have other sizes" in found.comparisons[0].reason
    assert "the second may give other answers" in found.headline
    assert "whether both answer the same is not known" in found.decision
    (finding,) = (f for f in found.findings if f.kind == "answers not compared")
    assert finding.severity == "warning"
    told = json.loads(json.dumps(to_json(found), default=str))
    assert told["answers_changed"] is told["agreement"] is None


@pytest.mark.parametrize("size", [1.0, 1.05, None])
def test_replies_of_about_the_same_size_keep_a_gain_and_are_said_to_be_unread(
    tmp_path: Path, size: float | None
) -> None:
    found = against(tmp_path, sweep(tmp_path / "b", size, service_s=0.002))
    assert {line.verdict for line in found.comparisons} == {"faster"}
    assert "other answers" not in found.headline
    assert "whether both answer the same is not known" in found.decision
    assert ("about the same size" in found.decision) is (size is not None)
    (finding,) = (f for f in found.findings if f.kind == "answers not compared")
    assert finding.severity == "note"
    page = write_comparison(found, *(open_record(Path(x)) for x in (found.a, found.b)),
                            tmp_path / "page.html").read_text()  # fmt: skip
    assert "The replies were not read" in page
    assert "not read" in _badge(replace(found, threshold=0.99)).explanation


def test_a_loss_stands_whatever_the_second_says(tmp_path: Path) -> None:
    found = against(tmp_path, sweep(tmp_path / "b", 2.0, service_s=0.008))
    assert found.beyond_threshold
    assert {line.verdict for line in found.comparisons} == {"slower"}
    assert "the second may give other answers" in found.headline


@pytest.mark.parametrize(("answer", "verdict"), [(good_answer, "faster"),
                                                 (finds_nothing, "not resolved")])  # fmt: skip
def test_answers_that_were_read_and_are_others_win_nothing(
    tmp_path: Path, answer: Any, verdict: str
) -> None:
    after = sweep(tmp_path / "b", answer=answer, service_s=0.002)
    found = against(tmp_path, after, None, answer=good_answer)
    assert {line.verdict for line in found.comparisons} == {verdict}
    assert found.answers_changed is not None
    differing = [n for n, _ in found.answers_changed.values()]
    assert differing == [0 if answer is good_answer else 40]
