"""Studies with agents and servers on hosts that ssh reaches: real sshds in namespaces, real Sphinx.

The controlling machine is the namespace ``hub`` of ``namespaces.py``; a thread of ours, or a child,
is in it. Longer tests are about what becomes of a host when somebody dies.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from namespaces import CLIENTS, World, world
from placing import SOURCES, home
from searchbench.analysis.judge import judge
from searchbench.cli import app
from searchbench.engines import ENGINES
from searchbench.errors import StudyError
from searchbench.lab.conduct.watch import Silence
from searchbench.lab.get.install import missing
from searchbench.lab.place import abilities, ledger
from searchbench.lab.remote import supervisor
from searchbench.lab.remote.link import Link
from searchbench.measure.run import run as measure
from searchbench.record import Record, open_record
from searchbench.report.write import write_report
from test_place_study import study
from test_remote_link import naming, until

__all__ = ["home"]

pytestmark = pytest.mark.slow

T = TypeVar("T")
AGENTS = """
[systems.sphinx]
agents = ["north", "south"]
parts_by_agent = [1, 2]
"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if lacking := missing(ENGINES["sphinx"]):
        pytest.skip(f"no Sphinx here: {lacking}")
    with world(tmp_path_factory.mktemp("machines")) as made:
        yield made


@pytest.fixture
def far(home: Path) -> Iterator[Path]:
    """Where the folders of hosts are made; nothing may be left there, nor in the ledger."""
    folder = home / "far"
    folder.mkdir()
    yield folder
    assert until(lambda: not naming(folder)), naming(folder)
    assert until(lambda: not list(folder.iterdir())), list(folder.iterdir())


def hosts(machines: World, far: Path, north: str = "", south: str = "") -> str:
    """The tables of both hosts; ``north``, ``south``: further keys."""
    own = f'ssh_command = "ssh -F {machines.config}"\nfolder = "{far}"\n'
    return (
        f'[hosts.north]\nssh = "north"\n{own}{north}\n[hosts.south]\nssh = "south"\n{own}{south}\n'
    )


def in_hub(machines: World, work: Callable[[], T]) -> T:
    """What ``work`` gives or raises, done by a thread in the hub."""

    def tried() -> tuple[T | None, BaseException | None]:
        try:
            return work(), None
        except BaseException as error:
            return None, error

    found, error = machines.within("hub", tried)
    if error is not None:
        raise error
    assert found is not None
    return found


def ran(machines: World, home: Path, rest: str) -> Record:
    path = study(home, rest)
    found = in_hub(machines, lambda: measure(path, home / "record", work=home / "work"))
    assert ledger.clean() == ledger.Cleaned(), "nothing is left on any machine"
    return found


def test_agents_run_on_their_machines_and_the_page_shows_what_they_used(
    machines: World, home: Path, far: Path
) -> None:
    record = ran(machines, home, hosts(machines, far) + AGENTS)
    (trial,) = record.trials
    assert trial.reason == ""
    levers = {lever.name: lever for lever in trial.place}
    assert {name: lever.problem for name, lever in levers.items()} == {
        "hosts.north": "", "hosts.south": "",
    }  # fmt: skip
    assert levers["hosts.north"].figures["processes"] == 1
    assert 0 < levers["hosts.north"].figures["round_trip_s"] < 1
    assert "is its own" in levers["hosts.north"].effect
    assert "it is this machine by its boot id" in levers["hosts.north"].read_back
    assert "`searchd --help` says Sphinx" in levers["hosts.south"].effect
    assert [(each.host, each.agent, each.parts, each.failed) for each in trial.hosts] == [
        ("north", "p0", 1, 0), ("south", "p1", 2, 0),
    ]  # fmt: skip
    assert all(each.answered > 0 for each in trial.hosts)
    north, south = trial.elsewhere
    assert (north.address, south.address) == (CLIENTS["north"], CLIENTS["south"])
    for each in trial.elsewhere:
        assert each.processes == 1
        assert each.cpu_s is not None
        assert each.cpu_s > 0
        assert each.peak_rss_bytes is not None
        assert each.peak_rss_bytes > 1e6
        assert each.this_machine
    assert trial.answers_under_load is not None
    assert trial.answers_under_load.changed == 0
    assert trial.facts.documents == 3000
    (note,) = [n for n in trial.notes if n.kind == "hosts are one machine"]
    assert note.number == "this machine and north and south"
    logs = home / "record" / "trials" / trial.trial
    assert any("p1" in path.name for path in logs.parent.rglob("*.log")), "what it printed is kept"
    report = write_report(record, judge(record), home / "report")
    page = report.html.read_text()
    assert "These hosts are machines reached by ssh" in page
    sheet = next(path for path in report.csv if path.stem == "trials").read_text()
    assert "cores_in_use_at_south" in sheet


def test_each_host_gets_the_files_of_its_own_parts_once(
    machines: World, home: Path, far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, str]] = []
    real = Link.put

    def put(self: Link, path: str, file: Path | bytes) -> None:
        sent.append((self.host.name, path))
        real(self, path, file)

    monkeypatch.setattr(Link, "put", put)
    record = ran(machines, home, hosts(machines, far) + AGENTS)
    assert [trial.reason for trial in record.trials] == [""]
    files = [(host, Path(path).name) for host, path in sent if path.startswith("index")]
    assert {name.split(".")[0] for host, name in files if host == "north"} == {"p0"}
    assert {name.split(".")[0] for host, name in files if host == "south"} == {"p1", "p2"}
    assert len(files) == len(set(files)), "two deployments, and each file was sent once"


@pytest.mark.parametrize("index", ["per-block", "per-trial"])
def test_a_server_may_be_there_and_its_index_comes_back(
    machines: World, home: Path, far: Path, index: str
) -> None:
    if lacking := missing(ENGINES["groonga"]):
        pytest.skip(f"no Groonga here: {lacking}")
    rest = f'{hosts(machines, far).partition("[hosts.south]")[0]}[places.p]\nhost = "north"\n'
    rest += f'[systems.groonga]\n[ingest]\nindex = "{index}"\n'
    (trial,) = ran(machines, home, rest).trials
    assert trial.reason == ""
    (north,) = trial.elsewhere
    assert north.cpu_s is not None
    assert north.cpu_s > 0
    assert trial.server.cpu_s == 0, "nothing of it is on this machine"
    assert trial.service.cpus == []
    assert trial.ingest is not None
    assert trial.ingest.index_bytes is not None
    assert trial.ingest.index_bytes > 100_000
    assert trial.facts.documents == 3000


def test_a_server_there_asks_an_agent_on_another(machines: World, home: Path, far: Path) -> None:
    rest = hosts(machines, far) + '[places.p]\nhost = "north"\n'
    rest += '[systems.sphinx]\nagents = "south"\npart_kind = "mixed"\n'
    (trial,) = ran(machines, home, rest).trials
    assert trial.reason == ""
    assert [each.processes for each in trial.elsewhere] == [1, 1]
    assert trial.answers_under_load is not None
    assert trial.answers_under_load.changed == 0


class Loses(Silence):
    """Ends the ssh to north once the drive has begun, in the first trial."""

    def __init__(self, far: Path) -> None:
        self.far, self.done = far, False

    def stage(self, name: str) -> None:
        if name == "drive" and not self.done:
            self.done = True
            threading.Timer(0.2, self.cut).start()

    def cut(self) -> None:
        for pid in naming(self.far):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:  # it has ended meanwhile
                continue
            if words[0] == b"ssh" and b"north" in words:
                os.kill(pid, signal.SIGKILL)


def test_a_lost_connection_fails_the_trial_and_the_study_goes_on(
    machines: World, home: Path, far: Path
) -> None:
    path = study(home, hosts(machines, far) + AGENTS)
    text = path.read_text().replace("replicates = 1", "replicates = 2")
    path.write_text(text.replace("seconds = 0.4", "seconds = 4"))
    watch = Loses(far)
    record = in_hub(machines, lambda: measure(
        path, home / "record", work=home / "work", watch=watch
    ))  # fmt: skip
    assert watch.done
    first, second = record.trials
    assert (first.status, first.stage) == ("failed", "drive")
    assert first.reason.startswith("host north: the connection to it was lost (ssh's exit code ")
    assert first.drive is not None
    assert first.drive.elapsed_ns < 3.5e9, "it did not go on to the end"
    assert len(record.samples(first.trial)) > 0, "what was measured until then is kept"
    assert second.reason == ""
    assert ledger.clean() == ledger.Cleaned()


KILLED = """
import os, signal, sys, threading, time
from pathlib import Path
from searchbench.lab.conduct.watch import Silence
from searchbench.measure.run import run

class Killer(Silence):
    def stage(self, name):
        if name == sys.argv[3]:
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()

run(Path(sys.argv[1]), Path(sys.argv[2]), watch=Killer(), work=Path(sys.argv[2]).parent / "work")
"""


@pytest.mark.parametrize("phase", ["deploy", "calibrate", "drive"])
def test_killed_in_the_middle_it_leaves_no_process_and_no_folder_there(
    machines: World, home: Path, far: Path, phase: str
) -> None:
    path = study(home, hosts(machines, far) + AGENTS)
    path.write_text(path.read_text().replace("seconds = 0.4", "seconds = 5"))
    argv = ["ip", "netns", "exec", machines.names["hub"], sys.executable, "-c", KILLED,
            str(path), str(home / "record"), phase]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(argv, env=env, cwd=home, capture_output=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    # By the hosts themselves: nobody has looked at the ledger.
    assert until(lambda: not naming(far)), naming(far)
    assert until(lambda: not list(far.iterdir()))
    assert not (home / "record" / "trials").exists() or not open_record(home / "record").trials
    assert in_hub(machines, lambda: ledger.clean().left) == ()


@pytest.mark.parametrize(
    ("north", "at", "words"),
    [
        ('address = "10.77.0.77"', "address = ", "10.77.0.77 is not one of its addresses"),
        ('address = "10.77.0.3"', "address = ", "10.77.0.3 is not one of its addresses"),
        ("", "ssh_command = ", "cannot be started"),
        ("", "folder = ", "no folder can be made in "),
    ],
)
def test_what_is_wrong_with_a_host_is_told_at_its_key(
    machines: World, home: Path, far: Path, north: str, at: str, words: str
) -> None:
    text = hosts(machines, far, north)
    if not north:
        old = {"ssh_command = ": f"ssh -F {machines.config}", "folder = ": str(far)}[at]
        text = text.replace(f'{at}"{old}"', f'{at}"/no/such/thing"', 1)
    path = study(home, text + AGENTS)
    with pytest.raises(StudyError) as caught:
        in_hub(machines, lambda: measure(path, home / "record", work=home / "work"))
    [complaint] = caught.value.complaints
    line = path.read_text().splitlines()[complaint.line - 1]
    assert line.startswith(at)
    assert complaint.column == len(at) + 1
    assert words in complaint.message
    assert not (home / "record" / "record.json").exists()


OTHER = """#!/bin/sh
case "$1" in --help) echo "Sphinx 2.3.1-id64-beta";; *) exec /usr/bin/searchd "$@";; esac
"""


def test_another_version_and_a_host_that_is_silent_are_told_before_the_first_minute(
    machines: World, home: Path, far: Path
) -> None:
    other = home / "bin"
    other.mkdir()
    (other / "searchd").write_text(OTHER)
    (other / "searchd").chmod(0o755)
    text = hosts(machines, far, f'path = "{other}"').replace('ssh = "south"', 'ssh = "nobody"')
    path = study(home, text.replace('"nobody"', '"south"') + AGENTS)
    with pytest.raises(StudyError) as caught:
        in_hub(machines, lambda: measure(path, home / "record", work=home / "work"))
    [complaint] = caught.value.complaints
    assert "`searchd --help` says 'Sphinx 2.3.1-id64-beta' there, and 'Sphinx 2." in str(complaint)
    assert path.read_text().splitlines()[complaint.line - 1].startswith("path = ")
    silent = study(home, text.replace(f'path = "{other}"', "") + 'address = "10.77.0.3"\n' + AGENTS)
    with pytest.raises(StudyError) as caught:
        in_hub(machines, lambda: measure(silent, home / "record", work=home / "work"))
    [complaint] = caught.value.complaints
    assert "host south: ssh failed: " in str(complaint)
    assert "`ssh nobody` must work without a password" in str(complaint)
    assert silent.read_text().splitlines()[complaint.line - 1] == 'ssh = "nobody"'


def test_a_check_asks_no_host(
    home: Path, far: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '[hosts.north]\nssh = "north"\nssh_command = "no-such-ssh"\n[systems.sphinx]\n'
    path = study(home, text + 'agents = "north"\n')
    monkeypatch.setattr(Link, "open", lambda self: pytest.fail("a host was asked"))
    assert not app(["check", str(path)])
    assert "ssh" not in capsys.readouterr().err
    usual = path.read_text().replace('ssh_command = "no-such-ssh"\n', "")
    path.write_text(usual)
    monkeypatch.setattr(abilities, "program", lambda name: None if name == "ssh" else "/bin/true")
    with pytest.raises(Exception, match="host north: ssh: ssh is not installed; apt-get install"):
        app(["run", str(path), "--record", str(home / "record")])
    assert not app(["places"])
    assert "ssh: ssh is not installed; apt-get install openssh-client" in capsys.readouterr().out


def test_a_network_that_goes_silent_is_a_lost_connection(
    machines: World, home: Path, far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(supervisor.__file__).read_text().replace("SILENCE_S = 30.0", "SILENCE_S = 6.0")
    (home / "quick.py").write_text(text)
    monkeypatch.setattr("searchbench.lab.remote.link._SOURCE", home / "quick.py")

    def cable(state: str) -> None:
        argv = ["ip", "-n", machines.names["hub"], "link", "set", "south", state]
        subprocess.run(argv, check=True)

    class Unplugs(Silence):
        done = False

        def stage(self, name: str) -> None:
            if name == "drive" and not self.done:
                self.done = True
                threading.Timer(0.2, cable, ("down",)).start()

    told = hosts(machines, far).replace("ssh -F", "ssh -o ServerAliveInterval=1 -F")
    path = study(home, told + AGENTS)
    # Far longer than ssh takes to notice.
    path.write_text(path.read_text().replace("seconds = 0.4", "seconds = 120"))
    try:
        record = in_hub(machines, lambda: measure(
            path, home / "record", work=home / "work", watch=Unplugs()
        ))  # fmt: skip
        (trial,) = record.trials
        assert trial.status == "failed"
        assert "host south: the connection to it was lost" in trial.reason
        assert trial.drive is not None
        assert trial.drive.elapsed_ns < 100e9, "the drive was cut short"
        assert until(lambda: not naming(far), 45), "the host has ended it by itself"
    finally:
        cable("up")
    assert in_hub(machines, lambda: ledger.clean().left) == ()
