"""A part of trial.json: a host that was asked alone, before the whole was."""

from __future__ import annotations

import msgspec


class HostAlone(msgspec.Struct, frozen=True, kw_only=True):
    """A host asked alone before the drive: one agent of it, for the parts that it has.

    ``agent``: its name, as of its log; ``per_s``: answered well in a second by so many ``clients``
    of a closed loop; ``failed``: answered otherwise. Of ``seconds``, after a warm-up.
    """

    host: str
    agent: str
    parts: int
    clients: int
    seconds: float
    answered: int
    failed: int
    per_s: float
    service_p50_s: float
    service_p99_s: float
