"""A fault of a system at a time of its drive: a process is killed, stopped or frozen, and back.

It is a role: what it does goes by the readers' clock, on a thread of its own. What came of it is in
the readers' samples; here only the instants are kept. Whoever comes after the drive (who publishes
and counts) needs the service, so its end is waited for until that serves again, or cannot.
"""

from __future__ import annotations

import contextlib
import signal
import time
from typing import TYPE_CHECKING

import psutil

from searchbench.errors import LabError
from searchbench.lab.conduct.session import Session
from searchbench.lab.system.deploy import Deployment
from searchbench.record.roles import FaultDone
from searchbench.workload.roles import SERVER

if TYPE_CHECKING:
    from searchbench.lab.conduct.beside import Part

# Who is in a family is looked up before it is time, for a machine has hundreds of processes.
_AHEAD_S = 0.5
_LOOK_S = 0.002  # between two looks whether a process has ended
_ENDS_S = 60.0  # what a stop may take, before it becomes a kill; and what that may take
_ASK_S = 0.02  # between two questions whether it serves again


def prepare(session: Session, part: Part, begin_ns: int, stop_ns: int) -> None:
    """Know what happens when; LabError where that is after the drive has ended."""
    if part.run.idle:
        return
    keys = part.run.keys
    # Without a time, as in a search for capacity, it lasts for the warm-up and the window.
    after_s = keys.get("after_s")
    begun_ns = 0 if after_s is None else begin_ns + round(float(after_s) * 1e9)
    if begun_ns >= stop_ns:
        raise LabError(f"the fault {part.run.name} comes after the drive has ended: make `after_s` "
                       "smaller, or the window longer", "prepare")  # fmt: skip
    part.run.planned = 1
    part.run.fault = FaultDone(fault=str(keys["fault"]), of=str(keys["of"]))
    for_s = keys.get("for_s")
    # Where nobody brings it back in the drive, it comes back for those who count.
    again_ns = stop_ns if for_s is None else begun_ns + round(float(for_s) * 1e9)
    part.side.act = lambda start_unix_ns: _happen(session, part, start_unix_ns, begun_ns, again_ns)


def _happen(session: Session, part: Part, start_unix_ns: int, begun_ns: int, again_ns: int) -> None:
    """All of it, from the signal until the service answers again."""
    running, done = session.there(), part.run.fault
    assert isinstance(running, Deployment)
    assert done is not None
    name = "" if done.of == SERVER else done.of

    def now() -> int:
        return time.time_ns() - start_unix_ns

    def wait(until_ns: int) -> None:
        part.side.over.wait(max(0.0, (until_ns - now()) / 1e9))

    wait(begun_ns - round(_AHEAD_S * 1e9))
    try:
        family = running.family(name)
    except KeyError:
        raise LabError(f"{running.engine.name} has no process {done.of}", "drive") from None
    wait(begun_ns)
    if part.side.over.is_set():
        return
    done.processes, done.begun = len(family), now()
    if done.fault == "freeze":
        _signal(family, signal.SIGSTOP)
        try:
            wait(again_ns)
        finally:
            _signal(family, signal.SIGCONT)
        done.again = now()
    else:
        _end(running, name, family, done.fault, part)
        done.ended = now()
        wait(again_ns)
        if part.side.over.is_set():
            return
        try:
            running.start_again(name)
            done.again = now()
        except LabError as error:
            done.trouble = str(error)
            return
    try:
        running.wait_until_ready(_ASK_S)
        done.ready = now()
    except LabError as error:
        done.trouble = str(error)


def _end(
    running: Deployment, name: str, family: list[psutil.Process], how: str, part: Part
) -> None:
    """Have a process and what it has started end, and wait until they have."""
    if how == "kill":
        _signal(family, signal.SIGKILL)
    else:
        _signal(family[:1], signal.Signals[running.service.stop_signal])
        give_up = time.monotonic() + _ENDS_S
        while not running.ended(name) and time.monotonic() < give_up:
            if part.side.over.wait(_LOOK_S):
                break
        _signal(running.family(name), signal.SIGKILL)  # what is left of it
    give_up = time.monotonic() + _ENDS_S
    while not running.ended(name) or any(map(_lives, family)):
        if time.monotonic() > give_up:
            raise LabError(
                f"process {family[0].pid} of {running.engine.name} does not end", "drive"
            )
        time.sleep(_LOOK_S)


def _signal(family: list[psutil.Process], how: signal.Signals) -> None:
    """Each of them, the one that started the others first."""
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(how)


def _lives(process: psutil.Process) -> bool:
    """Is it more than an entry that its parent has not read yet?"""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
