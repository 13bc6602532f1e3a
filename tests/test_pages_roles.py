"""docs/ROLES.md is followed: its study is checked, and run on one of its systems, made shorter."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from pages import blocks, text_of
from searchbench.cli import app
from searchbench.engines.groonga import Groonga
from searchbench.lab.get.install import missing
from searchbench.record import open_record

pytestmark = pytest.mark.slow
PAGE = "docs/ROLES.md"
# What is shorter than on the page, and nothing else.
SHORTER = ["--set", "corpus.documents=4000", "--set", "load.seconds=4", "--set", "load.warmup_s=1",
           "--set", "replicates=1", "--only", "system=groonga"]  # fmt: skip


def test_the_study_of_the_page_is_checked_run_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if lacking := missing(Groonga()):
        pytest.skip(f"no groonga here: {lacking}")
    monkeypatch.chdir(tmp_path)
    study, *_ = blocks(PAGE, "toml")
    Path("study.toml").write_text(study)
    check, run = (
        shlex.split(found)
        for found in re.findall(
            r"^`searchbench ((?:check|run) [^`]*)`", text_of(PAGE), re.MULTILINE
        )
    )
    assert app(check) == 0
    assert app([*run, *SHORTER, "--record", "record"]) in (0, 1)
    assert "report.html" in capsys.readouterr().out
    record = open_record(Path("record"))
    assert {trial.system for trial in record.trials} == {"groonga"}
    writers = [each for trial in record.trials for each in trial.beside]
    assert {writer.idle for writer in writers} == {True, False}
    (busy, *_) = [writer for writer in writers if not writer.idle]
    assert busy.applied is not None
    page = Path("record/report/report.html").read_text(encoding="utf-8")
    for said in ("Commit to visible", "idle"):
        assert said in page


def test_the_writer_of_the_page_with_stages_is_a_study_and_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study, stages, *_ = blocks(PAGE, "toml")
    Path("study.toml").write_text(study[: study.index("[roles.writer]")] + stages)
    assert app(["check", "study.toml"]) == 0
    assert app(["plan", "study.toml"]) == 0
    if lacking := missing(Groonga()):
        pytest.skip(f"no groonga here: {lacking}")
    shorter = ["--set", "roles.writer.stages=[[2, 20], [1, 20, 400], [2, 20]]"]
    assert app(["run", "study.toml", *SHORTER, *shorter, "--record", "record"]) in (0, 1)
    page = Path("record/report/report.html").read_text(encoding="utf-8")
    assert "What was written, stage by stage." in page


def test_publishers_and_jobs_of_the_page_belong_to_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study, _, more, *_ = blocks(PAGE, "toml")
    systems = re.compile(r"\[systems\.groonga\].*?(?=\[roles)", re.DOTALL)
    Path("study.toml").write_text(systems.sub("[systems.lucene]\nkeys = true\n\n", study) + more)
    assert app(["check", "study.toml"]) == 0
    assert app(["plan", "study.toml"]) == 0


def test_the_fault_and_the_overload_of_the_page_are_studies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    study, _, _, fault, overload, *_ = blocks(PAGE, "toml")
    Path("study.toml").write_text(study + fault)
    assert app(["check", "study.toml"]) == 0
    Path("study.toml").write_text(overload)
    assert app(["check", "study.toml"]) == 0
    assert app(["plan", "study.toml"]) == 0
    assert "p99 < 100ms" in capsys.readouterr().out


def test_the_capacity_of_the_page_is_a_study_and_is_searched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    *_, capacity, _, _, _ = blocks(PAGE, "toml")
    Path("study.toml").write_text(capacity)
    assert app(["check", "study.toml"]) == 0
    assert app(["plan", "study.toml"]) == 0
    assert "2 configurations, each a search for 1 promise" in capsys.readouterr().out


def test_the_reports_of_the_page_are_a_study_and_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    *_, reports, limits, linked = blocks(PAGE, "toml")
    Path("study.toml").write_text(reports)
    assert app(["check", "study.toml"]) == 0
    one = 'does = "read"\nclients = 1\n'
    for varied, several in ((limits, "2 treatments"), (linked, "3 treatments")):
        whole = reports.partition("[factors]")[0].replace("limit = 1000\n", "")
        whole = whole.replace('does = "read"\n', one) if varied is limits else whole
        Path("varied.toml").write_text(whole + varied)
        capsys.readouterr()
        assert app(["check", "varied.toml"]) == 0
        assert several in capsys.readouterr().out
    promised = 'find_capacity = true\nslo = "p99 < 50ms"'
    searched = reports.replace("rate_per_s = 50", promised).replace("seconds = 30\n", "")
    Path("searched.toml").write_text(searched)
    assert app(["check", "searched.toml"]) == 0
    if lacking := missing(Groonga()):
        pytest.skip(f"no groonga here: {lacking}")
    capsys.readouterr()
    assert app(["run", "study.toml", *SHORTER[:-2], "--record", "record"]) in (0, 1)
    record = open_record(Path("record"))
    roles = [each for trial in record.trials for each in trial.beside]
    assert {role.idle for role in roles} == {True, False}
    assert {role.does for role in roles} == {"read"}
    assert "The readers, compared with every role idle" in Path(
        "record/report/report.html"
    ).read_text(encoding="utf-8")
