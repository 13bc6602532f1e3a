"""The accounting of one drive: what the measuring loop used and counted."""

from __future__ import annotations

from typing import Any

import msgspec


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """A measuring thread's own accounting."""

    cpu: int | None = None
    user_ns: int = 0
    system_ns: int = 0
    run_wait_ns: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    minor_faults: int | None = None
    priority: str = ""
    host: str | None = None


class Drive(msgspec.Struct, frozen=True, kw_only=True):
    """The measuring loop's accounting of one drive, as the core wrote it.

    ``machines``: of several client machines, each with its clock, its share and its accounting.
    """

    started_unix_ns: int = 0
    elapsed_ns: int = 0
    clock: str = ""
    clock_drift_ppm: float | None = None
    cut_short: bool = False
    threads: list[Thread] = []
    connects: int = 0
    reconnects: int = 0
    refused_connects: int = 0
    handshakes: int = 0
    resumed: int = 0
    tls: str | None = None
    partial_sends: int = 0
    unsent: int = 0
    unsolicited: int = 0
    pauses: int = 0
    pause_ns: int = 0
    greeting_failed: str | None = None
    spilled_bytes: int = 0
    spill_failed: str | None = None
    statuses: dict[str, int] = {}
    clients: int | None = None
    targets: list[dict[str, Any]] = []
    machines: list[dict[str, Any]] = []
