"""Storages on the real kernel: made, verified by their effect on files, slowed, removed."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from placing import home, made, needs
from searchbench.errors import LabError
from searchbench.lab.place import cold, disk, mounts, slow, things, throttle, zfs
from searchbench.lab.place.group import Group
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.places import Confines
from searchbench.lab.place.storages import Storages
from searchbench.places import Cores, Place, Storage
from searchbench.record.trial import Lever

__all__ = ["home", "made"]

SIZE = 320 << 20
TEXT = b" ".join(b"%d bottles of beer on the wall" % n for n in range(20_000))
KINDS = ("ext4", "xfs", "btrfs", "zfs", "ram")


def stored(home: Path, made: Ledger, **changes: Any) -> Storages:
    """The storages of an index whose data lies on one storage; it is made."""
    asked = Storage(**{"name": "disk", "kind": "ext4", "size_bytes": SIZE, **changes})
    work = home / "searchbench-work-of-a-test"
    work.mkdir(exist_ok=True)
    place = Place(name="here", storages={"data": asked})
    found = Storages(place, work / "index", work, made, zfs.Daemon(made, work))
    found.make()
    return found


def write(found: Storages, *pieces: bytes) -> None:
    """Files of an index."""
    found.data.mkdir(parents=True, exist_ok=True)
    for number, piece in enumerate(pieces):
        (found.data / f"file-{number}").write_bytes(piece)
    os.sync()


def lever(levers: list[Lever], name: str) -> Lever:
    return next(v for v in levers if v.name == f"storages.disk.{name}")


@pytest.mark.parametrize("kind", ["zfs", "nfs4", "fuse.sshfs", "ext4"])
def test_a_file_system_with_a_cache_of_its_own_can_be_neither_cold_nor_capped(
    kind: str, home: Path, made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = home / "searchbench-work-of-a-test"
    work.mkdir()
    found = Storages(Place(name="here"), work / "index", work, made, zfs.Daemon(made, work))
    there = replace(mounts.holding(work), kind=kind)
    monkeypatch.setattr(mounts, "holding", lambda _: there)
    said = found.hidden()
    assert bool(said) == (kind != "ext4")
    if said:
        assert said.startswith(f"{work} lies on {kind}, which keeps pages in memory")


@pytest.mark.parametrize("kind", KINDS)
def test_a_storage_is_made_holds_files_and_is_removed(kind: str, home: Path, made: Ledger) -> None:
    needs(kind)
    found = stored(home, made, kind=kind)
    write(found, TEXT, os.urandom(1 << 20))
    levers = found.levers()
    assert [v.problem for v in levers] == [""]
    seen = lever(levers, "ram" if kind == "ram" else "filesystem")
    assert seen.figures == {"files": 2, "bytes": len(TEXT) + (1 << 20)}
    assert ("direct I/O" in seen.read_back) == (kind in ("ext4", "xfs", "btrfs"))
    found.forget()
    assert (found.data / "file-0").read_bytes() == TEXT
    if kind != "ram":
        evicted = found.evict()
        assert evicted.done
        assert evicted.pages == -(-len(TEXT) // 4096) + 256
    assert found.full() == ""
    assert found.remove() == []
    assert mounts.below(home) == []
    if kind == "zfs":  # else another worker may have one
        assert zfs.running() == []


def test_a_folder_of_ours_in_a_directory_holds_files(home: Path, made: Ledger) -> None:
    (home / "ssd").mkdir()
    (home / "ssd/theirs").touch()
    found = stored(home, made, kind="directory", directory=str(home / "ssd"), size_bytes=0)
    write(found, TEXT)
    seen = lever(found.levers(), "directory")
    assert seen.problem == ""
    assert seen.effect == f"{len(TEXT) / 1e6:.1f} MB in 1 files lie on it"
    assert found.remove() == []
    assert [path.name for path in (home / "ssd").iterdir()] == ["theirs"]
    with pytest.raises(LabError, match="there is no directory"):
        stored(home, made, kind="directory", directory=str(home / "nowhere"), size_bytes=0)


def test_a_storage_without_files_did_not_take(home: Path, made: Ledger) -> None:
    needs("ram")
    found = stored(home, made, kind="ram")
    assert lever(found.levers(), "ram").problem == "no file of the system lies on it; 0 should"


def test_files_that_lie_elsewhere_are_noticed(
    home: Path, made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("ext4")
    found = stored(home, made)
    point = found.made("disk").folder.parent
    assert mounts.unmount(point) == ""
    write(found, TEXT)
    assert lever(found.levers(), "filesystem").problem == "nothing is mounted there"


def test_a_device_without_direct_io_is_noticed(home: Path, made: Ledger) -> None:
    needs("ext4")
    found = stored(home, made)
    write(found, TEXT)
    on = found.made("disk")
    assert isinstance(on, disk.Disk)
    assert things.run("losetup", "--direct-io=off", on.path)[0] == 0
    assert "has no direct I/O" in lever(found.levers(), "filesystem").problem


@pytest.mark.parametrize("compression", ["zstd", "zstd:9", "lzo", "zlib:3"])
def test_btrfs_compresses_and_that_is_seen(compression: str, home: Path, made: Ledger) -> None:
    needs("btrfs")
    found = stored(home, made, kind="btrfs", compression=compression)
    write(found, TEXT)
    seen = lever(found.levers(), "compression")
    assert seen.problem == ""
    assert seen.read_back.startswith(f"compress-force={compression.split(':')[0]}")
    assert seen.figures["bytes"] == len(TEXT)
    assert seen.figures["disk_bytes"] < len(TEXT) * 0.6


def test_files_that_are_not_compressed_are_noticed(home: Path, made: Ledger) -> None:
    needs("btrfs")
    found = stored(home, made, kind="btrfs", compression="zstd")
    found.data.mkdir()
    with (found.data / "reserved").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, len(TEXT))
        file.write(TEXT)
    seen = lever(found.levers(), "compression")
    assert "files whose room was reserved beforehand (fallocate) are not compressed" in seen.problem
    (found.data / "reserved").write_bytes(os.urandom(1 << 20))
    seen = lever(found.levers(), "compression")
    assert seen.problem == ""
    assert "they hardly compress" in seen.effect


def test_holes_are_not_taken_for_compression(home: Path, made: Ledger) -> None:
    needs("btrfs")
    found = stored(home, made, kind="btrfs", compression="zstd")
    found.data.mkdir()
    path = found.data / "sparse"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, len(TEXT))
        file.write(TEXT)
        file.truncate(8 * len(TEXT))
    seen = lever(found.levers(), "compression")
    assert "are not compressed" in seen.problem
    assert "more are holes" in seen.problem
    path.write_bytes(os.urandom(1 << 20))
    os.truncate(path, 16 << 20)
    seen = lever(found.levers(), "compression")
    assert seen.problem == "", "what cannot be compressed is not accused for its holes"
    assert "they hardly compress" in seen.effect
    assert seen.figures["bytes"] == 1 << 20


def test_a_mount_without_compression_is_noticed(
    home: Path, made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("btrfs")
    monkeypatch.setattr(disk.Disk, "_options", lambda self: "nodiscard")
    found = stored(home, made, kind="btrfs", compression="zstd")
    write(found, TEXT)
    seen = lever(found.levers(), "compression")
    assert seen.problem == "mounted with no compression in the options of the mount"


def test_zfs_has_its_properties_and_compresses(home: Path, made: Ledger) -> None:
    needs("zfs")
    found = stored(
        home, made, kind="zfs", compression="gzip-6", record_size_bytes=16384, logbias="throughput"
    )
    write(found, TEXT * 3)
    levers = found.levers()
    assert [v.problem for v in levers] == [""] * 4
    assert lever(levers, "record_size").read_back == "16384"
    assert lever(levers, "logbias").read_back == "throughput"
    seen = lever(levers, "compression")
    assert seen.figures["disk_bytes"] < seen.figures["bytes"] * 0.6
    (pool,) = things.run("zpool", "list", "-H", "-o", "name")[1].split()
    things.run("zfs", "set", "recordsize=4096", pool)
    things.run("zfs", "set", "compression=off", pool)
    levers = found.levers()
    assert lever(levers, "record_size").problem == "zfs has '4096'"
    assert lever(levers, "compression").problem == "zfs has 'off'"


def test_a_cold_zfs_is_read_from_its_file_and_not_from_memory(home: Path, made: Ledger) -> None:
    needs("zfs")
    found = stored(home, made, kind="zfs", compression="gzip-1")
    size = 24 << 20
    write(found, os.urandom(size))
    image = next(home.glob("**/disk.img"))
    place = Place(name="here", cold="trial", storages={"data": found.made("disk").asked})
    confines = Confines(place, Cores(), found, made)
    confines.settle()
    assert "they hardly compress" in lever(confines.levers, "compression").effect, "it was sampled"
    assert cold.resident(image) * cold.PAGE_BYTES < 0.4 * size
    before = cold.resident(image)
    assert len((found.data / "file-0").read_bytes()) == size
    assert (cold.resident(image) - before) * cold.PAGE_BYTES > 0.6 * size, "its ARC had none of it"
    assert confines.leave() == []


def test_zfs_that_does_not_compress_is_noticed(home: Path, made: Ledger) -> None:
    needs("zfs")
    found = stored(home, made, kind="zfs", compression="gzip-6")
    (pool,) = things.run("zpool", "list", "-H", "-o", "name")[1].split()
    things.run("zfs", "set", "compression=off", pool)
    write(found, TEXT * 3)
    things.run("zfs", "set", "compression=gzip-6", pool)
    assert "zlib compresses" in lever(found.levers(), "compression").problem


def test_a_zfs_fuse_that_is_not_ours_is_left_alone(home: Path, made: Ledger) -> None:
    needs("zfs")
    theirs = Ledger()
    other = zfs.Daemon(theirs, home / "theirs")
    other.enter()
    try:
        with pytest.raises(LabError, match=r"a zfs-fuse that is not ours runs on .*; stop it"):
            stored(home, made, kind="zfs")
        assert zfs.running()
    finally:
        assert other.leave() == []
        theirs.close()
    assert zfs.running() == []


@pytest.mark.timed
def test_requests_to_a_slow_device_take_what_was_asked(home: Path, made: Ledger) -> None:
    needs("latency")
    found = stored(home, made, latency_ms=8.0)
    write(found, TEXT)
    found.forget()
    seen = lever(found.levers(), "latency_ms")
    assert seen.problem == ""
    assert 8.0 <= seen.figures["latency_ms"] < 10.0
    assert (found.data / "file-0").read_bytes() == TEXT
    assert found.remove() == []


def test_a_delay_that_is_not_there_is_noticed(
    home: Path, made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("latency")
    monkeypatch.setattr(slow.Slow, "start", lambda self: self._image)
    found = stored(home, made, latency_ms=8.0)
    write(found, TEXT)
    found.forget()
    assert "a read of 4 KiB takes" in lever(found.levers(), "latency_ms").problem


@pytest.mark.timed
def test_rates_are_kept_past_the_page_cache_and_through_mappings(home: Path, made: Ledger) -> None:
    needs("rates")
    limits = {"read_iops": 200, "write_iops": 150,
              "read_bytes_per_s": 40_000_000, "write_bytes_per_s": 30_000_000}  # fmt: skip
    found = stored(home, made, **limits)
    write(found, os.urandom(8 << 20))
    levers, group = limited(found, made)
    assert [v.problem for v in levers] == [""] * 4
    for one, rate in zip(levers, limits, strict=True):
        assert one.figures[f"measured_{rate}"] == pytest.approx(limits[rate], rel=0.03)
    assert levers[0].figures["mapped_read_iops"] == pytest.approx(200, rel=0.03)
    # A file of the index, page by page, through mappings.
    path = found.data / "file-0"
    faults = throttle._result(throttle._start(group, str(path), "mapped", 4096, 1.0))
    assert faults["per_s"] == pytest.approx(200, rel=0.03)
    assert group.remove() == []


@pytest.mark.timed
def test_a_limit_holds_through_a_mapping_of_a_file_that_is_read_several_times(
    home: Path, made: Ledger
) -> None:
    needs("rates")
    found = stored(home, made, read_bytes_per_s=8_000_000)
    write(found, os.urandom(3 << 20))
    _, group = limited(found, made)
    path = found.data / "file-0"
    pages = throttle._result(throttle._start(group, str(path), "mapped", 4096, 1.5))
    assert pages["per_s"] * 4096 == pytest.approx(8_000_000, rel=0.03)
    assert pages["all"] * 4096 > 3 * (3 << 20)
    assert group.remove() == []


@pytest.mark.parametrize("limit", [{"read_bytes_per_s": 40_000_000}, {"read_iops": 13_000}])
def test_a_fast_limit_is_not_evaded_by_pages_that_were_read_before(
    home: Path, made: Ledger, limit: dict[str, int]
) -> None:
    needs("rates")
    levers, group = limited(stored(home, made, size_bytes=2 << 30, **limit), made)
    (one,) = levers
    ((rate, most),) = limit.items()
    assert one.problem == ""
    assert 0 < one.figures[f"mapped_{rate}"] <= most * 1.03
    assert group.remove() == []


def limited(found: Storages, made: Ledger) -> tuple[list[Lever], Group]:
    """The limits of a storage, set and measured."""
    group = Group(made, ["blkio"])
    group.make()
    on = found.made("disk")
    assert isinstance(on, disk.Disk)
    assert on.device is not None
    return throttle.throttle(group, on.device, on.path, on.asked, on.probe), group


def test_a_rate_that_is_not_kept_is_noticed(
    home: Path, made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("rates")
    monkeypatch.setattr(Group, "limit_rate", lambda *_: None)
    found = stored(home, made, read_iops=50)
    ((one,), group) = limited(found, made)
    assert one.problem == "the kernel has set no limit"
    monkeypatch.setattr(Group, "rate", lambda *_: 50)
    group.remove()
    ((one,), group) = limited(found, made)
    assert one.problem.endswith("past the page cache: more than its limit")
    group.remove()


def test_a_file_that_cannot_be_so_large_is_told_with_its_key(home: Path, made: Ledger) -> None:
    needs("ext4")
    with pytest.raises(LabError, match=r"storage disk: a file of `size` = 9000000TB .*smaller"):
        stored(home, made, size_bytes=9 * 10**18)


def test_a_storage_that_is_full_is_named(home: Path, made: Ledger) -> None:
    needs("ram")
    found = stored(home, made, kind="ram", size_bytes=1 << 20)
    found.data.mkdir()
    with pytest.raises(OSError, match="No space"):
        (found.data / "file").write_bytes(bytes(2 << 20))
    assert found.full() == (
        "the storage disk is full: 0.0 MB are left of `size` = 1MiB; make it larger"
    )


@pytest.mark.timed
@pytest.mark.parametrize("kind", KINDS)
def test_placing_verifying_and_undoing_take_seconds(kind: str, home: Path, made: Ledger) -> None:
    needs(kind)
    began = time.perf_counter()
    found = stored(home, made, kind=kind)
    write(found, TEXT)
    place = Place(name="here", cold="trial", storages={"data": found.made("disk").asked})
    confines = Confines(place, Cores(), found, made)
    confines.settle()
    assert confines.leave() == []
    assert found.remove() == []
    assert time.perf_counter() - began < (8.0 if kind == "zfs" else 3.0)
