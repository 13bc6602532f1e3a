"""Kinds of findings that several judgements ask for by name."""

from __future__ import annotations

OTHERWISE = "other answers under load"
ENDED = ("server died", "server ended")
"""The rate of such a trial would be one over the time that the server was dead."""
NOT_MEASURED = "not measured"
"""A trial that failed before or beside the system, as of a client machine that was lost."""
