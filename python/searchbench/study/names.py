"""What the paths of factors may name in a study, and whether a value fits there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from searchbench import corpora
from searchbench.engines import ENGINES
from searchbench.spec import SpecKey, nearest, nearest_key, show
from searchbench.study import jobs
from searchbench.study.keys import PLACED_KEYS, PUT_IN_KEYS, REQUEST_KEYS, SYSTEM_KEYS
from searchbench.study.model import System, asked_by
from searchbench.study.positions import Path, Source, choice_hint
from searchbench.study.systems import spec_of
from searchbench.workload.load_table import SPEC_KEYS as LOAD_KEYS
from searchbench.workload.load_table import WHOLE_KEYS
from searchbench.workload.operations.keys import OPERATION_KEYS
from searchbench.workload.queries.registry import SPEC_KEYS as QUERY_KEYS
from searchbench.workload.roles import ROLE_KEYS, own_first

# Ranges that a level can stand for: one text, number or truth value.
_SINGLE = {
    "text", "integer", "integers", "number", "size", "boolean", "path", "paths", "texts"
}  # fmt: skip
_TABLES: Mapping[str, tuple[SpecKey, ...]] = {
    "queries": QUERY_KEYS,
    "requests": REQUEST_KEYS,
    "load": LOAD_KEYS,
    "ingest": PUT_IN_KEYS,
}

_FIXED = ("key", "answer", "while_inserting", "statement_times")
# Of tables [TABLE.NAME] what one is, and its keys that may vary. With another `key` or `answer` an
# operation would be another question, and a role that does something else another role; what
# inserts can do to an answer is no choice. What a role asks is a table of its own.
_NAMED: Mapping[str, tuple[str, Mapping[str, SpecKey]]] = {
    "operations": (
        "an operation",
        {k.name: k for k in OPERATION_KEYS if k.name not in _FIXED},
    ),
    "roles": (
        "a role",
        {key.name: key for key in ROLE_KEYS if key.name not in ("does", "queries")},
    ),
}
_PLACED = {key.name: key for key in SYSTEM_KEYS if key.name in ("place", "agents")}


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names: a key, and the system that has it ("" outside of systems).

    ``key`` None: of the corpus, which checks its own levels, as it knows what goes together.
    """

    key: SpecKey | None
    owner: str = ""


class Names:
    """What factor paths may name in one study. ``systems``: those that are right, by name."""

    def __init__(self, source: Source, systems: Mapping[str, System], named: set[str]) -> None:
        self.source = source
        self.systems = systems
        self.named = named
        self.verbatim = "requests" in source.tables

    def targets(self, at: Path, path: str, *, linked: bool = False) -> list[Target]:
        """What a path names; empty, with a complaint at the key ``at``, if nothing.

        ``linked``: a value may be a list or a table, because the level has a name of its own.
        """
        table, _, rest = path.partition(".")
        if rest and table in ("corpus", *_TABLES):
            return self._of_table(at, table, rest, linked)
        if rest and table == "systems":
            return self._of_systems(at, path, rest)
        if rest and table == "jobs":
            return self._of_jobs(at, path, rest)
        if rest and table in PLACED_KEYS:
            return self._of_places(at, path, table, rest)
        if rest and table in _NAMED:
            return self._of_named(at, path, table, rest, linked=linked)
        self.source.at_key(
            at,
            f"`{path}` names nothing that can be a factor",
            'say "load.KEY", "queries.KEY", "corpus.KEY", "requests.KEY", "ingest.KEY", '
            '"systems.NAME.PARAMETER", "systems.*.PARAMETER", "places.NAME.KEY", '
            '"hosts.NAME.KEY", "storages.NAME.KEY", "jobs.NAME.LEVER", "operations.NAME.KEY" '
            'or "roles.NAME.KEY"; a '
            "name without a dot is for levels that are tables: "
            "{ name = ..., set = { PATH = VALUE, ... } }",
        )
        return []

    def check(self, at: Path, value: object, targets: list[Target], what: str) -> bool:
        """Whether a value fits all that its path names; complaints, after ``what``, if not."""
        fits = True
        for target in targets:
            if target.key is not None and (reason := target.key.mismatch(value)):
                of = f" of {target.owner}" if len(targets) > 1 else ""
                hint = choice_hint(target.key, value)
                self.source.at_value(at, f"{what}: {reason}{of}", hint)
                fits = False
        return fits

    def _of_table(self, at: Path, table: str, rest: str, linked: bool) -> list[Target]:
        keys: Mapping[str, SpecKey] = {key.name: key for key in _TABLES.get(table, ())}
        if table == "corpus":
            family = str(self.source.table(table).get("family", "files"))
            keys = corpora.keys_of(family) if family in corpora.FAMILIES else {}
        hint = ""
        if (table == "requests") != self.verbatim and table != "load":
            other = "there are [requests] in its place" if self.verbatim else "there is none"
            wrong = f": this study has no [{table}]; {other}"
        elif not keys:
            return []  # complained about where the family stands
        elif rest not in keys:
            wrong, hint = f": [{table}] has no key `{rest}`", nearest_key(rest, keys.values())
        elif table == "load" and rest in WHOLE_KEYS:
            wrong = " cannot be a factor: it says what the whole study measures"
        elif keys[rest].kind not in _SINGLE and not linked:
            wrong = " cannot be a factor: its values are lists or tables"
        else:
            return [Target(None if table == "corpus" else keys[rest])]
        self.source.at_key(at, f"`{table}.{rest}`{wrong}", hint)
        return []

    def _of_systems(self, at: Path, path: str, rest: str) -> list[Target]:
        source = self.source
        name, parameter = self._split(rest)
        if name != "*" and name not in self.named:
            source.at_key(at, f"`{path}`: there is no system `{name}`", nearest(name, self.named))
            return []
        systems = [s for s in self.systems.values() if name in ("*", s.name)]
        if self.verbatim and systems:
            source.at_key(at, f"`{path}`: {systems[0].name} has no parameters that can be varied: "
                          "requests are sent to it as they are")  # fmt: skip
            return []
        if parameter in _PLACED:
            return [Target(_PLACED[parameter], system.name) for system in systems]
        found: list[Target] = []
        lacking: list[tuple[str, str]] = []
        for system in systems:
            known = {p.name: p for p in ENGINES[system.engine].parameters}
            if parameter in known:
                found.append(Target(spec_of(known[parameter]), system.name))
            else:
                lacking.append((system.engine, nearest(parameter, known)))
        for engine, hint in lacking:
            if found:
                hint = f'say "systems.{found[0].owner}.{parameter}"'
            source.at_key(at, f"`{path}`: {engine} has no parameter `{parameter}`", hint)
        return found

    def _of_jobs(self, at: Path, path: str, rest: str) -> list[Target]:
        name, _, lever = rest.rpartition(".")
        given = self.source.tables.get("jobs", {})
        there = [str(each) for each in given] if isinstance(given, list | Mapping) else []
        keys = {key.name: key for key in jobs.keys_of(name, self.systems.values())}
        if name not in there:
            hint = nearest(name, there) if there else "this study has no [jobs.NAME]"
            self.source.at_key(at, f"`{path}`: there is no job `{name}`", hint)
        elif lever in keys:
            return [Target(keys[lever])]
        elif any(jobs.job_of(system, name) for system in self.systems.values()):
            self.source.at_key(at, f"`{path}`: the job {name} has no lever `{lever}`",
                               nearest(lever, keys))  # fmt: skip
        return []

    def _of_asked(
        self, at: Path, path: str, key: str, role: object, *, linked: bool
    ) -> list[Target]:
        """A key of what a role asks."""
        keys = {each.name: each for each in QUERY_KEYS}
        does = role.get("does") if isinstance(role, Mapping) else None
        if does != "read":
            wrong = f': only a role with does = "read" asks queries, and this one has {show(does)}'
            self.source.at_key(at, f"`{path}`{wrong}")
        elif key not in keys:
            self.source.at_key(at, f"`{path}`: [queries] of a role have no key `{key}`",
                               nearest(key, keys))  # fmt: skip
        elif keys[key].kind not in _SINGLE and not linked:
            self.source.at_key(at, f"`{path}` cannot be a factor: its values are lists or tables",
                               "as a level of a linked factor they can")  # fmt: skip
        else:
            return [Target(keys[key])]
        return []

    def _of_named(
        self, at: Path, path: str, table: str, rest: str, *, linked: bool
    ) -> list[Target]:
        name, _, key = rest.rpartition(".")
        there, (one, keys) = self.source.table(table), _NAMED[table]
        role = asked_by(f"{table}.{name}")
        if role in there:
            return self._of_asked(at, path, key, there[role], linked=linked)
        if name not in there:
            hint = nearest(name, there) if there else f"this study has no [{table}.NAME]"
            self.source.at_key(at, f"`{path}`: there is no {one.split()[1]} `{name}`", hint)
        elif key not in keys:
            own = there[name].get("does") if isinstance(there[name], Mapping) else None
            hint = nearest_key(key, own_first(keys.values(), own))
            self.source.at_key(at, f"`{path}`: `{key}` of {one} cannot be a factor", hint)
        else:
            return [Target(keys[key])]
        return []

    def _of_places(self, at: Path, path: str, table: str, rest: str) -> list[Target]:
        name, _, key = rest.rpartition(".")
        there, keys = self.source.table(table), {each.name: each for each in PLACED_KEYS[table]}
        what = table.removesuffix("s")
        if not name:
            self.source.at_key(at, f"`{path}` names no key of a {what}", f"say `{table}.NAME.KEY`")
        elif name not in there:
            hint = nearest(name, there) if there else f"this study has no [{table}.NAME]"
            self.source.at_key(at, f"`{path}`: there is no {what} `{name}`", hint)
        elif key not in keys:
            self.source.at_key(at, f"`{path}`: a {what} has no key `{key}`", nearest(key, keys))
        else:
            return [Target(keys[key])]
        return []

    def _split(self, rest: str) -> tuple[str, str]:
        """NAME.PARAMETER in two; a name may have dots, and the longest that is known is meant."""
        for name in sorted(("*", *self.named), key=len, reverse=True):
            if rest.startswith(f"{name}."):
                return name, rest[len(name) + 1 :]
        name, _, parameter = rest.rpartition(".")
        return name or rest, parameter
