"""What is judged of operations; part of a ``Judgement``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from searchbench.analysis.judgement import Estimate, Interval


@dataclass(frozen=True, slots=True)
class StatementTime:
    """What one statement of a method takes of an operation: all times that it is sent, together.

    ``line``: where it begins in the method's text. ``seconds``: the median operation's, over
    blocks; ``share``: of the operation's time. A ``line`` of 0 is the time between statements.
    """

    line: int
    text: str
    statements: int
    seconds: Estimate | None
    share: float


@dataclass(frozen=True, slots=True)
class Point:
    """One method at one number of rows.

    ``seconds``: of one operation, the median where there are samples enough for it, else the mean;
    None where it failed. ``by_block``: the same of each valid trial that is no control. ``median``:
    whether it is one. ``failed``: why it did, in the server's words; ``failed_in``: in how many of
    its trials it did, and why, where the times are those of the others.
    ``cpu_s``: of the server, for one operation. ``received_bytes``, ``sent_bytes``, ``statements``,
    ``exchanges``: within what is timed, of one.
    ``parts``: where the time goes, if the instants of statements are on record. ``untimed``: how
    many statements go before or after what is timed.
    """

    treatment: str
    rows: int
    seconds: Estimate | None
    by_block: Mapping[int, float] = field(default_factory=dict)
    cpu_s: Estimate | None = None
    received_bytes: float | None = None
    sent_bytes: int = 0
    statements: int = 0
    exchanges: int = 0
    failed: str = ""
    parts: tuple[StatementTime, ...] = ()
    median: bool = True
    failed_in: str = ""
    untimed: int = 0


@dataclass(frozen=True, slots=True)
class Slope:
    """What a further row costs: t = fixed + per_row * rows, by least squares of relative errors.

    ``worst``: the greatest relative residual; above a quarter it is no line, and ``linear`` is
    False. ``exponent``: d log t / d log rows between the two greatest numbers of rows; ``between``
    are these.
    """

    fixed: float
    per_row: Estimate
    worst: float
    exponent: Estimate | None = None
    between: tuple[int, int] = (0, 0)

    @property
    def linear(self) -> bool:
        """Does a line say it?"""
        return self.worst <= 0.25


@dataclass(frozen=True, slots=True)
class MethodCurve:
    """One method in one crossing of the other levels (``held``, as a label).

    ``others``: these levels without the system, which is ``system`` where there are several.
    """

    method: str
    held: str
    points: tuple[Point, ...]
    slope: Slope | None = None
    system: str = ""
    others: str = ""

    @property
    def label(self) -> str:
        """Its name where several crossings stand side by side."""
        return f"{self.method}, {self.held}" if self.held else self.method


@dataclass(frozen=True, slots=True)
class Crossover:
    """From where on ``above`` is faster than ``below``, in rows, within what was measured.

    ``rows``: by interpolation on logs; ``interval`` None where it is not resolved on both sides:
    then ``why`` says so. ``by``: which time of an operation. ``until``: the greatest number of rows
    up to which ``above`` is shown to be faster at each one; 0 where it is not resolved. ``but``: at
    which numbers of rows that is otherwise or not known, as the end of its sentence.
    """

    below: str
    above: str
    held: str
    rows: float
    interval: Interval | None
    why: str = ""
    by: str = "median time"
    until: int = 0
    but: str = ""


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Two methods that do not return the same: the first rows that differ, in one draw.

    ``place``, ``only_a``, ``only_b`` and ``order`` as in ``Differing``. ``alike``: how many methods
    returned what ``a`` did.
    """

    a: str
    b: str
    rows: int
    draw: int
    place: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    counts: tuple[int, int]
    alike: int = 1
    held: str = ""
    order: bool = False


@dataclass(frozen=True, slots=True)
class OperationResult:
    """One operation: its methods, what crosses, who disagrees.

    ``compared``: how many methods (in all crossings) have an answer on record. ``by_rows``: it
    asks for rows by a key; else one question is asked, whatever the number of rows.
    """

    name: str
    answer: str
    methods: tuple[MethodCurve, ...]
    crossovers: tuple[Crossover, ...] = ()
    differing: tuple[RowDifference, ...] = ()
    compared: int = 0
    by_rows: bool = True
