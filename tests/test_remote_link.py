"""The supervisor of a host that ssh reaches, on this machine without ssh: it leaves nothing."""

from __future__ import annotations

import ast
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from placing import home
from searchbench.lab.fleet.machine import HERE
from searchbench.lab.place import ledger
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.remote import supervisor
from searchbench.lab.remote.files import pull, push
from searchbench.lab.remote.hosts import Links
from searchbench.lab.remote.left import Remote
from searchbench.lab.remote.link import HostError, Link
from searchbench.places import Host

__all__ = ["home"]

# Leaves its parent and its group twice, and spins for a while first.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("begun", flush=True)
        time.sleep(600)
    os._exit(0)
give_up = time.monotonic() + float(sys.argv[1])
while time.monotonic() < give_up:
    pass
time.sleep(600)
"""


def until(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    give_up = time.monotonic() + seconds
    while not true():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True


def naming(folder: Path) -> list[int]:
    """Processes that a supervisor below this folder has started, and itself."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), *process.environ().values(), process.cwd()]
        except (psutil.Error, OSError):
            continue
        ours = any(str(folder) in word for word in words) and process.pid != os.getpid()
        if ours and process.status() != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


@pytest.fixture
def far(home: Path) -> Iterator[Path]:
    """Where folders of ours are made on the host; none may be left."""
    folder = home / "far"
    folder.mkdir()
    yield folder
    assert until(lambda: not naming(folder)), naming(folder)
    assert until(lambda: not list(folder.iterdir())), list(folder.iterdir())
    assert ledger.clean().left == ()


@pytest.fixture
def links(home: Path, far: Path) -> Iterator[Links]:
    with Ledger() as made:
        found = Links(made)
        yield found
        assert found.close() == []
    assert made.problems == []
    assert not list((home / "ledgers").glob("*.jsonl")), "nothing is left to be undone"


def here(far: Path, **more: str) -> Host:
    return Host(name="north", ssh=HERE, folder=str(far), **more)  # type: ignore[arg-type]


def spinning(link: Link, run: Path, seconds: str = "600") -> int:
    """The daemon, started there; its id. Its second child is there too."""
    run.mkdir(exist_ok=True)
    (run / "p0.log").unlink(missing_ok=True)
    link.begin(run)
    link.ask("fresh", path="run")
    found = link.ask(
        "start", name="p0", argv=[sys.executable, "-c", DAEMON, seconds], env={"A": "b"},
        run="run", log="p0.log", path=[],
    )  # fmt: skip
    assert until(lambda: (run / "p0.log").exists()), "what it printed came back"
    return int(found["pid"])


def test_what_runs_there_is_seen_and_what_it_uses(links: Links, far: Path, tmp_path: Path) -> None:
    link = links.link(here(far))
    assert link.machine["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    pid = spinning(link, tmp_path / "run")
    assert psutil.Process(pid).environ()["A"] == "b"
    assert until(lambda: len([s for _, s in link.samples if s.get("cpu_s", 0) > 0.2]) > 3)
    last = link.samples[-1][1]
    assert last["processes"] >= 1
    assert last["rss_bytes"] > 1e6
    assert last["busy_s"] > last["cpu_s"]
    assert pid in link.ask("processes")["pids"]["p0"]
    assert (tmp_path / "run" / "p0.log").read_text() == "begun\n"
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: link.exits == {"p0": -signal.SIGKILL}), "its end comes back"


def test_stopped_there_is_no_daemon_left_and_the_next_can_start(
    links: Links, far: Path, tmp_path: Path
) -> None:
    link = links.link(here(far))
    for _ in range(2):
        pid = spinning(link, tmp_path / "run", "0")
        assert until(lambda: len(naming(far)) == 4), "guard, worker, the process and its daemon"
        link.ask("stop", how="SIGTERM", wait_s=5.0)
        assert not psutil.pid_exists(pid)
        # Our own end of it, the guard and the worker.
        assert until(lambda: len(naming(far)) == 2), naming(far)
        assert link.exits == {}, "what was stopped has not ended by itself"


def test_what_is_sent_is_of_python_3_8_and_imports_nothing_of_ours() -> None:
    tree = ast.parse(Path(supervisor.__file__).read_text(), feature_version=(3, 8))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import)
             for alias in node.names}  # fmt: skip
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


def guard_and_worker(link: Link) -> tuple[int, int]:
    worker = int(link.about["pid"])
    return psutil.Process(worker).ppid(), worker


@pytest.mark.parametrize("who", ["pipe", "worker", "guard", "terminated"])
def test_whatever_ends_takes_all_with_it(who: str, home: Path, far: Path, tmp_path: Path) -> None:
    with Ledger() as made:
        links = Links(made)
        link = links.link(here(far))
        spinning(link, tmp_path / "run")
        guard, worker = guard_and_worker(link)
        if who == "pipe":
            link.hang_up()
        else:
            how = signal.SIGTERM if who == "terminated" else signal.SIGKILL
            os.kill(guard if who in ("guard", "terminated") else worker, how)
        assert until(lambda: not naming(far)), naming(far)
        assert until(lambda: not list(far.iterdir()))
        assert until(lambda: bool(link.lost))
        with pytest.raises(HostError, match="host north: the connection to it was lost"):
            link.ask("processes")
        again = links.link(here(far))
        assert again is not link, "the next one makes another"
        assert again.ask("processes")["pids"] == {}
        assert links.close() == []


def test_what_is_left_if_both_are_killed_is_undone_by_the_ledger(
    home: Path, far: Path, tmp_path: Path
) -> None:
    made = Ledger()
    link = Links(made).link(here(far))
    spinning(link, tmp_path / "run")
    guard, worker = guard_and_worker(link)
    os.kill(guard, signal.SIGSTOP)  # so that it cannot act on the worker's end
    os.kill(worker, signal.SIGKILL)
    os.kill(guard, signal.SIGKILL)
    assert until(lambda: bool(link.lost))
    assert link.lost in link.close()
    assert naming(far), "the daemon is nobody's child any more"
    assert list(far.iterdir())
    (thing,) = made._things.values()
    assert isinstance(thing, Remote)
    assert thing.there()
    made.close()
    assert made.problems == []
    assert not thing.there()
    assert naming(far) == []


def test_a_silent_network_ends_it_too(
    home: Path, far: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(supervisor.__file__).read_text().replace("SILENCE_S = 30.0", "SILENCE_S = 1.5")
    assert "SILENCE_S = 1.5" in text
    (home / "quick.py").write_text(text)
    monkeypatch.setattr("searchbench.lab.remote.link._SOURCE", home / "quick.py")
    monkeypatch.setattr(Link, "_live", lambda self: None)
    with Ledger() as made:
        link = Links(made).link(here(far))
        spinning(link, tmp_path / "run")
        assert until(lambda: not naming(far)), "the pipe is open, and nobody says anything"
        assert until(lambda: bool(link.lost))
        link.close()


def test_files_cross_once_and_what_changed_crosses_again(
    links: Links, far: Path, tmp_path: Path
) -> None:
    link, own = links.link(here(far)), tmp_path / "own"
    (own / "deep").mkdir(parents=True)
    (own / "p0.spa").write_bytes(os.urandom(3 << 20))
    (own / "p1.spa").write_bytes(b"another part")
    (own / "deep" / "empty").touch()
    whole = (3 << 20) + 12
    assert push(link, own, "index") == whole
    there = Path(link.folder) / "index"
    assert (there / "p0.spa").read_bytes() == (own / "p0.spa").read_bytes()
    assert (there / "deep" / "empty").exists()
    assert push(link, own, "index") == 0
    (there / "p1.spa").write_bytes(b"changed there")
    (there / "p2.spl").touch()
    assert push(link, own, "index") == 12, "the index is the one that is here"
    assert not (there / "p2.spl").exists()
    assert push(link, own, "part", ["p1.*"]) == 12
    assert [path.name for path in (Path(link.folder) / "part").iterdir()] == ["p1.spa"]
    (there / "p1.spa").write_bytes(b"changed once more")
    (there / "p0.spa").unlink()
    assert pull(link, "index", own) == 17
    assert (own / "p1.spa").read_bytes() == b"changed once more"
    assert not (own / "p0.spa").exists()
    assert push(link, own, "index") == 0


def test_nothing_outside_of_its_folder_is_touched(links: Links, far: Path, tmp_path: Path) -> None:
    link = links.link(here(far))
    (tmp_path / "mine").write_text("mine")
    for path in ("../../mine", str(tmp_path / "mine")):
        with pytest.raises(HostError, match="is not below"):
            link.put(path, b"theirs")
        with pytest.raises(HostError, match="is not below"):
            link.ask("drop", path="", names=[path])
    assert (tmp_path / "mine").read_text() == "mine"
    assert supervisor.remove(str(tmp_path)).endswith("does not have our name")
    assert tmp_path.exists()


def test_its_address_is_known_by_a_word_that_only_it_was_told(links: Links, far: Path) -> None:
    assert 0 < links.link(here(far)).round_trip_s() < 1
    elsewhere = links.link(here(far, address="192.0.2.7"))
    with pytest.raises(HostError, match=r"192\.0\.2\.7 is not one of its addresses") as caught:
        elsewhere.round_trip_s()
    assert caught.value.key == "address"


@pytest.mark.parametrize(
    ("more", "key", "words"),
    [
        ({"folder": "/no/such/folder"}, "folder", "no folder can be made in /no/such/folder there"),
        ({"ssh": "north", "ssh_command": "no-such-ssh"}, "ssh_command", "cannot be started"),
        ({"address": "no such address"}, "address", "is not known here as an address"),
        ({"ssh": "a", "address": "127.0.0.1", "ssh_command": "sh -c 'echo Full >&2; exit 3'"},
         "ssh", "ended with exit code 3 .*: Full"),
        ({"ssh": "a", "address": "127.0.0.1", "ssh_command": "sh -c 'echo No >&2; exit 255'"},
         "ssh", "ssh failed: No; `ssh a` must work without a password"),
        ({"ssh": "a", "address": "127.0.0.1", "ssh_command": "sh -c 'exit 127'"},
         "ssh", "there is no python3 there"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_host_is_told_by_its_key(
    more: dict[str, str], key: str, words: str, links: Links, far: Path
) -> None:
    host = {"name": "north", "ssh": HERE, "folder": str(far), **more}
    with pytest.raises(HostError, match=words) as caught:
        links.link(Host(**host))  # type: ignore[arg-type]
    assert caught.value.key == key
