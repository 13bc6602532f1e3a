"""``stages`` drawn from a log: the table in a study becomes the list that a load has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from searchbench.errors import QueryError, RecordError
from searchbench.spec import SpecKey
from searchbench.study.positions import Source

KEYS: tuple[SpecKey, ...] = (
    SpecKey("log", "path", None, "a log, a folder of logs, or the record of one (`searchbench logs "
            "--record`)"),
    SpecKey("peak_per_s", "number", None, "requests a second of the busiest stage", above=0,
            maximum=10_000_000),
    SpecKey("seconds", "number", None, "how long all stages last together (default 600)", above=0,
            maximum=86_400),
    SpecKey("stages", "integer", None, "into how many stages the day is cut (default 48)",
            minimum=2, maximum=100),
    SpecKey("day", "text", None, 'which day, as in "2026-11-20"; default: the one with most '
            "requests"),
    SpecKey("format", "text", "", "format of the log, if its content does not show it"),
)  # fmt: skip


def put_in(source: Source, load: dict[str, Any], base: Path) -> None:
    """Put stages, the judged one and where they are from into [load], in place of the table.

    Complains of what is wrong with it. A load whose stages are a list stays as it is.
    """
    given = load.get("stages")
    if not isinstance(given, Mapping):
        return
    from searchbench.logs import curve  # pyarrow takes its time

    at = ("load", "stages")
    del load["stages"]
    table = source.checked(at, KEYS, "`stages` from a log")
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
