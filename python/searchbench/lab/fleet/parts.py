"""One load in parts, a part for each client machine; and the parts' samples in one again.

Closed loop: the clients are dealt out (7 over 2 machines: 4 and 3), each with its own run of the
sequence. Open loop: slot i goes to machine i modulo n, so that the parts together are exactly the
schedule that was asked for; the pool of connections is dealt out likewise. Nothing is rounded:
where there are fewer clients than machines, some machines have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.workload.queries.orders import split

Samples = NDArray[np.void]


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
    stop_after: int | None

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
    bounds = [int(b) for b in split(connections, machines)]
    places = list(pairwise(bounds))
    if due_ns is not None:
        if len(due_ns) != len(sequence):
            raise ValueError(f"due_ns has {len(due_ns)} entries and sequence {len(sequence)}")
        busy = min(machines, connections)
        nothing = slice(0, 0)
        cuts = [slice(i, None, busy) if i < busy else nothing for i in range(machines)]
        return [
            Part(a, b, np.ascontiguousarray(sequence[cut]), None, np.ascontiguousarray(due_ns[cut]),
                 None)
            for (a, b), cut in zip(places, cuts, strict=True)
        ]  # fmt: skip
    starts = np.asarray(client_starts)
    if len(starts) != connections + 1:
        raise ValueError(
            f"client_starts has {len(starts)} entries, and {connections} clients need "
            f"{connections + 1}"
        )
    return [
        Part(
            a,
            b,
            np.ascontiguousarray(sequence[starts[a] : starts[b]]),
            (starts[a : b + 1] - starts[a]).astype(np.uint32),
            None,
            None
            if stop_after is None
            else stop_after * b // connections - stop_after * a // connections,
        )
        for a, b in places
    ]


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
