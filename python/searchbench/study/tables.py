"""What goes together in the tables [corpus], [queries], [requests] and [load], levels put in."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchbench import corpora
from searchbench.spec import SpecKey, near_file, show
from searchbench.study import positions
from searchbench.study.factors import Varied
from searchbench.study.keys import INGEST_KEYS, PUT_IN_KEYS, REQUEST_KEYS
from searchbench.study.model import System, key_of, keys_of, section_of
from searchbench.study.positions import Source
from searchbench.study.systems import is_url
from searchbench.workload import load_table
from searchbench.workload.load_table import STEP_KEYS
from searchbench.workload.queries import registry
from searchbench.workload.verbatim import classes

_METHOD = re.compile(r"[A-Z]+")


@dataclass(frozen=True, slots=True)
class Variant:
    """One of a study's tables with levels put in, and where each of its keys has its value.

    ``levels``: the keys that levels have put in.
    """

    table: dict[str, Any]
    at: dict[str, positions.Path]
    levels: frozenset[str]


@dataclass(frozen=True, slots=True)
class Given:
    """A study's tables by name, what its factors put into them, and where its files are.

    Those of places and storages are named "places.NAME" and "storages.NAME".
    """

    source: Source
    tables: dict[str, Any]
    varied: Sequence[Varied]
    base: Path

    def first(self, name: str) -> Variant:
        """The table with the first level of every factor."""
        given, at = self.tables[name], keys_of(name)
        set_ = [each for one in self.varied for each in settings_in(one, 0, name)]
        return Variant(
            given | {key: value for key, value, _ in set_},
            {key: (*at, key) for key in given} | {key: where for key, _, where in set_},
            frozenset(key for key, _, _ in set_),
        )

    def others(self, name: str, first: Variant) -> Iterator[Variant]:
        """The first variant with one factor at another level; ``at`` has what that sets."""
        for one in self.varied:
            for level in range(1, len(one.values)):
                if settings := list(settings_in(one, level, name)):
                    changed = {key: value for key, value, _ in settings}
                    at = {key: where for key, _, where in settings}
                    yield Variant(first.table | changed, at, frozenset(changed))

    def values(self, name: str, *keys: str) -> Iterator[tuple[positions.Path, object]]:
        """(position, value) of all that keys are given or varied to; lists and tables opened."""
        given, own = self.tables[name], keys_of(name)
        found: list[tuple[positions.Path, object]]
        found = [((*own, key), given[key]) for key in keys if key in given]
        for one in self.varied:
            for level in range(len(one.values)):
                found += [(at, v) for key, v, at in settings_in(one, level, name) if key in keys]
        for at, value in found:
            yield from opened(at, value)

    def complain(self, name: str, variant: Variant, wrong: Iterable[tuple[str, str]]) -> None:
        """Complain of values, by key."""
        for key, sentence in wrong:
            self.source.at_value(variant.at.get(key, (*keys_of(name), key)), sentence)

    def files(self, name: str, *keys: str) -> None:
        """Complain of files that do not exist."""
        for at, file in self.values(name, *keys):
            if isinstance(file, str) and not (self.base / file).is_file():
                self.no_file(at, file)

    def no_file(self, at: positions.Path, file: str) -> None:
        """Complain of one that does not exist, and name the nearest that does."""
        if (self.base / file).is_dir():
            self.source.at_value(at, f'"{file}" is a directory, and a file is expected')
            return
        hint = near_file(self.base / file, file)
        self.source.at_value(at, f'there is no file "{file}" in {self.base}', hint)


def opened(at: positions.Path, value: object) -> Iterator[tuple[positions.Path, object]]:
    """(position, value) of a value, or of each in a list or a table."""
    if isinstance(value, list):
        for i, each in enumerate(value):
            yield from opened((*at, str(i)), each)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from opened((*at, name), each)
    else:
        yield at, value


def settings_in(one: Varied, level: int, name: str) -> Iterator[tuple[str, Any, positions.Path]]:
    """(key, value, position) of what a level sets in the table of that name."""
    for path, value in one.factor.settings(level).items():
        if section_of(path) == name:
            yield key_of(path), value, one.values[level][path]


def given_tables(source: Source) -> dict[str, dict[str, Any]]:
    """The keys of each table that are known and hold what they may; complaints for the rest."""
    return {
        "corpus": source.table("corpus"),  # checked as a whole: its keys hang on its family
        "queries": source.checked(("queries",), registry.SPEC_KEYS),
        "requests": source.checked(("requests",), REQUEST_KEYS),
        "load": _load_with_steps(source),
        "ingest": source.checked(("ingest",), (*INGEST_KEYS, *PUT_IN_KEYS)),
    }


def _load_with_steps(source: Source) -> dict[str, Any]:
    """[load]; where a key that may be swept holds a list, its steps are looked at one by one."""
    table = source.table("load")
    swept = [key for key in STEP_KEYS if isinstance(table.get(key), list)]
    good = source.checked(("load",), load_table.SPEC_KEYS, elsewhere=swept)
    for key in load_table.SPEC_KEYS:
        if key.name not in swept:
            continue
        steps = table[key.name]
        if not steps:
            wrong = f"`{key.name}` is an empty list; a sweep has at least one step"
            source.at_value(("load", key.name), wrong)
        if right := [step for i, step in enumerate(steps) if _is_step(source, key, steps, i)]:
            good[key.name] = right
    if len(swept) > 1:
        source.at_key(("load", swept[1]), f"`{swept[0]}` (at {source.where(('load', swept[0]))}) "
                      f"and `{swept[1]}` are lists; a sweep has steps of one key")  # fmt: skip
        good.pop(swept[1], None)
    return good


def _is_step(source: Source, key: SpecKey, steps: Sequence[Any], i: int) -> bool:
    at = ("load", key.name, str(i))
    if reason := key.mismatch(steps[i]):
        source.at_value(at, f"step of a sweep: {reason}")
    elif steps[i] in steps[:i]:
        source.at_value(at, f"`{key.name}` has the step {show(steps[i])} twice")
    else:
        return True
    return False


def check_corpus(given: Given) -> None:
    """Complain of a corpus that is none, with every level."""
    source = given.source
    if "corpus" not in source.tables:
        source.at_key((), "a study needs a corpus",
                      '[corpus] with `files = "..."`, or with `family = "debian"`; or [requests], '
                      "for systems that run already")  # fmt: skip
        return
    first = given.first("corpus")
    family = str(first.table.get("family", "files"))
    for key, sentence in corpora.complaints(first.table):
        if key not in first.table:
            source.at_key(("corpus",), sentence)
        elif family not in corpora.FAMILIES or key in corpora.keys_of(family):
            source.at_value(first.at[key], sentence)
        else:
            source.at_key(first.at[key], sentence)
    for variant in given.others("corpus", first):
        for key, sentence in corpora.complaints(variant.table):
            if key in variant.at:
                source.at_value(variant.at[key], sentence)
    for at, name in given.values("corpus", "files"):
        if isinstance(name, str) and not _exists(given.base, name):
            given.no_file(at, name)


def check_queries(given: Given) -> None:
    """Complain of queries that do not go together, with the first levels."""
    first = given.first("queries")
    given.complain("queries", first, registry.problems(first.table))
    given.files("queries", "file", "files")


def check_requests(given: Given, systems: Iterable[System]) -> None:
    """Complain of [requests] that say what is sent twice, or not at all."""
    source = given.source
    for table in ("corpus", "queries"):
        if table in source.tables:
            source.at_key(
                (table,),
                f"[requests] (at {source.where(('requests',))}) are sent as they are, in place of "
                f"a corpus and queries; leave [{table}] out",
            )
    first = given.first("requests")
    found: list[tuple[str, str]] = []
    path, method = first.table.get("path"), first.table.get("method")
    if path is None and "file" not in source.table("requests") and "file" not in first.table:
        source.at_key(("requests",), "[requests] need a `file`, or one `path`",
                      'for example file = "access.log"')  # fmt: skip
    if path is not None and "file" in first.table:
        found.append(("path", "give `file` or `path`, not both"))
    if path is not None and "form" in first.table:
        found.append(("form", "`form` is for a file, and one `path` is asked"))
    by = first.table.get("classes")
    if isinstance(by, str) and (wrong := classes.problem(by)):
        found.append(("classes", wrong))
    if path is not None and by is not None:
        found.append(("classes", "`classes` is for a file, and one `path` is asked"))
    if isinstance(path, str):
        if not path.startswith("/"):
            found.append(("path", f'`path` must begin with "/", not {show(path)}'))
        found += [
            ("path", f"`path` is asked over HTTP, and {system.name} is at {address}")
            for system in systems
            for address in system.attach
            if is_url(address) and not address.startswith(("http://", "https://"))
        ]
    if isinstance(method, str) and not _METHOD.fullmatch(method):
        wanted = '`method` must be one of HTTP\'s in capitals, as in "GET"'
        found.append(("method", f"{wanted}, not {show(method)}"))
    given.complain("requests", first, found)
    given.files("requests", "file")


def check_load(given: Given) -> None:
    """Complain of a load whose keys do not go together, with the first levels."""
    source, load, first = given.source, given.tables["load"], given.first("load")
    given.complain("load", first, load_table.problems(first.table, first.levels))
    if first.table.get("find_capacity") and first.table.get("warmup_s") is not None:
        alone = "a capacity search chooses `warmup_s` itself unless it has roles; leave it out"
        given.complain("load", first, [("warmup_s", alone)] * ("roles" not in source.tables))
    given.files("load", "times")
    for i, sentence in load_table.promise_problems(load):
        source.at_each(("load", "slo"), i, sentence)
    swept = any(isinstance(load.get(key), list) for key in STEP_KEYS)
    if first.table.get("pause_s") and not swept:
        wrong = "`pause_s` is between the steps of a sweep: give `clients` or `rate_per_s` a list"
        given.complain("load", first, [("pause_s", wrong)])
    without_times = "path" in source.table("requests") and "times" not in first.table
    if without_times and load_table.kind_of(first.table) == "replay":
        source.at_key(("load",), "a replay sends requests when a log says, and one `path` has "
                      "no times; give a file of requests, or `times`")  # fmt: skip


def _exists(base: Path, name: str) -> bool:
    """A file, a folder, or a pattern that something matches."""
    if (base / name).exists():
        return True
    # A pattern may be absolute, which Path.glob() refuses.
    return bool(glob.glob(name, root_dir=base, recursive=True))  # noqa: PTH207
