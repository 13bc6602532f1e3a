"""A plan: every trial in its order, with everything that is needed to run and to judge it.

The planner makes it from a study, the lab carries it out, and plan.json keeps it. Nothing here
computes; a search for capacity appends the trials that it decides on.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import msgspec

Level = str | int | float | bool
Measure = Literal["trials", "sweep", "capacity"]
Require = Literal["totals", "set", "order", "none"]


class Access(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an attached system is reached; nothing of it is secret.

    ``ca``, ``cert``, ``key``: files of PEM, empty where there are none; ``insecure``: any
    certificate will do; ``server_name``: where it is not the host's. ``headers``: "Name: value",
    with ``${NAME}`` for what is in the environment. ``compressed``: replies are asked for in gzip.
    """

    ca: str = ""
    insecure: bool = False
    cert: str = ""
    key: str = ""
    server_name: str = ""
    headers: tuple[str, ...] = ()
    compressed: bool = False


class Treatment(msgspec.Struct, frozen=True, kw_only=True):
    """One level of each factor. ``levels``: by factor ("system", "load.clients", a linked name).

    ``settings``: the study's tables by name with this treatment's levels put in: "corpus",
    "queries" or "requests", "load", "system" (every parameter of the engine), "place" where the
    system is in one (``places.Place``, with its storages in it), "operation" in place of "queries"
    where a method is measured, "jobs" where there are any (by name in their order, every lever),
    "ingest" where the study says how documents are put in, and "roles" where something goes on
    beside the readers (by name in their order, defaults put in). Without a drive there is no
    "load".
    ``attach``: the addresses of a system that runs already; ``remote``: they may be another
    machine's; ``access``: how it is reached. ``engine``: "" until the system answers, "none" where
    its replies are taken as they are. ``subject``: what the configuration is called without the
    step of its load; treatments of one subject that differ in their step alone are driven one after
    another on the same warm system.
    """

    id: str
    label: str
    system: str
    engine: str
    levels: dict[str, Level]
    settings: dict[str, dict[str, Any]]
    attach: tuple[str, ...] = ()
    remote: bool = False
    access: Access = Access()
    subject: str = ""

    @property
    def parameters(self) -> dict[str, Level]:
        """The engine's levers, complete."""
        return self.settings.get("system", {})

    @property
    def corpus(self) -> dict[str, Any]:
        """The table [corpus]."""
        return self.settings.get("corpus", {})

    @property
    def queries(self) -> dict[str, Any]:
        """The table [queries]."""
        return self.settings.get("queries", {})

    @property
    def requests(self) -> dict[str, Any]:
        """The table [requests]; empty where portable queries are asked."""
        return self.settings.get("requests", {})

    @property
    def operation(self) -> dict[str, Any]:
        """The keys of the operation with ``name``, ``method``, its ``text``, from which ``file``
        and ``line``, and the texts that have something to be sent ``once``; empty if there is none.
        """
        return self.settings.get("operation", {})

    @property
    def jobs(self) -> dict[str, dict[str, Level]]:
        """The levers of each job, complete, in the order of the jobs."""
        return self.settings.get("jobs", {})

    @property
    def roles(self) -> dict[str, dict[str, Any]]:
        """The keys of each role beside the readers, complete, in the order of the roles."""
        return self.settings.get("roles", {})

    @property
    def ingest(self) -> dict[str, Any]:
        """``batch`` and ``connections`` of [ingest], where the study says them."""
        return self.settings.get("ingest", {})

    @property
    def load(self) -> dict[str, Any]:
        """The table [load] of this one step."""
        return self.settings.get("load", {})


class Trial(msgspec.Struct, frozen=True):
    """One treatment measured once. ``control`` is the A/A twin of the same treatment.

    ``traced``: its reads and writes are traced, so that it is slower, and nothing counts it.
    """

    id: str
    block: int
    treatment: str
    control: bool = False
    traced: bool = False


class Excluded(msgspec.Struct, frozen=True):
    """A crossing that is not run, with the reason."""

    levels: dict[str, Level]
    reason: str


class AgreementRule(msgspec.Struct, frozen=True, kw_only=True):
    """What two systems must agree on before their speeds are compared, query by query.

    "totals": exact totals; "set": the same ``k`` first hits in any order; "order": in the same
    order; "none": nothing, because the study says so. ``captures``: of verbatim requests, how many
    distinct ones are asked once outside the measurement; portable queries are all asked.
    ``capture``: before the drive, or after it, so that what is measured are first asks.
    """

    require: Require = "totals"
    k: int = 10
    captures: int = 200
    capture: Literal["before", "after"] = "before"


class Judging(msgspec.Struct, frozen=True, kw_only=True):
    """How the record is to be judged and reported, as the study says.

    ``measure``: "trials" (each treatment is started anew and measured once a block), "sweep" (the
    steps of a load on one warm system), "capacity" (a search for the greatest rate that keeps each
    of ``promises``). ``control``: the treatment that has a twin in every block, or "in turn"; which
    block has whose is in the trials. ``factors``: the levels of each, "system" among them.
    ``ingest``: how often indexes are built; empty: not on record.
    ``abort``: a sweep, whose steps are held to ``promises`` too, ends once one is surely broken.
    ``effort``: of a search, what multiplies the lengths of its trials.
    ``command``: the arguments of the command line that the study was made from, if it was.
    ``first_look``: whatever is found, nothing is decided by it. ``jobs``: those of each trial, in
    their order. ``driven``: queries or requests are sent; else there are jobs alone.
    """

    question: str = ""
    analysis: str = ""
    held: str | dict[str, Any] = ""
    measure: Measure = "trials"
    metric: str = ""
    agreement: AgreementRule = AgreementRule()
    control: str | None = None
    replicates: int = 1
    ingest: str = "per-block"
    factors: dict[str, list[Level]] = {}
    promises: tuple[str, ...] = ()
    abort: bool = False
    effort: float = 1.0
    command: tuple[str, ...] = ()
    first_look: bool = False
    jobs: tuple[str, ...] = ()
    driven: bool = True


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Every trial in the order it will be run, what is left out and why, how it is judged.

    ``traced``: those that come after all others and are not judged. ``draw_seed``: None until a
    run begins, which draws its own; also None in records from before there was one.
    """

    question: str
    seed: int
    treatments: tuple[Treatment, ...] = ()
    trials: tuple[Trial, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    estimated_s: float = 0.0
    judging: Judging = Judging()
    traced: tuple[Trial, ...] = ()
    draw_seed: int | None = None
    format: int = 2

    @property
    def draws(self) -> int:
        """The seed of the order in which requests are sent, and of when they are due."""
        return self.seed if self.draw_seed is None else self.draw_seed

    @property
    def every(self) -> tuple[Trial, ...]:
        """All that are run, judged or not."""
        return (*self.trials, *self.traced)

    def treatment(self, name: str) -> Treatment:
        """The treatment of that id; KeyError."""
        return {treatment.id: treatment for treatment in self.treatments}[name]


def measured(plan: Plan) -> str:
    """What is measured: "3 configurations, each a sweep of 4 steps"."""
    judging = plan.judging
    if judging.measure == "trials":
        more = f" and {_count(len(plan.traced), 'traced one')}" if plan.traced else ""
        trials = _count(len(plan.trials), "trial")
        return f"{_count(len(plan.treatments), 'treatment')} in {trials}{more}"
    steps = Counter(t.subject for t in plan.treatments)
    times = f", {judging.replicates} times" if judging.replicates > 1 else ""
    who = _count(len(steps), "configuration") + (", each " if len(steps) > 1 else ", ")
    if judging.measure == "capacity":
        return f"{who}a search for {_count(len(judging.promises), 'promise')}{times}"
    fewest, most = min(steps.values()), max(steps.values())
    of = _count(most, "step") if fewest == most else f"{fewest} to {most} steps"
    return f"{who}a sweep of {of}{times}"


def warmups_s(plan: Plan) -> float:
    """Seconds that the warm-ups until steady take at most, all together."""
    limits = {t.id: float(t.load.get("warmup_limit_s") or 0.0) for t in plan.treatments}
    return sum(limits[t.treatment] for t in plan.every)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
