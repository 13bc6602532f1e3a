"""The verdict: its sentences where many systems meet, and its table in a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from records import Study, lognormal
from searchbench.analysis.compare.verdict import clip
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Verdict
from searchbench.record import open_record


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("tantivy clients=8", "tantivy clients=8"),
        ("postgresql match=phrase clients=8", "postgresql phrase clients=8"),
        ("lucene match=any merged=true parts=10", "lucene any merged=true parts=10"),
        ("elasticsearch-two match=phrase clients=8", "elasticsearch-t…hrase clients=8"),
    ],
)
def test_a_label_that_is_too_long_keeps_what_tells_it_apart(label: str, shown: str) -> None:
    assert clip(label, 31) == shown


def many(tmp_path: Path, noise: float) -> Verdict:
    """Five systems, each 1.5 times as slow as the one before, at two settings and two questions."""
    study = Study(blocks=4, block_noise=noise)
    for mode in ("any", "all"):
        for clients in (1, 2):
            for place, system in enumerate(("a", "b", "c", "d", "e")):
                study.add(
                    f"{system}-{mode}-{clients}",
                    system=system,
                    server=lognormal(0.002 * 1.5**place),
                    clients=clients,
                    seconds=3,
                    levels={"system": system, "queries.match": mode, "load.clients": clients},
                )
    return judge(open_record(study.write(tmp_path / "r"))).verdict


def test_many_systems_are_told_in_one_sentence_and_each_question_by_itself(tmp_path: Path) -> None:
    verdict = many(tmp_path, noise=0.0)
    assert "Of 5 systems a is the best by throughput" in verdict.decision
    assert verdict.decision.count("settings") == 1
    found = re.search(r"it reaches ([0-9.]+) times b, ([0-9.]+) times c", verdict.decision)
    assert found is not None, verdict.decision
    assert float(found[1]) == pytest.approx(1.5, rel=0.1)
    assert float(found[2]) == pytest.approx(2.25, rel=0.1)
    assert "Asked match=any: " in verdict.decision
    assert "Asked match=all: " in verdict.decision
    assert verdict.best is None, "there is no best across questions"
    assert [line[-1] for line in verdict.lines].count("the best") == 2


def test_where_nothing_is_resolved_no_system_is_called_the_best(tmp_path: Path) -> None:
    study = Study(blocks=2, block_noise=0.5, seed=3)
    for system in "abcd":
        for clients in (1, 2):
            study.add(
                f"{system}-{clients}",
                system=system,
                server=lognormal(0.003),
                clients=clients,
                seconds=1.5,
                levels={"system": system, "load.clients": clients},
            )
    verdict = judge(open_record(study.write(tmp_path / "r"))).verdict
    assert "Not resolved: which of 4 systems is the best" in verdict.decision
    assert "Of 4 systems" not in verdict.decision
