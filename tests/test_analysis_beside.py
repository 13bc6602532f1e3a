"""Readers beside a writer are held against the idle treatment that begins with the same index."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from searchbench.analysis.judgement import Estimate
from searchbench.analysis.roles import results
from searchbench.study.planner import make_plan
from searchbench.study.read import parse_study

HEAD = """\
question = "?"
[corpus]
family = "generated"
documents = 1000
[queries]
distinct = 5
[load]
clients = 1
warmup_s = 1
seconds = 5
[systems.groonga]
[roles.writer]
does = "write"
[factors]
"roles.writer.documents_per_s" = [0, 10]
"""
SHARES = '"roles.writer.share" = [0.1, 0.5]\n'
KINDS = """what = [
    { name = "inserts", set = { "roles.writer.insert" = 1, "roles.writer.update" = 0 } },
    { name = "updates", set = { "roles.writer.insert" = 0, "roles.writer.update" = 1 } },
]
"""


@pytest.mark.parametrize("factor", [SHARES, KINDS])
def test_what_a_writer_costs_is_not_what_an_index_of_another_size_costs(factor: str) -> None:
    """Readers are as fast as their index is small, and writing costs them nothing."""
    plan = make_plan(parse_study(HEAD + factor, "study.toml", Path()))
    treatments: list[Any] = []
    for t in plan.treatments:
        rate = 1000 / (1 - (t.roles["writer"]["share"] or 0.0))
        trials = [
            SimpleNamespace(block=b, counts=True,
                            figures={"throughput": Estimate(rate * (1 + 0.001 * b), "/s", 1)})
            for b in range(3)
        ]  # fmt: skip
        treatments.append(
            SimpleNamespace(treatment=t.id, label=t.label, levels=t.levels, trials=trials)
        )
    found = results._beside(treatments, {t.id: t for t in plan.treatments})
    assert len(found) == 2
    assert {one.idle for one in found} == {t.id for t in plan.treatments if results.idle(t)}
    assert [one.ratios["throughput"].value for one in found] == pytest.approx([1.0, 1.0])
