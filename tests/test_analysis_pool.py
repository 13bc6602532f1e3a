"""A full pool of connections is told from a system at its limit."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import searchbench
from queues import Serve, fixed
from searchbench.analysis.capacity.search import capacities
from searchbench.analysis.judgement import Capacity, Finding, Judgement
from searchbench.analysis.trial.pool import KIND, Pool, finding, group, limit
from searches import Lab
from test_load import always, serving

ONE_BY_ONE = threading.Lock()


def waits(peer: socket.socket, head: bytes, number: int) -> bool:
    """100 ms a request, however many come; of /queue one at a time, 10 ms each."""
    if b"/queue" in head:
        with ONE_BY_ONE:
            time.sleep(0.01)
    else:
        time.sleep(0.1)
    return always(peer, head, number)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(waits) as port:
        yield f"http://127.0.0.1:{port}"


def swept(url: str, place: Path, rates: list[float], connections: int = 8) -> Judgement:
    record = searchbench.load(
        url, rate=rates, connections=connections, seconds=1.2, warmup=0.2, engine="none",
        idle="block", arrivals="constant", record=place,
    )  # fmt: skip
    return searchbench.judge(record)


def said(found: Judgement) -> list[Finding]:
    of_steps = [f for s in found.steps for f in s.findings if f.kind == KIND]
    of_trials = [f for t in found.treatments for x in t.trials for f in x.findings]
    assert of_steps == [f for f in of_trials if f.kind == KIND]
    return of_steps


def test_a_rate_that_only_the_connections_cannot_carry_is_said_to_be_theirs(
    server: str, tmp_path: Path
) -> None:
    found = swept(f"{server}/", tmp_path / "r", [30, 200])
    (busy,) = said(found)
    assert "all 8 connections were busy" in busy.number
    assert "the rate is at most 8 / 0.1" in busy.meaning
    assert "(`--connections 32`)" in busy.remedy
    (over,) = [f for s in found.steps for f in s.findings if f.kind == "not kept up"]
    assert over.remedy == busy.remedy, "and not: nothing to do"
    assert f"At 200 requests per second {busy.number}. {busy.meaning}" in found.verdict.decision
    assert "connections busy" in found.verdict.lines[1][-1]


def test_a_server_in_which_requests_queue_is_at_its_own_limit(server: str, tmp_path: Path) -> None:
    found = swept(f"{server}/queue", tmp_path / "r", [30, 200])
    assert found.steps[1].keeps_up is False
    assert not said(found)
    assert "connections" not in found.verdict.decision


def searched(place: Path, serve: Serve, promise: str, connections: int) -> Capacity:
    how = {"connections": connections, "look_per_s": 400, "effort": 0.2}
    (found,) = capacities(Lab(place, {"sphinx": serve}, (promise,), **how).run())
    return found


def test_a_search_that_its_connections_end_leaves_the_upper_end_open(tmp_path: Path) -> None:
    """A system that works on any number of requests, 20 ms each."""
    found = searched(tmp_path / "r", fixed(64, 0.02), "p99 < 60ms", 64)
    assert found.fails is None
    assert found.chance_inside is None
    assert found.holds is not None
    assert 2900 < found.holds < 3200
    least = rf"the system sustains at least {found.holds:,.0f}/s, and where it fails is not known"
    assert re.match(
        rf"The load generator's 64 connections are the limit here: {least}\.", found.sentence
    ), found.sentence
    assert re.search(r"With these 64 connections: the limit is between 3,[01]", found.sentence)
    assert "at most 64 / 20 ms = 3,200/s whatever the system can do" in found.sentence
    assert "(`--connections " in found.sentence


def test_a_search_in_which_the_server_nearly_needs_them_all_calls_it_unknown(
    tmp_path: Path,
) -> None:
    found = searched(tmp_path / "r", fixed(56, 0.02), "p99 < 60ms", 64)
    assert found.fails is None
    assert found.sentence.startswith("The load generator's 64 connections may be the limit here: ")
    assert "is unknown: the service time was 1" in found.sentence


@pytest.mark.parametrize(
    ("serve", "promise", "connections"),
    [
        pytest.param(fixed(8, 0.02), "p99 < 400ms", 64, id="requests queue in the server"),
        pytest.param(fixed(8, 0.02), "p99 < 60ms", 64, id="it breaks the promise by itself"),
        pytest.param(fixed(64, 0.02), "p99 < 60ms", 1000, id="enough connections"),
    ],
)
def test_a_search_that_the_server_ends_names_its_limit(
    serve: Serve, promise: str, connections: int, tmp_path: Path
) -> None:
    found = searched(tmp_path / "r", serve, promise, connections)
    assert found.holds is not None
    assert found.fails is not None
    assert "connections" not in found.sentence


def pool(busy: float, mean_s: float, waited: float = 0.6) -> Pool:
    return Pool(64, 64, waited, busy, 1000, mean_s, mean_s, mean_s, 600.0)


def test_whose_limit_it_is_shows_in_the_service_time() -> None:
    full, calm = pool(64, 0.3), pool(10, 0.3)
    assert full.full
    assert not pool(64, 0.3, waited=0.01).full
    assert not pool(50, 0.3).full
    assert limit(full, [full, calm])[0] == "connections"
    assert limit(pool(64, 0.34), [calm])[0] == "unknown"
    assert limit(pool(64, 0.6), [calm])[0] == "server"
    assert finding("t", pool(64, 0.6), [calm]) is None
    found = finding("t", full, [calm])
    assert found is not None
    assert found.meaning == (
        "The connections are the limit: the rate is at most 64 / 0.3 s = 213.3/s whatever the "
        "system can do. The service time was about as long as where connections were free."
    )
    assert found.remedy == "Give more `connections` (`--connections 256`)."


def test_without_a_lower_rate_it_is_unknown_whose_limit_it_is() -> None:
    full = pool(64, 0.3)
    found = finding("t", full, [full, pool(60, 0.3)])
    assert found is not None
    assert found.number == "all 64 connections were busy, and 60 % of the requests waited for one"
    assert found.meaning == (
        "The connections may be the limit: with this service time the rate is at most 64 / 0.3 s "
        "= 213.3/s. Whether the system could answer more is unknown: no valid trial on record had "
        "connections free."
    )
    assert found.remedy == (
        "Give more `connections` (`--connections 256`), or drive a lower rate too."
    )


def test_other_systems_and_other_levels_tell_nothing_of_a_full_pool() -> None:
    rates = [group("a", {"load.rate_per_s": rate, "parts": 2}) for rate in (10, 20)]
    assert rates[0] == rates[1]
    assert group("b", {"parts": 2}) != rates[0]
    assert group("a", {"parts": 4}) != rates[0]
