"""A load generator that sends to one of two equal servers later is no difference of the servers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from records import Array, Server, Study, lognormal
from searchbench.analysis.compare.late import LATE, REMEDY
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement, RecordComparison
from searchbench.record import Record, open_record

USUAL_S = 0.004
IN_TIME = 0.001


def later(share: float, times: float = 1.0) -> tuple[Server, int]:
    """A server that is ``times`` as slow, to which each request is sent late by a share of the
    usual time; and that share in ns.
    """
    own = lognormal(USUAL_S * times, 0.1)

    def server(due: Array, query: Array, rng: np.random.Generator) -> Array:
        return own(due, query, rng) + share * USUAL_S

    return server, int(share * USUAL_S * 1e9)


def judged(
    path: Path,
    of: dict[str, tuple[float, float]],
    *,
    clients: tuple[int, ...] = (4,),
    rate_per_s: float | None = None,
    seed: int = 1,
) -> Judgement:
    """``of``: by system, how late it is sent to, and how slow it is. A sweep where there are
    several ``clients``.
    """
    judging = {"measure": "sweep"} if len(clients) > 1 else {}
    study = Study(blocks=5, seed=seed, trial_noise=0.003, block_noise=0.003, judging=judging,
                  control=None if judging else "first")  # fmt: skip
    for name, (share, times) in of.items():
        server, lag_ns = later(share, times)
        for n in clients:
            study.add(f"{name}{n}", system=name, server=server, lag_ns=lag_ns, clients=n,
                      levels={"system": name, "load.clients": n}, rate_per_s=rate_per_s,
                      seconds=9.0)  # fmt: skip
    return judge(study.write(path))


def resolved(found: Judgement) -> list[str]:
    return [c.metric for c in found.comparisons if c.verdict in ("faster", "slower")]


@pytest.mark.parametrize(("share", "rate_per_s"), [(0.019, None), (0.045, None), (0.045, 600)])
def test_equal_servers_of_which_one_is_sent_to_late_are_not_told_apart(
    tmp_path: Path, share: float, rate_per_s: float | None
) -> None:
    found = judged(tmp_path / "r", {"a": (IN_TIME, 1.0), "b": (share, 1.0)}, rate_per_s=rate_per_s)
    assert resolved(found) == []
    assert found.verdict.best is None
    metric = "response_p50" if rate_per_s else "throughput"
    (own,) = [c for c in found.comparisons if c.metric == metric]
    assert LATE in own.reason
    assert REMEDY in own.would_change


def test_nor_are_they_in_a_sweep(tmp_path: Path) -> None:
    of = {"a": (IN_TIME, 1.0), "b": (0.045, 1.0)}
    found = judged(tmp_path / "r", of, clients=(1, 4))
    assert resolved(found) == []
    assert found.verdict.best is None


@pytest.mark.parametrize(("clients", "rate_per_s"), [((4,), None), ((4,), 600), ((1, 4), None)])
def test_a_server_that_is_slower_is_so_where_both_are_sent_to_as_late(
    tmp_path: Path, clients: tuple[int, ...], rate_per_s: float | None
) -> None:
    of = {"a": (0.03, 1.0), "b": (0.03, 1.05)}
    found = judged(tmp_path / "r", of, clients=clients, rate_per_s=rate_per_s)
    assert ("response_p50" if rate_per_s else "throughput") in resolved(found)
    assert found.verdict.best in ("a", "a4")


def test_a_difference_beyond_what_lateness_makes_is_resolved(tmp_path: Path) -> None:
    found = judged(tmp_path / "r", {"a": (IN_TIME, 1.0), "b": (0.03, 1.1)})
    assert "throughput" in resolved(found)


def test_who_is_in_front_although_it_was_sent_to_late_is_so(tmp_path: Path) -> None:
    found = judged(tmp_path / "r", {"a": (0.03, 1.0), "b": (IN_TIME, 1.1)})
    assert found.verdict.best == "a4"


def runs(path: Path, first: int, share: float, times: float = 1.0) -> list[Record]:
    """Three runs."""
    found = []
    for i in range(3):
        study = Study(blocks=3, seed=first + i, trial_noise=0.003, block_noise=0.003)
        server, lag_ns = later(share, times)
        study.add("x", system="x", server=server, lag_ns=lag_ns, seconds=9.0)
        found.append(open_record(study.write(path / str(first + i))))
    return found


def compared(a: list[Record], b: list[Record]) -> RecordComparison:
    return compare_records(a[0], b[0], 0.03, a[1:], b[1:])


def test_two_records_of_one_server_are_no_regression_for_the_generator(tmp_path: Path) -> None:
    before = runs(tmp_path, 10, IN_TIME)
    found = compared(before, runs(tmp_path, 20, 0.047))
    assert (found.regressed, found.beyond_threshold) == (None, False)
    (own,) = [line for line in found.comparisons if line.metric == "throughput"]
    assert own.verdict == "not resolved"
    assert LATE in own.reason
    assert any(REMEDY in said for said in found.would_change)
    slower = compared(before, runs(tmp_path, 30, IN_TIME, 1.047))
    assert slower.regressed
