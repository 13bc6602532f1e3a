"""docs/LOAD.md is followed from its first command to its last, against a real Groonga."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from searchbench.analysis.judge import judge
from searchbench.lab.system.names import free_port
from searchbench.record import open_record

PAGE = Path(__file__).parent.parent / "docs" / "LOAD.md"
# Shorter than on the page, and on ports that are free; nothing else is changed.
SHORTER = (
    (
        r"corpus make debian packages\.jsonl",
        "corpus make debian all.jsonl > made.txt; head -n 4000 all.jsonl > packages.jsonl",
    ),
    (r"--seconds 10\b", "--seconds 0.3 --warmup 0.1"),
    (r"seconds=10\b", "seconds=0.3, warmup=0.1"),
    (r"--duration=10\b", "--duration=0.3"),
    (r"--interval=1\b", "--interval=0"),
    (r"--effort 0\.4\b", "--effort 0.02 --idle block"),
    # So short a search on a busy machine may find no rate that surely keeps a promise.
    (r"(--record (?:capacity|promises))\n", r"\1 || [ $? = 3 ]\n"),
)


def commands(page: str) -> str:
    """Every shell command and every piece of Python of the page, in order."""
    found = []
    for language, block in re.findall(
        r"^```(sh|python)\n(.*?)^```", page, re.DOTALL | re.MULTILINE
    ):
        found.append(block if language == "sh" else f"python - <<'PYTHON'\n{block}PYTHON\n")
    return "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(520)
def test_the_tutorial_can_be_followed_from_start_to_end(tmp_path: Path) -> None:
    if shutil.which("groonga") is None:
        pytest.skip("no groonga here")
    text = commands(PAGE.read_text())
    assert text.count("searchbench ") >= 8
    for long, short in SHORTER:
        text, times = re.subn(long, short, text)
        assert times, f"the page has no {long}: shorten what it has now"
    for port in ("10041", "10042"):
        text = text.replace(port, str(free_port()))
    # A server that was just started takes a moment to listen.
    text, servers = re.subn(
        r"(-p (\d+) .*&\n)",
        r"\1until curl -s http://127.0.0.1:\2/d/status > up.json; do sleep 0.05; done\n",
        text,
    )
    assert servers == 2
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # A file, not a pipe: the servers of the page would hold a pipe open after the shell has ended.
    with (tmp_path / "said.txt").open("w") as out:
        shell = subprocess.Popen(
            ["bash", "-ec", text],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = shell.wait(500)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    said = (tmp_path / "said.txt").read_text()
    assert code == 0, said[-3000:]
    assert "Traceback" not in said

    steps = {name: open_record(tmp_path / name).trials for name in
             ("by-clients", "by-rate", "capacity", "promises", "half-cached", "both")}  # fmt: skip
    assert [t.load.clients for t in steps["by-clients"]] == [1, 3, 5, 7, 9]
    assert all(t.engine == "groonga" for trials in steps.values() for t in trials)
    assert {t.system for t in steps["both"]} == {"default", "one-thread"}
    for cached in steps["half-cached"]:
        counted = cached.cache.counted
        assert counted.hits / counted.lookups == pytest.approx(0.5, abs=0.15)
    for name in steps:
        assert (tmp_path / name / "report" / "report.html").stat().st_size > 10_000
    answered = judge(open_record(tmp_path / "promises")).capacity
    assert [found.promise for found in answered] == ["p50 < 20ms", "p99 < 50ms"]
    again = open_record(tmp_path / "again").trials
    asked = [[structs.replace(t.load, from_line=None) for t in trials]
             for trials in (again, steps["by-clients"])]  # fmt: skip
    assert asked[0] == asked[1], "each run begins at a line of its own, and the rest is the same"
    unnamed = [open_record(path).trials for path in (tmp_path / "records").glob("load-*")]
    assert [1, 3, 5] in [[t.load.clients for t in trials] for trials in unnamed], "from Python"
    head, *rows = (tmp_path / "groonga-result.csv").read_text().splitlines()
    assert head.startswith("n_clients,total_n_requests,queries_per_second")
    assert [row.split(",")[0] for row in rows] == ["1", "2", "4"]
