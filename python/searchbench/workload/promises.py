"""The syntax of a promise about answers: "p99 < 50ms, errors < 0.1%".

Text alone: whether a trace keeps a promise is judged elsewhere (analysis/capacity/promise.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from searchbench.errors import SearchbenchError

EXAMPLE = "p99 < 50ms, errors < 0.1%"
"""What a promise looks like, for sentences that ask for one."""

_UNITS_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_QUANTILE = re.compile(rf"p{_NUMBER}\s*<\s*{_NUMBER}\s*(ns|us|µs|ms|s)")
_ERRORS = re.compile(rf"errors\s*<\s*{_NUMBER}\s*%")
_BETWEEN = re.compile(r",|\band\b")


@dataclass(frozen=True, slots=True)
class Condition:
    """Fewer than ``allowed`` (share, 0..1) of the requests fail it.

    ``limit_ns``: a response of this or more fails it; None: only an outcome that is not ok does.
    """

    text: str
    allowed: float
    limit_ns: float | None


def parse(text: str) -> tuple[Condition, ...]:
    """The conditions of ``text``, which commas or "and" separate.

    SearchbenchError for the first that is none, with the character at which it begins (from 1).
    """
    found = []
    for part, start in _parts(text):
        words = part.strip()
        quantile, errors = _QUANTILE.fullmatch(words), _ERRORS.fullmatch(words)
        if quantile and 0 < float(quantile[1]) < 100 and float(quantile[2]) > 0:
            share = 1 - float(quantile[1]) / 100
            limit = float(quantile[2]) * _UNITS_NS[quantile[3]]
            found.append(Condition(words, round(share, 12), limit))
        elif errors and 0 < float(errors[1]) <= 100:
            found.append(Condition(words, float(errors[1]) / 100, None))
        else:
            at = start + len(part) - len(part.lstrip()) if words else start
            where = f" (character {at + 1})" if at else ""
            raise SearchbenchError(
                f'"{words}"{where} is no promise; say for example "{EXAMPLE}" '
                "(pNN < TIME with ns, us, ms or s; errors < SHARE%)"
            )
    return tuple(found)


def _parts(text: str) -> list[tuple[str, int]]:
    """Each condition's text, and at which character of the whole it starts (from 0)."""
    starts = [0, *(mark.end() for mark in _BETWEEN.finditer(text))]
    ends = [*(mark.start() for mark in _BETWEEN.finditer(text)), len(text)]
    return [(text[a:b], a) for a, b in zip(starts, ends, strict=True)]
