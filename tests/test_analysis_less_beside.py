"""Readers are not faster that had fewer writes beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from searchbench.analysis.compare import acknowledged, less_beside, taken
from searchbench.analysis.compare.family import family
from searchbench.analysis.judgement import Comparison, Estimate, TrialResult, Worked

TRIAL = TrialResult("b01-t01", "t01", 1, False, "valid", "", {}, {}, ())
ASKED = '{"documents_per_s": 500}'


class Treatment:
    """What is looked at of a treatment."""

    def __init__(self, name: str, trials: list[TrialResult], **levels: Any) -> None:
        self.treatment = self.label = name
        self.trials, self.levels, self.draws, self.system = trials, levels, "", "x"


def wrote(*per_s: float, asked: str = ASKED, does: str = "write") -> list[TrialResult]:
    return [replace(TRIAL, worked=(Worked("writer", does, asked, one),)) for one in per_s]


def against(
    a: list[TrialResult], b: list[TrialResult], ratio: float, metric: str = "throughput"
) -> str:
    by_id: Any = {"a": Treatment("a", a), "b": Treatment("b", b)}
    of = Estimate(ratio, "ratio", 3)
    c = Comparison("a", "b", metric, "not resolved", of, 0.001, 1.0, 40, 0)
    return less_beside.against(c, by_id)


@pytest.mark.parametrize("metric", ["throughput", "service_p99"])
def test_who_takes_less_beside_is_not_in_front_by_that(metric: str) -> None:
    said = against(wrote(500, 498, 502), wrote(20, 25, 15), 1.5, metric)
    assert said == (
        "fewer documents were written to b while its readers searched (writer: 20 a second; a: "
        "500), which may leave those readers more of the machine"
    )
    turned = against(wrote(20), wrote(500), 1 / 1.5, metric)
    assert turned.startswith("fewer documents were written to a")


def test_who_answers_fewer_reports_beside_its_readers_is_not_in_front_by_that() -> None:
    said = against(wrote(10, does="read"), wrote(1, does="read"), 1.5)
    assert said.startswith("b answered fewer other requests while its readers searched (writer: 1 ")


def often(*times: int, does: str) -> list[TrialResult]:
    """So many times in the ten seconds of each trial."""
    each = (Worked("r", does, "{}", n / 10, grain=1 / 10) for n in times)
    return [replace(TRIAL, worked=(one,)) for one in each]


def test_who_publishes_less_often_beside_its_readers_is_not_in_front_by_that() -> None:
    said = against(often(10, 10, does="publish"), often(4, 3, does="publish"), 1.5)
    assert said.startswith("b published less often while its readers searched (r: 0.35 a second")
    said = against(often(10, does="job"), often(0, does="job"), 1.5)
    assert said.startswith("b ran the job less often while its readers searched (r: 0 a second")
    once = [[replace(TRIAL, worked=(Worked("r", "job", "{}", n / 10),)) for n in own]
            for own in ((1, 1, 1), (0, 0, 0))]  # fmt: skip
    assert against(once[0], once[1], 1.5).startswith("b ran the job less often"), "it went on after"
    why = "the window begins and ends between two of them"
    assert against(often(3, 3, does="publish"), often(2, 2, does="publish"), 1.5) == "", why
    assert against(often(1, does="job"), often(0, does="job"), 1.5) == "", why
    assert against(often(4, does="publish"), often(10, does="publish"), 1.5) == "", "it did more"


def test_a_version_that_publishes_less_often_is_not_passed() -> None:
    (why,) = acknowledged._less(often(10, 10, 9, does="publish"), often(4, 3, 4, does="publish"))
    assert why == (
        "its role r published 0.367 times per second in the second record, and 0.967 in the first"
    )
    (why,) = acknowledged._less(often(9, 8, 9, does="job"), often(0, 0, 0, does="job"))
    assert why.startswith("its role r ran its job 0 times per second in the second record, and ")
    assert not [*acknowledged._less(often(1, 1, 1, does="job"), often(0, 0, 0, does="job"))]
    assert not [*acknowledged._less(often(0, 10, 10, does="job"), often(4, 4, 4, does="job"))]


def test_one_short_window_neither_hides_nor_shows_that_less_was_done() -> None:
    """Twenty-nine times in a minute against fifteen, and four seconds with one or none."""
    long = [Worked("r", "publish", "{}", n / 60, grain=1 / 60) for n in (29, 15)]
    short = [Worked("r", "publish", "{}", n / 4, grain=1 / 4) for n in (1, 0)]
    more, fewer = [long[0]] * 9, [long[1]] * 9
    assert less_beside.less(fewer, more)
    assert less_beside.less([*fewer, short[1]], [*more, short[0]])
    assert not less_beside.less([*more, short[1]], [*more, short[0]])


def test_who_takes_as_many_or_more_or_is_asked_for_others_may_be_in_front() -> None:
    assert against(wrote(500), wrote(490), 1.5) == "", "about the same work"
    assert against(wrote(20), wrote(500), 1.5) == "", "the one in front did more"
    other = '{"documents_per_s": 20}'
    assert against(wrote(500), wrote(20, asked=other), 1.5) == "", "that is what is compared"
    assert against([TRIAL], wrote(20), 1.5) == "", "an idle writer"
    assert against(wrote(500), wrote(20), 1.5, "ingest_s") == "", "a job has no writer beside it"


def test_readers_beside_roles_are_held_against_idle_ones_however_many_there_are() -> None:
    own: Any = [
        Treatment(f"{system}{rate}", [], system=system, rate=rate)
        for system in "xy"
        for rate in (0, 20, 200, 2000)
    ]
    for one in own:
        one.system = one.levels["system"]
    asked_for = [(f"{s}0", f"{s}{rate}") for s in "xy" for rate in (20, 200, 2000)]
    without, found = family(own), family(own, asked_for)
    assert ("x0", "x2000") not in without
    assert {*found} == {*without, *asked_for}
    assert len(found) == len({*found})


def test_what_others_took_of_a_job_may_have_made_it_longer() -> None:
    quiet, busy = (
        [replace(TRIAL, taken=0.4, taken_of_jobs={"backup_s": share})] * 3 for share in (0.0, 0.2)
    )
    assert taken.floor(quiet, busy, "backup_s") == pytest.approx(1.25)
    assert taken.floor(busy, quiet, "backup_s") == 1.0
    assert taken.floor(quiet, busy, "ingest_s") == 1.0, "no such job"
    assert taken.touched("backup_s")


def test_a_version_that_takes_fewer_writes_is_not_passed_whatever_its_readers_do() -> None:
    (why,) = acknowledged._less(wrote(500, 498, 502), wrote(20, 21, 19))
    assert why == (
        "its role writer had 20 documents acknowledged per second in the second record, and 500 in "
        "the first"
    )
    assert [*acknowledged._less(wrote(500), wrote(20))], "of single trials too"
    assert not [*acknowledged._less(wrote(20, 21), wrote(500, 499))]
    assert not [*acknowledged._less(wrote(500, 300, 400), wrote(450, 310, 350))], "chance"
    assert not [*acknowledged._less(wrote(500), wrote(20, asked="other"))]
