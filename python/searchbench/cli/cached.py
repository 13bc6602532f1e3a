"""``searchbench load --cache-hit``: which requests are drawn, and how, for a share of hits."""

from __future__ import annotations

from collections.abc import Sequence

from searchbench.errors import SearchbenchError
from searchbench.lab.system import cachecount
from searchbench.lab.system.systems import System
from searchbench.workload.draw import CachePlan, Distribution, plan
from searchbench.workload.verbatim.model import RequestSet

_LAWS: tuple[Distribution, ...] = ("uniform", "zipf")


def cache_plan(
    systems: Sequence[System],
    requests: RequestSet,
    hit: float,
    entries: int | None,
    law: str,
) -> CachePlan:
    """The same draws for all systems. SearchbenchError where their caches are not alike."""
    name, _, steepness = law.partition(":")
    chosen = next((known for known in _LAWS if known == name), None)
    try:
        exponent = float(steepness) if steepness else None
    except ValueError:
        chosen, exponent = None, None
    if chosen is None:
        raise SearchbenchError(
            f"--cache-law {law!r}: there are {' and '.join(_LAWS)}, and zipf:0.8 with an exponent"
        )
    if requests.groups:
        raise SearchbenchError(
            "--cache-hit draws the requests, and this file says by its groups how they are drawn; "
            "leave one of the two away"
        )
    if entries is None:
        sizes = {
            system.name: cachecount.read(system.endpoint, system.identity.engine).entries
            for system in systems
        }
        silent = [name for name, size in sizes.items() if size is None]
        if silent:
            raise SearchbenchError(
                f"{silent[0]} does not say how many answers its cache holds, or its endpoints "
                "differ in it: say --cache-entries"
            )
        if len(set(sizes.values())) > 1:
            told = ", ".join(f"{name} {size}" for name, size in sizes.items())
            raise SearchbenchError(
                f"the caches are not alike ({told}), so the same requests hit them differently; "
                "make them alike, or say --cache-entries and read the findings"
            )
        entries = next(iter(sizes.values()))
    assert entries is not None
    return plan(entries, hit, chosen, available=requests.distinct, exponent=exponent)
