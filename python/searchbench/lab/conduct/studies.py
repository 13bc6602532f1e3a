"""A study, from its file to its record; and its systems' agreement without any timing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from searchbench import _core
from searchbench.errors import LabError
from searchbench.lab.conduct.laboratory import Openings, Watch, carry_out, folder, query_lines
from searchbench.lab.conduct.shelf import Shelf
from searchbench.lab.conduct.trial import Conductor
from searchbench.lab.place import host
from searchbench.record import Record, Writer, open_record
from searchbench.study import Study, read_study
from searchbench.study.plan import Plan, Trial, make_plan, to_json


class Silence:
    """A Watch that watches nothing."""

    def opening(self, what: str) -> None:
        """Nothing."""

    def told(self, text: str) -> None:
        """Nothing."""

    def begins(self, trial: Trial, label: str, done: int, of: int) -> None:
        """Nothing."""

    def stage(self, name: str) -> None:
        """Nothing."""

    def tick(self, completed: int, elapsed_ns: int, recent: bytes) -> None:
        """Nothing."""

    def ends(self, trial: Trial, about: Mapping[str, Any]) -> None:
        """Nothing."""


def run(
    study: Study | Path | str,
    record: Path | str | None = None,
    *,
    plan: Plan | None = None,
    watch: Watch | None = None,
    work: Path | None = None,
) -> Record:
    """Measure a study; its record. Called again on the same record it continues.

    ``record``: the folder, ``records/NAME`` if None. ``plan``: the study's, if it was made
    already. ``work``: where indexes are built while measuring (default: the temporary
    directory). StudyError, CorpusError, QueryError, NotInstalled, RecordError; a trial that
    fails is on record as failed and raises nothing. KeyboardInterrupt leaves a valid record.
    """
    study = study if isinstance(study, Study) else read_study(study)
    plan = plan or make_plan(study)
    refusal = host.require_release_build()
    if refusal:
        raise LabError(refusal, "host")
    watch = watch or Silence()
    openings = Openings(study.base, study.seed, watch)
    # Everything that a person can get wrong is opened before the first minute is spent.
    for treatment in plan.treatments:
        openings.subject(treatment, study.seed)
    place = Path(record) if record is not None else Path("records") / study.name
    writer = Writer(
        place,
        study_text=study.text,
        plan=to_json(plan),
        host=host.fingerprint(),
        version=_core.version,
    )
    carry_out(plan, writer, openings, watch, share_index=study.ingest, work=work)
    return open_record(place)


def verify(
    study: Study | Path | str,
    record: Path | str,
    *,
    watch: Watch | None = None,
    work: Path | None = None,
) -> Record:
    """Ask every system every distinct query once, and keep the answers; nothing is timed.

    A record with one trial for each treatment that could answer differently (those that differ
    only in load answer the same), whose trials hold replies and no samples.
    """
    study = study if isinstance(study, Study) else read_study(study)
    plan = make_plan(study)
    watch = watch or Silence()
    openings = Openings(study.base, study.seed, watch)
    answering = list(_answering(plan))
    kept = {trial.id for trial in answering}
    shown = to_json(plan) | {"trials": [t for t in to_json(plan)["trials"] if t["id"] in kept]}
    writer = Writer(
        Path(record),
        study_text=study.text,
        plan=shown,
        host=host.fingerprint(),
        version=_core.version,
    )
    treatments = {t.id: t for t in plan.treatments}
    with folder(work) as private, contextlib.closing(Shelf(private / "shelf")) as shelf:
        conductor = Conductor(shelf, private, announce=watch.stage, on_tick=watch.tick)
        for position, trial in enumerate(answering):
            subject = openings.subject(treatments[trial.treatment], study.seed)
            writer.queries(subject.queries.digest, query_lines(subject.queries))
            watch.begins(trial, subject.treatment.label, position, len(answering))
            outcome = conductor.conduct(trial, subject, scope="", position=position, timed=False)
            writer.trial(outcome.about, replies=outcome.replies, logs=outcome.logs)
            watch.ends(trial, outcome.about)
    return open_record(record)


def _answering(plan: Plan) -> Iterator[Trial]:
    """The first trial of every treatment that differs in more than its load."""
    treatments = {t.id: t for t in plan.treatments}
    seen = []
    for trial in sorted(plan.trials, key=lambda t: t.treatment):
        treatment = treatments[trial.treatment]
        key = (treatment.system, treatment.parameters, treatment.corpus, treatment.queries)
        if not trial.control and key not in seen:
            seen.append(key)
            yield trial
