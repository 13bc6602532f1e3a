"""MySQL's text protocol as bytes: queries, literals, replies of both styles, and half replies."""

from __future__ import annotations

import pytest

from searchbench.engines.mysql_form import Result, query, quoted, split


def packet(payload: bytes, number: int = 1) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


def string(text: bytes) -> bytes:
    return bytes([len(text)]) + text


def column(name: bytes) -> bytes:
    return packet(b"".join(map(string, (b"def", b"", b"", b"t", name, name))) + b"\x0c" + bytes(12))


OK = packet(b"\0\x03\0\x02\0\x01\0")
REFUSED = packet(b"\xff\x28\x04#42000no such index")
HEAD = packet(b"\x02") + column(b"id") + column("größe".encode())
ROWS = packet(string(b"a") + b"\xfb", 5) + packet(b"\xfc\x2c\x01" + b"x" * 300 + string(b""), 6)
OLD_EOF = packet(b"\xfe\x01\0\x02\0")
OLD = HEAD + OLD_EOF + ROWS + OLD_EOF
NEW = HEAD + ROWS + packet(b"\xfe\0\0\x02\0\x01\0")
EMPTY = HEAD + OLD_EOF + OLD_EOF
FOUND = Result(("id", "größe"), ((b"a", None), (b"x" * 300, b"")), warnings=1)


def test_a_query_is_a_packet_with_its_length_and_number() -> None:
    assert query("SELECT 'ü'") == b"\x0c\0\0\0\x03SELECT '\xc3\xbc'"


@pytest.mark.parametrize("over", [-2, -1, 0, 1])
def test_a_query_of_16_mib_takes_several_packets_and_its_end_is_told(over: int) -> None:
    sql = b"a" * (0xFFFFFF + over)
    made, payloads = query(sql), []
    while made:
        length = int.from_bytes(made[:3], "little")
        assert made[3] == len(payloads)
        payloads.append(made[4 : 4 + length])
        made = made[4 + length :]
    assert b"".join(payloads) == b"\x03" + sql
    assert len(payloads[-1]) < 0xFFFFFF
    assert all(len(p) == 0xFFFFFF for p in payloads[:-1])


def test_a_literal_holds_whatever_the_text_does() -> None:
    assert quoted('it\'s \\ \0\n\r\x1a "ü"') == "'it\\'s \\\\ \\0\\n\\r\\Z \"ü\"'"


def test_both_ends_of_rows_are_taken() -> None:
    assert split(OLD) == [FOUND]
    assert split(NEW) == [FOUND]
    assert split(EMPTY) == [Result(("id", "größe"), (), warnings=1)]
    assert FOUND.dicts()[0] == {"id": "a", "größe": None}


def test_results_that_follow_each_other_are_told_apart() -> None:
    found = split(OK + OLD + REFUSED + NEW)
    assert found[0] == Result(warnings=1)
    assert found[1] == found[3] == FOUND
    assert found[2].error == "no such index (error 1064)"
    assert found[0].error is None


def test_an_error_in_the_midst_of_rows_is_an_error() -> None:
    (found,) = split(HEAD + OLD_EOF + ROWS + REFUSED)
    assert found.error == "no such index (error 1064)"


def test_a_row_longer_than_a_packet_is_put_together() -> None:
    long = b"\xfe" + (0x1000000).to_bytes(8, "little") + b"y" * 0x1000000 + string(b"z")
    parts = packet(long[:0xFFFFFF], 3) + packet(long[0xFFFFFF:], 4)
    (found,) = split(HEAD + OLD_EOF + parts + OLD_EOF)
    assert found.rows == ((b"y" * 0x1000000, b"z"),)


@pytest.mark.parametrize(
    "whole", [OK, REFUSED, OLD, NEW, EMPTY], ids=["ok", "refused", "old", "new", "empty"]
)
def test_half_a_reply_is_an_error_wherever_it_is_cut(whole: bytes) -> None:
    for cut in range(len(whole)):
        with pytest.raises(ValueError, match=r"packet|length|string|row"):
            split(whole[:cut])


def test_what_is_no_reply_is_refused() -> None:
    for strange in (packet(b""), packet(b"\xfbfile"), packet(b"\xff\x01"), b"SSH-2.0-OpenSSH\r\n"):
        with pytest.raises(ValueError, match=r"packet|file"):
            split(strange)
