"""A study file → a Study, or all of its mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from searchbench.errors import Complaint, StudyError
from searchbench.spec import nearest, show
from searchbench.study import tables
from searchbench.study.exclusions import read_exclusions
from searchbench.study.factors import read_factors
from searchbench.study.keys import (
    AGREEMENT_KEYS,
    CONTROL_KEYS,
    INGEST_KEYS,
    TABLES,
    TOP_KEYS,
    VERDICT_KEYS,
)
from searchbench.study.model import Agreement, Control, Study, System, VerdictRule
from searchbench.study.positions import Source
from searchbench.study.systems import read_systems

_REPLICATES = {"trials": 3, "sweep": 1, "capacity": 1}


def read_study(path: Path | str) -> Study:
    """The study of a file; StudyError with every mistake in it."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        wrong = Complaint(str(path), line, 1, "a study file is UTF-8, and this line is not")
        raise StudyError([wrong]) from error
    except OSError as error:
        raise StudyError(
            [Complaint(str(path), 0, 0, f"the study cannot be read: {error.strerror}")]
        ) from error
    return parse_study(text, str(path), path.resolve().parent)


def parse_study(text: str, file: str, base: Path) -> Study:
    """The study of a text. ``file`` names it in complaints; its file names are below ``base``."""
    source = Source(text, file)
    top = _top(source)
    verbatim = "requests" in source.tables
    systems, named = read_systems(source, verbatim=verbatim)
    given = tables.given_tables(source)
    varied = read_factors(source, systems, named)
    if verbatim:
        tables.check_requests(source, given["requests"], varied, base, list(systems.values()))
    else:
        tables.check_corpus(source, given["corpus"], varied, base)
        tables.check_queries(source, given["queries"], varied, base)
    tables.check_load(source, given["load"], varied, base)
    control = source.checked(("control",), CONTROL_KEYS)
    ingest = source.checked(("ingest",), INGEST_KEYS)
    agreement = source.checked(("agreement",), AGREEMENT_KEYS)
    verdict = source.checked(("verdict",), VERDICT_KEYS)
    command = top.get("command", ())
    study = Study(
        path=file,
        base=base,
        text=text,
        question=top.get("question", "").strip(),
        systems=tuple(systems.values()),
        corpus=given["corpus"],
        queries=given["queries"],
        load=given["load"],
        requests=given["requests"],
        factors=tuple(v.factor for v in varied),
        analysis=top.get("analysis", "").strip(),
        held=source.tables.get("held", ""),
        seed=top.get("seed", 1),
        ingest=ingest.get("index", "as-found" if verbatim else "per-block"),
        agreement=Agreement(**agreement),
        verdict=VerdictRule(**verdict),
        command=(command,) if isinstance(command, str) else tuple(command),
    )
    _measured(source, study, control, verdict)
    _as_found(source, study, ingest, systems)
    factors = [*study.factors, *([study.steps] if study.steps else [])]
    exclude = read_exclusions(source, factors, named)
    source.finish()
    return replace(
        study,
        exclude=exclude,
        replicates=top.get("replicates", _REPLICATES[study.measure]),
        control=Control(**{"aa": study.measure == "trials", **control}),
    )


def _top(source: Source) -> dict[str, Any]:
    """The keys beside the tables."""
    known = {key.name: key for key in TOP_KEYS}
    good: dict[str, Any] = {}
    for name, value in source.tables.items():
        if name in known:
            if reason := known[name].mismatch(value):
                source.at_value((name,), reason)
            else:
                good[name] = value
        elif name not in TABLES:
            source.at_key((name,), f"a study has no key `{name}`", nearest(name, [*known, *TABLES]))
    if "question" not in source.tables:
        source.at_key((), 'a study asks something: `question = "..."` is missing')
    elif not good.get("question", "?").strip():
        source.at_value(("question",), "`question` is empty")
    held = source.tables.get("held", "")
    if not isinstance(held, str | Mapping):
        source.at_value(("held",), f"`held` must be a text or a table, not {show(held)}")
    return good


def _measured(
    source: Source, study: Study, control: Mapping[str, Any], verdict: Mapping[str, Any]
) -> None:
    """Complain of what is for another kind of measurement."""
    if study.measure == "trials":
        return
    what = "a sweep" if study.measure == "sweep" else "a search for capacity"
    if control.get("aa"):
        source.at_value(("control", "aa"), f"controls are for trials, and this is {what}")
    if "treatment" in control:
        source.at_key(("control", "treatment"), f"controls are for trials, and this is {what}")
    if study.agreement.capture == "after":
        source.at_value(
            ("agreement", "capture"),
            f'`capture = "after"` is for trials, and this is {what}: from the second step on '
            "nothing is asked for the first time",
        )
    if study.measure == "capacity" and "metric" in verdict:
        source.at_key(("verdict", "metric"), "a search for capacity is judged by the rate that "
                      "keeps its promise; leave `metric` out")  # fmt: skip


def _as_found(
    source: Source, study: Study, ingest: Mapping[str, Any], systems: Mapping[str, System]
) -> None:
    """Complain where systems are to be taken as found and are not there, or the reverse."""
    index = ingest.get("index")
    if study.verbatim and index not in (None, "as-found"):
        source.at_value(("ingest", "index"), "[requests] are sent to systems as they are found: "
                        "leave [ingest] out")  # fmt: skip
    if study.verbatim or index != "as-found":
        return
    for name, system in systems.items():
        if not system.attach:
            source.at_key(
                ("systems", name),
                f"{name} is started, so there is nothing that can be taken as found",
                "give its `attach`, or another `index` in [ingest]",
            )
