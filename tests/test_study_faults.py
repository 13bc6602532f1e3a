"""Faults in a study: their keys, whom they are of, every mistake in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchbench.errors import StudyError
from searchbench.study.planner import make_plan
from searchbench.study.quick import read_quick
from test_study_roles import HEAD, plan_of, wrong

FAULT = '[roles.loss]\ndoes = "fault"\nfault = "kill"\nafter_s = 2\n'


def test_a_fault_is_of_the_server_unless_it_says_otherwise() -> None:
    plan = plan_of("[systems.groonga]\n" + FAULT)
    (table,) = [t.roles["loss"] for t in plan.treatments]
    assert (table["of"], table["fault"], table["for_s"]) == ("server", "kill", None)
    varied = '[factors]\n"roles.loss.fault" = ["kill", "stop", "freeze"]\n'
    varied += '"roles.loss.idle" = [false, true]\n'
    plan = plan_of('[systems.groonga]\n[roles.loss]\ndoes = "fault"\nafter_s = 2\n' + varied)
    assert len(plan.treatments) == 6


def test_a_process_that_is_not_there_is_left_out_with_those_that_are() -> None:
    varied = '[factors]\n"systems.opensearch.nodes" = [1, 3]\n'
    plan = plan_of("[systems.opensearch]\n" + FAULT + 'of = "n2"\n' + varied)
    assert [t.parameters["nodes"] for t in plan.treatments] == [3]
    (left_out,) = plan.excluded
    assert left_out.reason == 'opensearch has no process "n2" here; it has: server'
    agents = '[systems.sphinx]\nparts = 2\npart_kind = "agent"\n'
    with pytest.raises(StudyError, match='no process "p7" here; it has: server, p0, p1'):
        plan_of(agents + FAULT + 'of = "p7"\n')
    assert plan_of(agents + FAULT + 'of = "p1"\n').treatments


def test_every_mistake_is_named_in_its_place() -> None:
    groonga = "[systems.groonga]\n"
    assert wrong(groonga + '[roles.x]\ndoes = "fault"\nafter_s = 1\n') == [
        '12:8: a fault needs `fault`: "kill", "stop" or "freeze"'
    ]
    (early,) = wrong(groonga + FAULT.replace("after_s = 2", "after_s = 0"))
    needs = "a fault needs `after_s`, above 0: what is normal is seen in the window before it"
    assert early == f"15:11: {needs}"
    assert wrong(groonga + FAULT + "every_s = 2\n") == [
        '16:11: `every_s` is not for a role with does = "fault"'
    ]
    assert wrong(groonga + FAULT + FAULT.replace("loss", "other")) == [
        "16:8: loss is a fault already; a trial can have only one, so that it is known what "
        "caused what"
    ]
    (empty,) = wrong("[systems.null]\n" + FAULT)
    assert empty == "12:8: null keeps no index: it would be empty when it is started again"


def test_a_first_look_has_its_fault_within_its_window(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(HEAD.replace("seconds = 5", "seconds = 60") + "[systems.groonga]\n"
                    + FAULT.replace("after_s = 2", "after_s = 20\nfor_s = 10"))  # fmt: skip
    quick = read_quick(path)
    (treatment,) = make_plan(quick).treatments
    table, window_s = treatment.roles["loss"], float(treatment.load["seconds"])
    assert table["after_s"] + table["for_s"] <= window_s / 2
