"""Whose trial comes next in a search for capacity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from records import HOST
from searchbench.lab.conduct.trials import searched
from searchbench.record import Record, Trial, Writer
from searchbench.study.plan import Judging, Plan, Treatment


def order(path: Path, attached: str, most: int = 7) -> str:
    """The subjects as they are driven: a has three trials a block, b two, c one."""
    judging = Judging(measure="capacity", promises=("p99 < 10ms",), replicates=1)
    treatments = tuple(
        Treatment(
            id=f"t{i}", label=s, subject=s, system=s, engine="null", levels={},
            settings={"load": {"kind": "open"}}, attach=("127.0.0.1:1",) if s in attached else (),
        )
        for i, s in enumerate("abc")
    )  # fmt: skip
    plan = Plan(question="?", seed=1, treatments=treatments, judging=judging)
    kept = Writer(path, study_text="", plan=plan, host=HOST, version="0.1.0")

    def decide(record: Record, subject: str, block: int) -> dict[str, Any] | None:
        done = sum(t.subject == subject for t in record.trials)
        return {"rate_per_s": 10.0 + done} if done < 3 - "abc".index(subject) else None

    found = ""
    for grown, trial in searched(plan, kept, decide):
        subject = grown.treatment(trial.treatment).subject
        kept.trial(Trial(trial=trial.id, treatment=trial.treatment, block=1, subject=subject))
        found += subject
        if len(found) == most:
            break
    return found


@pytest.mark.parametrize(
    ("attached", "driven"), [("", "aaabbc"), ("abc", "abcaba"), ("bc", "bcbaaa"), ("a", "aaabbc")]
)
def test_attached_subjects_take_turns_and_started_ones_do_not(
    tmp_path: Path, attached: str, driven: str
) -> None:
    assert order(tmp_path / "r", attached) == driven


def test_an_interrupted_search_of_attached_subjects_goes_on(tmp_path: Path) -> None:
    assert order(tmp_path / "r", "abc", most=4) == "abca"
