"""How much of a log is sent, from where in it, and what the answer says of it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest

from requesting import driven
from searchbench.analysis.judge import judge
from searchbench.analysis.trial import coverage
from searchbench.analysis.trial.coverage import Sent
from searchbench.lab.drive.workload import Compiled, PortableQueries, VerbatimRequests
from searchbench.record.trial import Load as LoadAbout
from searchbench.record.trial import Queries
from searchbench.study.plan import Treatment
from searchbench.workload.loads import ClosedLoop, Load, OpenLoop, Replay, Window
from searchbench.workload.queries.orders import STRETCH, lines
from searchbench.workload.verbatim.model import Ask, RequestSet
from test_load import always, serving

LOGGED, CHEAP = 300_000, 60_000  # the first fifth of the log is cheap
ASKS = tuple(Ask(f"/q?i={i}") for i in range(400))
FILE = {"requests": {"file": "day.log"}}


def load(
    loop: ClosedLoop | OpenLoop | Replay, order: str = "stretches", seconds: float = 10
) -> Load:
    return Load(loop, Window(seconds, 1.0), msgspec.convert(order, type=object))


@cache
def day() -> VerbatimRequests:
    """A log of two requests: a cheap one by night, a dear one by day."""
    log = (np.arange(LOGGED) >= CHEAP).astype(np.uint32)
    return VerbatimRequests(RequestSet("day.log", (Ask("/cheap"), Ask("/dear")), log))


def cheap_share(clients: int, seed: int, order: str = "stretches") -> float:
    """Of the first requests of all clients together."""
    order_ = day().order(load(ClosedLoop(clients), order), seed, None)
    assert order_.client_starts is not None
    first = [order_.sequence[s : s + 2200 // clients] for s in order_.client_starts[:-1]]
    return float(np.mean(np.concatenate(first) == 0))


@pytest.mark.parametrize("rate", [50, 200])
def test_an_open_loop_that_sends_a_part_of_the_log_sends_the_mix_of_all_of_it(rate: int) -> None:
    for seed in range(20):
        sent = day().order(load(OpenLoop(rate)), seed, None).sequence
        assert np.mean(sent == 0) == pytest.approx(CHEAP / LOGGED, abs=0.04)


def test_few_clients_ask_the_same_mix_as_many() -> None:
    for seed in range(20):
        assert cheap_share(1, seed) == pytest.approx(0.2, abs=0.03)
        assert cheap_share(64, seed) == pytest.approx(0.2, abs=0.05)
    of_one = [cheap_share(1, seed, "logged") for seed in range(20)]
    assert {0.0, 1.0} <= set(of_one)  # in one piece it is this or that, by where it begins


@pytest.mark.parametrize("order", ["stretches", "logged"])
@pytest.mark.parametrize("length", [1, STRETCH, STRETCH + 1, 777])
def test_every_line_is_sent_once_before_any_is_sent_again(order: str, length: int) -> None:
    found = lines(length, order, 3)  # type: ignore[arg-type]
    assert sorted(found.tolist()) == list(range(length))


def test_a_short_log_is_sent_as_it_is_and_a_longer_one_in_rows_of_ten() -> None:
    assert lines(STRETCH, "stretches", 5).tolist() == list(range(STRETCH))
    jumps = np.flatnonzero(np.diff(lines(4000, "stretches", 5)) != 1)
    assert len(jumps) <= 4000 // STRETCH
    assert set(np.diff(jumps)) <= {STRETCH - 1, STRETCH, 2 * STRETCH}


def test_blocks_begin_elsewhere_and_all_systems_of_a_block_at_the_same_line() -> None:
    for order in ("stretches", "logged"):
        rate, work = load(OpenLoop(50), order), day()
        assert work.from_line(rate, 1001) == work.from_line(rate, 1001)
        assert len({work.from_line(rate, seed) for seed in range(1001, 1006)}) == 5


def test_systems_that_can_express_other_queries_are_asked_the_rest_in_the_same_order() -> None:
    log = np.random.default_rng(1).permutation(500).astype(np.uint32)
    work = PortableQueries.__new__(PortableQueries)
    object.__setattr__(work, "asked", RequestSet("q", tuple(Ask(f"/{i}") for i in range(500)), log))
    every, some = np.arange(500, dtype=np.uint32), np.arange(0, 500, 2, dtype=np.uint32)
    sent = [
        queries[work.order(load(ClosedLoop(1)), Compiled(tuple(queries), queries), 9).sequence]
        for queries in (every, some)
    ]
    assert sent[0][sent[0] % 2 == 0].tolist() == sent[1].tolist()


def test_a_replay_begins_at_the_beginning_and_keeps_the_order() -> None:
    log = np.arange(400, dtype=np.uint32)
    work = VerbatimRequests(RequestSet("r", ASKS, log, times_s=np.arange(400) / 100))
    replay = load(Replay(), "logged")
    assert work.order(replay, 5, None).sequence.tolist() == list(range(400))
    assert work.from_line(replay, 5) is None


def planned(settings: dict[str, dict[str, str | int]]) -> Treatment:
    return Treatment(id="t", label="t", system="s", engine="none", levels={}, settings=settings)


def sent(requests: int, distinct: int, **how: object) -> Sent:
    about = msgspec.convert({"kind": "open", "order": "logged", **how}, LoadAbout)
    log = Queries(name="day.log", digest="d", distinct=LOGGED, logged=LOGGED)
    return Sent(about, log, requests, np.arange(distinct), 0)


def said(*drives: Sent, settings: dict[str, dict[str, str | int]] | None = None) -> list[str]:
    part = coverage.least({"s": drives}, {"s": planned(FILE if settings is None else settings)})
    return [f"{f.severity}: {f.number}. {f.meaning}" for f in coverage.finding(part)]


def test_a_part_of_the_log_in_one_piece_is_warned_of_with_its_size_and_where_it_was() -> None:
    (old,) = said(sent(550, 550), sent(2200, 2200))  # both steps from line 1 on
    assert old.startswith("warning: 2,200 of 300,000 lines (0.73 %). They are its beginning")
    (new,) = said(sent(2200, 2200, from_line=299_000), sent(2200, 2200, from_line=1000))
    # The first goes round and on to line 1,199.
    assert new.startswith("warning: 4,200 of 300,000 lines (1.4 %). They are a stretch of it")
    (closed,) = said(sent(6000, 6000, kind="closed", clients=3))
    assert closed.startswith("warning: 6,000 of 300,000 lines (2 %)")
    assert said(sent(2200, 2200, kind="replay"))[0].startswith("warning: 2,200 of 300,000 lines")


def test_a_part_from_all_over_the_log_is_a_note_and_all_of_it_nothing() -> None:
    for order in ("stretches", "shuffled", "drawn"):
        (note,) = said(sent(2200, 2190, order=order))
        assert note.startswith("note: 2,190 of 300,000 distinct requests (0.73 %)")
        assert said(sent(400_000, 280_000, order=order)) == []
    assert said(sent(LOGGED, LOGGED)) == []
    blocks = [sent(100_000, 100_000, from_line=at) for at in (1, 100_001, 200_001)]
    assert said(*blocks) == []


def test_an_order_that_was_made_by_lot_is_not_warned_of() -> None:
    for made in ({}, {"file": "q.txt", "repetition": "zipf"}, {"file": "q.txt", "logged": 1000}):
        (note,) = said(sent(2200, 2200), settings={"queries": made})
        assert note.startswith("note: ")
    (own,) = said(sent(2200, 2200), settings={"queries": {"file": "q.txt"}})
    assert own.startswith("warning: ")


def test_the_answer_says_that_one_piece_of_the_log_was_sent_and_not_that_all_parts_were(
    tmp_path: Path,
) -> None:
    table = {"rate_per_s": [100, 200], "seconds": 0.3, "warmup_s": 0.0, "idle": "block"}
    with serving(always) as port:
        systems = {"it": [f"http://127.0.0.1:{port}"]}
        piece = driven(tmp_path / "a", systems, ASKS, {**table, "order": "logged"})
        parts = driven(tmp_path / "b", systems, ASKS, table)
    assert len({t.load.from_line for t in piece.trials}) == 1
    assert all(t.load.order == "stretches" and t.load.from_line for t in parts.trials)
    verdict = judge(piece).verdict
    (doubt,) = (p for p in verdict.points if p.startswith("Of the log only"))
    assert " of 400 lines (" in doubt
    assert "They are a stretch of it" in doubt
    assert '`load.order` "stretches"' in doubt
    assert doubt in verdict.decision
    judged = judge(parts)
    assert "Of the log" not in judged.verdict.decision
    (note,) = (f for f in judged.findings if f.kind == "part of the log")
    assert note.severity == "note"
