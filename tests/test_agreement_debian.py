"""The real corpus: all search systems return the same over Debian's package descriptions."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest

from searchbench.analysis.judge import agreements
from searchbench.corpora import open_corpus
from searchbench.corpora.corpus import FieldType
from searchbench.engines import ENGINES
from searchbench.errors import NotInstalled
from searchbench.lab.conduct import studies
from searchbench.lab.get.fetch import debian_snapshot
from searchbench.lab.get.install import missing
from searchbench.workload.queries.forms import to_json
from searchbench.workload.queries.registry import open_queries

SYSTEMS = [n for n, e in ENGINES.items() if n != "null" and not e.can.unavailable]
MODES = ("any", "all", "phrase", "prefix")
OF_EACH = 40
EVERY = 12  # of the documents: what all of them add is minutes of ingest, not another kind of text
STUDY = f"""
question = "Do they return the same?"
[corpus]
family = "debian"
decimate = {EVERY}
[queries]
file = "queries.jsonl"
[load]
seconds = 1
"""


def questions(place: Path) -> None:
    """Queries of every mode in one file, so that each system is started and asked once."""
    corpus = open_corpus(
        {"family": "debian", "snapshot": str(debian_snapshot()), "decimate": EVERY}, place
    )
    text = [f.name for f in corpus.schema.of_type(FieldType.TEXT)]
    lines = []
    for mode in MODES:
        drawn = open_queries(
            {"distinct": OF_EACH, "match": mode, "seed": 1},
            place,
            lambda: (d.values for d in corpus.documents()),
            text,
        )
        lines += [json.dumps(to_json(query)) for query in drawn.queries]
    (place / "queries.jsonl").write_text("\n".join(lines))


@pytest.mark.slow
@pytest.mark.timeout(1500)  # each system is started, filled with all documents, and started again
def test_totals_agree_for_any_all_phrase_and_prefix_and_every_difference_is_named(
    tmp_path: Path,
) -> None:
    try:
        questions(tmp_path)
    except NotInstalled as reason:
        pytest.skip(str(reason))
    lacking = {name: why for name in SYSTEMS if (why := missing(ENGINES[name]))}
    if lacking:
        pytest.skip(f"not all systems are here: {lacking}")
    systems = "".join(f"[systems.{name}]\n" for name in SYSTEMS)
    (tmp_path / "study.toml").write_text(STUDY + systems)
    record = studies.verify(tmp_path / "study.toml", tmp_path / "record")
    failed = [(t.label, t.reason) for t in record.trials if t.status != "ok"]
    assert failed == []
    assert len(record.trials) == len(SYSTEMS)
    assert record.trials[0].corpus.documents > 5_000
    assert all(t.terms is None or t.terms.other == {} for t in record.trials)
    found = agreements(record)
    assert found
    assert len(found) <= len(list(combinations(SYSTEMS, 2)))
    for agreement in found:
        pair = f"{agreement.label_a} / {agreement.label_b}"
        assert agreement.queries > len(MODES) * OF_EACH * 0.9, pair
        assert agreement.totals_match == 1.0, (pair, agreement.examples[:3])
        assert agreement.unsupported_a == agreement.unsupported_b == 0, pair
        assert agreement.errors_a == agreement.errors_b == 0, pair
        # All see the same terms and find the same documents: what is left is how they score.
        # tantivy scores a prefix alike in every document: its lists have no order to compare.
        assert set(agreement.causes) <= {"scoring", "tie", "undecidable by order"}, pair
