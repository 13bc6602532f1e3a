"""The command line on a terminal of 80 columns, and before a reader that leaves; its exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from searchbench.cli import app
from searchbench.engines import ENGINES
from searchbench.errors import LabError, StudyError

MAIN = [sys.executable, "-m", "searchbench"]
STUDY = """\
question = "?"
replicates = 1
[corpus]
files = "documents.jsonl"
fields = { t = "text" }
[queries]
file = "queries.txt"
[systems.null]
delay_us = 2000
[load]
seconds = 0.5
warmup_s = 0
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study of two short trials, whose system is the null host."""
    (tmp_path / "queries.txt").write_text("red\n")
    (tmp_path / "documents.jsonl").write_text('{"id": "1", "t": "red fox"}\n')
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


def test_a_run_goes_on_when_the_reader_of_its_output_leaves(study: Path) -> None:
    """As with `searchbench run study.toml 2>&1 | head -n 1`."""
    place = study.parent / "r"
    command = [*MAIN, "run", str(study), "--record", str(place)]
    read, write = os.pipe()
    # Unbuffered, so that the first line of the answer is written before the report.
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, env=env, stdout=write, stderr=write)
    os.close(write)
    with os.fdopen(read) as lines:
        assert "2 trials" in lines.readline()
    process.wait(timeout=60)
    assert len(list(place.glob("trials/*/trial.json"))) == 2
    assert (place / "report/report.html").is_file()
    again = subprocess.run([*command, "--no-report"], capture_output=True, timeout=60)
    assert process.returncode == again.returncode


def test_the_study_of_a_record_is_run_again_from_anywhere(
    study: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path_factory.mktemp("elsewhere") / "r"
    quiet = ["--set", "load.seconds=0.1", "--no-report"]
    ended = app(["run", str(study), "--record", str(place), *quiet])
    assert ended in (0, 1), "1: on a busy machine no trial may be valid"
    again = ["run", str(place / "study.toml"), "--no-report", "--record"]
    assert app([*again, str(place)]) == ended
    assert "nothing was measured now" in capsys.readouterr().err
    (study.parent / "queries.txt").unlink()
    with pytest.raises(StudyError, match=f'there is no file "queries.txt" in {study.parent}'):
        app([*again, str(place.parent / "s")])


def test_folders_that_nobody_meant_are_not_made(study: Path) -> None:
    place = study.parent / "r"
    absent = study.parent / "no" / "work"
    with pytest.raises(LabError, match=f"{absent}: there is no folder {absent.parent} to build"):
        app(["run", str(study), "--record", str(place), "--work", str(absent)])
    assert not absent.parent.exists()
    assert not place.exists()


def test_a_directory_in_place_of_a_file_is_called_so(study: Path) -> None:
    (study.parent / "d").mkdir()
    study.write_text(STUDY.replace("queries.txt", "d"))
    with pytest.raises(StudyError, match=r'7:8: "d" is a directory, and a file is expected$'):
        app(["check", str(study)])


def unread(*argv: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The command before a reader that has left."""
    read, write = os.pipe()
    os.close(read)
    try:
        return subprocess.run(
            [*MAIN, *map(str, argv)], env={**os.environ, **env}, stdout=write,
            stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    finally:
        os.close(write)


def test_a_reader_that_left_before_is_no_error(study: Path) -> None:
    for told in (unread("check", study), unread("check", study, PYTHONUNBUFFERED="1")):
        assert (told.returncode, told.stderr) == (0, "")


def test_the_exit_codes_stand_in_one_place(capsys: pytest.CaptureFixture[str]) -> None:
    app(["--help"])
    told = capsys.readouterr().out.partition("Exit codes:\n")[2]
    for code in (0, 1, 2, 3, 130):
        assert re.search(rf"^  {code} +\w", told, re.MULTILINE), code
    assert all(line.startswith("  ") for line in told.splitlines()), "a line is broken again"
    for verb in (["run"], ["queries"], ["queries", "inspect"]):
        app([*verb, "--help"])
        assert "Exit codes:" not in capsys.readouterr().out


@pytest.mark.parametrize("present", [True, False])
def test_engines_fit_80_columns_and_each_says_all_by_name(
    present: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    if not present:
        monkeypatch.setenv("SEARCHBENCH_ENGINES", str(tmp_path / "nothing"))
        monkeypatch.setenv("PATH", str(tmp_path))
    assert app(["engines"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert set(ENGINES) <= {line.partition(" ")[0] for line in lines}
    assert max(map(len, lines)) <= 80
    assert app(["engines", "--json"]) == 0
    for declared in json.loads(capsys.readouterr().out):
        assert app(["engines", declared["name"], "--levers"]) == 0
        told = capsys.readouterr().out
        assert max(map(len, told.splitlines())) <= 80
        words = "".join(told.split())  # long words are broken at the end of a line
        said = [declared["how_to_get"], *(p["doc"] for p in declared["parameters"])]
        for about in ("cannot", "deviations"):
            said += [f"{name}: {why}" for name, why in declared[about].items()]
        assert all("".join(each.split()) in words for each in said)
        assert ("isnothere" in words) is not declared["present"]


@pytest.mark.parametrize("checkout", [True, False])
def test_check_says_that_a_system_is_not_here_and_only_a_checkout_can_make_java(
    study: Path,
    checkout: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if checkout:
        (study.parent / "Makefile").touch()
    monkeypatch.setenv("SEARCHBENCH_JAVA_HOSTS", str(study.parent / "java"))
    study.write_text(STUDY.replace("[systems.null]\ndelay_us = 2000", "[systems.lucene]"))
    assert app(["check", str(study)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "lucene-host.jar: `make java` builds it" in said
    assert ": right, but cannot be run here yet (see above); " in said
    assert ("this needs a checkout of searchbench's repository" in said) is not checkout
    assert app(["check", str(study), "--json"]) == 0
    (absent,) = json.loads(capsys.readouterr().out)["lacking"]
    assert "lucene-host.jar" in absent
