"""Sizes as text: "256MB", "64k". One parser for all tables.

The units are those of GNU coreutils (``dd``, ``split``): ``k``, ``M``, ``G``, ``T``, with or
without ``iB``, are powers of 1,024; ``kB``, ``MB``, ``GB``, ``TB`` are powers of 1,000; ``B`` is a
byte. Capital and small letters mean the same.
"""

from __future__ import annotations

import re
from decimal import Decimal

_EXIST = "kB, MB, GB, TB are powers of 1,000; k, M, G, T are powers of 1,024"
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)")
_POWERS = "kmgt"
_UNITS = {
    "b": 1,
    **{f"{letter}b": 1000**i for i, letter in enumerate(_POWERS, 1)},
    **{letter: 1024**i for i, letter in enumerate(_POWERS, 1)},
    **{f"{letter}ib": 1024**i for i, letter in enumerate(_POWERS, 1)},
}
# What sizes are written with, the largest unit first.
_WRITTEN = sorted(
    (("B", 1), *((f"{c}B", 1000**i) for i, c in enumerate(("k", "M", "G", "T"), 1)),
     *((f"{c}iB", 1024**i) for i, c in enumerate(("K", "M", "G", "T"), 1))),
    key=lambda unit: -unit[1],
)  # fmt: skip


def size_bytes(text: str) -> int:
    """The bytes of a size; ValueError with the reason where it is none."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        if re.fullmatch(r"\d+(\.\d+)?", text.strip()):
            raise ValueError(f"it has no unit; {_EXIST}")
        raise ValueError("it is not a number with a unit")
    number, unit = found.groups()
    if unit.lower() not in _UNITS:
        raise ValueError(f"there is no unit {unit}; {_EXIST}")
    exact = Decimal(number) * _UNITS[unit.lower()]
    if exact != int(exact):
        raise ValueError("that is not a whole number of bytes")
    return int(exact)


def size_text(size: int) -> str:
    """A size in the largest unit that it is a whole number of: 64KiB, 256MB, 1500B."""
    unit, of = next((u for u in _WRITTEN if size and size % u[1] == 0), ("B", 1))
    return f"{size // of}{unit}"
