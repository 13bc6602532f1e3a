"""Places as they are described: sizes, what goes together, presets, what two places share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.engines import ENGINES
from searchbench.places import Place, Storage, place_of
from searchbench.places.keys import (
    FILES,
    PLACE_KEYS,
    STORAGE_KEYS,
    place_problems,
    storage_problems,
)
from searchbench.places.model import FILE_SYSTEMS, PRESETS, of_files, same
from searchbench.places.resolve import resolve
from searchbench.sizes import size_bytes, size_text
from searchbench.spec import SpecKey

DISK = {"filesystem": "ext4"}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("256MB", 256_000_000), ("256MiB", 256 << 20), ("256M", 256 << 20), ("64k", 65_536),
        ("64KB", 64_000), ("1.5GB", 1_500_000_000), ("0.5G", 512 << 20), ("512B", 512),
        ("2 TiB", 2 << 40), ("1tb", 10**12),
    ],
)  # fmt: skip
def test_sizes_are_decimal_with_a_b_and_binary_without(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("256", "it has no unit"), ("256mg", "there is no unit mg"), ("0.3B", "not a whole number"),
        ("-1MB", "not a number with a unit"), ("", "not a number with a unit"),
        ("1 000 MB", "not a number"),
        ("MB", "not a number"), ("1e3k", "not a number with a unit"),
    ],
)  # fmt: skip
def test_what_is_no_size_says_why(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        size_bytes(text)


@given(st.integers(0, 2**60))
def test_a_size_is_written_as_it_is_read(size: int) -> None:
    assert size_bytes(size_text(size)) == size


def test_sizes_are_written_short() -> None:
    shown = [size_text(n) for n in (256_000_000, 65_536, 1500, 10**6, 300 << 20)]
    assert shown == ["256MB", "64KiB", "1500B", "1MB", "300MiB"]


def test_a_key_of_a_size_has_bounds_in_sizes() -> None:
    key = SpecKey("memory", "size", minimum=10**6)
    assert key.mismatch("1MB") is None
    assert key.mismatch("64k") == (
        '`memory` must be a size (as "256MB" or "64k") of at least 1MB, not "64k"'
    )
    assert (key.mismatch("64") or "").endswith(
        'not "64": it has no unit; kB, MB, GB, TB are powers of 1,000; k, M, G, T are powers of '
        "1,024"
    )
    assert key.mismatch(64_000_000) is not None


def test_a_key_of_integers_takes_one_or_a_list() -> None:
    key = SpecKey("cores", "integers", minimum=0)
    assert [key.mismatch(good) for good in (2, [0], [0, 3])] == [None] * 3
    for bad in (-1, [0, -1], [], "2", [1.5], True, [True]):
        assert "must be an integer or a list of integers" in (key.mismatch(bad) or ""), bad


def problems(**table: object) -> list[str]:
    return [f"{key}: {sentence}" for key, sentence in storage_problems(table)]


@pytest.mark.parametrize(
    "table",
    [
        {"filesystem": "ext4"},
        {"filesystem": "xfs", "size": "1GB", "like": "disk", "read_iops": 200},
        {"filesystem": "btrfs", "compression": "zstd:15"},
        {"filesystem": "btrfs", "compression": "lzo"},
        {"filesystem": "zfs", "compression": "gzip-9", "record_size": "64k", "logbias": "latency"},
        {"filesystem": "ext4", "compression": "none"},
        {"directory": "/tmp"},
        {"ram": True, "size": "100MB"},
        {"ram": False, "filesystem": "ext4"},
    ],
)
def test_storages_that_go_together(table: dict[str, object]) -> None:
    assert problems(**table) == []


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, ": a storage needs a kind"),
        ({"ram": False}, ": a storage needs a kind"),
        ({**DISK, "ram": True}, "ram: `filesystem` and `ram` are two storages"),
        ({"directory": "/tmp", "size": "1GB"}, "size: `size` is for a file system that is made"),
        ({"filesystem": "xfs", "size": "200MB"}, "size: xfs needs 300MiB at least"),
        ({**DISK, "compression": "zstd"}, "compression: ext4 has no compression; btrfs and zfs"),
        ({"ram": True, "compression": "lzo"}, "compression: memory has no compression"),
        ({"filesystem": "zfs", "compression": "lz4"}, "zfs-fuse here, which lacks lz4; it has"),
        ({"filesystem": "zfs", "compression": "zstd-3"}, "zfs-fuse here, which lacks zstd-3"),
        ({"filesystem": "zfs", "compression": "gzip-10"}, 'zfs-fuse has no compression "gzip-10"'),
        ({"filesystem": "btrfs", "compression": "zstd:16"}, "btrfs has no compression"),
        ({"filesystem": "btrfs", "compression": "lz4"}, "btrfs has no compression"),
        ({**DISK, "record_size": "64k"}, "record_size: `record_size` is a property of zfs, and"),
        ({**DISK, "logbias": "latency"}, "logbias: `logbias` is a property of zfs"),
        ({"filesystem": "zfs", "record_size": "48k"}, "record_size: `record_size` must be a power"),
        ({"ram": True, "like": "disk"}, "like: `like` limits the device below ext4, xfs or btrfs"),
        ({"directory": "/tmp", "read_iops": 5}, "a directory, whose device is not ours to slow"),
        ({"filesystem": "zfs", "like": "ssd"}, "zfs, whose file zfs-fuse reads and writes itself"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_in_a_storage_is_said_at_its_key(
    table: dict[str, object], said: str
) -> None:
    found = problems(**table)
    assert len(found) == 1
    assert said in found[0]


def test_cores_are_a_count_of_at_least_one_or_different_numbers() -> None:
    def said(cores: object) -> list[str]:
        return [sentence for _, sentence in place_problems({"cores": cores})]

    assert [said(good) for good in (1, [0], [3, 0])] == [[], [], []]
    assert "core number 0 alone is cores = [0]" in said(0)[0]
    assert "names a core twice: [0, 1, 0]" in said([0, 1, 0])[0]


def resolved(place: dict[str, object], *kinds: str, **storages: dict[str, object]) -> Place:
    return resolve("p", {"p": place}, storages, kinds, Path("/studies"))


def test_a_place_is_resolved_to_bytes_with_its_storages_in_it() -> None:
    table = {"memory": "256MB", "cores": [1], "cpu_share": 1, "cold": "trial", "storage": "d"}
    disk = {"filesystem": "zfs", "size": "1G", "compression": "gzip", "record_size": "8k"}
    place = resolved(table, "data", d=disk)
    assert place == Place(
        name="p", memory_bytes=256_000_000, cores=(1,), cold="trial",
        storages={"data": Storage(name="d", kind="zfs", size_bytes=1 << 30, compression="gzip",
                                  record_size_bytes=8192)},
    )  # fmt: skip
    assert place_of({"place": place.settings()}) == place
    assert resolved({}, "data").settings() == {"name": "p"}
    assert place_of({"load": {}}) is None


def test_kinds_of_files_lie_with_the_data_unless_they_are_laid_apart() -> None:
    def laid(place: dict[str, object], *kinds: str) -> dict[str, str]:
        found = resolved(place, *kinds, a=DISK, b=DISK).storages
        return {kind: storage.name for kind, storage in found.items()}

    both = ("data", "wal")
    assert laid({"storage": "a"}, *both) == {"data": "a"}
    assert laid({"storage": "a", "wal": "b"}, *both) == {"data": "a", "wal": "b"}
    assert laid({"storage": "a", "wal": "b"}, "data") == {"data": "a"}
    assert laid({"wal": "b"}, *both) == {"wal": "b"}
    assert laid({"data": "a"}, *both) == {"data": "a"}
    assert laid({"storage": "b", "data": "a"}, *both) == {"data": "a", "wal": "b"}
    assert laid({"storage": "a", "wal": "a"}, *both) == {"data": "a"}
    assert laid({"storage": "a"}) == {}


def test_a_preset_gives_the_limits_that_the_study_does_not() -> None:
    like = {**DISK, "like": "disk"}
    place = resolved({"storage": "d"}, "data", d={**like, "read_iops": 200, "latency_ms": 0})
    disk, preset = place.storages["data"], PRESETS["disk"]
    assert (disk.read_iops, disk.latency_ms, disk.like) == (200, None, "disk")
    assert disk.write_bytes_per_s == preset.write_bytes_per_s
    assert disk.limited
    assert not resolved({"storage": "d"}, "data", d=DISK).storages["data"].limited
    # One request after another, each as long as a seek and half a turn.
    assert preset.latency_ms is not None
    assert preset.read_iops == pytest.approx(1000 / preset.latency_ms, rel=0.02)
    assert PRESETS["ssd"].read_iops > 100 * preset.read_iops


def test_directories_are_relative_to_the_study() -> None:
    place = resolved({"storage": "d"}, "data", d={"directory": "here"})
    assert place.storages["data"].directory == "/studies/here"
    assert place.storages["data"].size_bytes == 0


def test_an_index_depends_on_its_file_systems_and_not_on_what_limits_them() -> None:
    def key(place: dict[str, object], **disk: object) -> object:
        return of_files(resolved({"storage": "d", **place}, "data", d={**DISK, **disk}))

    plain = key({})
    for other in ({"memory": "1GB"}, {"cores": 1}, {"cpu_share": 0.5}, {"cold": "trial"}):
        assert key(other) == plain
    assert key({}, read_iops=10) == key({}, like="ssd") == plain
    changes = ({"size": "1GB"}, {"filesystem": "btrfs"}, {"like": "disk"}, {"latency_ms": 1})
    assert all(key({}, **change) != plain for change in changes)
    two = {"a": DISK, "b": DISK}
    apart = resolved({"storage": "a", "wal": "b"}, "data", "wal", **two)
    swapped = resolved({"storage": "b", "wal": "a"}, "data", "wal", **two)
    together = resolved({"storage": "a"}, "data", "wal", **two)
    assert of_files(apart) == of_files(swapped) != of_files(together)
    assert of_files(None) == of_files(resolved({"memory": "1GB"}, "data")) == {}


def test_places_are_the_same_whatever_they_are_called() -> None:
    table = {"memory": "1GB", "storage": "a"}
    one = resolve("one", {"one": table}, {"a": {**DISK, "like": "ssd"}}, ["data"], Path("/"))
    ssd = {"read_iops": 13_000, "write_iops": 36_000, "read_per_s": "560MB", "write_per_s": "530MB"}
    spelled = {**DISK, **ssd}
    two = resolve("two", {"two": {**table, "storage": "b"}}, {"b": spelled}, ["data"], Path("/"))
    assert same(one) == same(two)
    more = resolve("two", {"two": {**table, "memory": "2GB"}}, {"a": spelled}, ["data"], Path("/"))
    assert same(one) != same(more)
    assert same(Place(name="plain")) == same(None) == {}


def test_engines_declare_kinds_of_files_that_there_are_and_say_how_to_lay_them() -> None:
    from searchbench.engines import defaults
    from searchbench.lab.system.running import NO_FIELDS

    for engine in ENGINES.values():
        kinds = set(engine.can.writes)
        assert kinds <= set(FILES)
        assert ("data" in kinds) == engine.can.keeps_index, engine.name
        service = engine.service(defaults(engine), NO_FIELDS)
        # Parts are laid by the engine's own files, one by one.
        assert set(service.laid) == kinds - {"data", "parts"}, engine.name
        for kind, laid in service.laid.items():
            # What a job's own program writes is in its command line.
            words = [word for job in engine.jobs if kind in job.leaves for command in engine.work(
                job.name, {p.name: p.default for p in job.parameters}, NO_FIELDS, defaults(engine)
            ).commands for word in command]  # fmt: skip
            assert any(f"{{{kind}}}" in part for part in (*laid.argv, *laid.first, *words))
        assert not any("{wal}" in part for part in service.argv)


def test_every_key_says_what_it_is_and_defaults_fit() -> None:
    for key in (*PLACE_KEYS, *STORAGE_KEYS):
        assert key.doc
        assert key.default is None or key.mismatch(key.default) is None
    assert {key.name for key in PLACE_KEYS} >= set(FILES)
    [filesystem] = [key for key in STORAGE_KEYS if key.name == "filesystem"]
    assert filesystem.choices == FILE_SYSTEMS
