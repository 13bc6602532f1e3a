"""Names in a declared service → places of this machine: ports, private folders, programs."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from searchbench.places.model import is_part, part_kind

_PORT = re.compile(r"\{port:([^{}]+)\}")
_PART = re.compile(r"\{part:(\d+)\}")
_ADDRESS = re.compile(r"\{address:([^{}]+)\}")
LOOPBACK = "127.0.0.1"
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_PORTS_FROM, _PORTS_TO = 15_000, 32_768  # the latter is Linux's default
_PORT_TRIES = 50


@dataclass
class Places:
    """What the names of one deployment stand for; further ports are chosen when first named.

    ``laid``: by kind of file its folder, where that is not in ``data``. ``address``: where the one
    listens that is asked; ``addresses``: companions that listen elsewhere, by name. ``free``: gives
    a port that nobody uses, on each machine where something listens; None: on this one.
    """

    data: Path
    run: Path
    port: int
    batches: Path | None = None
    laid: Mapping[str, Path] = field(default_factory=dict)
    address: str = LOOPBACK
    addresses: Mapping[str, str] = field(default_factory=dict)
    free: Callable[[], int] | None = None
    _ports: dict[str, int] = field(default_factory=dict)

    def fill(self, text: str) -> str:
        """``text`` with every name replaced."""
        fixed = {
            "{python}": sys.executable,
            "{port}": str(self.port),
            "{address}": self.address,
            "{data}": str(self.data),
            "{run}": str(self.run),
            "{hosts}": str(jvm_hosts()),
            "{engines}": str(engines_home()),
            "{backup}": str(self.laid.get("backup", self.data.parent / "backup")),
            **{f"{{{kind}}}": str(folder) for kind, folder in self.laid.items()},
        }
        if self.batches is not None:
            fixed["{batches}"] = str(self.batches)
        for name, value in fixed.items():
            text = text.replace(name, value)
        text = _PART.sub(lambda named: str(self.part(int(named[1]))), text)
        text = _ADDRESS.sub(lambda named: self.addresses.get(named[1], self.address), text)
        return _PORT.sub(lambda named: str(self.further(named[1])), text)

    def part(self, number: int) -> Path:
        """The folder of a part of the index, counted from 0."""
        apart = [folder for kind, folder in self.laid.items() if is_part(kind)]
        return self.laid[part_kind(number % len(apart))] if apart else self.data

    def write(self, files: Mapping[str, str]) -> None:
        """Declared files below ``run``, names replaced."""
        for name, content in files.items():
            path = self.run / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.fill(content))

    def further(self, name: str) -> int:
        """The port of that name; free when it is first named."""
        while name not in self._ports:
            port = (self.free or free_port)()
            if port not in (self.port, *self._ports.values()):
                self._ports[name] = port
        return self._ports[name]


def jvm_hosts() -> Path:
    """Where `make java` puts its hosts: in the checkout, or where SEARCHBENCH_JAVA_HOSTS says."""
    named = os.environ.get("SEARCHBENCH_JAVA_HOSTS")
    return Path(named) if named else Path(__file__).resolve().parents[4] / "java"


def engines_home() -> Path:
    """Where engines that come as archives are unpacked, or where SEARCHBENCH_ENGINES says."""
    named = os.environ.get("SEARCHBENCH_ENGINES")
    if named:
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local/share") / "searchbench/engines"


def free_port() -> int:
    """A port of loopback that nobody uses at this moment.

    Until a server has taken it, another may. So it is none of those that the kernel gives to
    connections that are being opened, of which a load generator has many.
    """
    for _ in range(_PORT_TRIES):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", _PORTS_FROM + secrets.randbelow(_ports_below() - _PORTS_FROM)))
            return int(probe.getsockname()[1])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ports_below() -> int:
    """The first port that the kernel gives away by itself."""
    try:
        first = int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _PORTS_TO
    return first if first > _PORTS_FROM else _PORTS_TO


def program(name: str) -> str | None:
    """Where the program or path ``name`` is, None where it is not; servers may be in sbin."""
    if "/" in name:
        return name if Path(name).exists() else None
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")
