"""What the pages have that can be run: their blocks by language, their commands, what they show."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# `searchbench` as a shell finds it: the sources that are tested, and this Python's script.
ENV = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "PYTHONPATH": str(ROOT / "python"),
    "COLUMNS": "80",
    "NO_COLOR": "1",
}


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a language; "" of those without one."""
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE)


def section(page: str, title: str) -> str:
    """From a heading to the next one of its depth or above."""
    found = re.search(rf"^(#+) {re.escape(title)}\n", text_of(page), re.MULTILINE)
    assert found, f"{page} has no section {title!r}"
    rest = text_of(page)[found.end() :]
    return re.split(rf"^#{{1,{len(found[1])}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def tables(text: str) -> list[list[list[str]]]:
    """The tables of a text: the cells of their lines, without their heads."""
    found = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in each.splitlines()[2:]]
        for each in found
    ]


def rows(text: str) -> list[list[str]]:
    """The lines of all tables of a text."""
    return [row for table in tables(text) for row in table]


def code(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def sessions(page: str) -> list[tuple[str, str]]:
    """Each command after an indented ``$``, and the lines shown below it."""
    found = re.findall(r"^( +)\$ (.*)\n((?:\1(?!\$ ).*\n)*)", text_of(page), re.MULTILINE)
    return [
        (command, "".join(line.removeprefix(indent) + "\n" for line in shown.splitlines()))
        for indent, command, shown in found
    ]
