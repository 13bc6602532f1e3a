"""A study file → a Study, or all of its mistakes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from searchbench.errors import Complaint, StudyError
from searchbench.spec import near_file, show
from searchbench.study import curve, jobs, operations, places, roles, tables
from searchbench.study.factors import check_held, read_exclusions, read_factors
from searchbench.study.keys import (
    AGREEMENT_KEYS,
    CONTROL_KEYS,
    TABLES,
    TOP_KEYS,
    verdict_keys,
)
from searchbench.study.model import Control, Study
from searchbench.study.plan import AgreementRule
from searchbench.study.positions import Moved, Source
from searchbench.study.systems import read_systems

_REPLICATES = {"trials": 3, "sweep": 1, "capacity": 1}


def read_study(path: Path | str) -> Study:
    """The study of a file; StudyError with every mistake in it."""
    path = Path(path)
    return parse_study(read_text(path), str(path), base_of(path))


def base_of(path: Path) -> Path:
    """The folder that the file names of a study file are relative to: its own.

    Of the copy in a record, the one in which the study was when it was run.
    """
    own = path.resolve().parent
    try:
        about = json.loads((own / "record.json").read_bytes())
        return Path(about["base"])
    except (OSError, ValueError, KeyError, TypeError):  # no record, or an older one
        return own


def read_text(path: Path) -> str:
    """The text of a study file; StudyError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        wrong = Complaint(str(path), line, 1, "a study file is UTF-8, and this line is not")
        raise StudyError([wrong]) from error
    except OSError as error:
        hint = near_file(path) if isinstance(error, FileNotFoundError) else ""
        raise StudyError(
            [Complaint(str(path), 0, 0, f"the study cannot be read: {error.strerror}", hint)]
        ) from error


def parse_study(text: str, file: str, base: Path, moved: Moved | None = None) -> Study:
    """The study of a text. ``file`` names it in complaints; its file names are below ``base``.

    ``moved``: where the parts of a text that was changed come from.
    """
    source = Source(text, file, moved)
    top = _top(source)
    verbatim = "requests" in source.tables
    systems, named = read_systems(source, verbatim=verbatim)
    found = tables.given_tables(source)
    curve.put_in(source, found["load"], base)
    of_jobs = jobs.read_jobs(source, systems)
    asked = operations.read_operations(source, systems, base)
    sections = found | places.read_sections(source) | of_jobs
    sections |= {f"operations.{name}": table for name, table in asked.items()}
    of_roles = roles.read_roles(source)
    sections |= of_roles | roles.queries_of(of_roles)
    given = tables.Given(source, sections, read_factors(source, systems, named), base)
    if verbatim:
        tables.check_requests(given, systems.values())
    else:
        tables.check_corpus(given)
        if not asked:
            tables.check_queries(given)
    tables.check_load(given)
    roles.check_roles(given, of_roles, systems)
    systems = places.settle_in(given, systems)
    control = source.checked(("control",), CONTROL_KEYS)
    ingest = dict(found["ingest"])
    index = ingest.pop("index", None)
    agreement = source.checked(("agreement",), AGREEMENT_KEYS)
    driven = not of_jobs or "load" in source.tables or _varies_load(given)
    names = [name.removeprefix("jobs.") for name in of_jobs]
    verdict = source.checked(("verdict",), verdict_keys(names, driven=driven))
    command = top.get("command", ())
    study = Study(
        path=file,
        base=base,
        text=text,
        question=top.get("question", "").strip(),
        systems=tuple(systems.values()),
        corpus=found["corpus"],
        queries=found["queries"],
        requests=found["requests"],
        load=found["load"],
        places=places.named(given.tables, "places"),
        hosts=places.named(given.tables, "hosts"),
        storages=places.named(given.tables, "storages"),
        jobs=places.named(of_jobs, "jobs"),
        operations=asked,
        roles=places.named(of_roles, "roles"),
        driven=driven,
        factors=tuple(v.factor for v in given.varied),
        analysis=top.get("analysis", "").strip(),
        held=source.tables.get("held", ""),
        seed=top.get("seed", 1),
        draw_seed=top.get("draw_seed"),
        ingest=index or ("as-found" if verbatim else "per-trial" if of_jobs else "per-block"),
        put_in=ingest,
        agreement=AgreementRule(**agreement),
        metric=verdict.get("metric"),
        command=(command,) if isinstance(command, str) else tuple(command),
        first_look=top.get("first_look", False),
        io_sizes=top.get("io_sizes", False),
        moved=moved or {},
    )
    _measured(source, study, control)
    _traced(source, study)
    _as_found(source, study, index)
    _with_jobs(source, study, index)
    roles.go_together(source, study)
    places.check_cold(given, study.measure)
    factors = [*study.factors, *([study.steps] if study.steps else []), *study.asking]
    exclude = read_exclusions(source, factors, named)
    check_held(source, factors, several=len(study.systems) > 1)
    source.finish()
    return replace(
        study,
        exclude=exclude,
        replicates=top.get("replicates", _REPLICATES[study.measure]),
        control=Control(**{"aa": study.measure == "trials", **control}),
    )


def _top(source: Source) -> dict[str, Any]:
    """The keys beside the tables."""
    known = [key.name for key in TOP_KEYS]
    source.only((), source.tables, [*known, *TABLES], "a study")
    good = source.checked((), TOP_KEYS, elsewhere=source.tables.keys() - set(known))
    if "question" not in source.tables:
        source.at_key((), 'a study needs a question: `question = "..."` is missing')
    elif not good.get("question", "?").strip():
        source.at_value(("question",), "`question` is empty")
    held = source.tables.get("held", "")
    if not isinstance(held, str | Mapping):
        source.at_value(("held",), f"`held` must be a string or a table, not {show(held)}")
    return good


def _measured(source: Source, study: Study, control: Mapping[str, Any]) -> None:
    """Complain of what is for another kind of measurement."""
    if study.measure == "trials":
        varied = {path for factor in study.factors for path in factor.paths}
        if study.promises and "stages" not in study.load and "load.stages" not in varied:
            source.at_value(("load", "slo"), "`slo` is for a sweep, whose steps it judges, for "
                          "`stages`, or for a search: give `clients` or `rate_per_s` a list, or "
                          "add find_capacity = true")  # fmt: skip
        return
    if study.load.get("abort") and study.load.get("requests") is not None:
        source.at_value(("load", "abort"), "`abort` judges a window while it is driven, so it "
                      "needs one in `seconds`")  # fmt: skip
    elif study.load.get("abort") and study.load.get("warmup_s") is None:
        source.at_value(("load", "abort"), "`abort` judges a window while it is driven, so it has "
                      "to know when that begins: give `warmup_s`")  # fmt: skip
    what = "a sweep" if study.measure == "sweep" else "a capacity search"
    wrong = f"controls are for trials, and this is {what}"
    if control.get("aa"):
        source.at_value(("control", "aa"), wrong)
    if "treatment" in control:
        source.at_key(("control", "treatment"), wrong)
    if study.agreement.capture == "after":
        source.at_value(
            ("agreement", "capture"),
            f'`capture = "after"` is for trials, and this is {what}: from the second step on '
            "nothing is asked for the first time",
        )
    if study.measure == "capacity" and study.metric:
        source.at_key(("verdict", "metric"), "a capacity search is judged by the rate that "
                      "keeps its promise; leave `metric` out")  # fmt: skip


def _varies_load(given: tables.Given) -> bool:
    return any(path.startswith("load.") for one in given.varied for path in one.keys)


def _with_jobs(source: Source, study: Study, index: str | None) -> None:
    """Complain of what does not go with jobs."""
    if not study.jobs:
        return
    if index not in (None, "per-trial"):
        source.at_value(("ingest", "index"), "jobs change what they work on, so each trial has "
                        'an index of its own: index = "per-trial"')  # fmt: skip
    if study.measure != "trials":
        source.at_key(("jobs",), "jobs are for trials, and this is a sweep or a search")
    if study.verbatim:
        source.at_key(("jobs",), "jobs are done by systems that are started, and [requests] are "
                      "sent to those that run")  # fmt: skip
    for system in study.systems:
        if system.attach:
            source.at_key(("systems", system.name), f"{system.name} runs already, and jobs are "
                          "done by systems that are started")  # fmt: skip


def _traced(source: Source, study: Study) -> None:
    """Complain where sizes are to be traced of what is not started for a trial."""
    if not study.io_sizes:
        return
    attached = [system.name for system in study.systems if system.attach]
    if study.measure != "trials":
        what = "a sweep" if study.measure == "sweep" else "a capacity search"
        wrong = f"`io_sizes` traces trials, and this is {what}: give [load] one load"
    elif attached:
        wrong = f"`io_sizes` traces what a trial starts, and {attached[0]} runs already"
    else:
        return
    source.at_value(("io_sizes",), f"{wrong}, or leave it out")


def _as_found(source: Source, study: Study, index: str | None) -> None:
    """Complain where systems are to be taken as found and are not there, or the reverse."""
    if study.verbatim and index not in (None, "as-found"):
        source.at_value(("ingest", "index"), "[requests] are sent to systems as they are found: "
                        "leave [ingest] out")  # fmt: skip
    if study.verbatim or index != "as-found":
        return
    for system in study.systems:
        if not system.attach:
            source.at_key(
                ("systems", system.name),
                f"{system.name} is started, so there is nothing that can be taken as found",
                "give its `attach`, or another `index` in [ingest]",
            )
