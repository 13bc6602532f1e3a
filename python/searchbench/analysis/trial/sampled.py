"""What the machine did, interval by interval: rates and means from the probe's counters.

The figures are those of ``sar`` and ``iostat`` (sysstat), by the same formulas: shares of CPU time
by kind, requests a second, their mean size, the mean number in flight (queue), the mean time of one
(await), and the share of the time that a device had any (busy).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa

from searchbench.analysis.judgement import Curve
from searchbench.record.trial import Span, Trial

KINDS = ("user", "nice", "system", "iowait", "irq", "softirq", "steal", "idle")


@dataclass(frozen=True, slots=True)
class Device:
    """One block device in one interval; sizes and times are means over its requests."""

    name: str
    reads_per_s: float
    writes_per_s: float
    read_bytes_per_s: float
    written_bytes_per_s: float
    request_bytes: float
    in_flight: float
    wait_s: float
    busy: float


@dataclass(frozen=True, slots=True)
class Link:
    """One network interface in one interval."""

    name: str
    received_bytes_per_s: float
    sent_bytes_per_s: float
    packets_per_s: float
    dropped_per_s: float


@dataclass(frozen=True, slots=True)
class Interval:
    """From ``start_s`` to ``end_s`` on the clock of the drive, in ``phase`` at its beginning.

    ``cpu``: shares 0..1 of all cores by kind. ``server_cores``: how many the server kept busy.
    ``stalled_io``: the share of the time in which some task waited for a disk (PSI).
    ``state``: means of what is no counter (tasks that run or wait for a disk, bytes of memory).
    None and absent: not on record.
    """

    start_s: float
    end_s: float
    phase: str
    cpu: Mapping[str, float]
    server_cores: float | None
    switches_per_s: float | None
    major_faults_per_s: float | None
    stalled_io: float | None = None
    state: Mapping[str, float] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()
    links: tuple[Link, ...] = ()


SERVER, DISK, PRESSED = "the server's cores", "the busiest disk", "some task waits for a disk"


def activity(trial: Trial, probe: pa.Table, points: int = 60) -> tuple[Curve, ...]:
    """Shares 0..1 of the time over a drive, x in seconds since it began; what is known of them."""
    if trial.drive is None or not trial.drive.elapsed_ns:
        return ()
    lasted_s = trial.drive.elapsed_ns / 1e9
    every = list(intervals(probe, trial.spans, max(0.2, lasted_s / points)))
    found = [one for one in every if 0 <= one.start_s < lasted_s]
    cores = len(trial.service.cpus) or trial.host_window.cores
    lines: dict[str, list[tuple[float, float]]] = {SERVER: [], DISK: [], PRESSED: []}
    for one in found:
        at = (one.start_s + one.end_s) / 2
        # Of hosts that are other machines, none of these cores is theirs.
        if one.server_cores is not None and cores and not trial.elsewhere:
            lines[SERVER].append((at, min(1.0, one.server_cores / cores)))
        lines[DISK].append((at, max((d.busy for d in one.devices), default=0.0)))
        if one.stalled_io is not None:
            lines[PRESSED].append((at, min(1.0, one.stalled_io)))
    # A disk that was never busy says nothing that the caption does not.
    return tuple(
        Curve(label, tuple(x for x, _ in own), tuple(y for _, y in own))
        for label, own in lines.items()
        if len(own) > 1 and (label == SERVER or max(y for _, y in own) >= _SHOWN)
    )


_SHOWN = 0.02
_STATE = (
    "running", "blocked", "memory_free_bytes", "memory_available_bytes", "memory_cached_bytes",
    "memory_dirty_bytes", "server_rss_bytes",
)  # fmt: skip


def intervals(probe: pa.Table, spans: Sequence[Span], seconds: float) -> Iterator[Interval]:
    """The samples of a trial in intervals of about ``seconds``, which end at samples."""
    t = probe.column("t").to_numpy()
    if t.size < 2:
        return
    edges = [0]
    for i in range(1, t.size):
        if t[i] - t[edges[-1]] >= seconds * 1e9:
            edges.append(i)
    for first, last in pairwise(edges):
        yield _interval(probe.slice(first, last - first + 1), spans)


def _interval(rows: pa.Table, spans: Sequence[Span]) -> Interval:
    t = rows.column("t")
    start, end = t[0].as_py(), t[-1].as_py()
    seconds = (end - start) / 1e9
    cpu = {kind: _grown(rows, f"host_{kind}_s") for kind in KINDS}
    known = {kind: max(0.0, grown) for kind, grown in cpu.items() if grown is not None}
    whole = sum(known.values()) or 1.0
    server = _grown(rows, "server_cpu_s")
    switches, faults = _grown(rows, "switches"), _grown(rows, "host_major_faults")
    stalled = _grown(rows, "stalled_io_s")
    state = {}
    for name in _STATE:
        values = rows.column(name).drop_null().to_numpy()
        if values.size:
            state[name] = float(values.mean())
    return Interval(
        start_s=start / 1e9,
        end_s=end / 1e9,
        phase=next((s.phase for s in spans if s.start <= start < s.end), ""),
        cpu={kind: grown / whole for kind, grown in known.items()},
        # Less than before: another process, which began at 0.
        server_cores=None if server is None or server < 0 else server / seconds,
        switches_per_s=None if switches is None else switches / seconds,
        major_faults_per_s=None if faults is None else faults / seconds,
        stalled_io=None if stalled is None else stalled / seconds,
        state=state,
        devices=tuple(_device(*one, seconds) for one in _pairs(rows, "devices")),
        links=tuple(_link(*one, seconds) for one in _pairs(rows, "links")),
    )


def _grown(rows: pa.Table, name: str) -> float | None:
    column = rows.column(name)
    first, last = column[0].as_py(), column[-1].as_py()
    return None if first is None or last is None else float(last - first)


def _pairs(rows: pa.Table, name: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each entry of a column of lists as it was first and last; those that did nothing left out."""
    column = rows.column(name)
    before = {entry["name"]: entry for entry in column[0].as_py() or ()}
    for entry in column[-1].as_py() or ():
        first = before.get(entry["name"])
        if first is not None and first != entry:
            yield first, entry


def _device(first: Mapping[str, Any], last: Mapping[str, Any], seconds: float) -> Device:
    grown = {key: last[key] - first[key] for key in last if key != "name"}
    requests = grown["reads"] + grown["writes"]
    moved = grown["read_bytes"] + grown["written_bytes"]
    each = max(1, requests)
    return Device(
        name=last["name"],
        reads_per_s=grown["reads"] / seconds,
        writes_per_s=grown["writes"] / seconds,
        read_bytes_per_s=grown["read_bytes"] / seconds,
        written_bytes_per_s=grown["written_bytes"] / seconds,
        request_bytes=moved / each,
        in_flight=grown["waited_s"] / seconds,
        wait_s=(grown["read_s"] + grown["write_s"]) / each,
        busy=min(1.0, grown["busy_s"] / seconds),
    )


def _link(first: Mapping[str, Any], last: Mapping[str, Any], seconds: float) -> Link:
    grown = {key: (last[key] - first[key]) / seconds for key in last if key != "name"}
    return Link(
        name=last["name"],
        received_bytes_per_s=grown["received_bytes"],
        sent_bytes_per_s=grown["sent_bytes"],
        packets_per_s=grown["received"] + grown["sent"],
        dropped_per_s=grown["dropped"],
    )


def busiest(found: Sequence[Interval]) -> list[str]:
    """The names of the devices, the one that was busy longest first."""
    times: dict[str, float] = {}
    for one in found:
        for device in one.devices:
            length_s = one.end_s - one.start_s
            times[device.name] = times.get(device.name, 0.0) + device.busy * length_s
    return sorted(times, key=lambda name: -times[name])
