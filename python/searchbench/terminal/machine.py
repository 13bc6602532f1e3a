"""What the machine did while a trial went on, on a terminal: the tables of ``sar``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from searchbench.analysis.trial import sampled
from searchbench.analysis.trial.sampled import KINDS, Interval
from searchbench.errors import RecordError
from searchbench.record import Record
from searchbench.spec import nearest
from searchbench.terminal import out

_EVERY_S = 1.0
_ROWS = 60  # of a table: a longer trial has longer intervals
_DEVICES = 4
_MB = 1e6


def machine_of(record: Record, trial: str, *, as_json: bool = False) -> None:
    """Print one trial's tables; RecordError where the record has no such trial, or no probe."""
    trials = {one.trial: one for one in record.trials}
    if trial not in trials:
        raise RecordError(f"{record.path} has no trial `{trial}`; {nearest(trial, trials)}")
    probe, about = record.probe(trial), trials[trial]
    if probe.num_rows < 2:
        raise RecordError(f"{record.path}: what the machine did in {trial} is not on record")
    t = probe.column("t")
    length_s = (t[-1].as_py() - t[0].as_py()) / 1e9
    found = list(sampled.intervals(probe, about.spans, max(_EVERY_S, length_s / _ROWS)))
    if as_json:
        out.as_json([asdict(one) for one in found])
        return
    out.say(f"{trial}, {about.label}. Seconds since the drive began; before it they are negative.")
    _processors(found)
    _memory(found)
    for name in sampled.busiest(found)[:_DEVICES]:
        _device(name, found)
    for name in dict.fromkeys(link.name for one in found for link in one.links):
        _link(name, found)


def _processors(found: Sequence[Interval]) -> None:
    shown = [k for k in KINDS if any(one.cpu.get(k, 0.0) >= 0.0005 for one in found)]
    rows = [
        [
            *_when(one),
            *(f"{100 * one.cpu.get(kind, 0.0):.1f}" for kind in shown),
            _or_unknown(one.server_cores, 2),
            _or_unknown(one.state.get("running"), 1),
            _or_unknown(one.state.get("blocked"), 1),
            _or_unknown(one.switches_per_s, 0),
        ]
        for one in found
    ]
    header = ["s", "phase", *(f"%{kind}" for kind in shown)]
    _table("Processors", [*header, "server cores", "runq", "blocked", "cswch/s"], rows,
           ["%nice", "%irq", "%softirq", "blocked", "%steal", "%iowait"])  # fmt: skip


def _memory(found: Sequence[Interval]) -> None:
    names = ("free", "available", "cached", "dirty")
    rows = [
        [
            *_when(one),
            *(_megabytes(one.state.get(f"memory_{name}_bytes")) for name in names),
            _megabytes(one.state.get("server_rss_bytes")),
            _or_unknown(one.major_faults_per_s, 0),
        ]
        for one in found
    ]
    header = ["s", "phase", *(f"{name} MB" for name in names), "server MB", "majflt/s"]
    _table("Memory", header, rows, ["free MB", "dirty MB"])


def _device(name: str, found: Sequence[Interval]) -> None:
    rows = [
        [
            *_when(one),
            f"{device.reads_per_s:.0f}",
            f"{device.writes_per_s:.0f}",
            f"{device.read_bytes_per_s / 1e3:.0f}",
            f"{device.written_bytes_per_s / 1e3:.0f}",
            f"{device.request_bytes / 1024:.1f}",
            f"{device.in_flight:.2f}",
            f"{device.wait_s * 1e3:.2f}",
            f"{100 * device.busy:.1f}",
        ]
        for one in found
        for device in one.devices
        if device.name == name
    ]
    header = [
        "s",
        "phase",
        "r/s",
        "w/s",
        "rkB/s",
        "wkB/s",
        "KiB each",
        "queue",
        "await ms",
        "%busy",
    ]
    _table(f"Device {name}", header, rows, ["KiB each"])


def _link(name: str, found: Sequence[Interval]) -> None:
    rows = [
        [
            *_when(one),
            f"{link.received_bytes_per_s / 1e3:.0f}",
            f"{link.sent_bytes_per_s / 1e3:.0f}",
            f"{link.packets_per_s:.0f}",
            f"{link.dropped_per_s:.0f}",
        ]
        for one in found
        for link in one.links
        if link.name == name
    ]
    _table(f"Network {name}", ["s", "phase", "rxkB/s", "txkB/s", "pck/s", "drop/s"], rows, [])


def _table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], less: Iterable[str]
) -> None:
    if rows:
        out.say(f"\n{title}")
        out.table(header, rows, less=[name for name in less if name in header])


def _when(one: Interval) -> list[str]:
    return [f"{one.start_s:.0f}", one.phase or "–"]


def _or_unknown(value: float | None, places: int) -> str:
    return "–" if value is None else f"{value:.{places}f}"


def _megabytes(value: float | None) -> str:
    return "–" if value is None else f"{value / _MB:.0f}"
