"""What a search for capacity found for one promise: its interval, and the sentence about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bracket:
    """``holds`` and ``fails`` in requests a second; None where that side stayed open.

    ``sentence`` says what was found and, of an open side, why. ``chance_inside``: that the greatest
    rate is in the interval; None where a side is open. ``broken_up_to``: the greatest rate at which
    it was broken for so little load; None: there is none.
    """

    holds: float | None
    fails: float | None
    sentence: str
    chance_inside: float | None = None
    broken_up_to: float | None = None
