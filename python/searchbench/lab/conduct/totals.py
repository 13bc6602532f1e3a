"""Totals over the measured window, from samples and probe, once the clock has stopped."""

from __future__ import annotations

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc

from searchbench.lab.drive.drive import Samples
from searchbench.record.trial import HostTotals, ServerTotals, Window
from searchbench.workload.loads import Load


def window(samples: Samples, load: Load) -> Window:
    """The measured window: a request is measured if start ≤ due < end."""
    counted = load.window.seconds is None
    start, end = load.window.bounds_ns(samples.due_ns() if counted else np.empty(0, np.int64))
    return Window(start, end)


def server(probe: pa.Table, window: Window) -> ServerTotals:
    """The server's CPU seconds and I/O within the window (interpolated), its peak memory."""
    inside = _inside(probe, window)
    peak = pc.max(inside.column("server_rss_bytes")).as_py()
    return ServerTotals(
        cpu_s=_grown(probe, "server_cpu_s", window),
        peak_rss_bytes=peak,
        read_bytes=_grown(probe, "server_read_bytes", window),
        write_bytes=_grown(probe, "server_write_bytes", window),
    )


def machine(probe: pa.Table, window: Window) -> HostTotals:
    """The machine's CPU seconds within the window, over all cores."""
    idle, iowait, steal, user, system = (
        _grown(probe, f"host_{name}_s", window)
        for name in ("idle", "iowait", "steal", "user", "system")
    )
    return HostTotals(
        idle_s=idle,
        iowait_s=iowait,
        steal_s=steal,
        busy_s=None if user is None or system is None else user + system,
        client_cpu_s=_grown(probe, "client_cpu_s", window),
        cores=psutil.cpu_count(),
        seconds=window.seconds,
    )


def changed_under_load(captured: pa.Table, under_load: pa.Table) -> tuple[int, int]:
    """(changed, compared): sampled replies whose total or ids differ from the captured ones.

    Replies that carry an error are outcomes already and not counted here.
    """
    alone = {
        row["query"]: (row["total"], row["ids"])
        for row in captured.select(["query", "total", "ids", "error"]).to_pylist()
        if row["error"] is None
    }
    changed = compared = 0
    for row in under_load.select(["query", "total", "ids", "error"]).to_pylist():
        if row["error"] is None and row["query"] in alone:
            compared += 1
            changed += alone[row["query"]] != (row["total"], row["ids"])
    return changed, compared


def _inside(probe: pa.Table, window: Window) -> pa.Table:
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
