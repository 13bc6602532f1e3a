"""Several client machines without any: how load is dealt out, whose clock it is, what is said."""

from __future__ import annotations

import io
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from namespaces import TARGET
from searchbench import _core
from searchbench.lab.fleet.frames import GREETING, NotOurs, Receiver, Sender
from searchbench.lab.fleet.machine import Offset, about_clock, drift_ppm, findings, offset
from searchbench.lab.fleet.parts import account, deal, instants, put_into_one
from searchbench.workload.queries.orders import split

DTYPE = np.dtype(_core.SAMPLE_DTYPE)
HTTP = (TARGET, 10041)
SELECT = b"GET /d/select?table=Few HTTP/1.1\r\nHost: target\r\n\r\n"
NOTHING_HERE = (TARGET, 9)


# ---- dealing out, and putting together again


def test_seven_clients_over_two_machines_are_four_and_three_with_their_own_runs() -> None:
    sequence = np.arange(20, dtype=np.uint32)
    starts = split(20, 7)
    parts = deal(2, connections=7, sequence=sequence, client_starts=starts)
    assert [(p.first, p.end) for p in parts] == [(0, 4), (4, 7)]
    runs = [part.sequence[a:b].tolist() for part in parts for a, b in pairwise(part.client_starts)]
    assert runs == [sequence[a:b].tolist() for a, b in pairwise(starts)]


@given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 300))
def test_a_number_of_requests_is_dealt_out_whole(
    machines: int, clients: int, stop_after: int
) -> None:
    parts = deal(
        machines, connections=clients, sequence=np.zeros(clients, np.uint32),
        client_starts=np.arange(clients + 1, dtype=np.uint32), stop_after=stop_after,
    )  # fmt: skip
    assert sum(p.end - p.first for p in parts) == clients, "never a rounded client count"
    assert sum(p.stop_after or 0 for p in parts) == stop_after
    assert all(p.idle for p in parts if p.first == p.end)


@given(st.integers(1, 9), st.integers(1, 12), st.lists(st.integers(0, 50), max_size=60))
def test_the_parts_of_an_open_loop_are_exactly_its_schedule(
    machines: int, connections: int, gaps: list[int]
) -> None:
    due = np.cumsum(gaps, dtype=np.int64)
    sequence = np.arange(len(due), dtype=np.uint32)
    parts = deal(machines, connections=connections, sequence=sequence, due_ns=due)
    assert sum(p.end - p.first for p in parts) == connections
    sent = sorted(
        (int(at), int(which))
        for part in parts
        if not part.idle
        for which, at in zip(part.sequence, part.due_ns, strict=True)
    )
    assert sent == list(zip(due.tolist(), sequence.tolist(), strict=True))


def test_a_load_that_does_not_fit_together_is_refused() -> None:
    some = np.zeros(4, np.uint32)
    with pytest.raises(ValueError, match="not both"):
        deal(2, connections=2, sequence=some)
    with pytest.raises(ValueError, match="3 entries, and 4 clients need 5"):
        deal(2, connections=4, sequence=some, client_starts=np.zeros(3, np.uint32))
    with pytest.raises(ValueError, match="due_ns has 3 entries and sequence 4"):
        deal(2, connections=4, sequence=some, due_ns=np.zeros(3, np.int64))


def test_instants_are_shifted_and_what_never_happened_stays_so() -> None:
    samples = np.zeros(2, DTYPE)
    names = instants(DTYPE)
    assert {"due", "free", "sent", "first_byte", "done"} <= set(names)
    for name in names:
        samples[name] = [100, -1]
    samples["connection"] = [0, 3]
    samples["bytes"] = 7
    put_into_one(samples, 4, 50)
    for name in names:
        assert samples[name].tolist() == [150, -1]
    assert samples["connection"].tolist() == [4, 7]
    assert samples["bytes"].tolist() == [7, 7]


def test_counts_are_added_up_and_a_reason_keeps_its_machine() -> None:
    one = {
        "elapsed_ns": 50, "clock": "tsc", "clock_drift_ppm": 0.5, "threads": [{"cpu": 1}],
        "connects": 4, "statuses": {"200": 7}, "greeting_failed": None, "clients": 4,
        "targets": [{"address": "10.0.0.9:80", "connects": 4}], "cut_short": False,
    }  # fmt: skip
    two = {
        **one, "elapsed_ns": 48, "clock_drift_ppm": -2.0, "connects": 3,
        "statuses": {"200": 1, "503": 2}, "greeting_failed": "too many connections", "clients": 3,
        "targets": [{"address": "10.0.0.9:80", "connects": 3}], "cut_short": True,
    }  # fmt: skip
    whole = account([("north", one, 0), ("south", two, 5)], 1_000, [])
    assert whole == {
        "started_unix_ns": 1_000, "elapsed_ns": 53, "clock": "tsc", "clock_drift_ppm": -2.0,
        "threads": [{"cpu": 1, "host": "north"}, {"cpu": 1, "host": "south"}],
        "connects": 7, "statuses": {"200": 8, "503": 2}, "clients": 7,
        "targets": [{"address": "10.0.0.9:80", "connects": 7}], "cut_short": True,
        "greeting_failed": "south: too many connections", "machines": [],
    }  # fmt: skip


# ---- clocks


class Network:
    """Two clocks with a known offset and drift, and a network whose ways differ: truth known."""

    def __init__(self, offset_ns: int, drift_ppm: float, there_us: float, back_us: float) -> None:
        self.random = random.Random(7)
        self.now = 1_800_000_000 * 10**9
        self.began = self.now
        self.offset_ns, self.drift_ppm = offset_ns, drift_ppm
        self.there_us, self.back_us = there_us, back_us

    def true_offset(self) -> int:
        return self.offset_ns + int((self.now - self.began) * self.drift_ppm / 1e6)

    def ping(self) -> tuple[int, int, int, int]:
        t1 = self.now
        self.now += self._way(self.there_us)
        t2 = self.now + self.true_offset()
        self.now += 20_000
        t3 = self.now + self.true_offset()
        self.now += self._way(self.back_us)
        return t1, t2, t3, self.now

    def _way(self, least_us: float) -> int:
        """Never less than the wire takes, now and then far more: a queue."""
        return int(1000 * (least_us + self.random.expovariate(1 / 300)))


@pytest.mark.parametrize("offset_ns", [0, 3_700_000_000, -86_400 * 10**9])
@pytest.mark.parametrize(("there_us", "back_us"), [(100, 100), (50, 2_000), (30_000, 100)])
def test_the_true_offset_is_within_the_uncertainty_however_unlike_the_ways_are(
    offset_ns: int, there_us: float, back_us: float
) -> None:
    network = Network(offset_ns, 0.0, there_us, back_us)
    found = offset([network.ping() for _ in range(16)])
    assert abs(found.offset_ns - offset_ns) <= found.uncertainty_ns
    assert found.uncertainty_ns == -(-found.round_trip_ns // 2)
    assert found.round_trip_ns >= 1000 * (there_us + back_us)


def test_the_ping_with_the_shortest_round_trip_decides() -> None:
    network = Network(5_000_000, 0.0, 200, 200)
    pings = [network.ping() for _ in range(50)]
    found = offset(pings)
    assert found.round_trip_ns == min((t4 - t1) - (t3 - t2) for t1, t2, t3, t4 in pings)


def test_a_clock_that_runs_faster_shows_as_drift_and_one_that_was_set_is_a_finding() -> None:
    network = Network(1_000_000, 40.0, 10, 10)
    before = offset([network.ping() for _ in range(200)])
    network.now += 60 * 10**9
    after = offset([network.ping() for _ in range(200)])
    assert drift_ppm(before, after) == pytest.approx(40, rel=0.05)
    (note,) = findings("north", before, after)
    assert note.kind == "clock moved"
    assert note.number.startswith("north: its clock moved by 2.4")


def test_an_offset_that_is_less_sure_than_a_millisecond_is_a_finding() -> None:
    sure, unsure = Offset(0, 40_000, 80_000, 1), Offset(0, 1_500_000, 3_000_000, 2)
    assert findings("north", sure, sure) == []
    (note,) = findings("north", sure, unsure)
    assert note.number == "north: ± 1.50 ms"
    assert about_clock(sure, None)["offset_after_ns"] is None


# ---- the protocol


def test_what_a_shell_prints_before_us_is_passed_over_and_a_message_comes_whole() -> None:
    pipe = io.BytesIO(b"Welcome to north!\nYou have mail.\n")
    pipe.seek(0, io.SEEK_END)
    sender = Sender(pipe)
    sender.greet()
    sender.send("pong", {"came": 5}, {"samples": memoryview(b"\0" * 3_000_000)}, stamp="left")
    pipe.seek(0)
    receiver = Receiver(pipe)
    receiver.greeting()
    message = receiver.next()
    assert message is not None
    assert (message.kind, message.fields["came"]) == ("pong", 5)
    assert message.fields["left"] <= message.received_unix_ns
    assert bytes(message.blobs["samples"]) == b"\0" * 3_000_000
    assert receiver.next() is None


@pytest.mark.parametrize(
    ("bytes_", "words"),
    [
        (b"\xff\xff\xff\xff", "\ufffd"),
        (b"\x02\0", "\x02"),
        (b"\x04\0\0\0[1,2", "1,2"),
        (b'\x22\0\0\0{"kind": "x", "blobs": [["b", 9]]}123', "b ended after 3 of 9 bytes"),
    ],
)
def test_what_is_no_message_is_named_with_what_it_is(bytes_: bytes, words: str) -> None:
    with pytest.raises(NotOurs) as caught:
        Receiver(io.BytesIO(bytes_)).next()
    assert words in str(caught.value)


def test_no_greeting_is_named_with_what_came_instead() -> None:
    with pytest.raises(NotOurs, match="This account is not available"):
        Receiver(io.BytesIO(b"This account is not available.\n")).greeting()
    assert GREETING.startswith(b"\n"), "a last line without its end does not hide it"
