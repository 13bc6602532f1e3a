"""Were two trials driven with the same load? What differs there is in every speed.

The roles beside the readers are part of it: a busier writer takes more from them. How long they
were driven and warmed up is left out: what that does is in their states.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from searchbench.record import Trial
from searchbench.spec import defaults
from searchbench.workload.load_table import SPEC_KEYS
from searchbench.workload.roles import ROLE_KEYS

USUAL = defaults(SPEC_KEYS)
_OF_ROLES = defaults(ROLE_KEYS)
# By kind, what else the server or the clock sees of a load.
_OF_ALL = ("kind", "order", "timeout_s", "idle")
_OF_KIND = {
    "closed": ("clients", "think_s"),
    "open": ("rate_per_s", "arrivals", "stages", "judged_stage", "capacity_per_s", "connections"),
    "replay": ("speed", "connections"),
}


def differing(a: Trial, b: Trial, matched: tuple[str, ...] = ()) -> str:
    """Why their speeds may not be compared, a clause; empty: the loads are the same.

    ``matched``: keys by which they were put beside each other, or which a search chooses.
    """
    mine, other = _of(a), _of(b)
    keys = [key for key in dict.fromkeys((*mine, *other)) if key not in matched]
    if mine["kind"] != other["kind"]:
        keys = ["kind"]
    for key, one, two in _roles(a, b):
        mine[key], other[key] = one, two
        keys.append(key)
    found = [
        f"{key} {_said(mine.get(key))} and {_said(other.get(key))}"
        for key in keys
        if mine.get(key) != other.get(key)
    ]
    return f"the load is not the same ({', '.join(found)})" if found else ""


def _of(trial: Trial) -> dict[str, Any]:
    """By key; what an old record does not have is at its default."""
    load = trial.load
    keys = (*_OF_ALL, *_OF_KIND[load.kind])
    found = {key: getattr(load, key) for key in keys}
    if len(trial.endpoints) > 1:  # of one address nothing is spread
        found["spread"] = load.spread
    found = {key: USUAL.get(key) if value is None else value for key, value in found.items()}
    cache = trial.cache
    if cache is not None and cache.wanted_hit is not None:
        found |= {"cache_hit": cache.wanted_hit, "cache_law": cache.distribution}
        found["exponent of cache_law"] = cache.exponent
    return found


def _roles(a: Trial, b: Trial) -> Iterator[tuple[str, Any, Any]]:
    """Each key of the roles beside the readers, with its value in either trial; None: has none.

    One that is idle does nothing. What an old record does not have is at its default.
    """
    first, second = ({r.name: r for r in t.beside if not r.idle} for t in (a, b))
    for name in dict.fromkeys((*first, *second)):
        x, y = first.get(name), second.get(name)
        if x is None or y is None or x.does != y.does:
            yield f"role {name}", x and x.does, y and y.does
            continue
        for key in dict.fromkeys((*x.keys, *y.keys)):
            if key != "idle":
                usual = _OF_ROLES.get(key)
                yield f"{key} of role {name}", x.keys.get(key, usual), y.keys.get(key, usual)


def _said(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
