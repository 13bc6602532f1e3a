"""A study's queries as requests: compiled for one of its systems, to be sent to one that runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from searchbench.engines import engine as engine_named
from searchbench.engines.engine import Request, Wire
from searchbench.errors import LabError
from searchbench.lab.conduct.laboratory import Openings, Watch
from searchbench.lab.drive.drive import compile_all
from searchbench.lab.system.address import Target
from searchbench.spec import nearest
from searchbench.study import read_study
from searchbench.study.plan import make_plan
from searchbench.workload.queries.text_form import to_text
from searchbench.workload.verbatim.model import Ask, RequestSet


@dataclass(frozen=True)
class Studied:
    """``requests`` are the queries by their text; ``bytes_of`` has what each is on the wire.

    ``whole``: marks of a whole answer, as in ``Service``. ``unsupported``: how many of the
    queries the engine cannot express; they are not asked.
    """

    requests: RequestSet
    engine: str
    wire: Wire
    whole: tuple[bytes, ...]
    bytes_of: Mapping[str, Request]
    unsupported: int

    def encode(self, ask: Ask, target: Target, place: int) -> Request:
        """The prepared bytes of a query; the same for every endpoint."""
        if target.wire != self.wire:
            raise LabError(
                f"{target.url} speaks {target.wire}, and the study's {self.engine} is asked over "
                f"{self.wire}", "compile",
            )  # fmt: skip
        return self.bytes_of[ask.text]


def studied(path: Path, system: str | None, watch: Watch) -> Studied:
    """The queries of a study's first treatment of ``system``. StudyError, LabError, QueryError."""
    study = read_study(path)
    names = [s.name for s in study.systems]
    if system is None and len(names) > 1:
        raise LabError(f"{path} has several systems: say --system {' or '.join(names)}")
    system = system or names[0]
    if system not in names:
        raise LabError(f"{path} has no system `{system}` ({nearest(system, names)})")
    treatment = next(t for t in make_plan(study).treatments if t.system == system)
    openings = Openings(study.base, study.seed, watch)
    queries = openings.queries(treatment)
    schema = openings.corpus(treatment.corpus)[0].schema
    engine = engine_named(treatment.engine)
    compiled = compile_all(engine, queries.queries, schema, treatment.parameters)
    if not compiled.requests:
        raise LabError(
            f"{engine.name} can express none of the queries: {compiled.unsupported[0][1]}"
        )
    texts = [to_text(queries.queries[int(n)]) for n in compiled.request_to_query]
    # Two queries can have one text (it leaves out what is usual); a request is told by its own.
    seen: set[str] = set()
    for i, text in enumerate(texts):
        if text in seen:
            texts[i] = f"{text} #{i + 1}"
        seen.add(texts[i])
    request_of = compiled.request_of(queries.distinct)[queries.log]
    asked = request_of >= 0
    _, first = np.unique(request_of[asked], return_index=True)
    order = request_of[asked][np.sort(first)]
    rank = np.full(len(texts), -1, np.int64)
    rank[order] = np.arange(len(order))
    service = engine.service(treatment.parameters, schema)
    return Studied(
        RequestSet(
            queries.name,
            tuple(Ask(texts[int(i)]) for i in order),
            rank[request_of[asked]].astype(np.uint32),
            None if queries.times_s is None else queries.times_s[asked],
        ),
        engine.name,
        service.wire,
        service.whole,
        dict(zip(texts, compiled.requests, strict=True)),
        len(compiled.unsupported),
    )
