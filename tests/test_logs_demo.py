"""The demo of `searchbench logs`, end to end and smaller: its logs, what is found, its page."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pages import ENV, ROOT, blocks
from searchbench.analysis.logs.judge import judge_log
from searchbench.analysis.logs.model import LogJudgement
from searchbench.cli import app
from searchbench.errors import QueryError
from searchbench.logs.counts import Options, count
from searchbench.logs.example import TIMES, write_example
from searchbench.logs.sources import find

LINES = 6000  # of each log, for 120,000
FILES = {"search-1/query.log", "search-2/query.log.1.gz", "web/access.log"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def said(folder: Path) -> str:
    """What the command of `make demo-logs` prints, at a twentieth of the size."""
    (made,) = re.findall(
        r"searchbench (logs demo) \$\(DEMO_LOGS\)", (ROOT / "Makefile").read_text()
    )
    done = run(folder, [*made.split(), "demo-logs", "--lines", str(LINES)])
    assert done.stderr == ""
    return done.stdout


def run(folder: Path, argv: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "searchbench", *argv],
        cwd=folder, env=ENV, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def unwrapped(text: str) -> str:
    return " ".join(text.split())


def times_by_hour(path: Path) -> dict[int, list[float]]:
    """Seconds of the searches of a plain log by the hour, as this test reads it."""
    found: dict[int, list[float]] = {}
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in text.decode().splitlines():
        m = re.match(r"\[\w+ \w+ +1 (\d\d):\S+ 2008\] (\d+\.\d{3}) sec ", line)
        if m:
            found.setdefault(int(m[1]), []).append(float(m[2]))
    return found


def test_it_leaves_logs_findings_and_a_page_in_one_folder(folder: Path, said: str) -> None:
    assert [path.name for path in folder.iterdir()] == ["demo-logs"]
    made = folder / "demo-logs"
    below = {str(p.relative_to(made)) for p in made.rglob("*") if p.is_file()}
    assert below == {f"logs/{name}" for name in FILES} | {
        "about.txt", "report/logs.html", "report/logs.pdf",
    }  # fmt: skip
    assert said.startswith("A day of three servers is in demo-logs: ")
    assert all(name in unwrapped(said) for name in FILES)
    assert f"{3 * LINES:,} lines (sphinx, access)" in said
    assert (made / "report" / "logs.html").stat().st_size < 2_000_000
    assert (made / "report" / "logs.pdf").read_bytes().startswith(b"%PDF")
    page = (made / "report" / "logs.html").read_text()
    for name in ("search-1", "search-2", "web", "Rate and times over the log", "Worst hour"):
        assert name in page, name


def test_the_planted_hour_is_in_the_log_and_is_found(folder: Path, said: str) -> None:
    logs = folder / "demo-logs" / "logs"
    bad, good = (times_by_hour(logs / name) for name in ("search-2/query.log.1.gz",
                                                         "search-1/query.log"))  # fmt: skip
    others = np.mean([t for hour, times in bad.items() if hour != 14 for t in times])
    assert np.mean(bad[14]) / others == pytest.approx(TIMES, rel=0.25)
    assert np.mean(good[14]) < 2 * others
    told = unwrapped(said)
    assert "Worst hour: In the hour from 2008-07-01 14:00 on (" in told
    servers = said.partition("\nserver ")[2]
    assert servers.index("search-2") < min(servers.index("search-1"), servers.index("web"))
    last = told.rpartition("Open ")[2]
    assert "search-2 took 10 times as long from 14:00 to 15:00 because we made it so" in last
    assert last.endswith("searchbench logs /path/to/query.log --page mine.html")
    assert (folder / last.split()[0]).is_file()


def test_the_command_that_it_prints_says_the_same(folder: Path, said: str) -> None:
    (line,) = [line for line in said.splitlines() if line.startswith("$ ")]
    again = run(folder, [*shlex.split(line)[2:], "--json"]).stdout
    (remark,) = [r for r in json.loads(again)["remarks"] if r["title"] == "Worst hour"]
    assert unwrapped(remark["text"]) in unwrapped(said)
    assert line[2:] in (folder / "demo-logs" / "about.txt").read_text()


def test_the_same_call_writes_the_same_and_spares_what_is_not_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contents = []
    for _ in range(2):
        assert app(["logs", "demo", str(tmp_path / "d"), "--lines", "1000"]) == 0
        contents.append({p: p.read_bytes() for p in (tmp_path / "d" / "logs").rglob("*.*")
                         if p.is_file()})  # fmt: skip
    assert contents[0] == contents[1]
    capsys.readouterr()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("Dear ..")
    with pytest.raises(QueryError, match="not made by this command; name a new folder"):
        app(["logs", "demo", str(mine)])
    assert [p.name for p in mine.iterdir()] == ["letter.txt"]
    with pytest.raises(QueryError, match="1000 lines or more"):
        app(["logs", "demo", str(tmp_path / "e"), "--lines", "10"])


def judged(*files: Path) -> LogJudgement:
    return judge_log(count(find(files), Options(zone="UTC")), zone="UTC")


def test_a_day_without_a_bad_hour_has_none(tmp_path: Path) -> None:
    example = write_example(tmp_path, LINES)
    assert judged(example.files[0], example.files[2]).worst_hour is None
    found = judged(*example.files).worst_hour
    assert found is not None
    assert found.at_s == int(example.begin.timestamp())
    # One of three servers took ten times as long.
    assert found.mean_s / found.usual_s == pytest.approx((TIMES + 2) / 3, rel=0.3)


def hours(path: Path, times_s: list[list[float]]) -> LogJudgement:
    """A log of JSON lines: by the hour, the times of its searches."""
    lines = []
    for hour, times in enumerate(times_s):
        for i, took_s in enumerate(times):
            at = 1_767_225_600 + 3600 * hour + 3599 * i / len(times)
            lines.append(json.dumps({"time": at, "took_ms": 1000 * took_s, "q": f"w{i % 50}"}))
    path.write_text("\n".join(lines) + "\n")
    return judged(path)


def test_one_long_search_or_a_quiet_hour_is_no_bad_hour(tmp_path: Path) -> None:
    usual = [0.1] * 200
    assert hours(tmp_path / "a.jsonl", [usual, usual, [*usual, 60.0], usual]).worst_hour is None
    assert hours(tmp_path / "b.jsonl", [usual, usual, [2.0] * 50, usual]).worst_hour is None
    assert hours(tmp_path / "c.jsonl", [usual, [1.0] * 200]).worst_hour is None
    found = hours(tmp_path / "d.jsonl", [usual, usual, [0.5] * 300, usual]).worst_hour
    assert found is not None
    assert (found.n, found.hours) == (300, 4)
    assert (found.mean_s, found.usual_s) == pytest.approx((0.5, 0.1))
    assert found.share_of_time == pytest.approx(150 / 210)


def test_the_demo_stands_in_the_texts() -> None:
    assert "make demo-logs" in blocks("README.md", "")[0]
    assert "make demo-logs" in (ROOT / "docs" / "LOGS.md").read_text().partition("\n## ")[0]
