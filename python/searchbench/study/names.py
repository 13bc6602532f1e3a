"""What the paths of factors may name in a study, and whether a value fits there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from searchbench import corpora
from searchbench.engines import ENGINES
from searchbench.spec import SpecKey, nearest
from searchbench.study.keys import REQUEST_KEYS
from searchbench.study.model import System
from searchbench.study.positions import Path, Source, choice_hint
from searchbench.study.systems import spec_of
from searchbench.workload.load_table import SPEC_KEYS as LOAD_KEYS
from searchbench.workload.load_table import WHOLE_KEYS
from searchbench.workload.queries.registry import SPEC_KEYS as QUERY_KEYS

# Ranges that a level can stand for: one text, number or truth value.
_SINGLE = {"text", "integer", "number", "boolean", "path", "paths", "texts"}
_TABLES: Mapping[str, tuple[SpecKey, ...]] = {
    "queries": QUERY_KEYS,
    "requests": REQUEST_KEYS,
    "load": LOAD_KEYS,
}


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names: a key, and the system that has it ("" outside of systems)."""

    key: SpecKey
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
        self.source.at_key(
            at,
            f"`{path}` names nothing that can be a factor",
            'say "load.KEY", "queries.KEY", "corpus.KEY", "requests.KEY", '
            '"systems.NAME.PARAMETER" or "systems.*.PARAMETER"; a name without a dot is for '
            "levels that are tables: { name = ..., set = { PATH = VALUE, ... } }",
        )
        return []

    def check(self, at: Path, path: str, value: object, targets: list[Target], what: str) -> bool:
        """Whether a value fits all that its path names; complaints, after ``what``, if not."""
        fits = True
        for target in targets:
            if reason := target.key.mismatch(value):
                of = f" of {target.owner}" if len(targets) > 1 else ""
                hint = choice_hint(target.key, value)
                self.source.at_value(at, f"{what}: {reason}{of}", hint)
                fits = False
        return fits

    def _of_table(self, at: Path, table: str, rest: str, linked: bool) -> list[Target]:
        source = self.source
        if (table == "requests") != self.verbatim and table != "load":
            other = "there are [requests] in its place" if self.verbatim else "there is none"
            source.at_key(at, f"`{table}.{rest}`: this study has no [{table}]; {other}")
            return []
        given = source.table(table)
        keys: Mapping[str, SpecKey]
        if table == "corpus":
            family = str(given.get("family", "files"))
            if family not in corpora.FAMILIES:
                return []  # complained about where the family stands
            keys = corpora.keys_of(family)
        else:
            keys = {key.name: key for key in _TABLES[table]}
        if rest not in keys:
            source.at_key(
                at, f"`{table}.{rest}`: [{table}] has no key `{rest}`", nearest(rest, keys)
            )
            return []
        if table == "load" and rest in WHOLE_KEYS:
            source.at_key(
                at, f"`load.{rest}` cannot be a factor: it says what the whole study measures"
            )
            return []
        if keys[rest].kind not in _SINGLE and not linked:
            source.at_key(
                at, f"`{table}.{rest}` cannot be a factor: its values are lists or tables"
            )
            return []
        # A corpus checks its own levels: it knows what goes together.
        return [Target(_ANYTHING if table == "corpus" else keys[rest])]

    def _of_systems(self, at: Path, path: str, rest: str) -> list[Target]:
        source = self.source
        name, parameter = self._split(rest)
        if name != "*" and name not in self.named:
            source.at_key(at, f"`{path}`: there is no system `{name}`", nearest(name, self.named))
            return []
        found = []
        for system in (s for s in self.systems.values() if name in ("*", s.name)):
            if self.verbatim:
                source.at_key(at, f"`{path}`: {system.name} has no parameters that can be varied: "
                              "requests are sent to it as they are")  # fmt: skip
                return []
            known = {p.name: p for p in ENGINES[system.engine].parameters}
            if parameter in known:
                found.append(Target(spec_of(known[parameter]), system.name))
                continue
            hint = nearest(parameter, known)
            having = [s.name for s in self.systems.values() if _has(s, parameter)]
            if name == "*" and having:
                hint = f'say "systems.{having[0]}.{parameter}"'
            source.at_key(at, f"`{path}`: {system.engine} has no parameter `{parameter}`", hint)
            if name != "*":
                return []
        return found

    def _split(self, rest: str) -> tuple[str, str]:
        """NAME.PARAMETER in two; a name may have dots, and the longest that is known is meant."""
        for name in sorted(("*", *self.named), key=len, reverse=True):
            if rest.startswith(f"{name}."):
                return name, rest[len(name) + 1 :]
        name, _, parameter = rest.rpartition(".")
        return name or rest, parameter


class _Anything(SpecKey):
    """Takes every level."""

    def mismatch(self, value: object) -> str | None:
        return None


_ANYTHING = _Anything("", "text")


def _has(system: System, parameter: str) -> bool:
    engine = ENGINES.get(system.engine)
    return engine is not None and any(p.name == parameter for p in engine.parameters)
