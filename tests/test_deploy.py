"""Services of several processes, with preparations, or that refuse root, from start to end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from searchbench.corpora.corpus import Schema
from searchbench.engines import defaults
from searchbench.engines.engine import Companion, Offline, Service
from searchbench.engines.null import Null
from searchbench.errors import LabError
from searchbench.lab.conduct.serve import Sentences, serving
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.system.logged import last_words
from searchbench.lab.system.names import Places

WAIT = "import sys, time; print('waiting on', *sys.argv[1:], flush=True); time.sleep(60)"


class Altered(Null):
    """The null host with something about its service changed."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes

    def service(self, params: Any, schema: Schema) -> Service:
        return replace(super().service(params, schema), **self.changes)


def started(engine: Null, place: Path) -> Deployment:
    return Deployment(engine, defaults(engine), place / "data", place / "run")


def companion(name: str, code: str = WAIT) -> Companion:
    return Companion(name, ("{python}", "-c", code, "{port}", "{port:b}", "{port:b}", "{port:c}"))


def test_companions_start_first_share_ports_and_end_with_it(tmp_path: Path) -> None:
    with started(Altered(companions=(companion("one"), companion("two"))), tmp_path) as running:
        assert len(running.processes) == 3
        assert running.processes[0] == running.process
        one, two = running.processes[1:]
        assert one.cmdline()[-4:] == two.cmdline()[-4:]
        port, b, again, c = one.cmdline()[-4:]
        assert b == again
        assert len({port, b, c}) == 3
        assert port == str(running.target[1])
        assert running.lives()
        two.kill()
        two.wait(5)
        assert not running.lives()
    _gone, alive = psutil.wait_procs(running.processes, timeout=5)
    assert alive == []


def test_a_companion_that_ends_while_starting_is_named_with_its_words(tmp_path: Path) -> None:
    broken = companion("second", "print('no room'); raise SystemExit(7)")
    slow = ("{python}", "-c", "import time; time.sleep(60)")
    with (
        pytest.raises(LabError, match=r"its second\), exit code 7: no room"),
        started(Altered(argv=slow, companions=(broken,)), tmp_path),
    ):
        pass


def test_first_commands_run_once_before_the_first_start(tmp_path: Path) -> None:
    count = ("sh", "-c", "echo once >> {run}/count; touch {data}/made")
    engine = Altered(first=(("mkdir", "-p", "{data}/sub"), count))
    for _ in range(2):
        with started(engine, tmp_path):
            pass
    assert (tmp_path / "run/count").read_text() == "once\n"
    assert (tmp_path / "data/sub").is_dir()


def test_a_first_command_that_fails_is_said_with_its_words(tmp_path: Path) -> None:
    engine = Altered(first=(("sh", "-c", "echo the disk is full; exit 3"),))
    with pytest.raises(LabError, match=r"exit code 3: the disk is full"), started(engine, tmp_path):
        pass


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    engine = Altered(companions=(Companion("agent", ("no-such-server", "{port}")),))
    with pytest.raises(LabError, match="no program 'no-such-server'"), started(engine, tmp_path):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="kernel: only root needs another identity")
def test_what_refuses_root_is_another_user_who_owns_its_files(tmp_path: Path) -> None:
    tell = "import os; open('{data}/id', 'w').write(f'{os.geteuid()} {os.stat(\"{data}\").st_uid}')"
    secret = tmp_path / "private"
    secret.mkdir(mode=0o700)
    engine = Altered(refuses_root=True, first=(("touch", "{data}/made"),))
    teller = Altered(
        refuses_root=True, companions=(Companion("teller", ("{python}", "-c", f"{tell}\n{WAIT}")),)
    )
    with started(engine, secret) as running:
        assert running.facts.version
    with started(teller, tmp_path / "other"):
        told = tmp_path / "other/data/id"
        give_up = time.monotonic() + 5
        while not told.exists() or not told.read_text():
            assert time.monotonic() < give_up
            time.sleep(0.02)
    assert told.read_text() == "65534 65534"


@pytest.mark.parametrize("refuses_root", [False, True])
def test_all_of_it_ends_when_we_are_killed(tmp_path: Path, refuses_root: bool) -> None:
    code = f"""
    import sys, time
    from pathlib import Path
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    from test_deploy import Altered, companion, started
    engine = Altered(refuses_root={refuses_root}, companions=(companion("one"),))
    with started(engine, Path({str(tmp_path)!r})) as d:
        print(*(p.pid for p in d.processes), flush=True)
        time.sleep(60)
    """
    ours = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert ours.stdout is not None
    pids = [int(pid) for pid in ours.stdout.readline().split()]
    assert len(pids) == 2
    os.kill(ours.pid, signal.SIGKILL)
    ours.communicate()
    give_up = time.monotonic() + 5
    while any(lives(pid) for pid in pids):
        assert time.monotonic() < give_up, "a server outlived us"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


class Made(Null):
    """The null host, its index made beforehand by a program."""

    def __init__(self, *commands: tuple[str, ...]) -> None:
        self.commands = commands

    def offline(self, schema: Schema, params: Any) -> Offline:
        return Offline(self.commands, {"conf/index.conf": "from {batches} to {data}"})


def test_an_offline_index_is_made_from_the_batches_before_the_start(tmp_path: Path) -> None:
    copy = ("sh", "-c", "cp {batches} {data}/index && cp {run}/conf/index.conf {data}/")
    engine = Made(copy)
    with serving(engine, defaults(engine), Sentences(), tmp_path) as (_running, done):
        assert done.documents == 4
        assert done.seconds > 0
    data = tmp_path / "data"
    assert (data / "index").read_bytes() == (tmp_path / "batches").read_bytes()
    assert (data / "index.conf").read_text() == f"from {tmp_path / 'batches'} to {data}"


def test_an_offline_index_that_fails_says_why(tmp_path: Path) -> None:
    engine = Made(("sh", "-c", "echo line 3: what is this >&2; exit 1"))
    with (
        pytest.raises(LabError, match=r"line 3: what is this") as raised,
        serving(engine, defaults(engine), Sentences(), tmp_path),
    ):
        pass
    assert raised.value.stage == "ingest"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "d", tmp_path / "r", 1234)


def test_names_that_are_none_stay_as_they_are(places: Places) -> None:
    assert places.fill('{"a": {port}, "b": {nothing}}') == '{"a": 1234, "b": {nothing}}'
    assert places.fill("{port:x}") == places.fill("{port:x}") != places.fill("{port:y}")


def test_of_a_server_that_ended_its_last_errors_are_quoted_and_not_the_pages_below(
    tmp_path: Path,
) -> None:
    log = tmp_path / "server.log"
    before = "ERROR before it was ready\nready\n"
    log.write_text(before)
    since = log.stat().st_size
    assert last_words(log, since) == "ERROR before it was ready | ready", "it said nothing more"
    crash = "[Note] asked\n\n[ERROR] a page is bad\n[ERROR] got signal 6\nSorry\n"
    limits = "".join(f"limit {n}\n" for n in range(40))
    log.write_text(before + crash + limits)
    said = "[ERROR] a page is bad | [ERROR] got signal 6 | Sorry"
    assert last_words(log, since) == said
    log.write_text(before + "one\ntwo\n")
    assert last_words(log, since) == "one | two"
    assert last_words(tmp_path / "none", 0) == ""
