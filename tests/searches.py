"""Searches for capacity in virtual time: by the judge alone, and on a record that grows.

``search`` asks one promise of one queue. ``Lab`` writes a real record, trial by trial, driving what
``next_load`` says on queues whose greatest rate is known.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa

from queues import Serve, Server
from records import HOST, good_answer
from searchbench import _core
from searchbench.analysis.capacity.bracket import bracket
from searchbench.analysis.capacity.found import Bracket
from searchbench.analysis.capacity.pace import TRIALS, Driven, Seen, following, warmup_s
from searchbench.analysis.capacity.promise import judge
from searchbench.analysis.capacity.search import next_load
from searchbench.analysis.trial.measured import Trace
from searchbench.record import REPLIES, SAMPLES, Record, Trial, Writer
from searchbench.record.drive import Drive
from searchbench.record.roles import WRITES, RoleRun
from searchbench.record.trial import Captured, Corpus, Load, Queries, Window
from searchbench.study import plan as plans
from searchbench.workload.changes import due_ns
from searchbench.workload.load_table import parse_promise
from searchbench.workload.roles import is_idle

Arrivals = Literal["poisson", "constant"]
QUERIES = 10  # asked in turn
WARMUP_S = 2.0  # of each trial, where there are roles


@dataclass(frozen=True)
class Found:
    """What a search drove, and what it found."""

    driven: Sequence[Driven]
    bracket: Bracket


def search(
    serve: Serve, promise: str, start_per_s: float, *, seed: int = 1,
    arrivals: Arrivals = "poisson", client_per_s: float = math.inf, trials: int = TRIALS,
    effort: float = 1.0, quiet_per_s: float = math.inf,
) -> Found:  # fmt: skip
    """A search for one promise.

    Above ``client_per_s`` the client is late, above ``quiet_per_s`` others take the processors.
    """
    server = Server(serve, np.random.default_rng([seed, 7]), arrivals)
    conditions = parse_promise(promise)
    driven: list[Driven] = []
    while wanted := following(Seen(driven), trials - len(driven), start_per_s, effort):
        rate, seconds = wanted.rate_per_s, wanted.seconds
        trace = server.trace(rate, seconds, warmup_s(seconds, effort))
        if rate > client_per_s:
            trace = replace(trace, sent=trace.sent + 10**9, done=trace.done + 10**9)
        judged = replace(judge(conditions, trace), disturbed=rate > quiet_per_s)
        driven.append(Driven(rate, seconds, judged, full=wanted.full))
    return Found(driven, bracket(Seen(driven)))


@dataclass
class Lab:
    """A search on record. ``servers``: by subject. ``fails``: the subject's trial that fails.

    ``other``: subjects whose totals are not those of the others. ``lies_above``: by subject, the
    rate from which on its replies under load are empty; ``changed``: how many of 200 are.
    ``unread``: by subject whose replies nobody reads, how large they are, times 400 bytes and more.
    ``turns``: subjects take turns trial by trial, as attached ones do. ``cut``: by subject, the
    rate from which on its replies, which nobody reads, are a third as large as alone. ``beside``:
    by subject the table of its writer, complete, and the share of its clock that it keeps to.
    """

    path: Path
    servers: Mapping[str, Serve]
    promises: tuple[str, ...]
    seed: int = 1
    effort: float = 1.0
    blocks: int = 1
    fails: Mapping[str, int] = field(default_factory=dict)
    other: tuple[str, ...] = ()
    lies_above: Mapping[str, float] = field(default_factory=dict)
    changed: int = 200
    look_per_s: float = 100.0
    arrivals: Arrivals = "poisson"
    most: int = 1000
    connections: int = 1000
    turns: bool = False
    unread: Mapping[str, float] = field(default_factory=dict)
    cut: Mapping[str, float] = field(default_factory=dict)
    beside: Mapping[str, tuple[Mapping[str, Any], float]] = field(default_factory=dict)

    def run(self) -> Record:
        """Drive until every search is done, or ``most`` trials are on record."""
        self._rng = np.random.default_rng([self.seed, 7])
        templates = [self._template(i, s) for i, s in enumerate(self.servers, 1)]
        judging = plans.Judging(
            measure="capacity", promises=self.promises, effort=self.effort, replicates=self.blocks
        )
        self._plan = plans.Plan(
            question="?", seed=self.seed, treatments=tuple(templates), judging=judging
        )
        self._writer = Writer(self.path, study_text="", plan=self._plan, host=HOST, version="0.1.0")
        self._writer.queries("beef", [{"query": q, "text": f"word{q}"} for q in range(QUERIES)])
        for block in range(1, self.blocks + 1):
            for several in [templates] if self.turns else [[t] for t in templates]:
                todo = deque((t, 1) for t in several)
                while todo:
                    template, n = todo.popleft()
                    if self._driven(template, block, n):
                        todo.append((template, n + 1))
        return self._writer.record

    def _driven(self, template: plans.Treatment, block: int, n: int) -> bool:
        """The ``n``-th trial of a search; False where there is none."""
        load = next_load(self._writer.record, template.subject, block)
        if load is None or len(self._plan.trials) >= self.most:
            return False
        treatment = self._grown(template, block, load)
        about = self._about(treatment, block, load)
        if self.fails.get(template.subject) == n:
            about.status, about.stage, about.reason = "failed", "drive", "the server is gone"
            self._writer.trial(about)
            return True
        trace = self._trace(self.servers[template.subject], about.load)
        about.window = Window(*trace.window)
        lies = (about.load.rate_per_s or 0.0) >= self.lies_above.get(template.subject, math.inf)
        replies = _replies(
            1 if template.subject in self.other else 0,
            (self.changed if lies else 0) if self.lies_above else None,
        )
        samples = _samples(trace)
        if template.subject in self.unread:
            samples, replies = self._not_read(about, samples, trace), replies.slice(0, 0)
        if template.subject in self.cut:
            samples, replies = self._unread(about, samples), replies.slice(0, 0)
        roles = self._written(about) if template.subject in self.beside else {}
        self._writer.trial(about, samples=samples, replies=replies, roles=roles)
        return True

    def _written(self, about: Trial) -> dict[str, pa.Table]:
        """What the writer of a subject sent in a trial; each request is answered after 1 ms."""
        table, share = self.beside[about.subject]
        run = RoleRun(name="writer", number=1, does="write", idle=is_idle(table), keys=dict(table))
        about.beside, about.roles = [run], ["readers", "writer"]
        if run.idle:
            return {}
        run.drive = Drive()
        assert about.window is not None
        due = due_ns(table, about.window.start, about.window.end)
        assert due is not None
        sent = (due / share).astype(np.int64)
        begun = sent < about.window.end  # the others never had a connection
        n, unfinished = len(due), _core.OUTCOMES.index("unfinished")
        outcome = np.where(begun, 0, unfinished).astype(np.uint8)
        wrote, done = np.where(begun, sent, -1), np.where(begun, sent + 1_000_000, -1)
        sends = Trace(np.arange(n, dtype=np.uint32), outcome, due, wrote, wrote, done,
                      (about.window.start, about.window.end))  # fmt: skip
        nothing = pa.nulls(n, pa.string())
        rows = {"request": np.arange(n, dtype=np.uint32), "kind": ["insert"] * n,
                "documents": np.full(n, int(table["batch"]), np.uint32), "marker": nothing,
                "refused": np.zeros(n, np.uint32), "error": nothing}  # fmt: skip
        return {"writer": _samples(sends), "writer.writes": pa.table(rows, schema=WRITES)}

    def _unread(self, about: Trial, samples: pa.Table) -> pa.Table:
        """The samples of replies of which only the size is known, which ``about`` has alone."""
        about.captured = Captured(sizes={str(q): 400 + 10 * q for q in range(10)}, distinct=10)
        by = 0.3 if (about.load.rate_per_s or 0.0) >= self.cut[about.subject] else 1.0
        size = by * (400 + 10 * samples.column("query").to_numpy())
        at = samples.schema.get_field_index("bytes")
        column = pa.array(size.astype(np.uint32))
        return samples.set_column(at, SAMPLES.field("bytes"), column)

    def _not_read(self, about: Trial, samples: pa.Table, trace: Trace) -> pa.Table:
        """The samples of replies that are as large under load as alone."""
        sizes = [int((400 + 10 * q) * self.unread[about.subject]) for q in range(QUERIES)]
        about.captured = Captured(distinct=QUERIES, sizes={str(q): n for q, n in enumerate(sizes)})
        column = pa.array(np.array(sizes, np.uint32)[trace.query])
        at = samples.schema.get_field_index("bytes")
        return samples.set_column(at, SAMPLES.field("bytes"), column)

    def _template(self, number: int, subject: str) -> plans.Treatment:
        levels: dict[str, plans.Level] = {}
        if "=" in subject:
            name, _, level = subject.rpartition(" ")[2].partition("=")
            levels = {f"systems.sphinx.{name}": int(level)}
        load: dict[str, Any] = {
            "kind": "open", "arrivals": self.arrivals, "connections": self.connections,
        }  # fmt: skip
        settings: dict[str, Any] = {"load": load}
        if subject in self.beside:
            load["warmup_s"] = WARMUP_S
            settings["roles"] = {"writer": dict(self.beside[subject][0])}
        return plans.Treatment(
            id=f"t{number:02d}", label=subject, system="sphinx", engine="sphinx", levels=levels,
            settings=settings, subject=subject,
        )  # fmt: skip

    def _grown(
        self, template: plans.Treatment, block: int, load: Mapping[str, Any]
    ) -> plans.Treatment:
        """The plan with one trial more, as the lab appends it."""
        name = f"t{len(self._plan.treatments) + 1:02d}"
        levels = dict(template.levels)
        if "rate_per_s" in load:
            levels["load.rate_per_s"] = load["rate_per_s"]
        treatment = msgspec.structs.replace(
            template, id=name, levels=levels,
            settings={**template.settings, "load": {**template.load, **load}},
        )  # fmt: skip
        self._plan = msgspec.structs.replace(
            self._plan,
            treatments=(*self._plan.treatments, treatment),
            trials=(*self._plan.trials, plans.Trial(f"b{block:02d}-{name}", block, name)),
        )
        self._writer.grow(self._plan)
        return treatment

    def _about(self, treatment: plans.Treatment, block: int, load: Mapping[str, Any]) -> Trial:
        return Trial(
            trial=f"b{block:02d}-{treatment.id}", treatment=treatment.id, block=block,
            label=treatment.label, subject=treatment.subject, levels=treatment.levels,
            system=treatment.system, engine=treatment.engine, started="2026-01-31T12:00:00Z",
            corpus=Corpus(digest="c0ffee"), queries=Queries(digest="beef", distinct=QUERIES),
            load=msgspec.convert({**treatment.load, **load}, Load), outcomes=list(_core.OUTCOMES),
            roles=["readers"],
        )  # fmt: skip

    def _trace(self, serve: Serve, load: Load) -> Trace:
        rate = load.rate_per_s or self.look_per_s
        server = Server(serve, self._rng, self.arrivals, connections=self.connections)
        trace = server.trace(rate, load.seconds or 1.0, load.warmup_s or 0.0)
        return replace(trace, query=np.arange(trace.due.size, dtype=np.uint32) % QUERIES)


def _samples(trace: Trace) -> pa.Table:
    n = trace.due.size
    columns = {name: getattr(trace, name) for name in ("due", "free", "sent", "done")}
    columns |= {"query": trace.query, "outcome": trace.outcome, "first_byte": trace.done}
    columns["connection"] = np.zeros(n, np.uint16)
    columns["bytes"] = np.zeros(n, np.uint32)
    columns["role"] = np.zeros(n, np.uint8)
    nothing = pa.nulls(n, pa.int64())
    roles = pa.array(np.zeros(len(nothing), np.uint8))
    return pa.table(columns | {"connect": nothing, "host": nothing, "role": roles}, schema=SAMPLES)


def _replies(more: int, changed: int | None = None) -> pa.Table:
    """``changed``: of 200 sampled under load, so many are empty; None: none was sampled."""
    blank = {"phase": "captured", "outcome": 0, "total_exact": True}
    rows = []
    for query in range(QUERIES):
        answer = good_answer(query)
        rows.append({"query": query, **blank, **answer, "total": answer["total"] + more})
    for i in range(0 if changed is None else 200):
        empty = {"total": 0, "ids": [], "scores": []} if i < (changed or 0) else {}
        rows.append(rows[i % QUERIES] | {"phase": "under_load"} | empty)
    return pa.Table.from_pylist(rows, schema=REPLIES)
