"""One figure: what was measured, what we hold ourselves to, and whether it was reached."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """``at_most`` or ``at_least`` is the target; ``measured`` is in the same unit."""

    name: str
    measured: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    def reached(self) -> bool | None:
        """None where the figure has no target of its own."""
        if self.at_most is not None:
            return self.measured <= self.at_most
        if self.at_least is not None:
            return self.measured >= self.at_least
        return None

    def line(self) -> str:
        """As printed."""
        mark = {True: "reached", False: "MISSED", None: ""}[self.reached()]
        target = ""
        if self.at_most is not None:
            target = f"at most {self.at_most:g}"
        if self.at_least is not None:
            target = f"at least {self.at_least:g}"
        value = f"{self.measured:.4g} {self.unit}"
        return f"{mark:8}{self.name:58} {value:>16}  {target:16} {self.note}".rstrip()


@dataclass(frozen=True, slots=True)
class Missing:
    """What was not run, and how to get what it needs: a line, never a failure."""

    text: str

    def line(self) -> str:
        """As printed."""
        return f"  not run here: {self.text}"
