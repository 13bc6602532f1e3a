"""Effects injected into the null host are there, no judge overlooks them, nonsense is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from searchbench.analysis.judge import judge
from searchbench.errors import StudyError
from searchbench.measure.run import run as measure
from searchbench.record import Record
from searchbench.study import parse_study


def study(folder: Path, levels: str) -> Path:
    """Two clients for 1.5 s, which are the first to ask."""
    (folder / "documents.jsonl").write_text(json.dumps({"id": "1", "text": "red"}))
    (folder / "queries.txt").write_text("red\nblue\n")
    path = folder / "study.toml"
    path.write_text(
        f"""
        question = "Is it seen?"
        replicates = 1
        [control]
        aa = false
        [agreement]
        capture = "after"
        [corpus]
        files = "documents.jsonl"
        fields = {{ text = "text" }}
        [queries]
        file = "queries.txt"
        [load]
        clients = 2
        seconds = 1.5
        warmup_s = 0
        [systems.null]
        {levels}
        """
    )
    return path


def run(folder: Path, levels: str) -> Record:
    return measure(study(folder, levels), folder / "record")


def test_a_host_that_warms_up_is_slower_at_first_and_not_called_steady(tmp_path: Path) -> None:
    record = run(tmp_path, "delay_us = 2000\ncold_speed = 0.1\nwarmup_tau_s = 0.3")
    samples = record.samples(record.trials[0].trial)
    took = np.asarray(samples["done"]) - np.asarray(samples["sent"])
    assert np.median(took[:10]) > 2 * np.median(took[took.size // 2 :])
    assert took.min() >= 2_000_000
    (trial,) = judge(record).treatments[0].trials
    assert trial.steadiness is not None
    assert trial.steadiness.answer != "steady"  # on a busy machine it may be unknown


def test_a_host_says_in_a_sentence_why_it_does_not_start(tmp_path: Path) -> None:
    (trial,) = run(tmp_path, "delay_us = 2000\ncold_speed = 0.4").trials
    assert trial.status == "failed"
    assert "--cold_speed has no effect without --warmup_tau_s" in trial.reason


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("cold_speed = 0", "from 0.01 to 1"),
        ("drift_per_min = -1", "from -0.9 to 10"),
        ('speed_sd = "much"', "a number"),
    ],
)
def test_a_level_out_of_range_is_refused_with_its_range(
    tmp_path: Path, level: str, said: str
) -> None:
    path = study(tmp_path, level)
    with pytest.raises(StudyError, match=said):
        parse_study(path.read_text(), "study.toml", tmp_path)
