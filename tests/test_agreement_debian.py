"""The real corpus: all search engines return the same over Debian's package descriptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchbench.analysis.judge import agreements
from searchbench.engines import ENGINES
from searchbench.errors import NotInstalled
from searchbench.lab import studies
from searchbench.lab.fetch import debian_snapshot
from searchbench.lab.install import presence

STUDY = """
question = "Do they return the same?"
[corpus]
family = "debian"
[queries]
distinct = 150
[systems.tantivy]
[systems.sqlite]
[systems.groonga]
[load]
seconds = 1
[factors]
"queries.match" = ["any", "all", "phrase", "prefix"]
"""


def test_totals_agree_for_any_all_phrase_and_prefix_and_every_difference_is_named(
    tmp_path: Path,
) -> None:
    try:
        debian_snapshot()
    except NotInstalled as reason:
        pytest.skip(str(reason))
    groonga = presence(ENGINES["groonga"])
    if not groonga.present:
        pytest.skip(f"no groonga here: {groonga.how_to_get}")
    (tmp_path / "study.toml").write_text(STUDY)
    record = studies.verify(tmp_path / "study.toml", tmp_path / "record")
    assert [t["status"] for t in record.trials] == ["ok"] * 12
    assert record.trials[0]["corpus"]["documents"] > 50_000
    found = [a for a in agreements(record) if a.queries]
    assert len(found) == 12
    for agreement in found:
        assert agreement.totals_match == 1.0, agreement.examples[:3]
        assert agreement.unsupported_a == agreement.unsupported_b == 0
        # Both see the same terms, so what is left is how they score.
        assert set(agreement.causes) <= {"scoring", "tie"}
        assert all(t["terms"]["other"] == {} for t in record.trials)
