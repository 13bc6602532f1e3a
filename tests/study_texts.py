"""A short study, and what reading a text as one gives: the study, or its complaints."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchbench.errors import StudyError
from searchbench.study import Study, parse_study

SHORT = """\
question = "Which of tantivy and SQLite FTS5 serves my product search faster?"
[corpus]
files = "products.csv"
[queries]
file = "queries.txt"
match = "any"
[systems.tantivy]
[systems.sqlite]
[load]
clients = 4
seconds = 5
"""


def wrong(text: str, base: Path) -> list[str]:
    with pytest.raises(StudyError) as caught:
        parse_study(text, "s.toml", base)
    return [str(c) for c in caught.value.complaints]


def right(text: str, base: Path) -> Study:
    return parse_study(text, "s.toml", base)


def with_lines(lines: str, base: Path) -> list[str]:
    """Complaints about the short study with more lines at its end."""
    return wrong(SHORT + lines, base)
