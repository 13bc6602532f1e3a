"""Trials that others on the machine spoilt are measured once more when they are asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchbench.analysis.judge import judge
from searchbench.cli import app
from searchbench.errors import RecordError
from searchbench.measure.kept import spoilt
from searchbench.record import open_record

STUDY = """
question = "How fast is nothing?"
replicates = 2
[corpus]
files = "documents.jsonl"
fields = { text = "text" }
[queries]
file = "queries.txt"
[load]
requests = 200
warmup_requests = 20
[control]
aa = false
[systems.null]
"""


def stolen(record: Path, trial: str, share: float) -> None:
    """A trial of whose cores a hypervisor took a share, on a machine that is not shared."""
    path = record / "trials" / trial / "trial.json"
    about = json.loads(path.read_text())
    window, seconds = about["host_window"], about["host_window"]["seconds"]
    window["shared"] = False
    for core in window["by_core"]:
        core["steal_s"], core["busy_s"] = share * max(seconds, 1.0), 0.0
    path.write_text(json.dumps(about))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    lines = [json.dumps({"id": n, "text": f"word w{n}"}) for n in range(50)]
    (tmp_path / "documents.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "queries.txt").write_text("word\nw7\n")
    (tmp_path / "study.toml").write_text(STUDY)
    record = tmp_path / "record"
    assert app(["run", str(tmp_path / "study.toml"), "--record", str(record), "--no-report"]) == 0
    return record


def test_what_others_spoilt_is_set_aside_and_measured_once_more(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a machine that others use, the second trial may be spoilt as well."""
    first, second = [t.trial for t in open_record(run).trials]
    stolen(run, first, 0.5)
    began = {t.trial: t.started for t in open_record(run).trials}
    samples = (run / "trials" / first / "samples.parquet").read_bytes()
    command = ["run", str(run.parent / "study.toml"), "--record", str(run), "--no-report"]
    capsys.readouterr()
    app(command)
    assert "with --again measures" in " ".join(capsys.readouterr().err.split())
    assert not (run / "void").exists(), "nothing is measured again unless it is asked for"
    these = spoilt(run)
    assert first in these
    app([*command, "--again"])
    assert "measured once more" in capsys.readouterr().err
    assert (run / "void" / f"{first}.1" / "samples.parquet").read_bytes() == samples
    record = open_record(run)
    assert record.set_aside == [*these]
    assert (run / "trials" / first / "samples.parquet").read_bytes() != samples
    if second not in these:
        assert {t.trial: t.started for t in record.trials}[second] == began[second]
    (found,) = [f for f in judge(record).findings if f.kind == "measured again"]
    assert found.number == f"{len(these)} of 2 trials"


def test_what_the_server_did_is_not_measured_again(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for trial in open_record(run).trials:
        stolen(run, trial.trial, 0.5)
        path = run / "trials" / trial.trial / "trial.json"
        about = json.loads(path.read_text())
        about["notes"].append({"kind": "server ended", "number": "", "meaning": "it ended",
                               "remedy": "see its log"})  # fmt: skip
        path.write_text(json.dumps(about))
    assert spoilt(run) == ()
    capsys.readouterr()
    app(["run", str(run.parent / "study.toml"), "--record", str(run), "--no-report", "--again"])
    assert "No trial on record is invalid only because" in capsys.readouterr().err
    assert not (run / "void").exists()


def test_the_steps_of_a_sweep_are_not_measured_one_by_one(run: Path) -> None:
    study = run.parent / "sweep.toml"
    text = STUDY.replace("[control]\naa = false\n", "").replace("replicates = 2\n", "")
    study.write_text(text.replace("requests = 200\nwarmup_requests = 20",
                                  "clients = [1, 2]\nseconds = 0.3\nwarmup_s = 0.1"))  # fmt: skip
    command = ["run", str(study), "--record", str(run.parent / "swept"), "--no-report"]
    app(command)
    with pytest.raises(RecordError, match="--again is for studies of trials"):
        app([*command, "--again"])
