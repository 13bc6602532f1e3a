"""The order of trials: block after block, so that what drifts meets all treatments alike."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from searchbench.study.model import Study
from searchbench.study.plan import Treatment, Trial


def order(study: Study, treatments: Sequence[Treatment], control: str | None) -> Iterator[Trial]:
    """Every treatment once a block, with the control's twin; each block has its own order.

    random.Random seeded by a text and its shuffle() are the same in every Python since 3.2.
    """
    width = max(2, len(str(study.replicates)))
    rng = random.Random(f"searchbench plan {study.seed}")
    for block in range(1, study.replicates + 1):
        if study.steps is None:
            members = [(t.id, False) for t in treatments]
            if control is not None:
                members.append((control, True))
            rng.shuffle(members)
        elif all(t.attach for t in treatments):
            members = [(name, False) for name in _in_turn(treatments, study.steps.path, block)]
        else:
            members = [(name, False) for name in _together(treatments, rng)]
        for treatment, twin in members:
            name = f"b{block:0{width}d}-{treatment}{'-aa' if twin else ''}"
            yield Trial(name, block, treatment, twin)


def _in_turn(treatments: Sequence[Treatment], step: str, block: int) -> Iterator[str]:
    """Step after step; within each all subjects, and who is first changes from step to step.

    For systems that run anyway: nothing is started, so going from one to another costs nothing.
    """
    steps: dict[str, list[str]] = {}
    for t in treatments:
        steps.setdefault(repr(t.levels[step]), []).append(t.id)
    for turn, members in enumerate(steps.values()):
        first = (turn + block - 1) % len(members)
        yield from (*members[first:], *members[:first])


def _together(treatments: Sequence[Treatment], rng: random.Random) -> Iterator[str]:
    """Subjects in random order, the steps of each in the order of the study, on one warm system."""
    subjects: dict[str, list[str]] = {}
    for t in treatments:
        subjects.setdefault(t.subject, []).append(t.id)
    shuffled = list(subjects.values())
    rng.shuffle(shuffled)
    for members in shuffled:
        yield from members
