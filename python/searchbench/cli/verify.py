"""``searchbench verify``: do the systems return the same? No timing."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from searchbench.cli.flags import Json, Only, Sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from searchbench.analysis.judgement import Agreement


_PAIRS = 6  # shown with examples


def verify(
    study: Path,
    *,
    sets: Sets = None,
    only: Only = None,
    record: Path | None = None,
    work: Path | None = None,
    as_json: Json = False,
) -> int:
    """Send every distinct query to every system of a study, and compare what they return.

    Nothing is timed. Exits with 1 if a query differs at the level that the study requires, if only
    one of two systems answers it, or if a system failed.

    Parameters
    ----------
    study
        The study file.
    sets
        Change the study: KEY=VALUE, as in load.seconds=3, systems.NAME.PARAMETER=4, seed=7. May be
        given several times.
    only
        Keep one level of a factor: FACTOR=LEVEL, as in system=NAME or load.clients=4. Give it
        several times to keep several levels.
    record
        Keep the answers in this new folder, as a record without times, which `searchbench report`
        reads. By default they are not kept.
    work
        Where indexes are built; the temporary directory by default.
    as_json
        Print JSON.
    """
    from searchbench.analysis.findings import disagreeing
    from searchbench.analysis.judge import agreements
    from searchbench.lab.conduct import studies
    from searchbench.study.inputs import look
    from searchbench.study.overrides import read_changed
    from searchbench.study.planner import make_plan
    from searchbench.terminal import out
    from searchbench.terminal.progress import Terminal

    out.outlast_readers()
    read = read_changed(study, sets or (), only or ())
    for sentence in look(read, make_plan(read)):
        out.say(sentence, sys.stderr)
    with tempfile.TemporaryDirectory(prefix="searchbench-verify-") as folder:
        place = record or Path(folder) / "record"
        try:
            with Terminal(None) as watch:
                kept = studies.verify(read, place, watch=watch, work=work)
        except KeyboardInterrupt:
            if record is None or not (record / "record.json").is_file():
                raise
            sys.stderr.write(f"\ninterrupted; what was answered is in {record}, which verify does "
                             "not continue: remove it, or name another folder\n")  # fmt: skip
            return 130
        found = agreements(kept)
        failed = [t for t in kept.trials if t.status != "ok"]
    required = read.agreement.require != "none"
    differ = required and any(map(_differ, found))
    if as_json:
        out.as_json([asdict(a) for a in found])
        return 1 if differ or failed else 0
    for trial in failed:
        out.say(f"{trial.label}: failed at {trial.stage}: {trial.reason}")
    if not found:
        out.say("there is nothing to compare: fewer than two configurations answered")
        return 1 if failed else 0
    _shares(found)
    for finding in disagreeing(found):
        if finding.kind == "nothing found":
            out.say(f"\n? nothing found: {finding.number}. {finding.meaning} {finding.remedy}")
    _measures(found)
    _examples(found, required=required)
    return 1 if differ or failed else 0


def _differ(found: Agreement) -> bool:
    """Whether any query differs at the level that the study requires, or is answered by one side
    alone, or none was answered by both. What cannot be decided (lists without an order) is none.
    """
    return bool(found.differing or found.only_a or found.only_b or not found.queries)


def _shares(found: Sequence[Agreement]) -> None:
    """The pairs by number, then on how many queries each returns the same, in 80 columns."""
    from searchbench.terminal import out

    for number, a in enumerate(found, start=1):
        out.say(f"{number}  {a.label_a} / {a.label_b}")
    rows = [
        {
            "pair": number,
            "queries": a.queries,
            "totals": f"{a.totals_match:.1%}",
            f"top {a.k} set": "-" if a.top_k_set_match is None else f"{a.top_k_set_match:.1%}",
            f"top {a.k} order": "-"
            if a.top_k_order_match is None
            else f"{a.top_k_order_match:.1%}",
            "without hits": a.without_hits,
            "RBO": "-" if a.rbo_mean is None else f"{a.rbo_mean:.3f}",
            "": "causes: " * bool(a.causes)
            + ", ".join(f"{n} {cause}" for cause, n in a.causes.items())
            + "; " * bool(a.causes and (a.dropped_a or a.dropped_b))
            + ", ".join(
                f"{n} cannot be asked of {label}"
                for n, label in ((a.dropped_a, a.label_a), (a.dropped_b, a.label_b))
                if n
            ),
        }
        for number, a in enumerate(found, start=1)
    ]
    out.table(list(rows[0]), [list(row.values()) for row in rows])


def _examples(found: Sequence[Agreement], *, required: bool) -> None:
    """Queries that differ; of many pairs, those that differ in what the study requires first."""
    from searchbench.terminal import out
    from searchbench.terminal.differences import difference

    def worst(agreement: Agreement) -> int:
        return -agreement.differing if required else 0

    differing = sorted((a for a in found if a.examples), key=worst)
    for agreement in differing[:_PAIRS]:
        out.say(f"\n{agreement.label_a} / {agreement.label_b}, for example")
        for example in agreement.examples[:5]:
            for line in difference(example, agreement.label_a, agreement.label_b):
                out.say(line)
    if len(differing) > _PAIRS:
        out.say(
            f"\n{len(differing) - _PAIRS} more pairs have queries that differ: see --json, or keep "
            "the answers with --record and give `searchbench report` that folder"
        )


def _measures(found: Sequence[Agreement]) -> None:
    """The measures of the Sphinx comparison study, a row a pair by number, in 80 columns."""
    from searchbench.terminal import out

    rows = []
    for number, agreement in enumerate(found, start=1):
        groups = agreement.groups
        if groups is None:
            continue
        tau = groups.kendall_tau
        rows.append(
            {
                "pair": str(number),
                "results": _share(*groups.total_results_match),
                "found": _share(*groups.total_found_match),
                "top 10": _share(*groups.top_10_match),
                "set": _share(*groups.document_set_match),
                "groups": _share(*groups.document_groups_match),
                "mismatch": _share(*groups.document_mismatch),
                "max": str(groups.max_mismatch),
                "median": f"{groups.median_mismatch:g}",
                "tau-b": "–" if tau is None else f"{tau:.3f}",
            }
        )
    if not rows:
        return
    out.say("\nby documents; match: results, found, top 10, set, groups; then what is missing")
    out.table(list(rows[0]), [list(row.values()) for row in rows])


def _share(count: int, of: int) -> str:
    """Per cent; what is not quite all or nothing is never rounded to that."""
    if not of:
        return "–"
    share = count / of
    if 0.9995 <= share < 1:
        return ">99.9%"
    return "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"
