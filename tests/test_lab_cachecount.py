"""What was promised of a cache is what a real server counts, and the judge says where it is not.

Longer than most files: each engine counts its caches in words of its own, and each is asked here.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import orjson
import pytest

from searchbench.analysis.judge import judge as judge_record
from searchbench.analysis.trial.cache import Row, judged
from searchbench.cli import app
from searchbench.corpora.corpus import Schema
from searchbench.engines import defaults
from searchbench.engines import engine as engine_named
from searchbench.engines.answer import CacheCounters, CacheState
from searchbench.engines.engine import CountsHits, Parameters, Request, Service
from searchbench.engines.groonga import Droonga, Groonga
from searchbench.engines.groonga.commands import column, do, load
from searchbench.engines.http_form import get
from searchbench.engines.mariadb import MariaDB
from searchbench.engines.mysql_form import query
from searchbench.errors import QueryError
from searchbench.lab.conduct.caches import Counting, between, kept, law_of, of_replies, read
from searchbench.lab.conduct.measuring import _before_the_window
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.system.names import free_port
from searchbench.lab.wire.exchange import Endpoint, ask, prepare, samples_of
from searchbench.lab.wire.order import Manner, Order
from searchbench.record import old, open_record
from searchbench.record.trial import Cache, CacheCount
from searchbench.workload.draw import CachePlan, draw, plan

ENTRIES = 100
GROONGA = engine_named("groonga")
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
        Order(
            np.asarray(order, np.uint32),
            np.linspace(0, len(order), clients + 1).astype(np.uint32),
            None,
            clients,
            repeat=False,
        ),
        Manner(),
    )
    samples = samples_of(trace)
    assert len(samples) == len(order)
    assert not samples["outcome"].any()


def counted(before: CacheState, after: CacheState) -> CacheCount:
    found = between(before, after)
    assert isinstance(found, CacheCount)
    return found


def judge(
    made: CachePlan, found: CacheCount | str, *, in_flight: int = 1, requests: int = 0
) -> Row | None:
    """The finding, from the record alone."""
    read_back = msgspec.json.decode(msgspec.json.encode(kept(made, found)), type=Cache)
    return next(judged(read_back, in_flight, requests), None)


def of(hits: int, lookups: int, source: str, **more: bool) -> CacheCount:
    return CacheCount(hits=hits, lookups=lookups, source=source, **more)


NUMBER, MEANING, REMEDY = 2, 3, 4  # of a row


@pytest.mark.parametrize(
    ("hit", "law", "how"),
    [
        (0.5, "uniform", {}),
        (0.8, "uniform", {}),
        (0.6, "zipf", {"exponent": 0.9}),
    ],
)
def test_groonga_counts_the_hits_that_were_promised(
    groonga: Deployment, hit: float, law: Any, how: dict[str, float]
) -> None:
    endpoint = emptied(groonga)
    size = read(endpoint, GROONGA).entries
    assert size == ENTRIES
    made = plan(size, hit, law, **how)
    requests = selects(made.distinct)
    order = draw(made, made.warmup_requests + SENT, seed=1)
    drive(endpoint, requests, order[: made.warmup_requests])
    before = read(endpoint, GROONGA)
    drive(endpoint, requests, order[made.warmup_requests :])
    found = counted(before, read(endpoint, GROONGA))
    assert found.lookups == SENT
    assert judge(made, found, in_flight=2, requests=SENT) is None, found
    # And the judgement is one: the same count is not what another promise would be.
    other = judge(replace(made, wanted_hit=hit - 0.1, expected_hit=hit - 0.1), found)
    assert other is not None
    assert f"{hit - 0.1:.1%} were wanted" in other[NUMBER]


def test_a_cache_that_was_empty_is_hit_as_often_as_the_model_says(groonga: Deployment) -> None:
    made = plan(ENTRIES, 0.8)
    endpoint = emptied(groonga)
    before = read(endpoint, GROONGA)
    drive(endpoint, selects(made.distinct), draw(made, 1000, seed=3))
    found = counted(before, read(endpoint, GROONGA))
    expected = 1 - (ENTRIES + (1 - made.expected_hit) * (1000 - made.fill_requests)) / 1000
    assert expected < 0.75
    assert found.hits / found.lookups == pytest.approx(expected, abs=3 * made.spread(1000) + 0.01)


def test_a_cyclic_order_never_hits_and_that_is_a_finding(groonga: Deployment) -> None:
    made = plan(ENTRIES, 0.5)
    endpoint = emptied(groonga)
    before = read(endpoint, GROONGA)
    drive(endpoint, selects(made.distinct), np.tile(np.arange(made.distinct), 5), clients=1)
    found = counted(before, read(endpoint, GROONGA))
    assert (found.hits, found.lookups) == (0, 1000)
    note = judge(made, found)
    assert note is not None
    assert note[NUMBER].startswith("0.0% of 1,000 lookups, by Groonga's status; 50.0% were wanted")
    assert "order was cyclic" in note[MEANING]
    assert "independently" in note[REMEDY]


def test_a_cache_of_another_size_is_a_finding_that_says_which(groonga: Deployment) -> None:
    made = plan(60, 0.5)
    endpoint = emptied(groonga)
    requests = selects(made.distinct)
    drive(endpoint, requests, draw(made, 800, seed=2))
    before = read(endpoint, GROONGA)
    drive(endpoint, requests, draw(made, SENT, seed=5))
    note = judge(made, counted(before, read(endpoint, GROONGA)), requests=SENT)
    assert note is not None
    said = int(note[MEANING].partition("A cache of about ")[2].split()[0])
    assert said == pytest.approx(ENTRIES, abs=8)
    assert "--cache-entries" in note[REMEDY]


def test_to_ask_for_the_count_is_no_lookup(groonga: Deployment) -> None:
    assert read(groonga.endpoint, GROONGA) == read(groonga.endpoint, GROONGA)


def test_several_endpoints_are_added_up_and_one_that_tells_nothing_leaves_no_count(
    groonga: Deployment,
) -> None:
    endpoint = groonga.endpoint
    one = read(endpoint, GROONGA)
    two = read(replace(endpoint, others=(endpoint.target,)), GROONGA)
    assert one.counters is not None
    assert two.counters is not None
    assert two.counters.hits == 2 * one.counters.hits
    assert two.counters.lookups == 2 * one.counters.lookups
    assert two.entries == one.entries == ENTRIES
    away = replace(endpoint, others=(("127.0.0.1", free_port()),))
    assert read(away, GROONGA) == CacheState()


def test_an_engine_that_does_not_count_and_an_unknown_one_are_not_asked(
    groonga: Deployment,
) -> None:
    for engine in (None, engine_named("sphinx"), engine_named("postgresql")):
        assert read(groonga.endpoint, engine) == CacheState()


def test_each_worker_of_groonga_httpd_counts_by_itself_so_there_is_no_count(
    tmp_path: Path,
) -> None:
    engine = Groonga()
    if lacking := missing(engine):
        pytest.skip(f"no groonga here: {lacking}")
    levels = {**defaults(engine), "server": "httpd", "cache_limit": 7}
    with Deployment(engine, levels, tmp_path / "data", tmp_path / "run") as running:
        assert read(running.endpoint, engine) == CacheState(None, 7)


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
        before = read(running.endpoint, engine)
        drive(running.endpoint, made, [0, 1, 0, 1, 0, 2, 2, 0], clients=1)
        after = read(running.endpoint, engine)
        found = counted(before, after)
        assert (found.hits, found.lookups) == (5, 8)
        counting = Counting(running)
        drive(running.endpoint, made, [0, 1, 2, 0, 1, 2, 3, 3], clients=1)
        unasked = counting.on_record(None, [])
        assert unasked is not None
        assert unasked.counted is not None
        assert (unasked.counted.hits, unasked.counted.lookups) == (7, 8)
        assert unasked.wanted_hit is None
        assert after.entries is None
        running.ask(Request((query("SET GLOBAL query_cache_size = 0"),)))
        assert read(running.endpoint, engine) == CacheState(None, 0)


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
        front = _droonga()
        counters = CacheCounters(front["nHits"], front["nGets"], "Droonga's front")
        assert read(endpoint, Droonga()) == CacheState(counters)
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
    assert (droonga.hits, droonga.lookups) == (1, 4)
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


def test_where_requests_are_not_cached_whole_their_filters_may_be() -> None:
    engine = engine_named("opensearch")
    assert isinstance(engine, CountsHits)

    def stats(*counts: int) -> CacheState:
        kinds = ("request_cache", "query_cache")
        total = {
            kind: {"hit_count": counts[2 * n], "miss_count": counts[2 * n + 1]}
            for n, kind in enumerate(kinds)
        }
        body = orjson.dumps({"_all": {"total": total}})
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
        return engine.cache_state(head.encode() + body)

    found = counted(stats(3, 1, 10, 10), stats(3, 1, 16, 12))
    assert (found.hits, found.lookups, found.source) == (6, 8, "the query cache")
    found = counted(stats(3, 1, 10, 10), stats(4, 2, 16, 12))
    assert (found.hits, found.lookups, found.source) == (1, 2, "the request cache")
    assert not found.single


def test_what_could_not_be_counted_is_said_with_the_reason() -> None:
    made = plan(ENTRIES, 0.5)
    ten, nine = (
        CacheState(CacheCounters(hits, lookups, "Groonga's status"))
        for hits, lookups in ((5, 10), (4, 9))
    )
    for before, after, reason in (
        (CacheState(), ten, "gives no count that is understood"),
        (ten, nine, "went back from 10 to 9 lookups"),
        (ten, ten, "did not look into it once"),
    ):
        found = between(before, after)
        assert isinstance(found, str)
        note = judge(made, found)
        assert note is not None
        assert reason in note[MEANING]
        assert "50.0% for a cache of 100 entries" in note[REMEDY]


def test_causes_are_named_where_they_can_be() -> None:
    made = plan(ENTRIES, 0.5)
    others = judge(made, of(4500, 6000, "Groonga's status"), requests=3000)
    assert others is not None
    assert "others ask this server too" in others[MEANING]
    # A lookup for each of five shards is nobody else's.
    shards = judge(made, of(9000, 15_000, "the request cache", single=False), requests=3000)
    assert shards is not None
    assert "others" not in shards[MEANING]
    # The replies that were kept are not all of them.
    sample = judge(made, of(75, 150, "the header x-cache", sampled=True), requests=3000)
    assert sample is None
    together = judge(made, of(4200, 10_000, "Groonga's status"), in_flight=32)
    assert together is not None
    assert "about 84 entries" in together[MEANING]
    assert "15.5% may be lost because 32 requests were in flight together" in together[MEANING]
    assert "fewer clients" in together[REMEDY]
    # As much too often is not of that cause, and few clients have not that effect.
    few = judge(made, of(4200, 10_000, "Groonga's status"), in_flight=2)
    assert few is not None
    assert "in flight" not in few[MEANING]
    above = judge(made, of(5800, 10_000, "Groonga's status"), in_flight=32)
    assert above is not None
    assert "about 116 entries" in above[MEANING]
    assert "in flight" not in above[MEANING]


def test_noise_is_no_deviation_and_more_than_noise_is() -> None:
    made = plan(ENTRIES, 0.5)
    allowed = 3 * made.spread(1000) + 0.01
    for off, is_one in ((allowed - 0.002, False), (allowed + 0.002, True)):
        for sign in (1, -1):
            hits = round((0.5 + sign * off) * 1000)
            assert (judge(made, of(hits, 1000, "a test")) is not None) is is_one


def test_a_load_run_fills_the_cache_first_and_keeps_what_was_counted(
    groonga: Deployment, tmp_path: Path
) -> None:
    endpoint = emptied(groonga)
    made = plan(ENTRIES, 0.8)
    paths = (f"/d/select?table=Stores&filter=n%3C{n}&limit=1" for n in range(2 * made.distinct))
    (tmp_path / "paths.txt").write_text("\n".join(paths))
    # So few requests that a cache that was empty at first would show.
    how = {"cache-hit": 0.8, "clients": 2, "seconds": 0.4, "warmup": 0, "captures": 0}
    words = [word for name, value in how.items() for word in (f"--{name}", str(value))]
    place = tmp_path / "record"
    url = f"http://127.0.0.1:{endpoint.target[1]}"
    asked = ["load", url, "--requests", str(tmp_path / "paths.txt"), "--record", str(place)]
    assert app([*asked, *words, "--no-report"], result_action="return_value") == 0
    (trial,) = open_record(place).trials
    assert trial.status == "ok", trial.reason
    assert trial.cache is not None
    assert (trial.cache.cache_entries, trial.cache.distinct) == (ENTRIES, made.distinct)
    counted = trial.cache.counted
    assert counted is not None
    assert counted.lookups == open_record(place).samples(trial.trial).num_rows
    rate = counted.hits / counted.lookups
    assert rate == pytest.approx(0.8, abs=3 * made.spread(counted.lookups) + 0.01)
    findings = [f.kind for t in judge_record(open_record(place)).treatments
                for each in t.trials for f in each.findings]  # fmt: skip
    assert not [kind for kind in findings if kind.startswith("cache")]


@pytest.mark.parametrize(
    ("warm_at", "begins_at", "latest", "read_at"),
    [
        (None, None, 10, 8),  # a fixed warm-up of ten ticks
        (None, None, 0, None),  # none
        (4, 5, 100, 4),  # until steady
        (None, 10, 10, 8),  # at its limit
    ],
)
def test_the_counter_is_read_before_the_window_and_never_in_it(
    warm_at: int | None, begins_at: int | None, latest: int, read_at: int | None
) -> None:
    tick_ns = 100_000_000
    read_ns: list[int] = []
    counting: Any = SimpleNamespace(window_begins=read_ns.append)
    for tick in range(1, 20):
        warming: Any = None
        if begins_at is not None:
            start_ns = begins_at * tick_ns if tick >= begins_at else None
            warm = warm_at is not None and tick >= warm_at
            warming = SimpleNamespace(tick=lambda *_: True, warm=warm, start_ns=start_ns)
        _before_the_window(warming, counting, latest * tick_ns, tick * tick_ns)
    assert next((ns // tick_ns for ns in read_ns), None) == read_at
    begun = latest if begins_at is None else begins_at
    assert all(ns < begun * tick_ns for ns in read_ns)


@pytest.mark.parametrize(("distinct", "cached"), [(50, True), (3 * ENTRIES, False)])
def test_answers_from_a_cache_that_nobody_asked_for_are_counted_and_remarked(
    groonga: Deployment, tmp_path: Path, distinct: int, cached: bool
) -> None:
    """Fewer requests than the cache holds, and more: in their order these never hit."""
    endpoint = emptied(groonga)
    paths = (f"/d/select?table=Stores&filter=n%3C{n}&limit=1" for n in range(distinct))
    (tmp_path / "paths.txt").write_text("\n".join(paths))
    place, url = tmp_path / "record", f"http://127.0.0.1:{endpoint.target[1]}"
    how = {"clients": 1, "seconds": 0.5, "warmup": 0.5, "captures": 0}
    words = [word for name, value in how.items() for word in (f"--{name}", str(value))]
    asked = ["load", url, "--requests", str(tmp_path / "paths.txt"), "--record", str(place)]
    assert app([*asked, *words, "--no-report"], result_action="return_value") == 0
    record = open_record(place)
    (trial,) = record.trials
    assert trial.window is not None
    assert trial.cache is not None
    count = trial.cache.counted
    assert count is not None
    assert 0 < count.since < trial.window.start, "the warm-up is left out"
    done = record.samples(trial.trial, ["done"]).column(0).to_numpy()
    since = int(np.count_nonzero(done >= count.since))
    assert since - 500 < count.lookups <= since, "and nothing else"
    assert count.hits == (count.lookups if cached else 0)
    # Of a busy machine's trial too, which is invalid and in no verdict.
    kinds = {f.kind: f for f in judge_record(record).findings}
    assert ("answers from a cache" in kinds) is cached
    if cached:
        assert "by Groonga's status" in kinds["answers from a cache"].number
        assert "`cache_limit` 0" in kinds["answers from a cache"].remedy
        assert "distinct requests than it holds (100)" in kinds["answers from a cache"].remedy


@pytest.mark.parametrize("law", ["zipf:steep", "normal"])
def test_a_law_that_is_none_is_refused_with_those_there_are(law: str) -> None:
    with pytest.raises(QueryError, match=r"zipf:0\.8 with an exponent"):
        law_of(law)
    assert law_of("zipf:0.5") == ("zipf", 0.5)


def test_a_count_of_an_old_record_is_judged_anew() -> None:
    count = {"hits": 60, "lookups": 1000, "source": "the request cache"}
    cache = {**plan(ENTRIES, 0.5).as_json(), "counted": count}
    notes = [{"kind": "cache hits", "meaning": "what was said then"}, {"kind": "steal"}]
    told = old.trial({"trial": "a", "treatment": "b", "label": "", "cache": cache, "notes": notes})
    assert [note["kind"] for note in told["notes"]] == ["steal"]
    cached = msgspec.convert(told["cache"], Cache)
    assert cached.counted is not None
    assert not cached.counted.single
    (row,) = judged(cached, 1, 200)
    assert row[NUMBER].startswith("6.0% of 1,000 lookups, by the request cache; 50.0% were wanted")
    without = old.trial({"cache": {**cache, "counted": {}}})["cache"]
    (row,) = judged(msgspec.convert(without, Cache), 1, 200)
    assert row[0] == "cache hits not verified"
