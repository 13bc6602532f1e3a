"""The exit status of a search: 1 where no rate keeps the promise, 3 where none is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from queues import fixed
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement
from searchbench.record import Record
from searchbench.terminal.answer import exit_code
from searches import Lab


def searched(folder: Path, service_s: float, **more: object) -> tuple[Record, Judgement]:
    """A search for the greatest rate with p99 < 50 ms; four workers take so long for a request."""
    lab = Lab(folder, {"a": fixed(4, service_s)}, ("p99 < 50ms",), effort=0.3, **more)  # type: ignore[arg-type]
    record = lab.run()
    return record, judge(record)


def test_a_promise_that_is_broken_at_every_rate_of_a_search_exits_with_1(tmp_path: Path) -> None:
    record, found = searched(tmp_path / "r", 0.060, look_per_s=30.0)
    (one,) = found.capacity
    assert "broken even at" in one.sentence
    assert exit_code(record, found) == 1


def test_a_search_that_finds_the_limit_exits_with_0_though_higher_rates_break_the_promise(
    tmp_path: Path,
) -> None:
    record, found = searched(tmp_path / "r", 0.002, look_per_s=1000.0)
    (one,) = found.capacity
    assert one.holds is not None
    assert any(t.verdict == "fails" for t in one.trials)
    assert exit_code(record, found) == 0


@pytest.mark.parametrize("service_s", [0.002, 0.060])
def test_a_search_of_which_nothing_is_known_exits_with_3(tmp_path: Path, service_s: float) -> None:
    """Its replies are other ones at every rate, or it is a first look, which decides nothing."""
    lies = {"lies_above": {"a": 0.0}, "look_per_s": 100.0}
    record, found = searched(tmp_path / "r", service_s, **lies)
    (one,) = found.capacity
    assert (one.holds, one.fails) == (None, None)
    assert exit_code(record, found) == 3
    record, found = searched(tmp_path / "look", service_s, look_per_s=100.0)
    path = record.path / "plan.json"
    plan = json.loads(path.read_text())
    plan["judging"]["first_look"] = True
    path.write_text(json.dumps(plan))
    assert exit_code(record, judge(record.path)) == 3
