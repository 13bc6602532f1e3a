"""What a study file says, once it has been found right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from searchbench.engines.engine import Level


@dataclass(frozen=True, slots=True)
class System:
    """One system under test. ``parameters``: every lever of its engine, defaults put in.

    ``attach``: HOST:PORT of one that already runs; None: it is started.
    """

    name: str
    engine: str
    parameters: Mapping[str, Level]
    attach: str | None = None


@dataclass(frozen=True, slots=True)
class Factor:
    """What is varied. ``path`` is "TABLE.KEY", or "systems.NAME.PARAMETER" where NAME may be "*".

    ``levels`` are in the order of the study file, all different.
    """

    path: str
    levels: tuple[Level, ...]

    @property
    def table(self) -> str:
        """ "corpus", "queries", "load" or "systems"."""
        return self.path.split(".", 1)[0]

    @property
    def system(self) -> str | None:
        """The system it is crossed within, "*" for all of them; None outside of systems."""
        return self.path.split(".")[1] if self.table == "systems" else None

    @property
    def key(self) -> str:
        """The key or parameter that takes the levels."""
        return self.path.rsplit(".", 1)[1]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Crossings that are not to be run: all whose levels are those of ``when``."""

    when: Mapping[str, tuple[Level, ...]]
    reason: str


@dataclass(frozen=True, slots=True)
class Control:
    """The A/A twin: one treatment is measured twice a block, to know what noise looks like.

    ``treatment`` None: the first.
    """

    aa: bool = True
    treatment: str | None = None


@dataclass(frozen=True, slots=True)
class Agreement:
    """What two systems must agree on before their speeds are compared, query by query.

    "totals": exact totals; "set": the same ``k`` first hits in any order; "order": in the same
    order; "none": nothing, because the study says so.
    """

    require: Literal["totals", "set", "order", "none"] = "totals"
    k: int = 10


@dataclass(frozen=True, slots=True)
class VerdictRule:
    """By what the verdict is given.

    ``metric`` None: throughput where every load is a closed loop, else response_p99.
    More is better of a throughput, less of anything else.
    """

    metric: str | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """A question, what it is asked of, and how it is to be answered.

    ``text`` is the file as it was read, ``path`` its name, ``base`` the directory that file
    names in it are relative to. ``corpus``, ``queries`` and ``load`` hold the keys that were
    given; a key that is a factor is in ``factors`` alone.
    """

    path: str
    base: Path
    text: str
    question: str
    systems: tuple[System, ...]
    corpus: Mapping[str, Any]
    queries: Mapping[str, Any]
    load: Mapping[str, Any]
    factors: tuple[Factor, ...] = ()
    exclude: tuple[Exclusion, ...] = ()
    analysis: str = ""
    held: str | Mapping[str, Any] = ""
    seed: int = 1
    replicates: int = 3
    control: Control = field(default_factory=Control)
    ingest: Literal["per-block", "per-trial", "once"] = "per-block"
    agreement: Agreement = field(default_factory=Agreement)
    verdict: VerdictRule = field(default_factory=VerdictRule)

    @property
    def name(self) -> str:
        """A short name: the file's, without its ending."""
        return Path(self.path).stem
