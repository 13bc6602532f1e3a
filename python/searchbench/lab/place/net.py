"""Hosts on one machine: a network namespace for each, with a cable to a bridge that we are on too.

    this machine   10.213.X.1 on the bridge; where the load comes from
    first host     10.213.X.2, and nothing else; no way leads out of the bridge
    second host    10.213.X.3

No namespace has a default route, and the bridge forwards nothing: no packet leaves the machine.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from searchbench.errors import LabError
from searchbench.lab.place import nets
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.things import run
from searchbench.places import Host
from searchbench.record.trial import Lever

RANGE = ipaddress.IPv4Network("10.213.0.0/16")
"""Private addresses of which a study takes 256, from where no route of this machine leads."""
DEVICE = "eth0"  # what the cable is called in a namespace
_CLOSED = 1  # a port on which nothing listens there: who connects is refused, after one round trip
_LOOKS = 9
_SHORT = 0.98  # of a delay: what clocks and timers may take from it
_PATIENCE_S = 3.0  # ... beside the delay


class Network:
    """The hosts of one deployment, by name; made, read back, and removed."""

    def __init__(self, hosts: Sequence[Host], ledger: Ledger) -> None:
        self.hosts = {host.name: host for host in hosts}
        self._ledger = ledger
        self._numbers: list[int] = []
        self._spaces: dict[str, nets.Namespace] = {}
        self._addresses: dict[str, str] = {}
        self._bridge = ""

    def address(self, host: str) -> str:
        """Its one address."""
        return self._addresses[host]

    def namespace(self, host: str) -> Path:
        """The file of its namespace."""
        return self._spaces[host].path

    def make(self) -> None:
        """LabError (stage ``place``) with the command that failed."""
        bridge = self._link()
        own, *others = _addresses(len(self.hosts))
        _must("link", "add", bridge.name, "address", bridge.mac, "type", "bridge")
        self._bridge = bridge.name
        for setting in ("ipv4/conf/{}/forwarding=0", "ipv6/conf/{}/disable_ipv6=1"):
            path, _, value = setting.format(bridge.name).partition("=")
            with suppress(FileNotFoundError):  # a kernel without IPv6
                Path("/proc/sys/net", path).write_text(value)
        _must("addr", "add", f"{own}/24", "dev", bridge.name)
        _must("link", "set", bridge.name, "up")
        for host, address in zip(self.hosts.values(), others, strict=True):
            self._join(host, address)

    def remove(self) -> list[str]:
        """Remove all of it, with whatever still runs there; what is left, and why."""
        numbers, self._numbers = self._numbers, []
        return self._ledger.undo(*numbers)

    def levers(self) -> list[Lever]:
        """Each host as the kernel has it, and how long a round trip to it takes."""
        return [lever for host in self.hosts.values() for lever in self._levers_of(host)]

    def strangers(self, host: str, pids: Iterable[int]) -> list[int]:
        """Which of these processes live, and are not in its namespace."""
        inside = self._spaces[host].inode()
        return [pid for pid in pids if nets.inode_of(pid) not in (0, inside)]

    def _link(self) -> nets.Link:
        made = nets.link(self._ledger.unique())
        self._numbers.append(self._ledger.note(made))
        return made

    def _join(self, host: Host, address: str) -> None:
        space = nets.Namespace(self._ledger.unique())
        self._numbers.append(self._ledger.note(space))
        self._spaces[host.name], self._addresses[host.name] = space, address
        _must("netns", "add", space.name)
        cable = self._link()
        _must("link", "add", cable.name, "address", cable.mac, "type", "veth",
              "peer", "name", DEVICE, "netns", space.name)  # fmt: skip
        _must("link", "set", cable.name, "master", self._bridge, "up")
        _must("-n", space.name, "addr", "add", f"{address}/24", "dev", DEVICE)
        for device in ("lo", DEVICE):
            _must("-n", space.name, "link", "set", device, "up")
        if host.delay_ms:
            self._slow(space.name, host.delay_ms)

    def _slow(self, space: str, delay_ms: float) -> None:
        """Delay whatever the host sends, so that each round trip is delayed once."""
        code, said = run("tc", "-n", space, "qdisc", "add", "dev", DEVICE, "root", "netem",
                         "delay", f"{delay_ms}ms", "limit", "100000")  # fmt: skip
        if code:
            raise LabError(f"the delay could not be set: tc: {said}", "place")

    def _levers_of(self, host: Host) -> Iterable[Lever]:
        space, address = self._spaces[host.name], self._addresses[host.name]
        routes = _lines("-n", space.name, "-4", "route")
        way = " ".join(_lines("route", "get", address))
        away = [route for route in routes if not route.startswith(f"{_net(address)} dev {DEVICE}")]
        problem = f"a route leads out of it: {away[0]}" if away else ""
        if f"dev {self._bridge} " not in f"{way} ":
            problem = problem or f"the route to it does not go over our bridge: {way}"
        # Nothing is sent before the way is known to be ours.
        trip_s = None if problem else _round_trip_s(address)
        if trip_s is None:
            problem = problem or f"{address} does not answer"
        took = "" if trip_s is None else f"a round trip took {trip_s * 1e3:.3f} ms"
        figures = {} if trip_s is None else {"round_trip_s": trip_s}
        yield Lever(
            name=f"hosts.{host.name}",
            asked="a network namespace",
            read_back=f"{address} on {self._bridge}",
            effect=f"{took}; no route leads out of it" if not problem else took,
            problem=problem,
            figures=figures,
        )
        if not host.delay_ms:
            return
        has = next((line for line in _lines_of("tc", "-n", space.name, "qdisc", "show", "dev",
                                               DEVICE) if "netem" in line), "no delay")  # fmt: skip
        short = trip_s is not None and trip_s * 1e3 < host.delay_ms * _SHORT
        yield Lever(
            name=f"hosts.{host.name}.delay_ms",
            asked=f"{host.delay_ms:g} ms",
            read_back=has,
            effect=took,
            problem=f"{took}, which is less than the delay" if short else "",
            figures=figures,
        )


def _addresses(hosts: int) -> list[str]:
    """Ours, and one for each host, in a part of the range from which no route leads yet."""
    routes = [line.split() for line in _lines("-4", "route", "show", "table", "all")]
    words = [word for row in routes for word in row if "." in word and word[0].isdigit()]
    taken = [ipaddress.IPv4Network(word, strict=False) for word in words]
    parts = list(RANGE.subnets(new_prefix=24))
    turn = os.getpid() % len(parts)  # so that two that start at once look elsewhere first
    for part in (*parts[turn:], *parts[:turn]):
        if not any(part.overlaps(other) for other in taken if other.prefixlen > 0):
            return [str(part[n]) for n in range(1, hosts + 2)]
    raise LabError(f"hosts get their addresses from {RANGE}, and this machine has routes to all of "
                   "it; free a /24 of it", "place")  # fmt: skip


def _net(address: str) -> str:
    return str(ipaddress.ip_network(f"{address}/24", strict=False))


def _round_trip_s(address: str) -> float | None:
    """The shortest of several round trips; None if nothing comes back."""
    found = []
    for _ in range(_LOOKS):
        with socket.socket() as probe:
            probe.settimeout(_PATIENCE_S)
            began = time.perf_counter()
            try:
                probe.connect((address, _CLOSED))
            except ConnectionRefusedError:
                found.append(time.perf_counter() - began)
            except OSError:
                return min(found, default=None)
    return min(found, default=None)


def _must(*arguments: str) -> None:
    code, said = run("ip", *arguments)
    if code:
        raise LabError(f"`ip {' '.join(arguments)}`: {said}", "place")


def _lines(*arguments: str) -> list[str]:
    return _lines_of("ip", *arguments)


def _lines_of(*command: str) -> list[str]:
    """What the command printed, line by line; LabError if it failed."""
    code, said = run(*command, whole=True)
    if code:
        raise LabError(f"`{' '.join(command)}`: {said}", "place")
    return [line.strip() for line in said.splitlines() if line.strip()]
