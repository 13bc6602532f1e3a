"""Linked levels: a factor whose levels each have a name and set several keys at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from searchbench.spec import nearest, show
from searchbench.study.model import Factor
from searchbench.study.names import Names
from searchbench.study.positions import Path, Source
from searchbench.study.varied import Setting, Varied, meet

_KEYS = ("name", "set")
_FORM = '{ name = "...", set = { "TABLE.KEY" = VALUE, ... } }'
# What plans and reports already call factors.
_TAKEN = ("system",)


def read_linked(
    source: Source, at: Path, name: str, value: Sequence[Any], names: Names
) -> Varied | None:
    """The factor, or None where nothing of it is right; complaints for what is wrong."""
    if name in _TAKEN:
        source.at_key(at, f"`{name}` is what the systems are called as a factor; say another name")
    levels: list[str] = []
    sets: list[Mapping[str, Any]] = []
    positions: list[Mapping[str, Setting]] = []
    for i, level in enumerate(value):
        here = (*at, str(i))
        called = _name(source, here, name, level, levels)
        settings = _settings(source, here, name, level, names) if called else None
        if not called or settings is None:
            continue
        if sets and set(settings) != set(sets[0]):
            _unlike(source, here, called, settings, levels[0], sets[0])
            continue
        levels.append(called)
        sets.append({path: value for path, (value, _) in settings.items()})
        positions.append({path: where for path, (_, where) in settings.items()})
    if not levels:
        return None
    return Varied(Factor(name, tuple(levels), tuple(sets)), at, tuple(positions))


def _name(source: Source, at: Path, factor: str, level: object, before: Sequence[str]) -> str:
    """What a level is called; "" with a complaint where that is wrong."""
    if not isinstance(level, Mapping):
        source.at_value(
            at, f"all levels of `{factor}` are tables, {_FORM}, and this is {show(level)}"
        )
        return ""
    for key in level:
        if key not in _KEYS:
            source.at_key((*at, key), f"a linked level has no key `{key}`", nearest(key, _KEYS))
    called = level.get("name")
    if not isinstance(called, str) or not called.strip():
        source.at_value((*at, "name"), f"a level of `{factor}` needs a name: {_FORM}")
        return ""
    if called in before:
        source.at_value((*at, "name"), f"`{factor}` has the level {show(called)} twice")
        return ""
    return called


def _settings(
    source: Source, at: Path, factor: str, level: Mapping[str, Any], names: Names
) -> dict[str, tuple[Any, Setting]] | None:
    """What a level sets, with positions, by path; None with a complaint where that is wrong."""
    table = level.get("set")
    if not isinstance(table, Mapping) or not table:
        source.at_value((*at, "set"), f"a level of `{factor}` needs what it sets: {_FORM}")
        return None
    found: dict[str, tuple[Any, Setting]] = {}
    right = True
    for where, path, value in _flat(table, (*at, "set")):
        targets = names.targets(where, path, linked=True)
        what = f'level "{level["name"]}" of `{factor}`'
        right &= bool(targets) and names.check(where, path, value, targets, what)
        for other, (_, first) in found.items():
            if meet(path, other):
                source.at_key(
                    where,
                    f'the level "{level["name"]}" sets `{path}` here and `{other}` at '
                    f"{source.where(first.key)}, which is the same key",
                )
                right = False
        found.setdefault(path, (value, Setting(where, where)))
    return found if right else None


def _unlike(
    source: Source,
    at: Path,
    called: str,
    settings: Mapping[str, object],
    first: str,
    wanted: Mapping[str, object],
) -> None:
    """Complain of a level that does not set what the first one sets."""
    missing = [f"`{path}`" for path in wanted if path not in settings]
    more = [f"`{path}`" for path in settings if path not in wanted]
    said = [f"lacks {', '.join(missing)}"] if missing else []
    said += [f"also sets {', '.join(more)}"] if more else []
    source.at_value(
        (*at, "set"),
        f'all levels of a factor set the same keys: "{called}" {" and ".join(said)}, '
        f'unlike "{first}"',
    )


def _flat(table: Mapping[str, Any], at: Path) -> Iterator[tuple[Path, str, Any]]:
    """(position, dotted path, value); nested tables are paths too.

    But a key of the corpus may take a table, its fields; that is a value.
    """
    start = len(at)
    stack = [((*at, key), value) for key, value in table.items()]
    while stack:
        here, value = stack.pop(0)
        path = ".".join(here[start:])
        if isinstance(value, Mapping) and not path.startswith("corpus."):
            stack[:0] = [((*here, key), inner) for key, inner in value.items()]
        else:
            yield here, path, value
