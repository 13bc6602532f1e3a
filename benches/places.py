"""Places: what they cost, and how near their levers come to what was asked of them.

Needs root and control groups; what is not to be had here is said, and not run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import psutil
from msgspec.structs import replace

from benches import placed
from benches.figure import Figure, Missing
from benches.servers import HOST, closed, serving
from searchbench.engines.frames import QUERY, frame
from searchbench.lab.place import cold, throttle, zfs
from searchbench.lab.place.abilities import ability
from searchbench.lab.place.disk import Disk
from searchbench.lab.place.group import Group
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.storages import Storages
from searchbench.lab.probe.probe import Probe
from searchbench.lab.system.deploy import in_child
from searchbench.places import Place, Storage

ROUNDS = 3
SIZE = 400 << 20
FILE_BYTES = 96 << 20
CAPS = (32 << 20, 64 << 20)
LIMITS = {"read_iops": (200, 2_000), "read_bytes_per_s": (8_000_000, 40_000_000)}
PAGE = os.sysconf("SC_PAGE_SIZE")
# Touches pages of a file at random through a mapping, as an engine that maps its index does.
TOUCHES = """
import mmap, os, random, sys
path, touches = sys.argv[1], int(sys.argv[2])
file = os.open(path, os.O_RDONLY)
size = os.fstat(file).st_size
pages = mmap.mmap(file, size, prot=mmap.PROT_READ)
pages.madvise(mmap.MADV_RANDOM)
for _ in range(touches):
    pages[random.randrange(size // mmap.PAGESIZE) * mmap.PAGESIZE]
print("filled", flush=True)
sys.stdin.readline()
for _ in range(touches):
    pages[random.randrange(size // mmap.PAGESIZE) * mmap.PAGESIZE]
print("done", flush=True)
sys.stdin.readline()
"""


def figures() -> Iterator[Figure | Missing]:
    """Storages made and removed; caps and rates against their effect; the probe; an A/A."""
    yield from _storages()
    yield from _caps()
    yield from _rates()
    yield from _probe()
    yield from placed.figures()


@contextmanager
def _stored(kind: str) -> Iterator[tuple[Storages, Ledger, Storage]]:
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder, Ledger() as ledger:
        work = Path(folder).resolve() / "searchbench-work-of-a-bench"
        work.mkdir()
        storage = Storage(name="disk", kind=kind, size_bytes=SIZE)  # type: ignore[arg-type]
        place = Place(name="here", storages={"data": storage})
        found = Storages(place, work / "index", work, ledger, zfs.Daemon(ledger, work))
        try:
            yield found, ledger, storage
        finally:
            if left := found.remove():
                raise RuntimeError("; ".join(left))


def _storages() -> Iterator[Figure | Missing]:
    """Seconds to make a storage, to verify it by files of an index, and to undo it."""
    for kind in ("ext4", "xfs", "btrfs", "zfs"):
        if not (able := ability(kind)).here:
            yield Missing(f"a storage with {kind}: {able.missing}")
            continue
        took = []
        for _ in range(ROUNDS):
            with _stored(kind) as (found, _, _):
                began = time.perf_counter()
                found.make()
                made_s = time.perf_counter() - began
                found.data.mkdir(parents=True)
                (found.data / "file").write_bytes(os.urandom(1 << 20))
                began = time.perf_counter()
                problems = [v.problem for v in found.levers() if v.problem]
                problems += found.remove()
                took.append(made_s + time.perf_counter() - began)
            if problems:
                raise RuntimeError("; ".join(problems))
        yield Figure(
            f"a storage with {kind} made, verified and undone", median(took), "s",
            at_most=8 if kind == "zfs" else 3,
        )  # fmt: skip


def _caps() -> Iterator[Figure | Missing]:
    """Pages that a process reads from its device at random, against what is not in memory."""
    for lever in ("memory", "ext4"):
        if not (able := ability(lever)).here:
            yield Missing(f"a cap of memory: {able.missing}")
            return
    for cap in CAPS:
        with _stored("ext4") as (found, ledger, _):
            found.make()
            found.data.mkdir(parents=True)
            path = found.data / "file"
            path.write_bytes(os.urandom(FILE_BYTES))
            made = found.made("disk")
            assert isinstance(made, Disk)
            found.evict()
            group = Group(ledger, ["memory", "blkio"])
            group.make()
            try:
                group.cap_memory(cap)
                touches = 4 * FILE_BYTES // PAGE
                child = subprocess.Popen(
                    [sys.executable, "-I", "-c", TOUCHES, str(path), str(touches)],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    preexec_fn=in_child((), joins=group.joins),
                )  # fmt: skip
                assert child.stdin is not None
                assert child.stdout is not None
                child.stdout.readline()
                before = group.device(str(made.device))["read_bytes"]
                child.stdin.write(b"\n")
                child.stdin.flush()
                child.stdout.readline()
                read = (group.device(str(made.device))["read_bytes"] - before) / PAGE
                absent = 1 - cold.resident(path) / (FILE_BYTES // PAGE)
                child.communicate(b"\n")
            finally:
                group.remove()
            found.remove()
        of = f"a cap of {cap >> 20} MiB, a file of {FILE_BYTES >> 20} MiB read at random"
        yield Figure(
            f"{of}: pages read against pages that mincore misses",
            100 * abs(read / (touches * absent) - 1), "%", at_most=20,
            note=f"{read / touches:.1%} of the touches were read",
        )  # fmt: skip


def _rates() -> Iterator[Figure | Missing]:
    """What is read through a mapping against the limit of its device."""
    if not (able := ability("rates")).here:
        yield Missing(f"rates of a device: {able.missing}")
        return
    for rate, limits in LIMITS.items():
        for limit in limits:
            found = [_through_a_mapping(rate, limit) for _ in range(ROUNDS)]
            got = median(found)
            what = f"{limit:,} reads/s" if rate == "read_iops" else f"{limit / 1e6:g} MB/s"
            each = ", ".join(f"{100 * (one / limit - 1):+.1f}" for one in found)
            yield Figure(
                f"a limit of {what}, through a mapping: off by", 100 * abs(got / limit - 1), "%",
                at_most=3, note=f"median of {each} %",
            )  # fmt: skip


def _through_a_mapping(rate: str, limit: int) -> float:
    """What is read a second through a mapping of a storage that was made with this limit."""
    with _stored("ext4") as (found, ledger, storage):
        found.make()
        made = found.made("disk")
        assert isinstance(made, Disk)
        group = Group(ledger, ["blkio"])
        group.make()
        limited = replace(storage, **{rate: limit})
        try:
            (lever,) = throttle.throttle(group, str(made.device), made.path, limited, made.probe)
        finally:
            group.remove()
        found.remove()
    return lever.figures[f"mapped_{rate}"]


def _probe() -> Iterator[Figure]:
    """CPU of the probe, and what it costs those who are probed."""
    with serving([HOST, "null", "--port", "0", "--data", "/tmp"]) as port:
        server = next(
            psutil.Process(c.pid) for c in psutil.net_connections("tcp")
            if c.laddr and c.laddr.port == port and c.pid and c.status == "LISTEN"
        )  # fmt: skip
        own = os.times()
        began = time.perf_counter()
        with Probe(lambda: [server]):
            time.sleep(10)
        now = os.times()
        used_s = now.user + now.system - own.user - own.system
        yield Figure(
            "the probe at 10 Hz, of a core", 100 * used_s / (time.perf_counter() - began), "%",
            at_most=1.0,
        )  # fmt: skip
        ratios = []
        for turn in range(12):
            done = {}
            for probed in (True, False) if turn % 2 else (False, True):
                if probed:
                    with Probe(lambda: [server]):
                        done[probed] = _answered(port)
                else:
                    done[probed] = _answered(port)
            ratios.append(done[True] / done[False])
        yield Figure(
            "throughput that the probe costs, median of 12 pairs", 100 * (1 - median(ratios)), "%",
            at_most=1.0,
        )  # fmt: skip


def _answered(port: int) -> int:
    return len(closed(port, "frames", [frame(QUERY, b"{}")], 4, 1.5, idle="block").ok())
