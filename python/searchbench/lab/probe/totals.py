"""What the probe's counters amount to within a window: of the server, of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc

from searchbench.lab.place import host
from searchbench.record.trial import (
    CoreTotals,
    DeviceTotals,
    HostTotals,
    LinkTotals,
    ServerTotals,
    Window,
)

_LONG = 0.8  # of the window: so long a thread was seen among the busiest


def server_totals(probe: pa.Table, window: Window) -> ServerTotals:
    """The server's CPU seconds and I/O within the window (interpolated), its peak memory."""
    probe, seen = _around(probe, window), _inside(probe, window)
    busiest = max(_threads(seen), default=(None, ""))
    return ServerTotals(
        cpu_s=_grown(probe, "server_cpu_s", window),
        peak_rss_bytes=pc.max(seen.column("server_rss_bytes")).as_py(),
        peak_pss_bytes=pc.max(seen.column("server_pss_bytes")).as_py(),
        read_bytes=_grown(probe, "server_read_bytes", window),
        write_bytes=_grown(probe, "server_write_bytes", window),
        major_faults=_grown(probe, "server_major_faults", window),
        jvm_compilers_s=_grown(probe, "jvm_compilers_s", window),
        jvm_collectors_s=_grown(probe, "jvm_collectors_s", window),
        busiest_thread_share=busiest[0],
        busiest_thread=busiest[1],
    )


def spent(probe: pa.Table, window: Window, *, started: bool) -> ServerTotals:
    """What the server did in a phase, in which it may have come, gone, or come anew.

    ``started``: by us, so that all that it ever used was used since. The first tenth of a second of
    a phase may be on the account of the one before.
    """
    rows, seen = _around(probe, window), _inside(probe, window)
    return ServerTotals(
        cpu_s=_added(rows, "server_cpu_s", window, started=started),
        peak_rss_bytes=pc.max(seen.column("server_rss_bytes")).as_py(),
        peak_pss_bytes=pc.max(seen.column("server_pss_bytes")).as_py(),
        read_bytes=_added(rows, "server_read_bytes", window, started=started),
        write_bytes=_added(rows, "server_write_bytes", window, started=started),
        major_faults=_added(rows, "server_major_faults", window, started=started),
    )


def machine_totals(probe: pa.Table, window: Window, others: dict[str, float]) -> HostTotals:
    """The machine's CPU seconds within the window, over all cores; of ``others`` in the drive."""
    probe = _around(probe, window)
    by_core = _by_core(probe, window)
    user, system = (_grown(probe, f"host_{name}_s", window) for name in ("user", "system"))
    busy_s = None if user is None or system is None else user + system
    seen = _inside(probe, window)
    return HostTotals(
        idle_s=_grown(probe, "host_idle_s", window),
        iowait_s=_grown(probe, "host_iowait_s", window),
        steal_s=_grown(probe, "host_steal_s", window),
        busy_s=sum(core.busy_s for core in by_core) if by_core else busy_s,
        client_cpu_s=_grown(probe, "client_cpu_s", window),
        cores=psutil.cpu_count(),
        seconds=window.seconds,
        by_core=by_core,
        stalled_cpu_s=_grown(probe, "stalled_cpu_s", window),
        stalled_io_s=_grown(probe, "stalled_io_s", window),
        stalled_memory_s=_grown(probe, "stalled_memory_s", window),
        throttled=_grown(probe, "throttled", window),
        memory_bytes=psutil.virtual_memory().total,
        others=others,
        shared=host.shared(),
        running=pc.mean(seen.column("running")).as_py(),
        blocked=pc.mean(seen.column("blocked")).as_py(),
        switches=_grown(probe, "switches", window),
        devices=list(_devices(probe, window)),
        links=list(_links(probe, window)),
    )


def _by_core(probe: pa.Table, window: Window) -> list[CoreTotals]:
    """What each core did within the window; empty where that was not to be seen."""
    if not probe.num_rows or probe.column("core_busy_s").null_count:
        return []
    t = probe.column("t").to_numpy()
    seen_mhz = [row for row in _inside(probe, window).column("core_mhz").to_pylist() if row]

    def grown(name: str) -> list[float]:
        """Seconds by core; NaN where a core is not there."""
        rows = np.array(probe.column(f"core_{name}_s").to_pylist(), dtype=np.float64)
        ends = [np.interp([window.start, window.end], t, core) for core in rows.T]
        return [float(end - start) for start, end in ends]

    counted = zip(*map(grown, ("busy", "interrupts", "steal", "idle")), strict=True)
    found = []
    for cpu, (busy_s, interrupts_s, steal_s, idle_s) in enumerate(counted):
        mhz = [row[cpu] for row in seen_mhz if row[cpu] is not None]
        if not np.isnan(busy_s):
            found.append(
                CoreTotals(
                    cpu=cpu,
                    busy_s=busy_s,
                    interrupts_s=interrupts_s,
                    steal_s=steal_s,
                    idle_s=idle_s,
                    mhz_least=min(mhz, default=None),
                    mhz_most=max(mhz, default=None),
                )
            )
    return found


def _devices(probe: pa.Table, window: Window) -> Iterator[DeviceTotals]:
    """What each block device did within the window; nothing of those that did nothing."""
    for name, grown in _by_name(probe, "devices", window).items():
        if grown["reads"] or grown["writes"]:
            counts = {key: grown[key] for key in DeviceTotals.__struct_fields__ if key in grown}
            yield DeviceTotals(name=name, **counts)


def _links(probe: pa.Table, window: Window) -> Iterator[LinkTotals]:
    for name, grown in _by_name(probe, "links", window).items():
        if grown["received"] or grown["sent"]:
            yield LinkTotals(name=name, **grown)


def _by_name(probe: pa.Table, column: str, window: Window) -> dict[str, dict[str, float]]:
    """By the name of each entry of a column of lists, how much each of its counters grew.

    One that came or went within the window is counted from when it was first seen.
    """
    series: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for row in probe.select(["t", column]).to_pylist():
        for entry in row[column] or ():
            series.setdefault(entry["name"], []).append((row["t"], entry))
    found = {}
    for name, rows in series.items():
        t = np.array([at for at, _ in rows], dtype=np.float64)
        if t.size < 2:
            continue
        keys = [key for key in rows[0][1] if key not in ("name", "in_flight")]
        found[name] = {
            key: float(np.subtract(*np.interp(
                [window.end, window.start], t, [float(entry[key]) for _, entry in rows]
            )))
            for key in keys
        }  # fmt: skip
    return found


def _threads(seen: pa.Table) -> Iterator[tuple[float, str]]:
    """Of the server's busiest threads, the share of the time that each ran, and its name."""
    series: dict[tuple[int, int], list[tuple[int, float, str]]] = {}
    for row in seen.select(["t", "server_busiest"]).to_pylist():
        for one in row["server_busiest"] or ():
            own = series.setdefault((one["pid"], one["thread"]), [])
            own.append((row["t"], one["cpu_s"], one["name"]))
    for rows in series.values():
        (began, before_s, _), (ended, after_s, name) = rows[0], rows[-1]
        # Of one that was among the busiest for a moment only, no share of the window is known.
        if ended - began >= _LONG * max(1, _span_ns(seen)):
            yield min(1.0, (after_s - before_s) / ((ended - began) / 1e9)), name


def _added(probe: pa.Table, column: str, window: Window, *, started: bool) -> float | None:
    """How much a counter grew, whoever counted: one that is less than before has begun anew."""
    total: float | None = None
    before: float | None = None
    for at, value in zip(
        probe.column("t").to_pylist(), probe.column(column).to_pylist(), strict=True
    ):
        if value is None:
            before = 0.0 if started else None
            continue
        if before is not None and window.start <= at <= window.end:
            new = value < before
            total = (total or 0.0) + (value if new and started else max(0.0, value - before))
        before = value
    return total


def _around(probe: pa.Table, window: Window) -> pa.Table:
    """The samples within the window, and one more at each end where there is one."""
    t = probe.column("t").to_numpy()
    first = max(0, int(np.searchsorted(t, window.start, side="right")) - 1)
    last = min(t.size, int(np.searchsorted(t, window.end, side="left")) + 1)
    return probe.slice(first, last - first)


def _span_ns(seen: pa.Table) -> int:
    t = seen.column("t").to_numpy()
    return int(t[-1] - t[0]) if t.size else 0


def _inside(probe: pa.Table, window: Window) -> pa.Table:
    """The samples within the window; all where it is too short to have any."""
    t = probe.column("t")
    inside = probe.filter(pc.and_(pc.greater_equal(t, window.start), pc.less_equal(t, window.end)))
    return inside if inside.num_rows else probe


def _grown(probe: pa.Table, column: str, window: Window) -> float | None:
    """How much a cumulative counter grew in the window; None where it was not there."""
    known = probe.select(["t", column]).drop_null()
    if known.num_rows < 2:
        return None
    t = known.column("t").to_numpy()
    values = known.column(column).to_numpy().astype(np.float64)
    start, end = np.interp([window.start, window.end], t, values)
    return float(end - start)
