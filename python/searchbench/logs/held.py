"""Lines of a growing log that are held back until what belongs together can be read together.

A log that grows is read in pieces. Where an entry takes several lines, or one line says what
another is, a piece must not end between them:

    groonga      a request ends with `<`; its lines are handed over together
    mysql-slow, sphinxql   an entry ends where the next one begins, or nothing more was written
    sphinx, sphinxql   the entry of an agent is handed over just before that of its search

What is held for longer than ``WAIT_S`` is handed over as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

WAIT_S = 5.0  # as long as the core lets an agent's line wait (rust/logs agents.rs)
_REQUEST_S = 600.0  # a request of Groonga that does not end

# The page that agents are asked for, and the words by which their search is known.
_AGENT = {
    "sphinx": (b"(0,1000", re.compile(rb"\] \[[^\]]*\](?: \[(?:ios|cpums)=[^\]]*\])?(.*)$")),
    "sphinxql": (b"LIMIT 0,1000", re.compile(rb"MATCH\('((?:[^'\\]|\\.)*)'\)")),
}


class Held:
    """The lines of one log; this one holds nothing back."""

    def give(self, lines: Iterable[bytes], at_s: float) -> Iterator[bytes]:
        """What can be read now of what was held and of ``lines``, which came at ``at_s``."""
        del at_s
        yield from lines

    def rest(self) -> Iterator[bytes]:
        """What is held at the end."""
        yield from ()


class _Requests(Held):
    """Groonga: by context (a thread), the lines of the request that it works on."""

    def __init__(self) -> None:
        self._open: dict[bytes, tuple[float, list[bytes]]] = {}

    def give(self, lines: Iterable[bytes], at_s: float) -> Iterator[bytes]:
        for line in lines:
            _, _, told = line.partition(b"|")
            context, bar, what = told.partition(b"|")
            if not bar:
                yield line
                continue
            if what.startswith(b">") and context in self._open:
                yield from self._open.pop(context)[1]
            self._open.setdefault(context, (at_s, []))[1].append(line)
            if what.startswith(b"<"):
                yield from self._open.pop(context)[1]
        for context, (since_s, held) in list(self._open.items()):
            if at_s - since_s > _REQUEST_S:
                del self._open[context]
                yield from held

    def rest(self) -> Iterator[bytes]:
        for _, held in self._open.values():
            yield from held
        self._open.clear()


class _Statements(Held):
    """The slow log of MySQL: the lines of the entry that was begun last.

    A statement may hold a line like the first of an entry, but hardly the next one, too.
    """

    def __init__(self) -> None:
        self._last: list[bytes] = []

    def give(self, lines: Iterable[bytes], at_s: float) -> Iterator[bytes]:
        grew = False
        for line in lines:
            grew = True
            held = self._last
            if held and held[-1].startswith(b"# User@Host: ") and _goes_on(held[-1], line):
                timed = len(held) > 1 and held[-2].startswith(b"# Time: ")
                begin = len(held) - 1 - timed
                yield from held[:begin]
                del held[:begin]
            held.append(line)
        if not grew:
            yield from self.rest()

    def rest(self) -> Iterator[bytes]:
        yield from self._last
        self._last.clear()


def _goes_on(first: bytes, second: bytes) -> bool:
    """Whether two lines begin an entry. MySQL names the thread in the first of them."""
    mysql = b" Id: " in first and second.startswith(b"# Query_time: ")
    return mysql or second.startswith(b"# Thread_id: ")


class _Agents(Held):
    """Sphinx: by words, the entries that agents wrote."""

    def __init__(self, format_: str) -> None:
        self._page, self._words = _AGENT[format_]
        self._waiting: dict[bytes, tuple[float, list[bytes]]] = {}

    def give(self, lines: Iterable[bytes], at_s: float) -> Iterator[bytes]:
        for line in lines:
            agent = self._page in line
            if agent or self._waiting:
                found = self._words.search(line.rstrip())
                words = found[1] if found else b""
                if agent:
                    self._waiting.setdefault(words, (at_s, []))[1].append(line)
                    continue
                yield from self._waiting.pop(words, (0.0, []))[1]
            yield line
        for words, (since_s, held) in list(self._waiting.items()):
            if at_s - since_s > WAIT_S:
                del self._waiting[words]
                yield from held

    def rest(self) -> Iterator[bytes]:
        for _, held in self._waiting.values():
            yield from held
        self._waiting.clear()


class _Sql(_Agents):
    """Sphinx's log of SQL: a statement may have several lines, so its entries are held whole."""

    def __init__(self) -> None:
        super().__init__("sphinxql")
        self._last: list[bytes] = []

    def give(self, lines: Iterable[bytes], at_s: float) -> Iterator[bytes]:
        whole: list[bytes] = []
        grew = False
        for line in lines:
            grew = True
            if _begins_sql(line):
                whole += self._ended()
            self._last.append(line)
        if not grew:
            whole += self._ended()
        yield from super().give(whole, at_s)

    def rest(self) -> Iterator[bytes]:
        yield from super().give(self._ended(), 0.0)
        yield from super().rest()

    def _ended(self) -> list[bytes]:
        """The entry that was begun last, which ends here."""
        entry = b"".join(self._last)
        self._last.clear()
        return [entry] if entry else []


def _begins_sql(line: bytes) -> bool:
    """As the core tells it (sphinx.rs)."""
    long = len(line.rstrip(b"\r\n")) > 30
    return long and line.startswith(b"/* ") and line[16:20:3] == b"::"


def held(format_: str) -> Held:
    """What holds the lines of a format back."""
    if format_ == "groonga":
        return _Requests()
    if format_ == "mysql-slow":
        return _Statements()
    if format_ == "sphinxql":
        return _Sql()
    return _Agents(format_) if format_ in _AGENT else Held()
