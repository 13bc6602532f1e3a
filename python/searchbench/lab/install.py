"""Is the engine here, in which version; how to get it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from searchbench.engines import defaults
from searchbench.engines.engine import Engine
from searchbench.errors import LabError
from searchbench.lab.deploy import Deployment


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether an engine can be started here. ``version`` as it says itself once started."""

    present: bool
    version: str | None
    how_to_get: str


def presence(engine: Engine) -> Presence:
    """Start the engine with its defaults and ask it: what does not start is not here."""
    with tempfile.TemporaryDirectory(prefix="searchbench-") as folder:
        place = Path(folder)
        try:
            with Deployment(engine, defaults(engine), place / "data", place / "run") as running:
                built = "`make java`" if running.service.needs else "comes with searchbench"
                return Presence(True, running.facts.version, built)
        except LabError as error:
            return Presence(False, None, f"does not start: {error}")
