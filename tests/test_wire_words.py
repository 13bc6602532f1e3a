"""What a server says of a request that it refused, read out of its reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from searchbench.engines.engine import Wire
from searchbench.lab.wire.words import LONGEST, words_of


def http(body: Any, status: int = 400) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} Any\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def refused(words: bytes) -> bytes:
    packet = b"\xff\x28\x04#42000" + words
    return len(packet).to_bytes(3, "little") + b"\x01" + packet


ELASTIC = {
    "error": {
        "root_cause": [{"type": "parse_exception", "reason": "Cannot parse 'a AND'"}],
        "type": "search_phase_execution_exception",
        "reason": "all shards failed",
    },
    "status": 400,
}


@pytest.mark.parametrize(
    ("reply", "wire", "words"),
    [
        (http(ELASTIC), "http", "HTTP 400: Cannot parse 'a AND'"),
        (http([[-22, 1.5, 0.1, "[select] no\n table", [["grn", "c", 1]]]]), "http",
         "HTTP 400: [select] no table"),
        (http({"header": {"return_code": -22, "error": {"message": "no table"}}}), "http",
         "HTTP 400: no table"),
        (http({"error": True, "message": "slow down"}, 429), "http", "HTTP 429: slow down"),
        (http(b"<html><head><title>x</title></head><body><h1>Bad Gateway</h1></body>", 502),
         "http", "HTTP 502: Bad Gateway"),
        (http(b"", 503), "http", "HTTP 503"),
        (refused(b"no such index 'docs'"), "mysql", "no such index 'docs' (error 1064)"),
        (http({"hits": {"total": 3}}, 200), "http", ""),
        (b"\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00", "mysql", ""),
        (b"garbage", "http", ""),
        (b"garbage", "postgres", ""),
        (b"garbage", "frames", ""),
    ],
)  # fmt: skip
def test_the_sentence_is_found_where_servers_put_it(reply: bytes, wire: Wire, words: str) -> None:
    assert words_of(reply, wire) == words


def test_what_the_engine_reads_is_better_unless_it_is_the_status_alone() -> None:
    assert words_of(http(ELASTIC), "http", lambda _: "all\nshards") == "all shards"
    assert words_of(http(ELASTIC), "http", lambda _: "HTTP status 400").endswith("'a AND'")
    assert words_of(http(ELASTIC), "http", lambda r: str(r.index(b"nowhere"))).endswith("'a AND'")
    assert words_of(http({}, 200), "http", lambda _: None) == ""


def test_a_sentence_is_one_line_of_bounded_length() -> None:
    words = words_of(http({"error": "long " * 500}), "http")
    assert len(words) == LONGEST
    assert "..." in words
