"""What makes a study of trials say less: answers that change, a queue that others share, few
requests that agree, levels that were not compared, windows that still move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from records import Study, good_answer, lognormal
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Comparison, Judgement


def of(found: Judgement, metric: str = "throughput") -> Comparison:
    """The only comparison by a metric."""
    (one,) = [c for c in found.comparisons if c.metric == metric]
    return one


class Flaky(Study):
    """``b`` finds half of the documents, in half of the time, for some queries in some blocks."""

    bad: Mapping[int, range] = {}

    def _write_trial(self, writer: Any, planned: Any, position: Any, t: Any, *rest: Any) -> Any:
        if t.id == "b" and planned.block in self.bad:
            queries = self.bad[planned.block]

            def half(query: int) -> dict[str, Any]:
                answer = good_answer(query)
                return answer | {"total": answer["total"] // 2} if query in queries else answer

            t = replace(t, answer=half, server=lognormal(0.002))
        return super()._write_trial(writer, planned, position, t, *rest)


def flaky(path: Path, bad: Mapping[int, range]) -> Judgement:
    study = Flaky(blocks=5, seed=3, trial_noise=0.003, control="a")
    study.bad = bad
    study.add("a", system="a", server=lognormal(0.004))
    study.add("b", system="b", server=lognormal(0.0041))
    return judge(study.write(path))


def test_answers_of_the_middle_blocks_count_too(tmp_path: Path) -> None:
    found = flaky(tmp_path / "r", {1: range(40), 2: range(40), 3: range(40)})
    assert of(found).verdict == "not comparable"
    assert found.verdict.best is None
    numbers = [f.number for f in found.findings if f.kind == "answers changed"]
    assert numbers == ["40 of 40 queries of b in 3 of 5 trials"]
    assert found.agreement[0].agreeing == 0


def test_a_query_agrees_only_if_it_does_in_every_block(tmp_path: Path) -> None:
    found = flaky(tmp_path / "r", {1: range(3), 3: range(2, 6)})
    c = of(found)
    assert (c.queries_used, c.queries_left_out) == (34, 6)
    assert found.agreement[0].causes == {"other answers in other trials": 6}


def test_answers_that_stay_the_same_are_compared_as_before(tmp_path: Path) -> None:
    found = flaky(tmp_path / "r", {})
    assert (of(found).queries_used, of(found).queries_left_out) == (40, 0)
    assert not [f for f in found.findings if f.kind == "answers changed"]
