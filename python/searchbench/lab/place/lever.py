"""The steps of every lever of a place, and what happens if one did not take effect.

    probe       does this machine have it?               ``abilities.py``, before the study starts
    apply       ``make``, ``cap_memory``, ``throttle``   after it was written down (``ledger.py``)
    read back   what the kernel says it is
    effect      what is seen, once files lie there or the system was driven
    undo        ``remove``, ``leave``; of dead processes ``ledger.clean``

A lever is a ``record.trial.Lever`` on record: what was asked, read back, and seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from searchbench.errors import LabError
from searchbench.record.trial import Lever


def insist(levers: Iterable[Lever]) -> None:
    """LabError (stage ``place``) for the first lever that did not take effect."""
    for lever in levers:
        if lever.problem:
            raise LabError(
                f"the lever {lever.name} did not take effect: {lever.asked} was asked for; "
                f"{lever.problem}",
                "place",
            )
