"""What a study file says, once it has been found right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from searchbench.engines.engine import Level
from searchbench.study.plan import Access, AgreementRule, Measure
from searchbench.study.positions import Moved
from searchbench.workload.load_table import STEP_KEYS, kind_of, promises_of

_PLAIN = Access()
QUERIES = ".queries"
"""What the name of a role has behind it in that of the table of its queries."""
_NAMED = ("places", "hosts", "storages", "jobs", "operations", "roles")


@dataclass(frozen=True, slots=True)
class System:
    """One system under test. ``parameters``: every lever of its engine, defaults put in.

    ``attach``: the addresses of one that already runs; empty: it is started. ``remote``: they may
    be another machine's. ``access``: how it is reached. ``engine`` "": it is found out when the
    system answers, "none": its replies are taken as they are; both are for verbatim requests.
    ``place``: where it is started, by name; "": in none, or where a factor says. ``agents``: the
    host of each of its agents, by name.
    """

    name: str
    engine: str
    parameters: Mapping[str, Level]
    attach: tuple[str, ...] = ()
    remote: bool = False
    access: Access = _PLAIN
    place: str = ""
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Factor:
    """What is varied. ``levels`` are in the order of the study file, all different.

    ``path``: "TABLE.KEY", "places.NAME.KEY", "hosts.NAME.KEY", "storages.NAME.KEY",
    "jobs.NAME.LEVER", "operations.NAME.KEY", "roles.NAME.KEY", "systems.NAME.PARAMETER" (that NAME
    may be "*", and PARAMETER "place" or "agents"), or a name without a dot: then the factor is
    linked, its levels are names too, and ``sets`` says what each of them sets, by such paths.
    """

    path: str
    levels: tuple[Level, ...]
    sets: tuple[Mapping[str, Any], ...] = ()

    def settings(self, level: int) -> Mapping[str, Any]:
        """What the level of that number sets: path to value."""
        return self.sets[level] if self.sets else {self.path: self.levels[level]}

    @property
    def paths(self) -> tuple[str, ...]:
        """What it sets; all levels set the same."""
        return tuple(self.settings(0))


def among(level: object, levels: Iterable[Level]) -> bool:
    """Whether a level is one of these; 1, 1.0 and true are three."""
    return any(level == one and type(level) is type(one) for one in levels)


def table_of(path: str) -> str:
    """The table that a path names: "corpus", "load", ..., "systems", "places", "hosts", "storages"
    or "jobs".
    """
    return path.split(".", 1)[0]


def section_of(path: str) -> str:
    """The table that a path sets a key of, as "load" or "jobs.NAME"; "systems" for all of those.

    A name may have dots.
    """
    table = table_of(path)
    return path.rpartition(".")[0] if table in _NAMED else table


def keys_of(section: str) -> tuple[str, ...]:
    """The keys of such a table from the top of a study file."""
    role = asked_by(section)
    return ("roles", role, "queries") if role else tuple(section.split(".", 1))


def asked_by(section: str) -> str:
    """The role whose queries a table holds; "" of any other table."""
    table, _, name = section.partition(".")
    return name.removesuffix(QUERIES) if table == "roles" and name.endswith(QUERIES) else ""


def system_of(path: str) -> str | None:
    """The system that a path names, which may have dots in its name; None outside of systems."""
    if table_of(path) != "systems":
        return None
    return path.removeprefix("systems.").rpartition(".")[0]


def key_of(path: str) -> str:
    """The key or parameter that a path names; none of them has a dot."""
    return path.rpartition(".")[2]


def names_place(path: str) -> bool:
    """Whether a path says where a system is: its ``place``, which is no parameter of an engine."""
    return system_of(path) is not None and key_of(path) == "place"


def names_agents(path: str) -> bool:
    """Whether a path says on which hosts a system has its agents."""
    return system_of(path) is not None and key_of(path) == "agents"


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Crossings that are not to be run: all whose levels are those of ``when``."""

    when: Mapping[str, tuple[Level, ...]]
    reason: str


@dataclass(frozen=True, slots=True)
class Control:
    """The A/A twin: one treatment is measured twice a block, to know what noise looks like.

    ``treatment`` None: the first.
    """

    aa: bool = True
    treatment: str | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """A question, what it is asked of, and how it is to be answered.

    ``text`` is the file as it was read, ``path`` its name, ``base`` the directory that file
    names in it are relative to. ``corpus`` and ``queries``, or ``requests`` in place of both, and
    ``load`` hold the keys that were given; a key that is a factor is in ``factors`` alone. So do
    ``places``, ``hosts``, ``storages``, ``jobs``, ``operations`` and ``roles``, by name; the last
    three in their order. Where there are operations there are no queries. ``driven``: something is
    asked; else there are jobs alone.
    ``put_in``: ``batch`` and ``connections`` of [ingest], where they are given.
    ``metric``: by what the verdict is given, more being better of a throughput, less of anything
    else; None: throughput where every load is a closed loop, else response_p99.
    ``command``: the arguments of the command line that the study was made from, if it was.
    ``first_look``: it decides nothing. ``io_sizes``: reads and writes are traced, in trials of
    their own. ``moved``: where a command line changed the file, what in
    ``text`` comes from where.
    """

    path: str
    base: Path
    text: str
    question: str
    systems: tuple[System, ...]
    corpus: Mapping[str, Any]
    queries: Mapping[str, Any]
    load: Mapping[str, Any]
    requests: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    storages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    jobs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    operations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    roles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    driven: bool = True
    factors: tuple[Factor, ...] = ()
    exclude: tuple[Exclusion, ...] = ()
    analysis: str = ""
    held: str | Mapping[str, Any] = ""
    seed: int = 1
    draw_seed: int | None = None
    replicates: int = 3
    control: Control = Control()
    ingest: Literal["per-block", "per-trial", "once", "as-found"] = "per-block"
    put_in: Mapping[str, Any] = field(default_factory=dict)
    agreement: AgreementRule = field(default_factory=AgreementRule)
    metric: str | None = None
    command: tuple[str, ...] = ()
    first_look: bool = False
    io_sizes: bool = False
    moved: Moved = field(default_factory=dict, repr=False, compare=False)

    @property
    def verbatim(self) -> bool:
        """Whether requests are sent as they are, in place of portable queries."""
        varied = (path for factor in self.factors for path in factor.paths)
        return bool(self.requests) or any(table_of(path) == "requests" for path in varied)

    @property
    def measure(self) -> Measure:
        """What kind of measurement it is: trials, a sweep of steps, or a search for capacity."""
        if self.load.get("find_capacity"):
            return "capacity"
        return "trials" if self.steps is None else "sweep"

    @property
    def steps(self) -> Factor | None:
        """The steps of a sweep as a factor; None where it is none.

        A replay over systems that are taken as found is a sweep of one step, its speed: nothing is
        made anew for it, so there is nothing that trials could be of.
        """
        for key in STEP_KEYS:
            if isinstance(self.load.get(key), list):
                return Factor(f"load.{key}", tuple(self.load[key]))
        if self.ingest == "as-found" and kind_of(self.load) == "replay":
            varied = any("load.speed" in f.paths for f in self.factors)
            return None if varied else Factor("load.speed", (self.load.get("speed", 1.0),))
        return None

    @property
    def asking(self) -> tuple[Factor, ...]:
        """What of the operations varies without a key: the methods, and operations if several."""
        names = tuple(self.operations)
        methods = dict.fromkeys(m for each in self.operations.values() for m in each["methods"])
        if not methods:
            return ()
        several = (Factor("operation", names),) if len(names) > 1 else ()
        return (*several, Factor("method", tuple(methods)))

    @property
    def promises(self) -> tuple[str, ...]:
        """What a search for capacity holds each rate to, and a sweep each step."""
        return promises_of(self.load)

    @property
    def name(self) -> str:
        """A short name: the file's, without its ending."""
        return Path(self.path).stem
