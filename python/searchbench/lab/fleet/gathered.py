"""The traces of several client machines in one, with what is known of each machine's clock."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import to_builtins

from searchbench import _core
from searchbench.errors import LabError
from searchbench.lab.fleet import clock as fleet_clock
from searchbench.lab.fleet.clock import Offset
from searchbench.lab.fleet.frames import Message
from searchbench.lab.fleet.machine import Machine
from searchbench.lab.fleet.parts import Part, Samples, account, put_into_one
from searchbench.lab.wire.trace import Gathered

_IN_MEMORY_BYTES = 256 << 20
_MOST_CONNECTIONS = 1 << 16  # a sample names its connection in 16 bits


class FleetError(LabError):
    """A client machine failed. ``host`` is which; ``gathered``: what was measured until then."""

    def __init__(self, host: str, words: str, gathered: Gathered | None = None) -> None:
        self.host, self.words, self.gathered = host, words, gathered
        super().__init__(f"client machine {host}: {words}", "clients")


@dataclass(eq=False)
class Run:
    """One machine's share of a drive, and what is known of it so far."""

    machine: Machine
    part: Part
    before: Offset
    after: Offset | None = None
    going: bool = False
    completed: int = 0
    ended: Message | None = None
    trace: Message | None = None

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
    dtype = np.dtype(_core.SAMPLE_DTYPE)
    total = sum(run.count for run in runs)
    samples: Samples
    if spill is None or total * dtype.itemsize <= _IN_MEMORY_BYTES:
        samples = np.empty(total, dtype)
    else:
        path = Path(spill) / "samples.gathered"
        samples = np.memmap(path, dtype=dtype, mode="w+", shape=(total,))
        path.unlink()
    for run, piece in zip(runs, _pieces(runs, samples), strict=True):
        if len(piece):
            run.machine.room["samples"] = piece.view(np.uint8).data
    return samples


def put_together(runs: Sequence[Run], samples: Samples, parts: Mapping[Machine, Part]) -> Gathered:
    """One of all whose samples stand in ``samples`` and whose ``trace`` is here.

    ``parts``: of every machine of the fleet, also of those that had nothing to do.
    """
    # The earliest: no instant gets below zero, which would mean that it never happened.
    zero = min((run.zero_unix_ns for run in runs), default=0)
    places = _places(runs, samples, parts)
    kept: list[tuple[int, bytes]] = []
    accounts = []
    base = 0
    for run, piece in zip(runs, _pieces(runs, samples), strict=True):
        shift = run.zero_unix_ns - zero
        put_into_one(piece, places[run.machine][0], shift)
        kept += [(base + at, reply) for at, reply in _replies(run.trace)]
        accounts.append((run.machine.host, run.accounting, shift))
        base += len(piece)
    of = {run.machine: run for run in runs}
    clients = [
        _client(machine, part, of.get(machine), places[machine], zero)
        for machine, part in parts.items()
    ]
    notes = [n for r in runs for n in fleet_clock.findings(r.machine.host, r.before, r.after)]
    about = account(accounts, zero, clients)
    return Gathered(samples, kept, {**about, "notes": [to_builtins(note) for note in notes]})


def _places(
    runs: Sequence[Run], samples: Samples, parts: Mapping[Machine, Part]
) -> dict[Machine, tuple[int, int]]:
    """Of each machine the numbers of its connections in the whole: first and end.

    With one target they are those that a single machine would have given. A machine that asks
    several targets has more connections than clients, and its samples say how many.
    """
    own = {
        run.machine: int(piece["connection"].max(initial=0)) + 1
        for run, piece in zip(runs, _pieces(runs, samples), strict=True)
    }
    ends = np.cumsum([0, *(max(p.end - p.first, own.get(m, 0)) for m, p in parts.items())])
    if ends[-1] > _MOST_CONNECTIONS:
        raise LabError(
            f"the machines have {ends[-1]} connections together, and a sample numbers "
            f"{_MOST_CONNECTIONS}: drive fewer clients, or fewer targets",
            "drive",
        )
    bounds = [(int(a), int(b)) for a, b in pairwise(ends)]
    return dict(zip(parts, bounds, strict=True))


def _client(
    machine: Machine, part: Part, run: Run | None, place: tuple[int, int], zero: int
) -> dict[str, Any]:
    """What the record keeps of a machine. ``share``: of the clients, or of the pool."""
    about: dict[str, Any] = {
        "host": machine.host,
        "share": part.end - part.first,
        "connections": list(place),
        "machine": dict(machine.hello["host"]),
    }
    if run is None:
        return {**about, "samples": 0}
    return {
        **about,
        "samples": run.count,
        **fleet_clock.about(run.before, run.after),
        "zero_after_common_ns": run.zero_unix_ns - zero,
        "accounting": {k: v for k, v in run.accounting.items() if k != "threads"},
    }


def _pieces(runs: Sequence[Run], samples: Samples) -> list[Samples]:
    ends = np.cumsum([0, *(run.count for run in runs)])
    return [samples[a:b] for a, b in pairwise(ends)]


def _replies(trace: Message | None) -> Iterator[tuple[int, bytes]]:
    blobs = trace.blobs if trace else {}
    at = np.frombuffer(blobs.get("reply_samples", b""), np.uint64)
    ends = np.frombuffer(blobs.get("reply_ends", b""), np.uint64)
    whole = blobs.get("replies", memoryview(b""))
    start = 0
    for sample, end in zip(at, ends, strict=True):
        yield int(sample), bytes(whole[start : int(end)])
        start = int(end)
