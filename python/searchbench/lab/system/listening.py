"""Who listens on a port, by the kernel's tables of sockets and of who holds them."""

from __future__ import annotations

import contextlib
from pathlib import Path

_LISTENS = "0A"  # the state of a socket in /proc/net/tcp


def listening(port: int, pid: int) -> set[str]:
    """The sockets that listen on a port of a process's network, as its folder names them."""
    found = set()
    for name in ("tcp", "tcp6"):
        path = Path(f"/proc/{pid}/net/{name}")
        # There may be no IPv6 here, or the process may have ended.
        with contextlib.suppress(OSError, StopIteration), path.open() as table:
            next(table)
            for row in table:
                fields = row.split()
                local, state, inode = fields[1], fields[3], fields[9]
                if state != _LISTENS:
                    break  # those that listen come first, and thousands of others may follow
                if int(local.rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{inode}]")
    return found


def sockets(pid: int) -> set[str]:
    """What the descriptors of a process name; empty where it has ended or is not to be seen."""
    try:
        held = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return set()
    names = set()
    for descriptor in held:
        with contextlib.suppress(OSError):  # closed meanwhile
            names.add(str(descriptor.readlink()))
    return names
