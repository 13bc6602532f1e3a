"""What a command line changes in a study: ``--set KEY=VALUE`` and ``--only FACTOR=LEVEL``.

Both change the study's text and keep its comments, so that the study in the record is the one that
ran. ``--set`` puts a value in; ``--only`` adds an exclusion of all other levels of a factor.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from searchbench import _core
from searchbench.engines.engine import Level
from searchbench.errors import SearchbenchError
from searchbench.spec import nearest, show
from searchbench.study.keys import PLACED_KEYS
from searchbench.study.model import Study, among, key_of, section_of, table_of
from searchbench.study.positions import Moved, Position, Source, flat
from searchbench.study.positions import Path as Keys
from searchbench.study.read import base_of, parse_study, read_text

_MOST_NAME = 120  # characters of a folder's name


def read_changed(path: Path | str, sets: Sequence[str] = (), only: Sequence[str] = ()) -> Study:
    """The study of a file with changes: KEY=VALUE of ``sets``, FACTOR=LEVEL of ``only``.

    A key that a factor varies stays that factor, with the value for its levels. Several levels of
    one factor in ``only`` are all kept. StudyError with every mistake, each at its option or where
    it stands in the file, as what is found out later (``Study.moved``); SearchbenchError for an
    option that is none.
    """
    path = Path(path)
    base, before = base_of(path), read_text(path)
    Source(before, str(path))  # what is not TOML is complained of as it stands
    options = [f"--set {each}" for each in sets] + [f"--only {each}" for each in only]
    said = " ".join(options).replace("\n", " ")
    after = f"# {path.name} with {said}\n{before}" if options else before
    changed: list[tuple[Keys, str]] = []
    for option, each in zip(options, sets, strict=False):
        key, text = _split(option, each, "KEY=VALUE, as in --set load.seconds=3")
        tables = tomllib.loads(after)
        for keys, value in _places(option, key, text, tables):
            try:
                after = _core.toml_set(after, keys, value)
            except ValueError as error:
                raise SearchbenchError(f"{option}: {error}") from None
            changed.append((keys, option))
    moved = _moved(before, after, changed) if options else None
    study = parse_study(after, str(path), base, moved)
    excluded = _others(study, only)
    for entry in excluded:
        listed = "exclude" in tomllib.loads(after)
        keys = ("exclude", "0") if listed else ("exclude",)
        after = _core.toml_set(after, keys, entry if listed else f"[{entry}]")
    return (
        parse_study(after, str(path), base, _moved(before, after, changed)) if excluded else study
    )


def name_of(study: Study, sets: Sequence[str] = (), only: Sequence[str] = ()) -> str:
    """A name for the study with these changes, which can be that of a folder."""
    parts = [study.name, *(re.sub(r"[^\w.,=+-]+", "_", each) for each in (*sets, *only))]
    return " ".join(parts).replace(" ", "-")[:_MOST_NAME]


def _split(option: str, given: str, form: str) -> tuple[str, str]:
    key, equals, text = given.partition("=")
    if not equals or not key.strip():
        raise SearchbenchError(f"{option}: say {form}")
    return key.strip(), text.strip()


def _read(text: str) -> Any:
    """A value of TOML, or else the text itself."""
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return read["value"] if len(read) == 1 else text


def _places(
    option: str, key: str, text: str, tables: Mapping[str, Any]
) -> Iterator[tuple[Keys, str]]:
    """Where a value is put, and the value as TOML; several for ``systems.*.PARAMETER``."""
    read = _read(text)
    value = text if read != text else tomli_w.dumps({"v": text}).partition("= ")[2].strip()
    for at, path, levels in flat(_table(tables, "factors"), ("factors",)):
        if path == key:
            yield at, value if isinstance(read, list) else f"[{value}]"
            return
        linked = isinstance(levels, list) and any(isinstance(each, Mapping) for each in levels)
        if linked and any(key in _paths(each) for each in levels):
            raise SearchbenchError(
                f"{option}: the levels of the factor `{path}` set `{key}`; choose one of them "
                f"with --only {path}=LEVEL"
            )
    if table_of(key) in PLACED_KEYS and key.count(".") > 1:
        yield _of_place(option, key, tables), value
        return
    if table_of(key) != "systems":
        yield tuple(key.split(".")), value
        return
    named = _table(tables, "systems")
    owner, parameter = key.removeprefix("systems.").rpartition(".")[0], key_of(key)
    if owner != "*" and owner not in named:
        raise SearchbenchError(
            f"{option}: there is no system `{owner}` ({nearest(owner, named)}); "
            "say systems.NAME.PARAMETER, or systems.*.PARAMETER for all"
        )
    for name in named if owner == "*" else (owner,):
        yield ("systems", name, parameter), value


def _of_place(option: str, key: str, tables: Mapping[str, Any]) -> Keys:
    """The keys of a place or storage. The first of a study may be made by an option."""
    table, name = section_of(key).split(".", 1)
    named = _table(tables, table)
    if named and name not in named:
        what = table.removesuffix("s")
        raise SearchbenchError(
            f"{option}: there is no {what} `{name}` ({nearest(name, named)}); say {table}.NAME.KEY"
        )
    return (table, name, key_of(key))


def _table(tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = tables.get(name)
    return found if isinstance(found, Mapping) else {}


def _paths(level: object) -> set[str]:
    """What a linked level sets."""
    table = level.get("set") if isinstance(level, Mapping) else None
    return {path for _, path, _ in flat(table, ())} if isinstance(table, Mapping) else set()


def _moved(before: str, after: str, changed: Sequence[tuple[Keys, str]]) -> Moved:
    """Of each position of the changed text its position in the file, or the option behind it."""
    stood = {path: ((a, b), (c, d)) for path, a, b, c, d in _core.toml_spans(before)}
    moved: dict[Position, Position | str] = {}
    for path, a, b, c, d in _core.toml_spans(after):
        own = [o for keys, o in changed if path[: len(keys)] == keys]
        if path not in stood:  # a table that was made for it
            own += [o for keys, o in changed if keys[: len(path)] == path]
        for new, old in zip(((a, b), (c, d)), stood.get(path, ((0, 0), (0, 0))), strict=True):
            moved.setdefault(new, own[-1] if own else old)
    return moved


def _others(study: Study, only: Sequence[str]) -> list[str]:
    """An exclusion in TOML for each factor of ``only``: all levels but those that were named."""
    factors: dict[str, Sequence[Level]] = {"system": [s.name for s in study.systems]}
    steps = [study.steps] if study.steps else []
    factors |= {f.path: f.levels for f in (*study.factors, *steps, *study.asking)}
    kept: dict[str, list[Level]] = {}
    for each in only:
        option = f"--only {each}"
        factor, text = _split(option, each, "FACTOR=LEVEL, as in --only system=NAME")
        if factor not in factors:
            raise SearchbenchError(
                f"{option}: `{factor}` is not a factor of this study ({nearest(factor, factors)})"
            )
        found = [level for level in factors[factor] if _is(level, text)]
        if not found:
            levels = ", ".join(map(show, factors[factor]))
            raise SearchbenchError(f"{option}: `{factor}` has no such level; its levels: {levels}")
        kept.setdefault(factor, []).extend(found)
    entries = []
    for factor, wanted in kept.items():
        others = [level for level in factors[factor] if not among(level, wanted)]
        named = ", ".join(show(level) for level in wanted)
        entry = {"when": {factor: others}, "reason": f"only {factor} = {named} was asked for"}
        if others:
            entries.append(_inline(entry))
    return entries


def _is(level: Level, text: str) -> bool:
    """Whether a text on the command line means that level: 1 is 1.0 too, but not true."""
    read = _read(text)
    return level == text or (level == read and isinstance(level, bool) == isinstance(read, bool))


def _inline(value: Any) -> str:
    """A value as TOML in one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_inline(k)} = {_inline(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return tomli_w.dumps({"v": value}).partition("= ")[2].strip()
