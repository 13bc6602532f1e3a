"""Study → plan: what will be run, in which order. Crossed, blocked, shuffled by the seed.

(The types are the seam with ``lab`` and ``record``.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from searchbench.engines.engine import Level


@dataclass(frozen=True, slots=True)
class Treatment:
    """One level of each factor. ``levels``: by factor path ("system", "load.clients", ...).

    ``parameters`` are the engine's, complete. ``corpus``, ``queries``, ``load`` are the
    resolved tables of the study with this treatment's levels put in.
    """

    id: str
    label: str
    system: str
    engine: str
    levels: Mapping[str, Level]
    parameters: Mapping[str, Level]
    corpus: Mapping[str, object]
    queries: Mapping[str, object]
    load: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Trial:
    """One treatment measured once. ``control`` is the A/A twin of the same treatment."""

    id: str
    block: int
    treatment: str
    control: bool


@dataclass(frozen=True, slots=True)
class Excluded:
    """A crossing that is not run, with the reason."""

    levels: Mapping[str, Level]
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Every trial in the order it will be run."""

    question: str
    seed: int
    treatments: tuple[Treatment, ...]
    trials: tuple[Trial, ...]
    excluded: tuple[Excluded, ...]
    estimated_s: float
