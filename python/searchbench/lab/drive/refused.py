"""Requests that a server refused in a drive: what it says of one of each kind."""

from __future__ import annotations

from contextlib import suppress

from searchbench import _core
from searchbench.lab.drive.drive import Samples
from searchbench.lab.drive.workload import Compiled
from searchbench.lab.system.running import Running
from searchbench.lab.wire.exchange import Refused, ask, replies_of, samples_of
from searchbench.lab.wire.words import words_of

# Some servers refuse with a good status: what they lack then makes a reply partial.
_REFUSED = ("http_error", "engine_error", "partial")
_REFUSALS = {_core.OUTCOMES.index(name): name for name in _REFUSED}
_PATIENCE_S = 5.0


def said(running: Running, compiled: Compiled, samples: Samples) -> dict[str, str]:
    """By outcome, the server's own sentence; without those of which it says none.

    Where no reply of that outcome was kept, one such request is asked once more.
    """
    first: dict[str, int] = {}
    for raw in samples.raw():
        for code, name in _REFUSALS.items():
            at = (raw["outcome"] == code).argmax()
            if name not in first and raw["outcome"][at] == code:
                first[name] = int(raw["request"][at])
    if not first:
        return {}
    wire, whole, found = running.endpoint.wire, samples_of(samples.trace), dict[str, str]()

    def read(reply: bytes) -> str | None:
        return running.decoder.decode(reply).error

    for index, pieces in replies_of(samples.trace):
        name = _REFUSALS.get(int(whole[index]["outcome"]), "")
        if name and name not in found and (words := words_of(b"".join(pieces), wire, read)):
            found[name] = words
    for name in first.keys() - found.keys():
        with suppress(Refused):
            (reply,) = ask(
                running.endpoint, [compiled.requests[first[name]]], timeout_s=_PATIENCE_S
            )
            if words := words_of(reply, wire, read):
                found[name] = words
    return found
