"""Every error that searchbench raises on purpose.

    SearchbenchError            one sentence: what, where, and what to do
    ├── StudyError              a study file is wrong; carries every complaint at once
    ├── CorpusError             documents cannot be read, or do not fit their schema
    ├── QueryError              a query or a query file is wrong
    ├── Unsupported             an engine cannot express this; an outcome, never zero hits
    ├── LabError                the world did not do what was asked; carries the stage
    ├── CollectError            the collector cannot start or serve, or cannot send what it is given
    ├── RecordError             a record on disk cannot be read as asked
    └── NotInstalled            a tool or an engine is missing; says how to get it

The command line prints the sentence and exits with ``exit_code``; a traceback is a bug.
"""

from __future__ import annotations

from dataclasses import dataclass

NO_MEMORY = (
    "There is not enough memory; close other programs, or raise the limit (ulimit -v, systemd's "
    "MemoryMax)"
)


class SearchbenchError(Exception):
    """The root. The message is one sentence for a person."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Complaint:
    """One mistake in a user's file: where, what was expected, the nearest valid name.

    ``line`` and ``column`` count from 1; 0 where it is about the whole file.
    """

    file: str
    line: int
    column: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        """``file:line:column: message (hint)``, the form editors can jump to."""
        position = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{position}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class StudyError(SearchbenchError):
    """A study file is wrong. ``complaints`` holds all of its mistakes, in file order."""

    def __init__(self, complaints: list[Complaint]) -> None:
        self.complaints = sorted(complaints, key=lambda c: (c.file, c.line, c.column))
        super().__init__("\n".join(str(c) for c in self.complaints))


class CorpusError(SearchbenchError):
    """Documents cannot be read, or do not fit their schema.

    ``at``: the key of the [corpus] table that is wrong; empty: it is the files that it names.
    """

    def __init__(self, message: str, at: tuple[str, ...] = ()) -> None:
        self.at = at
        super().__init__(message)


class QueryError(SearchbenchError):
    """A query or a query file is wrong."""


class Unsupported(SearchbenchError):  # noqa: N818 -- an outcome with a reason, not a failure
    """An engine cannot express what was asked; the message is the reason."""


class LabError(SearchbenchError):
    """The world did not do what was asked. ``stage`` is the step of the trial."""

    def __init__(self, message: str, stage: str = "") -> None:
        self.stage = stage
        super().__init__(message)


class CollectError(SearchbenchError):
    """The collector cannot start or serve, or what it is to send is not taken."""


class RecordError(SearchbenchError):
    """A record on disk cannot be read as asked."""


class NotInstalled(SearchbenchError):  # noqa: N818
    """A tool or an engine is missing; the message says how to get it."""
