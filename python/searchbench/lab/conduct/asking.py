"""What operations need of a system beside a drive: a prelude, a reader, statements sent once."""

from __future__ import annotations

from dataclasses import replace

from searchbench.engines.dialects import dialect_of
from searchbench.engines.engine import Request
from searchbench.errors import LabError
from searchbench.lab.conduct.session import Session
from searchbench.lab.drive.operations import Operations
from searchbench.lab.wire.words import words_of

_TIMEOUT_S = 3600.0


def ask_operations(session: Session) -> None:
    """From now on every connection begins with the prelude, and answers are rows."""
    workload = session.opened.workload
    if not isinstance(workload, Operations):
        return
    running = session.there()
    compiled = session.bytes()
    running.endpoint = replace(running.endpoint, prelude=compiled.prelude)
    running.reader = workload.reader(running.engine, session.levers)


def once(session: Session) -> None:
    """Send what is sent once to a system whose documents are in; LabError with its words."""
    workload, running = session.opened.workload, session.there()
    assert isinstance(workload, Operations)
    for sent in workload.sent_once(session.levers):
        request = Request((dialect_of(running.endpoint.wire).text(sent.text),))
        reply = running.ask(request, _TIMEOUT_S)
        if words := words_of(reply, running.endpoint.wire):
            first = " ".join(sent.text.split())[:80]
            raise LabError(f"{first!r}, which is sent @once, was refused: {words}", "ingest")


def made_once(session: Session) -> str:
    """What an index depends on beside its documents: the statements that are sent once."""
    workload = session.opened.workload
    if not isinstance(workload, Operations):
        return ""
    return "; ".join(sent.text for sent in workload.sent_once(session.levers))
