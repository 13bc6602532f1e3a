"""The text of a method that is HTTP: requests as they stand in files that editors can send.

    # @before
    PUT /docs/_settings
    Content-Type: application/json

    {"index": {"refresh_interval": "-1"}}
    ###
    # @rows hits.hits: _id
    POST /docs/_search?size={rows}

    {"query": {"terms": {"id": [[each ",": {id}]]}}}

``###`` on a line of its own stands between two requests, ``#`` begins a comment or a mark before
one. A request begins with its method and path; headers follow, and after an empty line its body.
One that begins with ``{`` is the body of a POST to where the system takes questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

_BETWEEN = re.compile(r"[ \t]*###.*")
_COMMENT = re.compile(r"[ \t]*(?:#|//)(.*)")
_FIRST = re.compile(r"[A-Z]+ (/\S*|/.*\{.*)(?: HTTP/1\.1)?")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:.*")


class BadRequest(ValueError):  # noqa: N818 -- a text is bad, not we
    """What is wrong, and in which line (from 1)."""

    def __init__(self, line: int, sentence: str) -> None:
        self.line, self.sentence = line, sentence
        super().__init__(sentence)


def in_head(value: object) -> str:
    """A value for the path or a header of a request: everything escaped but what needs none."""
    return quote("" if value is None else str(value), safe="")


def split_http(text: str) -> Iterator[tuple[int, list[tuple[int, str]], str, str]]:
    """Of each request its first line, its marks with theirs, its head and its body.

    The head is "" where there is a body alone.
    """
    block: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if _BETWEEN.fullmatch(line):
            yield from _one(block)
            block = []
        else:
            block.append((number, line))
    yield from _one(block)


def _one(block: list[tuple[int, str]]) -> Iterator[tuple[int, list[tuple[int, str]], str, str]]:
    marks: list[tuple[int, str]] = []
    while block and (not block[0][1].strip() or _COMMENT.fullmatch(block[0][1])):
        number, line = block.pop(0)
        comment = _COMMENT.fullmatch(line)
        if comment is not None and comment[1].strip().startswith("@"):
            marks.append((number, comment[1].strip()))
    if not block:
        if marks:
            raise BadRequest(marks[0][0], f"no request follows the mark "
                             f"{marks[0][1].split()[0]}")  # fmt: skip
        return
    start, first = block[0]
    if first.lstrip()[:1] in ("{", "["):
        yield start, marks, "", _joined(block)
        return
    if _FIRST.fullmatch(first.strip()) is None:
        raise BadRequest(start, f"{first.strip()[:60]!r} does not begin a request: begin with "
                         "method and path, as in POST /docs/_search, or with { if the request is "
                         "only a body of JSON")  # fmt: skip
    head = [first.strip().removesuffix(" HTTP/1.1")]
    at = 1
    while at < len(block) and block[at][1].strip():
        if _HEADER.fullmatch(block[at][1].strip()) is None:
            raise BadRequest(block[at][0], f"{block[at][1].strip()[:60]!r} is not a header: put "
                             "an empty line between headers and body")  # fmt: skip
        head.append(block[at][1].strip())
        at += 1
    yield start, marks, "\n".join(head) + "\n\n", _joined(block[at + 1 :])


def _joined(block: list[tuple[int, str]]) -> str:
    return "\n".join(line for _, line in block).strip()
