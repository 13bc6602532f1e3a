"""Cores: which ones a system gets, and whether all of its threads keep to them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from searchbench.errors import LabError
from searchbench.places import Cores, Host, Place
from searchbench.record.trial import Lever

_ELSEWHERE = 0.01
"""The share of its time that a system may have spent on cores that are not its own: when the kernel
moves a process, it counts some of its time at the core where it found it."""


def dealt(place: Place | Host | None, cores: Cores) -> tuple[int, ...]:
    """The cores of a system. LabError (stage ``place``) if the machine does not have them.

    The load generator's cores are given only when all others are taken, and the other
    hyper-threads of these before them.
    """
    if place is None or not place.cores:
        return tuple(sorted(cores.server_cpus))
    there = tuple(dict.fromkeys((*cores.server_cpus, *cores.beside_client, *cores.client_cpus)))
    if isinstance(place.cores, int):
        if place.cores > len(there):
            raise LabError(f"{place.title}: `cores` = {place.cores}, but {_has(there)}; "
                           "ask for fewer", "place")  # fmt: skip
        return tuple(sorted(there[: place.cores]))
    absent = sorted(set(place.cores) - set(there))
    if absent:
        raise LabError(f"{place.title}: `cores` has core {absent[0]}, but {_has(there)}", "place")
    return tuple(sorted(place.cores))


def as_asked(place: Place | Host, asked: Sequence[int], pids: Iterable[int]) -> Lever:
    """The affinity of each thread of these processes as the kernel has it."""
    others: list[str] = []
    seen: set[tuple[int, ...]] = set()
    threads = 0
    for pid in pids:
        for task in _tasks(pid):
            try:
                found = tuple(sorted(os.sched_getaffinity(task)))
            except ProcessLookupError:
                continue
            threads += 1
            seen.add(found)
            if not set(found) <= set(asked):
                others.append(f"thread {task} may run on {numbers(found)}")
    problem = f"{others[0]}, but should run only on {numbers(asked)}" if others else ""
    if not threads:
        problem = "no process of the system was found, so its cores are not known"
    return Lever(
        name=f"{place.section}.cores",
        asked=numbers(asked),
        read_back="; ".join(numbers(each) for each in sorted(seen)),
        problem=problem,
        figures={"threads": threads},
    )


def kept_to(
    lever: Lever, asked: Sequence[int], before: Sequence[float], after: Sequence[float]
) -> Lever:
    """The lever with the share of its time that the system was on other cores."""
    spent = [b - a for a, b in zip(before, after, strict=True)]
    whole = sum(spent)
    share = sum(s for core, s in enumerate(spent) if core not in asked) / whole if whole else 0.0
    effect = f"{share:.1%} of its time on other cores"
    return replace(
        lever,
        effect=effect,
        problem=effect if share > _ELSEWHERE else lever.problem,
        figures={**lever.figures, "elsewhere_share": share},
    )


def numbers(cores: Sequence[int]) -> str:
    """Core numbers as a person reads them: "core 0", "cores 0, 2"."""
    return f"core{'' if len(cores) == 1 else 's'} {', '.join(map(str, cores))}"


def _has(cores: Sequence[int]) -> str:
    return f"this machine lets us use only {numbers(sorted(cores))}"


def _tasks(pid: int) -> list[int]:
    try:
        return [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:  # it has ended
        return []
