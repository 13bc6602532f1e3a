"""HTTP as bytes: what is asked is escaped, what comes is taken apart exactly or refused."""

from __future__ import annotations

import pytest

from searchbench.engines.http_form import get, post, split

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"
CHUNKED = (
    b"HTTP/1.1 400 Bad Request\r\ntransfer-encoding: chunked\r\n\r\n"
    b"2;x=y\r\nab\r\n1\r\nc\r\n0\r\nTrailer: t\r\n\r\n"
)
CLOSED = b"HTTP/1.0 200 OK\r\nServer: Groonga/13.0.0\r\n\r\nto the end\r\n"


def test_nothing_in_a_parameter_is_syntax() -> None:
    asked = get("/d/select", [("filter", 'a b&c=d#e\r\n"ü'), ("limit", 10)])
    assert asked.splitlines()[0] == (
        b"GET /d/select?filter=a%20b%26c%3Dd%23e%0D%0A%22%C3%BC&limit=10 HTTP/1.1"
    )


def test_a_body_has_its_length_in_bytes() -> None:
    assert post("/d/load", [], "ü".encode()).endswith(b"Content-Length: 2\r\n\r\n\xc3\xbc")


def test_replies_that_follow_each_other_are_told_apart() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    found = split(PLAIN + interim + CHUNKED + CLOSED)
    assert [(r.status, r.body) for r in found] == [
        (200, b"abc"),
        (400, b"abc"),
        (200, b"to the end\r\n"),
    ]
    assert found[2].headers["server"] == "Groonga/13.0.0"


@pytest.mark.parametrize("whole", [PLAIN, CHUNKED])
def test_half_a_reply_is_an_error_wherever_it_is_cut(whole: bytes) -> None:
    for cut in range(len(whole)):
        with pytest.raises(ValueError, match=r"reply|chunk"):
            split(whole[:cut])
    with pytest.raises(ValueError, match="no HTTP reply"):
        split(b"SSH-2.0-OpenSSH\r\n\r\n")
