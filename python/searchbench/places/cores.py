"""How the cores of this machine are dealt out between what is measured and what measures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cores:
    """``server_cpus``: cores of the system under test; ``client_cpus``: of the measuring loop.

    Empty: any. They are apart wherever there are two cores or more: a server that is pushed off a
    core by its own client is measured wrong. ``server_cpus`` has a thread of each core before the
    second ones. ``beside_client``: the other hyper-threads of the client's cores, which a server
    gets only where all others are taken.
    """

    server_cpus: tuple[int, ...] = ()
    client_cpus: tuple[int, ...] = ()
    beside_client: tuple[int, ...] = ()
