r"""Sphinx's plain query log as queries: what was searched for, how, and when.

    [Fri Nov 20 20:39:57.302 2026] 0.003 sec 0.003 sec [bool/0/rel 1 (20,10)] [dagent] ge kuv la
     end of the search             real      wall       mode/filters/sort found (offset,limit)

After the two times there may be `` x2`` (two searches done together), after the limit a field that
is grouped by, after the indexes ``[ios=.. kb=..]`` and a comment in brackets. A query that itself
begins with a bracket cannot be told from a comment, and is taken for one.

Taken are the words and the time at which the search began (the zone is not in the log). Filters,
sorting and pages are those of the study. How the words are to be found is what the log says: modes
all, any and phrase; in the extended mode words alone (all), a phrase in quotes, words with ``|``
between them or ``"words"/1`` (any). What has other operators is left out with its reason, and so is
what nobody asked:

- A distributed index asks its agents, and where these write into the same log a query has a line
  for each of them, just before its own, with (0,1000) for its page.
- Searches that were done together and differ in something else than words (FACET, or one twice)
  have a line each.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from searchbench.workload.queries.algebra import Mode
from searchbench.workload.queries.analysis import terms

LINE = re.compile(
    rb"\[(?P<at>\w{3} \w{3} +\d+ \d\d:\d\d:\d\d(?:\.\d+)? \d{4})\]"
    rb" (?P<real>\d+\.\d+) sec(?: \d+\.\d+ sec)?(?P<together> x\d+)?"
    rb" \[(?P<mode>\w+)/\d+/\S+ \d+ \((?P<page>\d+,\d+)\)(?: @[^\]]*)?\]"
    rb" \[(?P<indexes>[^\]]*)\](?: \[ios=[^\]]*\])?(?P<rest>.*)",
    re.DOTALL,
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OF_AGENTS = b"0,1000"  # the page that is asked of agents: max_matches as it is by default
_SLACK_S = 0.01  # between the times of an agent and of who asked it, both in milliseconds
_PLAIN_MODES = {"all": Mode.ALL, "any": Mode.ANY, "phr": Mode.PHRASE}
_PHRASE = re.compile(r'\s*"([^"*=~]*)"\s*(/1)?\s*')
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_OPERATORS = re.compile(
    r"[()@~^$*/\"<=&]|(?:^|\s)[-!]|\b(?:MAYBE|NEAR|SENTENCE|PARAGRAPH|ZONE|ZONESPAN)\b"
)
_AN_AGENT = "an agent was asked this for a distributed index; the query is in the line of that"
_TOGETHER = "it was searched together with the line before, for the same words"


@dataclass(frozen=True, slots=True)
class Logged:
    """A query. ``time_s``: when it began, in seconds from any origin."""

    words: tuple[str, ...]
    mode: Mode
    time_s: float


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    at_s: float
    real_s: float
    together: bytes
    mode: str
    page: bytes
    indexes: bytes
    text: bytes


def is_one(lines: list[bytes]) -> bool:
    """Whether most of these lines are of a plain query log."""
    return sum(LINE.match(line) is not None for line in lines) > len(lines) / 2


def read(lines: Iterable[bytes]) -> tuple[list[Logged], list[tuple[int, str]]]:
    """The queries by their time, and line and reason of what was left out, by line."""
    left_out: list[tuple[int, str]] = []
    found: dict[int, Logged] = {}
    recent: deque[_Line] = deque()
    before: _Line | None = None
    for number, raw in enumerate(lines, 1):
        line = _parsed(number, raw)
        if line is None:
            left_out.append((number, "no line of Sphinx's plain query log"))
            continue
        while recent and recent[0].at_s < line.at_s - line.real_s - _SLACK_S:
            recent.popleft()
        if line.page != _OF_AGENTS:
            # What its parts were asked because of it.
            agents = [a for a in recent if a.text == line.text and a.indexes != line.indexes]
            for other in agents:
                recent.remove(other)
                if found.pop(other.number, None):
                    left_out.append((other.number, _AN_AGENT))
        again = before is not None and _together(before, line)
        before = line
        meant = _TOGETHER if again else _meant(line)
        if isinstance(meant, str):
            left_out.append((number, meant))
            continue
        found[number] = meant
        if line.page == _OF_AGENTS:
            recent.append(line)
    return sorted(found.values(), key=lambda query: query.time_s), sorted(left_out)


def _together(before: _Line, line: _Line) -> bool:
    """Whether both are of one batch and ask for the same words in the same way."""
    return bool(line.together) and (
        (before.at_s, before.together, before.mode, before.indexes, before.text)
        == (line.at_s, line.together, line.mode, line.indexes, line.text)
    )  # fmt: skip


def _parsed(number: int, raw: bytes) -> _Line | None:
    found = LINE.match(raw)
    if found is None:
        return None
    try:
        at_s = ctime(found["at"].decode("ascii"))
    except ValueError:
        return None
    return _Line(
        number, at_s, float(found["real"]), found["together"] or b"", found["mode"].decode(),
        found["page"], found["indexes"], _without_comment(found["rest"].strip()),
    )  # fmt: skip


@lru_cache
def ctime(stamp: str) -> float:
    """Seconds of ``Fri Nov 20 20:39:57.302 2026``, as if it were UTC."""
    _, month, day, clock, year = stamp.split()
    return seconds(year, month, day, clock)


def seconds(year: str, month: str, day: str, clock: str) -> float:
    """Seconds since 1970 of, for example, 2026, Nov, 20 and 20:39:57.302, as if it were UTC."""
    hour, minute, second = clock.split(":")
    number = _MONTHS.index(month) + 1
    at = datetime(int(year), number, int(day), int(hour), int(minute), tzinfo=UTC)
    return at.timestamp() + float(second)


def _without_comment(text: bytes) -> bytes:
    """What follows a comment; its brackets may hold others."""
    if not text.startswith(b"["):
        return text
    depth = 0
    for at, byte in enumerate(text):
        depth += (byte == ord("[")) - (byte == ord("]"))
        if depth == 0:
            return text[at + 1 :].lstrip()
    return text


def _meant(line: _Line) -> Logged | str:
    """The query of a line; the reason where it is none that can be taken."""
    try:
        text = line.text.decode()
    except UnicodeDecodeError:
        return "not UTF-8"
    if not text:
        return "it searches for no words: a full scan"
    found = mode_and_words(line.mode, text)
    if found is None:
        return "operators of Sphinx's own syntax, which are not read here"
    mode, text = found
    words = terms(text)
    if not words:
        return "no letter or digit, so no term"
    return Logged(words, mode, line.at_s - line.real_s)


def mode_and_words(mode: str, text: str) -> tuple[Mode, str] | None:
    """How a text that was asked in a mode of Sphinx is to be found, and the text with its words.

    None where it has operators that one mode cannot say.
    """
    plain = _PLAIN_MODES.get(mode)
    return _extended(text) if plain is None else (plain, text)


def _extended(text: str) -> tuple[Mode, str] | None:
    """How the words are to be found, and the text that they stand in; None for other operators."""
    phrase = _PHRASE.fullmatch(text)
    if phrase is not None:
        return (Mode.ANY if phrase[2] else Mode.PHRASE), phrase[1]
    bare = _ESCAPED.sub(" ", text)
    if _OPERATORS.search(bare):
        return None
    if "|" not in bare:
        return Mode.ALL, bare
    parts = [terms(part) for part in bare.split("|")]
    return (Mode.ANY, bare) if all(len(part) <= 1 for part in parts) else None
