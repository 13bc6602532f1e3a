"""What a process of a system printed, in one line: how it ends, or what it says of its own end."""

from __future__ import annotations

import re
from pathlib import Path

_BYTES = 65_536  # of the end of a log
_LINES = 5
_AFTER = 3  # lines from the last errors on, which often end in pages about the machine
_ERROR = re.compile(
    r"\b(?:ERROR|FATAL|PANIC|SEVERE|[Aa]ssertion|[Oo]ut of memory|OutOfMemoryError|"
    r"StackOverflowError|(?:got|terminated by|Caught) signal)\b"
)


def tail(log: Path, lines: int = _LINES) -> str:
    """The end of a log in one line, for an error message; empty where there is none."""
    return _in_one(_end(log, 0)[-lines:])


def last_words(log: Path, since: int) -> str:
    """What a process says of its end: its last errors, of those after so many bytes of its log, and
    what follows; the end of the log where it says nothing there.
    """
    said = _end(log, since)
    wrong = [i for i, line in enumerate(said) if _ERROR.search(line)]
    if not wrong:
        return _in_one(said[-_LINES:]) or tail(log)
    first = wrong[-1]
    while first - 1 in wrong:  # one error may be told in several lines
        first -= 1
    return _in_one(said[first : max(wrong[-1] + 1, first + _AFTER)])


def fallen(log: Path, since: int, pattern: str) -> tuple[int, str] | None:
    """The exit code (below 0: a signal) in the first line that fits, of those after so many bytes
    of a log, and that line with what follows; None where none does.
    """
    said = _end(log, since)
    for at, line in enumerate(said):
        if (found := re.search(pattern, line)) is not None:
            by, code = found["signal"], found["code"]
            return -int(by) if by else int(code), _in_one(said[at : at + _AFTER])
    return None


def _end(log: Path, since: int) -> list[str]:
    """Its last lines that are not empty."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, since, log.stat().st_size - _BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()]


def _in_one(lines: list[str]) -> str:
    return " | ".join(lines)
