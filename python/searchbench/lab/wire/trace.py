"""What a drive from several client machines comes to: one trace."""

from __future__ import annotations

import json
import mmap
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Gathered:
    """The traces of all machines in one; reads as ``_core.Trace`` does.

    ``samples``: structured array of ``_core.SAMPLE_DTYPE``, ordered by machine, thread and
    completion, instants since the common start, connections numbered through. ``about``: the
    accounting, with ``machines``: each machine's range of connections, clock offset and own
    accounting; and with ``notes``: what the audit is to say of the clocks.
    """

    samples: np.ndarray[tuple[int], np.dtype[np.void]]
    kept: list[tuple[int, bytes]]
    about: dict[str, Any]

    def __len__(self) -> int:
        return len(self.samples)

    def replies(self) -> list[tuple[int, bytes]]:
        """(index of the sample, reply bytes as received) for each kept reply."""
        return self.kept

    def accounting(self) -> str:
        """JSON, with the names of ``_core.Trace.accounting``."""
        return json.dumps(self.about)

    def give_back(self, samples: int) -> None:
        """The first ``samples`` were read for now: of what is in a file, memory is given back."""
        if isinstance(self.samples, np.memmap) and samples:
            # numpy keeps the mapping under this name and has no other for it.
            mapping: mmap.mmap = self.samples._mmap  # type: ignore[attr-defined]
            page = mmap.PAGESIZE
            whole = min(samples * self.samples.itemsize, len(mapping)) // page * page
            mapping.madvise(mmap.MADV_DONTNEED, 0, whole)
