"""Throughput over one mix where a server favours some of its clients: the ratio is what is counted.

Each client has a part of the log of its own. So a server whose connections are dealt unevenly to
its workers answers other queries more often than one with one queue, at the same throughput.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import records
from records import Study
from searchbench.analysis.compare.mix import Mix
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.compare.whole import rates
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Estimate
from searchbench.analysis.stats import within
from searchbench.analysis.trial.measured import Measured
from searchbench.record import Record, open_record
from searchbench.record.trial import Load

START, END = 1.0, 6.0
UNEVEN = (8, 2, [0] * 7 + [1])
MILD = (8, 4, [0, 0, 0, 0, 0, 1, 2, 3])


def drive(
    clients: int,
    workers: int,
    dealt: Sequence[int] | None,
    cost: Callable[[int], float],
    log: Sequence[int],
    rng: np.random.Generator,
) -> Measured:
    """A closed loop over equal parts of a log. ``dealt``: by client its worker; None: one queue."""
    begin = np.linspace(0, len(log), clients + 1).astype(int).tolist()
    at, free = begin[:-1].copy(), [0.0] * workers
    due = [(1e-4 * c, c) for c in range(clients)]
    rows: list[tuple[int, int, float, float]] = []
    while due:
        t, c = heapq.heappop(due)
        if t > END:
            break
        worker = dealt[c] if dealt is not None else free.index(min(free))
        query = log[at[c]]
        done = max(t, free[worker]) + cost(query) * float(np.exp(0.05 * rng.standard_normal()))
        free[worker] = done
        if t >= START:
            rows.append((query, c, t, done - t))
        at[c] = at[c] + 1 if at[c] + 1 < begin[c + 1] else begin[c]
        heapq.heappush(due, (done, c))
    query_, client, began, took = (np.array(column) for column in zip(*rows, strict=True))
    ns = np.rint(took * 1e9).astype(np.int64)
    window = int(START * 1e9), int(END * 1e9)
    part = within.slices(np.rint(began * 1e9).astype(np.int64), window).astype(np.uint8)
    return Measured(query_.astype(np.uint32), ns, ns, part, END - START, client.astype(np.uint16))


def ratio(a: Measured, b: Measured, clients: int) -> Estimate:
    """The throughput of b over that of a."""
    mix, load = Mix(a, b, None), Load(kind="closed", clients=clients)
    x, y = (mix.estimate(m, load, "throughput") for m in (a, b))
    assert x is not None
    assert y is not None
    return within.ratio(x, y)[0]


@pytest.mark.parametrize("queries", [60, 1000, 20_000])
@pytest.mark.parametrize(("clients", "workers", "dealt"), [UNEVEN, MILD])
def test_a_server_that_favours_clients_and_a_fair_one_are_as_fast_as_they_were_counted(
    clients: int, workers: int, dealt: list[int], queries: int
) -> None:
    rng, log = np.random.default_rng(1), range(queries)
    for forked_s in (0.004, 0.0035):
        forked = drive(clients, workers, dealt, lambda _, s=forked_s: s, log, rng)
        pooled = drive(clients, workers, None, lambda _: 0.004, log, rng)
        found = ratio(forked, pooled, clients)
        assert found.value == pytest.approx(pooled.query.size / forked.query.size, rel=0.01)
        assert found.value == pytest.approx(forked_s / 0.004, rel=0.01)
        assert found.interval is not None
        assert found.interval.high / found.interval.low < 1.02


def test_equal_servers_are_rarely_told_apart() -> None:
    rng = np.random.default_rng(2)
    costs = rng.lognormal(np.log(0.01), 0.7, 400)
    for dealt in (None, UNEVEN[2]):
        told = 0
        for _ in range(20):
            log = rng.permutation(400).tolist()
            a, b = (drive(8, 2, dealt, lambda q: float(costs[q]), log, rng) for _ in "ab")
            told += within.resolved(ratio(a, b, 8))
        assert told <= 2


def parts_of_cheap_then_dear(clients: int) -> list[int]:
    """In each client's part 300 cheap requests, then dear ones in turn with cheap ones."""
    found: list[int] = []
    for c in range(clients):
        cheap = np.arange(200 * c, 200 * c + 100)
        mixed = np.ravel(np.column_stack([np.resize(cheap + 100, 600), np.resize(cheap, 600)]))
        found += [*np.resize(cheap, 300).tolist(), *mixed.tolist()]
    return found


@pytest.mark.parametrize("dealt", [None, MILD[2]], ids=["fair", "uneven"])
def test_the_mix_is_still_corrected_for_the_one_that_came_further_in_the_log(
    dealt: list[int] | None,
) -> None:
    rng, log = np.random.default_rng(3), parts_of_cheap_then_dear(8)

    def cost(factor: float) -> Callable[[int], float]:
        return lambda q: factor * (0.002 if q % 200 < 100 else 0.008)

    a = drive(8, 4, None, cost(1.0), log, rng)
    b = drive(8, 4, dealt, cost(1.5), log, rng)
    counted, found = b.query.size / a.query.size, ratio(a, b, 8).value
    assert counted > 1.1 / 1.5, "over all requests, the slower one was asked cheaper ones"
    assert abs(np.log(1.5 * found)) < 0.5 * np.log(1.5 * counted)


def without_clients(m: Measured) -> Measured:
    return Measured(m.query, m.service_ns, m.response_ns, m.part, m.window_s)


def test_where_the_record_does_not_say_which_client_asked_nothing_is_claimed() -> None:
    rng, log, load = np.random.default_rng(4), range(1000), Load(kind="closed", clients=8)
    sides = [drive(8, 2, dealt, lambda _: 0.004, log, rng) for dealt in (UNEVEN[2], None)]
    a, b = map(without_clients, sides)
    mix = Mix(a, b, None)
    assert None in [mix.value(m, load, "throughput") for m in (a, b)]
    assert not all(mix.follows(m, load) for m in (a, b))
    fair = [without_clients(drive(8, 2, None, lambda _: 0.004, log, rng)) for _ in "ab"]
    assert ratio(*fair, 8).value == pytest.approx(1, rel=0.01)


def test_clients_with_few_requests_each_are_taken_together_or_nothing_is_claimed() -> None:
    rng, load = np.random.default_rng(5), Load(kind="closed", clients=24)
    costs = rng.lognormal(np.log(0.012), 0.7, 20_000)
    log = rng.permutation(20_000).tolist()
    fair = [drive(24, 2, None, lambda q: float(costs[q]), log, rng) for _ in "ab"]
    assert ratio(*fair, 24).value == pytest.approx(1, rel=0.05)
    forked = drive(24, 2, [0] * 21 + [1] * 3, lambda q: float(costs[q]), log, rng)
    mix = Mix(forked, fair[0], None)
    assert not all(mix.follows(m, load) for m in (forked, fair[0]))


def test_a_sweep_knows_its_clients_and_tells_no_unfair_server_from_a_fair_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = records._closed

    def of_parts(t: records.Treatment, *rest: object) -> tuple[records.Array, ...]:
        due, service, query, client = own(t, *rest)  # type: ignore[arg-type]
        return due, service, query % 25 + 25 * client, client

    monkeypatch.setattr(records, "_closed", of_parts)
    run = Study(blocks=3, control=None, judging={"measure": "sweep"}, queries=200)
    for name, server in (
        ("forked", Favours(8, 0.002, 0.014)),
        ("pooled", Favours(8, 0.008, 0.008)),
    ):
        run.add(name, system=name, server=server, clients=8, levels={"system": name}, seconds=11.0)
    found = judge(open_record(run.write(tmp_path / "r")))
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert c.ratio is not None
    assert c.ratio.value == pytest.approx(1, rel=0.03)
    assert c.verdict == "not resolved"


class Favours:
    """Answers the first of so many clients in one time and all others in another."""

    def __init__(self, clients: int, first_s: float, others_s: float) -> None:
        self.clients, self.first_s, self.others_s, self.asked = clients, first_s, others_s, 0

    def __call__(
        self, due: records.Array, query: records.Array, rng: np.random.Generator
    ) -> records.Array:
        # A probe and three draws for each client, one after another.
        client, self.asked = self.asked // 4 % self.clients, self.asked + 1
        median = self.others_s if client else self.first_s
        return median * np.exp(0.05 * rng.standard_normal(due.size))


@pytest.mark.parametrize(("clients", "known"), [(2, False), (3, False), (40, True)])
def test_clients_that_asked_nothing_of_the_mix_make_no_gain(clients: int, known: bool) -> None:
    """The log is sorted by kind, and the second half is answered otherwise by b, at once."""
    half = 20
    log = [n // 40 % (2 * half) for n in range(80 * half)]
    if known:  # one client in forty has none of the first half
        log = [n % half for n in range(39 * 40)] + [half + n % half for n in range(40)]

    def cost(cheat: float) -> Callable[[int], float]:
        return lambda query: cheat if query >= half else 0.008

    a, b = (
        drive(clients, clients, list(range(clients)), cost(cheat), log, np.random.default_rng(n))
        for n, cheat in enumerate((0.008, 0.0008))
    )
    mix, load = Mix(a, b, np.arange(half)), Load(kind="closed", clients=clients)
    found = [mix.value(m, load, "throughput") for m in (a, b)]
    if not known:
        assert found == [None, None]
        return
    x, y = found
    assert x is not None
    assert y is not None
    assert y / x == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("dealt", [UNEVEN, MILD])
def test_counted_rates_do_not_accuse_who_favours_clients(
    dealt: tuple[int, int, list[int]],
) -> None:
    """Of who asked what it is known that both answer as much, and what a hang costs."""
    clients, workers, to = dealt
    rng, load = np.random.default_rng(4), Load(kind="closed", clients=clients)
    log = rng.permutation(1000).tolist()
    one = drive(clients, workers, None, lambda _: 0.004, log, rng)
    other = drive(clients, workers, to, lambda _: 0.004, log, rng)
    x, y = rates(one, other, (load, load))
    assert y / x == pytest.approx(1.0, abs=0.02)
    costs = rng.lognormal(np.log(0.012), 0.7, 20_000)
    one_, other_ = (drive(24, 2, dealt_to, lambda q: float(costs[q]), range(20_000), rng)
                    for dealt_to in (None, [0] * 21 + [1] * 3))  # fmt: skip
    x, y = rates(one_, other_, (Load(kind="closed", clients=24),) * 2)
    assert y / x == pytest.approx(1.0, abs=0.1), "and where costs vary"
    few = rng.random(other.query.size) < 4 / 7
    kept = {name: getattr(other, name)[few] for name in (
        "query", "service_ns", "response_ns", "part", "client")}  # fmt: skip
    x, y = rates(one, replace(other, **kept), (load, load))
    assert y / x == pytest.approx(4 / 7, rel=0.05)


@pytest.mark.parametrize("known", [False, True])
def test_where_clients_are_not_known_counted_rates_accuse_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """1,000/s either way; the second answers one of its eight clients four times as often as the
    others do together with their worker. What is lost by the tail stays lost.
    """
    own = records._closed

    def of_parts(t: records.Treatment, *rest: Any) -> Any:
        due, service, query, client = own(t, *rest)
        two = 0 if known else 8 * (np.arange(due.size) % 2)  # each client has two connections
        return due, service, query % 25 + 25 * client, client + two

    monkeypatch.setattr(records, "_closed", of_parts)

    def write(name: str, server: records.Server, seed: int) -> Record:
        study = Study(blocks=3, control=None, queries=200, seed=seed, trial_noise=0.003,
                      block_noise=0.005)  # fmt: skip
        study.add("x", system="x", server=server, clients=8, seconds=11.0)
        return open_record(study.write(tmp_path / name))

    first = [write(f"a{i}", Favours(8, 0.008, 0.008), 10 + i) for i in range(3)]
    later = [write(f"b{i}", Favours(8, 0.002, 0.014), 20 + i) for i in range(3)]
    found = compare_records(first[0], later[0], 0.05, first[1:], later[1:])
    by = {line.metric: line for line in found.comparisons}
    assert by["throughput"].verdict == "not resolved"
    assert ("which client asked" in by["throughput"].reason) is not known
    assert (by["service_p99"].verdict, found.beyond_threshold) == ("slower", True)
    if not known:
        assert "by throughput" in found.not_known["x"]


def test_a_side_with_fewer_clients_of_which_the_first_asked_little_has_its_own_rate() -> None:
    rng, log = np.random.default_rng(5), np.tile(np.arange(5), 800).tolist()
    many, one = (drive(n, n, None, lambda _, s=s: s, log, rng) for n, s in ((8, 0.01), (1, 1.0)))
    for a, b in ((many, one), (one, many)):
        mix = Mix(a, b, None)
        rates_ = [
            mix.value(m, Load(kind="closed", clients=8 if m is many else 1), "throughput")
            for m in (a, b)
        ]
        assert rates_ == pytest.approx([800.0, 1.0] if a is many else [1.0, 800.0], rel=0.15)


def test_a_side_that_answered_nothing_has_no_rate_and_none_is_found_for_the_other() -> None:
    rng = np.random.default_rng(6)
    some = drive(4, 4, None, lambda _: 0.01, list(range(5)) * 80, rng)
    ids, ns = np.zeros(0, np.uint32), np.zeros(0, np.int64)
    none = Measured(ids, ns, ns, ids.astype(np.uint8), some.window_s, ids.astype(np.uint16))
    for a, b in ((some, none), (none, some)):
        mix, load = Mix(a, b, None), Load(kind="closed", clients=4)
        assert mix.queries == 0
        assert [mix.value(m, load, "throughput") for m in (a, b)] == [None, None]
