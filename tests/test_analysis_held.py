"""What a study says it held constant is its author's word, but where the record has the value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from records import Study
from searchbench.analysis.held import Held, entries
from searchbench.analysis.judge import judge
from searchbench.record import Record, open_record
from searchbench.report.document.assemble import document
from searchbench.report.page import page


def holding(path: Path, held: Any) -> Record:
    study = Study(blocks=1, control=None, judging={"held": held})
    study.add("a", system="tantivy", parameters={"parts": 2}, clients=4, seconds=2.0)
    return open_record(study.write(path))


@pytest.mark.parametrize(
    ("held", "found"),
    [
        ({"load": {"clients": 4}}, Held("load.clients", "4", ("4",))),
        ({"load.clients": 8}, Held("load.clients", "8", ("4",))),
        ({"systems": {"tantivy": {"parts": 2}}}, Held("systems.tantivy.parts", "2", ("2",))),
        ({"systems": {"sqlite": {"parts": 2}}}, Held("systems.sqlite.parts", "2")),
        ({"parts": 3}, Held("parts", "3", ("2",))),
        ({"governor": "performance"}, Held("governor", "performance", ("performance",))),
        ({"governor": "as the machine has it"}, Held("governor", "as the machine has it")),
        ({"machine": "one"}, Held("machine", "one")),
        ("all on one machine", Held("", "all on one machine")),
    ],
)
def test_what_is_on_record_is_checked_and_the_rest_is_not(
    tmp_path: Path, held: Any, found: Held
) -> None:
    record = holding(tmp_path / "r", held)
    assert entries(record) == [found]
    warned = [f for f in judge(record).findings if f.kind == "not held"]
    assert [f.severity for f in warned] == ([] if found.true else ["warning"])
    if warned:
        assert warned[0].number == f"{found.key}: stated {found.stated}, on record {found.found[0]}"


def test_the_page_says_what_was_not_checked(tmp_path: Path) -> None:
    record = holding(tmp_path / "r", {"machine": "no other work", "load.clients": 4, "parts": 3})
    shown = page(document(record, judge(record)))
    assert "Held constant, as the author says" in shown
    assert "no other work (stated by the author, not checked)" in shown
    assert "4 (as on record)" in shown
    assert "3 (the record has 2)" in shown
