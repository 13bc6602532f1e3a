"""Searches in which the server gave other answers under load than when asked alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from queues import fixed
from searchbench.analysis.capacity.bracket import bracket
from searchbench.analysis.capacity.pace import Seen
from searchbench.analysis.capacity.verdict import sustained
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.compare.same_work import SameWork
from searchbench.analysis.judge import judge
from searchbench.analysis.trial.measured import Samples
from searchbench.analysis.words import per_s
from searchbench.record import Record
from searchbench.study import plan as plans
from searchbench.terminal.answer import exit_code
from searches import Lab
from searches import search as alone
from test_analysis_capacity import PROMISE, holding, one_queue


def lying(path: Path, above_per_s: float, **how: Any) -> Record:
    """A search of a server whose replies under load are empty from a rate on."""
    how = {"effort": 0.1, "look_per_s": 1000.0} | how
    return one_queue(path, lies_above={"sphinx": above_per_s}, **how)


def test_no_limit_is_named_above_the_rate_from_which_on_the_answers_changed(
    tmp_path: Path,
) -> None:
    found = judge(lying(tmp_path / "r", 800))
    (one,) = found.capacity
    least = min(t.rate_per_s for t in one.trials if t.rate_per_s >= 800)
    assert one.fails == least
    assert 0 < (one.holds or 0) < 800
    assert {t.verdict for t in one.trials if t.rate_per_s >= 800} == {"left out"}
    assert {s.status for s in found.steps if (s.rate_asked_per_s or 0) >= 800} == {"void"}
    assert {s.status for s in found.steps if (s.rate_asked_per_s or 0) < 800} == {"valid"}
    assert (
        f"From {per_s(least)} on the answers changed under load (200 of 200 sampled replies are "
        "not what the same requests got when asked alone), so no rate from there on keeps the "
        "promise." in one.sentence
    )
    assert "Where it fails is not known" not in one.sentence
    assert found.void.endswith("(other answers under load); the search leaves it out.")


@pytest.mark.parametrize("how", [{"above_per_s": 6000}, {"above_per_s": 0, "changed": 2}])
def test_a_limit_below_that_rate_or_with_few_other_answers_stands(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    found = judge(lying(tmp_path / "r", **how))
    (one,) = found.capacity
    assert holding(one, 1740)
    said = [p for p in found.verdict.points if p.startswith("If other answers count as failed (")]
    assert len(said) == ("changed" in how), "2 of 200, where 1 % may be late"
    assert one.holds is not None
    assert one.fails is not None
    assert one.sentence.startswith("The limit is between ")


def test_a_limit_well_below_a_rate_with_other_answers_is_found_without_it(tmp_path: Path) -> None:
    (one,) = judge(lying(tmp_path / "r", 3000)).capacity
    assert any(t.rate_per_s > 3000 for t in one.trials)
    assert holding(one, 1740)
    assert (one.fails or 3000) < 3000
    assert "on the answers changed under load (200 of 200" in one.sentence
    assert "1 of 11 trials is left out." in one.sentence


@pytest.mark.parametrize("above_per_s", [800.0, 6000.0, 0.0])
def test_no_capacity_is_found_by_replies_of_other_sizes(tmp_path: Path, above_per_s: float) -> None:
    """Nobody reads the replies; from a rate on they are a third as large as alone."""
    how = {"effort": 0.1, "look_per_s": 1000.0, "cut": {"sphinx": above_per_s}}
    (one,) = judge(one_queue(tmp_path / "r", **how)).capacity
    cut = [t for t in one.trials if t.rate_per_s >= above_per_s]
    assert {t.verdict for t in cut} <= {"left out"}
    if above_per_s > 1740:
        assert holding(one, 1740), "a limit below that rate stands"
    elif not above_per_s:
        assert (one.holds, one.fails) == (None, None)
        assert one.sentence.startswith("Not comparable: the replies had other sizes under load")
    else:
        assert 0 < (one.holds or 0) < above_per_s
        assert one.fails is None, "it is not known whether the promise is kept there"
        least = min(t.rate_per_s for t in cut)
        assert f"From {per_s(least)} on the replies had other sizes under load (" in one.sentence
        assert "have another size than when the same was asked alone), so it is not known" in (
            one.sentence
        )


def test_where_all_answers_change_under_load_there_is_no_capacity(tmp_path: Path) -> None:
    before, after = one_queue(tmp_path / "a", effort=0.1), lying(tmp_path / "b", 0)
    found = judge(after)
    (one,) = found.capacity
    assert (one.holds, one.fails) == (None, None)
    assert one.sentence.startswith("Not comparable: the answers changed under load, down to 1/s (")
    assert found.void == (
        "Void: none of the 6 trials says anything about what the server sustains (other answers "
        "under load), so no rate is known that keeps the promise."
    )
    assert not found.verdict.resolved
    lost, won = compare_records(before, after), compare_records(after, before)
    assert lost.lost == {"sphinx": "gave other answers under load than when asked alone"}
    assert (lost.beyond_threshold, won.beyond_threshold) == (True, False)
    for both, which in ((lost, "second"), (won, "first")):
        (line,) = both.comparisons
        assert (line.verdict, line.ratio) == ("not comparable", None)
        assert line.reason.startswith(f"the {which} gave other answers under load")


def test_a_server_that_is_fast_by_other_answers_wins_no_search(tmp_path: Path) -> None:
    servers = {"liar": fixed(4, 0.0005), "honest": fixed(4, 0.002)}
    lab = Lab(tmp_path / "r", servers, (PROMISE,), effort=0.3, lies_above={"liar": 300.0})
    found = judge(lab.run())
    liar, honest = found.capacity
    assert (liar.fails or math.inf) < 2 * 300
    assert holding(honest, 1740)
    assert found.verdict.best != "liar"
    assert "honest sustains more than liar" in found.verdict.decision


def test_one_other_reply_of_a_short_trial_ends_no_search() -> None:
    found = alone(fixed(4, 0.002), PROMISE, 1000, effort=0.1)
    low = min(found.driven, key=lambda d: d.rate_per_s)

    def seen(others: int) -> Seen:
        judged = replace(low.judged, others=others, sampled=40)
        return Seen([replace(d, judged=judged) if d is low else d for d in found.driven])

    assert len(seen(1).used) == len(found.driven) - 1
    once = bracket(seen(1))
    assert once.fails is not None
    assert once.sentence.endswith(
        "is left out, because one of its sampled replies was not what the same request got when it "
        "was asked alone."
    )
    twice = bracket(seen(2))
    assert (twice.holds, twice.fails) == (None, None)
    assert "(2 of 40 sampled replies" in twice.sentence


def test_a_search_without_a_capacity_rests_on_no_void_trial(tmp_path: Path) -> None:
    record = lying(tmp_path / "r", 0, most=4)
    found = judge(record)
    steps = [
        replace(s, status="void", findings=()) if i else replace(s, status="valid", findings=())
        for i, s in enumerate(found.steps)
    ]
    (one,) = found.capacity
    trials = tuple(replace(t, verdict="holds") if i else t for i, t in enumerate(one.trials))
    changed = replace(found, steps=tuple(steps), capacity=(replace(one, trials=trials),))
    again = sustained(changed, lambda a, b: SameWork(), Samples(record))
    assert f"{PROMISE}: Not comparable: the answers changed" in again.verdict.decision


@dataclass
class Live(Lab):
    """A server whose documents change after its ``k``-th trial: 20 of 200 replies are others then,
    whatever the rate."""

    k: int = 3

    def _driven(self, template: plans.Treatment, block: int, n: int) -> bool:
        self.lies_above = {template.subject: 0.0 if n > self.k else math.inf}
        return super()._driven(template, block, n)


@pytest.mark.parametrize("k", [2, 3, 4, 6, 8, 10])
def test_documents_that_change_within_a_search_are_not_the_rates_doing(
    tmp_path: Path, k: int
) -> None:
    lies = {"a": math.inf}
    servers = {"a": fixed(4, 0.002)}
    lab = Live(tmp_path / "r", servers, (PROMISE,), effort=0.3, look_per_s=1500, changed=20,
               lies_above=lies, k=k)  # fmt: skip
    record = lab.run()
    found = judge(record)
    (one,) = found.capacity
    if all(t.verdict != "left out" for t in one.trials):
        pytest.fail("the search ended before its documents changed: choose an earlier trial")
    assert (one.holds, one.fails, one.chance_inside) == (None, None, None)
    assert "The answers changed with the time, and not with the rate: in one trial, at " in (
        one.sentence
    )
    assert "(20 of 200 sampled replies are not what the same requests got" in one.sentence
    assert "so no rate from there on keeps the promise" not in one.sentence
    assert sum(t.verdict == "left out" for t in one.trials) <= 2, "one changed, and one to know why"
    assert exit_code(record, found) == 3
    assert "The search is not finished" not in one.sentence


def test_a_rate_that_had_the_same_answers_is_driven_again_to_tell_rate_from_time(
    tmp_path: Path,
) -> None:
    (one,) = judge(lying(tmp_path / "r", 3000)).capacity
    rates = [t.rate_per_s for t in one.trials]
    changed = next(i for i, t in enumerate(one.trials) if t.verdict == "left out")
    assert rates[changed + 1] == max(r for r in rates[:changed] if r < 3000)
    assert "with the time" not in one.sentence
