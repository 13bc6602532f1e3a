"""Kept replies of operations: one that came before is not read again, a long one not held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from searchbench.engines.answer import Hits
from searchbench.lab.drive import drive


class Counting:
    """Reads how long a reply is, and counts how often it is asked to."""

    def __init__(self) -> None:
        self.asked = 0

    def read(self, pieces: Iterable[bytes]) -> Hits:
        self.asked += 1
        return Hits(total=sum(map(len, pieces)))


def test_replies_of_the_same_bytes_are_read_once() -> None:
    decoder, known = Counting(), dict[bytes, Hits]()
    for reply in ((b"ab", b"c"), (b"abc",), (b"a", b"bc"), (b"abd",), (b"abc", b"d"), ()):
        found = drive._read(decoder, reply, known)
        assert found.total == len(b"".join(reply))
    assert decoder.asked == len(known) == 4


def test_a_reply_that_is_too_long_is_read_on_its_way() -> None:
    at_once = 0

    def pieces() -> Iterator[bytes]:
        nonlocal at_once
        for _ in range(40):
            at_once += 1
            yield bytes(1 << 20)

    class First(Counting):
        def read(self, pieces: Iterable[bytes]) -> Hits:
            for _ in pieces:
                break
            self.asked = at_once
            return Hits(total=None)

    decoder, known = First(), dict[bytes, Hits]()
    drive._read(decoder, pieces(), known)
    assert decoder.asked <= 18, "no more than is compared was taken before the decoder had it"
    assert not known
