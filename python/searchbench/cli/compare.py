"""``searchbench compare``: did this upgrade change speed or results?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from searchbench.cli.flags import Json
from searchbench.errors import SearchbenchError

Runs = Annotated[
    tuple[Path, ...], Parameter(consume_multiple=True, negative=(), show_default=False)
]


def compare(
    a: Path,
    b: Path,
    *,
    threshold: str = "5%",
    same: Runs = (),
    same_b: Runs = (),
    out: Path | None = None,
    as_json: Json = False,
) -> int:
    """Compare two records: did a change affect speed or results?

    Two records are two runs. They can show that these runs differ, but not that B is faster or
    slower: that takes further runs of both (--same and --same-b).

    Exits with 1 if B is worse than A by more than the threshold and by more than the known noise.
    With --same and --same-b that is the noise between runs of both, with one of them the noise
    between the runs of that side, and otherwise only the noise within these two runs.

    Also exits with 1 if something is lost altogether: if a treatment that A has, a load of a sweep
    or a rate of a capacity search that A answered fails in half of B's runs or more, or in half of
    B's trials or more, and in so many trials that it is more than chance; if B does not support
    queries that A answers, or fails a class of them; or if, after a fault or an overload, answers
    do not become normal again, become normal later than in A, or acknowledged documents are gone.

    Exits with 2 if nothing could be compared: the records have nothing in common, have too few
    valid trials, or are one and the same.

    Exits with 3 if no loss is resolved, but for some treatments it cannot tell, for example because
    the load generator or the machine spoilt their trials, or because a single trial failed.

    Other changes of results do not affect the status: they are findings, and are in the JSON. Nor
    does a single class of queries that became slower; the answer names the class.

    Parameters
    ----------
    a
        The record to compare with (before the change).
    b
        The record to judge (after the change).
    threshold
        The loss to accept in B, as a percentage.
    same
        Further records of the same thing as A, preferably three or more, some made after B. They
        show how much runs of the same thing differ.
    same_b
        Further records of the same thing as B, preferably three or more. Without them, each start
        of B may have a speed of its own, so a difference is called neither faster nor slower.
    out
        Also write this HTML file, with all metrics, the answers, what else differs, and what would
        change the verdict.
    as_json
        Print JSON.
    """
    from searchbench.analysis.compare.decision import reasons
    from searchbench.analysis.compare.records import compare_records
    from searchbench.analysis.judge import to_json
    from searchbench.logs.record import is_one as is_log
    from searchbench.record import open_record
    from searchbench.terminal import classes
    from searchbench.terminal import out as terminal

    terminal.outlast_readers()
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*%?\s*", threshold)
    if not match:
        raise SearchbenchError(f"--threshold {threshold}: give a percentage such as 5%")
    if log := next((path for path in (a, b, *same, *same_b) if is_log(path)), None):
        raise SearchbenchError(
            f"{log} is the record of a log, which has counts and no single searches; compare the "
            "log itself with a record: searchbench logs FILE --against RECORD"
        )
    further = [[open_record(path) for path in paths] for paths in (same, same_b)]
    before, after = open_record(a), open_record(b)
    result = compare_records(before, after, float(match[1]) / 100, *further)
    if as_json:
        terminal.as_json(to_json(result))
    else:
        terminal.say(result.headline)
        terminal.points(result.points)
        if result.lines:
            terminal.say()
            terminal.table(result.header, result.lines)
        header, rows = classes.of_records(result)
        if rows:
            terminal.say()
            terminal.table(header, rows)
        if why := "\n".join(reasons(result.comparisons, result.metric)):
            terminal.say("\n" + why)
        for finding in result.findings:
            if finding.severity == "warning":
                terminal.say(
                    f"\n{finding.kind}: {finding.number}. {finding.meaning} {finding.remedy}"
                )
    if out is not None:
        from searchbench.report import write_comparison

        written = write_comparison(result, before, after, out)
        if not as_json:
            terminal.say(f"\npage: {written}")
    if result.beyond_threshold:
        return 1
    if not any(line.verdict != "not comparable" for line in result.comparisons):
        return 2
    mixed = any(finding.kind == "not the same" for finding in result.findings)
    return 3 if result.not_known or mixed else 0
