"""What is written about the program is what the program is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from searchbench.engines import ENGINES
from searchbench.record import IO, PROBE, REPLIES, SAMPLES
from searchbench.record.trial import Trial
from searchbench.study import read_study
from searchbench.study.inputs import look
from searchbench.study.planner import make_plan
from searchbench.study.reference import reference

ROOT = Path(__file__).parent.parent


def test_the_reference_of_study_files_is_that_of_the_code() -> None:
    assert (ROOT / "docs/STUDY.md").read_text(encoding="utf-8") == reference()


@pytest.mark.parametrize("path", sorted((ROOT / "studies").glob("*.toml")), ids=lambda p: p.stem)
def test_shipped_studies_are_right_and_say_what_to_look_for(path: Path) -> None:
    study = read_study(path)
    plan = make_plan(study)
    look(study, plan, alone=True)  # as `check` does: a StudyError where an input is not enough
    assert plan.trials or plan.judging.measure == "capacity"
    assert len(study.analysis) > 200


def test_every_engine_has_its_section() -> None:
    text = (ROOT / "ENGINES.md").read_text(encoding="utf-8")
    for engine in ENGINES.values():
        assert f"\n## {engine.can.title}\n" in text, engine.name


def described(file: str) -> str:
    """What FORMATS.md says of the columns of a file: its paragraph, and the table below that."""
    blocks = (ROOT / "FORMATS.md").read_text(encoding="utf-8").split("\n\n")
    (at,) = [n for n, block in enumerate(blocks) if block.startswith(f"`{file}`, a row")]
    return blocks[at] + ("\n" + blocks[at + 1] if blocks[at + 1].startswith("|") else "")


def test_the_table_of_samples_has_their_columns_and_types_in_order() -> None:
    rows = re.findall(r"^\| (\w+) \| (\w+) \|", described("samples.parquet"), re.MULTILINE)
    assert rows[0] == ("column", "type")
    assert rows[1:] == [(field.name, str(field.type)) for field in SAMPLES]


@pytest.mark.parametrize(
    ("file", "schema"), [("replies.parquet", REPLIES), ("probe.parquet", PROBE), ("io.parquet", IO)]
)
def test_the_paragraph_of_a_file_has_its_columns_in_order(file: str, schema: pa.Schema) -> None:
    named = re.findall(r"`(\w+)`", described(file))
    assert [name for name in named if name in schema.names] == schema.names


def test_the_table_of_a_trial_has_its_keys_and_no_others() -> None:
    text = (ROOT / "FORMATS.md").read_text(encoding="utf-8")
    section = text.partition("### trial.json\n")[2]
    table = section.partition("|---|---|\n")[2].partition("\n\n")[0]
    first = [row.split("|")[1] for row in table.splitlines()]
    named = [name for cell in first for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(field.name for field in msgspec.structs.fields(Trial))


def test_the_studies_in_the_texts_are_toml() -> None:
    for name in ("README.md", "docs/STUDY.md", "docs/PLACES.md"):
        for block in re.findall(r"```toml\n(.*?)```", (ROOT / name).read_text(), re.DOTALL):
            tomllib.loads(block)


def test_links_between_the_texts_lead_somewhere() -> None:
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
