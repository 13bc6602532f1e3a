"""A server that ended in a trial although nobody of ours had ended it: seen, and put on record.

How it ended, what its log says last, and how many requests it had been sent and never answered are
facts of the trial. Whether a method of an operation brought it about is for the judge to say.
"""

from __future__ import annotations

import time
from typing import Literal

from searchbench.lab.drive.drive import Broken
from searchbench.lab.system.running import Running
from searchbench.record.ends import BACKEND, ServerEnd
from searchbench.record.trial import Note

DYING_S = 2.0  # between the loss of a connection and the end of the process
_CODE_S = 1.0  # from the end of its first thread to that of its last
_LOOK_S = 0.02
_WHEN = {"capture": "while each was asked once, alone", "drive": "while it was driven"}


def has_ended(running: Running, wait_s: float = 0.0, *, lost: bool = False) -> bool:
    """Whether a process of it ended, or does within ``wait_s``.

    ``lost``: a connection was, perhaps with the process that answered it, while the server goes on.
    """
    until = time.monotonic() + wait_s
    while running.lives():
        if lost and running.fallen() is not None:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(_LOOK_S)
    return True


def ends_of(
    running: Running, phase: Literal["capture", "drive"], broken: Broken, cause: str
) -> list[ServerEnd]:
    """Its processes that have ended. ``cause``: what its place says of it."""
    exits = _exits(running)
    codes: dict[str, int | None] = {**exits} or {"": None}
    ended = [(name, code, running.last_words(name)) for name, code in codes.items()]
    if not exits and running.lives() and (found := running.fallen()) is not None:
        ended = [(BACKEND, *found)]
    return [
        ServerEnd(
            process=name,
            code=code,
            phase=phase,
            under_way=broken.under_way,
            cause=cause,
            log=log,
        )
        for name, code, log in ended
    ]


def _exits(running: Running) -> dict[str, int]:
    """Its exit codes. A process is a zombie as soon as its first thread has ended, and has an exit
    code only when its last one has.
    """
    until = time.monotonic() + _CODE_S
    while not (codes := running.exits()) and not running.lives() and time.monotonic() < until:
        time.sleep(_LOOK_S)
    return codes


def note(ends: list[ServerEnd]) -> Note:
    """The same as a finding of the lab."""
    first = ends[0]
    whose = first.who if first.process == BACKEND else "the server's process"
    look = "server.log beside this trial's samples" if first.log else "the server's own log"
    return Note(
        kind="server ended",
        number="; ".join(filter(None, [first.how, first.last_words])),
        meaning=f"{whose} ended {_WHEN[first.phase]}",
        remedy=f"look at {look}",
    )
