"""Names and numbers of a document, for engines whose columns cannot have them as they are."""

from __future__ import annotations

import re
import struct

_ODD = {True: re.compile("[^0-9A-Za-z]"), False: re.compile("[^0-9a-z]")}
_ESCAPED = re.compile(r"_(?:_|([0-9a-f]+)_)")
_MAGNITUDE = 2**63 - 1


def escaped(name: str, *, capitals: bool = True) -> str:
    """A field's name of ASCII letters, digits and underlines alone, one to one.

    ``capitals``: the engine tells them from small letters.
    """
    return _ODD[capitals].sub(lambda m: "__" if m[0] == "_" else f"_{ord(m[0]):x}_", name)


def unescaped(text: str) -> str:
    """The name that ``escaped`` wrote."""
    return _ESCAPED.sub(lambda m: chr(int(m[1], 16)) if m[1] else "_", text)


def sortable(number: int | float) -> int:
    """A double as a whole number of 64 bits that sorts as it does; -0.0 as 0.0."""
    bits: int = struct.unpack(">q", struct.pack(">d", number or 0.0))[0]
    return bits if bits >= 0 else bits ^ _MAGNITUDE


def unsortable(bits: int) -> float:
    """The double that ``sortable`` was given."""
    raw = struct.pack(">q", bits if bits >= 0 else bits ^ _MAGNITUDE)
    number: float = struct.unpack(">d", raw)[0]
    return number
