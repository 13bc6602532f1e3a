"""The table under the answer of one search: its trials by rate, and what else the answer names.

The ends of the interval follow from all trials together, so nothing was driven at most of them. A
rate stands in the table as it stands in the answer, and where it lies between those that were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from searchbench.analysis.judgement import Capacity, Step
from searchbench.analysis.sweep import verdict as sweep
from searchbench.analysis.words import per_s

_OFFERED = "offered/s"
_RATE = re.compile(r"(\d[\d,]*(?:\.\d+)?)/s")
LEAST, MOST = "the limit is at least this", "the limit is at most this"
_OTHER = "estimated, not driven"


def table(
    found: Capacity, steps: Sequence[Step]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Header and lines, by ascending rate; as of a sweep where no rate was driven."""
    header, lines = sweep.table(steps)
    if _OFFERED not in header:
        return header, lines
    at = header.index(_OFFERED)
    rows: list[tuple[float, tuple[str, ...]]] = []
    for step, line in zip(steps, lines, strict=True):
        rate = step.rate_asked_per_s or 0.0
        rows.append((rate, (*line[:at], _text(rate), *line[at + 1 :])))
    driven = {row[at] for _, row in rows}
    for rate, words in _named(found, driven):
        row = [""] * len(header)
        row[at], row[-1] = _text(rate), words
        rows.append((rate, tuple(row)))
    rows.sort(key=lambda row: row[0])
    return (*header[:at], "rate/s", *header[at + 1 :]), tuple(row for _, row in rows)


def _named(found: Capacity, driven: set[str]) -> Iterator[tuple[float, str]]:
    """The rates that the answer names and that were not driven, each with what it is."""
    sure = " (95 %)" if "(95 %" in found.sentence else ""
    seen = set(driven)
    for rate, words in ((found.holds, LEAST), (found.fails, MOST)):
        if rate is not None:
            seen.add(_text(rate))
            if _text(rate) not in driven:
                yield rate, words + sure
    for text in dict.fromkeys(_RATE.findall(f"{found.sentence} {found.doubt}")):
        if text not in seen:
            yield float(text.replace(",", "")), _OTHER


def _text(rate: float) -> str:
    return per_s(rate).removesuffix("/s")
