"""What is written about the program is what the program is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from searchbench.engines import ENGINES
from searchbench.record import PROBE, REPLIES, SAMPLES
from searchbench.study import read_study
from searchbench.study.planner import make_plan
from searchbench.study.reference import reference

ROOT = Path(__file__).parent.parent


def test_the_reference_of_study_files_is_that_of_the_code() -> None:
    assert (ROOT / "docs/STUDY.md").read_text(encoding="utf-8") == reference()


@pytest.mark.parametrize("path", sorted((ROOT / "studies").glob("*.toml")), ids=lambda p: p.stem)
def test_shipped_studies_are_right_and_say_what_to_look_for(path: Path) -> None:
    study = read_study(path)
    plan = make_plan(study)
    assert plan.trials or plan.judging.measure == "capacity"
    assert len(study.analysis) > 200


def test_every_engine_has_its_section() -> None:
    text = (ROOT / "ENGINES.md").read_text(encoding="utf-8")
    for engine in ENGINES.values():
        assert f"\n## {engine.can.title}\n" in text, engine.name


def test_every_column_of_the_record_is_described() -> None:
    text = (ROOT / "FORMATS.md").read_text(encoding="utf-8")
    for schema in (SAMPLES, REPLIES, PROBE):
        for name in schema.names:
            assert re.search(rf"\b{name}\b", text), name


def test_the_studies_in_the_texts_are_toml() -> None:
    for name in ("README.md", "docs/STUDY.md"):
        for block in re.findall(r"```toml\n(.*?)```", (ROOT / name).read_text(), re.DOTALL):
            tomllib.loads(block)


def test_links_between_the_texts_lead_somewhere() -> None:
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
