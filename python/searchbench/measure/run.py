"""From a study to its record: the lab measures, and the judge says what a search asks next, when a
system is warm, and which trial is invalid.

The lab drives and never judges, the judge sees the record so far and never drives.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchbench.lab.conduct.watch import Watch
    from searchbench.record import Record
    from searchbench.study import Study
    from searchbench.study.plan import Plan


def run(
    study: Study | Path | str,
    record: Path | str | None = None,
    *,
    plan: Plan | None = None,
    watch: Watch | None = None,
    work: Path | None = None,
    again: Collection[str] = (),
) -> Record:
    """Measure a study; its record. Called again on the same record it continues.

    ``record``: the folder, ``records/NAME`` if None. ``plan``: the study's, if it was made
    already. ``work``: where indexes are built while measuring (default: the temporary
    directory). ``again``: trials on record that are set aside and measured once more. StudyError,
    CorpusError, QueryError, NotInstalled, RecordError, LabError; a trial that fails is on record
    as failed and raises nothing. KeyboardInterrupt leaves a valid record.
    """
    from searchbench.analysis.capacity.search import next_load
    from searchbench.analysis.sweep.promises import Breach
    from searchbench.analysis.trial.warming import is_warm
    from searchbench.lab.conduct import studies
    from searchbench.measure.kept import invalid

    return studies.run(
        study,
        record,
        decide=next_load,
        is_warm=is_warm,
        breach=lambda promises, window, classes: Breach(promises, window, classes).saw,
        invalid=invalid,
        plan=plan,
        watch=watch,
        work=work,
        again=again,
    )
