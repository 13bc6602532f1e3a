"""Options made into a study: what stands in the record can be run again, and means the same."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

import searchbench
from searchbench.analysis.sweep.points import Point
from searchbench.analysis.sweep.words import of_points as sustained_words
from searchbench.cli import app
from searchbench.errors import LabError
from searchbench.measure.load import Asked, study_of
from searchbench.record import open_record
from searchbench.study import parse_study
from searchbench.study.planner import make_plan
from test_load import always, serving


def log_of(place: Path, seconds: float, count: int) -> Path:
    """A log of so many requests, evenly over so many seconds, the first at 0."""
    path = place / "log.jsonl"
    step = seconds / (count - 1)
    path.write_text("".join(f'{{"path": "/{i}", "t": {i * step}}}\n' for i in range(count)))
    return path


def test_each_run_draws_its_order_and_arrivals_unless_it_is_told_a_seed(tmp_path: Path) -> None:
    (tmp_path / "paths.txt").write_text("".join(f"/{n}\n" for n in range(50)))
    found = []
    with serving(always) as port:
        for name, seed in (("a", None), ("b", None), ("c", 5), ("d", 5)):
            record = searchbench.load(
                f"http://127.0.0.1:{port}", requests=tmp_path / "paths.txt", rate=[200],
                seconds=0.5, warmup=0.0, engine="none", record=tmp_path / name, seed=seed,
                arrivals="poisson",
            )  # fmt: skip
            samples = record.samples(record.trials[0].trial)
            sent = samples.sort_by("due")
            due = sent.column("due").to_numpy()
            found.append((sent.column("query").to_pylist(), (due - due[0]).tolist()))
    free, other, told, again = found
    assert free[0] != other[0]
    assert free[1] != other[1]
    assert told == again


def test_a_replay_lasts_as_long_as_its_log_and_sends_all_of_it(tmp_path: Path) -> None:
    log = log_of(tmp_path, seconds=30.0, count=61)
    with serving(always) as port:
        code = app(
            ["load", f"mine=http://127.0.0.1:{port}", "--requests", str(log), "--replay", "10",
             "--record", str(tmp_path / "record"), "--engine", "none", "--no-report"]
        )  # fmt: skip
    assert code == 0
    record = open_record(tmp_path / "record")
    (trial,) = record.trials
    due = record.samples(trial.trial)["due"].to_numpy()
    assert due.size == 61, "all of it"
    assert (due.min(), due.max()) == (0, 3_000_000_000), "30 s at ten times their speed"
    assert trial.window is not None
    assert trial.window.start == 0, "nothing is thrown away as a warm-up"
    assert trial.window.end > due.max()


def test_a_replay_may_be_cut_by_whoever_asks_for_it(tmp_path: Path) -> None:
    log = log_of(tmp_path, seconds=30.0, count=61)
    with serving(always) as port:
        record = searchbench.load(
            f"http://127.0.0.1:{port}", requests=log, replay=10, seconds=1.0, engine="none",
            record=tmp_path / "record",
        )  # fmt: skip
    due = record.samples(record.trials[0].trial)["due"].to_numpy()
    assert due.size == 20
    assert due.max() == 950_000_000


def test_what_stands_in_the_record_is_the_study_that_ran(tmp_path: Path) -> None:
    (tmp_path / "paths.txt").write_text("/a\n/b\n")
    with serving(always) as port:
        record = searchbench.load(
            f"mine=http://127.0.0.1:{port}", requests=tmp_path / "paths.txt", clients=[1, 3],
            seconds=0.3, warmup=0.0, engine="none", record=tmp_path / "record",
        )  # fmt: skip
        tables = tomllib.loads(record.study_text)
        assert tables["load"]["clients"] == [1, 3]
        assert tables["systems"]["mine"]["attach"] == [f"http://127.0.0.1:{port}"]
        again = searchbench.run(record.path / "study.toml", tmp_path / "again")
    drawn = record.plan.draw_seed
    assert again.plan.draw_seed != drawn, "each run draws its own"
    assert structs.replace(again.plan, draw_seed=drawn) == record.plan
    assert [t.load.clients for t in again.trials] == [1, 3]
    assert all(t.status == "ok" for t in again.trials)


def test_every_kind_of_load_is_a_study_that_reads_back_as_it_was(tmp_path: Path) -> None:
    log = log_of(tmp_path, seconds=2.0, count=5)
    target = ["http://127.0.0.1:1"]
    for how in (
        {"clients": "1:5:2"},
        {"rate": [10, 20.5]},
        {"replay": 2.0},
        {"find_capacity": True, "slo": ["p99 < 5ms", "p99 < 50ms, errors < 1%"]},
        {"clients": 2, "cache_hit": 0.5, "cache_entries": 10, "cache_law": "zipf:0.8"},
        {"clients": 2, "machines": "a,b", "ssh": "ssh -p 2222", "cpus": "0", "realtime": True},
    ):
        study = study_of(Asked(targets=target, requests=log, command=("load", "x"), **how))
        read = parse_study(study.text, study.path, study.base)
        assert make_plan(read).treatments == make_plan(study).treatments, how


def test_a_replay_of_requests_without_times_is_refused_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    (tmp_path / "paths.txt").write_text("/a\n/b\n")
    with pytest.raises(LabError, match="has no times"):
        searchbench.load(
            "http://127.0.0.1:1", requests=tmp_path / "paths.txt", replay=1.0,
            record=tmp_path / "record",
        )  # fmt: skip
    assert not (tmp_path / "record").exists()


def test_a_record_is_judged_by_its_folder_too(tmp_path: Path) -> None:
    with serving(always) as port:
        record = searchbench.load(
            f"http://127.0.0.1:{port}/", clients=1, seconds=0.2, warmup=0.0, engine="none",
            record=tmp_path / "record",
        )  # fmt: skip
    assert searchbench.judge(str(record.path)).steps == searchbench.judge(record).steps


def test_too_few_requests_are_not_called_no_more_throughput(tmp_path: Path) -> None:
    def slow(peer: socket.socket, head: bytes, number: int) -> bool:
        time.sleep(0.05)
        return always(peer, head, number)

    with serving(slow) as port:
        record = searchbench.load(
            f"http://127.0.0.1:{port}/", clients=[1, 5], seconds=0.6, warmup=0.0, engine="none",
            idle="block", record=tmp_path / "record",
        )  # fmt: skip
    steps = searchbench.judge(record).steps
    assert all(s.answered is not None and s.answered.interval is None for s in steps)
    said = sustained_words("it", [Point("it", s.clients_asked or 0, "closed", (s,)) for s in steps])
    assert "no more throughput" not in " ".join(said)
    assert "too few requests" in " ".join(said)


def test_each_trial_of_a_search_has_arrivals_of_its_own(tmp_path: Path) -> None:
    with serving(always) as port:
        record = searchbench.load(
            f"http://127.0.0.1:{port}/", find_capacity=True, slo="p99 < 50ms", effort=0.01,
            engine="none", idle="block", record=tmp_path / "record",
        )  # fmt: skip
    driven = [t for t in record.trials if t.load.kind == "open" and t.status == "ok"]
    assert len(driven) >= 2, [t.load for t in record.trials]
    shapes = [
        np.sort(record.samples(t.trial)["due"].to_numpy())[:20] * (t.load.rate_per_s or 0.0)
        for t in driven
    ]
    for one, other in pairwise(shapes):
        n = min(one.size, other.size)
        assert n >= 5
        assert not np.allclose(one[:n], other[:n], rtol=1e-3)


def test_a_server_that_is_gone_is_no_saturation(tmp_path: Path) -> None:
    """It answers the first step, and after the pause that follows it refuses all."""
    answered = [0, time.monotonic()]

    def mortal(peer: socket.socket, head: bytes, number: int) -> bool:
        count, last = answered
        if count > 20 and time.monotonic() - last > 0.5:
            return False
        answered[:] = [count + 1, time.monotonic()]
        return always(peer, head, number)

    with serving(mortal) as port:
        record = searchbench.load(
            f"http://127.0.0.1:{port}/", clients=[1, 3], seconds=0.4, warmup=0.0, pause=1.0,
            timeout=0.5, engine="none", idle="block", record=tmp_path / "record",
        )  # fmt: skip
    steps = searchbench.judge(record).steps
    assert steps[-1].outcomes.get("ok", 0) == 0
    points = [Point("it", s.clients_asked or 0, "closed", (s,)) for s in steps]
    said = " ".join(sustained_words("it", points))
    assert "no more throughput" not in said
    assert "At 3 clients it answered no request well" in said


def test_an_unknown_option_is_no_option() -> None:
    with pytest.raises(TypeError, match="clents"):
        searchbench.load("http://127.0.0.1:1/", clents=3)


def test_the_interface_costs_nothing_until_it_is_used() -> None:
    assert set(searchbench.__all__) <= set(dir(searchbench))
    code = "import searchbench, sys; print('numpy' in sys.modules, searchbench.load.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "load"]


def test_a_range_backwards_is_called_so() -> None:
    with pytest.raises(searchbench.SearchbenchError, match=r"backwards.*as in 1:5"):
        study_of(Asked(targets=["http://127.0.0.1:1/x"], clients="5:1"))


def test_the_pages_know_how_many_connections_there_are() -> None:
    opened = study_of(Asked(targets=["http://127.0.0.1:1/x"], rate=100))
    told = make_plan(opened).treatments[0].load["connections"]
    page = Path(__file__).parents[1].joinpath("docs", "LOAD.md").read_text()
    assert f"over {told} connections unless `--connections`" in page
