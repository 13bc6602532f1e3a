"""A part of trial.json: a host reached by ssh on which a part of the system ran."""

from __future__ import annotations

import msgspec


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """What the system's processes on such a host did in the measured window, by its own /proc.

    ``this_machine``: by its boot id it is the one that measured. ``cores``, ``memory_bytes``: of
    that machine, all of which the system may use. ``processes``: how many of the system were there.
    ``cpu_s``, ``peak_rss_bytes`` (bytes, added up over its processes at one moment) and the next
    three are theirs; ``busy_s`` (interrupts are not in it), ``steal_s``: CPU seconds of the whole
    machine. None: not known.
    ``versions``: by command what its programs say of themselves there.
    """

    host: str
    ssh: str
    address: str
    hostname: str = ""
    boot_id: str = ""
    this_machine: bool = False
    cpu: str = ""
    cores: int = 0
    memory_bytes: int = 0
    kernel: str = ""
    processes: int = 0
    seconds: float = 0.0
    cpu_s: float | None = None
    peak_rss_bytes: float | None = None
    read_bytes: float | None = None
    write_bytes: float | None = None
    major_faults: float | None = None
    busy_s: float | None = None
    steal_s: float | None = None
    versions: dict[str, str] = {}
