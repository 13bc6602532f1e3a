"""What was promised of a cache is what a real server counts, and what it was not is said."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from searchbench.cli.cached import cache_plan
from searchbench.corpora.corpus import Schema
from searchbench.engines import defaults
from searchbench.engines.engine import Parameters, Request, Service
from searchbench.engines.groonga.commands import column, do, load
from searchbench.engines.groonga.engine import Groonga
from searchbench.engines.http_form import get
from searchbench.engines.mariadb.engine import MariaDB
from searchbench.engines.mysql_form import query
from searchbench.errors import SearchbenchError
from searchbench.lab.conduct.load import LoadRun, steps_of
from searchbench.lab.conduct.studies import Silence
from searchbench.lab.wire.exchange import Endpoint, ask, prepare, samples_of
from searchbench.lab.get.install import missing
from searchbench.lab.system.address import parse_target
from searchbench.lab.system.cachecount import (
    Counters,
    Uncounted,
    between,
    cache_size,
    judge,
    of_facts,
    of_replies,
    read,
)
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.system.names import free_port
from searchbench.lab.system.systems import make_ready
from searchbench.workload.draw import draw, plan
from searchbench.workload.loads import open_load
from searchbench.workload.verbatim.model import Ask, RequestSet

ENTRIES = 100
SENT = 3000


@pytest.fixture(scope="module")
def groonga(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    engine = Groonga()
    if lacking := missing(engine):
        pytest.skip(f"no groonga here: {lacking}")
    place = tmp_path_factory.mktemp("groonga")
    levels = {**defaults(engine), "cache_limit": ENTRIES}
    with Deployment(engine, levels, place / "data", place / "run") as running:
        asked = (
            do("table_create", name="Stores", flags="TABLE_HASH_KEY", key_type="ShortText"),
            column("Stores", "n", "COLUMN_SCALAR", "Int32"),
            load("Stores", orjson.dumps([{"_key": str(n), "n": n} for n in range(50)])),
        )
        assert engine.check(running.ask(Request(asked))) is None
        time.sleep(1.1)  # what it answers within the second of a change is not taken from the cache
        yield running


def emptied(running: Deployment) -> Endpoint:
    """Its endpoint, the cache with nothing in it."""
    for limit in ("0", str(ENTRIES)):
        running.ask(Request((do("cache_limit", max=limit),)))
    return running.endpoint


def selects(count: int) -> list[Request]:
    """Distinct selects."""
    return [
        Request((get("/d/select", [("table", "Stores"), ("filter", f"n < {n}")]),))
        for n in range(count)
    ]


def drive(endpoint: Endpoint, requests: list[Request], order: Any, clients: int = 2) -> None:
    trace = endpoint.drive(
        prepare(requests),
        sequence=np.asarray(order, np.uint32),
        client_starts=np.linspace(0, len(order), clients + 1).astype(np.uint32),
        connections=clients,
        idle="block",
    )
    samples = samples_of(trace)
    assert len(samples) == len(order)
    assert not samples["outcome"].any()


def counted(before: Counters | None, after: Counters | None) -> Counters:
    found = between(before, after)
    assert isinstance(found, Counters)
    return found


@pytest.mark.parametrize(
    ("hit", "law", "how"),
    [
        (0.5, "uniform", {}),
        (0.8, "uniform", {}),
        (0.6, "zipf", {"distinct": 600}),
    ],
)
def test_groonga_counts_the_hits_that_were_promised(
    groonga: Deployment, hit: float, law: Any, how: dict[str, int]
) -> None:
    endpoint = emptied(groonga)
    size = cache_size(endpoint)
    assert size == ENTRIES
    made = plan(size, hit, law, **how)
    requests = selects(made.distinct)
    order = draw(made, made.warmup_requests + SENT, seed=1)
    drive(endpoint, requests, order[: made.warmup_requests])
    before = read(endpoint)
    drive(endpoint, requests, order[made.warmup_requests :])
    found = counted(before, read(endpoint))
    assert found.lookups == SENT
    assert judge(made, found, in_flight=2, requests=SENT) is None, found
    # And the judgement is one: the same count is not what another promise would be.
    other = judge(replace(made, wanted_hit=hit - 0.1, expected_hit=hit - 0.1), found)
    assert other is not None
    assert f"{hit - 0.1:.1%} were wanted" in other.number


def test_a_cache_that_was_empty_is_judged_as_one(groonga: Deployment) -> None:
    made = plan(ENTRIES, 0.8)
    endpoint = emptied(groonga)
    before = read(endpoint)
    drive(endpoint, selects(made.distinct), draw(made, 1000, seed=3))
    found = counted(before, read(endpoint))
    assert judge(made, found, cold=True) is None
    assert made.expected_over(1000, cold=True) < 0.75


def test_a_load_run_fills_the_cache_first_and_keeps_what_was_counted(
    groonga: Deployment, tmp_path: Path
) -> None:
    endpoint = emptied(groonga)
    made = plan(ENTRIES, 0.8)
    asks = tuple(
        Ask(f"/d/select?table=Stores&filter=n%3C{n}&limit=1") for n in range(2 * made.distinct)
    )
    requests = RequestSet("selects", asks, np.arange(len(asks), dtype=np.uint32))
    target = parse_target(f"http://127.0.0.1:{endpoint.target[1]}")
    system = make_ready(target, requests, captures=0)
    skewed = cache_plan([system], requests, 0.8, None, "zipf:0.5")
    assert (skewed.cache_entries, skewed.distribution, skewed.exponent) == (ENTRIES, "zipf", 0.5)
    for law in ("zipf:steep", "normal"):
        with pytest.raises(SearchbenchError, match=r"zipf:0\.8 with an exponent"):
            cache_plan([system], requests, 0.8, None, law)
    run = LoadRun(
        [system], requests, tmp_path / "record", "?", "", {"kind": "load"}, Silence(), cache=made
    )
    # So few requests that an empty cache would show.
    spec = {"clients": 2, "requests": 600, "warmup_requests": 0}
    run.carry_out(steps_of([system], [(spec, open_load(spec, tmp_path))], "clients"))
    (trial,) = run.record.trials
    assert trial["status"] == "ok", trial
    counted = trial["cache"]["counted"]
    assert counted["lookups"] == 600
    rate = counted["hits"] / counted["lookups"]
    assert rate == pytest.approx(0.8, abs=3 * made.spread(600) + 0.01)
    assert not [note for note in trial["notes"] if note["kind"].startswith("cache")]
    assert made.expected_over(600, cold=True) < 0.72


def test_a_cyclic_order_never_hits_and_that_is_a_finding(groonga: Deployment) -> None:
    made = plan(ENTRIES, 0.5)
    endpoint = emptied(groonga)
    before = read(endpoint)
    drive(endpoint, selects(made.distinct), np.tile(np.arange(made.distinct), 5), clients=1)
    found = counted(before, read(endpoint))
    assert (found.hits, found.lookups) == (0, 1000)
    note = judge(made, found)
    assert note is not None
    assert note.number.startswith("0.0% of 1,000 lookups, by Groonga's status; 50.0% were wanted")
    assert "order was cyclic" in note.meaning
    assert "independently" in note.remedy


def test_a_cache_of_another_size_is_a_finding_that_says_which(groonga: Deployment) -> None:
    made = plan(60, 0.5)
    endpoint = emptied(groonga)
    requests = selects(made.distinct)
    drive(endpoint, requests, draw(made, 800, seed=2))
    before = read(endpoint)
    drive(endpoint, requests, draw(made, SENT, seed=5))
    note = judge(made, counted(before, read(endpoint)), requests=SENT)
    assert note is not None
    said = int(note.meaning.partition("A cache of about ")[2].split()[0])
    assert said == pytest.approx(ENTRIES, abs=8)
    assert "--cache-entries" in note.remedy


def test_the_facts_of_an_engine_hold_the_same_count(groonga: Deployment) -> None:
    facts = groonga.engine.facts(groonga.ask(groonga.engine.facts_request()))
    assert of_facts(facts.extra) == read(groonga.endpoint)
    # Asked again, it is the same: to ask is no lookup.
    assert of_facts(facts.extra) == read(groonga.endpoint)


def test_several_endpoints_are_added_up_and_one_that_tells_nothing_leaves_no_count(
    groonga: Deployment,
) -> None:
    endpoint = groonga.endpoint
    one, two = read(endpoint), read(replace(endpoint, others=(endpoint.target,)))
    assert one is not None
    assert two is not None
    assert (two.hits, two.lookups) == (2 * one.hits, 2 * one.lookups)
    assert read(replace(endpoint, others=(("127.0.0.1", free_port()),))) is None
    assert cache_size(replace(endpoint, target=("127.0.0.1", free_port()))) is None


class Caching(MariaDB):
    """With the query cache that the adapter turns off."""

    def service(self, params: Parameters, schema: Schema) -> Service:
        declared = super().service(params, schema)
        on = {"--query-cache-type=OFF": "--query-cache-type=ON",
              "--query-cache-size=0": "--query-cache-size=1048576"}  # fmt: skip
        return replace(declared, argv=tuple(on.get(a, a) for a in declared.argv))


def test_mariadb_counts_where_its_query_cache_is_on(tmp_path: Path) -> None:
    engine = Caching()
    if lacking := missing(engine):
        pytest.skip(f"no mariadb here: {lacking}")
    with Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "run") as running:
        make = ("CREATE TABLE numbers (n INT)", "INSERT INTO numbers VALUES (1), (2), (3)")
        assert engine.check(running.ask(Request(tuple(map(query, make))))) is None
        made = [Request((query(f"SELECT * FROM numbers WHERE n = {n}"),)) for n in range(4)]
        before = read(running.endpoint)
        drive(running.endpoint, made, [0, 1, 0, 1, 0, 2, 2, 0], clients=1)
        found = counted(before, read(running.endpoint))
        assert (found.hits, found.lookups) == (5, 8)
        assert cache_size(running.endpoint) is None
        running.ask(Request((query("SET GLOBAL query_cache_size = 0"),)))
        assert read(running.endpoint) is None


def test_a_header_of_the_kept_replies_counts_and_so_does_the_front_of_droonga(
    tmp_path: Path,
) -> None:
    port = free_port()
    config = tmp_path / "nginx.conf"
    config.write_text(
        f"""daemon off; user root root; pid {tmp_path}/pid;
        error_log stderr crit; worker_processes 1;
        events {{ worker_connections 64; }}
        http {{
          access_log off; keepalive_requests 100000;
          proxy_temp_path {tmp_path}/t; client_body_temp_path {tmp_path}/b;
          fastcgi_temp_path {tmp_path}/f; uwsgi_temp_path {tmp_path}/u; scgi_temp_path {tmp_path}/s;
          proxy_cache_path {tmp_path}/cache keys_zone=answers:1m;
          server {{ listen unix:{tmp_path}/behind; location / {{ return 200 "$uri"; }} }}
          server {{
            listen 127.0.0.1:{port};
            location = /d/status {{
              return 200 '[[0,1,2],{{"n_queries":8,"cache_hit_rate":50.0}}]';
            }}
            location = /statistics/cache {{ return 200 '{json.dumps(_droonga())}'; }}
            location / {{
              proxy_pass http://unix:{tmp_path}/behind; proxy_cache answers;
              proxy_cache_valid 200 1h; add_header X-Cache-Status $upstream_cache_status;
            }}
          }}
        }}"""
    )
    try:
        server = subprocess.Popen(["nginx", "-e", "stderr", "-c", str(config)])
    except FileNotFoundError:
        pytest.skip("no nginx here")
    try:
        endpoint = Endpoint(("127.0.0.1", port), "http")
        for _ in range(200):
            try:
                ask(endpoint, [Request((get("/up"),))])
                break
            except OSError:
                pass
            except Exception:
                assert server.poll() is None
        order = [0, 1, 2, 0, 0, 1, 2, 2, 2, 2]
        replies = ask(endpoint, [Request((get(f"/{n}"),)) for n in order])
        found = of_replies(replies)
        assert found is not None
        assert (found.hits, found.lookups) == (7, 10)
        assert "x-cache-status of 10 replies" in found.source
        # What is said by nginx is one worker's; the front's count is taken as it is.
        front = _droonga()
        assert read(endpoint) == Counters(front["nHits"], front["nGets"], "Droonga's front")
    finally:
        server.terminate()
        server.wait(10)


def _droonga() -> dict[str, Any]:
    """What a real one said of its cache."""
    golden = json.loads((Path(__file__).parent / "engines/golden/droonga_replies.json").read_text())
    statistics: dict[str, Any] = golden["cache statistics"]["body"]
    return statistics


def reply(*headers: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *headers, "Content-Length: 9999", "", "[["]).encode()


def test_headers_of_fronts_are_understood_and_others_tell_nothing() -> None:
    droonga = of_replies([reply("X-Droonga-Cached: yes"), reply(), reply(), reply()])
    assert droonga is not None
    assert droonga.rate == 0.25
    for name, hit, miss in (
        ("X-Cache", "HIT from edge", "MISS from edge"),
        ("X-Cache", "TCP_HIT", "TCP_MISS"),
        ("Cache-Status", "front; hit; ttl=3", "front; fwd=uri-miss; stored"),
    ):
        found = of_replies([reply(f"{name}: {hit}"), reply(f"{name}: {miss}")])
        assert found is not None
        assert (found.hits, found.lookups) == (1, 2)
    assert of_replies([reply("Age: 3"), reply()]) is None
    assert of_replies([]) is None


def test_facts_of_other_engines_are_counted_as_they_mean() -> None:
    said = _droonga()
    droonga = of_facts({"cache_hits": said["nHits"], "cache_gets": said["nGets"]})
    assert droonga is not None
    assert droonga.rate == pytest.approx(said["hitRatio"] / 100)
    names = ("request_cache_hits", "request_cache_misses", "query_cache_hits", "query_cache_misses")
    before = of_facts(dict(zip(names, (3, 1, 10, 10), strict=True)))
    assert before is not None
    assert (before.hits, before.lookups) == (3, 4)
    # Where requests are not cached whole, their filters may be.
    found = counted(before, of_facts(dict(zip(names, (3, 1, 16, 12), strict=True))))
    assert (found.hits, found.lookups, found.source) == (6, 8, "the query cache")
    httpd = {"server": "httpd"}
    rates = {"cache_hit_rate_percent": 50.0, "queries_since_start": 8}
    assert of_facts({**rates, "parameters": httpd}) is None
    assert of_facts(rates) == Counters(4, 8, "Groonga's status")
    assert of_facts({}) is None


def test_what_could_not_be_counted_is_said_with_the_reason() -> None:
    made = plan(ENTRIES, 0.5)
    ten, nine = Counters(5, 10, "Groonga's status"), Counters(4, 9, "Groonga's status")
    for before, after, reason in (
        (None, ten, "tells no count that is understood"),
        (ten, nine, "went back from 10 to 9 lookups"),
        (ten, ten, "did not look into it once"),
    ):
        found = between(before, after)
        assert isinstance(found, Uncounted)
        note = judge(made, found)
        assert note is not None
        assert reason in note.meaning
        assert "50.0% for a cache of 100 entries" in note.remedy


def test_causes_are_named_where_they_can_be() -> None:
    made = plan(ENTRIES, 0.5)
    others = judge(made, Counters(4500, 6000, "Groonga's status"), requests=3000)
    assert others is not None
    assert "others ask this server too" in others.meaning
    # A lookup for each of five shards is nobody else's.
    shards = judge(made, Counters(9000, 15_000, "the request cache", single=False), requests=3000)
    assert shards is not None
    assert "others" not in shards.meaning
    together = judge(made, Counters(4200, 10_000, "Groonga's status"), in_flight=32)
    assert together is not None
    assert "about 84 entries" in together.meaning
    assert "15.5% may be lost because 32 requests were in flight together" in together.meaning
    assert "fewer clients" in together.remedy
    # As much too often is not of that cause, and few clients have not that effect.
    few = judge(made, Counters(4200, 10_000, "Groonga's status"), in_flight=2)
    assert few is not None
    assert "in flight" not in few.meaning
    above = judge(made, Counters(5800, 10_000, "Groonga's status"), in_flight=32)
    assert above is not None
    assert "about 116 entries" in above.meaning
    assert "in flight" not in above.meaning


def test_noise_is_no_deviation_and_more_than_noise_is() -> None:
    made = plan(ENTRIES, 0.5)
    allowed = 3 * made.spread(1000) + 0.01
    for off, is_one in ((allowed - 0.002, False), (allowed + 0.002, True)):
        for sign in (1, -1):
            hits = round((0.5 + sign * off) * 1000)
            assert (judge(made, Counters(hits, 1000, "a test")) is not None) is is_one
