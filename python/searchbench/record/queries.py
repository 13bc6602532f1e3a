"""What was asked, as trial.json keeps it: of the readers, and of each role that reads."""

from __future__ import annotations

import msgspec


class Queries(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked: a query set or a set of requests. ``digest`` names its file on record.

    ``classes``: by class, how many of the logged requests are of it; empty where they have none.
    """

    name: str = ""
    digest: str = ""
    distinct: int | None = None
    logged: int | None = None
    mean_terms: float | None = None
    bad_lines: int = 0
    classes: dict[str, int] = {}


class Unsupported(msgspec.Struct, frozen=True):
    """A query of the set that this engine cannot express, and why; it was not asked."""

    query: int
    reason: str
