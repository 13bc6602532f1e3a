"""A costly query that one of two systems answers and the other fails: who did more in that time?

Both answer as many requests a second. By what these cost, whoever answers the query did more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import records
from records import Array, Server, Study, Treatment
from searchbench.analysis.compare import kept
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Comparison
from searchbench.record import Record, open_record

COSTLY = 7


def server(costly_s: float, rest_s: float = 0.004) -> Server:
    """One query of all takes long."""

    def serve(due: Array, query: Array, rng: np.random.Generator) -> Array:
        took = rest_s * np.exp(0.2 * rng.standard_normal(due.size))
        at = query == COSTLY
        took[at] = costly_s * (1 + 0.02 * rng.standard_normal(int(at.sum())))
        return took

    return serve


class Fails(Study):
    """Under load some treatments fail a share of their requests for the costly query."""

    fails: dict[str, float]

    def _samples(self, t: Treatment, factor: float, rng: np.random.Generator) -> pa.Table:
        made = super()._samples(t, factor, rng)
        outcome = made["outcome"].to_numpy().copy()
        gone = (made["query"].to_numpy() == COSTLY) & (
            rng.random(outcome.size) < self.fails.get(t.id, 0.0)
        )
        outcome[gone] = records.OUTCOMES.index("timed_out")
        at = made.schema.get_field_index("outcome")
        return made.set_column(at, made.schema.field(at), pa.array(outcome))


def study(
    path: Path, of: dict[str, tuple[Server, float]], seed: int, *, blocks: int = 5, **how: Any
) -> Record:
    """``of``: by system its server, and the share of requests for the costly query that fail."""
    made = Fails(blocks=blocks, seed=seed, queries=200, **how)
    made.fails = {name: share for name, (_, share) in of.items()}
    for name, (serve, _) in of.items():
        made.add(name, system=name, server=serve, clients=4, seconds=11, levels={"system": name})
    return open_record(made.write(path))


def throughput(record: Record) -> tuple[Comparison, str | None]:
    judged = judge(record)
    (c,) = (c for c in judged.comparisons if c.metric == "throughput")
    return c, judged.verdict.best


@pytest.mark.parametrize(
    ("costly_s", "share"), [(0.5, 1.0), (0.1, 1.0), (0.5, 0.5)], ids=["long", "short", "half"]
)
def test_who_answers_as_many_is_not_slower_for_failing_a_costly_query(
    tmp_path: Path, costly_s: float, share: float
) -> None:
    of = {"a": (server(costly_s), 0.0), "b": (server(costly_s), share)}
    c, best = throughput(study(tmp_path / "r", of, 1))
    assert c.ratio is not None
    assert c.ratio.value == pytest.approx(1, abs=0.02)
    assert (c.verdict, best) == ("not resolved", None)
    assert kept.ALIKE in c.reason
    assert kept.BY_COST in c.reason


def test_nor_is_who_answers_more_by_giving_up_sooner(tmp_path: Path) -> None:
    of = {"a": (server(0.5), 0.0), "b": (server(0.25), 1.0)}
    c, best = throughput(study(tmp_path / "r", of, 11))
    assert c.ratio is not None
    assert c.ratio.value == pytest.approx(1.24, abs=0.03)
    assert (c.verdict, best) == ("not resolved", None)


def test_who_answers_all_of_it_sooner_is_still_faster(tmp_path: Path) -> None:
    of = {"a": (server(0.5), 0.0), "b": (server(0.25, 0.002), 0.0)}
    c, best = throughput(study(tmp_path / "r", of, 21))
    assert (c.verdict, best) == ("faster", "b")


def runs(path: Path, costly_s: float, share: float, seed: int) -> list[Record]:
    of = {"it": (server(costly_s), share)}
    return [study(path / str(seed + i), of, seed + i, blocks=3) for i in range(4)]


@pytest.mark.parametrize(
    ("costly_s", "shares", "why"),
    [
        ((0.5, 0.5), (0.0, 1.0), "it seems"),
        ((0.5, 1.0), (1.0, 0.0), "fewer requests in a second, though not by what they cost"),
    ],
    ids=["fails now", "failed before, and is answered late"],
)
def test_of_two_records_neither_a_loss_nor_its_absence_is_told(
    tmp_path: Path, costly_s: tuple[float, float], shares: tuple[float, float], why: str
) -> None:
    first, later = (
        runs(tmp_path, costly, share, seed)
        for costly, share, seed in zip(costly_s, shares, (1, 11), strict=True)
    )
    found = compare_records(first[0], later[0], 0.05, first[1:], later[1:])
    (line,) = (c for c in found.comparisons if c.metric == "throughput")
    assert line.verdict == "not resolved"
    assert "the difference is in what these cost" in line.reason
    assert (found.regressed, found.beyond_threshold, [*found.not_known]) == (None, False, ["it"])
    assert why in found.not_known["it"]
    # Whichever run is given first.
    turned = compare_records(first[-1], later[-1], 0.05, first[:-1], later[:-1])
    assert why in turned.not_known["it"]
