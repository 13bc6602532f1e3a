"""The same load from several client machines, reached by ssh, with one start and one trace.

    hello → clock → job → ready → go: one absolute start → ticks → ended → clock → traces

Each machine measures with its own core and its own clock; nothing of a measurement crosses the
network before it has ended. A machine that fails or is lost ends all the others, and the error
says which it was and carries what they had measured.
"""

from __future__ import annotations

import base64
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import convert, structs
from numpy.typing import NDArray

from searchbench.engines.engine import Request
from searchbench.errors import LabError
from searchbench.lab.fleet.frames import Message, versions
from searchbench.lab.fleet.machine import COMMAND, Machine, Offset, offset
from searchbench.lab.fleet.parts import FleetError, Run, deal, make_room, put_together
from searchbench.lab.wire.exchange import Arena, Endpoint, lay_out
from searchbench.lab.wire.order import Manner, Order, arguments
from searchbench.lab.wire.trace import Gathered
from searchbench.record.trial import Note

Targets = tuple[str, int] | Sequence[tuple[str, int]]
OnTick = Callable[[int, int, bytes], object]

_HELLO_S = 60.0  # a login, and Python's start on a slow machine
_READY_S = 120.0
_SILENCE_S = 30.0  # a machine that drives says something four times a second
_LEAD_S = 2.0  # for threads to be there before the start
_CONNECT_S = 0.001  # for a connection, beside a round trip
_GATHER_S = 10.0  # for what is kept of a run that failed
_LOOK_S = 0.1
_ALIVE_S = 1.0
_PINGS = 16
_ENDS = ("lost", "failed")  # of a machine, of its drive


class Fleet:
    """Client machines by ssh, for as many drives as wanted; a context manager.

    ``hosts``: as ssh knows them. ``ssh``: the program with the user's options. ``command``: what
    is given to the shell there. ``lead_s``: from the word to go until the common start, beside
    the longest round trip. Entering raises FleetError where a machine cannot be reached, or has
    another version.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        ssh: Sequence[str] = ("ssh",),
        command: str = COMMAND,
        *,
        lead_s: float = _LEAD_S,
    ) -> None:
        if not hosts:
            raise LabError("name at least one client machine", "clients")
        if len(hosts) > 255:
            raise LabError(f"{len(hosts)} client machines are more than 255", "clients")
        twice = sorted({h for h in hosts if list(hosts).count(h) > 1})
        if twice:
            raise LabError(f"client machine {twice[0]} is named twice", "clients")
        self.hosts, self.ssh, self.command, self.lead_s = tuple(hosts), ssh, command, lead_s
        self.machines: list[Machine] = []
        self._events: queue.SimpleQueue[tuple[Machine, Message]] = queue.SimpleQueue()
        self._jobs = 0
        self._failed: set[Machine] = set()

    def __enter__(self) -> Fleet:
        """Log in everywhere and hear who is there."""
        try:
            for host in self.hosts:
                self.machines.append(Machine(host, self.ssh, self.command, self._events))
            for machine, hello in self._each("hello", self.machines, _HELLO_S):
                machine.hello = hello.fields
                refuse_other(machine.host, hello.fields)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every machine; what it does ends with the pipe to it."""
        for machine in self.machines:
            machine.hang_up()
        for machine in self.machines:
            machine.end()
        self.machines = []

    def notes(self) -> list[Note]:
        """What made these machines less fit to measure from, just before the last drive."""
        found = [
            structs.replace(note, number=f"{machine.host}: {note.number}")
            for machine in self.machines
            for note in machine.notes
        ]
        boots: dict[str, list[str]] = {}
        for machine in self.machines:
            boot = str(machine.hello["host"].get("boot_id", machine.host))
            boots.setdefault(boot, []).append(machine.host)
        found += [
            Note(
                kind="client machines are one",
                number=" and ".join(names),
                meaning="they take processors and network from each other",
                remedy="name machines that are not the same",
            )
            for names in boots.values()
            if len(names) > 1
        ]
        return found

    def drive(
        self,
        target: Targets,
        wire: str,
        requests: Arena,
        *,
        login: tuple[str, str, str] | None = None,
        whole: Sequence[bytes] = (),
        tls: tuple[Sequence[str], str | None, tuple[str, str] | None, bool] | None = None,
        sequence: NDArray[np.uint32],
        client_starts: NDArray[np.uint32] | None = None,
        due_ns: NDArray[np.int64] | None = None,
        connections: int,
        stop_after: int | None = None,
        spill: str | None = None,
        on_tick: OnTick | None = None,
        **order: Any,
    ) -> Gathered:
        """Drive the load from all machines; the arguments are those of ``_core.drive``.

        Names of targets are resolved on the client machines. ``cpus``: of each client machine;
        none: all of its own but the first. ``capture_every`` counts each machine's own requests.
        ``spill``: a folder here for samples beyond 256 MiB; the machines spill into one of theirs.
        ``on_tick`` gets the completed of all, nanoseconds since the start, and recent samples:
        fewer than a local drive has, with connections as each machine numbers them. False from
        it ends the drive on all machines and keeps the traces.

        FleetError where a machine fails or is lost; ValueError where the load does not fit
        together.
        """
        if not self.machines:
            raise LabError("the client machines are not there: use the fleet as a context", "drive")
        shares = deal(
            len(self.machines), connections=connections, sequence=sequence,
            client_starts=client_starts, due_ns=due_ns, stop_after=stop_after,
        )  # fmt: skip
        runs = [Run(machine, part) for machine, part in zip(self.machines, shares, strict=True)]
        busy = [run for run in runs if not run.part.idle]
        told = {
            "target": target,
            "wire": wire,
            "login": login,
            "tls": tls,
            "whole": [base64.b64encode(mark).decode() for mark in whole],
            "order": {**order, "spill": bool(spill)},
        }
        self._jobs += 1
        self._failed.clear()
        try:
            for machine in self.machines:
                if machine.lost:
                    raise FleetError(machine.host, machine.lost)
            if not busy:
                raise LabError("nothing was sent: the order is empty", "drive")
            for run in busy:
                run.before = self._clock(run.machine)
            for run in busy:
                self._tell(run, told, requests)
            for machine, ready in self._each("ready", [run.machine for run in busy], _READY_S):
                machine.notes = [convert(note, Note) for note in ready.fields["notes"]]
            self._follow(busy, on_tick)
            for run in busy:
                run.after = self._clock(run.machine)
        except FleetError as failure:
            rescued = self._rescue(runs, spill)
            raise FleetError(failure.host, failure.words, rescued) from None
        except BaseException:
            # Ctrl-C, or a fault of ours: nobody drives on.
            self.close()
            raise
        return self._gather(runs, spill, _SILENCE_S)

    def _tell(self, run: Run, told: Mapping[str, Any], requests: Arena) -> None:
        """Send a machine its part, all but the word to go; arrays go as columns."""
        part = run.part
        order = {
            **told["order"],
            "sequence": part.sequence,
            "client_starts": part.client_starts,
            "due_ns": part.due_ns,
            "connections": part.end - part.first,
            "stop_after": part.stop_after,
        }
        arrays = {n: np.ascontiguousarray(v) for n, v in order.items() if isinstance(v, np.ndarray)}
        job = {
            **told,
            "job": self._jobs,
            "order": {name: value for name, value in order.items() if name not in arrays},
            "columns": {name: column.dtype.str for name, column in arrays.items()},
        }
        blobs = {name: column.data for name, column in arrays.items()}
        run.machine.send("job", job, {**blobs, **requests.blobs()})

    def _follow(self, runs: list[Run], on_tick: OnTick | None) -> None:
        """Give the word, and follow the drive to its end on all machines."""
        longest_s = max(run.before.round_trip_ns for run in runs) / 1e9
        # A machine opens its connections one after another before the start.
        most = max(run.part.end - run.part.first for run in runs)
        ahead_s = self.lead_s + longest_s + most * (_CONNECT_S + longest_s)
        start_unix_ns = time.time_ns() + int(ahead_s * 1e9)
        for run in runs:
            run.going = True
            run.machine.send("go", {"start_unix_ns": start_unix_ns + run.before.offset_ns})
        of = {run.machine: run for run in runs}
        recent: list[bytes] = []
        spoke = ticked = time.monotonic()
        while any(run.ended is None for run in runs):
            for machine, message in self._good():
                if message.kind == "tick":
                    of[machine].completed = int(message.fields["completed"])
                    recent.append(bytes(message.blobs.get("recent", b"")))
                elif message.kind == "ended":
                    of[machine].ended, of[machine].completed = message, message.fields["samples"]
            now = time.monotonic()
            for run in runs:
                if run.ended is None and now - run.machine.heard > _SILENCE_S + ahead_s:
                    raise FleetError(run.machine.host, f"it said nothing for {_SILENCE_S:.0f} s")
            if now - spoke >= _ALIVE_S:
                spoke = now
                for run in runs:
                    run.machine.send("alive")
            if on_tick and now - ticked >= _LOOK_S:
                ticked = now
                elapsed_ns = max(0, time.time_ns() - start_unix_ns)
                completed = sum(run.completed for run in runs)
                if on_tick(completed, elapsed_ns, b"".join(recent)) is False:
                    for run in runs:
                        run.machine.send("stop")
                recent.clear()

    def _gather(self, runs: list[Run], spill: str | None, patience_s: float) -> Gathered:
        """The traces of those that ended, in one."""
        samples = make_room(runs, spill)
        of = {run.machine: run for run in runs if run.ended}
        for machine in of:
            machine.send("give")
        for machine, trace in self._each("trace", list(of), patience_s):
            of[machine].trace = trace
        return put_together(runs, samples)

    def _rescue(self, runs: list[Run], spill: str | None) -> Gathered | None:
        """After a failure: end the others, and gather what they have."""
        of = {run.machine: run for run in runs if run.going and not run.machine.lost}
        for machine in of:
            machine.send("stop")
        waiting = {m for m, run in of.items() if run.ended is None and m not in self._failed}
        give_up = time.monotonic() + _GATHER_S
        while waiting and time.monotonic() < give_up:
            for machine, event in self._heard():
                if event.kind in _ENDS:
                    waiting.discard(machine)
                elif event.kind == "ended" and machine in of:
                    of[machine].ended = event
                    waiting.discard(machine)
        for machine in waiting:
            machine.end()
        for run in runs:
            if run.machine.lost:
                run.ended = None
        with suppress(FleetError):
            return self._gather(runs, spill, _GATHER_S) if any(r.ended for r in runs) else None
        return None

    def _clock(self, machine: Machine) -> Offset:
        """How far its clock is from ours. A ping: left here, came there, left there, came here."""
        pings = []
        for _ in range(_PINGS):
            left_unix_ns = machine.send("ping")
            ((_, pong),) = self._each("pong", [machine], _SILENCE_S)
            there = int(pong.fields["came"]), int(pong.fields["left"])
            pings.append((left_unix_ns, *there, pong.received_unix_ns))
        return offset(pings)

    def _each(
        self, kind: str, machines: Sequence[Machine], patience_s: float
    ) -> Iterator[tuple[Machine, Message]]:
        """One message of a kind from each of these machines, as they come."""
        waiting = dict.fromkeys(machines, time.monotonic())
        while waiting:
            for machine, message in self._good():
                if message.kind == kind and machine in waiting:
                    del waiting[machine]
                    yield machine, message
            for machine, since in waiting.items():
                if time.monotonic() - max(since, machine.heard) > patience_s:
                    raise FleetError(machine.host, f"no {kind} came for {patience_s:.0f} s")

    def _heard(self) -> Iterator[tuple[Machine, Message]]:
        """What was heard, at most one event; waits for it a little. What belongs to an earlier
        job, which came to nothing, is passed over.
        """
        with suppress(queue.Empty):
            machine, event = self._events.get(timeout=_LOOK_S)
            if event.fields.get("job", self._jobs) == self._jobs:
                yield machine, event

    def _good(self) -> Iterator[tuple[Machine, Message]]:
        """What was heard; FleetError where it is the end of a machine, or of its drive."""
        for machine, event in self._heard():
            if event.kind in _ENDS:
                self._failed.add(machine)
                raise FleetError(machine.host, str(event.fields["words"]))
            yield machine, event


@dataclass(frozen=True)
class FleetEndpoint:
    """An endpoint that is asked from a fleet: takes the place of an ``Endpoint`` in a drive."""

    fleet: Fleet
    endpoint: Endpoint

    def send(self, requests: Sequence[Request], order: Order, manner: Manner) -> Gathered:
        """Send ``requests`` from all machines."""
        at = self.endpoint
        target = list(at.addresses) if at.others else at.target
        told = {**arguments(order, manner), "remote": at.remote}
        return self.fleet.drive(
            target, at.wire, lay_out(at.dressed(requests)), login=at.wire_login, whole=at.whole,
            tls=at.wire_tls, **told,
        )  # fmt: skip


def refuse_other(host: str, hello: Mapping[str, Any]) -> None:
    """FleetError unless a client machine has what this one has, built to measure."""
    ours = versions()
    for key, what in (("searchbench", "searchbench"), ("core", "the measuring core")):
        if hello.get(key) != ours[key]:
            raise FleetError(
                host,
                f"it has {what} {hello.get(key)}, and this machine {ours[key]}: install "
                f"searchbench {ours['searchbench']} there, so that all measure alike (pip install "
                f"searchbench=={ours['searchbench']})",
            )
    different = [k for k in ("protocol", "sample", "outcomes") if hello.get(k) != ours[k]]
    if different:
        raise FleetError(
            host,
            f"it has searchbench {ours['searchbench']} as this machine has, but another build "
            f"(different: {', '.join(different)}): install the same build on both",
        )
    if hello.get("build") != "release":
        raise FleetError(host, "its measuring core is a debug build; build it with `uv sync`")
