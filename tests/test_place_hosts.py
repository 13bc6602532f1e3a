"""Hosts: network namespaces that are made, known by their effect, and gone whatever happens."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from placing import child, groups, home, made, needs
from searchbench.errors import LabError
from searchbench.lab.place import ledger, net, nets
from searchbench.lab.place.hosts import Hosts
from searchbench.lab.place.ledger import Ledger, clean
from searchbench.lab.place.net import Network
from searchbench.lab.place.things import run
from searchbench.lab.system.seat import Seat, in_child
from searchbench.places import Cores, Host

__all__ = ["home", "made"]

NORTH, SOUTH = Host(name="north"), Host(name="south")
PORT = 4711  # in a namespace of ours all are free


def names(pid: int | None = None) -> list[str]:
    """Namespaces and network devices that a process has made; None: this one."""
    number = os.getpid() if pid is None else pid
    spaces = [p.name for p in Path("/run/netns").glob(f"searchbench-{number}-*")]
    return [*spaces, *(p.name for p in Path("/sys/class/net").glob(f"sb{number}-*"))]


def started(seat: Seat, *argv: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        preexec_fn=in_child(seat.cpus, seat.joins, seat.namespace),
    )  # fmt: skip


def answered(address: tuple[str, int]) -> socket.socket:
    """A connection, as soon as something listens there."""
    give_up = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(address, timeout=5)
        except ConnectionRefusedError:
            assert time.monotonic() < give_up
            time.sleep(0.02)


def test_a_host_is_reached_by_our_bridge_and_nothing_leads_out_of_it(made: Ledger) -> None:
    needs("hosts")
    network = Network([NORTH, SOUTH], made)
    network.make()
    levers = {lever.name: lever for lever in network.levers()}
    assert {name: lever.problem for name, lever in levers.items()} == {
        "hosts.north": "", "hosts.south": "",
    }  # fmt: skip
    assert 0 < levers["hosts.north"].figures["round_trip_s"] < 1
    address = network.address("north")
    code, away = run("ip", "netns", "exec", network.namespace("north").name,
                     "ip", "route", "get", "192.0.2.1")  # fmt: skip
    assert code, away
    bridge = Path("/proc/sys/net/ipv4/conf") / levers["hosts.north"].read_back.split()[-1]
    assert (bridge / "forwarding").read_text().strip() == "0"
    seat = Seat(address=address, namespace=network.namespace("north"), host="north")
    code = f"import socket; socket.create_server(({address!r}, {PORT})).accept()"
    server = started(seat, sys.executable, "-c", code)
    assert network.strangers("north", [server.pid]) == []
    assert network.strangers("south", [server.pid]) == [server.pid]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((network.address("south"), PORT), timeout=5)
    with answered((address, PORT)) as there:
        assert there.getpeername()[0] == address
    assert server.wait(5) == 0
    assert network.remove() == []
    assert names() == []


def test_a_range_that_routes_lead_to_is_left_alone(
    made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def routes(*taken: str) -> None:
        monkeypatch.setattr(net, "_lines", lambda *_: [f"{each} dev eth9" for each in taken])

    routes("default via 192.0.2.1", "10.213.0.0/17", "10.213.128.0/18", "10.213.192.5")
    first = net._addresses(2)
    assert int(first[0].split(".")[2]) > 192
    assert [each.split(".")[3] for each in first] == ["1", "2", "3"]
    routes("10.0.0.0/8")
    with pytest.raises(
        LabError, match=r"from 10\.213\.0\.0/16, and this machine has routes to all"
    ):
        net._addresses(2)


def test_a_route_that_leads_out_is_noticed(made: Ledger) -> None:
    needs("hosts")
    network = Network([NORTH], made)
    network.make()
    space, own = network.namespace("north").name, network.address("north").rpartition(".")[0]
    assert run("ip", "-n", space, "route", "add", "default", "via", f"{own}.1")[0] == 0
    (lever,) = network.levers()
    assert lever.problem.startswith("a route leads out of it: default via ")


def test_a_host_that_is_not_there_is_noticed(made: Ledger) -> None:
    needs("hosts")
    network = Network([NORTH], made)
    network.make()
    assert run("ip", "-n", network.namespace("north").name, "link", "set", "eth0", "down")[0] == 0
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setattr(net, "_PATIENCE_S", 0.2)
        (lever,) = network.levers()
    assert lever.problem == f"{network.address('north')} does not answer"


def test_a_delay_that_does_not_take_is_noticed(
    made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("hosts")
    monkeypatch.setattr(Network, "_slow", lambda self, space, delay_ms: None)
    network = Network([Host(name="far", delay_ms=5.0)], made)
    network.make()
    _, delay = network.levers()
    assert (delay.name, delay.read_back) == ("hosts.far.delay_ms", "no delay")
    assert delay.problem.endswith(" ms, which is less than the delay")


def test_a_delay_is_what_a_round_trip_takes_longer(made: Ledger) -> None:
    needs("hosts", "delay")
    network = Network([Host(name="far", delay_ms=5.0)], made)
    network.make()
    _, delay = network.levers()
    assert delay.problem == ""
    assert 0.0049 < delay.figures["round_trip_s"] < 0.02


def test_each_host_has_its_own_share_cores_and_memory(made: Ledger) -> None:
    needs("hosts", "cpu_share", "memory")
    slow = Host(name="slow", cpu_share=0.2, cores=(0,), memory_bytes=64_000_000)
    hosts = Hosts([slow, NORTH], Cores((0,), ()), made)
    hosts.confine()
    quiet = started(hosts.seat(NORTH), "sleep", "600")
    burning = started(hosts.seat(slow), "sh", "-c", "while :; do :; done")
    hosts.loaded({"north": [quiet.pid], "slow": [burning.pid]})
    with pytest.raises(subprocess.TimeoutExpired):
        burning.wait(0.6)
    hosts.driven()
    levers = {lever.name: lever for lever in hosts.levers}
    assert list(levers) == ["hosts.slow", "hosts.north", "hosts.slow.cpu_share",
                            "hosts.slow.memory", "hosts.slow.cores"]  # fmt: skip
    assert [lever.problem for lever in levers.values()] == [""] * 5
    assert levers["hosts.slow.cpu_share"].figures["used_share"] < 0.25
    assert levers["hosts.slow.memory"].figures["limit_bytes"] == pytest.approx(64e6, abs=4096)
    assert hosts.leave() == []
    assert (burning.wait(5), quiet.wait(5)) == (-signal.SIGKILL, -signal.SIGKILL)
    assert names() == []
    assert groups() == []


def test_a_process_outside_of_its_namespace_is_noticed(made: Ledger) -> None:
    needs("hosts")
    hosts = Hosts([NORTH, SOUTH], Cores(), made)
    hosts.confine()
    outside = started(Seat(), "sleep", "600")
    with pytest.raises(LabError, match=rf"process {outside.pid} of the system is not in the "
                                       "network namespace of host south"):  # fmt: skip
        hosts.loaded({"south": [outside.pid]})
    outside.kill()
    outside.wait()


def test_hosts_that_have_more_of_a_core_than_there_is_are_noted(made: Ledger) -> None:
    def noted(*shares: float, cores: Sequence[int] = (0,)) -> list[str]:
        several = [
            Host(name=f"h{n}", cpu_share=share, cores=tuple(cores))
            for n, share in enumerate(shares)
        ]
        return [note.number for note in Hosts(several, Cores((0, 1)), made).notes]

    assert noted(0.5, 0.5) == []
    assert noted(0.3, 0.3, 0.3) == []
    assert noted(1.0) == []
    assert noted(0.6, 0.5) == ["110% of core 0"]
    assert noted(1.0, 1.0, cores=(0, 1)) == ["200% of core 0"]


# Makes a network with a process in it; ends itself without a word when that number of things is
# written down and the last of them not made, or when all are made.
KILLED = """
import os, signal, subprocess, sys
from searchbench.lab.place import ledger
from searchbench.lab.place.net import Network
from searchbench.lab.system.seat import in_child
from searchbench.places import Host

noted, real = [], ledger.Ledger.note

def note(self, thing):
    number = real(self, thing)
    noted.append(thing)
    if len(noted) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return number

ledger.Ledger.note = note
network = Network([Host(name="north"), Host(name="south")], ledger.Ledger())
network.make()
quiet = subprocess.DEVNULL
enter = in_child((), (), network.namespace("south"))
def stay():
    enter()
    import ctypes
    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)  # as what a server has started outlives us
sleeper = subprocess.Popen(["sleep", "600"], stdout=quiet, stderr=quiet, preexec_fn=stay)
print(len(noted), sleeper.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_whatever_a_process_is_killed_at_no_network_is_left_after_the_next_start(
    home: Path,
) -> None:
    needs("hosts")

    def killed(at: int) -> tuple[int, bytes]:
        process = child(KILLED, str(at), folder=home)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, out.decode()
        return process.pid, out

    pid, out = killed(0)
    count, sleeper = map(int, out.split())
    assert count == 5  # a bridge, two namespaces, two cables
    assert len(names(pid)) == count
    done = clean()
    assert done.left == ()
    assert len(done.undone) == count
    assert names(pid) == []
    assert nets.inode_of(sleeper) == 0
    for at in range(1, count + 1):
        pid, _ = killed(at)
        assert clean().left == (), at
        assert names(pid) == []
    assert clean() == ledger.Cleaned()


def test_a_device_of_that_name_that_is_not_ours_is_left_alone(made: Ledger) -> None:
    needs("hosts")
    ours = nets.link(made.unique())
    assert run("ip", "link", "add", ours.name, "type", "bridge")[0] == 0
    try:
        assert not ours.there()
        assert ours.undo() == ""
        assert names() == [ours.name]
    finally:
        run("ip", "link", "del", ours.name)
    assert nets.Namespace("theirs").undo() == (
        "network namespace theirs is left alone: it does not have our name"
    )
