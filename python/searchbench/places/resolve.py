"""Tables of a study → the place of one treatment, with the storages in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from searchbench.places.keys import FILES, kind_of
from searchbench.places.model import PARTS, PRESETS, Host, Place, Storage, part_kind
from searchbench.sizes import size_bytes

Tables = Mapping[str, Mapping[str, Any]]


def resolve(
    name: str,
    places: Tables,
    storages: Tables,
    kinds: Collection[str],
    base: Path,
    hosts: Tables = MappingProxyType({}),
    agents: Sequence[str] = (),
) -> Place:
    """The place of that name for a system that can lay files of these ``kinds`` apart.

    The tables are by name, and without problems. ``base``: what paths of directories are relative
    to. ``agents``: the names of their hosts. ``name`` "": of a system that has agents alone.
    """
    table = places[name] if name else {}
    given = _limits(table)
    given |= {key: table[key] for key in ("cold", "restart", "asks") if key in table}
    if "host" in table:
        given["host"] = host_of(table["host"], hosts[table["host"]])
    laid = storages_of(table, kinds)
    found = {kind: storage_of(at, storages[at], base) for kind, at in laid.items()}
    there = tuple(host_of(each, hosts[each]) for each in agents)
    return Place(name=name, **given, storages=found, agents=there)


def host_of(name: str, table: Mapping[str, Any]) -> Host:
    """A host as its table describes it."""
    given = {key: table[key] for key in ("ssh", "ssh_command", "address", "folder") if key in table}
    if "path" in table:
        path = table["path"]
        given["path"] = (path,) if isinstance(path, str) else tuple(path)
    delay_ms = float(table.get("delay_ms", 0.0))
    return Host(name=name, **_limits(table), delay_ms=delay_ms, **given)


def _limits(table: Mapping[str, Any]) -> dict[str, Any]:
    """Memory, cores and share, as far as they are given."""
    given: dict[str, Any] = {}
    if "memory" in table:
        given["memory_bytes"] = size_bytes(table["memory"])
    if "cores" in table:
        cores = table["cores"]
        given["cores"] = cores if isinstance(cores, int) else tuple(cores)
    if "cpu_share" in table:
        given["cpu_share"] = float(table["cpu_share"])
    return given


def storages_of(place: Mapping[str, Any], kinds: Collection[str]) -> dict[str, str]:
    """By kind of file the name of its storage, where that is not simply the data's.

    A kind that lies on the data's storage is left where the engine puts it. Parts with storages of
    their own are all of the index, so that nothing lies on the data's.
    """
    parts = parts_of(place, kinds)
    kinds = [kind for kind in kinds if kind != PARTS and not (parts and kind == "data")]
    said = {kind: place.get(kind, place.get("storage")) for kind in FILES if kind in kinds}
    data = said.get("data")
    if data is not None and "storage" not in place:
        said = {kind: place.get(kind, data) for kind in said}
    found = {
        kind: name
        for kind, name in said.items()
        if name is not None and (kind == "data" or name != data)
    }
    return found | {part_kind(number): name for number, name in enumerate(parts)}


def parts_of(place: Mapping[str, Any], kinds: Collection[str]) -> list[str]:
    """The names of the storages of parts, in their order; none where they lie with the data."""
    given = place.get(PARTS, []) if PARTS in kinds else []
    return [given] if isinstance(given, str) else list(given)


def storage_of(name: str, table: Mapping[str, Any], base: Path) -> Storage:
    """A storage as its table describes it, with what it is like spelled out."""
    kind = kind_of(table)
    assert kind is not None
    given: dict[str, Any] = {}
    if kind == "directory":
        given["directory"] = str(base / table["directory"])
    else:
        given["size_bytes"] = size_bytes(table.get("size", "4GB"))
    if table.get("compression", "none") != "none":
        given["compression"] = table["compression"]
    if "record_size" in table:
        given["record_size_bytes"] = size_bytes(table["record_size"])
    if "logbias" in table:
        given["logbias"] = table["logbias"]
    if like := table.get("like"):
        preset = PRESETS[like]
        given |= {"like": like, **{key: getattr(preset, key) for key in preset.__struct_fields__}}
    given |= {key: table[key] for key in ("read_iops", "write_iops") if key in table}
    for key in ("read", "write"):
        if f"{key}_per_s" in table:
            given[f"{key}_bytes_per_s"] = size_bytes(table[f"{key}_per_s"])
    if "latency_ms" in table:
        given["latency_ms"] = float(table["latency_ms"]) or None
    return Storage(name=name, kind=kind, **given)
