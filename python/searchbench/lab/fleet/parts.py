"""One load in parts, a part for each client machine; and the parts' traces in one again.

Closed loop: the clients are dealt out (7 over 2 machines: 4 and 3), each with its own run of the
sequence. Open loop: slot i goes to machine i modulo n, so that the parts together are exactly the
schedule that was asked for; the pool of connections is dealt out likewise. Nothing is rounded:
where there are fewer clients than machines, some machines have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import to_builtins
from numpy.typing import NDArray

from searchbench import _core
from searchbench.errors import LabError
from searchbench.lab.fleet.frames import Message
from searchbench.lab.fleet.machine import Machine, Offset, about_clock, findings
from searchbench.lab.wire.trace import Gathered
from searchbench.workload.queries.orders import split

Samples = NDArray[np.void]

_DTYPE = np.dtype(_core.SAMPLE_DTYPE)
_IN_MEMORY_BYTES = 256 << 20
_MOST_CONNECTIONS = 1 << 16  # a sample names its connection in 16 bits


class FleetError(LabError):
    """A client machine failed. ``host`` is which; ``gathered``: what was measured until then."""

    def __init__(self, host: str, words: str, gathered: Gathered | None = None) -> None:
        self.host, self.words, self.gathered = host, words, gathered
        super().__init__(f"client machine {host}: {words}", "clients")


@dataclass(frozen=True, slots=True)
class Part:
    """What one machine drives: connections ``first`` to ``end`` (not included) of the whole.

    ``sequence`` uint32; one of ``client_starts`` (uint32) and ``due_ns`` (int64) is None.
    """

    first: int
    end: int
    sequence: NDArray[np.uint32]
    client_starts: NDArray[np.uint32] | None
    due_ns: NDArray[np.int64] | None
    stop_after: int | None = None

    @property
    def idle(self) -> bool:
        """Has it nothing to send?"""
        return self.first == self.end or not len(self.sequence) or self.stop_after == 0


def deal(
    machines: int,
    *,
    connections: int,
    sequence: NDArray[np.uint32],
    client_starts: NDArray[np.uint32] | None = None,
    due_ns: NDArray[np.int64] | None = None,
    stop_after: int | None = None,
) -> list[Part]:
    """A part for each machine; the arguments are those of ``_core.drive``.

    ``stop_after`` is dealt out by clients, since machines cannot count together while they
    drive. ValueError where the load is neither closed nor open, or not as long as it says.
    """
    if (client_starts is None) == (due_ns is None):
        raise ValueError("give client_starts for a closed loop or due_ns for an open one, not both")
    places = list(pairwise(int(bound) for bound in split(connections, machines)))
    if due_ns is not None:
        if len(due_ns) != len(sequence):
            raise ValueError(f"due_ns has {len(due_ns)} entries and sequence {len(sequence)}")
        busy = min(machines, connections)
        cuts = [slice(i, None if i < busy else 0, max(busy, 1)) for i in range(machines)]
        return [
            Part(
                *place, np.ascontiguousarray(sequence[cut]), None, np.ascontiguousarray(due_ns[cut])
            )
            for place, cut in zip(places, cuts, strict=True)
        ]
    starts = np.asarray(client_starts)
    if len(starts) != connections + 1:
        raise ValueError(
            f"client_starts has {len(starts)} entries, and {connections} clients need "
            f"{connections + 1}"
        )
    parts = []
    for a, b in places:
        own = np.ascontiguousarray(sequence[starts[a] : starts[b]])
        own_starts = (starts[a : b + 1] - starts[a]).astype(np.uint32)
        stop = None
        if stop_after is not None:
            stop = stop_after * b // connections - stop_after * a // connections
        parts.append(Part(a, b, own, own_starts, None, stop))
    return parts


def put_into_one(samples: Samples, first_connection: int, shift_ns: int) -> None:
    """Make a machine's samples those of the whole, in place.

    Every 64-bit field of a sample is an instant; -1, where it never happened, stays.
    """
    samples["connection"] += np.uint16(first_connection)
    if shift_ns:
        for name in instants(samples.dtype):
            column = samples[name]
            column[column >= 0] += shift_ns


def instants(dtype: np.dtype[Any]) -> list[str]:
    """Names of the fields that are nanoseconds since the start."""
    return [name for name in dtype.names or () if dtype[name] == np.int64]


def account(
    parts: list[tuple[str, dict[str, Any], int]], started_unix_ns: int, machines: list[Any]
) -> dict[str, Any]:
    """One accounting of many, with the names that ``_core.Trace.accounting`` has.

    ``parts``: of each machine that drove, its name, its accounting, and by how much its zero was
    after the common one. Counts are added up, also those by a key; of reasons the first is kept,
    with its machine; each machine's own whole accounting is in ``machines``.
    """
    whole: dict[str, Any] = {
        "started_unix_ns": started_unix_ns,
        "elapsed_ns": max((int(a["elapsed_ns"]) + shift for _, a, shift in parts), default=0),
        "clock": " ".join(dict.fromkeys(str(a["clock"]) for _, a, _ in parts)),
        "clock_drift_ppm": max((a["clock_drift_ppm"] for _, a, _ in parts), key=abs, default=0.0),
        "threads": [{**t, "host": name} for name, a, _ in parts for t in a["threads"]],
    }
    for key in dict.fromkeys(k for _, a, _ in parts for k in a if k not in whole):
        whole[key] = _together([(name, a.get(key)) for name, a, _ in parts])
    whole["machines"] = machines
    return whole


def _together(told: list[tuple[str, Any]]) -> Any:
    """What machines told of one thing, as one: counts added up, wherever they stand."""
    values = [value for _, value in told if value is not None]
    if not values:
        return None
    first = values[0]
    if isinstance(first, bool):
        return any(values)
    if isinstance(first, int | float):
        return sum(values)
    if isinstance(first, dict):
        keys = dict.fromkeys(k for value in values for k in value)
        return {k: _together([(name, (v or {}).get(k)) for name, v in told]) for k in keys}
    if isinstance(first, list):
        return [
            _together([(name, v[at] if v else None) for name, v in told])
            for at in range(min(map(len, values)))
        ]
    if len(values) == len(told) and all(value == first for value in values):
        return first
    return next(f"{name}: {value}" for name, value in told if value is not None)


_UNMEASURED = Offset(0, 0, 0, 0)


@dataclass(eq=False)
class Run:
    """One machine's share of a drive, and what is known of it so far."""

    machine: Machine
    part: Part
    before: Offset = _UNMEASURED
    after: Offset | None = None
    going: bool = False
    completed: int = 0
    ended: Message | None = None
    trace: Message | None = None
    samples: Samples = field(default_factory=lambda: np.empty(0, _DTYPE))

    @property
    def count(self) -> int:
        """How many samples it announced."""
        return int(self.ended.fields["samples"]) if self.ended else 0

    @property
    def accounting(self) -> dict[str, Any]:
        """The accounting of its own trace."""
        found: dict[str, Any] = json.loads(self.ended.fields["accounting"]) if self.ended else {}
        return found

    @property
    def zero_unix_ns(self) -> int:
        """When its clock had its zero, by ours."""
        return int(self.accounting["started_unix_ns"]) - self.before.offset_ns


def make_room(runs: Sequence[Run], spill: str | None) -> Samples:
    """Room for the samples of all, in their order; each machine's go into their place at once.

    Memory, or beyond 256 MiB a file in ``spill`` that is gone once it is no longer used.
    """
    total = sum(run.count for run in runs)
    samples: Samples
    if spill is None or total * _DTYPE.itemsize <= _IN_MEMORY_BYTES:
        samples = np.empty(total, _DTYPE)
    else:
        path = Path(spill) / "samples.gathered"
        samples = np.memmap(path, dtype=_DTYPE, mode="w+", shape=(total,))
        path.unlink()
    start = 0
    for run in runs:
        run.samples = samples[start : start + run.count]
        start += run.count
        if run.count:
            run.machine.room["samples"] = run.samples.view(np.uint8).data
    return samples


def put_together(runs: Sequence[Run], samples: Samples) -> Gathered:
    """One of all that ended; their samples stand in ``samples``.

    ``runs``: of every machine of the fleet, also of those that had nothing to do.
    """
    # The earliest: no instant gets below zero, which would mean that it never happened.
    zero = min((run.zero_unix_ns for run in runs if run.ended), default=0)
    kept: list[tuple[int, bytes]] = []
    accounts, clients, notes = [], [], []
    base = 0
    for run, place in zip(runs, _places(runs), strict=True):
        host, part = run.machine.host, run.part
        about = {
            "host": host,
            "share": part.end - part.first,  # of the clients, or of the pool
            "connections": list(place),
            "machine": dict(run.machine.hello["host"]),
            "samples": run.count,
        }
        if run.ended:
            shift = run.zero_unix_ns - zero
            put_into_one(run.samples, place[0], shift)
            kept += [(base + at, reply) for at, reply in _replies(run.trace)]
            base += run.count
            accounts.append((host, run.accounting, shift))
            notes += findings(host, run.before, run.after)
            about |= {
                **about_clock(run.before, run.after),
                "zero_after_common_ns": shift,
                "accounting": {k: v for k, v in run.accounting.items() if k != "threads"},
            }
        clients.append(about)
    whole = account(accounts, zero, clients)
    return Gathered(samples, kept, {**whole, "notes": to_builtins(notes)})


def _places(runs: Sequence[Run]) -> list[tuple[int, int]]:
    """Of each machine the numbers of its connections in the whole: first and end.

    With one target they are those that a single machine would have given. A machine that asks
    several targets has more connections than clients, and its samples say how many.
    """
    own = [int(run.samples["connection"].max()) + 1 if run.count else 0 for run in runs]
    shares = [run.part.end - run.part.first for run in runs]
    ends = [0, *accumulate(map(max, own, shares))]
    if ends[-1] > _MOST_CONNECTIONS:
        raise LabError(
            f"the machines have {ends[-1]} connections together, and a sample numbers "
            f"{_MOST_CONNECTIONS}: drive fewer clients, or fewer targets",
            "drive",
        )
    return list(pairwise(ends))


def _replies(trace: Message | None) -> Iterator[tuple[int, bytes]]:
    blobs = trace.blobs if trace else {}
    at = np.frombuffer(blobs.get("reply_samples", b""), np.uint64)
    ends = np.frombuffer(blobs.get("reply_ends", b""), np.uint64).tolist()
    whole = blobs.get("replies", memoryview(b""))
    for sample, (start, end) in zip(at.tolist(), pairwise([0, *ends]), strict=True):
        yield sample, bytes(whole[start:end])
