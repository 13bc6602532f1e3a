"""What every reader of requests shares: a set that grows by lines, and requests fit to be sent.

A request is a path, or an object of JSON: ``path`` or ``sql``, and the rest of it.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import punctuation
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson
from numpy.typing import NDArray

from searchbench.errors import QueryError
from searchbench.packed import lines as lines_of
from searchbench.workload.queries.classes import wrong as no_class
from searchbench.workload.queries.orders import by_first_appearance
from searchbench.workload.queries.sets import Gathering
from searchbench.workload.verbatim.headers import HEADER_NAME
from searchbench.workload.verbatim.model import Ask, Group, RequestSet

_NAMED = 5  # so many bad lines are in the sentence that refuses them

_URL = re.compile(r"(?i)http://(\[[0-9a-f:.]+\]|[^/:?#\s\[\]]+)(?::(\d*))?(?=[/?]|$)")
_PLAIN = re.compile(r"[!-~]+")
KEYS = ("path", "method", "body", "headers", "host", "port", "timeout", "sql", "class")
_OF_HTTP = ("path", "method", "body", "headers")
_METHOD = re.compile(r"[A-Za-z]+")


class BadRequest(ValueError):  # noqa: N818 -- the reason a line is none, never shown by itself
    """What is wrong with one line, and what would be right."""


@dataclass
class Builder(Gathering[Ask]):
    """Grows a set one written request at a time."""

    what: str = "requests"
    seen: dict[bytes, int | str] = field(default_factory=dict)

    def take(
        self, line: int, raw: bytes, make: Callable[[bytes], Ask], time_s: float | None = None
    ) -> None:
        """The request that ``raw`` means, or why it is none; those alike are made once."""
        known = self.seen.get(raw)
        if known is None:
            try:
                known = self.index.setdefault(make(raw), len(self.index))
            except BadRequest as reason:
                known = str(reason)
            self.seen[raw] = known
        if isinstance(known, str):
            self.leave_out(line, known)
        else:
            self.again(known, time_s)

    def build(
        self, name: str, expected: str, *, groups: tuple[Group, ...] = (), of_log: bool = False
    ) -> RequestSet:
        """The set. QueryError where a line is bad, or of a log, where nothing is left.

        ``expected`` says what a right file holds. ``of_log``: sorted by time (stable), and
        times of whole seconds spread evenly over their second, as a log that writes seconds
        means; their requests would all be due at once else.
        """
        if self.bad_count and not (of_log and self.log):
            shown = "; ".join(str(line) for line in self.bad[:_NAMED])
            more = f"; and {self.bad_count - _NAMED} more" if self.bad_count > _NAMED else ""
            what = "lines are" if self.bad_count > 1 else "line is"
            left = "" if self.log else "; none is left"
            raise QueryError(f"{self.bad_count} {what} no request: {shown}{more}{left}")
        if not self.log:
            raise QueryError(f"{name} has no requests; {expected}")
        log, times = self.logged(name)
        asks = tuple(self.index)
        if times is not None and of_log:
            asks, log, times = _by_time(asks, log, times)
        if times is not None:
            times = times - times[0]
        # A group without a name has its number for one.
        classes = tuple(a.own_class or ("" if a.group.isdigit() else a.group) for a in asks)
        return RequestSet(
            name, asks, log, times, groups, tuple(self.bad), self.bad_count,
            classes if any(classes) else (),
        )  # fmt: skip


def _by_time(
    asks: tuple[Ask, ...], log: NDArray[np.uint32], times: NDArray[np.float64]
) -> tuple[tuple[Ask, ...], NDArray[np.uint32], NDArray[np.float64]]:
    if bool(np.any(np.diff(times) < 0)):
        order = np.argsort(times, kind="stable")
        log, times = log[order], times[order]
        old, log = by_first_appearance(log)
        asks = tuple(asks[number] for number in old)
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
        raise BadRequest(f"{shown(text)}: its port is not a number from 1 to 65535")
    rest = text[found.end() :]
    if not rest.startswith("/"):
        rest = "/" + rest
    return rest, host, 80 if port is None else int(port)


def _no_path(text: str) -> str:
    if not text:
        return "the path is empty; write /"
    if text.lower().startswith("https://"):
        return f"{shown(text)}: write the path alone, and https:// in the target"
    if text.lower().startswith("http://"):
        return f"{shown(text)}: a URL is http://HOST:PORT/PATH"
    word = text.split(" ", 1)[0]
    if word in ("GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"):
        return (
            f"{shown(text)} begins with a method: a line is a path alone; methods and bodies are "
            'said in JSONL: {"method": "POST", "path": "/..", "body": ..}'
        )
    return f"{shown(text)} is not a path: a path begins with / (or with http://HOST:PORT/)"


def escape(raw: bytes) -> str:
    """``raw`` with every byte that cannot stand in a request line percent-encoded."""
    return quote(raw, safe=punctuation)


def shown(text: str) -> str:
    """``text`` as it appears in a sentence: quoted, and not longer than a line bears."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def ask_of(given: Mapping[str, Any], *, method: str | None = None, group: str = "") -> Ask:
    """The request that an object means; BadRequest with the reason.

    ``method`` is that where it says none: a request with a body is a POST else, one without a
    GET. A body that is a text is sent as it is, any other value as JSON.
    """
    body, host, port = None, None, None
    headers: tuple[tuple[str, str], ...] = ()
    if "sql" in given:
        text, verb = _statement(given), "GET"
    else:
        asked = given.get("path")
        if asked is None:
            raise BadRequest("it has no `path` and no `sql`")
        if not isinstance(asked, str):
            raise BadRequest(f"`path` must be a string, not {told(asked)}")
        text, host, port = fit_path(asked)
        body = _body(given.get("body"))
        verb = _method(given.get("method"), method or ("GET" if body is None else "POST"))
        headers = _headers(given.get("headers"))
    return Ask(
        text,
        verb,
        body,
        headers,
        _host(given.get("host")) or host,
        _port(given.get("port")) or port,
        _timeout(given.get("timeout")),
        group,
        _class(given.get("class")),
    )


def _class(value: Any) -> str:
    if value is None:
        return ""
    if reason := no_class(value):
        raise BadRequest(f"`class` {reason}, not {told(value)}")
    return str(value)


def _statement(given: Mapping[str, Any]) -> str:
    text = given["sql"]
    if not isinstance(text, str) or not text.strip():
        raise BadRequest(f"`sql` must be a statement, not {told(text)}")
    for key in _OF_HTTP:
        if given.get(key) is not None:
            raise BadRequest(f"`{key}` is for HTTP, and this is a statement: give `sql` or `path`")
    return text.strip().removesuffix(";").rstrip()


def _body(value: Any) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else orjson.dumps(value)


def _method(value: Any, otherwise: str) -> str:
    if value is None:
        return otherwise
    if not isinstance(value, str) or not _METHOD.fullmatch(value):
        raise BadRequest(f"`method` must be a word such as GET or POST, not {told(value)}")
    return value.upper()


def _headers(value: Any) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise BadRequest(f'`headers` must be an object: {{"Accept": "text/plain"}}, '
                         f"not {told(value)}")  # fmt: skip
    for name, text in value.items():
        if not HEADER_NAME.fullmatch(name):
            raise BadRequest(f"{shown(name)} cannot be the name of a header")
        if not isinstance(text, str) or any(c < " " and c != "\t" for c in text):
            raise BadRequest(f"the header `{name}` must be a string of one line, not {told(text)}")
    return tuple(value.items())


def _host(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value or any(c.isspace() or c == "/" for c in value):
        raise BadRequest(f"`host` must be a name or an address, not {told(value)}")
    return value


def _port(value: Any) -> int | None:
    """A port; drnbench's files have it as a number or as digits."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 65536:
        raise BadRequest(f"`port` must be a number from 1 to 65535, not {told(value)}")
    return value


def _timeout(value: Any) -> float | None:
    if value is None:
        return None
    seconds = number_of("timeout", value, "of seconds")
    if seconds <= 0:
        raise BadRequest(f"`timeout` must be a number of seconds above 0, not {told(value)}")
    return seconds


def number_of(key: str, value: Any, unit: str) -> float:
    """A number, also where it is written as a text."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise BadRequest(f"`{key}` must be a number {unit}, not {told(value)}") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadRequest(f"`{key}` must be a number {unit}, not {told(value)}")
    return float(value)


def known(given: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    """BadRequest for a key that nobody reads, with the nearest that is."""
    for key in given:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(keys)}"
            raise BadRequest(f"`{key}` is not known here; {hint}")


def told(value: Any) -> str:
    """A value of JSON as it appears in a sentence."""
    text = orjson.dumps(value, default=str).decode()
    return text if len(text) <= 60 else text[:57] + "..."
