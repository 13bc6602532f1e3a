"""Study → plan: what will be run. Factors are crossed, and what cannot be run is left out.

``make_plan`` crosses all factors, leaves out what cannot be run with the reason, and orders the
trials block after block, so that what drifts meets all treatments alike. The same study and seed
give the same plan on every machine. Of a search for capacity it plans what is searched, and no
trials: those are decided on while it runs.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from searchbench import corpora
from searchbench.engines import ENGINES
from searchbench.engines.engine import Level
from searchbench.errors import Complaint, StudyError
from searchbench.spec import nearest
from searchbench.study import jobs, operations, roles
from searchbench.study.estimate import estimate
from searchbench.study.model import (
    Study,
    System,
    among,
    asked_by,
    key_of,
    names_agents,
    names_place,
    section_of,
    system_of,
    table_of,
)
from searchbench.study.placing import Alike, Tables, crossed, put_in_place, sections
from searchbench.study.plan import Excluded, Judging, Plan, Treatment, Trial
from searchbench.study.systems import listed
from searchbench.workload import load_table
from searchbench.workload.queries import registry
from searchbench.workload.queries.registry import features

Step = TypeVar("Step")
Turn = TypeVar("Turn")


def make_plan(study: Study, documents: int | None = None) -> Plan:
    """The plan of a study.

    ``documents``: how many the corpus has, where that is known, for the estimate of time.
    StudyError where nothing is left to be run, or the control names no treatment.
    """
    treatments: list[Treatment] = []
    excluded: list[Excluded] = []
    alike = Alike(study)
    for system, levels, tables in _crossings(study):
        wrong = put_in_place(study, system, tables)
        if study.jobs:
            tables["jobs"] = jobs.levels_of(system, tables)
        operations.settle(tables)
        roles.settle(tables)
        reason = _infeasible(study, system, levels, tables) or "; ".join(wrong)
        reason = reason or alike.same_as_before(system, levels, tables)
        if reason:
            excluded.append(Excluded(levels, reason))
            continue
        if study.driven:
            tables["load"] = load_table.resolve_told(tables["load"])
        else:
            del tables["load"]
        if not study.driven and not study.queries:
            tables.pop("queries", None)
        if not tables["ingest"]:
            del tables["ingest"]
        # With what everybody asks about it spelled out.
        told = {"match": "all", "limit": 10, "seed": study.seed}
        if "queries" in tables:
            tables["queries"] = told | tables["queries"]
        for role in tables.get("roles", {}).values():
            if role["does"] == "read":
                role["queries"] = told | role["queries"]
        treatments.append(
            Treatment(
                id="",
                label="",
                system=system.name,
                engine=system.engine,
                levels=levels,
                settings=tables,
                attach=system.attach,
                remote=system.remote,
                access=system.access,
            )
        )
    if not treatments:
        reasons = "; ".join(dict.fromkeys(e.reason for e in excluded))
        raise StudyError([Complaint(study.path, 0, 0, f"nothing is left to be run: {reasons}")])
    named = tuple(_named(treatments, study.steps.path if study.steps else None))
    twins = list(_twins(study, named))
    trials = () if study.measure == "capacity" else tuple(_order(study, named, twins))
    traced = tuple(_traced(study, named))
    return Plan(
        question=study.question,
        seed=study.seed,
        draw_seed=study.draw_seed,
        treatments=named,
        trials=trials,
        excluded=tuple(excluded),
        estimated_s=round(estimate(study, named, twins, documents), 1),
        judging=_judging(study, named),
        traced=traced,
    )


def _crossings(study: Study) -> Iterator[tuple[System, dict[str, Level], Tables]]:
    """Every system with every combination of the levels that concern it, in file order.

    The steps of a sweep come last, so that those of one configuration follow one another.
    """
    several = len(study.systems) > 1
    whole = ((s, *each) for s in study.systems for each in operations.asked(study, s))
    for system, own_levels, own in whole:
        factors = [*crossed(study, system), *([study.steps] if study.steps else [])]
        factors = [f for f in factors if operations.concerns(f, own)]
        for chosen in itertools.product(*(range(len(f.levels)) for f in factors)):
            levels: dict[str, Level] = {"system": system.name} if several else {}
            levels |= own_levels
            tables = _tables(study, system) | {name: dict(table) for name, table in own.items()}
            for factor, level in zip(factors, chosen, strict=True):
                levels[factor.path] = factor.levels[level]
                _put_in(tables, system, factor.settings(level))
            yield system, levels, tables


def _tables(study: Study, system: System) -> Tables:
    """The study's tables as they are for one system, before levels are put in."""
    asked: Tables = (
        {"requests": {"form": "auto", **study.requests}}
        if study.verbatim
        else {"corpus": dict(study.corpus), "queries": dict(study.queries)}
    )
    if study.operations:
        del asked["queries"]
    own: Tables = {"load": dict(study.load), "system": dict(system.parameters)}
    own["ingest"] = dict(study.put_in)
    of_jobs = {f"jobs.{name}": dict(table) for name, table in study.jobs.items()}
    of_roles = {f"roles.{name}": dict(table) for name, table in study.roles.items()}
    of_roles |= roles.queries_of(of_roles)
    return {**asked, **own, **sections(study, system), **of_jobs, **of_roles}


def _put_in(tables: Tables, system: System, settings: Mapping[str, Any]) -> None:
    """Set what one level of a factor sets, as far as it concerns the system."""
    for path, value in settings.items():
        owner = system_of(path)
        if owner is None:
            if section_of(path) in tables or table_of(path) != "operations":
                tables[section_of(path)][key_of(path)] = value
        elif owner in ("*", system.name):
            if names_place(path):
                tables["place"]["name"] = value
            elif names_agents(path):
                tables["place"]["agents"] = listed(value)
            else:
                tables["system"][key_of(path)] = value


def _infeasible(study: Study, system: System, levels: Mapping[str, Level], tables: Tables) -> str:
    """Why a crossing cannot or must not be run; empty if it can."""
    for exclusion in study.exclude:
        there: Mapping[str, Level] = {**levels, "system": system.name}
        if all(among(there.get(path), wanted) for path, wanted in exclusion.when.items()):
            return exclusion.reason
    if reason := jobs.impossible(system, tables, corpora.family_of(tables.get("corpus", {}))):
        return reason
    if reason := roles.unwritable(system, tables):
        return reason
    if reason := _unordered(study, system, tables):
        return reason
    wrong = list(load_table.problems(tables["load"]))
    if "queries" in tables:
        cannot = ENGINES[system.engine].can.cannot
        for feature in features(tables["queries"]):
            if feature in cannot:
                return f"{system.engine} cannot do {feature}: {cannot[feature]}"
        wrong += registry.problems(tables["queries"])
    for role in tables.get("roles", {}).values():
        wrong += registry.problems(role["queries"]) if role["does"] == "read" else ()
    return "; ".join(sentence for _, sentence in wrong)


def _unordered(study: Study, system: System, tables: Tables) -> str:
    """Why documents cannot be put in over several connections; empty if they can."""
    connections = tables["ingest"].get("connections", 1)
    if connections == 1 or study.agreement.require in ("totals", "none"):
        return ""
    if system.engine not in ENGINES or ENGINES[system.engine].can.numbered:
        return ""
    return (
        f"{system.engine} breaks ties by the order of ingest, which {connections} connections do "
        f'not keep, and the study requires the same "{study.agreement.require}"; '
        'put documents in over one, or require "totals"'
    )


def _named(treatments: Sequence[Treatment], step: str | None) -> Iterator[Treatment]:
    """With ids t01, t02, ... in the order of crossing, and labels of what varies.

    ``step``: the path of the steps of a sweep, which are in the label and not in the subject.
    """
    varying = [
        path
        for path in dict.fromkeys(path for t in treatments for path in t.levels)
        if path != step
        and len({(type(t.levels.get(path)), t.levels.get(path)) for t in treatments}) > 1
    ]
    short = _short([*varying, *([step] if step else [])])
    width = max(2, len(str(len(treatments))))
    for number, t in enumerate(treatments, 1):
        said = {
            path: str(level) if path == "system" else f"{short[path]}={_plain(level)}"
            for path, level in t.levels.items()
            if path in short
        }
        label = " ".join(said[path] for path in short if path in said) or t.system
        subject = " ".join(said[path] for path in varying if path in said) or t.system
        name = f"t{number:0{width}d}"
        yield msgspec.structs.replace(t, id=name, label=label, subject=subject)


def _short(paths: Sequence[str]) -> dict[str, str]:
    """The last part of each path where that says enough, else the path without "systems".

    A role's clients, its rate and what it asks could be taken for those of the readers, so they
    have its name.
    """
    last = [path.rsplit(".", 1)[-1] for path in paths]
    found = {}
    for path, end in zip(paths, last, strict=True):
        of_role = path.startswith("roles.")
        if of_role and (end in load_table.STEP_KEYS or asked_by(path.rpartition(".")[0])):
            found[path] = path.removeprefix("roles.")
        else:
            found[path] = end if last.count(end) == 1 or path.startswith("systems.") else path
    return found


def _plain(level: Level) -> str:
    """A level as labels have it: 100 and not 100.0, true and not True."""
    if isinstance(level, bool):
        return str(level).lower()
    whole = isinstance(level, float) and level == int(level) and abs(level) < 1e15
    return str(int(level)) if whole else str(level)


def _order(
    study: Study, treatments: Sequence[Treatment], twins: Sequence[Treatment]
) -> Iterator[Trial]:
    """Every treatment once a block, and the block's twin, in an order by lot; every second block
    has the order of the one before, backwards. So no machine that becomes slower within blocks can
    favour one of two treatments in all of them. (``_two``: nor can what comes back favour one of
    two that are all there is.)

    random.Random seeded by a text and its shuffle() are the same in every Python since 3.2.
    """
    width = max(2, len(str(study.replicates)))
    members: list[tuple[str, bool]] = []
    firsts: dict[str, list[str]] = {}
    rng = random.Random(f"searchbench plan {study.seed}")
    for block in range(1, study.replicates + 1):
        if study.steps is None:
            if block == 1:
                turns: list[Treatment | None] = [*treatments]
                turns += [None] if twins else []  # the place of a twin, whosever it is
                rng.shuffle(turns)
            elif len(turns) == 2:
                turns = _two(turns, block, rng)
            elif block % 2:
                turns = [*treatments, *([None] if twins else [])]
                rng.shuffle(turns)
            else:
                turns.reverse()
            members = [(twins[block - 1].id, True) if t is None else (t.id, False) for t in turns]
        elif all(t.attach for t in treatments):
            if block == 1:
                firsts = _by_lot(treatments, study.steps.path, rng)
            each = one_pass([*firsts], block, rng)
            if block > 1:
                was = {step: at for at, step in enumerate(firsts)}  # in the first pass
                moved = {step: at - was[step] for at, step in enumerate(each)}
                firsts = {s: _two(own, block, rng, moved[s]) for s, own in firsts.items()}
            members = [(name, False) for step in each for name in firsts[step]]
        elif block % 2:
            members = [(name, False) for name in _together(treatments, rng)]
        else:
            members = members[::-1]
        for treatment, twin in members:
            name = f"b{block:0{width}d}-{treatment}{'-aa' if twin else ''}"
            yield Trial(name, block, treatment, twin)


def _two(last: Sequence[Turn], block: int, rng: random.Random, moved: int = 0) -> list[Turn]:
    """The order of two (or more) in a block, after the ``last``: a b, b a, b a, then by lot.

    So what comes back after some time, and lasts for some, meets one and the same of two in all of
    the first three blocks with no period; in a b, b a, a b it would with one of four trials.
    ``moved``: by how many pairs this one comes later than in the first block, which counts where
    several are driven in turn. Of more than two, the third order is by lot.
    """
    if block == 2 or (block == 3 and len(last) == 2 and moved % 2):
        return [*last[::-1]]
    if block == 3 and len(last) == 2:
        return [*last]
    return rng.sample(last, len(last))


def _traced(study: Study, treatments: Sequence[Treatment]) -> Iterator[Trial]:
    """Every treatment once more after all blocks, if what it reads and writes is asked for."""
    for treatment in treatments if study.io_sizes else ():
        yield Trial(f"io-{treatment.id}", study.replicates + 1, treatment.id, traced=True)


def _by_lot(treatments: Sequence[Treatment], step: str, rng: random.Random) -> dict[str, list[str]]:
    """By step all subjects. Each is first as often as any other, in steps that are drawn by lot: if
    they took turns, something that comes back every few steps would meet one of them alone.

    For systems that run anyway: nothing is started, so going from one to another costs nothing.
    """
    found: dict[str, list[str]] = {}
    for t in treatments:
        found.setdefault(repr(t.levels[step]), []).append(t.id)
    firsts = [i % max(map(len, found.values())) for i in range(len(found))]
    rng.shuffle(firsts)
    return {
        key: [*own[first % len(own) :], *own[: first % len(own)]]
        for first, (key, own) in zip(firsts, found.items(), strict=True)
    }


def one_pass(steps: Sequence[Step], block: int, rng: random.Random) -> list[Step]:
    """The order of the steps in a block, of systems that run through all blocks.

    The second block goes backwards, so time does not pass for load; the middle one of an odd
    number, which would be in the middle backwards too, changes places with its neighbour there. All
    later ones are drawn by lot: whatever comes back, after whatever time, keeps step with no order
    that was fixed before.
    """
    if block > 2:
        return rng.sample(steps, len(steps))
    found = [*steps]
    if block == 2:
        found.reverse()
        middle = len(found) // 2
        if len(found) % 2 and middle:
            found[middle - 1 : middle + 1] = found[middle], found[middle - 1]
    return found


def _together(treatments: Sequence[Treatment], rng: random.Random) -> Iterator[str]:
    """Subjects in random order, the steps of each together on one warm system.

    In the order of the study; every second block is the one before backwards: each block starts its
    systems anew, so in one order their age would grow with the load.
    """
    shuffled = _grouped((t.subject, t.id) for t in treatments)
    rng.shuffle(shuffled)
    for members in shuffled:
        yield from members


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The second of each pair, those with the same first together."""
    groups: dict[str, list[str]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return list(groups.values())


def _twins(study: Study, treatments: Sequence[Treatment]) -> Iterator[Treatment]:
    """Block by block the treatment that has an A/A twin; nothing without a control.

    The one that the study names, else all in turn, in an order drawn by lot: one that is quieter
    than the rest must not speak for them.
    """
    if not study.control.aa:
        return
    wanted = study.control.treatment
    ids = [t.id for t in treatments]
    if wanted is not None and wanted not in ids:
        sentence = f"[control]: there is no treatment `{wanted}`"
        raise StudyError([Complaint(study.path, 0, 0, sentence, nearest(wanted, ids))])
    turns = [t for t in treatments if wanted in (None, t.id)]
    random.Random(f"searchbench twins {study.seed}").shuffle(turns)
    for block in range(study.replicates):
        yield turns[block % len(turns)]


def _judging(study: Study, treatments: Sequence[Treatment]) -> Judging:
    closed = all(t.load.get("kind", "closed") == "closed" for t in treatments)
    usual = "throughput" if closed else "response_p99"
    if study.operations:  # a rate would have the set-up in it
        usual = "service_p50" if closed else "response_p50"
    if study.jobs:
        usual = f"{next(iter(study.jobs))}_s"
    factors: dict[str, list[Level]] = {}
    if len(study.systems) > 1:
        factors["system"] = [s.name for s in study.systems]
    factors |= {factor.path: list(factor.levels) for factor in study.asking}
    for factor in (*study.factors, *([study.steps] if study.steps else [])):
        factors[factor.path] = list(factor.levels)
    searched = study.measure == "capacity"
    return Judging(
        question=study.question,
        analysis=study.analysis,
        held=study.held if isinstance(study.held, str) else dict(study.held),
        measure=study.measure,
        metric=study.metric or usual,
        agreement=study.agreement,
        control=(study.control.treatment or "in turn") if study.control.aa else None,
        replicates=study.replicates,
        ingest=study.ingest,
        factors=factors,
        promises=study.promises,
        abort=bool(study.load.get("abort")),
        effort=float(study.load.get("effort", 1.0)) if searched else 1.0,
        command=study.command,
        first_look=study.first_look,
        jobs=tuple(study.jobs),
        driven=study.driven,
    )
