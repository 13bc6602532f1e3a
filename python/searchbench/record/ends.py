"""A process of a system that ended in a trial although nobody of ours had ended it."""

from __future__ import annotations

import contextlib
import signal
from typing import Literal

import msgspec

BACKEND = "backend"


class ServerEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a process ended, and what was asked of the system then.

    ``process``: a companion's name; empty: the one that is asked; "backend": one that answered a
    single connection, as in PostgreSQL, whose server then goes on. ``code``: its exit code, below 0
    the signal that ended it; None: not known. ``phase``: "capture", while each was asked once,
    alone, or "drive". ``under_way``: requests of that phase that were sent and never answered.
    ``cause``: what its place says of it, such as memory that was too small. ``log``: what its log
    says last: from its last errors on, or its end.
    """

    process: str = ""
    code: int | None = None
    phase: Literal["capture", "drive"] = "drive"
    under_way: int = 0
    cause: str = ""
    log: str = ""

    @property
    def who(self) -> str:
        """What ended, in words."""
        return "a backend of the server" if self.process == BACKEND else "the server"

    @property
    def how(self) -> str:
        """The signal or the exit code, in words; empty where neither is known."""
        if self.code is None:
            return ""
        if self.code >= 0:
            return f"exit code {self.code}"
        name = ""
        with contextlib.suppress(ValueError):
            name = f", {signal.Signals(-self.code).name}"
        return f"signal {-self.code}{name}"

    @property
    def last_words(self) -> str:
        """What its place and its log say of it; empty where neither says anything."""
        return "; ".join([*filter(None, [self.cause, self.log and f"its log: {self.log}"])])
