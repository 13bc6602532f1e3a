"""Sphinx's faults on the real server: agents that are down or hang, a crash and what it leaves."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from engines.test_conformance import SCHEMA, Shelf
from engines.test_sphinx import API, FOX, FULL, SPHINX, ask, outcome, served
from searchbench import _core
from searchbench.corpora.corpus import Document
from searchbench.engines import defaults
from searchbench.engines.engine import Engine, Request
from searchbench.errors import LabError
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.exchange import prepare, samples_of
from searchbench.lab.wire.order import Manner, Order


@pytest.fixture(autouse=True, scope="module")
def _here() -> None:
    if lacking := missing(SPHINX):
        pytest.skip(f"no Sphinx here: {lacking}")


@pytest.mark.parametrize("engine", [SPHINX, API], ids=["sphinxql", "api"])
def test_an_agent_that_is_down_makes_the_answer_partial(tmp_path: Path, engine: Engine) -> None:
    with served(tmp_path, engine, parts=3, part_kind="mixed") as running:
        assert ask(running, FOX).total == 272
        agents = running.processes[1:]
        agents[0].kill()
        agents[0].wait(5)
        lost = ask(running, FOX)
        assert lost.partial
        assert lost.total == 180
        assert "connect() failed" in lost.warnings[0]
        assert outcome(running, FOX) == "partial"
        # With counts before the hits the answer is marked all the same.
        counted = ask(running, FULL)
        assert counted.partial
        assert outcome(running, FULL) == "partial"


def test_an_agent_that_hangs_makes_the_answer_partial(tmp_path: Path) -> None:
    with served(tmp_path, parts=2, part_kind="mixed", agent_query_timeout_ms=200) as running:
        agent = running.processes[1]
        agent.suspend()
        try:
            lost = ask(running, FOX)
        finally:
            agent.resume()
        assert lost.partial
        assert "timed out" in lost.warnings[0]


def test_where_every_agent_is_down_there_is_no_answer(tmp_path: Path) -> None:
    with served(tmp_path, parts=2, part_kind="agent") as running:
        for agent in running.processes[1:]:
            agent.kill()
            agent.wait(5)
        request = SPHINX.compile(FOX, SCHEMA, running.params)
        hits = SPHINX.decode(running.ask(request))
        assert hits.total is None
        assert "connect() failed" in str(hits.error)
        assert outcome(running, FOX) == "engine_error"


def test_a_killed_searchd_is_seen(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        running.process.kill()
        running.process.wait(5)
        assert not running.lives()
        with pytest.raises(LabError, match="did not answer"):
            ask(running, FOX)


def test_a_searchd_killed_in_mid_trial_fails_what_was_not_answered(tmp_path: Path) -> None:
    with served(tmp_path, parts=2, part_kind="mixed") as running:
        count = 100_000
        killer = threading.Timer(0.5, running.process.kill)
        killer.start()
        trace = running.endpoint.drive(
            prepare([running.engine.compile(FOX, SCHEMA, running.params)]),
            Order(
                np.zeros(count, np.uint32),
                np.array([0, count // 2, count], np.uint32),
                None,
                2,
                stop_ns=2_000_000_000,
            ),
            Manner(timeout_s=2.0),
        )
        killer.join()
        outcomes = [_core.OUTCOMES[int(s["outcome"])] for s in samples_of(trace)]
    assert outcomes[0] == "ok"
    assert outcomes[-1] in ("refused", "reset", "truncated", "timed_out")
    assert "partial" not in outcomes  # it was the one that is asked, not an agent


@pytest.mark.parametrize("kind", ["offline", "realtime"])
def test_what_a_crash_left_does_not_keep_it_from_starting(tmp_path: Path, kind: str) -> None:
    params = {**defaults(SPHINX), "index": kind, "parts": 2}
    with serving(SPHINX, params, Shelf(), tmp_path) as (running, _done):
        wanted = ask(running, FOX)
        if kind == "realtime":  # what only the log of changes holds
            late = Document("late", {"body": "fox net fox net"})
            (request,) = SPHINX.batch([late], 300, SCHEMA, params).exchanges
            assert SPHINX.check(running.ask(Request((request,)))) is None
            wanted = ask(running, FOX)
            assert wanted.total == 273
        running.process.send_signal(signal.SIGKILL)
        running.process.wait(5)
    assert (tmp_path / "run" / "searchd.pid").exists()
    assert list((tmp_path / "data").glob("*.spl")) or kind == "realtime"
    again = Deployment(SPHINX, params, tmp_path / "data", tmp_path / "run", (), SCHEMA)
    with again as running:
        assert ask(running, FOX) == wanted
