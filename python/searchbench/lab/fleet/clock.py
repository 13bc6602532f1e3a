"""How far another machine's clock is from ours, from pings, and how sure that is.

A ping leaves here at t1 by our clock, is there at t2 by theirs, its answer leaves at t3 by theirs
and is here at t4 by ours. With offset = their clock − ours (RFC 5905, section 8):

    offset = ((t2 − t1) + (t3 − t4)) / 2        round trip = (t4 − t1) − (t3 − t2)

The way there and the way back share the round trip in an unknown manner, so the true offset is
within half of it, whatever the network does. Of many pings that with the shortest round trip
says most. Only the start of the schedule depends on this: service and response times are
differences of instants that one machine took with one clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from searchbench.record.trial import Note

# A start that is not common by more than this shifts one machine's part of an open loop against
# the others' by as much as a request takes that is worth measuring.
UNCERTAIN_NS = 1_000_000
_PINGS = 16

Ping = Callable[[], tuple[int, int, int, int]]


@dataclass(frozen=True, slots=True)
class Offset:
    """Their clock minus ours at ``at_unix_ns`` (ours); the truth is within ± uncertainty."""

    offset_ns: int
    uncertainty_ns: int
    round_trip_ns: int
    at_unix_ns: int


def measure(ping: Ping, pings: int = _PINGS) -> Offset:
    """Ping so many times. ``ping`` gives t1, t2, t3, t4 of one, in ns since 1970."""
    return best([ping() for _ in range(pings)])


def best(pings: Sequence[tuple[int, int, int, int]]) -> Offset:
    """What the ping with the shortest round trip says. ValueError for none."""
    t1, t2, t3, t4 = min(pings, key=_round_trip)
    # A clock that was set between t1 and t4 makes it negative: then nothing is known.
    round_trip = abs(_round_trip((t1, t2, t3, t4)))
    return Offset(((t2 - t1) + (t3 - t4)) // 2, -(-round_trip // 2), round_trip, t4)


def _round_trip(ping: tuple[int, int, int, int]) -> int:
    t1, t2, t3, t4 = ping
    return (t4 - t1) - (t3 - t2)


def drift_ppm(before: Offset, after: Offset) -> float:
    """By how much their clock ran faster than ours between two measurements, in millionths."""
    elapsed = after.at_unix_ns - before.at_unix_ns
    return (after.offset_ns - before.offset_ns) / elapsed * 1e6 if elapsed > 0 else 0.0


def about(before: Offset, after: Offset | None) -> dict[str, int | float | None]:
    """As it stands in the accounting; what was not measured after the drive is null."""
    return {
        "offset_ns": before.offset_ns,
        "offset_uncertainty_ns": before.uncertainty_ns,
        "round_trip_ns": before.round_trip_ns,
        "offset_after_ns": after.offset_ns if after else None,
        "offset_after_uncertainty_ns": after.uncertainty_ns if after else None,
        "drift_ppm": round(drift_ppm(before, after), 3) if after else None,
    }


def findings(machine: str, before: Offset, after: Offset | None) -> list[Note]:
    """What makes the common start, or one schedule over all machines, less than it says."""
    found = []
    uncertainty = max(o.uncertainty_ns for o in (before, after) if o)
    if uncertainty > UNCERTAIN_NS:
        found.append(
            Note(
                kind="clock offset uncertain",
                number=f"{machine}: ± {uncertainty / 1e6:.2f} ms",
                meaning="the machines' parts of the schedule may be shifted against each other by "
                "so much; service and response times are not affected: each is of one clock",
                remedy="use client machines on a shorter or quieter network",
            )
        )
    if after:
        moved = abs(after.offset_ns - before.offset_ns)
        if moved > before.uncertainty_ns + after.uncertainty_ns:
            found.append(
                Note(
                    kind="clock moved",
                    number=f"{machine}: its clock moved by {moved / 1e6:.3f} ms against ours "
                    f"during the drive ({drift_ppm(before, after):+.1f} ppm)",
                    meaning="its part of the schedule drifted against the others' by so much; if "
                    "its clock was set meanwhile, its instants may have jumped",
                    remedy="let all machines follow the same time server (chronyc tracking), and "
                    "wait until it has settled",
                )
            )
    return found
