"""The ``exclude`` list: crossings that are not to be run, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from searchbench.engines.engine import Level
from searchbench.spec import nearest, show
from searchbench.study.model import Exclusion, Factor
from searchbench.study.positions import Source


def read_exclusions(
    source: Source, factors: Sequence[Factor], named: set[str]
) -> tuple[Exclusion, ...]:
    """The exclusions that are right, with complaints for the rest.

    ``factors``: with the steps of a sweep. ``named``: the systems, which are the levels of the
    factor "system".
    """
    entries = source.tables.get("exclude", [])
    levels: dict[str, tuple[Level, ...]] = {f.path: f.levels for f in factors}
    levels["system"] = tuple(sorted(named))
    found = []
    for i, entry in enumerate(entries if isinstance(entries, list) else []):
        path = ("exclude", str(i))
        if not isinstance(entry, Mapping):
            source.at_value(path, 'must be a table: { when = { FACTOR = LEVEL }, reason = "..." }')
            continue
        for key in entry:
            if key not in ("when", "reason"):
                source.at_key((*path, key), f"an exclusion has no key `{key}`",
                              nearest(key, ("when", "reason")))  # fmt: skip
        reason, when = entry.get("reason"), entry.get("when")
        if not isinstance(reason, str) or not reason.strip():
            source.at_value((*path, "reason"), "an exclusion needs a `reason`, which reaches "
                            "the report")  # fmt: skip
        if not isinstance(when, Mapping) or not when:
            source.at_value((*path, "when"), "an exclusion needs `when`, a table of factor = level")
            continue
        wanted = {}
        for at, factor, level in _pairs(when, (*path, "when")):
            chosen = tuple(level) if isinstance(level, list) else (level,)
            if factor not in levels:
                source.at_key(at, f"`{factor}` is no factor of this study",
                              nearest(factor, levels))  # fmt: skip
                continue
            for one in chosen:
                if not any(one == k and type(one) is type(k) for k in levels[factor]):
                    there = "its levels: " + ", ".join(map(show, levels[factor]))
                    source.at_value(at, f"`{factor}` has no level {show(one)}", there)
            wanted[factor] = chosen
        found.append(Exclusion(wanted, str(reason)))
    return tuple(found)


def _pairs(
    table: Mapping[str, Any], at: tuple[str, ...]
) -> Iterable[tuple[tuple[str, ...], str, Any]]:
    """(position, dotted path, value), nested tables flattened."""
    start = len(at)
    stack = [((*at, key), value) for key, value in table.items()]
    while stack:
        here, value = stack.pop(0)
        if isinstance(value, Mapping):
            stack[:0] = [((*here, key), inner) for key, inner in value.items()]
        else:
            yield here, ".".join(here[start:]), value
