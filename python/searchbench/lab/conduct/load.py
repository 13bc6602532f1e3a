"""The conductor of a load run: step after step against servers that run already.

A load run is a record like a study's: each load step of each system is a treatment, each time it
is driven a trial. The plan grows as it goes, since a search for capacity decides what comes next.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from searchbench import _core
from searchbench.engines.engine import CacheState, Level
from searchbench.errors import LabError, SearchbenchError
from searchbench.lab.conduct import totals
from searchbench.lab.conduct.laboratory import Watch
from searchbench.lab.drive.drive import Driven, Order, Samples, drive
from searchbench.lab.drive.exchange import prepare
from searchbench.lab.drive.order import expected_requests
from searchbench.lab.drive.probe import Probe
from searchbench.lab.fleet.fleet import FleetError
from searchbench.lab.place import host
from searchbench.lab.system import cachecount
from searchbench.lab.system.systems import Spread, System
from searchbench.record import Record, Writer, open_record
from searchbench.record.trial import Cache
from searchbench.study.plan import Plan, Treatment, Trial, to_json
from searchbench.workload.draw import CachePlan, draw
from searchbench.workload.loads import ClosedLoop, Load, open_load, resolve_told
from searchbench.workload.queries.orders import arrange
from searchbench.workload.verbatim.model import RequestSet, sequence

# A closed loop repeats its order: long enough that no cache sees the end of it soon.
_DRAWN = 200_000


@dataclass(frozen=True, slots=True)
class Step:
    """One load step of one system. ``levels``: what tells it from the others, by load key."""

    system: int
    load: Load
    about: Mapping[str, Any]
    levels: Mapping[str, Level]


@dataclass
class LoadRun:
    """Systems, requests, and the record that grows by a trial with each step driven.

    ``cache``: how the requests are drawn for a share of hits, in place of their own order.
    ``realtime``: the measuring threads ask for real-time priority. ``text``: what stands in the
    record for the study file.
    """

    systems: Sequence[System]
    requests: RequestSet
    place: Path
    question: str
    text: str
    judging: Mapping[str, Any]
    watch: Watch
    seed: int = 1
    spread: Spread = "keep"
    realtime: bool = False
    cache: CachePlan | None = None
    _plan: Plan = field(init=False)
    _writer: Writer = field(init=False)
    _filled: set[int] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        refusal = host.require_release_build()
        if refusal:
            raise LabError(refusal, "host")
        self._plan = Plan(self.question, self.seed, (), (), (), 0.0, self.judging)

    @property
    def record(self) -> Record:
        """What is on record so far."""
        return open_record(self.place)

    def carry_out(self, steps: Sequence[Step], *, blocks: int = 1, pause_s: float = 0.0) -> None:
        """Drive all steps, ``blocks`` times; what is on record of the same run is left as it is.

        Steps keep their order (each more load than the one before, as people read it), the
        systems take turns within it, and who is first changes from step to step.
        """
        for step in steps:
            self._treatment(step)
        trials = []
        for block in range(1, blocks + 1):
            for number in self._turns(steps, block):
                treatment = self._plan.treatments[number]
                trials.append(Trial(f"b{block:02d}-{treatment.id}", block, treatment.id, False))
        estimated_s = blocks * sum(s.load.expected_s() + pause_s for s in steps)
        self._grow(replace(self._plan, trials=tuple(trials), estimated_s=round(estimated_s, 1)))
        by_id = {t.id: step for t, step in zip(self._plan.treatments, steps, strict=True)}
        for done, trial in enumerate(trials):
            if self._writer.has(trial.id):
                continue
            if done and pause_s:
                self.watch.stage("pause")
                time.sleep(pause_s)
            self._measure(trial, by_id[trial.treatment], done)

    def add(self, step: Step) -> dict[str, Any]:
        """Drive one more step, decided on what the others showed; its trial as on record."""
        treatment = self._treatment(step)
        trial = Trial(f"b01-{treatment.id}", 1, treatment.id, False)
        self._grow(
            replace(
                self._plan,
                trials=(*self._plan.trials, trial),
                estimated_s=self._plan.estimated_s + step.load.expected_s(),
            )
        )
        return self._measure(trial, step, len(self._plan.trials) - 1)

    def glance(self, system: int, clients: int, seconds: float) -> float:
        """Requests a second that so many clients get from it, for a first guess; not on record."""
        load = open_load({"clients": clients, "seconds": seconds, "warmup_s": 0.0}, Path())
        self.watch.stage("a first look")
        one = self.systems[system]
        order = self._order(one, load, self.seed)
        driven = drive(
            one, one.compiled, order, timeout_s=load.timeout_s, idle="block",
            cpus=host.placement()[0], expected=1, on_tick=self.watch.tick, **one.further(),
        )  # fmt: skip
        good = sum(int(np.count_nonzero(raw["outcome"] == 0)) for raw in driven.samples.raw())
        return good / seconds

    def conclude(self, what: Mapping[str, Any]) -> None:
        """Put a result of the run beside what it is judged by."""
        self._grow(replace(self._plan, judging={**self._plan.judging, **what}))

    def _turns(self, steps: Sequence[Step], block: int) -> list[int]:
        """Indices of steps: level after level, within each the systems in rotating order."""
        levels: dict[str, list[int]] = {}
        for number, step in enumerate(steps):
            levels.setdefault(str(sorted(step.levels.items())), []).append(number)
        turns = []
        for turn, members in enumerate(levels.values()):
            at = (turn + block - 1) % len(members)
            turns += members[at:] + members[:at]
        return turns

    def _treatment(self, step: Step) -> Treatment:
        system = self.systems[step.system]
        levels: dict[str, Level] = {"system": system.name} if len(self.systems) > 1 else {}
        levels |= {f"load.{key}": level for key, level in step.levels.items()}
        shown = [f"{key}={_plain(level)}" for key, level in step.levels.items()]
        label = " ".join([*([system.name] if len(self.systems) > 1 else []), *shown])
        treatment = Treatment(
            id=f"t{len(self._plan.treatments) + 1:02d}",
            label=label or system.name,
            system=system.name,
            engine=system.identity.engine.name if system.identity.engine else system.target.wire,
            levels=levels,
            parameters={},
            corpus={},
            queries={"name": self.requests.name},
            load=dict(step.about),
            attach=system.target.url,
        )
        self._plan = replace(self._plan, treatments=(*self._plan.treatments, treatment))
        return treatment

    def _grow(self, plan: Plan) -> None:
        self._plan = plan
        if not hasattr(self, "_writer"):
            self._writer = Writer(
                self.place, study_text=self.text, plan=to_json(plan), host=host.fingerprint(),
                version=_core.version,
            )  # fmt: skip
            self._writer.queries(self.requests.digest, self.requests.lines())
        else:
            self._writer.grow(to_json(plan))

    def _measure(self, trial: Trial, step: Step, position: int) -> dict[str, Any]:
        treatment = next(t for t in self._plan.treatments if t.id == trial.treatment)
        system = self.systems[step.system]
        self.watch.begins(trial, treatment.label, position, len(self._plan.trials))
        about = self._heading(trial, treatment, system, step, position)
        tables: dict[str, Any] = {}
        try:
            tables = self._drive(system, step, trial, about)
            about["status"] = "ok"
        except (SearchbenchError, OSError, ValueError, MemoryError) as error:
            about |= {"status": "failed", "stage": "drive", "reason": str(error)}
            if isinstance(error, FleetError) and error.gathered is not None:
                # What the other machines measured until then: kept, and not judged.
                about["drive"] = error.gathered.about
                tables = {"samples": Samples(error.gathered, system.compiled.request_to_query)}
        about["ended"] = _now()
        self._writer.trial(about, **tables)
        self.watch.ends(trial, about)
        return about

    def _drive(
        self, system: System, step: Step, trial: Trial, about: dict[str, Any]
    ) -> dict[str, Any]:
        load = step.load
        about["notes"] = [note.as_json() for note in host.notes()]
        order = self._order(system, load, self.seed * 1000 + trial.block)
        cpus = list(load.cpus)
        if not cpus and system.fleet is None:
            cpus = host.placement()[0]
        if self.cache is not None and step.system not in self._filled:
            self._fill(self.cache, step)
        counted = CacheState()
        if self.cache:
            counted = cachecount.read(system.endpoint, system.identity.engine)
        self.watch.stage("drive")
        with Probe(system.processes) as probe:
            driven = drive(
                system,
                system.compiled,
                order,
                timeout_s=load.timeout_s,
                idle=load.idle,
                cpus=cpus[: order.connections],
                expected=expected_requests(order, system.mean_s),
                on_tick=self.watch.tick,
                realtime=self.realtime,
                spill=self.place,
                **system.further(),
            )
        if self.cache is not None:
            about["cache"] = self._cached(self.cache, system, counted, driven)
        about["notes"] += driven.accounting.pop("notes", [])
        if system.fleet is not None:
            about["notes"] += [note.as_json() for note in system.fleet.notes()]
        started = int(driven.accounting["started_unix_ns"])
        table = probe.table(started)
        window = totals.window(driven.samples, load)
        about |= {
            "drive": driven.accounting,
            "window": window,
            "server": totals.server(table, window) if system.processes else {},
            "host_window": totals.machine(table, window),
        }
        if system.processes and not probe.server_lived():
            about["notes"].append(
                host.Note(
                    "server ended",
                    "",
                    "the server's process ended while it was driven",
                    "look at the server's own log",
                ).as_json()
            )
        if system.identity.engine is not None:
            changed, compared = totals.changed_under_load(system.captured, driven.replies)
            about["answers_under_load"] = {"compared": compared, "changed": changed}
        kept = driven.replies if system.identity.engine is not None else driven.replies.slice(0, 0)
        return {
            "samples": driven.samples,
            "replies": pa.concat_tables([system.captured, kept]),
            "probe": table,
        }

    def _fill(self, plan: CachePlan, step: Step) -> None:
        """Fill the system's caches before its first step, whose hits would lack; not on record.

        From this machine, whoever sends the load.
        """
        self._filled.add(step.system)
        system = self.systems[step.system]
        caches = len(system.target.resolved)
        log = draw(plan, caches * plan.warmup_requests, self.seed)
        asked = arrange(log, "logged", clients=caches)
        order = system.routed(Order(asked.sequence, asked.client_starts, None, caches), "keep")
        self.watch.stage("filling the cache")
        system.endpoint.drive(
            prepare(system.compiled.requests),
            sequence=order.sequence,
            client_starts=order.client_starts,
            connections=caches,
            timeout_ns=int(step.load.timeout_s * 1e9),
            idle="block",
            on_tick=self.watch.tick,
            **system.further(),
        )

    def _cached(
        self,
        plan: CachePlan,
        system: System,
        before: CacheState,
        driven: Driven,
    ) -> Cache:
        """How often the cache was hit: by the server's count, or else a header of the replies."""
        after = cachecount.read(system.endpoint, system.identity.engine)
        counted = cachecount.between(before, after)
        if isinstance(counted, cachecount.Uncounted) and system.target.wire == "http":
            counted = cachecount.of_replies(driven.raw) or counted
        return cachecount.on_record(plan, counted)

    def _order(self, system: System, load: Load, seed: int) -> Order:
        """The asks in their order for this load, each with the endpoint that it goes to."""
        log, times = self.requests.log, self.requests.times_s
        due = load.due_ns(seed, times)
        if due is not None and not len(due):
            raise LabError("no request is due within the window; make it longer or the rate higher")
        length = _DRAWN if due is None else len(due)
        if self.cache is not None:
            if due is None:
                length = max(length, 4 * self.cache.warmup_requests)
            log = draw(self.cache, length, seed)
        elif self.requests.groups:
            log = sequence(self.requests, seed, length)
        if due is not None:
            asked = arrange(log, load.order, seed=seed, length=len(due))
            order = Order(asked.sequence, None, due, load.connections, repeat=False)
        else:
            logged = None if load.order == "logged" else max(_DRAWN, len(log))
            asked = arrange(log, load.order, clients=load.connections, seed=seed, length=logged)
            order = Order(
                asked.sequence, asked.client_starts, None, load.connections,
                think_ns=load.think_ns, stop_ns=load.stop_ns, stop_after=load.stop_after,
            )  # fmt: skip
        return system.routed(order, self.spread)

    def _heading(
        self, trial: Trial, treatment: Treatment, system: System, step: Step, position: int
    ) -> dict[str, Any]:
        requests = self.requests
        return {
            "trial": trial.id,
            "block": trial.block,
            "position": position,
            "treatment": treatment.id,
            "control": False,
            "label": treatment.label,
            "levels": dict(treatment.levels),
            "system": treatment.system,
            "engine": treatment.engine,
            "parameters": {},
            "started": _now(),
            "attached": system.target.url,
            "places": [f"{h}:{p}" for h, p in system.places],
            "version": system.identity.version,
            "facts": {"extra": system.identity.extra},
            "service": {"argv": [], "files": {}, "env": {}, "cpus": []},
            "corpus": {},
            "queries": {
                "name": requests.name,
                "digest": requests.digest,
                "distinct": len(requests.asks),
                "logged": len(requests.log),
                "bad_lines": requests.bad_count,
            },
            "load": dict(step.about),
            "notes": [],
            "unsupported": [],
            "outcomes": list(_core.OUTCOMES),
            "captured": {"distinct": system.captured.num_rows, "mean_s": system.mean_s},
        }


def steps_of(
    systems: Sequence[System], loads: Sequence[tuple[Mapping[str, Any], Load]], key: str
) -> list[Step]:
    """Each load for each system; ``key`` is the load key in which they differ."""
    return [
        Step(i, load, resolve_told(spec), {key: _level(load, key, spec)})
        for spec, load in loads
        for i in range(len(systems))
    ]


def _level(load: Load, key: str, spec: Mapping[str, Any]) -> Level:
    if isinstance(load.loop, ClosedLoop) and key == "clients":
        return load.loop.clients
    level: Level = spec[key]
    return level


def _plain(level: Level) -> str:
    return f"{level:g}" if isinstance(level, float) else str(level)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
