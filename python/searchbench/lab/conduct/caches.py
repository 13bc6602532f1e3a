"""How requests are drawn so that the server's cache answers a wanted share of them."""

from __future__ import annotations

from collections.abc import Iterable

from searchbench.errors import LabError, QueryError
from searchbench.lab.conduct.session import Session
from searchbench.lab.drive.workload import VerbatimRequests
from searchbench.lab.system import cachecount
from searchbench.workload.draw import CachePlan, Distribution, plan

LAWS: tuple[Distribution, ...] = ("uniform", "zipf")


def plan_of(session: Session, others: Iterable[Session]) -> CachePlan | None:
    """The draws for a session that was opened; None where no share of hits is wanted.

    The same draws for all systems: LabError where their caches are not alike. QueryError where the
    share cannot be had.
    """
    table = session.opened.treatment.load
    hit, workload = table.get("cache_hit"), session.opened.workload
    if hit is None:
        return None
    if not isinstance(workload, VerbatimRequests):
        raise QueryError("cache_hit draws verbatim requests; a study's queries are asked as logged")
    law, exponent = law_of(str(table.get("cache_law") or "uniform"))
    if workload.requests.groups:
        raise QueryError(
            "`cache_hit` (--cache-hit) draws the requests, and this file says by its "
            "groups how they are drawn; leave one of the two away"
        )
    entries = table.get("cache_entries")
    if entries is None:
        running = session.there()
        entries = cachecount.read(running.endpoint, running.known).entries
        name = session.opened.treatment.system
        if entries is None:
            raise LabError(
                f"{name} does not say how many answers its cache holds, or its endpoints differ in "
                "it: say `cache_entries` (--cache-entries)"
            )
        for other in others:
            if other.cache is not None and other.cache.cache_entries != entries:
                raise LabError(
                    f"the caches are not alike ({other.opened.treatment.system} "
                    f"{other.cache.cache_entries}, {name} {entries}), so the same requests "
                    "hit them differently; make them alike, or say --cache-entries"
                )
    return plan(
        int(entries), float(hit), law, available=workload.requests.distinct, exponent=exponent
    )


def law_of(text: str) -> tuple[Distribution, float | None]:
    """The popularity of requests: uniform, zipf, or zipf:0.8 with an exponent; QueryError."""
    name, _, steepness = text.partition(":")
    chosen = next((known for known in LAWS if known == name), None)
    try:
        exponent = float(steepness) if steepness else None
    except ValueError:
        chosen, exponent = None, None
    if chosen is None:
        raise QueryError(
            f"--cache-law {text!r}: use {' or '.join(LAWS)}, or zipf:0.8 with an exponent"
        )
    return chosen, exponent
