"""``searchbench load --slo``: a server of known slowness is held to what it promised."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from searchbench.analysis.judge import judge
from searchbench.cli import app
from searchbench.record import open_record
from test_load import always, serving

pytestmark = pytest.mark.timed  # whether a promise is kept is a matter of times


def slow(peer: socket.socket, head: bytes, number: int) -> bool:
    time.sleep(0.15)
    return always(peer, head, number)


def load(port: int, place: Path, *options: str) -> int:
    return app(
        ["load", f"http://127.0.0.1:{port}/", "--engine", "none", "--warmup", "0", "--idle",
         "block", "--record", str(place), "--no-report", *options]
    )  # fmt: skip


def test_a_promise_is_kept_broken_or_left_open_and_the_exit_code_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ("--clients", "2", "--seconds", "2.5", "--json")
    for name, slo, verdict, code in (
        ("kept", "p50 < 1s", "kept", 0),
        ("broken", "p99 < 50ms", "broken", 1),
        ("open", "errors < 0.1%", "cannot tell", 3),
    ):
        with serving(slow) as port:
            found = load(port, tmp_path / name, *how, "--slo", slo)
        (step,) = json.loads(capsys.readouterr().out)
        (promised,) = step["promises"]
        if step["status"] == "void":  # a machine that is busy with something else
            verdict, code = "cannot tell", 3
        assert (promised["verdict"], found) == (verdict, code), promised


def test_a_run_ends_as_soon_as_its_promise_is_surely_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    with serving(slow) as port:
        code = load(port, tmp_path / "r", "--clients", "2,3", "--seconds", "60",
                    "--slo", "p99 < 50ms", "--abort")  # fmt: skip
    assert code in (1, 3), "3: the machine is busy, and the step void"
    assert time.monotonic() - began < 30
    record = open_record(tmp_path / "r")
    (trial,) = record.trials
    assert trial.drive is not None
    assert trial.drive.cut_short
    assert trial.window is not None
    assert trial.window.end == trial.drive.elapsed_ns < 20e9
    (aborted,) = [f for f in judge(record).findings if f.kind == "aborted"]
    assert aborted.number.endswith("1 of 2 steps")
    said = capsys.readouterr()
    assert "so many requests broke a promise that the run ends here" in said.err
    assert ("broken" if code == 1 else "it cannot be told") + " at 2 clients" in said.out
    tables = record.study_text
    assert "abort = true" in tables


def test_a_run_that_keeps_its_promise_is_not_ended(tmp_path: Path) -> None:
    with serving(always) as port:
        code = load(port, tmp_path / "r", "--clients", "1,2", "--seconds", "1.5",
                    "--slo", "p50 < 1s", "--abort")  # fmt: skip
    assert code != 1
    trials = open_record(tmp_path / "r").trials
    assert [t.drive is not None and t.drive.cut_short for t in trials] == [False, False]
