"""Bytes that come in pieces, cut anywhere, read from their beginning to their end."""

from __future__ import annotations

from collections.abc import Iterable


class Pieces:
    """Gives so many bytes at a time; it holds one piece, or as many as one answer takes."""

    __slots__ = ("_at", "_before", "_held", "_rest")

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._rest = iter(pieces)
        self._held = next(self._rest, b"")
        self._at = 0
        self._before = 0

    def take(self, count: int) -> bytes:
        """The next so many bytes; fewer where there are no more."""
        end = self._at + count
        if end > len(self._held):
            self._read_on(count)
            end = count
        taken = self._held[self._at : end]
        self._at += len(taken)
        return taken

    @property
    def over(self) -> bool:
        """Is nothing left?"""
        if self._at >= len(self._held):
            self._read_on(1)
        return self._at >= len(self._held)

    @property
    def place(self) -> int:
        """How many bytes were taken."""
        return self._before + self._at

    def _read_on(self, count: int) -> None:
        held = [self._held[self._at :]]
        there = len(held[0])
        while there < count and (piece := next(self._rest, b"")):
            held.append(piece)
            there += len(piece)
        self._before += self._at
        self._held, self._at = b"".join(held), 0
