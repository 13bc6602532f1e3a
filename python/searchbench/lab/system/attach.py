"""A server that already runs: asked, perhaps ingested into, never started, changed or stopped."""

from __future__ import annotations

import ipaddress
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from searchbench.corpora.corpus import Corpus
from searchbench.engines.engine import Facts, Level
from searchbench.errors import LabError
from searchbench.lab.conduct.ingest import Batches, Ingested, ingest
from searchbench.lab.drive.exchange import Endpoint, Refused
from searchbench.lab.place import host
from searchbench.lab.system.deploy import Deployment

_READY_TIMEOUT_S = 5.0
_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
_LOGIN = ("USER", "PASSWORD", "DATABASE")


@dataclass
class Attached(Deployment):
    """``address``: "HOST:PORT". ``system``: its name in the study, for the credentials.

    User, password and database come from the environment (``variables``), else they are those
    that the engine would have been started with. ``processes`` are those of this machine that
    listen at the address, for the probe alone; none where it is not seen.
    """

    address: str = ""
    system: str = ""

    def __enter__(self) -> Attached:
        """Ask who is there; LabError (stage ``deploy``) where it is not this engine."""
        self.service = self.engine.service(self.params, self.schema)
        target = _resolved(self.address)
        self.endpoint = Endpoint(
            target, self.service.wire, _login(self.system, self.service.login), self.service.whole
        )
        self.argv = []
        self.run.mkdir(parents=True, exist_ok=True)
        self._identify()
        self._take_as_found(target)
        self.processes = listening_at(target)
        return self

    def stop(self) -> None:
        """It was not started here."""

    def lives(self) -> bool:
        """As far as can be seen from here."""
        try:
            socket.create_connection(self.endpoint.target, timeout=1.0).close()
        except OSError:
            return False
        return True

    def _take_as_found(self, target: tuple[str, int]) -> None:
        """Ask by the levers that it has: how it is asked, and what a whole answer is, may hang on
        them.
        """
        known = {p.name for p in self.engine.parameters}
        found = {k: v for k, v in self.facts.parameters.items() if k in known}
        self.params = {**self.params, **found}
        self.service = self.engine.service(self.params, self.schema)
        login = _login(self.system, self.service.login)
        self.endpoint = Endpoint(target, self.service.wire, login, self.service.whole)

    def _identify(self) -> None:
        give_up = time.monotonic() + _READY_TIMEOUT_S
        while True:
            try:
                self.facts = self.engine.facts(self.ask(self.service.ready, timeout_s=2.0))
            except (Refused, ValueError, KeyError, TypeError) as error:
                if time.monotonic() > give_up:
                    raise LabError(
                        f"at {self.address} there is no {self.engine.can.title} that can be "
                        f"asked: {error}; credentials are read from "
                        f"{', '.join(variables(self.system))}",
                        "deploy",
                    ) from None
                time.sleep(0.2)
            else:
                break
        if not self.facts.version:
            raise LabError(
                f"what answers at {self.address} does not tell its version: no version, "
                "no measurement",
                "deploy",
            )


def ingest_if_empty(deployment: Deployment, corpus: Corpus, batches: Batches) -> Ingested | None:
    """Put the corpus into a system that holds nothing; None, and nothing done, if it holds it.

    LabError where it holds something else: what somebody put there is not ours to remove.
    """
    engine, address = deployment.engine, "{}:{}".format(*deployment.target)
    there = engine.facts(deployment.ask(engine.facts_request())).documents or 0
    if there == batches.documents:
        return None
    if there:
        raise LabError(
            f"{address} holds {there:,} documents and the corpus has {batches.documents:,}; "
            "empty it, or name the corpus that it holds",
            "ingest",
        )
    if engine.offline(corpus.schema, deployment.params) is not None:
        raise LabError(
            f"{address} is empty, and an index that is made offline cannot be put into a running "
            f"{engine.can.title}; build it there, or choose another kind of index",
            "ingest",
        )
    return ingest(deployment, corpus, batches)


def as_found(
    address: str | None, wanted: Mapping[str, Level], facts: Facts
) -> tuple[dict[str, Level], host.Note]:
    """The levers as an attached system reads them back, and a note of what is not as wanted."""
    other = {k: v for k, v in facts.parameters.items() if k in wanted and wanted[k] != v}
    told = ", ".join(f"{k} is {v!r}, not {wanted[k]!r}" for k, v in other.items())
    note = host.Note(
        "attached",
        told or f"{address}: {len(facts.parameters)} levers read back as the study has them",
        "this system ran before: what it did until now, and levers that cannot be read back, "
        "are not known",
        "have it started by the study, or restart it before",
    )
    return {**wanted, **other}, note


def variables(system: str) -> tuple[str, ...]:
    """Names of the environment variables with user, password and database of a system."""
    name = system.upper().replace("-", "_")
    return tuple(f"SEARCHBENCH_{name}_{part}" for part in _LOGIN)


def _login(system: str, usual: tuple[str, str, str] | None) -> tuple[str, str, str] | None:
    if usual is None:
        return None
    told = [os.environ.get(v, u) for v, u in zip(variables(system), usual, strict=True)]
    return (told[0], told[1], told[2])


def _resolved(address: str) -> tuple[str, int]:
    """Host and port; LabError where it is no address, has no host, or is not on loopback."""
    host, _, port = address.rpartition(":")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise LabError(f"attach = {address!r} is not HOST:PORT, for example 127.0.0.1:10041")
    host = host.strip("[]") or "127.0.0.1"
    try:
        found = socket.getaddrinfo(host, int(port), socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise LabError(f"attach: {host!r} is no host that is known here: {error}") from None
    ip = str(found[0][4][0])
    if not ipaddress.ip_address(ip).is_loopback:
        raise LabError(
            f"attach: {host} is {ip}, which is not this machine; load goes to loopback only, so "
            "that nobody else's server is loaded by mistake: forward a port "
            f"(ssh -L {port}:127.0.0.1:{port} {host}) or run searchbench there"
        )
    return ip, int(port)


def listening_at(target: tuple[str, int]) -> list[psutil.Process]:
    """Processes that listen at the address, without those that another of them started.

    There are none where the address is not one of this machine: who listens on the same port here
    is somebody else. Of several listeners that fit, the kernel takes the most particular.
    """
    wanted = _address(target[0])
    if not _is_of_this_machine(wanted):
        return []
    found: dict[int, set[int]] = {}
    for one in psutil.net_connections("tcp"):
        if one.status != psutil.CONN_LISTEN or not one.pid or not one.laddr:
            continue
        if one.laddr.port != target[1]:
            continue
        fit = _fit(_address(one.laddr.ip), wanted)
        if fit:
            found.setdefault(fit, set()).add(one.pid)
    return _without_children(found[max(found)]) if found else []


def _fit(listener: _Ip, wanted: _Ip) -> int:
    """How well: 0 not at all, 1 any address of IPv6 (IPv4 too), 2 any of its own, 3 this one."""
    if listener == wanted:
        return 3
    if not listener.is_unspecified:
        return 0
    return 2 if listener.version == wanted.version else int(listener.version == 6)


def _address(text: str) -> _Ip:
    """Without the zone of IPv6; an IPv4 address that is written as one of IPv6 is that of IPv4."""
    found = ipaddress.ip_address(text.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    return found if mapped is None else _address(str(mapped))


def _is_of_this_machine(address: _Ip) -> bool:
    if address.is_loopback:
        return True
    cards = psutil.net_if_addrs().values()
    families = (socket.AF_INET, socket.AF_INET6)
    return any(address == _address(a.address) for each in cards for a in each
               if a.family in families)  # fmt: skip


def _without_children(pids: set[int]) -> list[psutil.Process]:
    found = []
    for pid in pids:
        try:
            process = psutil.Process(pid)
            if process.ppid() not in pids:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found
