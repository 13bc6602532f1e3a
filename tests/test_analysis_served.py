"""Clients that the server left without an answer, on records whose truth is computed beforehand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from records import Array, Server, Study, exponential, lognormal
from searchbench.analysis.compare.mix import Mix, adds_up
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Finding, Judgement
from searchbench.analysis.trial.measured import Measured
from searchbench.analysis.trial.served import UNSERVED
from searchbench.record import open_record
from searchbench.record.trial import Load

CALLS = 4  # of a server for each client, when a record is made


class Unfair:
    """A server that takes ``favoured`` seconds for the first clients, ``others`` for the rest."""

    def __init__(self, clients: int, served: int, favoured: float, others: float) -> None:
        self.clients, self.served = clients, served
        self.favoured, self.others = lognormal(favoured, 0.1), lognormal(others, 0.1)
        self.calls = 0

    def __call__(self, due: Array, query: Array, rng: np.random.Generator) -> Array:
        client = self.calls // CALLS % self.clients
        self.calls += 1
        return (self.favoured if client < self.served else self.others)(due, query, rng)


def study_of(path: Path, server: Server, blocks: int = 2, clients: int = 4) -> Judgement:
    study = Study(blocks=blocks, seed=4)
    study.add("a", system="fair", server=lognormal(0.002, 0.1), clients=clients, seconds=11)
    study.add("b", system="greedy", server=server, clients=clients, seconds=11)
    return judge(open_record(study.write(path)))


def swept(path: Path, clients: int, server: Server, **more: float) -> Judgement:
    study = Study(blocks=1, control=None, judging={"measure": "sweep"})
    study.add("t", system="s", server=server, clients=clients, seconds=more.pop("seconds", 6.0),
              levels={"load.clients": clients}, **more)  # fmt: skip
    return judge(open_record(study.write(path)))


def served(found: Judgement) -> list[Finding]:
    return [f for f in found.findings if f.kind.startswith("clients ")]


def test_a_server_that_serves_one_client_of_four_is_not_the_best(tmp_path: Path) -> None:
    found = study_of(tmp_path / "r", Unfair(4, 1, 0.001, 40.0))
    assert found.verdict.best != "greedy"
    assert "times as many" not in found.verdict.decision
    (own,) = {(f.kind, f.severity, f.number) for f in served(found)}
    assert own == (
        "clients not served",
        "invalid",
        "3 of 4 clients got no answer within the window",
    )
    assert "other clients got the same queries answered in" in served(found)[0].meaning
    assert "with one client" in served(found)[0].remedy
    greedy = next(t for t in found.treatments if t.system == "greedy")
    assert {t.status for t in greedy.trials} == {"invalid"}


def test_a_step_that_leaves_clients_out_is_void_and_says_so(tmp_path: Path) -> None:
    found = swept(tmp_path / "r", 8, Unfair(8, 1, 0.001, 40.0))
    (step,) = found.steps
    assert (step.status, step.clients, step.clients_asked) == ("void", 1, 8)
    assert step.error_share is not None
    assert step.error_share.value == 0, "no error and no latency knows of it"
    assert "did not serve all clients: 7 of 8 clients got no answer" in found.verdict.decision
    assert "answers" not in found.verdict.headline


def test_clients_that_were_never_let_in_are_not_taken_for_lost_samples(tmp_path: Path) -> None:
    """As MySQL's protocol has it: a connection that is never greeted sends nothing."""
    study = Study(blocks=1, control=None, judging={"measure": "sweep"})
    study.add("t", server=Unfair(4, 1, 0.001, 40.0), clients=4, seconds=6.0)
    path = study.write(tmp_path / "r")
    file = next(path.glob("trials/*/samples.parquet"))
    table = pq.read_table(file)
    kept = np.asarray(table.column("connection")) == 0
    for name in ("free", "sent", "first_byte", "done"):
        at = table.schema.get_field_index(name)
        column = pa.array(np.asarray(table.column(name)), mask=~kept)
        table = table.set_column(at, table.schema.field(name), column)
    outcome = np.where(kept, 0, open_record(path).trials[0].outcomes.index("timed_out"))
    at = table.schema.get_field_index("outcome")
    table = table.set_column(at, table.schema.field("outcome"), pa.array(outcome.astype(np.uint8)))
    connect = pa.array(np.where(kept, -1, 20_000), mask=kept)
    at = table.schema.get_field_index("connect")
    pq.write_table(table.set_column(at, table.schema.field("connect"), connect), file)
    (step,) = judge(open_record(path)).steps
    assert step.reason == "clients not served: 3 of 4 clients got no answer within the window"


@pytest.mark.parametrize("clients", [2, 16])
@pytest.mark.parametrize("think_s", [0.0, 1.5])
def test_a_fair_server_is_not_accused(tmp_path: Path, clients: int, think_s: float) -> None:
    for i, server in enumerate((exponential(0.02), lognormal(0.002, 1.5), exponential(0.3))):
        assert served(swept(tmp_path / f"{i}", clients, server, think_s=think_s)) == []


def test_where_replies_take_about_the_window_a_client_may_have_none(tmp_path: Path) -> None:
    accused = 0
    for seed in range(6):
        study = Study(blocks=1, control=None, seed=seed)
        study.add("t", server=exponential(4.0), clients=8, seconds=21.0, warmup_s=15.0)
        found = judge(open_record(study.write(tmp_path / f"{seed}")))
        own = [f for f in served(found) if f.kind == UNSERVED]
        accused += len(own)
        assert {f.severity for f in own} <= {"warning"}
        assert all("may rightly have had none" in f.meaning for f in own)
        assert all(f.remedy.startswith("A window of ") for f in own)
    assert accused


def test_one_client_of_many_is_only_a_warning(tmp_path: Path) -> None:
    (own,) = served(swept(tmp_path / "r", 64, Unfair(64, 63, 0.05, 40.0)))
    assert (own.severity, own.number) == (
        "warning",
        "1 of 64 clients got no answer within the window",
    )


def test_clients_that_get_hardly_any_replies_are_a_warning(tmp_path: Path) -> None:
    (own,) = served(swept(tmp_path / "r", 4, Unfair(4, 1, 0.001, 0.5)))
    assert (own.kind, own.severity) == ("clients served unevenly", "warning")
    assert own.number.startswith("3 of 4 clients got less than a tenth of an even share")
    assert served(swept(tmp_path / "mild", 4, Unfair(4, 2, 0.001, 0.004))) == []


def test_a_rate_that_latencies_alone_give_is_refused_where_the_count_contradicts_it() -> None:
    load, rng = Load(kind="closed", clients=4), np.random.default_rng(1)
    query = np.arange(10_000, dtype=np.uint32) % 40
    times = rng.lognormal(np.log(0.002), 0.4, query.size)

    def of_clients(n: int) -> Measured:
        ns = (times * 1e9).astype(np.int64)
        part = np.zeros(query.size, np.uint8)
        return Measured(query, ns, ns, part, float(times.sum()) / n)

    fair, greedy = of_clients(4), of_clients(1)
    assert (adds_up(fair, load), adds_up(greedy, load)) == (True, False)
    mix = Mix(fair, greedy, np.arange(40))
    assert mix.value(greedy, load, "throughput") is None
    assert mix.value(fair, load, "throughput") == pytest.approx(4 / times.mean(), rel=0.1)
    assert mix.value(greedy, load, "service_p50") is not None
