"""How times are distributed over tenths of a decade: what figures and their tables both show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from searchbench.analysis.logs.bands import STEP, density
from searchbench.analysis.logs.spread import Spread

_STEPS = round(0.1 / STEP)
_LIMITS = 8  # of a table of shares within times


@dataclass(frozen=True, slots=True)
class Tenth:
    """Times from ``low_s`` to ``high_s``. ``share`` of all times; ``within``: of all up to its end.

    ``below``: nothing is known of these but that they lie below the resolution of the log.
    """

    low_s: float
    high_s: float
    n: float
    share: float
    within: float
    below: bool = False

    @property
    def height(self) -> float:
        """The share by a tenth of a decade; what lies below the resolution is a decade wide."""
        return self.share / 10 if self.below else self.share


def tenths(of: Spread) -> tuple[Tenth, ...]:
    """From the shortest to the longest, and those without times between; none without times."""
    total = of.count
    if not total:
        return ()
    least = max(1, of.resolution_ns)
    start = math.log10(least)
    mass = density(of, start)
    so_far = float(of.n[of.low < least].sum())
    found = []
    if so_far:
        share = so_far / total
        found.append(Tenth(least / 1e10, least / 1e9, so_far, share, share, below=True))
    for at in range(0, len(mass), _STEPS):
        n = float(mass[at : at + _STEPS].sum())
        if not (n or found):
            continue
        so_far += n
        low, high = (10 ** (start + STEP * step) / 1e9 for step in (at, at + _STEPS))
        found.append(Tenth(low, high, n, n / total, min(1.0, round(so_far / total, 9))))
    return tuple(found)


def limits(of: Sequence[Spread]) -> tuple[float, ...]:
    """Times to say the shares within of several spreads: 1, 3, 10, .. of some unit, where they lie.

    From the first that any time is known to be within to the first that all are within.
    """
    timed = [one for one in of if one.count]
    if not timed:
        return ()
    least = min(max(one.resolution_ns, one.quantile_s(0.01) * 1e9 if one.count else 0)  # type: ignore[operator]
                for one in timed)  # fmt: skip
    most = max(one.max_ns for one in timed)
    powers = range(math.floor(math.log10(max(1, least))), math.ceil(math.log10(max(1, most))) + 1)
    found = [step * 10.0**power / 1e9 for power in powers for step in (1, 3)]
    found = [limit for limit in found if least * 0.999 <= limit * 1e9]
    last = next((i for i, limit in enumerate(found) if limit * 1e9 >= most), len(found) - 1)
    found = found[: last + 1]
    if len(found) > _LIMITS:
        whole = [limit for limit in found if f"{limit:e}".startswith("1")]
        found = whole[:: -(-len(whole) // _LIMITS)]
    return tuple(float(f"{limit:.6g}") for limit in found)
