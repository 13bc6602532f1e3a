"""The text of a method: statements, marks, placeholders; and what is sent for a draw of rows."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Iterable

import numpy as np
import pytest

from searchbench.engines import mysql_prepared
from searchbench.engines.dialects import DIALECTS, Encoder, dialect_of
from searchbench.errors import QueryError, Unsupported
from searchbench.lab.drive.operations import Digest
from searchbench.workload.operations.draw import rows_of
from searchbench.workload.operations.model import Answer, Operation, Sent, fixed, sent_for
from searchbench.workload.operations.text import BadText, check_names, read_method

FIVE = Operation("fetch", ("id", "name"), (([3, 1, 5, 2, 4], ["c", "a", "e", "b'", None]),))


def sent(text: str, wire: str = "mysql", operation: Operation = FIVE) -> list[str]:
    """The statements that a method sends for the first draw, with their values behind them."""
    dialect = dialect_of(wire)  # type: ignore[arg-type]
    found = sent_for(read_method(text), operation, 0, {"storage": "innodb"}, dialect.literal,
                     dialect.marker)  # fmt: skip
    return [s.text + (f" <- {list(s.values)}" if s.prepared else "") for s in found]


def test_what_is_repeated_stands_once_for_each_row() -> None:
    assert sent('SELECT * FROM d WHERE id IN ([each ", ": {id}])') == [
        "SELECT * FROM d WHERE id IN (3, 1, 5, 2, 4)"
    ]
    assert sent('SELECT [each " OR ": (id = {id} AND name = {name})]')[0].endswith(
        "(id = 2 AND name = 'b\\'') OR (id = 4 AND name = NULL)"
    )
    assert sent('SELECT [each " OR ": name = {name}]', "postgres")[0].count("'b'''") == 1
    # Other braces and brackets are left alone, and a percent sign is no placeholder.
    assert sent("SELECT ARRAY[1,2], '{}', '%s' [each \"%\": {id}%d]")[0] == (
        "SELECT ARRAY[1,2], '{}', '%s' 3%d%1%d%5%d%2%d%4%d"
    )


def test_a_statement_is_sent_for_every_row_or_for_blocks_of_rows() -> None:
    assert len(sent("-- @each\nSELECT {id}")) == 5
    assert sent('-- @each 2\nSELECT [each ",": {id}]') == ["SELECT 3,1", "SELECT 5,2", "SELECT 4"]
    assert sent("SELECT {rows} FROM {system.storage}") == ["SELECT 5 FROM innodb"]


def test_values_of_a_prepared_statement_stand_beside_it() -> None:
    text = '-- @each 2 @prepared\nSELECT [each ",": {id}]'
    assert sent(text) == ["SELECT ?,? <- [3, 1]", "SELECT ?,? <- [5, 2]", "SELECT ? <- [4]"]
    assert sent(text, "postgres")[0] == "SELECT $1,$2 <- [3, 1]"


def test_an_operation_is_one_request_with_set_up_and_clean_up() -> None:
    text = """
    -- for people
    -- @connection
    SET a = 1;
    -- @before
    CREATE TABLE t (c TEXT DEFAULT ';'); -- not a mark: @each
    -- @each @prepared @pipelined 2
    INSERT INTO t VALUES ({id});
    SELECT * FROM t /* ; */;
    -- @after
    DROP TABLE t
    """
    statements = read_method(text)
    for wire, dialect in DIALECTS.items():
        encoder = Encoder(dialect)
        few = sent_for(statements, FIVE, 0, {}, dialect.literal, dialect.marker)
        request = encoder.request(few)
        assert (request.before, request.after, len(request.exchanges)) == (1, 1, 6), wire
        prelude = encoder.prelude(fixed(statements, "connection", {}))
        assert len(prelude) == 2
        assert b"SET a = 1" in prelude[0]
        assert b"INSERT INTO t" in prelude[1]
        # Two rows at once, and no text of the statement is sent again.
        assert b"INSERT" not in b"".join(request.exchanges)
        sizes = [len(e) for e in request.exchanges[1:4]]
        assert sizes[0] == sizes[1] > sizes[2]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("-- @foo\nSELECT 1", 1, "there is no mark @foo"),
        ("SELECT 'a", 1, "' is opened here and not closed"),
        ('SELECT 1;\nSELECT [each ",": {id}', 2, "[each is opened here"),
        ("-- @after\nDROP x;\nSELECT 1", 3, "in the order in which they are sent"),
        ("-- @before\nSELECT 1", 1, "no statement is timed"),
        ("SELECT 1;\n-- @each", 2, "no statement follows the mark @each"),
        ("-- @each 0\nSELECT 1", 1, "@each takes a number from 1 on, not '0'"),
        ("-- @before 2\nSELECT 1", 1, "@before takes nothing"),
        ("-- @before @after\nSELECT 1", 1, "may be @before or @after, not both"),
        ("-- @once @prepared\nSELECT 1;\nSELECT 2", 2, "cannot be @prepared"),
        ("-- @pipelined\nSELECT 1", 2, "it needs @each"),
    ],
)
def test_a_text_that_is_no_method_is_complained_of_with_its_line(
    text: str, line: int, said: str
) -> None:
    with pytest.raises(BadText) as found:
        read_method(text)
    assert found.value.line == line
    assert said in found.value.sentence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('SELECT [each ",": {idd}]', "{idd} is not a column of the key: `key` has id"),
        ("SELECT {id}", "is a value of one row, and the statement is for several"),
        (
            "-- @connection\nSET @a = {rows};\nSELECT 1",
            "{rows} is known only within an operation, and this is @connection",
        ),
        ("SELECT {system.x}", "this system has no such parameter; it has storage"),
    ],
)
def test_a_placeholder_that_names_nothing_is_complained_of(text: str, said: str) -> None:
    with pytest.raises(BadText, match="line ") as found:
        check_names(read_method(text), ["id"], ["storage"])
    assert said in found.value.sentence


def test_only_sql_is_spoken() -> None:
    with pytest.raises(Unsupported, match="statements of SQL, and http has none"):
        dialect_of("http")


def test_too_many_different_statements_are_not_prepared() -> None:
    values = Operation("f", ("id",), ((list(range(1500)),),))
    text = "-- @each @prepared\nSELECT {rows}"
    dialect = dialect_of("mysql")
    encoder = Encoder(dialect)
    encoder.request(sent_for(read_method(text), values, 0, {}, dialect.literal, dialect.marker))
    assert len(encoder.numbers) == 1
    other = [Sent(f"SELECT {n}", (), "timed", 7, prepared=True) for n in range(1500)]
    with pytest.raises(Unsupported, match="line 7: more than 1000 different"):
        encoder.request(other)


def test_draws_are_different_rows_in_their_order_and_the_same_for_the_same_seed() -> None:
    for order in ("ascending", "random", "clustered"):
        found = rows_of(1000, 50, 20, order, 7)
        again = rows_of(1000, 50, 20, order, 7)
        assert all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))
        assert all(len(set(draw.tolist())) == 50 for draw in found)
        assert len({tuple(draw.tolist()) for draw in found}) == 20
        rising = [bool(np.all(np.diff(draw) > 0)) for draw in found]
        assert all(rising) if order != "random" else not any(rising)
    clustered = rows_of(1000, 50, 20, "clustered", 7)
    assert all(np.all(np.diff(draw) == 1) for draw in clustered)
    same = rows_of(1000, 50, 1, "random", 7)[0], rows_of(1000, 50, 1, "ascending", 7)[0]
    assert np.array_equal(np.sort(same[0]), same[1])
    assert rows_of(5, 5, 1, "random", 1)[0].size == 5
    with pytest.raises(QueryError, match="asks for 6 different rows, and the corpus has 5"):
        rows_of(5, 6, 1, "random", 1)


def packet(number: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "little") + bytes((number & 0xFF,)) + body


def column(kind: int, flags: int = 0) -> bytes:
    words = b"".join(bytes((len(w),)) + w for w in (b"def", b"", b"", b"", b"c", b""))
    return words + struct.pack("<BHIBHBH", 12, 45, 255, kind, flags, 0, 0)


def result(columns: list[bytes], rows: list[bytes]) -> bytes:
    end = b"\xfe\0\0\x02\0"
    return b"".join(
        packet(n, body)
        for n, body in enumerate([bytes((len(columns),)), *columns, end, *rows, end])
    )


def test_rows_of_both_protocols_come_out_the_same() -> None:
    kinds = [column(3), column(3, 32), column(8), column(5), column(253), column(12), column(10),
             column(11), column(1)]  # fmt: skip
    text = ["-7", "4294967295", "9", "0.1", "a\tb\\", "2024-02-29 13:14:15.000007", "1999-12-31",
            "-26:03:04", None]  # fmt: skip
    as_text = b"".join(b"\xfb" if t is None else bytes((len(t),)) + t.encode() for t in text)
    moment = datetime.datetime(2024, 2, 29, 13, 14, 15, 7)
    binary = (
        b"\0"
        + (1 << 10).to_bytes(2, "little")
        + b"".join(
            [
                struct.pack("<iIqd", -7, 4294967295, 9, 0.1),
                b"\x04a\tb\\",
                b"\x0b" + struct.pack("<HBBBBBI", moment.year, 2, 29, 13, 14, 15, 7),
                b"\x04" + struct.pack("<HBB", 1999, 12, 31),
                b"\x08" + struct.pack("<BIBBB", 1, 1, 2, 3, 4),
            ]
        )
    )
    reply = result(kinds, [as_text]) + result(kinds, [binary])
    found: list[bytes] = []
    assert list(mysql_prepared.rows_of((reply,), [False, True], found.append)) == [None, None]
    assert found[0] == found[1]
    assert found[:1] == [
        b"-7\t4294967295\t9\t0.1\ta\\tb\\\\\t2024-02-29 13:14:15.000007\t1999-12-31\t-26:03:04\t\\N"
    ]


def cut(reply: bytes, length: int) -> list[bytes]:
    return [reply[at : at + length] for at in range(0, len(reply), length)]


def test_rows_of_a_reply_are_the_same_wherever_it_is_cut() -> None:
    long = [b"\x05%05d" % n for n in range(300)]
    longest = b"\xfd\x00\x00\x01" + b"x" * 65536
    reply = result([column(253)], long) + result([column(253)], [longest])
    whole: list[bytes] = []
    assert list(mysql_prepared.rows_of((reply,), [0, 0], whole.append)) == [None, None]
    assert len(whole) == 301
    for length in (1, 2, 3, 5, 1000, len(reply) - 1):
        found: list[bytes] = []
        pieces = cut(reply, length)
        assert list(mysql_prepared.rows_of(pieces, [0, 0], found.append)) == [None, None]
        assert found == whole, length
    # Of one that breaks off it is said where, counted from its beginning.
    for length in (7, 1000):
        with pytest.raises(ValueError, match=f"packet head, at byte {len(reply) - 9}$"):
            list(mysql_prepared.rows_of(cut(reply[:-6], length), [0, 0], bytes))


def test_the_digest_of_a_set_needs_no_order_and_counts_its_rows() -> None:
    def digest(rows: Iterable[bytes], answer: Answer = "set") -> tuple[str, list[bytes]]:
        found = Digest(answer)
        for row in rows:
            found.take(row)
        return found.digest(), found.first()

    rows = [b"%06d" % n for n in range(100_000)]
    whole = digest(rows)
    assert whole == digest(reversed(rows))
    assert whole[1] == rows[:10_000]
    assert digest(rows, "order")[0] != digest(reversed(rows), "order")[0]
    assert digest(reversed(rows), "order")[1] == rows[:-10_001:-1]
    for other in (rows[1:], [*rows, rows[0]], [*rows[:-1], b"x"]):
        assert digest(other)[0] != whole[0]
