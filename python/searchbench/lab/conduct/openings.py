"""What treatments name, opened: corpora, query sets, requests, loads; each once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from searchbench import corpora
from searchbench.corpora.corpus import Corpus, FieldType, Summary, digest
from searchbench.corpora.files import FileCorpus, insist_on_fields
from searchbench.corpora.kept_back import KeptBack
from searchbench.corpora.validate import validate
from searchbench.engines import engine
from searchbench.engines.engine import Engine
from searchbench.errors import LabError, QueryError
from searchbench.lab.conduct.watch import Watch
from searchbench.lab.drive.operations import Operations, open_operation
from searchbench.lab.drive.workload import (
    DocumentsAlone,
    PortableQueries,
    VerbatimRequests,
    Workload,
)
from searchbench.lab.get.fetch import debian_snapshot
from searchbench.lab.system.address import Target, target_of
from searchbench.record.trial import Corpus as CorpusAbout
from searchbench.record.trial import Load as LoadAbout
from searchbench.spec import nearest
from searchbench.study.inputs import guessed, operators_said
from searchbench.study.plan import Treatment
from searchbench.workload.changes import kept_back
from searchbench.workload.load_table import classes_promised, resolve_told
from searchbench.workload.loads import Load, Replay, open_load
from searchbench.workload.operations.model import Operation
from searchbench.workload.queries.registry import open_queries
from searchbench.workload.queries.sets import QuerySet
from searchbench.workload.verbatim.files import read_requests
from searchbench.workload.verbatim.model import Ask, RequestSet

TRIAL_KEYS = ("promise", "full")  # of a trial in a search, that no load has otherwise


@dataclass(frozen=True)
class Opened:
    """A treatment with everything it names opened.

    ``engine`` None: found out when it answers. ``target`` None: the system is started. ``seed`` is
    of the order in which requests are sent. ``base``: what file names are relative to.
    ``reads``: by role, what those ask that read beside the readers.
    """

    treatment: Treatment
    engine: Engine | None
    workload: Workload | Operations
    load: Load
    load_about: LoadAbout
    corpus_about: CorpusAbout
    target: Target | None
    seed: int
    base: Path = Path()
    reads: Mapping[str, PortableQueries] = field(default_factory=dict)


@dataclass
class Openings:
    """``base``: the directory that file names are relative to. ``promises``: of the study."""

    base: Path
    seed: int
    watch: Watch
    promises: tuple[str, ...] = ()
    _corpora: dict[str, tuple[Corpus, CorpusAbout]] = field(default_factory=dict)
    _queries: dict[str, QuerySet] = field(default_factory=dict)
    _requests: dict[str, RequestSet] = field(default_factory=dict)
    _operations: dict[str, Operation] = field(default_factory=dict)

    def opened(self, treatment: Treatment, seed: int) -> Opened:
        """Everything the treatment names.

        CorpusError, QueryError, NotInstalled, StudyError; LabError where its address is no good.
        """
        target = self.target(treatment)
        about = CorpusAbout()
        reads: dict[str, PortableQueries] = {}
        workload: Workload | Operations
        if treatment.requests:
            workload = VerbatimRequests(self._requests_of(treatment, target))
        else:
            corpus, about = self.corpus(treatment.corpus)
            if not (treatment.operation and treatment.attach):
                insist_on_fields(corpus)
            corpus, about = self._kept_back(treatment, corpus, about)
            workload = DocumentsAlone(corpus)
            if treatment.operation:
                workload = self._operation_of(treatment, corpus)
            elif "queries" in treatment.settings:
                workload = PortableQueries(self._queries_of(treatment, treatment.queries), corpus)
            reads = {
                name: PortableQueries(self._queries_of(treatment, role["queries"]), corpus)
                for name, role in treatment.roles.items()
                if role["does"] == "read"
            }
        load = open_load(_driven(treatment.load), self.base)
        if isinstance(workload, PortableQueries | VerbatimRequests):
            _insist_on_times(workload, load)
            _insist_on_classes(workload, self.promises)
        named = treatment.engine
        return Opened(
            treatment,
            engine(named) if named and named != "none" else None,
            workload,
            load,
            _load_about(treatment.load),
            about,
            target,
            seed,
            self.base,
            reads,
        )

    def target(self, treatment: Treatment) -> Target | None:
        """The system that it is attached to, if to any; LabError where its address is no good."""
        if not treatment.attach:
            return None
        found = target_of(
            treatment.system,
            treatment.attach,
            remote=treatment.remote,
            access=treatment.access,
            base=self.base,
        )
        if treatment.requests and found.wire is None:
            raise LabError(
                f"{found.url}: verbatim requests need to know what the system speaks: give a URL, "
                f"as in http://{found.url}",
                "compile",
            )
        return found

    def corpus(self, spec: Mapping[str, object]) -> tuple[Corpus, CorpusAbout]:
        """The corpus and what the record says of it; its documents are read for the digest."""
        key = _key(spec)
        if key not in self._corpora:
            self.watch.opening("documents")
            corpus = self._open(spec)
            summary = digest(corpus)
            about = CorpusAbout(
                name=summary.name,
                digest=summary.digest,
                documents=summary.documents,
                text_bytes=summary.text_bytes,
                fields=[
                    {"name": f.name, "type": str(f.type), "stored": f.stored}
                    for f in corpus.schema.fields
                ],
                intake=None if summary.intake is None else asdict(summary.intake),
            )
            self._tell(corpus, summary)
            self._corpora[key] = (corpus, about)
        return self._corpora[key]

    def _kept_back(
        self, treatment: Treatment, corpus: Corpus, about: CorpusAbout
    ) -> tuple[Corpus, CorpusAbout]:
        """What is left of a corpus once those documents are kept back that a role will insert."""
        writer = next((r for r in treatment.roles.values() if r["does"] == "write"), {})
        total = about.documents or 0
        count = kept_back(writer, total)
        if not count:
            return corpus, about
        if count >= total:
            raise LabError(
                f"{count:,} documents are to be kept back, and {about.name} has {total:,}; keep "
                "back fewer (`documents`, `share` of the role)", "prepare",
            )  # fmt: skip
        key = _key(treatment.corpus, count)
        if key not in self._corpora:
            self.watch.opening("documents")
            left = KeptBack(corpus, total, count, self.seed)
            summary = digest(left)
            self._corpora[key] = (left, msgspec.structs.replace(
                about, digest=summary.digest, documents=summary.documents,
                text_bytes=summary.text_bytes,
            ))  # fmt: skip
        return self._corpora[key]

    def _open(self, spec: Mapping[str, object]) -> Corpus:
        wanted = {k: v for k, v in spec.items() if v is not None}
        if corpora.family_of(wanted) == "debian" and "snapshot" not in wanted:
            wanted["snapshot"] = str(debian_snapshot())
        return corpora.open_corpus(wanted, self.base)

    def _tell(self, corpus: Corpus, summary: Summary) -> None:
        """What was guessed about the user's files, and what of them was left out."""
        if isinstance(corpus, FileCorpus) and (fields := guessed(corpus)):
            self.watch.told(fields)
        intake = summary.intake
        if intake is not None and intake.refused:
            first = "; ".join(str(row) for row in intake.first[:3])
            self.watch.told(
                f"{summary.name}: {intake.refused:,} of {intake.rows:,} rows are left out: {first}"
            )

    def _queries_of(self, treatment: Treatment, asked: Mapping[str, Any]) -> QuerySet:
        """A query set of a treatment, checked against its corpus's schema.

        Queries that are sampled from documents are sampled from all of them, however the corpus
        is scaled: sizes are compared on the same queries.
        """
        whole = corpora.unscaled(treatment.corpus)
        key = _key(asked, whole)
        if key not in self._queries:
            schema = self.corpus(treatment.corpus)[0].schema
            self.watch.opening("queries")
            spec = {k: v for k, v in asked.items() if v is not None}
            spec.setdefault("seed", self.seed)
            found = open_queries(
                spec,
                self.base,
                lambda: (d.values for d in self._open(whole).documents()),
                [f.name for f in schema.of_type(FieldType.TEXT)],
            )
            for number, query in enumerate(found.queries):
                try:
                    validate(query, schema)
                except QueryError as error:
                    raise QueryError(f"{found.name}, query {number + 1}: {error}") from None
            self._left_out(found, "query")
            for sentence in operators_said(found):
                self.watch.told(sentence)
            self._queries[key] = found
        return self._queries[key]

    def _operation_of(self, treatment: Treatment, corpus: Corpus) -> Operations:
        """Its method, with draws that all methods of the operation share."""
        operation = treatment.operation
        drawn = {k: operation[k] for k in ("name", "key", "rows", "order", "draws", "answer")}
        kept = corpus.count if isinstance(corpus, KeptBack) else 0  # other rows are left to draw
        key = _key(drawn, treatment.corpus, kept)
        if key not in self._operations:
            self.watch.opening("rows to ask for")
            self._operations[key] = open_operation(operation, corpus, self.seed).asked
        return open_operation(operation, corpus, self.seed, self._operations[key])

    def _requests_of(self, treatment: Treatment, target: Target | None) -> RequestSet:
        """The verbatim requests of a treatment: of a file, or the one path that it names."""
        spec = treatment.requests
        key = _key(spec, target.path if target else "")
        if key not in self._requests:
            if spec.get("file"):
                self.watch.opening("requests")
                found = read_requests(
                    self.base / str(spec["file"]), spec.get("form") or "auto",
                    method=spec.get("method"), classes=spec.get("classes"),
                )  # fmt: skip
                self._left_out(found, "request")
            else:
                path = str(spec.get("path") or (target.path if target else "") or "/")
                ask = Ask(path, spec.get("method") or "GET")
                found = RequestSet(path, (ask,), np.zeros(1, np.uint32))
            self._requests[key] = found
        return self._requests[key]

    def _left_out(self, found: QuerySet | RequestSet, what: str) -> None:
        if found.bad_count:
            first = "; ".join(str(line) for line in found.bad[:3])
            lines = f"{found.bad_count:,} lines are no {what} and left out"
            self.watch.told(f"{found.name}: {lines}: {first}")


def _insist_on_times(workload: PortableQueries | VerbatimRequests, load: Load) -> None:
    """LabError where a log is to be replayed that does not say when."""
    if not isinstance(load.loop, Replay) or load.loop.times is not None:
        return
    if workload.asked.times_s is None:
        raise LabError(
            f"{workload.asked.name} has no times, and a replay sends requests when a log says; "
            "give a log that has, or JSON lines with `t` in seconds",
            "compile",
        )


def _insist_on_classes(
    workload: PortableQueries | VerbatimRequests, promises: tuple[str, ...]
) -> None:
    """LabError where a promise is for a class that nothing that is asked has."""
    classes = [name for name in dict.fromkeys(workload.asked.classes) if name]
    for name in classes_promised(promises):
        if name not in classes:
            hint = "give the lines a key `class`, name files by class, or set `classes`"
            raise LabError(
                f'a promise is for the class "{name}", and nothing in {workload.asked.name} is of '
                f"it; {nearest(name, classes) if classes else hint}",
                "compile",
            )


def _driven(table: Mapping[str, Any]) -> dict[str, Any]:
    """A [load] table as it can be driven: without what only the search says that it belongs to.

    Before the search has chosen a rate, it stands for one request after another.
    """
    own = {k: v for k, v in table.items() if k not in TRIAL_KEYS}
    if table.get("kind") == "open" and table.get("rate_per_s") is None:
        own = {k: v for k, v in own.items() if k not in ("kind", "arrivals", "connections")}
        return {**own, "kind": "closed", "clients": 1, "seconds": 1.0, "warmup_s": 0.0}
    return own


def _load_about(table: Mapping[str, Any]) -> LoadAbout:
    """A [load] table as the record keeps it, defaults put in."""
    given = {k: v for k, v in _driven(table).items() if v is not None}
    full = {**given, **resolve_told(given), **{k: table[k] for k in TRIAL_KEYS if k in table}}
    known = {k: v for k, v in full.items() if k in LoadAbout.__struct_fields__ and v is not None}
    return msgspec.convert(known, LoadAbout, strict=False)


def _key(*specs: object) -> str:
    return json.dumps(specs, sort_keys=True, default=str)
