"""[roles.NAME] of a study: what goes on beside the readers, with complaints of what cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from searchbench.corpora.corpus import Schema
from searchbench.engines import ENGINES
from searchbench.engines.engine import INGEST
from searchbench.engines.job import OPENING
from searchbench.engines.write import TakesWrites
from searchbench.errors import Unsupported
from searchbench.spec import nearest, show
from searchbench.study.known import at_most
from searchbench.study.model import QUERIES, Study, System, asked_by, table_of
from searchbench.study.plan import Plan, Treatment
from searchbench.study.positions import Source
from searchbench.study.tables import Given
from searchbench.workload import changes, reading, roles
from searchbench.workload.load_table import LONGEST_S, WARMUP_SHARE, longest_window_s
from searchbench.workload.loads import open_load
from searchbench.workload.queries import registry
from searchbench.workload.queries.registry import features
from searchbench.workload.shape import stages_of

Tables = dict[str, dict[str, Any]]
_ONCE = (INGEST.name, OPENING.name)


def read_roles(source: Source) -> Tables:
    """The keys of each role that are known and hold what they may, by "roles.NAME"."""
    names = source.table("roles")
    if "roles" in source.tables and not names:
        source.at_key(("roles",), "[roles] names no role", "as in [roles.writer]")
    found = {}
    for name in names:
        if name == roles.READERS or name.endswith((roles.WATCHER, QUERIES)):
            hint = "[queries] and [load] are the readers" if name == roles.READERS else ""
            source.at_key(("roles", name), f"a role cannot be called {show(name)}", hint)
        found[f"roles.{name}"] = role = source.checked(
            ("roles", name),
            roles.own_first(roles.ROLE_KEYS, source.table("roles", name).get("does")),
        )
        if "queries" in role:
            role["queries"] = source.checked(("roles", name, "queries"), registry.SPEC_KEYS)
        elif "queries" in source.table("roles", name):
            role["queries"] = {}  # which has been complained of
    return found


def queries_of(of_roles: Tables) -> Tables:
    """The tables of what roles ask, by "roles.NAME.queries"; factors put levels into these."""
    return {
        f"{section}{QUERIES}": dict(table["queries"])
        for section, table in of_roles.items()
        if isinstance(table.get("queries"), Mapping)
    }


def check_roles(given: Given, names: Iterable[str], systems: Mapping[str, System]) -> None:
    """Complain of roles whose keys do not go together, and of systems that cannot take part."""
    source, writers, faults = given.source, list[str](), list[str]()
    for section in names:
        first = given.first(section)
        own = section.removeprefix("roles.")
        wrong = [(k, said.replace("NAME", own)) for k, said in roles.problems(first.table)]
        for key, sentence in wrong:
            at = first.at.get(key)
            place = ("roles", section.removeprefix("roles."))
            source.at_value(at, sentence) if at else source.at_key(place, sentence)
        for variant in given.others(section, first) if not wrong else ():
            given.complain(section, variant, roles.problems(variant.table))
        given.files(section, "times")
        if first.table.get("does") == "read" and f"{section}{QUERIES}" in given.tables:
            _check_queries(given, f"{section}{QUERIES}")
        if first.table.get("does") == "write":
            writers.append(section.removeprefix("roles."))
        if first.table.get("does") == "fault":
            faults.append(section.removeprefix("roles."))
        reasons = [impossible(system, first.table) for system in systems.values()]
        # A job that some have is left out of the others' crossings, and so is what some can answer.
        lenient = ("job", "read")
        reads = first.table.get("does") == "read"
        attached = not reads and any(system.attach for system in systems.values())
        if all(reasons) or attached or first.table.get("does") not in lenient:
            for reason in dict.fromkeys(filter(None, reasons)):
                source.at_key(("roles", section.removeprefix("roles.")), reason)
    if len(writers) > 1:
        source.at_key(("roles", writers[1]), f"{writers[0]} writes already; a trial has one writer "
                      "(several connections: `clients` or `connections`)")  # fmt: skip
    if len(faults) > 1:
        source.at_key(("roles", faults[1]), f"{faults[0]} is a fault already; a trial can have "
                      "only one, so that it is known what caused what")  # fmt: skip


def _check_queries(given: Given, section: str) -> None:
    """Complain of what a role asks, as of [queries], with every level."""
    first = given.first(section)
    wrong = [*registry.problems(first.table)]
    given.complain(section, first, wrong)
    for variant in given.others(section, first) if not wrong else ():
        given.complain(section, variant, registry.problems(variant.table))
    given.files(section, "file", "files")


def impossible(system: System, table: Mapping[str, Any]) -> str:
    """Why a system cannot have a role; empty if it can."""
    engine, does = ENGINES.get(system.engine), table.get("does")
    if engine is None:
        return ""
    if system.attach and does != "read":
        return (f"{system.name} runs already, and roles change its documents or its processes: "
                "they are only for systems that searchbench starts")  # fmt: skip
    if does == "read":
        cannot = engine.can.cannot
        for feature in features(table.get("queries") or {}):
            if feature in cannot:
                return f"{system.engine} cannot do {feature}: {cannot[feature]}"
    if does == "fault" and not engine.can.keeps_index:
        return f"{system.engine} keeps no index: it would be empty when it is started again"
    if does in ("write", "publish") and not isinstance(engine, TakesWrites):
        able = ", ".join(n for n, each in ENGINES.items() if isinstance(each, TakesWrites))
        return (f"{system.engine} has not declared how documents are changed while it is asked; "
                f"engines that have: {able}")  # fmt: skip
    if does == "job" and (job := table.get("job")):
        known = [each.name for each in engine.jobs if each.name not in _ONCE and not each.fills]
        if job not in known:
            return f"{system.engine} has no job {show(job)} that can be done while it is asked" + (
                f": {nearest(str(job), known)}" if known else ""
            )
    return ""


def unwritable(system: System, tables: Tables) -> str:
    """Why a system cannot have the roles of a crossing; empty if it can."""
    if tables.get("roles") and tables.get("place", {}).get("cold", "no") != "no":
        return ("a cold system gives its answers after the drive, and with roles its documents "
                "have changed by then: leave `cold` out")  # fmt: skip
    for table in tables.get("roles", {}).values():
        if roles.is_idle(table) or table["does"] not in ("read", "job", "fault"):
            continue
        if reason := impossible(system, table):
            return reason
        if table["does"] == "fault" and (reason := _nobody(system, tables, str(table["of"]))):
            return reason
    engine: object = ENGINES.get(system.engine)
    if not isinstance(engine, TakesWrites):
        return ""
    every = tables.get("roles", {}).values()
    writers = [t for t in every if t["does"] == "write"]
    cannot = engine.cannot_write(tables["system"]) if writers else {}
    if any(t["does"] == "publish" and not roles.is_idle(t) for t in every) and "publish" in cannot:
        return cannot["publish"]
    return next((why for kind, why in cannot.items() for t in writers if t.get(kind)), "")


def _nobody(system: System, tables: Tables, name: str) -> str:
    """That a system, with these levers, has no process of this name; empty where it has."""
    if name == roles.SERVER:
        return ""
    try:
        service = ENGINES[system.engine].service(tables["system"], Schema(()))
    except (Unsupported, ValueError, LookupError):
        return ""  # what is wrong with the levers is said of them
    names = [each.name for each in service.companions]
    if name in names:
        return ""
    others = f", {', '.join(names)}" if names else ""
    return f"{system.name} has no process {show(name)} here; it has: {roles.SERVER}{others}"


def go_together(source: Source, study: Study) -> None:
    """Complain of what does not go with roles."""
    if not study.roles:
        return
    at = ("roles",)
    if study.measure == "sweep":
        sentence = (
            "roles are for trials and for capacity searches, and this is a sweep: its steps share "
            "one system, and what is written in one step would be there in the next; let "
            '"load.clients" or "load.rate_per_s" be a factor'
        )
        source.at_key(at, sentence)
    asks = study.operations or "queries" in source.tables
    if not asks and not any(map(_of_queries, _varied(study))):
        source.at_key(at, "roles go on beside readers: give [queries] or [operations.NAME]")
    reader = next((name for name, t in study.roles.items() if t.get("does") == "read"), "")
    if study.operations and reader:
        source.at_key(("roles", reader), "a role that reads asks queries, and goes on beside "
                      "[queries], not beside [operations.NAME]")  # fmt: skip
    if study.jobs:
        source.at_key(("jobs",), "`jobs` are done before anything is asked; a job beside the "
                      'readers is a role: does = "job"')  # fmt: skip
    for name, table in study.roles.items() if study.measure == "trials" else ():
        if table.get("does") == "fault" and not _has(study, name, "after_s"):
            source.at_key(("roles", name), roles.AFTER_A_WHILE)
    if study.measure == "capacity":
        _in_a_search(source, study)
    elif "warmup_s" not in study.load and "load.warmup_s" not in _varied(study):
        source.at_key(("load",), "with roles the window must be known beforehand: give `warmup_s`")
    elif open_load(_single(study.load), study.base).stop_ns is None:
        source.at_key(("load",), "with roles the window must have a length: give `seconds`")
    if study.load.get("machines"):
        alone = "roles are driven from this machine: leave `machines` out"
        source.at_value(("load", "machines"), alone)
    if study.agreement.capture == "after":
        source.at_value(("agreement", "capture"), "with roles the answers before and after the "
                        'drive are kept in any case; leave capture = "after" out')  # fmt: skip
    only_read = all(table.get("does") == "read" for table in study.roles.values())
    if study.ingest == "as-found" and not only_read:
        source.at_value(
            ("ingest", "index"),
            "roles change the index, and an index as found is "
            "not ours to change: use another value here, or leave the roles out",
        )


def _in_a_search(source: Source, study: Study) -> None:
    """Complain of what a capacity search cannot have, though trials can."""
    if "warmup_s" not in study.load and "load.warmup_s" not in _varied(study):
        source.at_key(("load",), "with roles each trial of a search begins with a system that was "
                      "just started: give `warmup_s`, so long that it is warm then")  # fmt: skip
    for name, table in study.roles.items():
        does, at = table.get("does"), ("roles", name)
        what, rate = ("requests", "rate_per_s") if does == "read" else ("writes", "documents_per_s")
        shapes = ("stages", "times", "speed")
        if shaped := next((key for key in shapes if _has(study, name, key)), ""):
            source.at_key(
                at,
                "the trials of a capacity search are of many lengths, and each has to have the "
                f"same {what}; give `{rate}` in place of `{shaped}`",
            )
        passing = any(_has(study, name, key) for key in ("after_s", "for_s"))
        if does == "fault" and (passing or table.get("of", roles.SERVER) == roles.SERVER):
            source.at_key(
                at,
                "in a capacity search a fault lasts for all of each trial, and is of a process "
                "without which the service still answers: give `of`, and leave `after_s` and "
                "`for_s` out; how long until answers are normal is for trials",
            )
        elif does == "job" and not _has(study, name, "every_s"):
            source.at_key(
                at,
                "the trials of a capacity search are of many lengths, so a job that is done "
                "once takes another share of each: give `every_s`",
            )
        elif float(table.get("every_s") or 0.0) > LONGEST_S:
            source.at_value((*at, "every_s"), "each trial of a capacity search is as long as "
                            f"`every_s`, or several times that: at most {LONGEST_S:g}")  # fmt: skip


def _has(study: Study, name: str, key: str) -> bool:
    """Is a key of a role given or varied?"""
    return key in study.roles[name] or f"roles.{name}.{key}" in _varied(study)


def look(study: Study, plan: Plan) -> None:
    """StudyError where the clock of a writer or a reader does not fit the drive, or where a writer
    will lack documents, as far as that is known without reading any.

    Numbers of documents are those that a corpus has at most; where rows turn out not to fit, the
    run may still end for want of them.
    """
    source = Source(study.text, study.path, study.moved)
    sizes: dict[str, int | None] = {}
    for treatment in plan.treatments:
        for name, table in treatment.roles.items():
            if table["does"] not in ("read", "write") or roles.is_idle(table):
                continue
            key, why = _out_of_time(study, treatment, table)
            if why:
                _complain(source, study, treatment, (name, key), why)
            if why or table["does"] == "read":
                continue
            corpus = repr(treatment.corpus)
            if corpus not in sizes:
                sizes[corpus] = at_most(treatment.corpus, study.base)
            if (total := sizes[corpus]) is not None:
                key, why = _lacks(study, treatment, table, total)
                if why:
                    _complain(source, study, treatment, (name, key), why)
    source.finish()


def _lacks(
    study: Study, treatment: Treatment, table: Mapping[str, Any], total: int
) -> tuple[str, str]:
    """Which key of a writer asks for more documents than there are, and why; "" where none does."""
    kept = changes.kept_back(table, total)
    if kept >= total:
        return "documents", (f"{kept:,} documents are to be kept back, and there are only "
                             f"{total:,}: keep back fewer, or take a larger corpus")  # fmt: skip
    wanted = changes.most_due(table, *_span_ns(study, treatment), study.base)
    key = next(each for each in roles.PACES if table.get(each) is not None)
    why = changes.lacking(table, wanted, kept, total - kept)
    if why and wanted is not None and study.measure == "capacity":
        seconds = _span_ns(study, treatment)[1] / 1e9
        why = f"in the longest trial of the search ({seconds:.0f} s) {why}; or less `effort`"
    return key, why


def _out_of_time(study: Study, treatment: Treatment, table: Mapping[str, Any]) -> tuple[str, str]:
    """Which key of a writer or a reader, and why, does not fit the drive; "" where all do."""
    begin_ns, stop_ns = _span_ns(study, treatment)
    begin_s, stop_s = begin_ns / 1e9, stop_ns / 1e9
    if table.get("stages") is not None:
        seconds = sum(stage.seconds for stage in stages_of(table["stages"]))
        if abs(seconds - stop_s) > 0.001:
            remedy = "shorten them, or make the window longer"
            if seconds < stop_s:
                pause = f"[{stop_s - seconds:g}, 0]"
                nothing = "asks" if table["does"] == "read" else "writes"
                remedy = f"add a stage for the rest, as in {pause}, which {nothing} nothing"
            drive = f"the drive {stop_s:g} s (its window begins at {begin_s:g} s)"
            return "stages", f"the stages last {seconds:g} s, and {drive}: {remedy}"
    if table["does"] == "read" and table.get("every_s") is not None:
        due = reading.due_ns(table, begin_ns, stop_ns, 0, study.base)
        if due is not None and not len(due):
            key = "every_s" if table.get("after_s") is None else "after_s"
            return key, (f"the role first asks after the drive has ended, at {stop_s:g} s: make "
                         f"`{key}` smaller, or the window longer")  # fmt: skip
    if table.get("times") is not None:
        reads = table["does"] == "read"
        due = (
            reading.due_ns(table, begin_ns, stop_ns, 0, study.base)
            if reads
            else changes.due_ns(table, begin_ns, stop_ns, base=study.base)
        )
        if due is not None and not (due >= begin_ns).any():
            last = f", and the last is at {due[-1] / 1e9:g} s" if len(due) else ""
            window = f"the window, {begin_s:g} s to {stop_s:g} s of the drive"
            remedy = "take a longer file, or another `speed`"
            return "times", f"none of the times is in {window}{last}: {remedy}"
    return "", ""


def _span_ns(study: Study, treatment: Treatment) -> tuple[int, int]:
    """The beginning of a window and the end of a drive, in ns; of a search of its longest trial."""
    if study.measure != "capacity":
        return changes.span_ns(open_load(treatment.load, study.base))
    window = longest_window_s(float(study.load.get("effort", 1.0)))
    window = roles.whole_cycles_s(treatment.roles, window)
    warm = max(float(treatment.load.get("warmup_s") or 0.0), WARMUP_SHARE * window)
    return round(warm * 1e9), round((warm + window) * 1e9)


def _complain(
    source: Source, study: Study, treatment: Treatment, of: tuple[str, str], sentence: str
) -> None:
    """Complain where a role's key has its value: in its table, or at the level of a factor."""
    name, key = of
    path = f"roles.{name}.{key}"
    for factor in study.factors:
        if path in factor.paths:
            level = list(factor.levels).index(treatment.levels[factor.path])
            source.at_each(("factors", factor.path), level, sentence)
            return
    source.at_value(("roles", name, key), sentence)


def settle(tables: Tables) -> None:
    """Put what a crossing has of the roles under "roles", by name, defaults put in."""
    given = {name: tables.pop(name) for name in list(tables) if table_of(name) == "roles"}
    if given:
        asked = {asked_by(name): table for name, table in given.items() if asked_by(name)}
        own = {name.removeprefix("roles."): t for name, t in given.items() if not asked_by(name)}
        tables["roles"] = {
            name: roles.resolve({**table, "queries": asked[name]} if name in asked else table)
            for name, table in own.items()
        }


def _varied(study: Study) -> set[str]:
    return {path for factor in study.factors for path in factor.paths}


def _of_queries(path: str) -> bool:
    return path.startswith("queries.")


def _single(load: Mapping[str, Any]) -> dict[str, Any]:
    """Of a load whose steps are complained of elsewhere, the first."""
    return {k: v[0] if isinstance(v, list) and v and k != "slo" and k != "stages" else v
            for k, v in load.items()}  # fmt: skip
