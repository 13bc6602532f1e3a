"""Where a process runs: its cores, control groups and network, entered between fork and exec."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from searchbench.engines.engine import Service
from searchbench.errors import LabError
from searchbench.lab.system.names import LOOPBACK

if TYPE_CHECKING:
    from searchbench.lab.remote.link import Link

_PR_SET_PDEATHSIG = 1
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of sched.h
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Seat:
    """Where processes run. ``cpus``: their cores (none: any).

    ``joins``: the files by which they join control groups, before their first page. ``namespace``:
    the file of the network namespace that they enter, where ``address`` is; None: this machine's.
    ``host``: its name; "": this machine. ``link``: to another machine, by ssh; then nothing of the
    others but ``address`` is said.
    """

    cpus: Sequence[int] = ()
    joins: Sequence[Path] = ()
    address: str = LOOPBACK
    namespace: Path | None = None
    host: str = ""
    link: Link | None = None


def seated(engine: str, service: Service, seat: Seat, agents: Sequence[Seat]) -> Mapping[str, Seat]:
    """Where each process of a service runs, by its name, "" being the one that is asked.

    ``agents``: the seats of its agents in their order; none: they are where the server is.
    LabError where there are not as many as agents.
    """
    names = [each.name for each in service.companions if each.agent]
    if agents and len(agents) != len(names):
        raise LabError(
            f"{engine} has {len(names)} agents, and hosts are named for {len(agents)}", "deploy"
        )
    found = {each.name: seat for each in service.companions}
    return found | dict(zip(names, agents, strict=False)) | {"": seat}


def insist_inside(pid: int, seat: Seat) -> None:
    """LabError (stage ``place``) where a process is not in its namespace: it gets no byte of us."""
    if seat.namespace is None:
        return
    with contextlib.suppress(OSError):  # it has ended, which is found in due course
        if Path(f"/proc/{pid}/ns/net").stat().st_ino != seat.namespace.stat().st_ino:
            raise LabError(
                f"process {pid} of the system is not in the network namespace of host {seat.host}",
                "place",
            )


def in_child(
    cpus: Sequence[int], joins: Sequence[Path] = (), namespace: Path | None = None
) -> Callable[[], None]:
    """Between fork and exec: the server dies with us, even if we are killed; it has its cores.

    And it joins control groups, by these files of theirs, and enters a network namespace.
    """
    parent = os.getpid()

    def prepare() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        os.setpgid(0, 0)  # so that Ctrl-C reaches us and not the server
        if cpus:
            os.sched_setaffinity(0, cpus)
        for path in joins:
            file = os.open(path, os.O_WRONLY)
            os.write(file, b"0")  # itself
            os.close(file)
        if namespace is not None:
            file = os.open(namespace, os.O_RDONLY)
            if _libc.setns(file, _NEW_NETWORK):
                raise OSError(ctypes.get_errno(), "setns")
            os.close(file)

    return prepare
