"""How long the command line takes to answer at all."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benches.figure import Figure


def figures() -> Iterator[Figure]:
    """Wall seconds of ``searchbench --help``, median of eleven."""
    command = [str(Path(sys.executable).with_name("searchbench")), "--help"]
    times = []
    for _ in range(11):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    yield Figure("searchbench --help", median(times), "s", at_most=0.3)
