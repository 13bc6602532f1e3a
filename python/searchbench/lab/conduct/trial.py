"""The conductor of one trial: the only file that knows the order.

    probe the machine → deploy → ingest (timed) → settle → stop → start anew → verify the levers
    → capture a reply to every distinct query → start anew → drive (warm-up and measured window
    in one trace) → totals → decode and check → stop

The process that is measured has always just opened a finished index: it is neither the one that
built it nor the one that was asked for the captures, so that the first treatment on an index
has nothing over the others. (An engine that keeps no index is ingested into before it is driven.)
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from searchbench import _core
from searchbench.corpora.corpus import Corpus
from searchbench.engines.engine import Engine, Facts, Parameters
from searchbench.errors import LabError, SearchbenchError
from searchbench.lab.conduct import totals
from searchbench.lab.conduct.ingest import Batches, index_offline, ingest, size_on_disk
from searchbench.lab.conduct.shelf import Captured, Index, Shelf
from searchbench.lab.drive.drive import (
    Compiled,
    Driven,
    Progress,
    Samples,
    capture,
    compile_all,
    drive,
    terms_seen,
)
from searchbench.lab.drive.order import expected_requests, order_of
from searchbench.lab.drive.probe import Probe
from searchbench.lab.place import host
from searchbench.lab.system.attach import Attached, as_found, ingest_if_empty
from searchbench.lab.system.deploy import Deployment
from searchbench.study.plan import Treatment, Trial
from searchbench.workload.loads import Load
from searchbench.workload.queries.sets import QuerySet


@dataclass(frozen=True)
class Subject:
    """A treatment with everything it names opened."""

    treatment: Treatment
    engine: Engine
    corpus: Corpus
    corpus_about: Mapping[str, Any]
    queries: QuerySet
    load: Load
    load_about: Mapping[str, Any]
    seed: int


@dataclass
class Stages:
    """Seconds spent in each stage; ``current`` says where a failure happened."""

    seconds: dict[str, float] = field(default_factory=dict)
    current: str = ""
    announce: Callable[[str], object] = lambda _stage: None

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time a stage; entering one twice adds up."""
        self.current = name
        self.announce(name)
        began = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began


@dataclass
class Outcome:
    """What goes on record of a trial."""

    about: dict[str, Any]
    samples: Samples | None = None
    replies: pa.Table | None = None
    probe: pa.Table | None = None
    logs: dict[str, bytes] = field(default_factory=dict)


class Conductor:
    """Conducts trials one after another, with what they share on a shelf."""

    def __init__(
        self, shelf: Shelf, work: Path, *, announce: Callable[[str], object], on_tick: Progress
    ) -> None:
        self.shelf = shelf
        self.work = work
        self.announce = announce
        self.on_tick = on_tick
        self.client_cpus, self.server_cpus = host.placement()

    def conduct(
        self, trial: Trial, subject: Subject, *, scope: str, position: int, timed: bool = True
    ) -> Outcome:
        """One trial, from start to end. A failure is an outcome with its stage and its reason.

        ``scope``: trials of the same scope may share an index. ``timed`` False: captured only.
        """
        stages = Stages(announce=self.announce)
        outcome = Outcome(_heading(trial, subject, position))
        try:
            self._conduct(trial, subject, scope, stages, outcome, timed)
        except (SearchbenchError, OSError, ValueError, MemoryError) as error:
            stage = getattr(error, "stage", "") or stages.current
            outcome.about |= {"status": "failed", "stage": stage, "reason": _sentence(error)}
        else:
            outcome.about["status"] = "ok"
        outcome.about |= {
            "ended": _now(),
            "stages": {k: round(v, 4) for k, v in stages.seconds.items()},
        }
        for log in self._run_folder(trial).glob("*.log"):
            outcome.logs[log.name] = log.read_bytes()[-65536:]
        return outcome

    def _conduct(
        self,
        trial: Trial,
        subject: Subject,
        scope: str,
        stages: Stages,
        outcome: Outcome,
        timed: bool,
    ) -> None:
        about, engine, params = outcome.about, subject.engine, subject.treatment.parameters
        with stages("host"):
            refusal = host.require_release_build()
            if refusal:
                raise LabError(refusal)
            about["notes"] = [note.as_json() for note in host.notes()]
        with stages("compile"):
            compiled = _compiled(subject, params, about)
        with stages("prepare"):
            digest = str(subject.corpus_about["digest"])
            batches = self.shelf.batches(engine, subject.corpus, digest, params)
        index = self.shelf.index(engine, digest, params, scope)
        if subject.treatment.attach is not None:
            with self._deploy(trial, subject, index, stages) as deployment:
                with stages("ingest"):
                    done = ingest_if_empty(deployment, subject.corpus, batches)
                if done is None:
                    about["ingest"] = {"documents": batches.documents, "reused": "attached"}
                else:
                    _finish(index, trial, done, deployment)
                    about["ingest"] = _ingest_about(index, trial)
                compiled = _compiled(subject, deployment.params, about)
                captured = self._capture(trial, subject, deployment, compiled, stages, about)
                outcome.replies = captured.replies
                about["terms"] = captured.terms
                if timed:
                    self._measure(subject, deployment, compiled, captured, stages, outcome)
            return
        if not engine.can.keeps_index:
            with self._deploy(trial, subject, index, stages) as deployment:
                with stages("ingest"):
                    _finish(index, trial, ingest(deployment, subject.corpus, batches), deployment)
                about["ingest"] = _ingest_about(index, trial)
                captured = self._capture(trial, subject, deployment, compiled, stages, about)
                outcome.replies = captured.replies
                about["terms"] = captured.terms
                if timed:
                    self._measure(subject, deployment, compiled, captured, stages, outcome)
            return
        if not index.finished:
            self._build(trial, subject, batches, index, stages)
        about["ingest"] = _ingest_about(index, trial)
        captured_before = self.shelf.captured(index, params, subject.queries.digest)
        if captured_before is None:
            with self._deploy(trial, subject, index, stages) as deployment:
                captured = self._capture(trial, subject, deployment, compiled, stages, about)
            self.shelf.capture(index, params, subject.queries.digest, captured)
        else:
            captured = captured_before
        outcome.replies = captured.replies
        about["terms"] = captured.terms
        if timed:
            with self._deploy(trial, subject, index, stages) as deployment:
                self._measure(subject, deployment, compiled, captured, stages, outcome)

    def _build(
        self, trial: Trial, subject: Subject, batches: Batches, index: Index, stages: Stages
    ) -> None:
        index.discard()
        offline = subject.engine.offline(subject.corpus.schema, subject.treatment.parameters)
        try:
            if offline is not None:
                with stages("ingest"):
                    run = self._run_folder(trial)
                    done = index_offline(offline, batches, index.path, run)
            with self._deploy(trial, subject, index, stages) as deployment:
                if offline is None:
                    with stages("ingest"):
                        done = ingest(deployment, subject.corpus, batches)
                facts = _facts(deployment)
                if facts.documents is not None and facts.documents != done.documents:
                    raise LabError(
                        f"{done.documents} documents were put in, {subject.engine.name} has "
                        f"{facts.documents}",
                        "ingest",
                    )
            _finish(index, trial, done, None)
        except BaseException:
            index.discard()
            raise

    def _capture(
        self,
        trial: Trial,
        subject: Subject,
        deployment: Deployment,
        compiled: Compiled,
        stages: Stages,
        about: dict[str, Any],
    ) -> Captured:
        with stages("verify"):
            self._identify(subject, deployment, about)
        with stages("capture"):
            replies, mean_s = capture(deployment, compiled)
            terms = terms_seen(deployment, subject.queries.queries)
        return Captured(replies, mean_s, trial.id, terms)

    def _identify(self, subject: Subject, deployment: Deployment, about: dict[str, Any]) -> None:
        """Which version it is and how it was started; did every lever take?"""
        facts = _facts(deployment)
        if subject.treatment.attach is None:
            _levers_took(subject, facts)
        elif "attached" not in about:
            address = about["attached"] = subject.treatment.attach
            about["parameters"], note = as_found(address, about["parameters"], facts)
            about["notes"].append(note.as_json())
        about |= {
            "version": facts.version,
            "service": {
                "argv": deployment.argv,
                "files": dict(deployment.service.files),
                "env": dict(deployment.service.env),
                "cpus": list(self.server_cpus),
            },
            "facts": {"documents": facts.documents, "extra": dict(facts.extra)},
            "outcomes": list(_core.OUTCOMES),
        }

    def _measure(
        self,
        subject: Subject,
        deployment: Deployment,
        compiled: Compiled,
        captured: Captured,
        stages: Stages,
        outcome: Outcome,
    ) -> None:
        about, load = outcome.about, subject.load
        with stages("verify"):
            self._identify(subject, deployment, about)
            about["captured"] = {
                "distinct": len(compiled.requests),
                "mean_s": captured.mean_s,
                "made_by": captured.made_by,
            }
        with stages("drive"):
            order = order_of(load, subject.queries, compiled, subject.seed)
            cpus = list(load.cpus) or self.client_cpus
            with Probe(deployment.processes) as probe:
                driven = drive(
                    deployment,
                    compiled,
                    order,
                    timeout_s=load.timeout_s,
                    idle=load.idle,
                    cpus=cpus,
                    expected=expected_requests(order, captured.mean_s),
                    on_tick=self.on_tick,
                    spill=self.work,
                )
            lived = probe.server_lived()
        with stages("totals"):
            started = int(driven.accounting["started_unix_ns"])
            outcome.samples = driven.samples
            outcome.probe = probe.table(started)
            window = totals.window(driven.samples, load)
            about |= {
                "drive": driven.accounting,
                "window": window,
                "server": totals.server(outcome.probe, window),
                "host_window": totals.machine(outcome.probe, window),
            }
            outcome.replies = pa.concat_tables([captured.replies, driven.replies])
            self._check(deployment, lived, driven, captured, about)

    def _check(
        self,
        deployment: Deployment,
        lived: bool,
        driven: Driven,
        captured: Captured,
        about: dict[str, Any],
    ) -> None:
        """What the lab itself noticed while it drove."""
        notes: list[dict[str, str]] = about["notes"]
        if not lived:
            notes.append(
                host.Note(
                    "server ended",
                    f"its log ends: {deployment.log_tail() or 'empty'}",
                    "the server's process ended while it was driven",
                    "look at server.log beside this trial's samples",
                ).as_json()
            )
        changed, compared = totals.changed_under_load(captured.replies, driven.replies)
        if changed:
            notes.append(
                host.Note(
                    "answers under load",
                    f"{changed} of {compared} sampled replies",
                    "under load the system answered otherwise than when it was asked alone",
                    "look for partial results; lower the load until the answers are the same",
                ).as_json()
            )
        about["answers_under_load"] = {"compared": compared, "changed": changed}

    @contextmanager
    def _deploy(
        self, trial: Trial, subject: Subject, index: Index, stages: Stages
    ) -> Iterator[Deployment]:
        """Started (stage ``deploy``), and stopped at the end whatever happened."""
        treatment = subject.treatment
        what = (
            subject.engine,
            treatment.parameters,
            index.path,
            self._run_folder(trial),
            self.server_cpus,
            subject.corpus.schema,
        )
        if treatment.attach is None:
            deployment = Deployment(*what)
        else:
            deployment = Attached(*what, address=treatment.attach, system=treatment.system)
        with ExitStack() as stack:
            with stages("deploy"):
                stack.enter_context(deployment)
            yield deployment

    def _run_folder(self, trial: Trial) -> Path:
        return self.work / "run" / trial.id


def _compiled(subject: Subject, params: Parameters, about: dict[str, Any]) -> Compiled:
    """The queries in the engine's bytes; what it cannot express goes on record. LabError if all."""
    engine = subject.engine
    compiled = compile_all(engine, subject.queries.queries, subject.corpus.schema, params)
    about["unsupported"] = [
        {"query": query, "reason": reason} for query, reason in compiled.unsupported
    ]
    if not compiled.requests:
        raise LabError(
            f"{engine.name} can express none of the queries: {compiled.unsupported[0][1]}"
        )
    return compiled


def _heading(trial: Trial, subject: Subject, position: int) -> dict[str, Any]:
    treatment, queries = subject.treatment, subject.queries
    return {
        "trial": trial.id,
        "block": trial.block,
        "position": position,
        "treatment": treatment.id,
        "control": trial.control,
        "label": treatment.label,
        "levels": dict(treatment.levels),
        "system": treatment.system,
        "engine": treatment.engine,
        "parameters": dict(treatment.parameters),
        "started": _now(),
        "corpus": dict(subject.corpus_about),
        "queries": {
            "name": queries.name,
            "digest": queries.digest,
            "distinct": queries.distinct,
            "logged": queries.logged,
            "mean_terms": queries.mean_terms,
            "bad_lines": queries.bad_count,
        },
        "load": dict(subject.load_about),
        "notes": [],
        "unsupported": [],
    }


def _finish(index: Index, trial: Trial, done: Any, running: Deployment | None) -> None:
    """The ingest's figures; an index that is kept is weighed after its server has stopped."""
    facts = _facts(running) if running else None
    index.figures = {
        "documents": done.documents,
        "bytes": done.bytes,
        "refused": done.refused,
        "refusals": [{"id": i, "reason": r} for i, r in done.refusals],
        "seconds": done.seconds,
        "settle_seconds": done.settle_seconds,
        "index_bytes": facts.index_bytes if facts else size_on_disk(index.path),
    }
    index.made_by = trial.id


def _ingest_about(index: Index, trial: Trial) -> dict[str, Any]:
    reused = None if index.made_by == trial.id else index.made_by
    return {**(index.figures or {}), "reused": reused}


def _facts(deployment: Deployment) -> Facts:
    engine = deployment.engine
    return engine.facts(deployment.ask(engine.facts_request()))


def _levers_took(subject: Subject, facts: Facts) -> None:
    """A lever that did not take is a failed trial, never a silent one."""
    for name, level in facts.parameters.items():
        wanted = subject.treatment.parameters.get(name)
        if wanted is not None and wanted != level:
            raise LabError(f"the lever {name} did not take: {wanted!r} was asked, it is {level!r}")


def _sentence(error: BaseException) -> str:
    """What happened and, where it is the disk, what to do."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = f" at {error.filename}" if error.filename else ""
        return f"the disk is full{place}; free some room, or name another folder with --work"
    return str(error) or type(error).__name__


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
