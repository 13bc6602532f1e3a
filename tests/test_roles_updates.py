"""Updates that are acknowledged and lost: counted where there is an exact total, else bounded."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from searchbench.analysis.judge import judge
from searchbench.analysis.roles import truth
from searchbench.analysis.roles.accepted import written
from searchbench.measure.run import run as measure
from searchbench.record import Record
from searchbench.report.write import write_report

LOST = {"true": 0, "lose40": 40, "lose200": 200}
STUDY = """
question = "Is what was acknowledged there?"
replicates = 1
[control]
aa = false
[corpus]
family = "generated"
documents = 2000
words = 20
[queries]
distinct = 20
{systems}
[roles.writer]
does = "write"
insert = 0
update = 1
documents_per_s = 300
marker_every_s = 1
ask_every_ms = 20
[load]
clients = 1
seconds = 3
warmup_s = 0.5
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory: Any) -> Record:
    """A trial on each host: one that keeps all updates, two that lose one in so many."""
    folder: Path = tmp_path_factory.mktemp("updates")
    path = folder / "study.toml"
    path.write_text(STUDY.format(systems="".join(
        f'[systems.{name}]\nengine = "null"\npublish_ms = 50\nlose_every = {every}\n'
        for name, every in LOST.items()
    )))  # fmt: skip
    return measure(path, folder / "record", work=folder / "work")


def test_every_lost_update_is_counted_however_few_they_are(record: Record) -> None:
    for trial in record.trials:
        writer, every = trial.beside[0], LOST[trial.system]
        made = written(record, trial, writer)
        acknowledged = int(made.taken.sum())
        assert acknowledged > 900
        lost = acknowledged // every if every else 0
        assert writer.applied is not None
        assert writer.applied.updated == acknowledged - lost
        found = [f for f in truth.findings(record, trial) if f.kind == "writes lost"]
        assert len(found) == bool(lost)
        for each in found:
            assert each.severity == "invalid"
            assert each.meaning.startswith(f"{lost} updates are missing")


def test_the_page_says_how_it_is_known(record: Record, tmp_path: Path) -> None:
    said = page(record, tmp_path)
    assert "updates, by how many documents have the word that each update writes" in said


def test_a_sample_says_what_it_may_have_missed(record: Record) -> None:
    """Asked for and all found: 47 leave 6.2 % open; that is a note, and no word of all of them."""
    trial = next(t for t in record.trials if t.system == "true")
    writer = trial.beside[0]
    assert writer.applied is not None
    uncounted = msgspec.structs.replace(
        writer.applied, updated=None, uncounted="the engine gives no exact total",
        drawn=(writer.applied.drawn * 2)[:47],
    )  # fmt: skip
    other = msgspec.structs.replace(writer, applied=uncounted)
    (proof,) = truth.proofs([(other, written(record, trial, writer))])
    assert (proof.counted, proof.asked) == (False, 47)
    assert proof.may_miss == pytest.approx(1 - 0.05 ** (1 / 47))
    said = truth.said_of(proof)
    assert "47 were asked for" in said
    assert "6.2 %" in said
    changed = msgspec.structs.replace(trial, beside=[other, *trial.beside[1:]])
    found = [f for f in truth.findings(record, changed) if f.kind == "updates not counted"]
    assert [f.severity for f in found] == ["note"]


def page(record: Record, folder: Path) -> str:
    text = write_report(record, judge(record), folder / "report").html.read_text()
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)))
