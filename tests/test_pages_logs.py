"""The commands of docs/LOGS.md, on logs that real servers wrote and on the one that it writes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from pages import ENV, ROOT, blocks, code, rows, section, text_of
from searchbench import _core
from searchbench.analysis.logs import cut
from searchbench.cli import app
from searchbench.errors import QueryError, SearchbenchError

PAGE = "docs/LOGS.md"
LOGS = ROOT / "tests" / "logs"
SHORTER = (r"--lines 200000\b", "--lines 20000")  # and nothing else


def commands() -> list[list[str]]:
    """The arguments of every command in the page's blocks, in their order."""
    lines = "".join(blocks(PAGE, "sh"))
    text, times = re.subn(*SHORTER, lines)
    assert times == 1, f"the page has no {SHORTER[0]}: shorten what it has now"
    found = [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("searchbench ")]
    assert len(found) == len(text.splitlines()), "a line of a block that is no command of ours"
    return found


def test_the_tables_with_which_a_file_is_replayed_are_those_that_the_command_says(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tables,) = blocks(PAGE, "toml")
    log = str(folder / "sphinx" / "query.log")
    assert app(["logs", log, "--queries", "searches.jsonl"]) == 0
    capsys.readouterr()
    assert json.loads((folder / "searches.jsonl.about.json").read_text())["study"] == tables


def test_the_bounds_of_a_cut_are_those_of_the_program() -> None:
    told = section(PAGE, "A small log that stands for the large one")
    allowed = [int(n) for row in rows(told) for n in re.findall(r"\d+", row[1])]
    assert allowed == [round(100 * n) for n in (
        cut.RATE, cut.DISPERSION, cut.SHARE, cut.SHARE, cut.SHARE, cut.SHARE, cut.MIDDLE, cut.SHARE,
    )]  # fmt: skip
    caches = told.partition("(LRU) of ")[2].partition(" answers")[0].split(", ")
    assert [int(n.replace(",", "")) for n in caches] == list(cut.CACHES)


def with_own_fields(argv: list[str]) -> str:
    """JSON lines with the columns that a command names, and a time by a name that is known."""
    named = {c.split("=")[0] for flag, c in pairwise(argv) if flag == "--column"}
    values = {"elapsed": 12.5, "asked": "red lamp"}
    assert named == values.keys()
    lines = ({"timestamp": f"2026-01-02T03:04:{n:02}Z", **values} for n in range(60))
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the page's logs are: a real one of Sphinx in place of /var/log/sphinx, and Apache's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sphinx").mkdir()
    shutil.copy(LOGS / "sphinx-query-plain.log", tmp_path / "sphinx" / "query.log")
    shutil.copy(LOGS / "apache-custom.log", tmp_path / "apache.log")
    return tmp_path


def test_every_command_of_the_page_reads_its_log(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (asked,) = [argv for argv in commands() if "app.jsonl" in argv]
    (folder / "app.jsonl").write_text(with_own_fields(asked))
    said = {}
    for argv in commands():
        own = [part.replace("/var/log/sphinx", str(folder / "sphinx")) for part in argv]
        assert app(own) == 0, argv
        said[" ".join(argv)] = capsys.readouterr().out
    unwrapped = {command: " ".join(text.split()) for command, text in said.items()}
    first, generated, example, nightly, fields, pattern, load, cut, *others = said.values()
    assert "Times: Half of the searches took" in first
    assert generated == ""
    assert example.startswith("Half of the 20,000 searches took less than ")
    assert "\n20,000 lines (sphinx) in" in example
    page = folder / "example.html"
    assert page.stat().st_size < 2_000_000
    assert page.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert (folder / "sphinx-log" / "report" / "logs.html").is_file(), nightly
    assert "\n60 lines (json) in" in fields
    assert "the longest took less than 12.6 ms" in fields
    assert "red lamp" in fields
    assert re.search(r"^[\d,]+ lines \(line\) in", pattern, re.MULTILINE)
    assert load.startswith("20,000 searches, ")
    (of_load,) = [text for command, text in unwrapped.items() if command.endswith("searches.jsonl")]
    assert "All 20,000 searches can be asked again, but not exactly as in production" in of_load
    assert "the log has no searches that failed" in of_load
    assert (folder / "searches.jsonl.about.json").is_file()
    assert "dispersion at 10 s" in cut
    assert len(others) == 2
    assert all("Anonymised: " in text for text in others)
    assert (folder / "log.key").is_file()


def test_a_second_call_reads_what_is_new_and_says_what_was_not_met_before(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (nightly,) = [argv for argv in commands() if "--record" in argv]
    own = [part.replace("/var/log/sphinx", str(folder / "sphinx")) for part in nightly]
    log = folder / "sphinx" / "query.log"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:30]))
    assert app(own) == 0
    log.rename(folder / "sphinx" / "query.log.1")
    new = b"".join(lines[30:]).replace(b"[docs", b"[neverseen")
    new += b"[Fri Nov 20 20:39:57.302 2026] 0.003 sec [all/0/rel 1 (0,10)] [brandnew] word\n"
    log.write_bytes(new)
    capsys.readouterr()
    assert app(own) == 0
    assert "brandnew" in capsys.readouterr().out.partition("\n\n")[2].partition("\n\nclass")[0]
    assert app([*own, "--json"]) == 0
    kept = json.loads(capsys.readouterr().out)
    assert app(["logs", *map(str, sorted(log.parent.iterdir())), "--json"]) == 0
    at_once = json.loads(capsys.readouterr().out)
    assert kept["all"]["n"] == at_once["all"]["n"]


def test_standard_input_and_packed_files_are_read_and_formats_may_be_mixed(folder: Path) -> None:
    shell = (
        "gzip -k sphinx/query.log && searchbench logs sphinx/query.log.gz --json > packed.json && "
        "searchbench logs - --json < sphinx/query.log > stdin.json && "
        f"searchbench logs sphinx/query.log {LOGS}/nginx-timed.log --json > mixed.json"
    )
    done = subprocess.run(
        ["bash", "-ec", shell], cwd=folder, env=ENV, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    packed, stdin, mixed = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("packed", "stdin", "mixed")
    )
    assert packed["all"]["n"] == stdin["all"]["n"] > 30
    assert {s["format"] for s in mixed["sources"]} == {"sphinx", "access"}


def test_the_table_of_formats_is_that_of_the_program() -> None:
    table = rows(section(PAGE, "Which formats it reads, and what each can tell"))
    assert sorted(name for row in table for name in code(row[0])) == sorted(_core.LOG_FORMATS)


def test_the_options_of_the_table_and_the_columns_of_the_text_are_taken(folder: Path) -> None:
    for row in rows(section(PAGE, "A page, JSON, a record")):
        flag, _, value = code(row[0])[0].partition(" ")
        argv = ["logs", "sphinx/query.log", flag, *([value.lower()] if value else [])]
        assert app(argv) == 0, argv
    text = section(PAGE, "Logs with fields of their own")
    roles = code(re.search(r"A field can be read as (.*?)\.", text, re.DOTALL)[1])  # type: ignore[index]
    assert len(roles) == 10
    (folder / "a.jsonl").write_text('{"took": 3, "query": "red", "x": "7"}\n' * 5)
    for role in roles:
        assert app(["logs", "a.jsonl", "--column", f"x={role}"]) == 0, role
    with pytest.raises(SearchbenchError, match="colour"):
        app(["logs", "a.jsonl", "--column", "x=colour"])


def test_units_and_zones_are_as_the_page_has_them(folder: Path) -> None:
    text = section(PAGE, "Which formats it reads, and what each can tell")
    units = [each.split()[1] for each in code(text) if each.startswith("--unit ")]
    assert units == ["ms", "s"]
    for unit in units:
        assert app(["logs", str(LOGS / "apache-combined-d.log"), "--unit", unit]) == 0
    with pytest.raises(QueryError, match="not a unit of time"):
        app(["logs", str(LOGS / "apache-combined-d.log"), "--unit", "days"])
    assert "--zone" in text_of(PAGE)
