"""The keys of the tables [places.NAME] and [storages.NAME], and what does not go together in them.

Only what a description shows by itself: whether this machine has what is asked for is the lab's to
find out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from searchbench.places.model import EACH_QUERY, FILE_SYSTEMS, PARTS, PRESETS, SLOWED, Kind
from searchbench.sizes import size_bytes, size_text
from searchbench.spec import SpecKey, show

FILES: Mapping[str, str] = {
    "data": "the storage of the index, and of all files that have no storage of their own",
    "wal": "the storage of the log that is written before the data (write-ahead log, redo log)",
    "backup": "the storage of what the job `backup` makes",
    PARTS: "the storages of the parts of an index, in order; if there are more parts than "
    "storages, it begins again with the first",
}
"""The kinds of files that a place can lay apart; an engine declares which of them it can."""

HOST_KEYS: tuple[SpecKey, ...] = (
    SpecKey("memory", "size", None, "the most memory that its processes have together, including "
            "the pages of files that they read", minimum=10**6),
    SpecKey("cores", "integers", None, "how many cores it has, or a list of their numbers; "
            "default: all but the one of the load generator. Hosts may share cores",
            minimum=0),
    SpecKey("cpu_share", "number", None, "share of the time of its cores that it has, counted over "
            "all of them together; default: all", minimum=0.001, maximum=1),
    SpecKey("delay_ms", "number", None, "by how many milliseconds each round trip to it is "
            "delayed; 0: no delay", minimum=0, maximum=10_000),
    SpecKey("ssh", "text", None, "the name of another machine, as ssh knows it; localhost is this "
            "one, without ssh. The host is then that machine as it is, not a namespace"),
    SpecKey("ssh_command", "text", "ssh", 'with `ssh`: the command that reaches it, as in "ssh -p '
            '2222 -i key"'),
    SpecKey("address", "text", None, "with `ssh`: the address of that machine at which its "
            "processes listen and are asked; default: the address to which ssh connects"),
    SpecKey("folder", "text", "/var/tmp", "with `ssh`: a folder of that machine, in which a "
            "folder of ours is made for the files of the processes there"),
    SpecKey("path", "texts", None, "with `ssh`: folders of that machine that have the engine's "
            "programs, if they are not in its PATH"),
)  # fmt: skip
_OF_SSH = ("ssh_command", "address", "folder", "path")
_OF_NAMESPACE = ("memory", "cores", "cpu_share", "delay_ms")
PLACE_KEYS: tuple[SpecKey, ...] = (
    SpecKey("host", "text", None, "name of the host where the server runs; default: this machine"),
    SpecKey("memory", "size", None, "the most memory that all processes of the system have "
            "together, including the pages of files that they read", minimum=10**6),
    SpecKey("cores", "integers", None, "how many cores the system has, or a list of their numbers; "
            "default: all but the one of the load generator", minimum=0),
    SpecKey("cpu_share", "number", None, "share of the time of its cores that the system has, "
            "counted over all of them together; default: all", minimum=0.001, maximum=1),
    SpecKey("cold", "text", "no", "when processes are restarted and the pages of all files are "
            "evicted from memory. trial: before each trial; each query: before each "
            "query, whose first answer is then judged", ("no", "trial", EACH_QUERY)),
    SpecKey("restart", "boolean", True, 'with cold = "each query": restart the processes before '
            "each query; if false, they keep what is in their own memory"),
    SpecKey("asks", "integer", 1, 'with cold = "each query": how many times each query is asked '
            "after it was made cold", minimum=1, maximum=100),
    SpecKey("storage", "text", None, "name of the storage where all files lie; default: this "
            "machine's folder for temporary files"),
    *(SpecKey(kind, "texts" if kind == PARTS else "text", None, f"{doc}; default: `storage`")
      for kind, doc in FILES.items()),
)  # fmt: skip
STORAGE_KEYS: tuple[SpecKey, ...] = (
    SpecKey("filesystem", "text", None, "a new file system for each index, on a file that "
            "searchbench creates and later removes", FILE_SYSTEMS),
    SpecKey("directory", "path", None, "an existing directory on any disk"),
    SpecKey("ram", "boolean", None, "the files lie in memory (tmpfs)"),
    SpecKey("size", "size", "4GB", "size of the file system, or the most that may lie in "
            "memory; the file takes no more space than what is written", minimum=10**6),
    SpecKey("compression", "text", "none", "btrfs: zlib, lzo or zstd (zlib and zstd also with a "
            "level, as in zstd:9); zfs (zfs-fuse): lzjb, zle, gzip, or gzip-1 to gzip-9"),
    SpecKey("record_size", "size", None, "zfs: `recordsize`, a power of two (default 128k)",
            minimum=512, maximum=128 << 10),
    SpecKey("logbias", "text", None, "zfs: `logbias`", ("latency", "throughput")),
    SpecKey("like", "text", None, "the limits of a typical device, for those keys below that are "
            "not given. disk: a hard disk of 7,200 rpm; ssd: an SSD on a SATA port. A "
            "throttled file differs from a disk: sequential requests cost as much as "
            "random ones", tuple(PRESETS)),
    SpecKey("read_iops", "integer", None, "most reads a second", minimum=1, maximum=10**9),
    SpecKey("write_iops", "integer", None, "most writes a second", minimum=1, maximum=10**9),
    SpecKey("read_per_s", "size", None, "most bytes read a second", minimum=4096),
    SpecKey("write_per_s", "size", None, "most bytes written a second", minimum=4096),
    SpecKey("latency_ms", "number", None, "the least time, in milliseconds, that each request to "
            "the device takes; 0: no delay", minimum=0, maximum=10_000),
)  # fmt: skip

_LIMITS = ("like", "read_iops", "write_iops", "read_per_s", "write_per_s", "latency_ms")
_OF_ZFS = ("record_size", "logbias")
_KINDS = ("filesystem", "directory", "ram")
_ZFS = ("lzjb", "zle", "gzip", *(f"gzip-{level}" for level in range(1, 10)))
_BTRFS = re.compile(r"lzo|zlib(:[1-9])?|zstd(:([1-9]|1[0-5]))?")
# What mkfs and zpool take at least; below it they refuse in words that do not name the key.
_LEAST: Mapping[str, int] = {
    "ext4": 8 << 20,
    "xfs": 300 << 20,
    "btrfs": 128 << 20,
    "zfs": 64 << 20,
}
_LZ4 = re.compile(r"lz4|zstd(-.*)?")


def kind_of(table: Mapping[str, Any]) -> Kind | None:
    """What kind of storage a table describes; None where it says none."""
    if "filesystem" in table:
        kind: Kind = table["filesystem"]
        return kind
    if "directory" in table:
        return "directory"
    return "ram" if table.get("ram") else None


def host_problems(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(key, sentence) for what is wrong with a host whose single values fit their keys."""
    yield from _cores(table.get("cores"))
    name = table.get("ssh")
    if name is None:
        for key in _OF_SSH:
            if key in table:
                yield key, f"`{key}` is only for a host that is reached by ssh: give `ssh` too"
        return
    if not name or name.startswith("-") or name.split() != [name]:
        yield "ssh", f"`ssh` must be the name of a machine as ssh knows it, not {show(name)}"
    for key in _OF_NAMESPACE:
        if key in table:
            yield (
                key,
                f"`{key}` is only for a network namespace of this machine, and this host is "
                "another machine, reached by ssh: leave it out",
            )
    folder = table.get("folder", "/")
    if not folder.startswith("/"):
        yield "folder", f"`folder` must begin with /, as in {show('/var/tmp')}, not {show(folder)}"
    paths = table.get("path", [])
    for path in [paths] if isinstance(paths, str) else paths:
        if not path.startswith("/") or ":" in path:
            yield "path", f"`path` names folders that begin with /, without a colon: {show(path)}"


def place_problems(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(key, sentence) for what is wrong with a place whose single values fit their keys."""
    yield from _cores(table.get("cores"))
    for key in ("memory", "cores", "cpu_share"):
        if key in table and "host" in table:
            yield key, f"a place on a host has what the host has: set `{key}` in [hosts.NAME]"
    for key in ("restart", "asks"):
        if key in table and table.get("cold") != EACH_QUERY:
            yield key, f'`{key}` is for cold = "{EACH_QUERY}"'


def _cores(cores: object) -> Iterator[tuple[str, str]]:
    if cores == 0:
        yield "cores", "`cores` = 0 leaves nothing to run on; core number 0 alone is cores = [0]"
    elif isinstance(cores, Sequence) and len(set(cores)) < len(cores):
        yield "cores", f"`cores` names a core twice: {show(cores)}"


def storage_problems(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(key, sentence) for what does not go together in a storage whose single values fit.

    The key is "" where the whole table is meant.
    """
    kinds = [key for key in _KINDS if table.get(key)]
    if len(kinds) != 1:
        choose = "say `filesystem`, `directory` or `ram = true`"
        if not kinds:
            yield "", f"a storage needs a kind: {choose}"
        else:
            yield kinds[1], f"`{kinds[0]}` and `{kinds[1]}` are two storages; {choose}"
        return
    kind = str(kind_of(table))
    if kind == "directory" and "size" in table:
        yield "size", "`size` is for a file system that is made, and a `directory` exists already"
    size = size_bytes(table.get("size", "4GB"))
    if size < _LEAST.get(kind, 0):
        yield "size", f"{kind} needs {size_text(_LEAST[kind])} at least, and `size` is less"
    yield from _compression(kind, str(table.get("compression", "none")))
    for key in _OF_ZFS:
        if key in table and kind != "zfs":
            yield key, f"`{key}` is a property of zfs, and this storage is {_said(kind)}"
    if "record_size" in table and size_bytes(table["record_size"]).bit_count() != 1:
        yield "record_size", '`record_size` must be a power of two, as in "64k"'
    for key in _LIMITS:
        if key in table and kind not in SLOWED:
            device = {"zfs": "whose file zfs-fuse reads and writes itself"}
            yield (
                key,
                f"`{key}` limits the device below ext4, xfs or btrfs, and this storage is "
                f"{_said(kind)}, {device.get(kind, 'whose device is not ours to slow')}",
            )


def _compression(kind: str, wanted: str) -> Iterator[tuple[str, str]]:
    if wanted == "none":
        return
    if kind not in ("btrfs", "zfs"):
        yield "compression", f"{_said(kind)} has no compression; btrfs and zfs have"
    elif kind == "zfs" and _LZ4.fullmatch(wanted):
        yield (
            "compression",
            (f"zfs is made with zfs-fuse here, which lacks {wanted}; it has {', '.join(_ZFS)}"),
        )
    elif kind == "zfs" and wanted not in _ZFS:
        yield "compression", f"zfs-fuse has no compression {show(wanted)}; it has {', '.join(_ZFS)}"
    elif kind == "btrfs" and not _BTRFS.fullmatch(wanted):
        yield (
            "compression",
            (
                f"btrfs has no compression {show(wanted)}; it has lzo, zlib (zlib:1 to zlib:9) and "
                "zstd (zstd:1 to zstd:15)"
            ),
        )


def _said(kind: str) -> str:
    return {"directory": "a directory", "ram": "memory"}.get(kind, kind)
