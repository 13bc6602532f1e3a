"""May one limit be greater than another because of when each was searched?

Systems that are started are searched one after another, so whatever becomes slower with time looks
like a difference between them. Those that take turns, trial by trial, meet the same times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from searchbench.analysis.judgement import Capacity, Step

EVENLY = math.sqrt(12)  # range over standard deviation of a speed that falls evenly


def apart(a: Capacity, b: Capacity, steps: Sequence[Step]) -> bool:
    """Whether each was searched once, the one after the other. ``steps``: in the order driven."""
    if min(a.searches, b.searches) > 1:
        return False
    order = [s.subject for s in steps if s.subject in (a.subject, b.subject)]
    switches = sum(x != y for x, y in pairwise(order))
    return switches <= 1 or switches < min(order.count(a.subject), order.count(b.subject))


def reach(a: Capacity, b: Capacity, changed: Capacity, steps: Sequence[Step]) -> float:
    """By what ratio two limits may differ because of when they were searched; 1: by nothing.

    ``changed``: the search whose trials differed most. Its speed may have fallen evenly, and on and
    on from the first of the two searches to the last.
    """
    if not changed.speeds or not apart(a, b, steps):
        return 1.0
    order = list(dict.fromkeys(s.subject for s in steps))
    at = [order.index(one.subject) if one.subject in order else 0 for one in (a, b)]
    return math.exp(EVENLY * changed.speeds * (abs(at[0] - at[1]) + 1))


def doubt(changed: Capacity) -> str:
    """Why whoever is in front only leads, in a clause."""
    return (
        f"they were searched one after another, and the speed of {changed.subject} changed from "
        "trial to trial, as it does where the machine becomes slower or faster; search each "
        "several times (`replicates = 3`)"
    )
