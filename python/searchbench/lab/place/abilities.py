"""Which levers of a place this machine has, before a study starts. It looks, and makes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from searchbench.errors import LabError
from searchbench.lab.fleet.machine import HERE
from searchbench.lab.place import host, slow, zfs
from searchbench.lab.place.control import hierarchies
from searchbench.lab.place.cores import dealt, numbers
from searchbench.lab.place.disk import MAKERS
from searchbench.lab.place.storage import megabytes, size_words
from searchbench.lab.place.things import run
from searchbench.lab.place.throttle import limits_of
from searchbench.lab.system.names import program
from searchbench.places import Host, Place, Storage, place_of
from searchbench.study.plan import Plan
from searchbench.workload.load_table import kind_of

_SYS_ADMIN = 21  # the capability to mount and to trace, of linux/capability.h
_AS_ROOT = "run as root"
_PACKAGES = {
    "mkfs.ext4": "e2fsprogs", "mkfs.xfs": "xfsprogs", "mkfs.btrfs": "btrfs-progs",
    "compsize": "btrfs-compsize", "zfs-fuse": "zfs-fuse", "zpool": "zfs-fuse",
    "zfs": "zfs-fuse", "nbdkit": "nbdkit", "nbdfuse": "libnbd-bin",
    "ip": "iproute2", "ssh": "openssh-client", "tc": "iproute2", "unshare": "util-linux",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ability:
    """A lever on this machine. ``missing``: why the machine does not have it, "" if it has.

    ``means``: what a study says to use it; ``remedy``: what to do if it is missing.
    """

    lever: str
    means: str
    missing: str = ""
    remedy: str = ""

    @property
    def here(self) -> bool:
        """Does this machine have it?"""
        return not self.missing


def abilities() -> list[Ability]:
    """Every lever of a place, in the order in which the table shows them."""
    return [look() for look in _LOOKS.values()]


def ability(lever: str) -> Ability:
    """One of them by its name."""
    return _LOOKS[lever]()


def lacking(plan: Plan) -> list[str]:
    """A sentence for each lever that this plan's places need and this machine does not have."""
    found: dict[str, None] = {}
    known: dict[str, Ability] = {}
    for treatment in plan.treatments:
        place = None if treatment.attach else place_of(treatment.settings)
        for sentence in _lacking(place, known) if place else ():
            found[sentence] = None
    return list(found)


def untraced(plan: Plan) -> list[str]:
    """Why the sizes of reads and writes cannot be traced here, if this plan asks for them.

    No comparison uses them, so the rest of the study goes on without them.
    """
    one = ability("io_sizes")
    if not plan.traced or not one.missing:
        return []
    return [f"reads and writes will not be traced: {one.missing}; {one.remedy}"]


def beside_others(plan: Plan) -> list[str]:
    """That a machine on which others work, as the user says, may make open loops late."""
    searched = plan.judging.measure == "capacity"
    by_clock = any(t.load and kind_of(t.load) != "closed" for t in plan.treatments)
    if not host.shared() or not (searched or by_clock):
        return []
    return [
        "SEARCHBENCH_SHARED_MACHINE is set, so foreign CPU and steal are only warnings. But this "
        "study sends requests by the clock. If others take the load generator's core, requests "
        "are sent late, and the trial is invalid even so (generator lag). A closed loop "
        "(`clients`) does not send by the clock."
    ]


def _lacking(place: Place, known: dict[str, Ability]) -> Iterator[str]:
    for owner, lever in _needed(place):
        one = known.setdefault(lever, ability(lever))
        if not one.here:
            yield f"{owner}: {lever}: {one.missing}; {one.remedy}"
    near = [each for each in place.hosts.values() if not each.ssh]
    confined: list[Place | Host] = [place, *near]
    total = psutil.virtual_memory().total
    for each in confined:
        try:
            dealt(each, host.placement())
        except LabError as error:
            yield str(error)
        if each.memory_bytes > total:
            yield (
                f"{each.title}: `memory` is {size_words(each.memory_bytes)}, and this machine has "
                f"{megabytes(total)}, so it would not be a limit; make it smaller"
            )
    for storage in place.storages.values():
        owner = f"storage {storage.name}"
        if storage.kind == "zfs" and storage.limited:
            yield f"{owner}: zfs-fuse has no device to slow down; use ext4, xfs or btrfs"
        free = psutil.virtual_memory().available
        if storage.kind == "ram" and storage.size_bytes > free:
            yield (
                f"{owner}: `size` is {size_words(storage.size_bytes)}, and this machine has "
                f"{megabytes(free)} of memory free; make it smaller"
            )


def _needed(place: Place) -> Iterator[tuple[str, str]]:
    """(what asks for it, lever)."""
    owner = f"place {place.name}"
    if place.memory_bytes:
        yield owner, "memory"
    if place.cpu_share < 1:
        yield owner, "cpu_share"
    for each in place.hosts.values():
        if each.ssh:
            # A command of the user's own is looked for when it is called.
            if each.ssh != HERE and each.ssh_command.split(None, 1)[:1] == ["ssh"]:
                yield each.title, "ssh"
            continue
        yield each.title, "hosts"
        if each.memory_bytes:
            yield each.title, "memory"
        if each.cpu_share < 1:
            yield each.title, "cpu_share"
        if each.delay_ms:
            yield each.title, "delay"
    for storage in place.storages.values():
        yield from ((f"storage {storage.name}", lever) for lever in _of_storage(storage))


def _hosts() -> Ability:
    means = "[hosts.NAME], with agents = [NAME] or host = NAME"
    if lacks := _in_a_network("hosts", means, "ip"):
        return lacks
    tries = (("bridge",), ("veth", "peer", "name", "searchbench1"))
    for kind, *more in tries:
        arguments = ("link", "add", "searchbench0", "type", kind, *more)
        code, said = run("unshare", "--net", "--", program("ip") or "ip", *arguments)
        if code:
            return Ability("hosts", means, f"this kernel cannot make a {kind}: {said.rstrip('.')}",
                           "use a machine whose kernel can")  # fmt: skip
    return Ability("hosts", means)


def _ssh() -> Ability:
    means = "ssh = NAME in [hosts.NAME]"
    if program("ssh") is None:
        return Ability("ssh", means, "ssh is not installed", f"apt-get install {_PACKAGES['ssh']}")
    return Ability("ssh", means)


def _delay() -> Ability:
    means = "delay_ms of a host"
    if lacks := _in_a_network("delay", means, "ip", "tc"):
        return lacks
    # In a network namespace that ends with the command.
    tried = ("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
    code, said = run("unshare", "--net", "--", program("tc") or "tc", *tried[1:])
    if code:
        return Ability("delay", means, f"this kernel has no netem: {said.rstrip('.')}",
                       "leave out `delay_ms`, or use a kernel with netem")  # fmt: skip
    return Ability("delay", means)


def _in_a_network(lever: str, means: str, *programs: str) -> Ability | None:
    """Why a network namespace cannot be tried; None if it can."""
    absent = [name for name in ("unshare", *programs) if program(name) is None]
    if absent:
        packages = " ".join(dict.fromkeys(_PACKAGES[name] for name in absent))
        return Ability(lever, means, f"{absent[0]} is not installed", f"apt-get install {packages}")
    code, said = run("unshare", "--net", "--", "true")
    if code or not _may(_SYS_ADMIN):
        return Ability(lever, means, f"only root may make network namespaces: {said}".rstrip(": "),
                       _AS_ROOT)  # fmt: skip
    return None


def _of_storage(storage: Storage) -> Iterator[str]:
    if storage.kind != "directory":
        yield storage.kind
    if limits_of(storage) and storage.kind != "zfs":
        yield "rates"
    if storage.latency_ms and storage.kind != "zfs":
        yield "latency"


def _memory() -> Ability:
    return _of_groups("memory", "memory = SIZE", "memory")


def _share() -> Ability:
    return _of_groups("cpu_share", "cpu_share = 0.5", "cpu", "cpuacct")


def _rates() -> Ability:
    one = _of_groups("rates", "read_iops = N, ...", "blkio")
    return one if not one.here else _device("rates", one.means, "mkfs.ext4")


def _of_groups(lever: str, means: str, *controllers: str) -> Ability:
    found = hierarchies(controllers)
    if not isinstance(found, str):
        return Ability(lever, means)
    remedy = _AS_ROOT if os.geteuid() else "mount the kernel's control groups"
    return Ability(lever, means, found, remedy)


def _cores() -> Ability:
    return Ability("cores", f"of {numbers(sorted(os.sched_getaffinity(0)))}")


def _cold() -> Ability:
    return Ability("cold", 'cold = "trial"')


def _directory() -> Ability:
    return Ability("directory", "directory = PATH")


def _ram() -> Ability:
    return _mounted("ram", "ram = true", "tmpfs")


def _ext4() -> Ability:
    return _device("ext4", 'filesystem = "ext4"', "mkfs.ext4")


def _xfs() -> Ability:
    return _device("xfs", 'filesystem = "xfs"', "mkfs.xfs")


def _btrfs() -> Ability:
    return _device("btrfs", 'filesystem = "btrfs"', "mkfs.btrfs", "compsize")


def _zfs() -> Ability:
    means = 'filesystem = "zfs"'
    found = _mounted("zfs", means, "fuse", "zfs-fuse", "zpool", "zfs")
    if found.here and (others := zfs.running()):
        return Ability(
            "zfs", means, f"another zfs-fuse runs on this machine, as process {others[0].pid}",
            "stop it: service zfs-fuse stop",
        )  # fmt: skip
    return found


def _latency() -> Ability:
    means = "latency_ms = N"
    found = _device("latency", means, "nbdkit", "nbdfuse")
    absent = slow.missing()
    if found.here and absent:
        return Ability(
            "latency", means, f"there is no {absent[0]}", "load the kernel's fuse module"
        )
    return found


def _io_sizes() -> Ability:
    """bpftrace, the kernel's own description of its structures, and the right to trace."""
    means = "io_sizes = true"
    if program("bpftrace") is None:
        remedy = "apt-get install bpftrace"
        return Ability("io_sizes", means, "bpftrace is not installed", remedy)
    if not _may(_SYS_ADMIN):
        return Ability("io_sizes", means, "only root may trace", _AS_ROOT)
    if not Path("/sys/kernel/btf/vmlinux").exists():
        missing = "this kernel does not describe its structures (/sys/kernel/btf/vmlinux)"
        return Ability("io_sizes", means, missing, "use a kernel with CONFIG_DEBUG_INFO_BTF")
    return Ability("io_sizes", means)


def _device(lever: str, means: str, *programs: str) -> Ability:
    """A file system behind a loop device."""
    kind = lever if lever in MAKERS else "ext4"
    found = _mounted(lever, means, kind, *programs)
    if found.here and not os.access("/dev/loop-control", os.W_OK):
        missing = "/dev/loop-control does not exist, or we may not write to it"
        return Ability(lever, means, missing, "modprobe loop")
    return found


def _mounted(lever: str, means: str, kind: str, *programs: str) -> Ability:
    """Something that is mounted: it needs a privilege, a file system of the kernel, programs."""
    absent = [name for name in programs if program(name) is None]
    if absent:
        packages = " ".join(dict.fromkeys(_PACKAGES[name] for name in absent))
        return Ability(lever, means, f"{absent[0]} is not installed", f"apt-get install {packages}")
    if not _may(_SYS_ADMIN):
        return Ability(lever, means, "only root may mount", _AS_ROOT)
    if not _kernel_has(kind):
        return Ability(lever, means, f"this kernel has no {kind}", "use another file system")
    return Ability(lever, means)


def _may(capability: int) -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> capability & 1)
    return False


def _kernel_has(kind: str) -> bool:
    words = Path("/proc/filesystems").read_text().split()
    return kind in words or run("modprobe", "-n", "-q", kind)[0] == 0


_LOOKS: Mapping[str, Callable[[], Ability]] = {
    "memory": _memory,
    "cores": _cores,
    "cpu_share": _share,
    "cold": _cold,
    "directory": _directory,
    "ram": _ram,
    "ext4": _ext4,
    "xfs": _xfs,
    "btrfs": _btrfs,
    "zfs": _zfs,
    "rates": _rates,
    "latency": _latency,
    "hosts": _hosts,
    "delay": _delay,
    "ssh": _ssh,
    "io_sizes": _io_sizes,
}
