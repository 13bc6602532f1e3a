"""``searchbench compare``: did this upgrade change speed or results?"""

from __future__ import annotations

import re
from pathlib import Path

from searchbench.cli.flags import Json
from searchbench.errors import SearchbenchError


def compare(a: Path, b: Path, *, threshold: str = "5%", as_json: Json = False) -> int:
    """Compare two records: faster, slower, or not resolved; and whether results changed.

    Exits with 1 when B is slower than A by more than the threshold, and the data resolve it; with
    2 when the records have nothing in common that could be compared.

    Parameters
    ----------
    a
        The record to compare with (before).
    b
        The record to judge (after).
    threshold
        How much slower is a regression, as a percentage.
    as_json
        Print JSON.
    """
    from searchbench.analysis.compare.records import compare_records
    from searchbench.analysis.judge import to_json
    from searchbench.record import open_record
    from searchbench.terminal import out

    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*%?\s*", threshold)
    if not match:
        raise SearchbenchError(f"--threshold {threshold}: give a percentage such as 5%")
    result = compare_records(open_record(a), open_record(b), float(match[1]) / 100)
    if as_json:
        out.as_json(to_json(result))
    else:
        if result.lines:
            out.table(result.header, result.lines)
            out.say()
        out.say(result.decision)
    if not result.comparisons and not result.answers_changed:
        return 2
    return 1 if result.regressed else 0
