"""Study → plan: what will be run, in which order. Crossed, blocked, shuffled by the seed.

``make_plan`` crosses all factors, leaves out what cannot be run with the reason, and lays every
treatment into every block once, with the A/A control twin at a random place of each block. The
same study and seed give the same plan on every machine.

``to_json`` and ``from_json`` are the form of plan.json in a record.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from searchbench.engines import ENGINES
from searchbench.engines.engine import Level
from searchbench.errors import Complaint, RecordError, StudyError
from searchbench.spec import nearest
from searchbench.study.model import Study, System
from searchbench.workload import loads
from searchbench.workload.queries import registry

FORMAT = 1

# For the estimate alone, from what the shipped engines do on a small machine.
_INGEST_PER_S = 15_000.0
# Preparing batches, settling, and a reply to each distinct query before the first drive.
_INGEST_FIXED_S = 3.0
_DEBIAN_DOCUMENTS = 64_000
# Starting an engine, checking it, writing the record.
_TRIAL_FIXED_S = 0.5


@dataclass(frozen=True, slots=True)
class Treatment:
    """One level of each factor. ``levels``: by factor path ("system", "load.clients", ...).

    ``parameters`` are the engine's, complete. ``corpus``, ``queries``, ``load`` are the
    resolved tables of the study with this treatment's levels put in.
    """

    id: str
    label: str
    system: str
    engine: str
    levels: Mapping[str, Level]
    parameters: Mapping[str, Level]
    corpus: Mapping[str, object]
    queries: Mapping[str, object]
    load: Mapping[str, object]
    attach: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One treatment measured once. ``control`` is the A/A twin of the same treatment."""

    id: str
    block: int
    treatment: str
    control: bool


@dataclass(frozen=True, slots=True)
class Excluded:
    """A crossing that is not run, with the reason."""

    levels: Mapping[str, Level]
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Every trial in the order it will be run.

    ``judging``: what the study says about how it is to be judged and reported, as plain data:
    ``question``, ``analysis``, ``held``, ``metric``,
    ``agreement`` {``require``, ``k``}, ``control`` (the id of the treatment that has a twin, or
    null), ``replicates``, ``ingest``, ``factors`` (path to levels, "system" among them).
    """

    question: str
    seed: int
    treatments: tuple[Treatment, ...]
    trials: tuple[Trial, ...]
    excluded: tuple[Excluded, ...]
    estimated_s: float
    judging: Mapping[str, Any] = field(default_factory=dict)


def make_plan(study: Study, documents: int | None = None) -> Plan:
    """The plan of a study.

    ``documents``: how many the corpus has, where that is known, for the estimate of time.
    StudyError where nothing is left to be run, or the control names no treatment.
    """
    treatments: list[Treatment] = []
    excluded: list[Excluded] = []
    crossed = list(_crossings(study))
    for system, levels in crossed:
        corpus, queries, load, parameters = _tables(study, system, levels)
        reason = _infeasible(study, system, levels, queries, load)
        if reason:
            excluded.append(Excluded(levels, reason))
            continue
        treatments.append(
            Treatment(
                "", "", system.name, system.engine, levels, parameters, corpus,
                _told(queries, study.seed), loads.resolve_told(load), system.attach,
            )
        )  # fmt: skip
    if not treatments:
        reasons = "; ".join(dict.fromkeys(e.reason for e in excluded))
        raise StudyError([Complaint(study.path, 0, 0, f"nothing is left to be run: {reasons}")])
    named = tuple(_named(treatments))
    control = _control(study, named)
    return Plan(
        study.question,
        study.seed,
        named,
        tuple(_trials(study, named, control)),
        tuple(excluded),
        round(_estimate(study, named, control, documents), 1),
        _judging(study, named, control),
    )


def _crossings(study: Study) -> Iterator[tuple[System, dict[str, Level]]]:
    """Every system with every combination of the levels that concern it, in file order."""
    several = len(study.systems) > 1
    for system in study.systems:
        factors = [f for f in study.factors if f.system in (None, "*", system.name)]
        for combination in itertools.product(*(f.levels for f in factors)):
            levels: dict[str, Level] = {"system": system.name} if several else {}
            levels.update(zip((f.path for f in factors), combination, strict=True))
            yield system, levels


def _tables(
    study: Study, system: System, levels: Mapping[str, Level]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Level]]:
    """Corpus, queries, load and parameters, with the levels put in."""
    tables: dict[str, dict[str, Any]] = {
        "corpus": dict(study.corpus),
        "queries": dict(study.queries),
        "load": dict(study.load),
        "systems": dict(system.parameters),
    }
    for factor in study.factors:
        if factor.path in levels:
            tables[factor.table][factor.key] = levels[factor.path]
    return tables["corpus"], tables["queries"], tables["load"], tables["systems"]


def _infeasible(
    study: Study,
    system: System,
    levels: Mapping[str, Level],
    queries: Mapping[str, Any],
    load: Mapping[str, Any],
) -> str:
    """Why a crossing cannot or must not be run; empty if it can."""
    for exclusion in study.exclude:
        there: Mapping[str, Level] = {**levels, "system": system.name}
        if all(_is_level(there.get(path), wanted) for path, wanted in exclusion.when.items()):
            return exclusion.reason
    cannot = ENGINES[system.engine].can.cannot
    for feature in _features(queries):
        if feature in cannot:
            return f"{system.engine} cannot do {feature}: {cannot[feature]}"
    wrong = [*loads.problems(load), *registry.problems(queries)]
    return "; ".join(sentence for _, sentence in wrong)


def _is_level(level: Level | None, wanted: Iterable[Level]) -> bool:
    return any(level == one and type(level) is type(one) for one in wanted)


def _features(queries: Mapping[str, Any]) -> Iterator[str]:
    """What every query of the set needs, by the names of ``Capabilities.cannot``.

    Lines of a JSON file may say otherwise; those are outcomes of single queries.
    """
    if queries.get("match") in ("phrase", "prefix", "fuzzy"):
        yield str(queries["match"])
    if any(key != "_score" for key in queries.get("sort") or ()):
        yield "sort"
    for key in ("filters", "facets", "group_by", "fields"):
        if queries.get(key):
            yield key


def _told(queries: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The [queries] table with what everybody asks about it spelled out."""
    return {"match": "all", "limit": 10, "seed": seed, **queries}


def _named(treatments: Sequence[Treatment]) -> Iterator[Treatment]:
    """With ids t01, t02, ... in the order of crossing, and labels of what varies."""
    varying = [
        path
        for path in dict.fromkeys(path for t in treatments for path in t.levels)
        if len({(type(t.levels.get(path)), t.levels.get(path)) for t in treatments}) > 1
    ]
    short = _short(varying)
    width = max(2, len(str(len(treatments))))
    for number, t in enumerate(treatments, 1):
        parts = [
            str(t.levels[path]) if path == "system" else f"{short[path]}={_plain(t.levels[path])}"
            for path in varying
            if path in t.levels
        ]
        yield Treatment(
            f"t{number:0{width}d}",
            " ".join(parts) or t.system,
            t.system, t.engine, t.levels, t.parameters, t.corpus, t.queries, t.load, t.attach,
        )  # fmt: skip


def _short(paths: Sequence[str]) -> dict[str, str]:
    """The last part of each path where that says enough, else the path without "systems"."""
    last = [path.rsplit(".", 1)[-1] for path in paths]
    return {
        path: end if last.count(end) == 1 or path.startswith("systems.") else path
        for path, end in zip(paths, last, strict=True)
    }


def _plain(level: Level) -> str:
    return str(level).lower() if isinstance(level, bool) else str(level)


def _control(study: Study, treatments: Sequence[Treatment]) -> str | None:
    """The id of the treatment that has an A/A twin."""
    if not study.control.aa:
        return None
    wanted = study.control.treatment
    ids = [t.id for t in treatments]
    if wanted is not None and wanted not in ids:
        sentence = f"[control]: there is no treatment `{wanted}`"
        raise StudyError([Complaint(study.path, 0, 0, sentence, nearest(wanted, ids))])
    return wanted or ids[0]


def _trials(study: Study, treatments: Sequence[Treatment], control: str | None) -> Iterator[Trial]:
    """Block after block, each in an order of its own.

    random.Random seeded by a text and its shuffle() are the same in every Python since 3.2.
    """
    width = max(2, len(str(study.replicates)))
    rng = random.Random(f"searchbench plan {study.seed}")
    for block in range(1, study.replicates + 1):
        members = [(t.id, False) for t in treatments]
        if control is not None:
            members.append((control, True))
        rng.shuffle(members)
        for treatment, twin in members:
            name = f"b{block:0{width}d}-{treatment}{'-aa' if twin else ''}"
            yield Trial(name, block, treatment, twin)


def _estimate(
    study: Study, treatments: Sequence[Treatment], control: str | None, documents: int | None
) -> float:
    """About how many seconds the plan takes."""
    by_id = {t.id: t for t in treatments}
    again = [by_id[control]] if control is not None else []
    drive_s = sum(
        loads.open_load(t.load, study.base).expected_s() + _TRIAL_FIXED_S
        for t in [*treatments, *again]
    )
    ingest_s = {
        index_key(t): _INGEST_FIXED_S + _documents(t.corpus, documents) / _INGEST_PER_S
        for t in treatments
    }
    if study.ingest == "per-trial":
        once_s = sum(ingest_s[index_key(t)] for t in [*treatments, *again])
    else:
        once_s = sum(ingest_s.values())
    times = 1 if study.ingest == "once" else study.replicates
    return study.replicates * drive_s + times * once_s


def _documents(corpus: Mapping[str, Any], documents: int | None) -> float:
    """How many documents are ingested, as far as the table says."""
    usual = _DEBIAN_DOCUMENTS if corpus.get("family") == "debian" else 0
    known = corpus.get("documents", documents) or usual
    parts = corpus.get("parts", 1) if "part" in corpus else 1
    return float(known * corpus.get("duplicate", 1) / corpus.get("decimate", 1) / parts)


def index_key(treatment: Treatment) -> str:
    """The same for treatments that can be measured on one index."""
    index = {p.name: treatment.parameters[p.name]
             for p in ENGINES[treatment.engine].parameters if p.index}  # fmt: skip
    return repr((treatment.engine, sorted(index.items()), sorted(treatment.corpus.items())))


def _judging(study: Study, treatments: Sequence[Treatment], control: str | None) -> dict[str, Any]:
    closed = all(t.load["kind"] == "closed" for t in treatments)
    metric = study.verdict.metric or ("throughput" if closed else "response_p99")
    factors: dict[str, list[Level]] = {}
    if len(study.systems) > 1:
        factors["system"] = [s.name for s in study.systems]
    factors.update({f.path: list(f.levels) for f in study.factors})
    return {
        "question": study.question,
        "analysis": study.analysis,
        "held": study.held if isinstance(study.held, str) else dict(study.held),
        "metric": metric,
        "agreement": asdict(study.agreement),
        "control": control,
        "replicates": study.replicates,
        "ingest": study.ingest,
        "factors": factors,
    }


def to_json(plan: Plan) -> dict[str, Any]:
    """plan.json: ``format`` 1 and the fields of ``Plan``, treatments and trials as objects."""
    return {"format": FORMAT, **asdict(plan)}


def from_json(payload: Mapping[str, Any]) -> Plan:
    """The plan of a plan.json; RecordError where it is of another format, or not whole."""
    found = payload.get("format") if isinstance(payload, Mapping) else None
    if found != FORMAT:
        raise RecordError(
            f"this plan is of format {found!r}, and this searchbench reads format {FORMAT}; "
            "use the version that wrote it, given in record.json"
        )
    try:
        return Plan(
            payload["question"],
            payload["seed"],
            tuple(Treatment(**t) for t in payload["treatments"]),
            tuple(Trial(**t) for t in payload["trials"]),
            tuple(Excluded(**e) for e in payload["excluded"]),
            payload["estimated_s"],
            payload["judging"],
        )
    except (KeyError, TypeError) as error:
        raise RecordError(f"this plan is not whole: {error}") from error
