"""What goes together in the tables [corpus], [queries], [requests] and [load], levels put in."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from searchbench import corpora
from searchbench.spec import SpecKey, nearest, show
from searchbench.study import addresses
from searchbench.study.keys import REQUEST_KEYS
from searchbench.study.model import System
from searchbench.study.positions import Source
from searchbench.study.varied import Variant, Varied, first_variant, other_variants, values_of
from searchbench.workload import load_table
from searchbench.workload.load_table import STEP_KEYS
from searchbench.workload.queries import registry

_METHOD = re.compile(r"[A-Z]+")


def given_tables(source: Source) -> dict[str, dict[str, Any]]:
    """The keys of each table that are known and hold what they may; complaints for the rest."""
    return {
        "corpus": source.table("corpus"),  # checked as a whole: its keys hang on its family
        "queries": source.checked(("queries",), registry.SPEC_KEYS),
        "requests": source.checked(("requests",), REQUEST_KEYS),
        "load": _load_with_steps(source),
    }


def _load_with_steps(source: Source) -> dict[str, Any]:
    """[load]; where a key that may be swept holds a list, its steps are looked at one by one."""
    table = source.table("load")
    swept = [key for key in STEP_KEYS if isinstance(table.get(key), list)]
    good = source.checked(("load",), load_table.SPEC_KEYS, elsewhere=swept)
    keys = {key.name: key for key in load_table.SPEC_KEYS}
    for name in swept:
        steps = [
            step
            for i, step in enumerate(table[name])
            if _is_step(source, keys[name], table[name], i)
        ]
        if not table[name]:
            source.at_value(
                ("load", name), f"`{name}` is an empty list; a sweep has at least one step"
            )
        elif steps:
            good[name] = steps
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


def check_corpus(
    source: Source, given: dict[str, Any], varied: Sequence[Varied], base: Path
) -> None:
    """Complain of a corpus that is none, with every level."""
    if "corpus" not in source.tables:
        source.at_key((), "a study needs a corpus",
                      '[corpus] with `files = "..."`, or with `family = "debian"`; or [requests], '
                      "for systems that run already")  # fmt: skip
        return
    first = first_variant("corpus", given, varied)
    family = str(first.table.get("family", "files"))
    for key, sentence in corpora.complaints(first.table):
        if key not in first.table:
            source.at_key(("corpus",), sentence)
        elif family not in corpora.FAMILIES or key in corpora.keys_of(family):
            source.at_value(first.at[key], sentence)
        else:
            source.at_key(first.at[key], sentence)
    for variant in other_variants("corpus", first, varied):
        for key, sentence in corpora.complaints(variant.table):
            if key in variant.at:
                source.at_value(variant.at[key], sentence)
    for at, name in values_of("corpus", ("files",), given, varied):
        if isinstance(name, str) and not _exists(base, name):
            source.at_value(at, f'there is no file "{name}" in {base}')


def check_queries(
    source: Source, given: dict[str, Any], varied: Sequence[Varied], base: Path
) -> None:
    """Complain of queries that do not go together, with the first levels."""
    first = first_variant("queries", given, varied)
    _complain(source, "queries", first, list(registry.problems(first.table)))
    _files(source, "queries", ("file", "files"), given, varied, base)


def check_requests(
    source: Source,
    given: dict[str, Any],
    varied: Sequence[Varied],
    base: Path,
    systems: Sequence[System],
) -> None:
    """Complain of [requests] that say what is sent twice, or not at all."""
    for table in ("corpus", "queries"):
        if table in source.tables:
            source.at_key(
                (table,),
                f"[requests] (at {source.where(('requests',))}) are sent as they are, in place of "
                f"a corpus and queries; leave [{table}] out",
            )
    first = first_variant("requests", given, varied)
    found: list[tuple[str, str]] = []
    path, method = first.table.get("path"), first.table.get("method")
    if path is None and "file" not in source.table("requests") and "file" not in first.table:
        source.at_key(("requests",), "[requests] need a `file`, or one `path`",
                      'for example file = "access.log"')  # fmt: skip
    if path is not None and "file" in first.table:
        found.append(("path", "give `file` or `path`, not both"))
    if path is not None and "form" in first.table:
        found.append(("form", "`form` is that of a file, and one `path` is asked"))
    if isinstance(path, str):
        if not path.startswith("/"):
            found.append(("path", f'`path` must begin with "/", not {show(path)}'))
        found += [
            ("path", f"`path` is asked over HTTP, and {system.name} is at {address}")
            for system in systems
            for address in system.attach
            if addresses.is_url(address) and not address.startswith("http://")
        ]
    if isinstance(method, str) and not _METHOD.fullmatch(method):
        found.append(
            (
                "method",
                f'`method` must be one of HTTP\'s in capitals, as in "GET", not {show(method)}',
            )
        )
    _complain(source, "requests", first, found)
    _files(source, "requests", ("file",), given, varied, base)


def check_load(source: Source, given: dict[str, Any], varied: Sequence[Varied], base: Path) -> None:
    """Complain of a load whose keys do not go together, with the first levels."""
    first = first_variant("load", given, varied)
    _complain(source, "load", first, list(load_table.problems(first.table, first.levels)))
    _files(source, "load", ("times",), given, varied, base)
    for i, sentence in load_table.promise_problems(given):
        at = ("load", "slo")
        source.at_value((*at, str(i)) if isinstance(given["slo"], list) else at, sentence)
    swept = any(isinstance(given.get(key), list) for key in STEP_KEYS)
    if first.table.get("pause_s") and not swept:
        _complain(source, "load", first,
                  [("pause_s", "`pause_s` is between the steps of a sweep: give `clients` or "
                    "`rate_per_s` a list")])  # fmt: skip
    without_times = "path" in source.table("requests") and "times" not in first.table
    if without_times and load_table.kind_of(first.table) == "replay":
        source.at_key(("load",), "a replay sends requests when a log says, and one `path` has "
                      "no times; give a file of requests, or `times`")  # fmt: skip


def _complain(
    source: Source, table: str, variant: Variant, wrong: Sequence[tuple[str, str]]
) -> None:
    for key, sentence in wrong:
        source.at_value(variant.at.get(key, (table, key)), sentence)


def _files(
    source: Source,
    table: str,
    keys: tuple[str, ...],
    given: dict[str, Any],
    varied: Sequence[Varied],
    base: Path,
) -> None:
    """Complain of files that do not exist."""
    for at, name in values_of(table, keys, given, varied):
        if isinstance(name, str) and not (base / name).is_file():
            source.at_value(at, f'there is no file "{name}" in {base}', _near(base / name))


def _near(path: Path) -> str:
    """The nearest name of a file that is there, if one is near."""
    names = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
    hint = nearest(path.name, names)
    return hint if hint.startswith("did") else ""


def _exists(base: Path, name: str) -> bool:
    """A file, a folder, or a pattern that something matches."""
    if (base / name).exists():
        return True
    # A pattern may be absolute, which Path.glob() refuses.
    return bool(glob.glob(name, root_dir=base, recursive=True))  # noqa: PTH207
