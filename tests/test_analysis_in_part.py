"""Where not all distinct requests were asked alone: what is known of the others, and what not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import records
from records import Study, good_answer, lognormal
from searchbench.analysis.agreement.agreement import Pair
from searchbench.analysis.agreement.answers import loaded_of
from searchbench.analysis.agreement.every_trial import OTHER_TRIALS
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.compare.same_work import SameWork
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Agreement
from searchbench.record import REPLIES, Record, open_record
from searchbench.record.roles import RoleRun
from searchbench.record.trial import Captured

Answer = Callable[[int], dict[str, Any]]


def lies_to_the_others(query: int) -> dict[str, Any]:
    """Well to the even ones, which are asked alone, and nothing to the odd ones."""
    return good_answer(query) | ({"total": 0, "ids": [], "scores": []} if query % 2 else {})


@pytest.fixture(autouse=True)
def in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the even requests are asked alone."""
    whole = records.Study._replies

    def replies(self: Study, t: Any, rng: np.random.Generator) -> pa.Table:
        rows = whole(self, t, rng)
        odd = np.array(rows.column("query")) % 2 == 1
        alone = np.array(rows.column("phase").to_pylist()) == "captured"
        return rows.filter(pa.array(~(odd & alone)))

    monkeypatch.setattr(records.Study, "_replies", replies)


def swept(path: Path, *servers: tuple[str, float, Answer], queries: int = 40, kept: int = 40,
          seed: int = 7, **how: Any) -> Record:  # fmt: skip
    """``kept``: replies under load on record of each trial."""
    study = Study(blocks=3, control=None, judging={"measure": "sweep"}, queries=queries,
                  under_load=kept, seed=seed, block_noise=0.005, trial_noise=0.005)  # fmt: skip
    for name, service_s, answer in servers:
        study.add(name, system=name, server=lognormal(service_s, 0.1), clients=1, answer=answer,
                  levels={"system": name, "load.clients": 1}, subject=name,
                  extra={"captured": {"distinct": queries // 2}}, **how)  # fmt: skip
    return open_record(study.write(path))


def test_who_answers_well_only_what_is_asked_alone_is_not_the_best(tmp_path: Path) -> None:
    record = swept(tmp_path / "r", ("a", 0.004, good_answer), ("b", 0.002, lies_to_the_others))
    found = judge(record)
    (agreed,) = found.agreement
    assert agreed.queries + agreed.uncompared == 40
    assert agreed.differing > 10, "the replies under load tell"
    assert found.verdict.best is None
    over = f"over the {agreed.agreeing} of {agreed.queries} requests that both answer alike."
    assert over in found.verdict.decision
    said = f"a and b return different totals on {agreed.differing} of {agreed.queries} requests."
    assert said in found.verdict.decision


@pytest.mark.parametrize(("queries", "best"), [(40, "b"), (24, None)])
def test_a_sample_of_answers_that_are_all_alike_has_to_be_large_enough(
    tmp_path: Path, queries: int, best: str | None
) -> None:
    """20 of 20 alike are at least 86.1 % of the others, 12 of 12 at least 77.9 % (95 %)."""
    servers = ("a", 0.004, good_answer), ("b", 0.002, good_answer)
    found = judge(swept(tmp_path / "r", *servers, queries=queries, kept=0))
    n = queries // 2
    assert found.verdict.best == best, found.verdict.decision
    said = f"The answers of a and b were compared on {n} of {queries} distinct requests: "
    assert said in found.verdict.decision
    few = f"not resolved: only {n} of {queries} requests were compared"
    assert (few in found.verdict.decision) is (best is None)


def test_replies_under_load_count_for_what_was_never_asked_alone(tmp_path: Path) -> None:
    servers = ("a", 0.004, good_answer), ("b", 0.002, good_answer)
    found = judge(swept(tmp_path / "r", *servers, kept=400))
    (agreed,) = found.agreement
    assert (agreed.agreeing, agreed.uncompared) == (40, 0)
    assert found.verdict.best == "b"
    assert "distinct requests" not in found.verdict.decision


@pytest.mark.parametrize("kept", [0, 400])
def test_two_records_say_on_how_many_requests_they_were_compared(tmp_path: Path, kept: int) -> None:
    first = swept(tmp_path / "a", ("s", 0.004, good_answer), kept=kept)
    second = swept(tmp_path / "b", ("s", 0.002, lies_to_the_others), kept=kept, seed=8)
    found = compare_records(first, second)
    assert found.agreement is not None
    if kept:
        assert found.answers_changed == {"s": (20, 40)}
        assert "Of 40 queries, totals differ on 20; " in found.decision
    else:
        said = "The answers to all 20 queries that were compared are the same: totals, first 10 "
        said += "hits and their order. 20 more were not compared."
        assert said in found.decision
    assert "faster" not in {c.verdict for c in found.comparisons}


def test_where_documents_change_replies_under_load_tell_nothing(tmp_path: Path) -> None:
    record = swept(tmp_path / "r", ("a", 0.004, good_answer))
    trial = record.trials[0]
    assert len(loaded_of(record, trial)) == 3
    trial.beside = [RoleRun(name="writer", number=1, does="write")]
    assert loaded_of(record, trial) == []
    trial.beside[0].idle = True
    assert len(loaded_of(record, trial)) == 3
    trial.captured = Captured(distinct=40)
    assert loaded_of(record, trial) == [], "all was asked alone"


def sampled(queries: int, agreeing: int, uncompared: int, **more: Any) -> SameWork:
    """Two of which so many answers were compared and agree, and so many were not compared."""
    agreed = Agreement(
        "a", "b", queries=queries, totals_match=1.0, top_k_set_match=None, top_k_order_match=None,
        rbo_mean=None, k=10, unsupported_a=0, unsupported_b=0, errors_a=0, errors_b=0, causes={},
        examples=(), agreeing=agreeing, differing=queries - agreeing, uncompared=uncompared, **more,
    )  # fmt: skip
    other = np.arange(agreeing, queries)
    return SameWork(Pair(agreed, np.arange(agreeing)), other=other)


def test_what_was_not_compared_counts_as_far_as_the_sample_tells() -> None:
    assert sampled(20, 20, 4000).few
    assert not sampled(29, 29, 4000).few
    assert not sampled(4999, 4600, 1).few, "one that is missing changes nothing"
    assert not sampled(4999, 4250, 1).few, "it is known that they are not alike"
    assert sampled(4999, 4250, 1).doubt().startswith("they answer only 4250 of 4999 requests")
    assert not sampled(20, 20, 0).few
    assert not sampled(20, 20, 4000, require="none").few
    empty = sampled(200, 200, 5000, empty=195).few
    assert empty.startswith("only 5 of 5005 requests that find something were compared (5 are")
    of_class = sampled(200, 200, 3800).only(np.arange(20))
    assert not of_class.few, "all 20 of the class were compared"
    assert sampled(200, 200, 3800).only(np.arange(180, 1180)).few


def test_a_query_that_wavers_between_blocks_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    record = swept(tmp_path / "r", ("a", 0.004, good_answer), ("b", 0.002, good_answer), kept=400)
    trial = next(t for t in record.trials if t.system == "b" and t.block == 2)
    path = record.path / "trials" / trial.trial / "replies.parquet"
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        if row["query"] == 4:  # else it would be another answer under load
            row["total"] = 999
    pq.write_table(pa.Table.from_pylist(rows, schema=REPLIES), path)
    (agreed,) = judge(open_record(record.path)).agreement
    assert (agreed.queries, agreed.agreeing) == (40, 39)
    assert agreed.causes == {OTHER_TRIALS: 1}
