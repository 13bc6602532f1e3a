"""What the machine did, by interval: the figures that sar and iostat would have printed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from searchbench.analysis.trial import sampled
from searchbench.record import PROBE
from searchbench.record.drive import Drive
from searchbench.record.trial import HostTotals, Service, Span, Trial

SECOND = 1_000_000_000


def disk(reads: int, writes: int, busy_s: float) -> dict[str, Any]:
    return {"name": "vda", "reads": reads, "read_bytes": 8192 * reads, "read_s": 0.002 * reads,
            "writes": writes, "written_bytes": 65536 * writes, "write_s": 0.004 * writes,
            "in_flight": 1, "busy_s": busy_s,
            "waited_s": 0.002 * reads + 0.004 * writes}  # fmt: skip


def probe(seconds: int = 8) -> pa.Table:
    """Two samples a second from 2 s before the drive on; the server begins with the drive."""
    rows = []
    for i in range(2 * (seconds + 2)):
        t = i / 2 - 2
        rows.append({
            "t": int(t * SECOND),
            "server_cpu_s": None if t < 0 else 0.5 * t,
            "server_rss_bytes": None if t < 0 else 1 << 30,
            **{f"host_{kind}_s": 0.0 for kind in sampled.KINDS},
            "host_user_s": 100 + 0.5 * i / 2, "host_idle_s": 500 + 1.5 * i / 2,
            "switches": 1000 * i, "running": 3, "memory_free_bytes": 2_000_000_000,
            "stalled_io_s": 0.1 * i, "host_major_faults": 10 * i,
            "devices": [disk(100 * i, 50 * i, 0.2 * i)],
            "links": [{"name": "lo", "received_bytes": 500 * i, "received": 5 * i,
                       "sent_bytes": 500 * i, "sent": 5 * i, "dropped": 0}],
        })  # fmt: skip
    return pa.Table.from_pylist(rows, schema=PROBE)


SPANS = [Span(phase="ingest", start=-2 * SECOND, end=0),
         Span(phase="drive", start=0, end=8 * SECOND)]  # fmt: skip


def test_an_interval_has_rates_and_shares_by_the_formulas_of_sysstat() -> None:
    first, *_, last = sampled.intervals(probe(), SPANS, 1.0)
    assert (first.phase, last.phase) == ("ingest", "drive")
    assert first.cpu["user"] == pytest.approx(0.25)
    assert first.cpu["idle"] == pytest.approx(0.75)
    assert first.server_cores is None, "nothing was deployed yet"
    assert last.server_cores == pytest.approx(0.5)
    assert first.switches_per_s == 2000
    assert first.state["running"] == 3
    (device,) = last.devices
    assert (device.reads_per_s, device.writes_per_s) == (200, 100)
    assert device.request_bytes == pytest.approx((200 * 8192 + 100 * 65536) / 300)
    assert device.wait_s == pytest.approx((200 * 0.002 + 100 * 0.004) / 300)
    assert device.in_flight == pytest.approx(200 * 0.002 + 100 * 0.004)
    assert device.busy == pytest.approx(0.4)
    (link,) = last.links
    assert (link.received_bytes_per_s, link.packets_per_s) == (1000, 20)


def test_the_activity_of_a_drive_is_on_its_clock_and_leaves_out_what_stays_at_zero() -> None:
    trial = Trial(trial="b01-t01", treatment="t01", spans=SPANS, service=Service(cpus=[0]),
                  drive=Drive(elapsed_ns=8 * SECOND), host_window=HostTotals(cores=2))  # fmt: skip
    found = {curve.label: curve for curve in sampled.activity(trial, probe())}
    assert found[sampled.SERVER].y == pytest.approx([0.5] * len(found[sampled.SERVER].y))
    assert 0 <= found[sampled.SERVER].x[0] < found[sampled.SERVER].x[-1] <= 8
    assert found[sampled.DISK].y[0] == pytest.approx(0.4)
    idle = probe().set_column(
        PROBE.get_field_index("devices"), PROBE.field("devices"),
        pa.nulls(probe().num_rows, PROBE.field("devices").type),
    )  # fmt: skip
    labels = [curve.label for curve in sampled.activity(trial, idle)]
    assert sampled.DISK not in labels


def test_a_trial_that_was_not_driven_and_an_old_record_have_no_activity() -> None:
    assert sampled.activity(Trial(trial="a", treatment="t"), probe()) == ()
    driven = Trial(trial="a", treatment="t", drive=Drive(elapsed_ns=8 * SECOND))
    assert sampled.activity(driven, PROBE.empty_table()) == ()
    old = pa.Table.from_pylist([{"t": 0}, {"t": SECOND}], schema=PROBE)
    assert [c.label for c in sampled.activity(driven, old)] == []
