"""Who is kept informed while a plan is carried out; a terminal's progress is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from searchbench.record.trial import Trial as Kept
from searchbench.study.plan import Trial

# For promises and a drive's window in ns: takes the nanoseconds since its start and the samples it
# finished last, and says whether a promise is surely broken by now.
Breach = Callable[[Sequence[str], tuple[int, int], Sequence[str]], Callable[[int, bytes], bool]]


class Watch(Protocol):
    """Hears what happens, and is asked nothing."""

    def opening(self, what: str) -> None:
        """Something is being read or fetched that may take a while."""

    def told(self, text: str) -> None:
        """Something that a person should know before the measurement begins."""

    def begins(self, trial: Trial, label: str, done: int, of: int) -> None:
        """A trial begins; ``done`` of ``of`` are on record, 0 where a search decides how many."""

    def stage(self, name: str) -> None:
        """The trial enters a phase."""

    def asks(self, classes: Sequence[str]) -> None:
        """A drive begins that asks requests of these classes, by the numbers that samples have of
        them; empty: they have none.
        """

    def tick(self, completed: int, elapsed_ns: int, recent: bytes) -> None:
        """Requests completed in the running drive; ``recent``: the last of them, as samples."""

    def ends(self, trial: Trial, about: Kept, invalid: str) -> None:
        """A trial is on record. ``invalid``: what the audit holds against it; "" if nothing."""


class Silence:
    """A Watch that watches nothing."""

    def _nothing(self, *_: object, **__: object) -> None: ...

    opening = told = begins = stage = asks = tick = ends = _nothing
