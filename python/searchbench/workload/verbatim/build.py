"""What every reader of requests shares: a set that grows by lines, and paths fit to be sent."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from string import punctuation
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from searchbench.errors import QueryError
from searchbench.packed import lines as lines_of
from searchbench.workload.verbatim.model import Ask, BadLine, Group, RequestSet

SHOWN = 20  # bad lines are all counted; so many are kept to be shown
_NAMED = 5  # so many are in the sentence that refuses them

_URL = re.compile(r"(?i)http://(\[[0-9a-f:.]+\]|[^/:?#\s\[\]]+)(?::(\d*))?(?=[/?]|$)")
_PLAIN = re.compile(r"[!-~]+")


class BadRequest(ValueError):  # noqa: N818 -- the reason a line is none, never shown by itself
    """What is wrong with one line, and what would be right."""


@dataclass
class Builder:
    """Grows a set one written request at a time. ``refuse`` where a bad line ends the reading."""

    file: str
    index: dict[Ask, int] = field(default_factory=dict)
    log: array[int] = field(default_factory=lambda: array("I"))
    times: array[float] = field(default_factory=lambda: array("d"))
    bad: list[BadLine] = field(default_factory=list)
    bad_count: int = 0
    seen: dict[bytes, int | str] = field(default_factory=dict)

    def add(self, ask: Ask, time_s: float | None = None) -> int:
        """One request; its index."""
        number = self.index.setdefault(ask, len(self.index))
        self.log.append(number)
        if time_s is not None:
            self.times.append(time_s)
        return number

    def again(self, number: int, time_s: float | None = None) -> None:
        """A request that was added before."""
        self.log.append(number)
        if time_s is not None:
            self.times.append(time_s)

    def once(self, raw: bytes, make: Callable[[bytes], Ask]) -> int | str:
        """The number of the request that ``raw`` means, or why it is none; told once."""
        known = self.seen.get(raw)
        if known is None:
            try:
                known = self.index.setdefault(make(raw), len(self.index))
            except BadRequest as reason:
                known = str(reason)
            self.seen[raw] = known
        return known

    def leave_out(self, line: int, reason: str) -> None:
        """A line that is no request; ``line`` counts from 1."""
        self.bad_count += 1
        if len(self.bad) < SHOWN:
            self.bad.append(BadLine(self.file, line, reason))

    def build(
        self,
        name: str,
        expected: str,
        *,
        refuse: bool,
        groups: tuple[Group, ...] = (),
        by_time: bool = False,
    ) -> RequestSet:
        """The set. QueryError where a line is bad and ``refuse``, or where nothing is left.

        ``expected`` says what a right file holds. ``by_time``: sorted by time (stable), and
        times of whole seconds spread evenly over their second, as a log that writes seconds
        means; their requests would all be due at once else.
        """
        if self.bad_count and (refuse or not self.log):
            shown = "; ".join(str(line) for line in self.bad[:_NAMED])
            more = f"; and {self.bad_count - _NAMED} more" if self.bad_count > _NAMED else ""
            what = "lines are" if self.bad_count > 1 else "line is"
            left = "" if self.log else "; none is left"
            raise QueryError(f"{self.bad_count} {what} no request: {shown}{more}{left}")
        if not self.log:
            raise QueryError(f"{name} has no requests; {expected}")
        if self.times and len(self.times) != len(self.log):
            raise QueryError(
                f"{name}: {len(self.log) - len(self.times)} of {len(self.log)} requests have no "
                "time `t`; give all of them one, or none"
            )
        asks = tuple(self.index)
        log = np.array(self.log, dtype=np.uint32)
        times = np.array(self.times, dtype=np.float64) if self.times else None
        if times is not None and by_time:
            asks, log, times = _by_time(asks, log, times)
        if times is not None:
            times = times - times[0]
        return RequestSet(name, asks, log, times, groups, tuple(self.bad), self.bad_count)


def _by_time(
    asks: tuple[Ask, ...], log: NDArray[np.uint32], times: NDArray[np.float64]
) -> tuple[tuple[Ask, ...], NDArray[np.uint32], NDArray[np.float64]]:
    if bool(np.any(np.diff(times) < 0)):
        order = np.argsort(times, kind="stable")
        log, times = log[order], times[order]
        used, first = np.unique(log, return_index=True)
        by_first = used[np.argsort(first)]
        rank = np.empty(len(asks), dtype=np.uint32)
        rank[by_first] = np.arange(len(by_first), dtype=np.uint32)
        asks, log = tuple(asks[int(n)] for n in by_first), rank[log]
    if bool(np.all(times == np.floor(times))):
        _, start, size = np.unique(times, return_index=True, return_counts=True)
        within = np.arange(len(times)) - np.repeat(start, size)
        times = times + within / np.repeat(size, size)
    return asks, log, times


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, a byte order mark taken away; QueryError where it cannot be read."""
    try:
        for number, line in enumerate(lines_of(path)):
            yield line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> QueryError:
    """The sentence for a file that cannot be read."""
    return QueryError(f"the file of requests {path} cannot be read: {error.strerror or str(error)}")


def text_of(raw: bytes) -> str:
    """``raw`` as text; BadRequest where it is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"not UTF-8 at byte {error.start + 1}") from None


def fit_path(text: str) -> tuple[str, str | None, int | None]:
    """A path that can stand in a request line, and the host and port of a whole URL.

    What is not ASCII is percent-encoded as UTF-8; escapes that are there stay. BadRequest with
    the remedy for everything that cannot be sent.
    """
    host: str | None = None
    port: int | None = None
    if not text.startswith("/"):
        text, host, port = _split_url(text)
    if _PLAIN.fullmatch(text):
        return text, host, port
    if " " in text:
        raise BadRequest(
            f"a space in the path {shown(text)}: write %20 (a server takes what follows it for "
            "the protocol; Groonga closes the connection without an answer)"
        )
    for char in text:
        if char < " " or char == "\x7f":
            raise BadRequest(
                f"a control character in the path {shown(text)}: write %{ord(char):02X}"
            )
    return escape(text.encode()), host, port


def _split_url(text: str) -> tuple[str, str, int]:
    found = _URL.match(text)
    if found is None:
        raise BadRequest(_no_path(text))
    host, port = found[1].strip("[]"), found[2]
    if port == "" or (port is not None and not 0 < int(port) < 65536):
        raise BadRequest(f"{shown(text)}: its port is no number from 1 to 65535")
    rest = text[found.end() :]
    if not rest.startswith("/"):
        rest = "/" + rest
    return rest, host, 80 if port is None else int(port)


def _no_path(text: str) -> str:
    if not text:
        return "the path is empty; write /"
    if text.lower().startswith("https://"):
        return f"{shown(text)}: TLS is not spoken; write http://, or the path alone"
    if text.lower().startswith("http://"):
        return f"{shown(text)}: a URL is http://HOST:PORT/PATH"
    word = text.split(" ", 1)[0]
    if word in ("GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"):
        return (
            f"{shown(text)} begins with a method: a line is a path alone; methods and bodies are "
            'said in JSONL: {"method": "POST", "path": "/..", "body": ..}'
        )
    return f"{shown(text)} is no path: it begins with / (or with http://HOST:PORT/)"


def escape(raw: bytes) -> str:
    """``raw`` with every byte that cannot stand in a request line percent-encoded."""
    return quote(raw, safe=punctuation)


def shown(text: str) -> str:
    """``text`` as it appears in a sentence: quoted, and not longer than a line bears."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
