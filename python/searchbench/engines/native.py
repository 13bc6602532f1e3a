"""How an engine that speaks HTTP is asked in words that are its own, and how its answers are rows.

SQL needs no more than a wire (``dialects``). Over HTTP each engine says where it takes questions,
where the rows lie in its answers, and what of a reply with a good status is an error all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from searchbench.engines.http_form import HttpReply, post, split
from searchbench.engines.mysql_prepared import Take
from searchbench.errors import Unsupported
from searchbench.workload.operations.paths import RowsAt, read_rows_at

Troubles = Callable[[Any], str | None]
_KINDS = (("{", "application/json"), ("[", "application/json"))
_FORM = "application/x-www-form-urlencoded"


def _no_trouble(answer: Any) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Native:
    """``path``: where a question without one is sent (POST); "" where it always needs one.

    ``rows``: where rows lie in the answer to a question that was sent there. ``bql``: a statement
    as the body that carries it; None where it has no such language. ``trouble``: the engine's own
    words in an answer whose status is good; None where there is nothing wrong.
    """

    path: str = ""
    rows: str = ""
    bql: Callable[[str], bytes] | None = None
    trouble: Troubles = field(default=_no_trouble)

    @property
    def languages(self) -> tuple[str, ...]:
        """Those of methods that it can be asked by."""
        return ("http",) if self.bql is None else ("http", "bql")

    def request(self, language: str, text: str) -> bytes:
        """One request, from the text of a statement with its values in it."""
        if language == "bql":
            assert self.bql is not None
            return post(self.path, (), self.bql(text))
        if text[:1] in ("{", "["):
            if not self.path:
                raise Unsupported("a request that is only a body does not say where it goes: begin "
                                  "with method and path, as in GET /d/select?table=T")  # fmt: skip
            return post(self.path, (), text.encode())
        head, _, body = text.partition("\n\n")
        first, *headers = head.split("\n")
        return _bytes(first, headers, body.encode())

    def asks_here(self, language: str, text: str) -> bool:
        """Does a statement go to where the engine takes questions?"""
        if language == "bql" or text[:1] in ("{", "["):
            return True
        target = text.partition("\n")[0].partition(" ")[2]
        return bool(self.path) and target.partition("?")[0] == self.path

    def rows_of(
        self, reply: bytes, at: Sequence[Sequence[RowsAt] | None], take: Take
    ) -> Iterator[str | None]:
        """Of each reply, once its rows were handed over, what was refused.

        ``at``: for each where its rows lie; None where it has none that count. NoRows where they
        are not there.
        """
        for number, http in enumerate(split(reply)):
            answer = _read(http)
            if (words := self._refused(http, answer)) is not None:
                yield words
                return
            wanted = at[number] if number < len(at) else None
            for each in wanted or ():
                if answer is None:
                    raise ValueError(
                        f"the reply is not JSON, so it has no rows to read: it begins with "
                        f"{http.body[:40]!r}"
                    )
                for line in each.lines(answer):
                    take(line)
            yield None

    def _refused(self, http: HttpReply, answer: Any) -> str | None:
        words = None if answer is None else self.trouble(answer)
        if http.status >= 400:
            return words or f"HTTP status {http.status}"
        return words


def rows_lie_at(native: Native, given: Sequence[str], here: bool) -> tuple[RowsAt, ...]:
    """Where the rows of a statement lie: where it says so, else where the engine does.

    ``here``: it goes to where the engine takes questions. Unsupported where nobody says.
    """
    wanted = tuple(given) or ((native.rows,) if here and native.rows else ())
    if not wanted:
        raise Unsupported("nothing says where the rows lie in its reply: give `rows_at`, as in "
                          "rows_at = \"hits: id\", or mark it @ignored")  # fmt: skip
    return tuple(map(read_rows_at, wanted))


def _read(http: HttpReply) -> Any:
    try:
        return orjson.loads(http.body)
    except orjson.JSONDecodeError:
        return None


def _bytes(first: str, headers: Sequence[str], body: bytes) -> bytes:
    method, _, target = first.partition(" ")
    named = {line.partition(":")[0].strip().lower() for line in headers}
    lines = list(headers)
    if "host" not in named:
        lines.insert(0, "Host: 127.0.0.1")
    if body and "content-type" not in named:
        text = body[:1].decode(errors="replace")
        kind = next((kind for mark, kind in _KINDS if text == mark), _FORM)
        lines.append(f"Content-Type: {kind}")
    if (body or method not in ("GET", "HEAD", "DELETE")) and "content-length" not in named:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join((f"{method} {target} HTTP/1.1", *lines, "", ""))
    return head.encode() + body
