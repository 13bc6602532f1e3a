"""PostgreSQL's messages: what is sent is escaped, what comes is taken apart exactly or refused."""

from __future__ import annotations

import pytest

from searchbench.engines.postgres_form import (
    Trouble,
    array,
    copy,
    literal,
    name,
    query,
    rows_of,
    split,
)  # fmt: skip


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def described(*columns: tuple[bytes, int]) -> bytes:
    rows = b"".join(
        c + b"\0" + bytes(6) + kind.to_bytes(4, "big") + bytes(8) for c, kind in columns
    )
    return message(b"T", len(columns).to_bytes(2, "big") + rows)


def row(*values: bytes | None) -> bytes:
    cells = (b"\xff\xff\xff\xff" if v is None else len(v).to_bytes(4, "big") + v for v in values)
    return message(b"D", len(values).to_bytes(2, "big") + b"".join(cells))


READY = message(b"Z", b"I")
ERROR = b"SERROR\0VERROR\0C42P01\0Mno such\nthing\0Wline 1\0\0"
WHOLE = (
    described((b"n", 20), (b"x", 701), (b"b", 16), (b"j", 114), (b"t", 25))
    + row(b"-3", b"1.5e-07", b"t", b'["a",null]', "é".encode())
    + row(None, None, b"f", None, b"")
    + message(b"C", b"SELECT 2\0")
    + message(b"N", b"SNOTICE\0C00000\0Mhear\0\0")
    + message(b"C", b"COPY 1\0")
    + READY
)


def taken(pieces: list[bytes]) -> list[object]:
    found: list[object] = []
    for error in rows_of(pieces, found.append):
        found.append(error)  # noqa: PERF402 -- behind the rows that were taken before it
    return found


def test_rows_of_a_reply_are_those_of_its_results_wherever_it_is_cut() -> None:
    reply = WHOLE + described((b"n", 20)) + row(b"7") + message(b"E", ERROR) + READY
    (first,), rest = split(WHOLE)[0].results[:1], split(WHOLE)[0].results[1:]
    expected = [*first.rows, None, *(None for _ in rest), (7,)]
    for length in (1, 3, 7, 64, len(reply)):
        *rows, trouble = taken([reply[at : at + length] for at in range(0, len(reply), length)])
        assert rows == expected
        assert isinstance(trouble, Trouble)
        assert "no such" in str(trouble)


@pytest.mark.parametrize(
    ("reply", "why"),
    [(WHOLE[:-6], "was not ready"), (WHOLE[:-1], "is not a message"), (b"D\0\0\0\3", "is not a")],
)
def test_rows_of_a_reply_that_breaks_off_are_no_answer(reply: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        taken([reply])


def test_statements_become_one_message() -> None:
    assert query("SELECT 'ü'", "SELECT 2") == message(b"Q", "SELECT 'ü';\nSELECT 2\0".encode())


def test_a_copy_escapes_what_would_be_its_syntax_and_ends() -> None:
    sent = copy("COPY t FROM STDIN", [["a\tb\nc\rd\\", None], ["\\N", ""]])
    assert sent == (
        query("COPY t FROM STDIN")
        + message(b"d", b"a\\tb\\nc\\rd\\\\\t\\N\n\\\\N\t\n")
        + message(b"c")
    )


def test_a_large_copy_goes_in_pieces_that_join_to_the_whole() -> None:
    sent = copy("C", [["x" * 100_000], ["é" * 100_000]])
    data, at = b"", len(query("C"))
    kinds = []
    while at < len(sent):
        length = int.from_bytes(sent[at + 1 : at + 5], "big")
        kinds.append(sent[at : at + 1])
        data += sent[at + 5 : at + 1 + length]
        at += 1 + length
    assert kinds == [b"d"] * 5 + [b"c"]
    assert data.decode() == "x" * 100_000 + "\n" + "é" * 100_000 + "\n"


def test_nothing_in_a_constant_a_name_or_an_array_is_syntax() -> None:
    assert literal("it's \\ \"") == "'it''s \\ \"'"
    assert name('a"b') == '"a""b"'
    assert array(["", "NULL", 'a"b', "c\\", "{,}"]) == r'{"","NULL","a\"b","c\\","{,}"}'


def test_values_have_the_types_of_their_columns() -> None:
    (reply,) = split(WHOLE)
    first, copied = reply.results
    assert first.columns == ("n", "x", "b", "j", "t")
    assert first.rows == ((-3, 1.5e-07, True, ["a", None], "é"), (None, None, False, None, ""))
    assert (copied.columns, copied.rows) == ((), ())
    assert [str(n) for n in reply.notices] == ["hear (00000)"]


def test_replies_are_told_apart_and_errors_say_what_and_where() -> None:
    refused = message(b"E", ERROR) + READY
    good, bad = split(WHOLE + refused)
    assert not good.errors
    assert [str(e) for e in bad.errors] == ["no such thing (42P01); line 1"]


def test_a_server_that_goes_down_has_said_so() -> None:
    (reply,) = split(message(b"E", b"SFATAL\0VFATAL\0C57P01\0Mgoing\0\0"))
    assert str(reply.errors[0]) == "going (57P01)"


def test_half_a_reply_is_an_error_wherever_it_is_cut() -> None:
    for cut in range(len(WHOLE)):
        with pytest.raises(ValueError, match=r"ready again|is not a message"):
            split(WHOLE[:cut])
    with pytest.raises(ValueError, match="no reply of PostgreSQL"):
        split(b"HTTP/1.1 400 Bad Request\r\n")
