"""Synthetic records on disk with a known truth, for tests of the analysis and of the report.

A ``Study`` is described (treatments, how each server behaves, blocks) and written as the lab writes
one. Nothing is measured: the instants are computed, so that what an analysis must find is known
beforehand.

    study = Study(blocks=5)
    study.add("a", system="tantivy", server=exponential(0.004), clients=4)
    study.add("b", system="sqlite", server=exponential(0.012), clients=4)
    path = study.write(tmp_path / "record")

Longer than most files: a server's behaviour, the log it answers and the files it leaves are one
description, and a test that reads it should find all of it here.

Ready-made: ``two_systems``, ``scaling_study``, ``stalling_study``, ``showcase``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from searchbench import _core
from searchbench.record import PROBE, REPLIES, SAMPLES, Trial, Writer
from searchbench.record.drive import Drive, Thread
from searchbench.record.trial import (
    CoreTotals,
    Corpus,
    HostTotals,
    Ingest,
    Load,
    Queries,
    ServerTotals,
    Service,
    Unsupported,
    Window,
)
from searchbench.study import plan as plans

Array = np.ndarray[Any, Any]
# (due times in s, query numbers, generator) -> service times in s; open loops only look at due.
Server = Callable[[Array, Array, np.random.Generator], Array]
# (query number) -> a decoded reply: total, ids, scores, and optionally facets, error, outcome...
Answer = Callable[[int], Mapping[str, Any]]

OUTCOMES = list(_core.OUTCOMES)
LAG_NS = 3_000  # between due and sent: a generator in good health
HOST = {
    "cpu": "Synthetic CPU at 3.0 GHz",
    "cores": 2,
    "memory_bytes": 8 << 30,
    "kernel": "6.1.0",
    "clocksource": "tsc",
    "governor": "performance",
}


def constant(seconds: float) -> Server:
    """Every request takes the same time."""
    return lambda due, query, rng: np.full(due.size, seconds)


def exponential(mean_s: float) -> Server:
    """Independent exponential service times."""
    return lambda due, query, rng: rng.exponential(mean_s, due.size)


def lognormal(median_s: float, sigma: float = 0.4) -> Server:
    """Independent log-normal service times: what real search servers look like."""
    return lambda due, query, rng: median_s * np.exp(sigma * rng.standard_normal(due.size))


def by_query(median_s: float, slow: Mapping[int, float], sigma: float = 0.2) -> Server:
    """Log-normal, but queries in ``slow`` take their factor times as long."""

    def server(due: Array, query: Array, rng: np.random.Generator) -> Array:
        factor = np.ones(due.size)
        for number, times in slow.items():
            factor[query == number] = times
        return median_s * factor * np.exp(sigma * rng.standard_normal(due.size))

    return server


def single_queue(mean_s: float) -> Server:
    """One server, first in first out, exponential service: M/M/1 under Poisson arrivals.

    The time in the system is exponential with mean 1 / (1/mean_s − arrival rate).
    """

    def server(due: Array, query: Array, rng: np.random.Generator) -> Array:
        work = rng.exponential(mean_s, due.size)
        done = np.empty(due.size)
        free_at = 0.0
        for i, (t, w) in enumerate(zip(due.tolist(), work.tolist(), strict=True)):
            free_at = max(free_at, t) + w
            done[i] = free_at
        return done - due

    return server


def stalling(base_s: float = 0.005, stall_s: float = 0.5, every_s: float = 2.0) -> Server:
    """Answers in ``base_s``, but who comes in the first ``stall_s`` of a period waits for its end.

    At a steady arrival rate the response time is p50 5, p90 305, p99 485, max 505 ms.
    """

    def server(due: Array, query: Array, rng: np.random.Generator) -> Array:
        phase = np.mod(due, every_s)
        return base_s + np.maximum(0.0, stall_s - phase)

    return server


def warming(server: Server, factor: float, until_s: float) -> Server:
    """``server``, slower by ``factor`` at first, falling to 1 in a straight line at ``until_s``."""

    def slow_start(due: Array, query: Array, rng: np.random.Generator) -> Array:
        extra = (factor - 1.0) * np.clip(1.0 - due / until_s, 0.0, 1.0)
        return server(due, query, rng) * (1.0 + extra)

    return slow_start


def good_answer(query: int, k: int = 10) -> dict[str, Any]:
    """The reply that every system agrees on."""
    total = 20 + query % 50
    ids = [f"d{query}-{i}" for i in range(min(k, total))]
    return {"total": total, "ids": ids, "scores": [10.0 - 0.1 * i for i in range(len(ids))]}


@dataclass
class Treatment:
    """One treatment and how it behaves. ``seconds`` of drive; the window begins at ``warmup_s``."""

    id: str
    system: str
    engine: str
    server: Server
    levels: dict[str, Any]
    parameters: dict[str, Any]
    load: dict[str, Any]
    answer: Answer
    corpus: dict[str, Any]
    seconds: float
    warmup_s: float
    unsupported: tuple[tuple[int, str], ...] = ()
    dies_at_s: float | None = None
    fails_at: str | None = None
    error_share: float = 0.0
    lag_ns: int = LAG_NS
    version: str = "1.0"
    subject: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The levels in one line."""
        return " ".join(str(v) for v in self.levels.values()) or self.id

    def planned(self, measure: str) -> plans.Treatment:
        """As plan.json has it. A sweep's subject is the system unless another was given."""
        return plans.Treatment(
            id=self.id,
            label=self.label,
            system=self.system,
            engine=self.engine,
            levels=self.levels,
            settings={
                "corpus": self.corpus,
                "queries": {"name": "synthetic"},
                "load": {key: value for key, value in self.load.items() if value is not None},
                "system": self.parameters,
            },
            subject=self.subject or (self.label if measure == "trials" else self.system),
        )


@dataclass
class Study:
    """A study to be written as a record.

    ``trial_noise``: standard deviation of the log of each trial's own factor on service times
    (machine noise); ``block_noise``: of the factor that all trials of a block share.
    ``control``: the treatment that has an A/A twin in every block (None: no control;
    default: the first). ``judging``: fields of ``study.plan.Judging``. ``extra`` of a treatment:
    fields of trial.json, put over those that are computed.
    """

    blocks: int = 5
    question: str = "Which system answers these queries fastest?"
    analysis: str = "Synthetic: the truth is known."
    queries: int = 40
    seed: int = 7
    trial_noise: float = 0.005
    block_noise: float = 0.02
    control: str | None = "first"
    judging: dict[str, Any] = field(default_factory=dict)
    treatments: list[Treatment] = field(default_factory=list)
    excluded: list[dict[str, Any]] = field(default_factory=list)
    under_load: int = 20
    run_only: int | None = None
    built: dict[str, str] = field(default_factory=dict)  # by system, where indexes are built once
    classes: Callable[[int], str] | None = None  # of queries, by their numbers

    def add(
        self,
        id: str,  # noqa: A002
        *,
        system: str = "tantivy",
        server: Server | None = None,
        clients: int = 4,
        rate_per_s: float | None = None,
        arrivals: str = "poisson",
        think_s: float = 0.0,
        levels: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        answer: Answer = good_answer,
        corpus: Mapping[str, Any] | None = None,
        seconds: float = 6.0,
        warmup_s: float = 1.0,
        **more: Any,
    ) -> Treatment:
        """Add a treatment; ``rate_per_s`` makes its load open, else it is closed."""
        load = {
            "kind": "closed" if rate_per_s is None else "open",
            "clients": clients,
            "think_s": think_s,
            "rate_per_s": rate_per_s,
            "arrivals": arrivals,
            "connections": clients if rate_per_s is None else 1000,
            "timeout_s": 10.0,
            "idle": "hybrid",
            "order": "logged",
        }
        treatment = Treatment(
            id=id,
            system=system,
            engine=more.pop("engine", system),
            server=server or lognormal(0.004),
            levels=dict(levels if levels is not None else {"system": system}),
            parameters=dict(parameters or {}),
            load=load,
            answer=answer,
            corpus={
                "name": "synthetic",
                "digest": "c0ffee",
                "documents": 100_000,
                "text_bytes": 50_000_000,
                **(corpus or {}),
            },
            seconds=seconds,
            warmup_s=warmup_s,
            **more,
        )
        self.treatments.append(treatment)
        return treatment

    def write(self, path: Path) -> Path:
        """Write the record and return its folder."""
        rng = np.random.default_rng(self.seed)
        control = self.treatments[0].id if self.control == "first" else self.control
        order: list[tuple[plans.Trial, Treatment]] = []
        places = np.empty(0, int)
        as_planned: list[plans.Trial] = []
        for block in range(self.blocks):
            members = [(t, False) for t in self.treatments]
            members += [(t, True) for t in self.treatments if t.id == control]
            places = places[::-1] if block % 2 else rng.permutation(len(members))
            for at in rng.permutation(len(members)) if block % 2 else places:
                t, twin = members[int(at)]
                name = f"{len(order):03d}-b{block}-{t.id}{'-aa' if twin else ''}"
                order.append((plans.Trial(name, block, t.id, twin), t))
            # Plans have every second block backwards; what is drawn for trials has its own order.
            drawn = {(trial.treatment, trial.control): trial for trial, _ in order[-len(members) :]}
            as_planned += [drawn[members[int(at)][0].id, members[int(at)][1]] for at in places]
        writer = Writer(
            path,
            study_text=f"question = {json.dumps(self.question)}\n",
            plan=self.plan(as_planned),
            host=HOST,
            version="0.1.0",
        )
        writer.queries("beef", self._queries())
        factors = np.exp(self.block_noise * rng.standard_normal(self.blocks))
        for position, (trial, t) in enumerate(order):
            if self.run_only is not None and position >= self.run_only:
                break
            factor = factors[trial.block] * np.exp(self.trial_noise * rng.standard_normal())
            self._write_trial(writer, trial, position, t, float(factor), rng)
        return path

    def plan(self, trials: Sequence[plans.Trial]) -> plans.Plan:
        """The plan of this study with these trials."""
        closed = all(t.load["kind"] == "closed" for t in self.treatments)
        judging = {
            "question": self.question,
            "analysis": self.analysis,
            "metric": "throughput" if closed else "response_p99",
            "agreement": {"require": "totals", "k": 10},
        }
        made = msgspec.convert(judging | self.judging, plans.Judging)
        return plans.Plan(
            question=self.question,
            seed=self.seed,
            treatments=tuple(t.planned(made.measure) for t in self.treatments),
            trials=tuple(trials),
            excluded=tuple(plans.Excluded(e["levels"], e["reason"]) for e in self.excluded),
            estimated_s=60.0,
            judging=made,
        )

    def _logged_by_class(self) -> dict[str, int]:
        if self.classes is None:
            return {}
        return dict(Counter(self.classes(number) for number in range(self.queries)))

    def _queries(self) -> list[dict[str, Any]]:
        rows = []
        for number in range(self.queries):
            terms = [f"word{number}", '<b>&"common"</b>'][: 1 + number % 2]
            algebra = {"match": {"mode": "all", "terms": terms, "fields": []}, "limit": 10}
            own = {} if self.classes is None else {"class": self.classes(number)}
            rows.append({"query": number, "text": " ".join(terms), "algebra": algebra, **own})
        return rows

    def _write_trial(
        self,
        writer: Writer,
        planned: plans.Trial,
        position: int,
        t: Treatment,
        factor: float,
        rng: np.random.Generator,
    ) -> None:
        about = self._heading(planned, position, t)
        if t.fails_at:
            about.status, about.stage = "failed", t.fails_at
            about.reason = "the server did not answer within 30 s"
            writer.trial(_with(about, t.extra))
            return
        samples = self._samples(t, factor, rng)
        replies = self._replies(t, rng)
        window_s = t.seconds - t.warmup_s
        about.window = Window(int(t.warmup_s * 1e9), int(t.seconds * 1e9))
        once = self.judging.get("ingest") == "once"
        made_by = self.built.setdefault(t.system, planned.id) if once else planned.id
        about.ingest = Ingest(
            reused=None if made_by == planned.id else made_by,
            documents=t.corpus["documents"],
            bytes=t.corpus["text_bytes"],
            seconds=4.0 * factor,
            settle_seconds=0.5,
            index_bytes=21_000_000,
        )
        thread = Thread(
            cpu=1,
            user_ns=int(0.1e9 * t.seconds),
            system_ns=int(0.2e9 * t.seconds),
            run_wait_ns=1_000_000,
            voluntary_switches=100,
            involuntary_switches=2,
        )
        about.drive = Drive(
            started_unix_ns=1_769_860_800_000_000_000,
            elapsed_ns=int(t.seconds * 1e9),
            clock="tsc",
            clock_drift_ppm=0.4,
            threads=[thread],
            connects=t.load["connections"],
        )
        about.server = ServerTotals(
            cpu_s=0.8 * window_s, peak_rss_bytes=120_000_000, read_bytes=4096, write_bytes=0
        )
        about.host_window = HostTotals(
            steal_s=0.0,
            busy_s=1.12 * window_s,
            idle_s=0.88 * window_s,
            client_cpu_s=0.3 * window_s,
            cores=2,
            by_core=[_core(cpu, busy * window_s, window_s) for cpu, busy in enumerate((0.82, 0.3))],
        )
        about.phases = {"deploy": 0.3, "ingest": 4.0, "drive": t.seconds}
        writer.trial(
            _with(about, t.extra), samples=samples, replies=replies, probe=_probe(t.seconds)
        )

    def _heading(self, planned: plans.Trial, position: int, t: Treatment) -> Trial:
        measure = self.judging.get("measure", "trials")
        return Trial(
            trial=planned.id,
            treatment=t.id,
            block=planned.block,
            position=position,
            control=planned.control,
            label=t.label,
            subject=t.planned(measure).subject,
            levels=t.levels,
            system=t.system,
            engine=t.engine,
            version=t.version,
            parameters=t.parameters,
            started="2026-01-31T12:00:00Z",
            ended="2026-01-31T12:00:10Z",
            service=Service(argv=[t.engine, "--port", "0"]),
            corpus=msgspec.convert(t.corpus, Corpus),
            queries=Queries(
                name="synthetic",
                digest="beef",
                distinct=self.queries,
                logged=self.queries,
                mean_terms=1.5,
                classes=self._logged_by_class(),
            ),
            load=msgspec.convert(t.load, Load),
            outcomes=OUTCOMES,
            roles=["readers"],
            unsupported=[Unsupported(q, why) for q, why in t.unsupported],
        )

    def _samples(self, t: Treatment, factor: float, rng: np.random.Generator) -> pa.Table:
        barred = {q for q, _ in t.unsupported}
        log = np.array([q for q in range(self.queries) if q not in barred], dtype=np.uint32)
        if t.load["kind"] == "closed":
            due, service, query, connection = _closed(t, log, factor, rng)
        else:
            due, service, query, connection = _open(t, log, factor, rng)
        due_ns = np.rint(due * 1e9).astype(np.int64)
        sent = due_ns + t.lag_ns
        done = np.maximum(due_ns + np.rint(service * 1e9).astype(np.int64), sent + 1)
        outcome = np.zeros(due.size, dtype=np.uint8)
        if t.error_share:
            outcome[rng.random(due.size) < t.error_share] = OUTCOMES.index("engine_error")
        never = np.zeros(due.size, dtype=bool)
        if t.dies_at_s is not None:
            never = due >= t.dies_at_s
            outcome[never] = OUTCOMES.index("refused")
        nothing = pa.nulls(due.size, pa.int64())
        return pa.table(
            {
                "query": pa.array(query, pa.uint32()),
                "connection": pa.array(connection.astype(np.uint16)),
                "outcome": pa.array(outcome),
                "bytes": pa.array(_sizes(t, query)),
                "due": pa.array(due_ns),
                "free": pa.array(due_ns),
                "connect": nothing,
                "sent": pa.array(sent, mask=never),
                "first_byte": pa.array(done - 1, mask=never),
                "done": pa.array(done, mask=never),
                "host": pa.array(((done - sent) * 0.8).astype(np.int64), mask=never),
                "role": pa.array(np.zeros(due.size, np.uint8)),
            },
            schema=SAMPLES,
        )

    def _replies(self, t: Treatment, rng: np.random.Generator) -> pa.Table:
        barred = {q for q, _ in t.unsupported}
        asked = [q for q in range(self.queries) if q not in barred]
        rows = [(q, "captured") for q in asked]
        rows += [(int(q), "under_load") for q in rng.choice(asked, self.under_load)]
        empty: dict[str, Any] = {
            "outcome": 0,
            "total": None,
            "total_exact": True,
            "ids": [],
            "scores": [],
            "facets": "{}",
            "groups": "[]",
            "warnings": [],
            "error": None,
        }
        return pa.Table.from_pylist(
            [{"query": q, "phase": phase, **empty, **t.answer(q)} for q, phase in rows],
            schema=REPLIES,
        )


def _sizes(t: Treatment, query: Array) -> Array:
    """What each reply has: what it had when asked alone, if that is on record."""
    alone = (t.extra.get("captured") or {}).get("sizes", {})
    return np.array([alone.get(str(q), 900) for q in query.tolist()], dtype=np.uint32)


def _closed(
    t: Treatment, log: Array, factor: float, rng: np.random.Generator
) -> tuple[Array, Array, Array, Array]:
    """Each client asks, waits for the answer, thinks, asks again; the queries in turn.

    Services are drawn a second time with the due times of the first draw, so that a server
    whose speed depends on the time sees the right one to within a warm-up's smoothness.
    """
    think = float(t.load["think_s"])
    parts = []
    for client in range(int(t.load["clients"])):
        state = rng.bit_generator.state
        probe = t.server(np.full(64, t.seconds), np.resize(log, 64), rng) * factor
        rng.bit_generator.state = state
        count = int(1.6 * t.seconds / (float(np.median(probe)) / 3 + think)) + 16
        query = np.resize(np.roll(log, -client * 7), count)
        due = np.zeros(count)
        for _ in range(3):
            rng.bit_generator.state = state
            service = t.server(due, query, rng) * factor
            due = np.concatenate(([0.0], np.cumsum(service + think)[:-1]))
        kept = due < t.seconds
        parts.append((due[kept], service[kept], query[kept], np.full(kept.sum(), client)))
    due, service, query, connection = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    order = np.argsort(due + service, kind="stable")
    return due[order], service[order], query[order], connection[order]


def _open(
    t: Treatment, log: Array, factor: float, rng: np.random.Generator
) -> tuple[Array, Array, Array, Array]:
    """Arrivals do not wait for answers; connections never run short."""
    rate = float(t.load["rate_per_s"])
    if t.load["arrivals"] == "constant":
        due = np.arange(int(rate * t.seconds)) / rate
    else:
        due = np.cumsum(rng.exponential(1 / rate, int(rate * t.seconds * 1.3) + 50))
        due = due[due < t.seconds]
    query = np.resize(log, due.size)
    service = t.server(due, query, rng) * factor
    return due, service, query, np.arange(due.size) % 1000


def _core(cpu: int, busy_s: float, window_s: float) -> CoreTotals:
    return CoreTotals(
        cpu=cpu, busy_s=busy_s, interrupts_s=0.0, steal_s=0.0, idle_s=window_s - busy_s
    )


def _probe(seconds: float) -> pa.Table:
    t = np.arange(0, seconds, 0.1)
    zero = np.zeros(t.size)
    columns: dict[str, Any] = {"t": (t * 1e9).astype(np.int64)}
    rates = {
        "server_cpu_s": 0.8,
        "client_cpu_s": 0.3,
        "host_user_s": 0.9,
        "host_system_s": 0.3,
        "host_steal_s": 0.0,
        "host_iowait_s": 0.0,
        "host_idle_s": 0.8,
    }
    columns |= {name: rate * t for name, rate in rates.items()}
    columns |= {
        "server_rss_bytes": np.full(t.size, 120_000_000, dtype=np.int64),
        "server_read_bytes": zero.astype(np.int64),
        "server_write_bytes": zero.astype(np.int64),
        "server_threads": np.full(t.size, 4, dtype=np.int32),
        "pressure_cpu": zero,
        "pressure_io": zero,
        "pressure_memory": zero,
    }
    columns |= {name: [None] * t.size for name in PROBE.names if name not in columns}
    return pa.table(columns, schema=PROBE)


def _with(about: Trial, extra: Mapping[str, Any]) -> Trial:
    """The trial with other values put in, key by key."""
    plain: dict[str, Any] = msgspec.to_builtins(about)
    for key, value in extra.items():
        plain[key] = {**(plain[key] or {}), **value} if isinstance(value, dict) else value
    return msgspec.convert(plain, Trial)


def two_systems(path: Path, ratio: float = 3.1, blocks: int = 5, **study: Any) -> Path:
    """tantivy answers ``ratio`` times as fast as sqlite; 2 of 40 queries differ in totals."""
    made = Study(blocks=blocks, **study)

    def sqlite_answer(query: int) -> dict[str, Any]:
        answer = good_answer(query)
        return answer | {"total": answer["total"] + 1} if query in (3, 17) else answer

    made.add("sqlite", system="sqlite", server=lognormal(0.004 * ratio), answer=sqlite_answer)
    made.add("tantivy", system="tantivy", server=lognormal(0.004))
    return made.write(path)


def scaling_study(path: Path, levels: Sequence[int] = (1, 2, 4, 8, 16), blocks: int = 3) -> Path:
    """Throughput by clients follows the Universal Scalability Law: sigma 0.05, kappa 0.01."""
    made = Study(blocks=blocks, question="How many clients serve best?")
    for n in levels:
        slowdown = 1 + 0.05 * (n - 1) + 0.01 * n * (n - 1)
        made.add(
            f"c{n}",
            server=lognormal(0.004 * slowdown, 0.2),
            clients=n,
            levels={"system": "tantivy", "load.clients": n},
        )
    return made.write(path)


def stalling_study(path: Path, blocks: int = 3) -> Path:
    """Open loop at 1,000/s at a stalling server: p50 5, p90 305, p99 485, max 505 ms."""
    made = Study(blocks=blocks, trial_noise=0.0, block_noise=0.0)
    made.add(
        "stall",
        server=stalling(),
        rate_per_s=1000,
        arrivals="constant",
        seconds=9.0,
        warmup_s=1.0,
    )
    return made.write(path)


def showcase(path: Path, blocks: int = 4) -> Path:
    """A bit of everything a report must show: failures, invalid trials, unsupported queries."""
    made = Study(
        blocks=blocks,
        question="Which system, at how many clients, <serves> best?",
        excluded=[{"levels": {"system": "null", "load.clients": 64}, "reason": "no such thing"}],
    )

    def other(query: int) -> dict[str, Any]:
        answer = good_answer(query)
        if query % 13 == 0:
            answer["total"] += 5
        if query % 7 == 0:
            answer["ids"] = answer["ids"][1::-1] + answer["ids"][2:]
        return answer

    for n in (1, 2, 4, 8):
        for system, median in (("tantivy", 0.003), ("sqlite", 0.008)):
            made.add(
                f"{system}-{n}",
                system=system,
                server=lognormal(median * (1 + 0.15 * (n - 1))),
                clients=n,
                levels={"system": system, "load.clients": n},
                answer=other if system == "sqlite" else good_answer,
                unsupported=((39, "fuzzy: upstream must"),) if system == "sqlite" else (),
                fails_at="deploy" if (system, n) == ("sqlite", 8) else None,
                dies_at_s=3.0 if (system, n) == ("sqlite", 4) else None,
                seconds=4.0,
            )
    return made.write(path)
