"""Places: where processes run and files lie. A description; applying one is the lab's.

Only "this machine" can be described yet: which of its cores serve and which drive.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """``server_cpus``: cores of the system under test; ``client_cpus``: of the measuring loop.

    Empty: any. They are apart wherever there are two cores or more: a server that is pushed off a
    core by its own client is measured wrong.
    """

    server_cpus: tuple[int, ...] = ()
    client_cpus: tuple[int, ...] = ()
