"""Many short pieces of bytes, one after another in one piece of memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

Ends = np.ndarray[tuple[int], np.dtype[np.uint64]]


class Packed(Sequence[bytes]):
    """Reads as a tuple of bytes does, and grows; it keeps the bytes and where each piece ends.

    An object of Python costs about 40 bytes beside what it holds. That of a million statements is
    more than the statements.
    """

    __slots__ = ("_ends", "data")

    def __init__(self) -> None:
        self.data = bytearray()
        self._ends = array("Q")

    def append(self, piece: bytes) -> None:
        """One piece more."""
        self.data += piece
        self._ends.append(len(self.data))

    def extend(self, other: Packed) -> None:
        """All pieces of another one after its own."""
        first = len(self.data)
        self.data += other.data
        self._ends.extend(end + first for end in other._ends)

    @property
    def ends(self) -> Ends:
        """Where each piece ends in ``data``."""
        return np.array(self._ends, np.uint64)

    def __len__(self) -> int:
        """How many pieces there are."""
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[bytes, ...]: ...
    def __getitem__(self, index: int | slice) -> bytes | tuple[bytes, ...]:
        """One piece; IndexError beyond them. Of a slice a tuple."""
        places = range(len(self))[index]
        return tuple(map(self._at, places)) if isinstance(places, range) else self._at(places)

    def __iter__(self) -> Iterator[bytes]:
        """All pieces, each made when its turn comes."""
        start = 0
        for end in self._ends:
            yield bytes(self.data[start:end])
            start = end

    def _at(self, place: int) -> bytes:
        return bytes(self.data[self._ends[place - 1] if place else 0 : self._ends[place]])
