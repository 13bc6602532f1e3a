"""cold = "each query": what is asked finds nothing in memory, and first asks are judged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from placing import home
from searchbench.analysis.compare import state
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import TrialResult
from searchbench.analysis.trial.measured import Trace, first_asks, rows_by_ask
from searchbench.errors import StudyError
from searchbench.measure.run import run as measure
from searchbench.record import Record, open_record
from searchbench.record.trial import Asked
from searchbench.report.document.assemble import document
from searchbench.report.document.blocks import Table
from searchbench.study import read_study
from searchbench.study.planner import make_plan
from test_place_study import study

__all__ = ["home"]

FIRST_ASKS = """
[systems.sqlite]
[places.cold]
cold = "each query"
"""


def text(home: Path, rest: str = FIRST_ASKS, requests: str = "requests = 8") -> Path:
    path = study(home, rest)
    window = "seconds = 0.4\nwarmup_s = 0.1"
    path.write_text(path.read_text().replace(window, requests))
    return path


def measured(home: Path, rest: str) -> Record:
    return measure(text(home, rest), home / "record", work=home / "work")


@pytest.mark.timed
@pytest.mark.slow
def test_every_query_is_asked_of_a_new_process_whose_files_are_not_in_memory(home: Path) -> None:
    record = measured(home, FIRST_ASKS + "asks = 3\n")
    (trial,) = record.trials
    assert (trial.status, trial.reason) == ("ok", "")
    assert len(trial.asked) == 8
    assert len({one.query for one in trial.asked}) == 8
    for one in trial.asked:
        assert (one.requests, one.restarted) == (3, True)
        assert one.after <= max(2, one.pages // 1000) < one.pages
    assert any(one.before > one.after for one in trial.asked), "pages were there to be evicted"
    (lever,) = [x for x in trial.place if x.name == "places.cold.cold"]
    assert lever.figures["evictions"] == 8
    rows = record.samples(trial.trial, ["query", "sent", "done"]).to_pydict()
    assert len(rows["query"]) == 24
    assert rows["sent"] == sorted(rows["sent"]), "one clock for all drives"
    starts = [span.start for span in trial.spans if span.phase == "deploy"][-8:]
    asked = [span.start for span in trial.spans if span.phase == "drive"][:8]
    assert all(a < b for a, b in zip(starts, asked, strict=True)), "each after a start of its own"
    found = judge(record)
    (result,) = found.treatments
    (judged,) = result.trials
    assert judged.status == "valid", judged.reason
    assert judged.cold == "each query, after a restart, of files that are not in memory"
    assert judged.figures["service_mean"].n == 8, "first asks alone"
    took = (np.array(rows["done"]) - np.array(rows["sent"])).reshape(8, 3).mean(axis=0) / 1e9
    assert judged.figures["service_mean"].value == pytest.approx(took[0])
    assert judged.figures["ask_3_mean"].value == pytest.approx(took[2])
    assert judged.figures["throughput"].value == pytest.approx(1 / took[0], rel=0.1)
    said = document(record, found)
    (section,) = [s for s in said.sections if s.id == "first-asks"]
    (table,) = [b for b in section.blocks if isinstance(b, Table)]
    assert [c.name for c in table.columns][-2:] == ["Ask 2, mean", "Ask 3, mean"]
    assert not [s for s in said.sections if s.id == "warmup"]


# SQLite as it is maps its file, and the index of its log.
READS = FIRST_ASKS.replace("[systems.sqlite]", '[systems.sqlite]\nmmap_mb = 0\njournal = "off"')


@pytest.mark.slow
def test_without_a_restart_the_process_stays_and_its_files_are_evicted(home: Path) -> None:
    record = measured(home, READS + "restart = false\n")
    (trial,) = record.trials
    assert (trial.status, trial.reason) == ("ok", "")
    assert not any(one.restarted for one in trial.asked)
    assert any(one.before for one in trial.asked[1:]), "the query before had read pages"
    assert max(one.after for one in trial.asked) <= 2
    assert sum(span.phase == "deploy" for span in trial.spans) == 2, "for the ingest, and to ask"
    (path,) = record.path.glob("trials/*/trial.json")
    about = json.loads(path.read_text())
    for core in about["host_window"]["by_core"]:
        core["steal_s"] = 0.5 * about["host_window"]["seconds"]
    path.write_text(json.dumps(about))
    ((result,),) = (t.trials for t in judge(open_record(record.path)).treatments)
    assert result.taken > 0.4, "what others took counts in cold trials too"


@pytest.mark.slow
def test_pages_that_a_process_has_mapped_stay_and_fail_the_trial(home: Path) -> None:
    (trial,) = measured(home, FIRST_ASKS + "restart = false\n").trials
    assert (trial.status, trial.stage) == ("failed", "place")
    assert trial.reason.startswith("the lever places.cold.cold did not take effect: each query was")
    assert trial.reason.endswith(
        "because a process has mapped them or writes to them; set restart = true"
    )


def test_first_asks_follow_one_another_without_what_was_between_them() -> None:
    asked = [
        Asked(query=7, requests=2, start=0, end=50),
        Asked(query=9, requests=1, start=1000, end=1100),
        Asked(query=4, requests=2, start=5000, end=5100),
    ]
    due = np.array([10, 31, 1020, 5000, 5060])
    whole = Trace(
        query=np.array([7, 7, 9, 4, 4], np.uint32),
        outcome=np.zeros(5, np.uint8),
        due=due,
        free=due,
        sent=due + 1,
        done=np.array([30, 40, -1, 5050, 5061]),
        window=(0, 5101),
    )
    assert [rows.tolist() for rows in rows_by_ask(asked)] == [[0, 2, 3], [1, 4]]
    found = first_asks(whole, asked)
    assert found.query.tolist() == [7, 9, 4]
    assert found.due.tolist() == [0, 20, 21]
    assert (found.done - found.sent).tolist()[::2] == [19, 49]
    assert found.done.tolist()[1] == -1
    assert found.window == (0, 71)


def test_cold_is_compared_with_what_was_just_as_cold() -> None:
    def one(cold: str) -> state.State:
        trial = TrialResult("b01-t01", "t01", 1, False, "valid", "", {}, {}, (), cold=cold)
        return state.of_trials([trial])

    assert state.floor(("a", one("x")), ("b", one("x")), 0.5).kind == "steady"
    for other in ("", "y"):
        found = state.floor(("a", one("x")), ("b", one(other)), 0.5)
        assert (found.kind, found.ratio) == ("cold and warm", float("inf"))


@pytest.mark.parametrize(
    ("rest", "requests", "said"),
    [
        (FIRST_ASKS, "requests = 8\nclients = 2", "one client asks at a time: clients = 1"),
        (FIRST_ASKS, "seconds = 1.0", "set how many are asked, as in requests = 50"),
        (FIRST_ASKS, "requests = 8\nwarmup_requests = 2", "leave out `warmup_requests`"),
        (FIRST_ASKS, "rate_per_s = 5", "one client asks at a time: clients = 1"),
    ],
)
def test_a_load_that_is_none_of_first_asks_is_named(
    home: Path, rest: str, requests: str, said: str
) -> None:
    with pytest.raises(StudyError, match=said):
        make_plan(read_study(text(home, rest, requests)))


def test_restarts_and_asks_belong_to_it(home: Path) -> None:
    wrong = FIRST_ASKS.replace('"each query"', '"trial"') + "asks = 2\n"
    with pytest.raises(StudyError, match='`asks` is for cold = "each query"'):
        read_study(text(home, wrong))
