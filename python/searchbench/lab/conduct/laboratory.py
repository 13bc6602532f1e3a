"""A whole plan: opens what treatments name, conducts trial after trial, writes each when it ends.

A trial that is on record is not done again, so an interrupted study continues where it stopped.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import psutil

from searchbench.corpora import open_corpus
from searchbench.corpora.corpus import Corpus, FieldType, Summary, digest
from searchbench.corpora.spec import family_of
from searchbench.engines import engine
from searchbench.errors import QueryError
from searchbench.lab.conduct.shelf import Shelf
from searchbench.lab.conduct.trial import Conductor, Subject
from searchbench.lab.get.fetch import debian_snapshot
from searchbench.record import Writer
from searchbench.study.plan import Plan, Treatment, Trial
from searchbench.workload.loads import open_load, resolve
from searchbench.workload.queries.json_form import to_json
from searchbench.workload.queries.registry import open_queries
from searchbench.workload.queries.sets import QuerySet
from searchbench.workload.queries.text_form import to_text
from searchbench.workload.queries.validate import validate

_PREFIX = "searchbench-work-"


class Watch(Protocol):
    """Told what happens while a plan is carried out; a terminal's progress is one."""

    def opening(self, what: str) -> None:
        """Something is being read or fetched that may take a while."""

    def told(self, text: str) -> None:
        """Something that a person should know before the measurement begins."""

    def begins(self, trial: Trial, label: str, done: int, of: int) -> None:
        """A trial begins; ``done`` of ``of`` are on record."""

    def stage(self, name: str) -> None:
        """The trial enters a stage."""

    def tick(self, completed: int, elapsed_ns: int, recent: bytes) -> None:
        """Requests completed in the running drive; ``recent``: the last of them, as samples."""

    def ends(self, trial: Trial, about: Mapping[str, Any]) -> None:
        """A trial is on record."""


@dataclass
class Openings:
    """Corpora, query sets and loads that treatments name, each opened once."""

    base: Path
    seed: int
    watch: Watch
    _corpora: dict[str, tuple[Corpus, dict[str, Any]]] = field(default_factory=dict)
    _queries: dict[str, QuerySet] = field(default_factory=dict)

    def subject(self, treatment: Treatment, seed: int) -> Subject:
        """Everything the treatment names. CorpusError, QueryError, NotInstalled, StudyError."""
        corpus, about = self.corpus(treatment.corpus)
        return Subject(
            treatment,
            engine(treatment.engine),
            corpus,
            about,
            self.queries(treatment),
            open_load(treatment.load, self.base),
            resolve({k: v for k, v in treatment.load.items() if v is not None}),
            seed,
        )

    def corpus(self, spec: Mapping[str, object]) -> tuple[Corpus, dict[str, Any]]:
        """The corpus and what the record says of it; its documents are read for the digest."""
        key = _key(spec)
        if key not in self._corpora:
            self.watch.opening("documents")
            wanted = {k: v for k, v in spec.items() if v is not None}
            if family_of(wanted) == "debian" and "snapshot" not in wanted:
                wanted["snapshot"] = str(debian_snapshot())
            corpus = open_corpus(wanted, self.base)
            summary = digest(corpus)
            about = {
                "name": summary.name,
                "digest": summary.digest,
                "documents": summary.documents,
                "text_bytes": summary.text_bytes,
                "fields": [
                    {"name": f.name, "type": str(f.type), "stored": f.stored}
                    for f in corpus.schema.fields
                ],
            }
            if summary.intake is not None:
                about["intake"] = asdict(summary.intake)
            self._tell(corpus, summary)
            self._corpora[key] = (corpus, about)
        return self._corpora[key]

    def _tell(self, corpus: Corpus, summary: Summary) -> None:
        """What was guessed about the user's files, and what of them was left out."""
        if getattr(corpus, "inference", None) is not None:
            fields = ", ".join(f"{f.name} {f.type}" for f in corpus.schema.fields)
            self.watch.told(
                f"{summary.name}: fields as guessed: {fields}; name them in [corpus] to be sure"
            )
        intake = summary.intake
        if intake is not None and intake.refused:
            first = "; ".join(str(row) for row in intake.first[:3])
            self.watch.told(
                f"{summary.name}: {intake.refused:,} of {intake.rows:,} rows are left out: {first}"
            )

    def queries(self, treatment: Treatment) -> QuerySet:
        """The query set of a treatment, checked against its corpus's schema."""
        key = _key(treatment.queries, treatment.corpus)
        if key not in self._queries:
            corpus, _about = self.corpus(treatment.corpus)
            self.watch.opening("queries")
            spec = {k: v for k, v in treatment.queries.items() if v is not None}
            spec.setdefault("seed", self.seed)
            found = open_queries(
                spec,
                self.base,
                lambda: (d.values for d in corpus.documents()),
                [f.name for f in corpus.schema.of_type(FieldType.TEXT)],
            )
            for number, query in enumerate(found.queries):
                try:
                    validate(query, corpus.schema)
                except QueryError as error:
                    raise QueryError(f"{found.name}, query {number + 1}: {error}") from None
            if found.bad_count:
                first = "; ".join(str(line) for line in found.bad[:3])
                self.watch.told(
                    f"{found.name}: {found.bad_count:,} lines are no query and left out: {first}"
                )
            self._queries[key] = found
        return self._queries[key]


def carry_out(
    plan: Plan,
    writer: Writer,
    openings: Openings,
    watch: Watch,
    *,
    share_index: str = "per-block",
    work: Path | None = None,
) -> None:
    """Conduct every trial of ``plan`` that is not on record yet.

    ``share_index``: "once", "per-block"
    or "per-trial". ``work``: where private folders are made; a temporary directory if None.
    """
    treatments = {t.id: t for t in plan.treatments}
    with folder(work) as private:
        shelf = Shelf(private / "shelf")
        conductor = Conductor(shelf, private, announce=watch.stage, on_tick=watch.tick)
        done = sum(writer.has(t.id) for t in plan.trials)
        block = None
        for position, trial in enumerate(plan.trials):
            if writer.has(trial.id):
                continue
            if share_index == "per-block" and trial.block != block:
                shelf.drop_indexes()
            block = trial.block
            treatment = treatments[trial.treatment]
            subject = openings.subject(treatment, plan.seed * 1000 + trial.block)
            writer.queries(subject.queries.digest, query_lines(subject.queries))
            watch.begins(trial, treatment.label, done, len(plan.trials))
            scope = trial.id if share_index == "per-trial" else ""
            outcome = conductor.conduct(trial, subject, scope=scope, position=position)
            writer.trial(
                outcome.about,
                samples=outcome.samples,
                replies=outcome.replies,
                probe=outcome.probe,
                logs=outcome.logs,
            )
            done += 1
            watch.ends(trial, outcome.about)


def query_lines(queries: QuerySet) -> Iterator[dict[str, Any]]:
    """The distinct queries as the record keeps them."""
    for number, query in enumerate(queries.queries):
        yield {"query": number, "text": to_text(query), "algebra": to_json(query)}


@contextmanager
def folder(work: Path | None) -> Iterator[Path]:
    """A private folder that is gone afterwards, with everything that was built in it.

    Its name has our process id, so that what a killed one left behind is known and removed.
    """
    place = work or Path(tempfile.gettempdir())
    place.mkdir(parents=True, exist_ok=True)
    for left in place.glob(f"{_PREFIX}*"):
        owner = left.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-", dir=place) as name:
        yield Path(name)


def _key(*specs: Mapping[str, object]) -> str:
    return json.dumps(specs, sort_keys=True, default=str)
