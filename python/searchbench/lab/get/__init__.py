"""Getting what is not on this machine: engines and package descriptions, by apt-get and Maven."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from searchbench.errors import LabError


def finished(
    argv: Sequence[str], timeout_s: float, late: LabError, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """A command that asks nothing, with what it said in English; raises ``late`` if it is."""
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            cwd=folder,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise late from error
