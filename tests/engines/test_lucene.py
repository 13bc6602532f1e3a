"""The Lucene host under every lever, and what can be done wrong to it.

What all engines must do is in test_conformance.py; this is what Lucene's host has of its own, as
the tests in rust/hosts are for the others. Longer than most files, because starting the host under
a lever, and talking to it in broken frames, are shared by all of it.
"""

from __future__ import annotations

import json
import signal
import socket
import string
import struct
import subprocess
import time
import unicodedata
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest

from engines.reference import Reference
from engines.test_conformance import SCHEMA, Shelf, ask
from searchbench.engines import ENGINES, defaults
from searchbench.engines.frames import (
    ANALYSE,
    BATCH,
    COMMIT,
    CREATE,
    FACTS,
    QUERY,
    SETTLE,
    frame,
    unframe,
)
from searchbench.errors import LabError
from searchbench.lab.conduct.ingest import ingest, spool
from searchbench.lab.get.install import missing, presence
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.system.names import jvm_hosts
from searchbench.workload.queries.algebra import Facet, Mode, Query, Range, Sort, Terms
from searchbench.workload.queries.analysis import lower, terms

LUCENE = ENGINES["lucene"]
SMALL = {"fields": [{"name": "body", "type": "text"}, {"name": "year", "type": "integer"}]}
LEVERS: tuple[dict[str, str | int], ...] = (
    {"parts": 7, "searcher": "per-thread", "segments": "as-is"},
    {"directory": "nio", "searcher": "per-thread"},
    {"parts": 2, "directory": "ram", "heap_mb": 128, "gc": "g1"},
    {"parts": 2, "refresh_ms": 20, "gc": "parallel"},
    {"directory": "ram", "refresh_ms": 20, "segments": "as-is"},
)


@pytest.fixture(scope="module", autouse=True)
def _here() -> None:
    if lacking := missing(LUCENE):
        pytest.skip(f"no Lucene here: {lacking}")


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference(SCHEMA, list(Shelf().documents()))


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Deployment]:
    """Lucene with some levers, always on the same data."""

    def make(**levers: str | int) -> Deployment:
        return Deployment(LUCENE, {**defaults(LUCENE), **levers}, tmp_path / "data", tmp_path / "r")

    return make


def tell(host: Deployment, verb: int, payload: Any = None) -> tuple[int, Any]:
    """Status and answer; the payload as JSON unless it is bytes."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    status, answer = unframe(host.ask(frame(verb, raw)))
    return status, json.loads(answer)


def total(host: Deployment, term: str) -> int:
    match = {"mode": "any", "terms": [term], "fields": ["body"]}
    status, answer = tell(host, QUERY, {"match": match})
    assert status == 0, answer
    return int(answer["total"])


@pytest.mark.parametrize("levers", LEVERS, ids=str)
def test_every_lever_takes_and_answers_stay_the_same_to_the_last_tie(
    start: Callable[..., Deployment],
    reference: Reference,
    tmp_path: Path,
    levers: dict[str, str | int],
) -> None:
    sorted_ = Query(
        Terms(Mode.ANY, ("search", "fox")),
        sort=(Sort("section"), Sort("size", True)),
        limit=400,
    )
    counted = Query(None, facets=(Facet("tags", 10),), group_by="size", limit=100)
    with start(**levers) as host:
        ingest(host, Shelf(), spool(LUCENE, Shelf(), tmp_path / "batches"))
        for _ in range(2):
            assert [h.id for h in ask(host, sorted_).hits] == reference.sorted_ids(sorted_)
            hits = ask(host, counted)
            assert list(hits.facets["tags"]) == reference.counts(counted, "tags")
            assert list(hits.groups) == reference.counts(counted, "size")
            # All scores are equal here, so the order is that of ingest, over all parts.
            assert [h.id for h in hits.hits] == reference.ids(counted)[:100]
    with start(**levers) as again:
        facts = again.facts
        assert {**facts.parameters, "jdk": "newest"} == {**defaults(LUCENE), **levers}
        assert facts.documents == 300
        assert len(facts.extra["segments_by_part"]) == levers.get("parts", 1)
        if "segments" not in levers:
            assert set(facts.extra["segments_by_part"]) == {1}
        assert [h.id for h in ask(again, sorted_).hits] == reference.sorted_ids(sorted_)


def test_scores_do_not_depend_on_parts(tmp_path: Path) -> None:
    query = Query(Terms(Mode.ANY, ("fox", "über")), limit=60)
    found = []
    for parts in (1, 4):
        place = tmp_path / str(parts)
        params = {**defaults(LUCENE), "parts": parts}
        with Deployment(LUCENE, params, place / "data", place / "run") as host:
            ingest(host, Shelf(), spool(LUCENE, Shelf(), place / "batches"))
            found.append([(h.id, h.score) for h in ask(host, query).hits])
    assert found[0] == found[1]
    assert len({score for _, score in found[0]}) > 10


def test_tied_documents_come_in_the_order_of_ingest_whatever_was_merged(
    start: Callable[..., Deployment],
) -> None:
    match = {"mode": "any", "terms": ["one"], "fields": ["body"]}
    with start(segments="as-is") as host:
        assert tell(host, CREATE, SMALL) == (0, {})
        number = 0
        for size in (1, 30, 2, 500, 3, 1, 1, 900, 40, 7, 1, 1, 1, 60, 1):
            lines = [json.dumps({"id": str(number + n), "v": {"body": "one"}}) for n in range(size)]
            number += size
            assert tell(host, BATCH, "\n".join(lines).encode())[1]["accepted"] == size
            tell(host, COMMIT, {})
        tell(host, SETTLE, {})
        _, answer = tell(host, QUERY, {"match": match, "limit": number})
        assert [hit[0] for hit in answer["hits"]] == [str(n) for n in range(number)]


def test_fuzzy_finds_every_near_word_and_not_only_the_nearest(
    start: Callable[..., Deployment],
) -> None:
    words = [f"word{a}{b}" for a in string.ascii_lowercase for b in string.ascii_lowercase]
    match = {"mode": "fuzzy", "terms": ["wordaa"], "fields": ["body"], "distance": 2}
    with start() as host:
        tell(host, CREATE, SMALL)
        lines = [json.dumps({"id": w, "v": {"body": w}}) for w in words]
        tell(host, BATCH, "\n".join(lines).encode())
        tell(host, SETTLE, {})
        assert tell(host, QUERY, {"match": match})[1]["total"] == len(words)
        match["distance"] = 1
        assert tell(host, QUERY, {"match": match})[1]["total"] == 51


def test_new_documents_are_seen_after_commit_or_by_themselves_with_refresh(
    start: Callable[..., Deployment],
) -> None:
    with start() as host:
        tell(host, CREATE, SMALL)
        tell(host, BATCH, b'{"id": "1", "v": {"body": "one"}}')
        assert total(host, "one") == 0
        tell(host, COMMIT, {})
        assert total(host, "one") == 1
        tell(host, SETTLE, {})
    with start(refresh_ms=10) as host:
        tell(host, BATCH, b'{"id": "2", "v": {"body": "one"}}')
        give_up = time.monotonic() + 20
        while total(host, "one") < 2:
            assert time.monotonic() < give_up, "never seen"
            time.sleep(0.01)


def test_after_a_restart_ids_are_still_taken_and_the_order_goes_on(
    start: Callable[..., Deployment],
) -> None:
    with start(parts=3) as host:
        tell(host, CREATE, SMALL)
        lines = [json.dumps({"id": str(n), "v": {"body": "one"}}) for n in range(10)]
        tell(host, BATCH, "\n".join(lines).encode())
        tell(host, SETTLE, {})
    with start(parts=3) as host:
        lines = [json.dumps({"id": i, "v": {"body": "one"}}) for i in ("3", "10")]
        _, answer = tell(host, BATCH, "\n".join(lines).encode())
        assert (answer["accepted"], answer["refused"][0]["id"]) == (1, "3")
        tell(host, SETTLE, {})
        _, answer = tell(host, QUERY, {"limit": 20})
        assert [hit[0] for hit in answer["hits"]] == [str(n) for n in range(11)]
    with pytest.raises(LabError, match="has parts 3, not 4"), start(parts=4):
        pass


def test_a_bad_document_is_refused_with_its_reason_and_the_others_are_kept(
    start: Callable[..., Deployment],
) -> None:
    long = "x" * 40_000
    lines = (
        ('{"id": "a", "v": {"body": "one", "year": 1}}', None),
        ('{"id": "b", "v": {"year": "MMXX", "body": "one"}}', ("b", 'cannot hold "MMXX"')),
        ('{"id": "a", "v": {"body": "one"}}', ("a", "in the index already")),
        ('{"v": {"body": "one"}}', ("", "has no id")),
        ('{"id": "c", "v": {"boddy": ["one"]}}', ("c", 'did you mean "body"?')),
        ('{"id": "d", "v": {"body": null}}', ("d", "is null")),
        ('{"id": "e", "v": {"year": 1.5}}', ("e", "cannot hold 1.5")),
        ('{"id": "f", "v": {"year": 99999999999999999999}}', ("f", "cannot hold")),
        ('{"id": "g", "v": {"body": "one", "body": "two"}}', ("g", "given twice")),
        ("not json", ("", "not a document in JSON")),
        (f'{{"id": "{long}", "v": {{}}}}', (long, "longer than Lucene's")),
        ('{"id": "h", "v": {}}', None),
        (f'{{"id": "i", "v": {{"body": "\\u006fne {long} \\ud83d\\ude00 end"}}}}', None),
    )
    with start() as host:
        tell(host, CREATE, SMALL)
        _, answer = tell(host, BATCH, "\n".join(line for line, _ in lines).encode())
        expected = [refused for _, refused in lines if refused]
        assert answer["accepted"] == len(lines) - len(expected)
        assert [r["id"] for r in answer["refused"]] == [i for i, _ in expected]
        for got, (_, reason) in zip(answer["refused"], expected, strict=True):
            assert reason in got["reason"], got
        tell(host, SETTLE, {})
        assert (total(host, "one"), total(host, "end"), total(host, long)) == (2, 1, 0)
        # The word that is too long keeps its place: no phrase jumps over it.
        match = {"mode": "phrase", "terms": ["one", "end"], "fields": ["body"]}
        assert tell(host, QUERY, {"match": match})[1]["total"] == 0


def test_bad_queries_get_one_sentence_and_the_connection_goes_on(
    start: Callable[..., Deployment],
) -> None:
    mistakes = (
        (b"{", "not as FORMATS.md says"),
        (b"", "not as FORMATS.md says"),
        (b"null", "null"),
        (b'{"limits": 1}', "limits"),
        (b'{"limit": -1}', "negative"),
        (b'{"match": {"terms": ["a"], "fields": ["body"]}}', "mode"),
        (b'{"match": {"mode": "any", "terms": [1], "fields": ["body"]}}', "not as FORMATS.md"),
        (b'{"match": {"mode": "any", "terms": ["a"], "fields": ["bodi"]}}', 'mean "body"?'),
        (b'{"match": {"mode": "any", "terms": ["a"], "fields": ["year"]}}', "use a filter"),
        (b'{"filters": [{"in": {"field": "year", "values": ["x"]}}]}', "cannot be compared"),
        (b'{"filters": [{"range": {"field": "year", "low": 1e999}}]}', "cannot be compared"),
        (b'{"fields": ["nothing"]}', "no field"),
        (b'{"match":{"must":[' * 10_000 + b"]}}" * 10_000, "nesting"),
    )
    with start() as host:
        status, answer = tell(host, QUERY, {})
        assert (status, answer["error"]) == (1, "there is no index yet: create comes first")
        tell(host, CREATE, SMALL)
        requests = [frame(QUERY, text) for text, _ in mistakes]
        requests.append(frame(QUERY, b'{"sort": [{"field": "body"}]}'))
        requests.append(frame(QUERY, b"{}"))
        replies = list(converse(host, b"".join(r.exchanges[0] for r in requests), len(requests)))
        for (text, part), (status, answer) in zip(mistakes, replies, strict=False):
            assert status == 1, text
            assert part in answer["error"], (text, answer)
            assert "\n" not in answer["error"]
        assert replies[-2][0] == 2
        assert (replies[-1][0], replies[-1][1]["total"]) == (0, 0)


def converse(host: Deployment, sent: bytes, count: int) -> Iterator[tuple[int, Any]]:
    """Requests sent ahead on one connection; their replies, in order."""
    with socket.create_connection(host.target, timeout=30) as wire:
        wire.sendall(sent)
        stream = wire.makefile("rb")
        for _ in range(count):
            length, status, host_ns = struct.unpack("<IB3xQ", stream.read(16))
            assert host_ns < 5_000_000_000
            yield status, json.loads(stream.read(length))


def test_requests_sent_ahead_in_small_pieces_are_answered_in_order(
    start: Callable[..., Deployment],
) -> None:
    with start() as host:
        texts = [f"Nr-{n} {'ü' * (n * 37 % 5000)}" for n in range(300)]
        asked = [frame(ANALYSE, json.dumps({"text": t}).encode()).exchanges[0] for t in texts]
        replies = list(converse(host, b"".join(asked), len(asked)))
        assert [tuple(answer["terms"]) for _, answer in replies] == [terms(t) for t in texts]


def test_garbage_is_answered_with_an_error_and_the_connection_is_closed(
    start: Callable[..., Deployment],
) -> None:
    with start() as host:
        for sent, part in (
            (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "zero"),
            (struct.pack("<IB3x", 0, 99), "no verb 99"),
            (struct.pack("<IB3x", 2**32 - 1, QUERY), "above 1 GiB"),
            (struct.pack("<IB3x", 2**29, QUERY), "quarter of the heap"),
        ):
            with socket.create_connection(host.target, timeout=30) as wire:
                wire.sendall(sent)
                stream = wire.makefile("rb")
                length, status, _ = struct.unpack("<IB3xQ", stream.read(16))
                assert status == 1
                assert part in json.loads(stream.read(length))["error"]
                assert stream.read(1) == b"", "closed"
        assert tell(host, FACTS, b"")[0] == 0


def test_all_of_unicode_is_split_and_lowered_as_declared(start: Callable[..., Deployment]) -> None:
    # What Java 17 does not know yet (Unicode 14 and later) is the declared deviation.
    old = unicodedata.ucd_3_2_0
    known = [chr(c) for c in range(0x110000) if old.category(chr(c)) not in ("Cn", "Cs")]
    assert len(known) > 200_000
    with start() as host:
        for at in range(0, len(known), 5000):
            text = "a".join(known[at : at + 5000])
            _, answer = tell(host, ANALYSE, {"text": text})
            assert tuple(answer["terms"]) == terms(text), hex(ord(known[at]))
        assert lower("ΣΙ") == "".join(tell(host, ANALYSE, {"text": "ΣΙ"})[1]["terms"])


def test_ranges_at_the_edges_of_64_bits_and_with_fractions(
    start: Callable[..., Deployment],
) -> None:
    years = {"least": -(2**63), "minus": -1, "nil": 0, "two": 2, "most": 2**63 - 1}
    cases = (
        (Range("year", 2**63 - 1, None, include_low=False), set()),
        (Range("year", None, -(2**63), include_high=False), set()),
        (Range("year", -(2**63), 2**63 - 1), set(years)),
        (Range("year", -0.5, 1.5), {"nil"}),
        (Range("year", 0, 2, include_low=False, include_high=False), set()),
        (Range("year", 0.0, 2.0, include_high=False), {"nil"}),
        (Range("year", -1e300, 1e300), set(years)),
        (Range("year", 1e300, None), set()),
        (Range("year", 3, 1), set()),
        (Range("year"), set(years)),
    )
    with start() as host:
        tell(host, CREATE, SMALL)
        lines = [json.dumps({"id": i, "v": {"year": y}}) for i, y in years.items()]
        tell(host, BATCH, "\n".join([*lines, '{"id": "none", "v": {}}']).encode())
        tell(host, SETTLE, {})
        for condition, expected in cases:
            request = LUCENE.compile(Query(None, (condition,)), SCHEMA, defaults(LUCENE))
            assert {h.id for h in LUCENE.decode(host.ask(request)).hits} == expected, condition


def test_sorting_by_relevance_among_other_keys_keeps_scores(
    start: Callable[..., Deployment], tmp_path: Path
) -> None:
    match = Terms(Mode.ANY, ("fox", "net"))
    with start(parts=2) as host:
        ingest(host, Shelf(), spool(LUCENE, Shelf(), tmp_path / "batches"))
        plain = ask(host, Query(match, limit=300)).hits
        first = ask(host, Query(match, sort=(Sort("_score", True),), limit=300)).hits
        assert first == plain
        rising = ask(host, Query(match, sort=(Sort("_score"), Sort("size")), limit=300)).hits
        scores = [h.score or 0.0 for h in rising]
        assert all(a <= b for a, b in pairwise(scores))
        assert sorted(scores) == sorted(h.score or 0.0 for h in plain)
        nothing = ask(host, Query(match, limit=0))
        assert (nothing.total, nothing.hits) == (len(plain), ())


def test_sigterm_ends_it_with_code_0_even_while_it_works(start: Callable[..., Deployment]) -> None:
    with start() as host:
        tell(host, CREATE, SMALL)
        lines = [json.dumps({"id": str(n), "v": {"body": "one two"}}) for n in range(50_000)]
        with socket.create_connection(host.target) as wire:
            wire.sendall(frame(BATCH, "\n".join(lines).encode()).exchanges[0])
            child = host._children.get("")
            assert child is not None
            child.send_signal(signal.SIGTERM)
            assert child.wait(60) == 0
    with start() as host:
        assert host.facts.documents == 0, "what was not committed is not there"


def test_out_of_heap_it_ends_and_says_so(start: Callable[..., Deployment]) -> None:
    with start(heap_mb=32, indexing_memory_mb=16) as host:
        tell(host, CREATE, SMALL)
        child = host._children.get("")
        assert child is not None
        with pytest.raises((LabError, OSError)):
            fill_with_ids(host, 5_000_000)
        assert child.wait(30) == 3
        assert "OutOfMemoryError" in host.log_tail()


def fill_with_ids(host: Deployment, most: int) -> None:
    """Documents whose ids alone take 200 bytes of heap each."""
    for at in range(0, most, 5000):
        lines = [json.dumps({"id": f"{n:0200}", "v": {}}) for n in range(at, at + 5000)]
        tell(host, BATCH, "\n".join(lines).encode())


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--prts", "2"], "did you mean --parts?"),
        (["--directory", "mmapp"], "did you mean mmap?"),
        (["--parts", "65"], "--parts is 1 to 64, not 65"),
        (["--parts"], "--parts needs a value"),
        (["--parts", "two"], "whole number"),
        (["parts"], "options begin with --"),
        ([], "--data DIR is missing"),
        (["--data", "/proc/no", "--indexing_memory_mb", "60000"], "does not fit into a heap"),
        (["--data", "/proc/no"], "cannot make the directory"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_code_2(words: list[str], part: str) -> None:
    place = jvm_hosts() / "lucene/target"
    classes = f"{place}/lucene-host.jar:{place}/lib/*"
    done = subprocess.run(
        ["java", "-Xmx256m", "-cp", classes, "searchbench.lucene.Host", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert part in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_host_that_was_not_built_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SEARCHBENCH_JAVA_HOSTS", str(tmp_path))
    found = presence(LUCENE)
    assert not found.present
    assert "lucene-host.jar; `make java` builds it" in found.how_to_get


def test_a_machine_without_java_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = presence(LUCENE)
    assert not found.present
    assert "install Java 17" in found.how_to_get


def test_arguments_from_the_environment_do_not_reach_the_jvm(
    start: Callable[..., Deployment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xint")
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Xint")
    with start() as host:
        arguments = host.facts.extra["jvm_arguments"]
        assert "-Xint" not in arguments
        assert "-Xmx512m" in arguments
        listening = [c.laddr for c in psutil.Process(host.process.pid).net_connections("tcp")]
        assert {address.ip for address in listening} <= {"127.0.0.1"}
        assert not list(host.run.glob("hs_err*"))
