"""Which ids were seen before, in bounded memory: 8 bytes an id, and as much again at times.

Ten million ids take 80 MB at rest and at most 240 MB while runs are merged, where a set of
strings takes above 1 GB. Two different ids are taken for one with a probability of
n**2 / 2**65: three in a million for ten million ids.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Seen:
    """Sorted runs of 64-bit hashes, merged when two are of a size (a log-structured merge)."""

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int64]] = []

    def repeated(self, ids: Sequence[str]) -> NDArray[np.bool_]:
        """For each id, whether it was there before: in an earlier call, or earlier in this."""
        hashes = np.fromiter(map(hash, ids), np.int64, len(ids))
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        known = np.zeros(len(ids), np.bool_)
        known[1:] = ordered[1:] == ordered[:-1]  # stable: the first of equals came first
        for run in self._runs:
            place = np.searchsorted(run, ordered)
            place[place == len(run)] = 0
            known |= run[place] == ordered
        self._add(ordered[~known])
        answer = np.empty(len(ids), np.bool_)
        answer[order] = known
        return answer

    def _add(self, run: NDArray[np.int64]) -> None:
        if len(run) == 0:
            return
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.concatenate((self._runs.pop(), run))
            run.sort(kind="stable")  # finds the two runs and merges them
        self._runs.append(run)
