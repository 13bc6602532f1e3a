"""Two sweeps or searches whose replies differ, or were not read: a gain may be an empty answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from records import Study, good_answer, lognormal
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import to_json
from searchbench.analysis.judgement import RecordComparison
from searchbench.cli.compare import compare
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
    about = {"answer": answer, "extra": {"captured": {"sizes": sizes}}}
    study.add("c4", system="srv", server=lognormal(service_s, 0.1), clients=4, seconds=11.0,
              levels={"clients": 4}, **about)  # fmt: skip
    return open_record(study.write(path))


def against(
    path: Path, after: Record, size: float | None = 1.0, *, again: Sequence[Record] = (), **how: Any
) -> RecordComparison:
    """``after``, and ``again`` of the same, against three runs of the same thing."""
    first, *same = (sweep(path / str(i), size, seed=i, **how) for i in (2, 3, 4))
    return compare_records(first, after, same=same, same_b=again)


def more(path: Path, size: float | None = None, **how: Any) -> list[Record]:
    """Two runs more of what ``sweep`` made."""
    return [sweep(path / f"more{i}", size, seed=i, **how) for i in (5, 6)]


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
    after = sweep(tmp_path / "b", size, service_s=0.002)
    again = more(tmp_path, size, service_s=0.002)
    found = against(tmp_path, after, None if size is None else 1.0, again=again)
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
    again = more(tmp_path, 2.0, service_s=0.008)
    found = against(tmp_path, sweep(tmp_path / "b", 2.0, service_s=0.008), again=again)
    assert found.beyond_threshold
    assert {line.verdict for line in found.comparisons} == {"slower"}
    assert "the second may give other answers" in found.headline


@pytest.mark.parametrize(("answer", "verdict"), [(good_answer, "faster"),
                                                 (finds_nothing, "not resolved")])  # fmt: skip
def test_answers_that_were_read_and_are_others_win_nothing(
    tmp_path: Path, answer: Any, verdict: str
) -> None:
    after = sweep(tmp_path / "b", answer=answer, service_s=0.002)
    again = more(tmp_path, answer=answer, service_s=0.002)
    found = against(tmp_path, after, None, again=again, answer=good_answer)
    assert {line.verdict for line in found.comparisons} == {verdict}
    assert found.answers_changed is not None
    differing = [n for n, _ in found.answers_changed.values()]
    assert differing == [0 if answer is good_answer else 40]


# Too few trials of both


def trials(
    path: Path, bad: Sequence[int] = (), *, seed: int = 1, warmup_s: float | None = None,
    stage: str = "drive",
) -> Record:  # fmt: skip
    """A study of three blocks; the trials of ``bad`` blocks failed, in that ``stage``."""
    study = Study(blocks=3, seed=seed, control=None)
    study.add("a", server=lognormal(0.004))
    study.write(path)
    for file in path.glob("trials/*/trial.json"):
        told = json.loads(file.read_text())
        told["load"] |= {"seconds": 5.0, "warmup_s": warmup_s}
        file.write_text(json.dumps(told))
    for block in bad:
        for file in path.glob(f"trials/*-b{block - 1}-*/trial.json"):
            failed = {"status": "failed", "stage": stage, "reason": "it broke"}
            file.write_text(json.dumps(json.loads(file.read_text()) | failed))
    return open_record(path)


@pytest.mark.parametrize(("bad", "few"), [((2, 3), "only 1 of 3 blocks has a valid trial of both"),
                                          ((1, 2, 3), "")])  # fmt: skip
def test_one_block_of_several_gives_no_ratio(
    tmp_path: Path, bad: tuple[int, ...], few: str
) -> None:
    found = compare_records(trials(tmp_path / "a"), trials(tmp_path / "b", bad, seed=2))
    assert {(line.verdict, line.ratio) for line in found.comparisons} == {("not comparable", None)}
    assert few in found.headline
    for wrong in ("only 0", "all of them measured", "No resolved loss", "Measure longer"):
        assert wrong not in f"{found.decision} {found.would_change}"


@pytest.mark.parametrize(
    ("stage", "status", "said"),
    [("drive", 1, "Lost, with valid trials in the first"),
     ("clients", 2, "Cannot tell whether these became slower"),
     ("probe", 2, "Cannot tell whether these became slower")],
)  # fmt: skip
def test_what_failed_beside_the_system_is_not_lost(
    tmp_path: Path, stage: str, status: int, said: str
) -> None:
    trials(tmp_path / "a")
    found = compare_records(
        open_record(tmp_path / "a"), trials(tmp_path / "b", (1, 2, 3), seed=2, stage=stage)
    )
    assert said in found.decision
    assert compare(tmp_path / "a", tmp_path / "b", as_json=True) == status


def test_trials_of_no_common_block_give_no_ratio_either(tmp_path: Path) -> None:
    found = compare_records(trials(tmp_path / "a", (2, 3)), trials(tmp_path / "b", (1,), seed=2))
    assert "no block has a valid trial of both" in found.headline
    assert compare(tmp_path / "a", tmp_path / "b", as_json=True) == 2


def test_two_blocks_of_three_give_one(tmp_path: Path) -> None:
    found = compare_records(trials(tmp_path / "a"), trials(tmp_path / "b", (2,), seed=2))
    assert all(line.ratio and line.ratio.interval for line in found.comparisons)
    assert not [f for f in found.findings if f.kind == "other windows"]


def test_other_windows_are_named(tmp_path: Path) -> None:
    found = compare_records(trials(tmp_path / "a"), trials(tmp_path / "b", seed=2, warmup_s=2.0))
    (finding,) = (f for f in found.findings if f.kind == "other windows")
    assert finding.number == "5 s after a warm-up until steady and 5 s after 2 s of warm-up"
