"""The real corpus: all search systems return the same over Debian's package descriptions."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from searchbench.analysis.judge import agreements
from searchbench.engines import ENGINES
from searchbench.errors import NotInstalled
from searchbench.lab import studies
from searchbench.lab.fetch import debian_snapshot
from searchbench.lab.install import missing

SYSTEMS = [n for n, e in ENGINES.items() if n != "null" and not e.can.unavailable]
MODES = ("any", "all", "phrase", "prefix")
STUDY = """
question = "Do they return the same?"
[corpus]
family = "debian"
[queries]
distinct = 75
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
    lacking = {name: why for name in SYSTEMS if (why := missing(ENGINES[name]))}
    if lacking:
        pytest.skip(f"not all systems are here: {lacking}")
    systems = "".join(f"[systems.{name}]\n" for name in SYSTEMS)
    (tmp_path / "study.toml").write_text(STUDY + systems)
    record = studies.verify(tmp_path / "study.toml", tmp_path / "record")
    failed = [(t["label"], t["reason"]) for t in record.trials if t["status"] != "ok"]
    assert failed == []
    assert len(record.trials) == len(SYSTEMS) * len(MODES)
    assert record.trials[0]["corpus"]["documents"] > 50_000
    assert all((t["terms"] or {"other": {}})["other"] == {} for t in record.trials)
    found = [a for a in agreements(record) if a.queries]
    assert len(found) <= len(MODES) * len(list(combinations(SYSTEMS, 2)))
    compared = {label.split()[0] for a in found for label in (a.label_a, a.label_b)}
    assert compared == set(SYSTEMS)
    for agreement in found:
        pair = f"{agreement.label_a} / {agreement.label_b}"
        assert agreement.totals_match == 1.0, (pair, agreement.examples[:3])
        assert agreement.unsupported_a == agreement.unsupported_b == 0, pair
        assert agreement.errors_a == agreement.errors_b == 0, pair
        # All see the same terms and find the same documents: what is left is how they score.
        assert set(agreement.causes) <= {"scoring", "tie"}, pair
