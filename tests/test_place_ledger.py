"""What is made is written down first; a killed process leaves nothing after the next clean-up."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from placing import child, groups, home, loops_below, made, needs
from searchbench.lab.conduct.studies import folder as private
from searchbench.lab.place import ledger, mounts, things
from searchbench.lab.place.ledger import Ledger, clean

__all__ = ["home", "made"]

# Makes a storage, and a group with a process in it; ends itself without a word when that number of
# things is written down and the last of them not made, or when all are made.
KILLED = """
import os, signal, subprocess, sys
from pathlib import Path
from searchbench.lab.place import ledger, zfs
from searchbench.lab.place.group import Group
from searchbench.lab.place.storages import Storages
from searchbench.places import Place, Storage

kind, at, home = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
noted, real = [], ledger.Ledger.note

def note(self, thing):
    number = real(self, thing)
    noted.append(thing)
    if len(noted) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return number

ledger.Ledger.note = note
work = home / "searchbench-work-of-a-test"
(work / "index").mkdir(parents=True)
made = ledger.Ledger()
latency = 2.0 if kind == "slow" else None
name = "ext4" if kind == "slow" else kind
disk = Storage(name="disk", kind=name, size_bytes=320 << 20, latency_ms=latency)
place = Place(name="here", storages={"data": disk})
storages = Storages(place, work / "index", work, made, zfs.Daemon(made, work))
storages.make()
if latency:
    storages.forget()
group = Group(made, ["memory", "cpu"])
group.make()
quiet = subprocess.DEVNULL
sleeper = subprocess.Popen(["sleep", "600"], stdout=quiet, stderr=quiet)
for joins in group.joins:
    joins.write_text(str(sleeper.pid))
(storages.made("disk").folder / "file").write_text("here")
print(len(noted), sleeper.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(kind: str, at: int, folder: Path) -> tuple[int, bytes]:
    """Its process id, and what it printed before it was killed."""
    process = child(KILLED, kind, str(at), str(folder), folder=folder)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, out.decode()
    return process.pid, out


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "ram", "slow"])
def test_whatever_a_process_is_killed_at_the_next_clean_up_undoes_it(kind: str, home: Path) -> None:
    needs("memory", "cpu_share", *(["latency"] if kind == "slow" else [kind]))
    pid, out = killed(kind, 0, home)
    count, sleeper = map(int, out.split())
    assert mounts.below(home)
    assert loops_below(home) or kind in ("ram", "zfs")
    assert groups(pid)
    done = clean()
    assert done.left == ()
    assert len(done.undone) >= 3
    assert_nothing_left(home, pid)
    assert not psutil.pid_exists(sleeper) or psutil.Process(sleeper).status() == "zombie"
    for at in range(1, count + 1):
        pid, _ = killed(kind, at, home)
        assert clean().left == (), at
        assert_nothing_left(home, pid)
    assert clean() == ledger.Cleaned()


def assert_nothing_left(folder: Path, pid: int) -> None:
    assert mounts.below(folder) == []
    assert loops_below(folder) == []
    assert groups(pid) == []
    assert not list(folder.glob("searchbench-*"))
    assert not list((folder / "ledgers").glob("*.jsonl"))
    for program in ("zfs-fuse", "nbdkit", "nbdfuse"):
        assert not things.Daemon(program, str(folder)).there()


LIVES = """
import sys
from pathlib import Path
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.ram import Ram
from searchbench.places import Storage

home = Path(sys.argv[1]) / "point"
home.mkdir()
with Ledger() as made:
    Ram(Storage(name="ram", kind="ram", size_bytes=1 << 20), made, home).make()
    print("made", flush=True)
    import time
    while not (home.parent / "end").exists():
        time.sleep(0.01)
"""


def test_what_a_living_process_has_made_is_not_touched(home: Path) -> None:
    needs("ram")
    process = child(LIVES, str(home), folder=home)
    assert process.stdout is not None
    assert process.stdout.readline() == b"made\n"
    assert clean() == ledger.Cleaned(live=(process.pid,))
    assert mounts.below(home) == [str(home / "point")]
    (home / "end").touch()
    assert process.wait(20) == 0
    process.stdout.close()
    assert mounts.below(home) == []
    assert clean() == ledger.Cleaned()


@pytest.fixture
def stranger(home: Path) -> Iterator[Path]:
    """Where somebody else mounts something; unmounted at the end."""
    yield home / "searchbench-work-of-a-test/index/on-0"
    for point in sorted(mounts.below(home), reverse=True):
        mounts.unmount(point)


def test_what_somebody_else_has_mounted_there_since_is_left_alone(
    home: Path, stranger: Path
) -> None:
    needs("ram", "memory", "cpu_share")
    pid, _ = killed("ram", 0, home)
    assert mounts.unmount(stranger) == ""
    subprocess.run(["mount", "-t", "tmpfs", "theirs", str(stranger)], check=True)
    (stranger / "theirs").write_text("precious")
    done = clean()
    assert any("theirs is mounted there, not ours" in why for why in done.left)
    assert any("is mounted in it" in why for why in done.left)
    assert (stranger / "theirs").read_text() == "precious"
    assert groups(pid) == [], "what is ours is undone all the same"
    assert mounts.unmount(stranger) == ""
    assert clean().left == ()
    assert_nothing_left(home, pid)


def test_a_loop_device_that_somebody_else_uses_since_is_left_alone(home: Path) -> None:
    needs("ext4", "memory", "cpu_share")
    pid, _ = killed("ext4", 0, home)
    point = home / "searchbench-work-of-a-test/index/on-0/mounted"
    found = mounts.at(point)
    assert found is not None
    assert mounts.unmount(point) == ""
    assert things.Loop(str(point.parent / "disk.img")).undo() == ""
    theirs = home / "theirs.img"
    theirs.write_bytes(bytes(1 << 20))
    subprocess.run(["losetup", found.source, str(theirs)], check=True)
    try:
        assert clean().left == ()
        assert loops_below(home) == [str(theirs)]
        assert groups(pid) == []
    finally:
        assert things.Loop(str(theirs)).undo() == ""


def test_no_tree_is_removed_across_a_mount(home: Path) -> None:
    needs("ram")
    tree = home / "searchbench-tree"
    (tree / "below/point").mkdir(parents=True)
    (tree / "file").touch()
    subprocess.run(["mount", "-t", "tmpfs", "theirs", str(tree / "below/point")], check=True)
    (tree / "below/point/theirs").write_text("precious")
    assert (
        mounts.remove_tree(tree) == f"{tree} was not removed: {tree}/below/point is mounted in it"
    )
    assert (tree / "below/point/theirs").read_text() == "precious"
    assert (tree / "file").exists()
    assert mounts.unmount(tree / "below/point") == ""
    assert mounts.remove_tree(tree) == ""
    assert not tree.exists()
    assert mounts.remove_tree(tree) == ""


def test_links_in_a_tree_are_removed_and_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    tree = tmp_path / "searchbench-tree"
    tree.mkdir()
    (tree / "to-folder").symlink_to(kept)
    (tree / "to-file").symlink_to(kept / "file")
    assert mounts.remove_tree(tree) == ""
    assert (kept / "file").exists()


def test_a_line_that_was_cut_short_stands_for_nothing_made(home: Path) -> None:
    tree = home / "searchbench-tree"
    tree.mkdir()
    with Ledger() as mine:
        mine.note(things.Tree(str(tree)))
        assert mine.path is not None
        text = mine.path.read_bytes()
        dead = mine.path.with_name("999999999-1-0.jsonl")
        dead.write_bytes(text + b'{"made": 2, "thing": {"type": "Lo')
        assert clean().undone == (f"folder {tree}",)
        assert not dead.exists()
        assert not tree.exists()


def test_a_ledger_tells_first_and_is_gone_when_all_is_undone(home: Path) -> None:
    with Ledger() as mine:
        assert not (home / "ledgers").exists()
        tree = home / "searchbench-tree"
        number = mine.note(things.Tree(str(tree)))
        assert mine.path is not None
        lines = [json.loads(line) for line in mine.path.read_text().splitlines()]
        assert lines[0]["pid"] == os.getpid()
        assert lines[1] == {"made": 1, "thing": {"type": "Tree", "path": str(tree)}}
        tree.mkdir()
        assert mine.undo(number) == []
        assert json.loads(mine.path.read_text().splitlines()[-1]) == {"undone": 1}
    assert not mine.path.exists()


def test_what_has_not_our_name_is_not_removed(home: Path) -> None:
    tree = home / "theirs"
    tree.mkdir()
    with Ledger() as mine:
        mine.note(things.Tree(str(tree)))
    assert tree.exists()
    assert "it does not have our name" in things.Group(("/sys/fs/cgroup/memory/theirs",)).undo()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("2026-11-23.jsonl", '{"query": "sugar"}\n{"query": "tea"}\n'),
        ("999999999-1-0.jsonl", '[{"made": 1}]\n'),
        ("999999999-1.jsonl", '{"boot": "b"}\n'),
        ("queries.jsonl", '{"boot": "b"}\n'),
        ("2026-11-22.jsonl", ""),
    ],
)
def test_a_file_beside_the_ledgers_that_is_none_is_left_alone(
    name: str, text: str, home: Path
) -> None:
    (home / "ledgers").mkdir()
    (home / "ledgers" / name).write_text(text)
    assert clean() == ledger.Cleaned()
    assert (home / "ledgers" / name).read_text() == text


def test_what_another_version_has_made_is_left_with_its_ledger(home: Path) -> None:
    def left(*rows: str) -> tuple[str, ...]:
        (home / "ledgers").mkdir(exist_ok=True)
        path = home / "ledgers/999999999-1-0.jsonl"
        path.write_text("\n".join(rows))
        done = clean()
        assert path.exists() == bool(done.left)
        return done.left

    later = '{"made": 3, "thing": {"type": "Moon", "phase": 2}}'
    (said,) = left('{"boot": "b"}', later, "")
    assert "names a Moon, which this version of searchbench does not know; run" in said
    assert left('{"boot": "b"}', later, '{"undone": 3}', "") == ()
    assert left('{"boot": "b"}', later[:30]) == (), "killed while it wrote"


NOT_OURS = ("searchbench-work-2023", "searchbench-work-999999999-notes", "searchbench-work-notes")


def test_only_the_private_folder_of_a_process_that_has_ended_is_removed(home: Path) -> None:
    work = home / "work"
    work.mkdir()
    for name in NOT_OURS:
        (work / name).mkdir()
        (work / name / "theirs").write_text("precious")
    dead = work / "searchbench-work-999999999-abcd_123"
    # As of a process of another container: its id is not seen here, and it has its folder locked.
    elsewhere = work / "searchbench-work-999999998-abcd_123"
    for path in (dead, elsewhere):
        path.mkdir()
    lock = os.open(elsewhere, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    kept = [*(work / name for name in NOT_OURS), elsewhere]
    try:
        with private(work) as ours:
            assert sorted(work.iterdir()) == sorted([*kept, ours])
            with private(work):
                assert ours.exists()
    finally:
        os.close(lock)
    assert sorted(work.iterdir()) == sorted(kept)
    with private(work):
        assert not elsewhere.exists()


HOLDS = """
import sys, time
from pathlib import Path
from searchbench.lab.conduct.studies import folder

with folder(Path(sys.argv[1])) as ours:
    print(ours, flush=True)
    time.sleep(60)
"""


def test_the_folder_of_a_process_whose_id_is_not_seen_from_here_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = child(HOLDS, str(home / "work"), folder=home)
    assert process.stdout is not None
    held = Path(process.stdout.readline().decode().strip())
    monkeypatch.setattr(psutil, "pid_exists", lambda pid: False)
    try:
        with private(home / "work"):
            assert held.is_dir()
    finally:
        process.kill()
        process.communicate(timeout=20)
    with private(home / "work"):
        assert not held.exists()
