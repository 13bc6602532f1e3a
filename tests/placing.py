"""Storages and groups for tests: ledgers of their own, and nothing left behind, whatever fails."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from searchbench.lab.place import ledger, mounts, things
from searchbench.lab.place.abilities import ability

SOURCES = Path(__file__).parent.parent / "python"


_held: list[int] = []  # descriptors of locks, until the test ends


def needs(*levers: str) -> None:
    """Skip where this machine does not have one of them, saying so.

    A machine has one zfs-fuse: tests of other workers wait for it.
    """
    if "zfs" in levers:
        lock = os.open("/tmp/searchbench-tests-zfs.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)
        _held.append(lock)
    for lever in levers:
        found = ability(lever)
        if not found.here:
            brought = found.remedy.startswith("apt-get")
            why = f"{lever}: {found.missing}"
            pytest.skip(f"{why}: {found.remedy}" if brought else f"kernel: {why}")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to make things in; what is left there at the end is undone and is a failure."""
    folder = Path(os.path.realpath(tmp_path))
    monkeypatch.setenv("SEARCHBENCH_LEDGERS", str(folder / "ledgers"))
    yield folder
    while _held:
        os.close(_held.pop())
    left = [*mounts.below(folder), *loops_below(folder)]
    for point in sorted(mounts.below(folder), reverse=True):
        mounts.unmount(point, dead=True)
    for image in loops_below(folder):
        things.Loop(image).undo()
    assert left == []
    assert groups() == []


@pytest.fixture
def made(home: Path) -> Iterator[ledger.Ledger]:
    """A ledger of ours, undone at the end."""
    with ledger.Ledger() as mine:
        yield mine
    assert mine.problems == []


def loops_below(folder: Path) -> list[str]:
    """Files below a folder that a loop device has behind it."""
    found = []
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            name = backing.read_text().strip().removesuffix(" (deleted)")
        except OSError:  # another test's, detached meanwhile
            continue
        if name.startswith(f"{folder}/"):
            found.append(name)
    return found


def groups(pid: int | None = None) -> list[str]:
    """The control groups that a process has made; None: this one."""
    name = f"searchbench-{os.getpid() if pid is None else pid}-*"
    return [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{name}")]


def child(code: str, *arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    """A Python with our sources and the test's ledgers, that runs ``code``."""
    path = os.pathsep.join([str(SOURCES), str(Path(__file__).parent)])
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
