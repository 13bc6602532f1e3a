"""Files of searches that ``logs --queries`` writes, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from searchbench.cli import app


def written(log: Path, out: Path, *options: str) -> list[dict[str, Any]]:
    """The lines of the file that a call writes."""
    assert app(["logs", str(log), "--queries", str(out), *options]) == 0
    return [json.loads(line) for line in out.read_text().splitlines()]


def about(out: Path) -> dict[str, Any]:
    """What the call says that the file is."""
    found: dict[str, Any] = json.loads(out.with_name(out.name + ".about.json").read_text())
    return found


def generated(place: Path) -> Path:
    """Two hours at about ten searches a second, with 3,000 distinct queries."""
    log = place / "query.log"
    argv = ["--lines", "60000", "--distinct", "3000", "--rate", "20", "--start", "2008-07-01"]
    assert app(["logs", "generate", str(log), *argv]) == 0
    return log
