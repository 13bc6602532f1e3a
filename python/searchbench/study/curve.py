"""``stages`` drawn from a log: the table in a study becomes the list that a load has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from searchbench.errors import QueryError, RecordError
from searchbench.logs import curve
from searchbench.study.positions import Source


def put_in(source: Source, load: dict[str, Any], base: Path) -> None:
    """Put stages, the judged one and where they are from into [load], in place of the table.

    Complains of what is wrong with it. A load whose stages are a list stays as it is.
    """
    given = load.get("stages")
    if not isinstance(given, Mapping):
        return
    at = ("load", "stages")
    del load["stages"]
    table = source.checked(at, curve.KEYS, "`stages` from a log")
    for key in ("log", "peak_per_s"):
        if key not in given:
            source.at_key(
                at, f"`stages` from a log need `{key}`",
                'for example { log = "access.log", seconds = 600, peak_per_s = 400 }',
            )  # fmt: skip
    if not {"log", "peak_per_s"} <= table.keys() or len(table) < len(given):
        return
    try:
        found = curve.drawn(table, base)
    except (QueryError, RecordError) as error:
        source.at_value(at, str(error))
        return
    load["stages"] = [list(stage) for stage in found.stages]
    load.setdefault("judged_stage", found.peak)
    load["curve"] = found.about
