"""Logs that Spark's executors read: the answer of one machine, to the byte, whoever is lost."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from searchbench import _core

LOGS = Path(__file__).parent / "logs"
QUICK_START = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("pyspark") is None,
        reason="extra: pyspark is not installed (make build SPARK=1 gets it)",
    ),
    pytest.mark.skipif(
        shutil.which("java") is None and "JAVA_HOME" not in os.environ,
        reason="extra: Spark needs Java 17 (Debian: openjdk-17-jre-headless)",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of several blocks, packed ones, Parquet, formats whose lines must come in order, and
    files that are no logs."""
    folder = tmp_path_factory.mktemp("logs")
    for server in (1, 2):
        _core.generate_log(
            str(folder / f"query{server}.log"), lines=100_000, server=server, indexes=20,
            distinct=50_000, seed=1, start_s=1_215_000_000, per_s=20.0,
        )  # fmt: skip
    text = (folder / "query2.log").read_bytes()
    (folder / "query3.log.gz").write_bytes(gzip.compress(text[: len(text) // 3], 1))
    (folder / "query4.log.zst").write_bytes(zstandard.compress(text[len(text) // 3 :]))
    lines = text.decode().splitlines()[:50_000]
    pq.write_table(pa.table({"value": lines}), folder / "query5.parquet")
    for path in LOGS.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    with (folder / "query1.log").open("ab") as file:
        file.write(b"and what is this?")
    return folder


@pytest.fixture(scope="module")
def of_one_machine(folder: Path) -> bytes:
    return run([str(folder), "--zone", "Europe/Paris"]).stdout


def called(arguments: list[str], **env: str) -> subprocess.Popen[bytes]:
    """A call whose JVMs compile with C1 alone: half of the processor time of a start is C2's."""
    quick = os.environ | {"JAVA_TOOL_OPTIONS": " ".join(QUICK_START)} | env
    return subprocess.Popen(
        [sys.executable, "-m", "searchbench", "logs", *arguments, "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=quick,
    )  # fmt: skip


def run(arguments: list[str], **env: str) -> subprocess.CompletedProcess[bytes]:
    call = called(arguments, **env)
    out, said = call.communicate(timeout=200)
    return subprocess.CompletedProcess(arguments, call.returncode, out, said)


def on_spark(folder: Path, master: str, end: Callable[[psutil.Process], bool]) -> tuple[bytes, str]:
    """The answer, and what was said beside it, of a call of which ``end`` ends a process."""
    call = called([str(folder), "--zone", "Europe/Paris", "--spark", master])
    try:
        own = psutil.Process(call.pid)
        while call.poll() is None and not end(own):
            time.sleep(0.01)
        out, said = call.communicate(timeout=200)
    finally:
        if call.poll() is None:
            call.kill()
    assert call.returncode == 0, said.decode()
    return out, said.decode()


def workers(of: psutil.Process) -> Iterator[psutil.Process]:
    """The Python processes below a process that run a task: the children of Spark's daemons."""
    for child in of.children(recursive=True):
        try:
            if "pyspark.daemon" in child.cmdline() and "pyspark.daemon" in child.parent().cmdline():
                yield child
        except (psutil.Error, AttributeError):
            continue


def one_worker(own: psutil.Process) -> bool:
    for worker in workers(own):
        worker.send_signal(signal.SIGKILL)
        return True
    return False


def one_executor(own: psutil.Process) -> bool:
    """The JVM of an executor that runs a task."""
    for worker in workers(own):
        jvm = worker.parent().parent()
        if "CoarseGrainedExecutorBackend" in " ".join(jvm.cmdline()):
            jvm.send_signal(signal.SIGKILL)
            return True
    return False


def test_spark_gives_the_answer_of_one_machine_and_says_nothing_else(
    folder: Path, of_one_machine: bytes
) -> None:
    done = run([str(folder), "--zone", "Europe/Paris", "--spark", "local[2]"])
    assert done.stderr == b""
    assert done.returncode == 0
    assert done.stdout == of_one_machine
    assert b"query5.parquet" in done.stdout


def test_a_worker_that_is_killed_changes_nothing(folder: Path, of_one_machine: bytes) -> None:
    found, said = on_spark(folder, "local[2]", one_worker)
    assert "tasks had to be done again" in said
    assert found == of_one_machine


def test_an_executor_that_is_lost_changes_nothing(folder: Path, of_one_machine: bytes) -> None:
    found, said = on_spark(folder, "local-cluster[2,1,1024]", one_executor)
    assert "tasks had to be done again" in said
    assert found == of_one_machine


def test_executors_without_the_package_are_named(folder: Path, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(
        f"#!{sys._base_executable}\n"
        "import os, sys\n"
        "kept = os.environ['PYTHONPATH'].split(os.pathsep)\n"
        "os.environ['PYTHONPATH'] = os.pathsep.join(p for p in kept if p.endswith('.zip'))\n"
        f"os.execv({sys._base_executable!r}, [{sys._base_executable!r}, *sys.argv[1:]])\n"
    )
    python.chmod(0o755)
    done = run(
        [str(folder / "query1.log"), "--spark", "local[2]"],
        PYSPARK_PYTHON=str(python), PYSPARK_DRIVER_PYTHON=sys.executable,
    )  # fmt: skip
    assert done.returncode == 2
    said = done.stderr.decode()
    assert "cannot import searchbench" in said
    assert "install the same version there" in said
    assert said.count("\n") == 1


def test_a_damaged_file_is_read_as_far_as_on_one_machine(tmp_path: Path, folder: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    shutil.copy(folder / "query1.log", logs)
    (logs / "query.log.gz").write_bytes((folder / "query3.log.gz").read_bytes()[:-3000])
    here, there = run([str(logs)]), run([str(logs), "--spark", "local[2]"])
    assert here.returncode == 0
    assert b"packed, and damaged" in here.stdout
    assert there.stdout == here.stdout


def test_what_fails_is_one_sentence(tmp_path: Path, folder: Path) -> None:
    damaged = tmp_path / "query.log.gz"
    damaged.write_bytes((folder / "query3.log.gz").read_bytes()[:40])
    done = run([str(damaged), "--spark", "local[2]"])
    assert done.returncode == 2
    assert done.stderr.startswith(f"searchbench: {damaged} is damaged: ".encode())
    assert done.stderr.count(b"\n") == 1
    # Spark itself fails: no JVM starts with so little.
    done = run(
        [str(folder / "query1.log"), "--spark", "local[2]"],
        PYSPARK_SUBMIT_ARGS="--driver-memory 1k pyspark-shell",
    )
    said = done.stderr.decode()
    assert done.returncode == 2
    assert said.startswith("searchbench: Spark at local[2] did not start: ")
    assert said.count("\n") == 1
    log = Path(said.rsplit(" ", 1)[1].strip())
    assert log.stat().st_size > 0
    log.unlink()
