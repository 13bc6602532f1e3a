"""The benches read what other clients say, and put what was measured where it belongs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from benches import cars, judge, million, roles, sql_client, truth
from benches.figure import Figure
from benches.figures import BENCHES, LONG, chosen
from benches.http_clients import Turn, user_us_of
from benches.peers import http
from benches.peers.peer import Asked, Cost, Said
from benches.table import Table, place, section, spread

from searchbench.analysis.roles.visible import Seen
from searchbench.study.planner import make_plan

ROOT = Path(__file__).parents[1]
ASKED = Asked("http://127.0.0.1:1/", 64, 2.0)

WRK = """\
Running 1s test @ http://127.0.0.1:18555/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   767.58us    1.98ms  16.44ms   92.63%
    Req/Sec   154.55k    51.59k  188.94k    80.00%
  Latency Distribution
     50%  229.00us
     75%  250.00us
     90%    1.14ms
     99%   11.05ms
  154225 requests in 1.01s, 160.17MB read
  Socket errors: connect 1, read 2, write 3, timeout 4
  Non-2xx or 3xx responses: 5
Requests/sec: 153055.05
"""
AB = """\
Complete requests:      139101
Failed requests:        1
   (Connect: 0, Receive: 0, Length: 1, Exceptions: 0)
Non-2xx responses:      3
Percentage of the requests served within a certain time (ms)
  50%      0
  66%      0
  90%      2
  99%      7
 100%     31 (longest request)
"""
H2LOAD = """\
finished in 1.02s, 145046.00 req/s, 150.64MB/s
requests: 145046 total, 145110 started, 145046 done, 145040 succeeded, 6 failed, 0 errored, 0 timeout
                     min         max         mean         sd        +/- sd
time for request:      138us     31.39ms       440us       930us    98.73%
"""  # noqa: E501
HEY = """\
Summary:
  Total:	1.0006 secs
  Slowest:	0.0215 secs

Latency distribution:
  10% in 0.0003 secs
  50% in 0.0013 secs
  90% in 0.0025 secs
  99% in 0.0087 secs

Status code distribution:
  [200]	40693 responses
  [503]	2 responses

Error distribution:
  [7]	Get "http://127.0.0.1:1/": EOF
"""
OHA = json.dumps(
    {
        "summary": {"slowest": 0.5},
        "latencyPercentiles": {"p50": 0.005, "p90": 0.3, "p99": 0.48, "p99.9": None},
        "statusCodeDistribution": {"200": 100, "404": 2},
        "errorDistribution": {"aborted due to deadline": 64, "connection closed": 3},
    }
)
K6 = json.dumps(
    {
        "http_req_duration": {"values": {"p(50)": 5.1, "p(90)": 300, "p(99)": 485, "max": 505}},
        "http_req_failed": {"values": {"rate": 0.04, "passes": 4, "fails": 96}},
        "http_reqs": {"values": {"count": 100}},
        "dropped_iterations": {"values": {"count": 50}},
    }
)


@pytest.mark.parametrize(
    ("said", "answered", "failed", "latency"),
    [
        (http.wrk_said(WRK, ASKED), 154225, 15, (0.229, 1.14, 11.05, 16.44)),
        (http.ab_said(AB, ASKED), 139100, 4, (0, 2, 7, 31)),
        (http.h2load_said(H2LOAD, ASKED), 145040, 6, (None, None, None, 31.39)),
        (http.hey_said(HEY, ASKED), 40693, 9, (1.3, 2.5, 8.7, 21.5)),
        (http.oha_said(OHA, ASKED), 100, 5, (5, 300, 480, 500)),
        (http.k6_said(K6, ASKED), 96, 54, (5.1, 300, 485, 505)),
    ],
    ids=["wrk", "ab", "h2load", "hey", "oha", "k6"],
)
def test_what_a_peer_says_is_read(
    said: Said, answered: int, failed: int, latency: tuple[float | None, ...]
) -> None:
    assert (said.answered, said.failed) == (answered, failed)
    told = [said.latency_ms.get(name) for name in ("p50", "p90", "p99", "max")]
    assert told == [None if value is None else pytest.approx(value) for value in latency]


@pytest.mark.parametrize(
    "peer", [*http.PEERS, http.CORRECTED], ids=lambda p: f"{p.name}-{p.lacks[:5]}"
)
def test_a_peer_is_asked_for_what_it_knows_and_refuses_the_rest(
    peer: http.Peer, tmp_path: Path
) -> None:
    closed = peer.argv(ASKED, tmp_path)
    steady = peer.argv(Asked(ASKED.url, 64, 2.0, per_s=1000.0), tmp_path)
    assert closed or steady
    only_closed, only_steady = ("wrk", "ab", "h2load"), ("wrk2",)
    assert (steady is None) == (peer.name in only_closed)
    assert (closed is None) == (peer.name in only_steady or peer is http.CORRECTED)


def test_output_that_is_none_is_an_error_and_no_zero() -> None:
    for read in (http.wrk_said, http.ab_said, http.h2load_said, http.hey_said):
        with pytest.raises(ValueError, match="nothing like"):
            read("", ASKED)


def test_what_a_client_costs_to_start_counts_for_nobody() -> None:
    turn = Turn(Cost(0.3, 0.7, Said(100_064)), Cost(0.1, 0.1, Said(64)))
    assert turn.cost_us() == pytest.approx(8.0)
    assert user_us_of([turn, turn]) == pytest.approx(2.0)


def test_the_truth_of_the_stalling_server_is_that_of_a_fine_grid() -> None:
    """Arrivals every 10 us through whole periods, each answered as the server answers."""
    period, stall, delay = truth.EVERY_S, truth.STALL_S, truth.DELAY_S
    arrivals = (i / 1e5 for i in range(int(period * 1e5)))
    response = sorted(
        delay if (a + delay) % period >= stall else delay + stall - (a + delay) % period
        for a in arrivals
    )
    for _, q in truth.QUANTILES:
        at = max(0, round(q * len(response)) - 1)
        assert truth.truth(q) == pytest.approx(response[at], rel=1e-3, abs=2e-5)


def test_what_a_warming_host_lacks_is_that_of_a_fine_grid() -> None:
    at = np.linspace(2.0, 6.0, 100_001)
    speed = 1 / (1 + (1 / 0.4 - 1) * np.exp(-at / 5.0))
    assert judge.host_lacking(5.0, 2.0, 4.0) == pytest.approx(1 - speed.mean(), abs=1e-5)


def test_a_section_has_its_tables_its_targets_and_what_was_missing() -> None:
    text = section(
        "a machine",
        [
            Table("Clients", ("client", "µs"), (("ours", "5"), ("a|b", "6")), ("a note",)),
            Figure("ratio", 1.25, "x", at_least=1.3, note="rounds 1.2..1.3"),
            Figure("user", 0.2, "us", at_most=0.25),
            Figure("plain", 3, "ms"),
        ],
        ["wrk2 (build it)"],
    )
    assert text.startswith("*a machine*\n")
    assert "| client | µs |\n|---|--:|\n| ours | 5 |\n| a\\|b | 6 |\n\na note\n" in text
    assert "| ratio | 1.25 x | ≥ 1.3 | **missed**; rounds 1.2..1.3 |" in text
    assert "| user | 0.2 us | ≤ 0.25 | reached |" in text
    assert "| plain | 3 ms |  |" in text
    assert "Not here: wrk2 (build it).\n" in text


def test_only_the_place_of_a_bench_is_written_over(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "by hand\n<!-- measured clients -->\nold\n<!-- end clients -->\nkept \\1\n"
        "<!-- measured sql -->\n<!-- end sql -->\n"
    )
    assert place(page, "clients", "new \\1\n")
    assert place(page, "clients", "newer \\2\n")
    assert not place(page, "truth", "nowhere")
    assert page.read_text() == (
        "by hand\n<!-- measured clients -->\n\nnewer \\2\n\n<!-- end clients -->\nkept \\1\n"
        "<!-- measured sql -->\n<!-- end sql -->\n"
    )


def test_benchmarks_md_has_a_place_for_every_bench(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text((ROOT / "BENCHMARKS.md").read_text(encoding="utf-8"), encoding="utf-8")
    assert [name for name in BENCHES if not place(page, name, "x")] == []


def test_a_spread_is_the_median_and_its_range() -> None:
    assert spread([1.4, 1.2, 1.3]) == "1.30 (1.20..1.40)"


def test_what_takes_hours_runs_by_its_whole_name_alone() -> None:
    assert BENCHES.keys() >= LONG
    assert {name for name in BENCHES if not chosen(name, [])} == LONG
    assert {name for name in BENCHES if chosen(name, ["ingest"])} == {"ingest", "ingest-cars"}
    assert [name for name in BENCHES if chosen(name, ["ingest-3m"])] == ["ingest-3m"]


@pytest.mark.parametrize(
    ("earliest_s", "latest_s", "wrong"),
    [
        (0.018, 0.023, 0),
        (0.0195, 0.0196, 0),  # the answer came 0.4 ms after the host had read the write
        (0.010, 0.015, 1),
        (0.030, 0.035, 1),
        (0.004, math.inf, 0),  # written too near to the end to be found
        (0.500, math.inf, 1),
    ],
)
def test_a_marker_is_wrong_where_its_asks_leave_out_the_truth(
    earliest_s: float, latest_s: float, wrong: int
) -> None:
    assert roles.impossible([Seen("one", earliest_s, latest_s, 1.0)], 0.020) == wrong


PREPARED = "single prepared statements"


@pytest.mark.parametrize(
    ("method", "spent", "again"),
    [
        ("IN", {"select": 2}, 0),
        ("IN", {"select": 3}, 1),
        ("IN", {"select": 2, "stmt_prepare": 1}, 1),
        ("a temporary table", {"create_table": 2, "insert": 2, "select": 2, "drop_table": 2}, 0),
        (PREPARED, {"select": 20, "stmt_execute": 20, "stmt_prepare": 1}, 0),
        (PREPARED, {"select": 20, "stmt_execute": 20, "stmt_prepare": 20}, 19),
        (PREPARED, {"select": 20, "stmt_execute": 20, "stmt_prepare": 1, "stmt_reprepare": 2}, 2),
        (PREPARED, {"select": 23, "stmt_execute": 20, "stmt_prepare": 1}, 3),
    ],
)
def test_what_is_parsed_again_is_counted_by_the_server(
    method: str, spent: dict[str, int], again: int
) -> None:
    idle = {"stmt_execute": 0, "stmt_prepare": 0}
    assert million.parsed_again(method, idle | spent, ids=10, operations=2) == again


def test_counters_of_a_server_that_did_something_else_say_nothing() -> None:
    idle = {"stmt_execute": 0, "stmt_prepare": 0}
    with pytest.raises(RuntimeError, match=r"executed 19 prepared statements, .* asked for 20"):
        million.parsed_again(PREPARED, idle | {"stmt_execute": 19}, ids=10, operations=2)
    with pytest.raises(RuntimeError, match=r"less than was asked: .*Com_select 1"):
        million.parsed_again("IN", idle | {"select": 1}, ids=10, operations=2)


def test_a_statement_that_is_prepared_has_markers_for_its_keys() -> None:
    assert sql_client.prepared(sql_client.POINT, "?") == "SELECT c FROM t WHERE id = ?"
    assert sql_client.prepared(sql_client.TEN, "$1").endswith("BETWEEN $1 AND $1 + 9")


@pytest.mark.parametrize(
    ("number", "scale", "given"),
    [
        (3_000_000, "200", 3_000_000),
        (40_000, "2", 30_000),
        (1500, "0.1", 1500),
        (2250, "0.142857", 2143),
    ],
)
def test_so_many_cars_are_copies_or_every_nth(number: int, scale: str, given: int) -> None:
    assert cars.fitting(number) == (scale, given)


@pytest.mark.parametrize("batch", [cars.BULK, cars.SINGLE])
@pytest.mark.parametrize("system", cars.SYSTEMS, ids=lambda system: system.name)
def test_one_ingest_of_the_shipped_study_is_left(system: cars.System, batch: int) -> None:
    study, given = cars.study_of(system, cars.WHOLE, batch)
    (treatment,) = make_plan(study).treatments
    assert treatment.system == system.name
    assert treatment.jobs["ingest"]["batch"] == batch
    assert given == cars.COPY * treatment.corpus["scale"]
    assert given == cars.WHOLE // (1 if batch == cars.BULK else system.part)
    door = treatment.parameters.get("door")
    assert door == (system.door if batch == cars.BULK and system.door else door and "insert")
