"""A place as a treatment has it: everything resolved, sizes in bytes, no other table needed.

``Treatment.settings["place"]`` is a ``Place`` as plain values, without what is left at its
default; ``place_of`` reads it. A treatment without it runs on this machine as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

Kind = Literal["directory", "ram", "ext4", "xfs", "btrfs", "zfs"]
Cold = Literal["no", "trial", "each query"]
LogBias = Literal["latency", "throughput"]

FILE_SYSTEMS: tuple[Kind, ...] = ("ext4", "xfs", "btrfs", "zfs")
"""Kinds that are made on a file of ours."""
SLOWED: tuple[Kind, ...] = ("ext4", "xfs", "btrfs")
"""Those whose device can be slowed; zfs-fuse reads and writes its file itself."""


EACH_QUERY = "each query"
"""The state in which nothing of a system's files is in memory before each query."""
PARTS = "parts"
"""The kind of files that the parts of an index are; it may lie on several storages."""


def part_kind(number: int) -> str:
    """What the storage of that number is called among those of parts, the first being 0."""
    return f"{PARTS}-{number}"


def is_part(kind: str) -> bool:
    """Whether a kind of files in a place is that of parts of an index."""
    return kind.startswith(f"{PARTS}-")


class Storage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where files lie.

    ``kind``: a ``directory`` that exists (``directory``: its absolute path; we make a folder of
    our own in it), ``ram`` (tmpfs), or a file system that is made on a file of ours.
    ``size_bytes``: of the file or the tmpfs; 0 for a directory.
    ``compression``: as the file system names it: for btrfs "zlib", "lzo" or "zstd", the first and
    the last also with ":LEVEL"; for zfs "lzjb", "zle", "gzip" or "gzip-1" to "gzip-9"; "": none.
    ``record_size_bytes`` (a power of two from 512 to 131,072; 0: the default) and ``logbias`` ("":
    the default) are of zfs.
    ``read_iops`` to ``write_bytes_per_s``: what the device gives at most per second; ``latency_ms``
    (above 0): what each of its requests takes at least. None: not limited. They are of
    the kinds in ``SLOWED`` alone. ``like``: the preset that those come from which the study does
    not give; "".
    """

    name: str
    kind: Kind
    directory: str = ""
    size_bytes: int = 0
    compression: str = ""
    record_size_bytes: int = 0
    logbias: LogBias | Literal[""] = ""
    read_iops: int | None = None
    write_iops: int | None = None
    read_bytes_per_s: int | None = None
    write_bytes_per_s: int | None = None
    latency_ms: float | None = None
    like: str = ""

    @property
    def limited(self) -> bool:
        """Whether its device is slowed in any way."""
        return any(getattr(self, name) is not None for name in LIMITS)


RATES = ("read_iops", "write_iops", "read_bytes_per_s", "write_bytes_per_s")
LIMITS = (*RATES, "latency_ms")


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A network namespace of this machine that stands for a host, or a machine reached by ssh.

    ``memory_bytes``, ``cores``, ``cpu_share`` as of a place. ``delay_ms``: what each round trip to
    it takes longer; 0: nothing is added. None of these where ``ssh`` is not "": that is the name of
    the machine as ``ssh_command`` knows it. ``address``: where its processes listen; "": where ssh
    goes. ``folder``: where a folder of ours is made there; ``path``: searched for programs.
    """

    name: str
    memory_bytes: int = 0
    cores: int | tuple[int, ...] = 0
    cpu_share: float = 1.0
    delay_ms: float = 0.0
    ssh: str = ""
    ssh_command: str = "ssh"
    address: str = ""
    folder: str = "/var/tmp"
    path: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        """Its table in a study."""
        return f"hosts.{self.name}"

    @property
    def title(self) -> str:
        """What sentences call it."""
        return f"host {self.name}"


class Place(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the processes of a system run, and where its files lie.

    ``memory_bytes``: cap of all its processes together, with the pages of files that they read;
    0: none. ``cores``: how many, or their numbers as the kernel counts them (``cpu0`` is 0); 0: as
    the lab deals them out. ``cpu_share``: of the time of each core that it has; 1: all of it.
    ``cold``: "trial": its files are evicted from memory before each trial; "each query": before
    each query, which is then asked ``asks`` times; ``restart``: with the system stopped, and
    started anew after it.
    ``storages``: by kind of file ("data", "wal", ... as ``Capabilities.writes`` has them). A kind
    that is not there lies where "data" does, as the engine lays it; without "data" that is the
    lab's own folder, as without a place. Kinds with the same ``Storage.name`` share one storage.
    Where parts of an index have storages of their own, part n lies on that of ``part_kind(n mod
    how many there are)``, and there is no "data".
    ``host``: where the server runs that is asked; None: on this machine. ``agents``: the host of
    each of its agents, in order; empty: they run where the server does. A system that is in no
    place and has agents has a place without a name.
    """

    name: str
    memory_bytes: int = 0
    cores: int | tuple[int, ...] = 0
    cpu_share: float = 1.0
    cold: Cold = "no"
    restart: bool = True
    asks: int = 1
    storages: dict[str, Storage] = {}
    host: Host | None = None
    agents: tuple[Host, ...] = ()

    @property
    def section(self) -> str:
        """Its table in a study."""
        return f"places.{self.name}"

    @property
    def title(self) -> str:
        """What sentences call it."""
        return f"place {self.name}"

    @property
    def hosts(self) -> dict[str, Host]:
        """All of them, by name; that of the server first."""
        return {host.name: host for host in ((self.host,) if self.host else ()) + self.agents}

    def settings(self) -> dict[str, Any]:
        """Plain values, as plan.json and trial.json have them."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def place_of(settings: Mapping[str, Any]) -> Place | None:
    """The place of a treatment's settings; None: this machine as it is."""
    found = settings.get("place")
    return msgspec.convert(found, Place) if found else None


def of_files(place: Place | None) -> dict[str, Any]:
    """What of a place the files of an index depend on: treatments that agree can share one index.

    Which kinds of files lie where, and what is made there. Memory, cores and share are not in it,
    nor are rates, which a device can be given later; a latency is, since the device is made with
    it. Names are not in it, only which kinds share a storage.
    """
    return {} if place is None else _unnamed(place, ("like", *RATES))


def same(place: Place | None) -> dict[str, Any]:
    """A place without its names: equal for places in which a system runs the same."""
    if place is None:
        return {}
    found = {**place.settings(), "storages": _unnamed(place, ("like",))}
    numbers = {name: number for number, name in enumerate(place.hosts)}
    hosts = [found["host"]] if place.host else []
    for host in (*hosts, *found.get("agents", ())):
        host["name"] = numbers[host["name"]]  # which of them are the same is what matters
    del found["name"]
    return {key: value for key, value in found.items() if value != {}}


def _unnamed(place: Place, without: tuple[str, ...]) -> dict[str, Any]:
    """The storages by kind; each has a number in place of its name, in the order of kinds."""
    numbers: dict[str, int] = {}
    found = {}
    for kind, storage in sorted(place.storages.items()):
        table = msgspec.to_builtins(storage)
        table["name"] = numbers.setdefault(storage.name, len(numbers))
        found[kind] = {key: value for key, value in table.items() if key not in without}
    return found


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a usual device.

    They are those of a device that does one request after another, put before a file. What they
    cannot show is that requests for what lies side by side need no seek: reading in one go is
    slower here than on a disk.

    ``disk``: 7,200 rpm. A seek takes 8.2 ms on average and half a turn 4.17 ms, together 12.4 ms
    (HGST Ultrastar 7K4000 specification, 4.4.1), so 80 requests a second, one after another. 130
    MB/s lies half-way between its inmost and its outmost tracks (83 to 175 MB/s: Seagate
    Constellation ES.3 product manual, 4.1.2).

    ``ssd``: at a SATA port. One request of 4 KiB after another it gives 13,000 reads and 36,000
    writes a second, and 560 and 530 MB/s (Samsung 870 EVO, by its maker). Many at once get more,
    98,000 reads a second: a study that is about that says so in ``read_iops``. No latency: the 0.08
    ms of a lone read are less than what adding them would cost.
    """

    read_iops: int
    write_iops: int
    read_bytes_per_s: int
    write_bytes_per_s: int
    latency_ms: float | None = None


PRESETS: Mapping[str, Preset] = {
    "disk": Preset(
        read_iops=80,
        write_iops=80,
        read_bytes_per_s=130_000_000,
        write_bytes_per_s=130_000_000,
        latency_ms=12.4,
    ),
    "ssd": Preset(
        read_iops=13_000,
        write_iops=36_000,
        read_bytes_per_s=560_000_000,
        write_bytes_per_s=530_000_000,
    ),
}
