"""``searchbench run``: measure a study, keep the record, write the page that answers."""

from __future__ import annotations

import sys
from pathlib import Path

from searchbench.cli.flags import Flag, Json, Only, Port, Sets


def run(
    study: Path,
    *,
    sets: Sets = None,
    only: Only = None,
    quick: Flag = False,
    again: Flag = False,
    record: Path | None = None,
    work: Path | None = None,
    prometheus: Port = None,
    report: bool = True,
    as_json: Json = False,
) -> int:
    """Measure a study and write its report. Ctrl-C is safe; the same command continues.

    What is on record is not measured again, unless --again is given. To measure all of it again,
    name another --record. If the reader of its output goes away, as `head` does, the run still goes
    on to its end and reports.

    Exits with 1 if a trial failed, if a study of trials has no valid one, if a server stopped
    answering within a trial or answered nothing well in one, or if a promise of a sweep is broken,
    or that of a search at every rate; otherwise with 3 if it cannot be told whether a promise is
    kept.

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
    quick
        Take only a first look, in a minute or two: fewer blocks, shorter windows, fewer documents
        and queries. It decides nothing, and everything it prints and writes says so.
    again
        Measure the trials on record once more that are invalid only because others used the
        machine. What was measured first is kept in the record's folder void, and counts for
        nothing.
    record
        The folder of the record; by default records/NAME, with the changes of --set and --only in
        its name.
    work
        Where indexes are built while measuring; the temporary directory by default.
    prometheus
        Serve rate, outcomes, times and lateness for Prometheus at this port of loopback while it
        runs; 0 for any port.
    report
        Write the report at the end.
    as_json
        Print the judgement as JSON.
    """
    from searchbench.analysis.judge import to_json
    from searchbench.errors import NotInstalled
    from searchbench.lab.get.install import lacking
    from searchbench.lab.place import abilities
    from searchbench.measure.kept import spoilt, standing
    from searchbench.measure.prometheus import exported
    from searchbench.measure.run import run as measure
    from searchbench.record import open_record
    from searchbench.study.inputs import look
    from searchbench.study.overrides import name_of, read_changed
    from searchbench.study.planner import make_plan
    from searchbench.study.quick import read_quick
    from searchbench.terminal import out
    from searchbench.terminal.answer import answer, exit_code, not_again
    from searchbench.terminal.progress import Terminal, beginning, set_aside

    out.outlast_readers()
    changes = sets or (), only or ()
    read = (read_quick if quick else read_changed)(study, *changes)
    plan = make_plan(read)
    place = record or Path("records") / (name_of(read, *changes) + "-quick" * quick)
    found, told, once_more = standing(plan, place), list[str](), tuple[str, ...]()
    if again and found:
        once_more = spoilt(place)
        found = standing(plan, place, once_more)
    if not (found and found.whole):
        told += look(read, plan)
        if absent := [*lacking(plan), *abilities.lacking(plan)]:
            raise NotInstalled("\n".join(absent))
        told += [*abilities.untraced(plan), *abilities.beside_others(plan)]
    sys.stderr.write(f"{beginning(plan, place, found)}\n")
    if again:
        sys.stderr.write(f"{set_aside(once_more)}\n")
    for sentence in told:
        out.say(sentence, sys.stderr)
    try:
        if not (found and found.whole):
            with Terminal(plan) as terminal, exported(terminal, prometheus) as watch:
                measure(read, place, plan=plan, watch=watch, work=work, again=once_more)
    except KeyboardInterrupt:
        sys.stderr.write(
            f"\ninterrupted; what was measured is in {place}; the same command continues\n"
        )
        return 130
    opened = open_record(place)
    page = place / "report" if report else None
    judgement = answer(opened, page, plain=to_json if as_json else None)
    sys.stderr.write(not_again(judgement, again=True))
    return exit_code(opened, judgement)
