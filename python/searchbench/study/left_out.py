"""Crossings that are left out, in as few sentences as say exactly which, for each reason.

The crossings of one reason are brought together factor after factor: what differs in the level of
one factor alone becomes one set with several levels, and a factor of which it has all levels is not
named. A set never holds a crossing of another reason, or one that is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from searchbench.engines.engine import Level
from searchbench.study.plan import Plan

# By factor the level, as a text; a factor that does not concern a system has none.
Crossing = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class _Set:
    """So many crossings: all that have one of these levels of each factor; None: any."""

    levels: Mapping[str, frozenset[str | None] | None]
    crossings: int

    def has(self, crossing: Crossing, aside: str) -> bool:
        """Whether it holds a crossing, whatever that one's level of the factor ``aside`` is."""
        return all(
            wanted is None or path == aside or crossing.get(path) in wanted
            for path, wanted in self.levels.items()
        )


def left_out(plan: Plan) -> Iterator[str]:
    """A sentence for each set of crossings that one reason leaves out."""
    excluded = [(_texts(e.levels), e.reason) for e in plan.excluded]
    every = [_texts(t.levels) for t in plan.treatments] + [crossing for crossing, _ in excluded]
    paths = list(dict.fromkeys(path for crossing in every for path in crossing))
    order = {path: list(map(_text, levels)) for path, levels in plan.judging.factors.items()}
    for reason in dict.fromkeys(reason for _, reason in excluded):
        for one in _sets([c for c, why in excluded if why == reason], every, paths):
            named = [
                f"{path} = {_any_of([each for each in order[path] if each in levels])}"
                for path in paths
                if (levels := one.levels[path]) is not None
            ]
            many = "treatment" if one.crossings == 1 else "treatments"
            which = f" with {' and '.join(named)}" if named else ""
            yield f"left out: {one.crossings:,} {many}{which}: {reason}"


def _any_of(levels: Sequence[str]) -> str:
    """As in: 1, 2 or 4."""
    return " or ".join(filter(None, (", ".join(levels[:-1]), levels[-1])))


def _sets(own: Sequence[Crossing], every: Sequence[Crossing], paths: Sequence[str]) -> list[_Set]:
    found = [_Set({path: frozenset((c.get(path),)) for path in paths}, 1) for c in own]
    # First what does not concern all systems, since it hangs on the system.
    of_some = [path for path in paths if not all(path in c for c in every)]
    for path in [*of_some, *(p for p in paths if p not in of_some)] * 2:
        found = [_without(one, path, every) for one in _together(found, path)]
    return found


def _together(sets: Sequence[_Set], path: str) -> Iterator[_Set]:
    """Sets that differ in the levels of this factor alone, as one."""
    alike: dict[frozenset[object], list[_Set]] = {}
    for one in sets:
        others = frozenset(item for item in one.levels.items() if item[0] != path)
        alike.setdefault(others, []).append(one)
    for same in alike.values():
        levels = [one.levels[path] for one in same]
        united = frozenset(level for each in levels for level in each or ())
        together = {**same[0].levels, path: None if None in levels else united}
        yield _Set(together, sum(one.crossings for one in same))


def _without(one: _Set, path: str, every: Sequence[Crossing]) -> _Set:
    """The set without this factor, where it has all levels that there are beside its others."""
    wanted = one.levels[path]
    if wanted is None or not all(c.get(path) in wanted for c in every if one.has(c, path)):
        return one
    return _Set({**one.levels, path: None}, one.crossings)


def _texts(levels: Mapping[str, Level]) -> Crossing:
    return {path: _text(level) for path, level in levels.items()}


def _text(level: Level) -> str:
    return str(level).lower() if isinstance(level, bool) else str(level)
