"""What is said of a log: figures overall, by group and over time, bands, repetition, remarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from searchbench.analysis.logs.bands import Bands
from searchbench.analysis.logs.repeats import Repeats
from searchbench.analysis.logs.spread import Spread
from searchbench.logs.within import Within


@dataclass(frozen=True, slots=True)
class Row:
    """A group of requests: how many, how long, what came of them.

    Shares are of the group, but ``share``, ``share_of_time`` and ``share_of_timed``, which are of
    all searches, of all time that the log has, and of the searches whose time it has; and ``zero``
    and ``mean_hits``, which are of the ``hits_known`` searches of which it has the hits. None: the
    log does not say. ``quantiles_s``: p50, p90, p95, p99, p99.9; 0 is below the resolution.
    ``p95_between_s``: the ends of its interval (``Spread.between_s``). ``times``: all of them, as
    the clock of the log lets them be known. ``resolution_s``: of a server its own.
    """

    name: str
    n: int
    share: float
    share_of_time: float | None
    quantiles_s: Mapping[str, float | None]
    max_s: float | None
    zero: float | None
    mean_hits: float | None
    errors: float | None
    partial: float
    cached: float
    cpu_ms: float | None = None
    ios: float | None = None
    p95_between_s: tuple[float, float] | None = None
    times: Spread | None = field(default=None, compare=False, repr=False)
    resolution_s: float | None = None
    share_of_timed: float | None = None
    hits_known: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """A minute: its beginning (seconds since 1970), and the search that took longest in it.

    ``timed``: of how many of its ``n`` searches the log has the time, of which ``mean_s`` is.
    ``p95_at_most_s``: a minute keeps its times in two buckets a doubling, so its p95 is no longer
    than that, and at most 1.42 times shorter.
    """

    at_s: int
    n: int
    mean_s: float | None
    p95_at_most_s: float | None
    max_s: float | None
    slowest: str
    zero: int
    errors: int
    timed: int


@dataclass(frozen=True, slots=True)
class Hour:
    """The hour whose searches took longest on average. ``at_s``: its beginning, as of ``Moment``.

    ``n``: its searches whose time the log has. ``usual_s``: the median of the means of all
    ``hours`` with enough of them; ``share_of_time``: of all time that was waited in the log.
    """

    at_s: int
    n: int
    mean_s: float
    usual_s: float
    hours: int
    share_of_time: float


@dataclass(frozen=True, slots=True)
class Asked:
    """One query: how often, how long in all, how often without hits, when first.

    ``indexes``: of how many it was asked. All of them are in its other figures.
    """

    text: str
    n: int
    total_s: float
    max_s: float
    zero: int
    errors: int
    first_s: int | None
    indexes: int = 1


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence: what was found, and what to do, if there is something."""

    severity: str  # "warning" or "note"
    title: str
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Stepping:
    """How far the clock of a server ("": of all) steps. Not ``sure``: or all times are the same."""

    server: str
    step_s: float
    sure: bool


@dataclass(frozen=True, slots=True)
class Finer:
    """What the servers say alone whose clocks are finer than the coarsest of a log.

    ``steps_s``: of all servers, how finely each is known. ``servers``: the finer ones;
    ``resolution_s``: of the coarsest of these; ``share``: of all times, that they have.
    """

    steps_s: Mapping[str, float]
    servers: tuple[str, ...]
    resolution_s: float
    share: float
    quantiles_s: Mapping[str, float | None]
    bands: Bands


@dataclass(frozen=True, slots=True)
class Statement:
    """What was published, what is so here, and whether that is the same; ``why`` it is not known.

    ``verdict``: "the same", "differs" or "cannot be told here" (``published``).
    """

    what: str
    published: str
    here: str
    verdict: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Beside:
    """A publication by its title, and its statements."""

    title: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class LogJudgement:
    """Everything that the page and ``--json`` show. ``headline``: one sentence, which leads both.

    ``rate``: searches a second: mean over the whole minutes of the log but for those of its
    ``holes``, and of its busiest minute;
    None where it has no minute that is known to be whole. ``zone``: of all logs that do not name
    theirs, as the user said, ``zones``: of single servers. ``over``:
    by time, at most 400 rows, each of ``step_s`` seconds. ``worst_hour``: None where no hour stands
    out.

    ``clocks``: those that step further than their log writes. ``resolution_s`` is then the greatest
    of these steps, and ``spread`` has the times as they are known by it.

    ``finer``: None where all servers' times are known equally finely; else what is said of all
    together goes by the coarsest.

    ``crowded``: kinds of which a log has more names than are told apart.

    ``during``: the part of the log's time that is counted; None: all of it. ``holes``: from when to
    when (s since 1970) there is no search although there are many before and after.

    ``served``: what agents and shards did for these searches, ``parts`` entries in all, and
    ``served_by`` the same by their index; shares are of these entries. None: no log has any.
    """

    first_s: int | None
    last_s: int | None
    zone: str
    all: Row | None
    spread: Spread
    resolution_s: float | None
    below_resolution: float
    within: Mapping[float, float]
    rate_mean: float | None
    rate_peak: float | None
    by: Mapping[str, tuple[Row, ...]]
    sizes: tuple[Row, ...]
    words: tuple[Row, ...]
    parts: int
    others: int
    bands: Bands
    in_bands: tuple[tuple[str, ...], ...]
    over: tuple[Moment, ...]
    step_s: int
    worst: tuple[Moment, ...]
    most: tuple[Asked, ...]
    longest: tuple[Asked, ...]
    without_hits: tuple[Asked, ...]
    repeats: Repeats | None
    hits: tuple[tuple[str, int], ...]
    sources: tuple[Mapping[str, object], ...]
    remarks: tuple[Remark, ...] = field(default=())
    new: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    clocks: tuple[Stepping, ...] = ()
    worst_hour: Hour | None = None
    published: Beside | None = None
    during: Within | None = None
    crowded: tuple[str, ...] = ()
    headline: str = ""
    served: Row | None = None
    served_by: tuple[Row, ...] = ()
    zones: Mapping[str, str] = field(default_factory=dict)
    holes: tuple[tuple[int, int], ...] = ()
    finer: Finer | None = None
