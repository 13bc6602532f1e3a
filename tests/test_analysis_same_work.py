"""No gain is that of other answers: subjects of one sweep or search, and two records."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import records
import searches
from queues import Serve, fixed
from records import Study, good_answer, lognormal
from searchbench.analysis.compare.otherwise import floor, of_work
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement, RecordComparison
from searchbench.analysis.trial.measured import Measured
from searchbench.record import REPLIES, SAMPLES, Record, open_record
from searches import Lab

UNREAD = "the replies were not read, so whether both answer the same is not known"
OTHER = "the replies to 40 of 40 requests have other sizes"
DEAR = (3, 13, 23)  # of 40 requests: they cost twenty times as much
EMPTY = {"total": 0, "ids": [], "scores": []}
MADE = "the 3 of 40 requests that they answer otherwise could make the whole difference"


def unread(query: int) -> dict[str, Any]:
    return {"total": None, "ids": [], "scores": []}


def sizes(factor: float, of: tuple[int, ...] = tuple(range(40))) -> dict[str, int]:
    return {str(q): int((400 + 10 * q) * (factor if q in of else 1)) for q in range(40)}


def sized(factor: float, of: tuple[int, ...] = tuple(range(40))) -> dict[str, Any]:
    return {"captured": {"sizes": sizes(factor, of), "distinct": 40}}


# Two subjects of one sweep


def swept(path: Path, size: float = 1.0, a: Any = unread, b: Any = unread) -> Judgement:
    """b is twice as fast as a; ``size``: of its replies, times what those of a have."""
    study = Study(blocks=3, control=None, judging={"measure": "sweep"},
                  block_noise=0.005, trial_noise=0.005)  # fmt: skip
    for name, service_s, answer, factor in (("a", 0.004, a, 1.0), ("b", 0.002, b, size)):
        for n in (1, 2):
            extra = sized(factor) if answer is unread else {}
            study.add(f"{name}-{n}", system=name, server=lognormal(service_s, 0.1), clients=n,
                      levels={"system": name, "load.clients": n}, answer=answer, extra=extra,
                      subject=name)  # fmt: skip
    return judge(open_record(study.write(path)))


def verdicts(found: Judgement | RecordComparison) -> set[str]:
    return {c.verdict for c in found.comparisons}


def test_of_two_subjects_whose_unread_replies_have_other_sizes_the_faster_only_leads(
    tmp_path: Path,
) -> None:
    found = swept(tmp_path / "r", 0.1)
    assert verdicts(found) == {"not resolved"}
    assert (found.verdict.best, found.verdict.resolved) == (None, False)
    said = (
        "By throughput, b leads a at 2 of 2 equal loads, which is not resolved: the replies to "
        "40 of 40 requests have other sizes (typically 595 bytes in a and 59 in b), so they may be "
        "other answers."
    )
    assert said in found.verdict.decision
    assert "times as many" not in found.verdict.decision.replace("times (", "")


def test_of_two_subjects_whose_replies_nobody_read_the_sentence_says_so(tmp_path: Path) -> None:
    found = swept(tmp_path / "r")
    assert verdicts(found) == {"faster"}
    assert found.verdict.best is None
    (said,) = (s for s in found.verdict.decision.split("\n") if s.startswith("At equal loads b"))
    assert f"queries per second as a; {UNREAD}" in said


def test_a_subject_of_which_no_reply_can_be_read_is_not_compared_with_one_that_answers(
    tmp_path: Path,
) -> None:
    found = swept(tmp_path / "r", a=good_answer)
    assert verdicts(found) == {"not comparable"}
    assert (found.verdict.best, found.verdict.resolved) == (None, False)
    said = "a and b are not comparable: no reply of b could be read, and those of a could"
    assert found.verdict.decision.count(said) == 1


def test_a_subject_that_answers_the_same_twice_as_fast_is_faster_and_the_best(
    tmp_path: Path,
) -> None:
    found = swept(tmp_path / "r", a=good_answer, b=good_answer)
    assert verdicts(found) == {"faster"}
    assert found.verdict.best == "b"
    assert "not read" not in found.verdict.decision


def test_of_two_subjects_that_were_asked_other_requests_the_faster_only_leads(
    tmp_path: Path,
) -> None:
    study = Study(blocks=3, control=None, judging={"measure": "sweep"},
                  block_noise=0.005, trial_noise=0.005)  # fmt: skip
    for name, service_s in (("a", 0.004), ("b", 0.002)):
        for n in (1, 2):
            study.add(f"{name}-{n}", system=name, server=lognormal(service_s, 0.1), clients=n,
                      levels={"system": name, "load.clients": n}, subject=name,
                      corpus={"digest": name})  # fmt: skip
    found = judge(open_record(study.write(tmp_path / "r")))
    assert verdicts(found) == {"not resolved"}
    assert (found.verdict.best, found.verdict.resolved) == (None, False)
    assert "they were not asked the same requests" in found.verdict.decision


def test_of_four_subjects_the_reason_is_said_too(tmp_path: Path) -> None:
    study = Study(blocks=3, control=None, judging={"measure": "sweep"},
                  block_noise=0.005, trial_noise=0.005)  # fmt: skip
    for i, name in enumerate(("a", "b", "c", "d")):
        study.add(name, system=name, server=lognormal(0.004 / 1.5**i, 0.1), clients=1, subject=name,
                  levels={"system": name}, answer=unread, extra=sized(0.5**i))  # fmt: skip
    found = judge(open_record(study.write(tmp_path / "r"))).verdict
    assert (found.best, found.resolved) == (None, False)
    said = "In 6 of 6 pairs whoever is in front only leads: of a and b, the replies to 40 of 40"
    assert said in found.decision
    assert "times (95 %" not in found.decision, "no ratio without the doubt"


def shrunk(monkeypatch: pytest.MonkeyPatch, share: float, factor: float) -> None:
    """From now on this share of all replies under load has that part of its size."""
    plain = records.Study._samples

    def cut(self: Any, t: Any, of: float, rng: np.random.Generator) -> pa.Table:
        table = plain(self, t, of, rng)
        size = table.column("bytes").to_numpy().astype(float)
        size[rng.random(size.size) < share] *= factor
        at = table.schema.get_field_index("bytes")
        return table.set_column(at, SAMPLES.field("bytes"), pa.array(size.astype(np.uint32)))

    monkeypatch.setattr(records.Study, "_samples", cut)


def test_of_two_whose_replies_shrink_alike_under_load_the_faster_only_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrunk(monkeypatch, 1.0, 0.3)
    found = swept(tmp_path / "r")
    assert verdicts(found) == {"not resolved"}
    said = "which is not resolved: replies of b had other sizes under load than alone ("
    assert said in found.verdict.decision


# Two subjects of one search


def searched(path: Path, **how: Any) -> Judgement:
    servers = {"a": fixed(4, 0.002), "b": fixed(4, 0.001)}
    lab = Lab(path, servers, ("p99 < 10ms",), effort=0.3, look_per_s=1000.0, **how)
    return judge(lab.run())


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"a": 1.0, "b": 0.1}, "which is not resolved: the replies to 10 of 10 requests have other "
         "sizes (typically 44 bytes in b and 445 in a), so they may be other answers."),
        ({"a": 1.0, "b": 1.0}, f": the intervals do not overlap; {UNREAD}."),
        ({"b": 1.0}, "a and b are not comparable: no reply of b could be read, and those of a "
         "could, so b answers otherwise or not at all."),
        ({}, "b sustains more than a"),
    ],
)  # fmt: skip
def test_a_limit_is_not_greater_by_replies_that_nobody_read(
    tmp_path: Path, sizes: dict[str, float], said: str
) -> None:
    found = searched(tmp_path / "r", unread=sizes).verdict
    assert said in found.decision
    assert found.best == (None if sizes else "b")
    assert found.resolved is (sizes in ({}, {"a": 1.0, "b": 1.0}))
    assert ("sustains more than a" in found.decision) is found.resolved


def dear(service_s: float, of_dear_s: float) -> Serve:
    """Four workers; of ten requests one costs ``of_dear_s``: that with the number 3."""

    def serve(due: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        free, done = [0.0] * 4, []
        for i, at in enumerate(due.tolist()):
            end = max(at, free[0]) + (of_dear_s if i % searches.QUERIES == 3 else service_s)
            heapq.heapreplace(free, end)
            done.append(end)
        return np.asarray(done), np.ones(len(due), bool)

    return serve


@pytest.mark.parametrize(
    ("b", "limit_ms", "sure"),
    [
        ((0.001, 0.001), 50, False),  # only what it does not answer makes it faster
        ((0.001, 0.001), 11, False),  # and of a each such request is late
        ((0.0005, 0.001), 10, True),  # it would be so even if it answered these as slowly
    ],
)
def test_a_limit_is_not_greater_by_the_one_dear_request_that_is_answered_with_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, b: tuple[float, float], limit_ms: int,
    sure: bool,
) -> None:  # fmt: skip
    plain = searches._replies

    def replies(other: int, changed: int | None = None) -> pa.Table:
        rows = plain(0, changed).to_pylist()
        rows = [row | EMPTY if other and row["query"] == 3 else row for row in rows]
        return pa.Table.from_pylist(rows, schema=REPLIES)

    monkeypatch.setattr(searches, "_replies", replies)
    seed = 2 if limit_ms == 50 else 1  # of which both have an interval
    servers = {"a": dear(0.001, 0.012 if sure is False else 0.002), "b": dear(*b)}
    lab = Lab(tmp_path / "r", servers, (f"p99 < {limit_ms}ms",), effort=1.0, look_per_s=800.0,
              other=("b",), seed=seed)  # fmt: skip
    found = judge(lab.run()).verdict
    assert found.best == ("b" if sure else None)
    assert found.resolved is sure
    if not sure:
        said = "the 1 of 10 requests that they answer otherwise could make the whole difference"
        assert f"which is not resolved: {said}." in found.decision


# Which pairs agree


def of_pairs(path: Path, *others: tuple[str, float, Any], settings: int = 2) -> Judgement:
    """s with so many settings, whose answers are the same, and others that answer otherwise."""
    study = Study(blocks=2, control=None, judging={"measure": "sweep"},
                  block_noise=0.003, trial_noise=0.003)  # fmt: skip
    several = [(f"s t={2**i}", "s", 1 - 0.1 * i, good_answer, {"threads": 2**i})
               for i in range(settings)]  # fmt: skip
    several += [(name, name, factor, answer, {}) for name, factor, answer in others]
    for i, (subject, system, factor, answer, parameters) in enumerate(several):
        for n in (1, 2):
            study.add(f"{i}-{n}", system=system, server=lognormal(0.004 * factor, 0.1), clients=n,
                      seconds=6.0, subject=subject, answer=answer, parameters=parameters,
                      levels={"system": system, "load.clients": n, **parameters})  # fmt: skip
    return judge(open_record(study.write(path)))


def half(query: int) -> dict[str, Any]:
    return good_answer(query) | ({"total": 999} if query % 2 else {})


def none(query: int) -> dict[str, Any]:
    return good_answer(query) | {"total": 1000 + query}


def test_each_pair_of_subjects_says_on_how_many_requests_it_agrees(tmp_path: Path) -> None:
    found = of_pairs(tmp_path / "r", ("o", 0.5, half)).verdict
    for name in ("s t=1", "s t=2"):
        assert f"{name} and o return different totals on 20 of 40 requests." in found.decision
        assert (
            f"as many queries per second as {name}, over the 20 of 40 requests that both answer "
            "alike." in found.decision
        )
    assert found.best is None, "it answers half of what it is asked otherwise"


def test_nine_of_ten_requests_answered_alike_are_enough_to_be_the_best(tmp_path: Path) -> None:
    def nearly(query: int) -> dict[str, Any]:
        return good_answer(query) | ({"total": 999} if query < 4 else {})

    found = of_pairs(tmp_path / "r", ("o", 0.5, nearly), settings=1).verdict
    assert found.best == "o"
    assert "over the 36 of 40 requests that both answer alike." in found.decision


@pytest.mark.parametrize(("other", "best"), [(4, "b"), (5, None)])
def test_a_study_too_names_no_best_that_answers_more_than_a_tenth_otherwise(
    tmp_path: Path, other: int, best: str | None
) -> None:
    study = Study(blocks=3, block_noise=0.005)
    study.add("a", system="a", server=lognormal(0.004, 0.1))
    study.add("b", system="b", server=lognormal(0.002, 0.1),
              answer=lambda q: good_answer(q) | ({"total": 999} if q < other else {}))  # fmt: skip
    found = judge(open_record(study.write(tmp_path / "r"))).verdict
    assert found.best == best
    said = "b only leads: it was answering fewer than 90 % of the queries the same as a."
    assert (said in found.decision) is (best is None)


def test_that_two_are_not_comparable_is_said_once(tmp_path: Path) -> None:
    found = of_pairs(tmp_path / "r", ("o", 0.5, none)).verdict
    for name in ("s t=1", "s t=2"):
        assert found.decision.count(f"{name} and o are not comparable") == 1


@pytest.mark.parametrize(("settings", "said"), [(2, "In 5 of 6 pairs"), (3, "In 7 of 10 pairs")])
def test_of_many_subjects_every_pair_that_disagrees_is_counted(
    tmp_path: Path, settings: int, said: str
) -> None:
    found = of_pairs(tmp_path / "r", ("o", 0.5, half), ("p", 0.4, none), settings=settings)
    assert f"{said} the two return different totals." in found.verdict.decision


# Two records


def cost(dear_s: float, else_s: float = 0.002) -> Callable[..., Any]:
    def server(due: Any, query: Any, rng: np.random.Generator) -> Any:
        base = np.where(np.isin(query, DEAR), dear_s, else_s)
        return base * np.exp(0.05 * rng.standard_normal(due.size))

    return server


def empty_where_dear(query: int) -> dict[str, Any]:
    return EMPTY if query in DEAR else good_answer(query)


def record(path: Path, seed: int, server: Any, answer: Any = good_answer, **how: Any) -> Record:
    study = Study(blocks=1, seed=seed, control=None, judging={"measure": "sweep"}, block_noise=0.0)
    study.add("c", system="srv", server=server, seconds=31.0, answer=answer, subject="srv",
              levels={"load": 1}, **{"clients": 4, **how})  # fmt: skip
    return open_record(study.write(path))


def against(
    path: Path, server: Any, answer: Any, alone: Any = good_answer, extra: Any = None, **how: Any
) -> RecordComparison:
    """Three runs of this server against four of one with dear requests."""
    before = {"extra": sized(1.0)} if alone is unread else {}
    first, *same = (
        record(path / str(i), i, cost(0.040), alone, **before, **how) for i in (1, 2, 3, 4)
    )
    after = ({"extra": extra} if extra else {}) | how
    second, *more = (record(path / f"b{i}", i, server, answer, **after) for i in (50, 51, 52))
    return compare_records(first, second, same=same, same_b=more)


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("load", [{}, {"rate_per_s": 200}])
def test_a_gain_by_three_dear_requests_that_are_not_answered_is_none(
    tmp_path: Path, read: bool, load: dict[str, Any]
) -> None:
    how = {} if read else {"alone": unread, "extra": sized(0.1, DEAR)}
    found = against(tmp_path, cost(0.0005), empty_where_dear if read else unread, **how, **load)
    assert verdicts(found) == {"not resolved"}
    for line in found.comparisons:
        assert line.ratio is not None
        if load and line.metric == "response_p99":
            assert line.ratio.value > 10
            made = MADE if read else MADE.replace("that they answer otherwise",
                                                  "whose replies have other sizes")  # fmt: skip
            assert made in line.reason
            assert f"the second leads, which is not resolved: {made}." in found.decision
        elif not load:
            assert line.ratio.value == pytest.approx(1, abs=0.05)
            assert "over the 37 of 40 queries that both answer alike" in line.reason


@pytest.mark.parametrize("load", [{}, {"rate_per_s": 200}])
def test_a_gain_of_all_requests_stands_though_three_cheap_ones_are_answered_otherwise(
    tmp_path: Path, load: dict[str, Any]
) -> None:
    first, *same = (record(tmp_path / str(i), i, cost(0.002), **load) for i in (1, 2, 3, 4))
    server, answer = cost(0.0002, 0.001), empty_where_dear
    after, *more = (record(tmp_path / f"b{i}", i, server, answer, **load) for i in (50, 51, 52))
    found = compare_records(first, after, same=same, same_b=more)
    assert verdicts(found) == {"faster"}


@pytest.mark.parametrize("load", [{}, {"rate_per_s": 200}])
def test_equal_answers_in_half_the_time_are_faster(tmp_path: Path, load: dict[str, Any]) -> None:
    found = against(tmp_path, cost(0.020, 0.001), good_answer, **load)
    assert verdicts(found) == {"faster"}


def test_dear_requests_that_became_slower_are_a_loss_whatever_they_answer(tmp_path: Path) -> None:
    found = against(tmp_path, cost(0.080), empty_where_dear)
    lines = {line.metric: line.verdict for line in found.comparisons}
    assert lines["throughput"] == "slower"
    assert found.beyond_threshold


def test_at_a_rate_the_p99_of_a_subject_is_not_better_by_what_it_does_not_answer(
    tmp_path: Path,
) -> None:
    study = Study(blocks=3, control=None, judging={"measure": "sweep"},
                  block_noise=0.003, trial_noise=0.003)  # fmt: skip
    for name, dear_s, answer in (("a", 0.040, good_answer), ("b", 0.0005, empty_where_dear)):
        study.add(name, system=name, server=cost(dear_s), rate_per_s=200, seconds=21.0,
                  levels={"system": name}, answer=answer, subject=name)  # fmt: skip
    found = judge(open_record(study.write(tmp_path / "r")))
    assert (found.verdict.best, found.verdict.resolved) == (None, False)
    said = f"b leads a at their one equal load, which is not resolved: {MADE}."
    assert said in found.verdict.decision
    assert found.verdict.decision.count(MADE) == 1


@pytest.mark.parametrize(
    ("share", "factor", "verdict"), [(0.0, 1.0, "faster"), (1.0, 0.3, "not resolved"),
                                     (0.49, 0.51, "not resolved")],
)  # fmt: skip
def test_a_gain_by_replies_that_shrink_under_load_alone_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, factor: float, verdict: str
) -> None:
    first, *same = (record(tmp_path / str(i), i, lognormal(0.004, 0.1), unread, extra=sized(1.0))
                    for i in (1, 2, 3))  # fmt: skip
    shrunk(monkeypatch, share, factor)
    after, *more = (
        record(tmp_path / f"b{i}", i, lognormal(0.001, 0.1), unread, extra=sized(1.0))
        for i in (9, 10, 11)
    )
    found = compare_records(first, after, same=same, same_b=more)
    assert verdicts(found) == {verdict}
    if verdict != "faster":
        said = "which is not resolved: under load the replies to 40 of 40 requests have other sizes"
        assert said in found.decision


# What others could make


def measured(query: list[int], service_s: list[float]) -> Measured:
    times = np.rint(np.array(service_s) * 1e9).astype(np.int64)
    return Measured(np.array(query, np.uint32), times, times, np.zeros(times.size, np.uint8), 1.0)


def test_what_a_server_works_on_other_requests_is_found_where_all_wait_alike() -> None:
    query = list(range(10)) * 200
    took = [0.012 if q == 3 else 0.001 for q in query]
    rng = np.random.default_rng(1)
    waits = np.where(rng.random(2000) < 0.5, 0.0, rng.exponential(0.002, 2000))
    share = of_work(measured(query, (np.array(took) + waits).tolist()), np.array([3]))
    assert share == pytest.approx(0.012 / 0.021, rel=0.1)


def test_what_the_rival_never_answered_would_have_been_late() -> None:
    quick = measured([0, 1] * 100, [0.001] * 200)
    slow = measured([0] * 200, [0.002] * 200)
    assert floor(quick, slow, np.array([1]), "response_p50") == 1.0
    assert floor(quick, slow, np.array([1]), "response_p99") == np.inf
    assert floor(quick, slow, np.array([], np.int64), "response_p99") == 1.0
