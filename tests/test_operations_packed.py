"""What an operation of many statements sends: the same bytes, in one piece."""

from __future__ import annotations

import numpy as np
import pytest

from searchbench.engines.dialects import FEW, Encoder, dialect_of
from searchbench.engines.engine import Request
from searchbench.engines.packed import Packed
from searchbench.lab.wire.exchange import lay_out
from searchbench.workload.operations.model import Sent


def packed(pieces: list[bytes]) -> Packed:
    made = Packed()
    for each in pieces:
        made.append(each)
    return made


PIECES = [b"one", b"", b"three", b"\x00\xff"]


def test_what_is_packed_reads_as_a_tuple_does() -> None:
    made = packed(PIECES)
    assert list(made) == PIECES
    assert len(made) == 4
    assert [made[0], made[2], made[-1], made[-4]] == [b"one", b"three", b"\x00\xff", b"one"]
    assert made[1:3] == (b"", b"three")
    assert made[::-1] == tuple(reversed(PIECES))
    assert b"three" in made
    assert b"four" not in made
    for beyond in (4, -5):
        with pytest.raises(IndexError):
            made[beyond]
    assert not Packed()
    assert list(Packed()) == []


def test_what_is_packed_is_extended_by_more() -> None:
    made = packed(PIECES)
    made.extend(packed([b"five", b"six"]))
    made.extend(Packed())
    assert list(made) == [*PIECES, b"five", b"six"]
    assert made.ends.tolist() == [3, 3, 8, 10, 14, 17]


@pytest.mark.parametrize("others", [0, 1])
def test_packed_exchanges_are_laid_out_as_those_of_a_tuple(others: int) -> None:
    further = [Request((b"another", b"request"))] * others
    one, other = (lay_out([Request(of), *further]) for of in (packed(PIECES), tuple(PIECES)))
    assert bytes(one.arena) == bytes(other.arena)
    np.testing.assert_array_equal(one.exchange_ends, other.exchange_ends)
    np.testing.assert_array_equal(one.request_ends, other.request_ends)
    assert one.exchange_ends.dtype == other.exchange_ends.dtype
    assert {n: bytes(b) for n, b in one.blobs().items()} == {
        n: bytes(b) for n, b in other.blobs().items()
    }


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("count", [FEW - 1, FEW + 1])
def test_an_operation_sends_the_same_however_many_statements_it_has(
    count: int, prepared: bool
) -> None:
    """Set-up first and clean-up last, whatever their order in the text."""

    def statement(text: str, when: str, line: int, value: int | None = None) -> Sent:
        values = () if value is None else (value,)
        return Sent(text, values, when=when, line=line, prepared=prepared and value is not None)

    asked = "SELECT ?" if prepared else "SELECT 1"
    many = [statement(asked, "timed", 2, at) for at in range(count)]
    encoder = Encoder(dialect_of("mysql"))
    first, last = statement("DROP", "after", 1), statement("CREATE", "before", 3)
    request = encoder.request([first, *many, last])
    expected = [Encoder(dialect_of("mysql")).request([each]).exchanges[0] for each in many]
    assert (request.before, request.after) == (1, 1)
    assert isinstance(request.exchanges, Packed) == (count + 2 > FEW)
    assert list(request.exchanges)[1:-1] == expected
    text = dialect_of("mysql").text
    assert (request.exchanges[0], request.exchanges[-1]) == (text("CREATE"), text("DROP"))
