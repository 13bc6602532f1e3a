"""Studies with agents on hosts, from end to end, on a real Sphinx; with effects taken away."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from placing import child, groups, home, needs
from searchbench.analysis.judge import judge
from searchbench.cli import app
from searchbench.engines import ENGINES
from searchbench.lab.get.install import missing
from searchbench.lab.place import abilities, ledger
from searchbench.lab.place.group import Group
from searchbench.lab.system import deploy
from searchbench.measure.run import run as measure
from searchbench.record import Record
from searchbench.record.trial import Trial
from searchbench.report.write import write_report
from test_place_hosts import names
from test_place_study import study

__all__ = ["home"]

pytestmark = pytest.mark.slow

HOSTS = """
[hosts.north]
cores = [0]
cpu_share = 0.4
[hosts.south]
cores = [0]
cpu_share = 0.2
[systems.sphinx]
agents = ["north", "south"]
"""


@pytest.fixture(autouse=True)
def _here() -> None:
    needs("hosts", "cpu_share")
    if lacking := missing(ENGINES["sphinx"]):
        pytest.skip(f"no Sphinx here: {lacking}")


def ran(home: Path, rest: str) -> Record:
    record = measure(study(home, rest), home / "record", work=home / "work")
    assert names() == []
    assert groups() == []
    assert ledger.clean() == ledger.Cleaned()
    return record


def failed(home: Path, rest: str = HOSTS) -> Trial:
    (trial,) = ran(home, rest).trials
    assert (trial.status, trial.stage) == ("failed", "place")
    return trial


def test_agents_are_on_their_hosts_and_each_is_asked_alone_first(home: Path) -> None:
    record = ran(home, HOSTS + "parts_by_agent = [1, 2]\n")
    (trial,) = record.trials
    assert trial.reason == ""
    levers = {lever.name: lever for lever in trial.place}
    keys = [f"hosts.{host}{key}" for host in ("north", "south")
            for key in ("", ".cpu_share", ".cores")]  # fmt: skip
    assert {name: lever.problem for name, lever in levers.items()} == dict.fromkeys(keys, "")
    assert levers["hosts.north"].figures["processes"] == 1
    assert [(each.host, each.agent, each.parts, each.failed) for each in trial.hosts] == [
        ("north", "p0", 1, 0), ("south", "p1", 2, 0),
    ]  # fmt: skip
    assert all(each.answered > 0 and each.per_s > 0 for each in trial.hosts)
    assert trial.phases["calibrate"] > 3
    (config,) = (text for name, text in trial.service.files.items() if name == "sphinx.conf")
    assert "agent = {address:p1}:{port:p1}:p1,p2" in config
    assert trial.answers_under_load is not None
    assert trial.answers_under_load.changed == 0
    links = {link.name for link in trial.host_window.links}
    assert any(name.startswith("sb") for name in links), "the bridge carried it"
    report = write_report(record, judge(record), home / "report")
    page = report.html.read_text()
    sheet = next(path for path in report.csv if path.stem == "trials").read_text()
    assert "alone_rate_p1_at_south" in sheet, "what the page shows is in the tables too"
    assert "Which host governs is not resolved" in page, "one trial shows nothing"


def test_the_server_that_is_asked_may_be_on_a_host_too(home: Path) -> None:
    rest = '[hosts.hub]\n[hosts.north]\n[places.p]\nhost = "hub"\n[systems.sphinx]\n'
    (trial,) = ran(home, rest + 'part_kind = "mixed"\nagents = "north"\n').trials
    assert trial.reason == ""
    assert [each.host for each in trial.hosts] == ["north"]
    processes = {v.name: v.figures.get("processes") for v in trial.place}
    assert processes == {"hosts.hub": 1, "hosts.north": 1}


@pytest.mark.parametrize("server", ["groonga", "httpd"])
def test_an_engine_without_agents_may_be_on_a_host(home: Path, server: str) -> None:
    if lacking := missing(ENGINES["groonga"]):
        pytest.skip(f"no Groonga here: {lacking}")
    rest = '[hosts.far]\ncpu_share = 0.8\n[places.p]\nhost = "far"\ncold = "trial"\n'
    (trial,) = ran(home, rest + f'[systems.groonga]\nserver = "{server}"\n').trials
    assert trial.reason == ""
    levers = {v.name: v for v in trial.place}
    assert {name: v.problem for name, v in levers.items()} == dict.fromkeys(
        ("places.p.cold", "hosts.far", "hosts.far.cpu_share"), ""
    )
    assert levers["hosts.far"].figures["processes"] >= 1
    assert trial.hosts == [], "there is no agent to be asked alone"


def test_agents_of_two_levels_are_on_hosts_and_the_one_between_where_the_server_is(
    home: Path,
) -> None:
    (trial,) = ran(home, HOSTS + "parts_by_agent = 2\nlevels = 2\n").trials
    assert trial.reason == ""
    assert trial.facts.documents == 3000
    assert [each.parts for each in trial.hosts] == [2, 2]


def test_an_agent_outside_of_its_namespace_is_the_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = deploy.in_child
    monkeypatch.setattr(
        deploy, "in_child", lambda cpus, joins=(), namespace=None: real(cpus, joins)
    )
    assert failed(home).reason.endswith("is not in the network namespace of host north")


def test_an_agent_outside_of_its_group_is_the_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = deploy.in_child
    monkeypatch.setattr(
        deploy, "in_child", lambda cpus, joins=(), namespace=None: real(cpus, (), namespace)
    )
    assert failed(home).reason.endswith("is not in the control group of host north")


def test_a_share_that_does_not_take_is_the_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Group, "share_cpu", lambda self, cores: None)
    reason = failed(home).reason
    assert reason.startswith(
        "the lever hosts.north.cpu_share did not take effect: 0.4 was asked for; "
    )


KILLED = """
import os, signal, sys, threading, time
from pathlib import Path
from searchbench.lab.conduct.watch import Silence
from searchbench.measure.run import run

class Killer(Silence):
    def stage(self, name):
        if name == sys.argv[3]:
            def kill():
                while not list(Path("/sys/class/net").glob(f"sb{os.getpid()}-*")):
                    time.sleep(0.002)
                os.kill(os.getpid(), signal.SIGKILL)
            threading.Thread(target=kill, daemon=True).start()

run(Path(sys.argv[1]), Path(sys.argv[2]), watch=Killer(), work=Path(sys.argv[2]).parent / "work")
"""


@pytest.mark.parametrize("phase", ["place", "calibrate", "drive"])
def test_killed_it_leaves_no_network_after_the_next_start(home: Path, phase: str) -> None:
    path = study(home, HOSTS)
    process = child(KILLED, str(path), str(home / "record"), phase, folder=home)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, out.decode()
    assert names(process.pid)
    assert ledger.clean().left == ()
    assert names(process.pid) == []
    assert groups(process.pid) == []


def test_what_a_machine_lacks_for_hosts_is_named_before_the_first_minute(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = "[hosts.far]\ndelay_ms = 5\ncores = [4096]\n[systems.sphinx]\nagents = 'far'\n"
    path, kept = study(home, rest), str(home / "record")
    with pytest.raises(Exception, match="host far: `cores` has core 4096, but this machine lets"):
        app(["run", str(path), "--record", kept])
    real = abilities.run

    def without(program: str, *arguments: str, **more: object) -> tuple[int, str]:
        if "netem" in arguments:
            return 2, "Error: Specified qdisc kind is unknown."
        return real(program, *arguments)

    monkeypatch.setattr(abilities, "run", without)
    with pytest.raises(Exception, match=r"host far: delay: this kernel has no netem: .*; "
                                        "leave out `delay_ms`"):  # fmt: skip
        app(["run", str(path), "--record", kept])
    monkeypatch.setattr(abilities, "_may", lambda _: False)
    with pytest.raises(Exception, match="host far: hosts: only root may make network namespaces"):
        app(["run", str(path), "--record", kept])
    assert not Path(kept).exists()
