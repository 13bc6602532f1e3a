"""The samples of a drive that runs, each once: what its ticks bring overlaps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench import _core

SAMPLE = np.dtype(_core.SAMPLE_DTYPE)


class Fresh:
    """Passes over what the tick before had too.

    A tick brings at most 4,096 samples a thread; what finished faster than that is never seen.
    """

    def __init__(self) -> None:
        self._before: set[bytes] = set()

    def of(self, recent: bytes) -> NDArray[Any]:
        """Those of ``recent`` (samples in the core's own form) that are new."""
        size = SAMPLE.itemsize
        rows = [recent[i : i + size] for i in range(0, len(recent), size)]
        new = b"".join(row for row in rows if row not in self._before)
        self._before = set(rows)
        return np.frombuffer(new, SAMPLE)
