"""The jobs of a study: ``jobs = ["import", "backup"]``, or a table for each; complaints with both.

Each system has the levers of its own engine's job of that name; what another engine calls a lever
is nothing to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from searchbench.engines import ENGINES
from searchbench.engines.engine import Level
from searchbench.engines.job import Job
from searchbench.spec import SpecKey, nearest, show
from searchbench.study.model import System, table_of
from searchbench.study.positions import Source
from searchbench.study.systems import spec_of

Tables = dict[str, dict[str, Any]]


def read_jobs(source: Source, systems: Mapping[str, System]) -> Tables:
    """The keys of each job that are known and hold what they may, by "jobs.NAME", in order."""
    given = source.tables.get("jobs", {})
    if isinstance(given, list):
        names = _listed(source, given)
    else:
        names = list(source.table("jobs"))
        if "jobs" in source.tables and not names:
            source.at_key(("jobs",), "[jobs] names no job", 'as in jobs = ["backup"]')
    found = {}
    for name in names:
        _check(source, name, systems.values(), names)
        keys = keys_of(name, systems.values())
        listed = isinstance(given, list)
        found[f"jobs.{name}"] = {} if listed else source.checked(("jobs", name), keys)
    return found


def keys_of(name: str, systems: Iterable[System]) -> list[SpecKey]:
    """The levers of a job in any of the systems."""
    found: dict[str, SpecKey] = {}
    for system in systems:
        if (job := job_of(system, name)) is not None:
            found |= {each.name: spec_of(each) for each in job.parameters}
    return list(found.values())


def job_of(system: System, name: str) -> Job | None:
    """The job of that name that a system's engine has."""
    jobs = ENGINES[system.engine].jobs if system.engine in ENGINES else ()
    return next((job for job in jobs if job.name == name), None)


def levels_of(system: System, tables: Tables) -> dict[str, dict[str, Level]]:
    """Take the tables of jobs out of those of a crossing; the levers of each, complete."""
    found = {}
    for section in [name for name in tables if table_of(name) == "jobs"]:
        given, name = tables.pop(section), section.removeprefix("jobs.")
        job = job_of(system, name)
        levers = job.parameters if job is not None else ()
        found[name] = {each.name: given.get(each.name, each.default) for each in levers}
    return found


def impossible(system: System, tables: Tables, family: str) -> str:
    """Why a system cannot do the jobs of a crossing; empty if it can."""
    for name in tables.get("jobs", {}):
        job = job_of(system, name)
        if job is None:
            return f"{system.engine} has no job {name}"
        if job.families and family not in job.families:
            wanted = " or ".join(f'family = "{each}"' for each in job.families)
            return f"the job {name} of {system.engine} needs a [corpus] with {wanted}"
    return ""


def _listed(source: Source, given: list[Any]) -> list[str]:
    found: list[str] = []
    for i, name in enumerate(given):
        at = ("jobs", str(i))
        if not isinstance(name, str):
            source.at_value(at, f"a job is named by a text, not {show(name)}")
        elif name in found:
            source.at_value(at, f"the job {show(name)} is named twice")
        else:
            found.append(name)
    if not given:
        source.at_value(("jobs",), "`jobs` is an empty list; name at least one")
    return found


def _check(source: Source, name: str, systems: Iterable[System], names: list[str]) -> None:
    """Complain of a job that nobody has, or that stands where it cannot be done."""
    at = ("jobs", str(names.index(name))) if _is_list(source) else ("jobs", name)
    report = source.at_value if _is_list(source) else source.at_key
    systems = list(systems)
    found = [job for system in systems if (job := job_of(system, name)) is not None]
    if not found and systems:
        known = {job.name for s in systems if s.engine in ENGINES for job in ENGINES[s.engine].jobs}
        engines = " or ".join(dict.fromkeys(s.engine for s in systems))
        hint = nearest(name, known) if known else ""
        report(at, f"{engines} has no job {show(name)}", hint)
        return
    before = names[: names.index(name)]
    for job in found:
        if job.fills and before:
            report(at, f"the job {show(name)} begins with an empty system, so it must come first")
        if job.after and not set(job.after) & set(before):
            needed = " or ".join(map(show, job.after))
            report(at, f"the job {show(name)} comes after {needed}, which is not named before it")


def _is_list(source: Source) -> bool:
    return isinstance(source.tables.get("jobs"), list)
