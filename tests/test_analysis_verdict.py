"""The verdict's table in a terminal."""

from __future__ import annotations

import pytest

from searchbench.analysis.verdict import clip


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("tantivy clients=8", "tantivy clients=8"),
        ("postgresql match=phrase clients=8", "postgresql phrase clients=8"),
        ("lucene match=any merged=true parts=10", "lucene any merged=true parts=10"),
        ("elasticsearch-two match=phrase clients=8", "elasticsearch-t…hrase clients=8"),
    ],
)
def test_a_label_that_is_too_long_keeps_what_tells_it_apart(label: str, shown: str) -> None:
    assert clip(label, 31) == shown
