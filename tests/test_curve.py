"""A day of a log as the stages of a load: its shape, its scale, and how faithful it is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from searchbench.analysis.judge import judge
from searchbench.cli import app
from searchbench.errors import QueryError, StudyError
from searchbench.logs.curve import drawn
from searchbench.measure.run import run as measure
from searchbench.report.document.assemble import document
from searchbench.study.planner import make_plan
from searchbench.study.read import parse_study

MIDNIGHT = int(datetime(2026, 11, 20, tzinfo=UTC).timestamp())


def log_of(path: Path, counts: list[int], *, begins_s: int = MIDNIGHT) -> Path:
    """An access log with so many requests in each minute."""
    lines = []
    for minute, n in enumerate(counts):
        for i in range(n):
            at = datetime.fromtimestamp(begins_s + 60 * minute + 60 * i // max(1, n), UTC)
            stamp = at.strftime("%d/%b/%Y:%H:%M:%S +0000")
            lines.append(f'127.0.0.1 - - [{stamp}] "GET /s?q=w{i} HTTP/1.1" 200 12\n')
    path.write_text("".join(lines))
    return path


def a_day(peak: int = 12) -> list[int]:
    """A day with a quiet night and a busy evening: 1,440 minutes."""
    hours = np.arange(1440) / 60
    return np.round(1 + (peak - 1) * np.exp(-(((hours - 20) / 3) ** 2))).astype(int).tolist()


def test_stages_have_the_shape_of_the_day_at_the_wanted_peak(tmp_path: Path) -> None:
    counts = a_day()
    log_of(tmp_path / "day.log", counts)
    found = drawn({"log": "day.log", "seconds": 96, "peak_per_s": 400, "stages": 24}, tmp_path)
    assert len(found.stages) == 24
    assert sum(seconds for seconds, _ in found.stages) == pytest.approx(96)
    means = np.array(counts, float).reshape(24, 60).mean(axis=1)
    rates = np.array([rate for _, rate in found.stages])
    assert rates.max() == pytest.approx(400)
    assert rates / rates.max() == pytest.approx(means / means.max(), rel=1e-4)
    assert found.peak == int(np.argmax(means)) + 1
    assert (found.minutes, found.logged, found.times) == (1440, sum(counts), 900.0)
    assert found.begins == "2026-11-20 00:00"
    assert found.rates * found.peak_logged_per_s == pytest.approx(400)


def test_bursts_within_a_stage_are_reckoned(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    even = rng.poisson(10, 240).tolist()
    bursts = [10 if minute % 10 else 60 for minute in range(240)]
    faithful, other = (
        drawn({"log": log_of(tmp_path / name, counts).name, "peak_per_s": 100, "stages": 4},
              tmp_path)
        for name, counts in (("even.log", even), ("bursts.log", bursts))
    )  # fmt: skip
    assert faithful.dispersion == pytest.approx(1, abs=0.3)
    assert other.dispersion is not None
    assert other.dispersion > 10
    assert other.busiest_minute == pytest.approx(4)


def test_the_busiest_day_is_taken_or_the_one_that_is_named(tmp_path: Path) -> None:
    log_of(tmp_path / "two.log", [1] * 1440 + [2] * 1440 + [1] * 30)
    spec: dict[str, Any] = {"log": "two.log", "peak_per_s": 100, "stages": 4}
    assert drawn(spec, tmp_path).begins == "2026-11-21 00:00"
    assert drawn({**spec, "day": "2026-11-20"}, tmp_path).logged == 1440
    last = drawn({**spec, "day": "2026-11-22"}, tmp_path)
    assert (last.minutes, last.begins) == (30, "2026-11-22 00:00"), "as far as the log goes"


def test_a_record_of_a_log_gives_the_same_as_the_log(tmp_path: Path) -> None:
    log_of(tmp_path / "day.log", a_day())
    record = tmp_path / "counted"
    assert app(["logs", str(tmp_path / "day.log"), "--record", str(record)]) == 0
    spec = {"peak_per_s": 50, "stages": 24}
    one, two = (drawn({**spec, "log": name}, tmp_path) for name in ("day.log", "counted"))
    assert one.stages == two.stages


STUDY = """
question = "?"
[corpus]
family = "generated"
documents = 50
[queries]
distinct = 20
[systems.null]
delay_us = 500
[load]
{load}
"""


def study(tmp_path: Path, load: str) -> Any:
    return parse_study(STUDY.format(load=load), "study.toml", tmp_path)


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ('{ log = "no.log", peak_per_s = 5 }', "there is no log"),
        ('{ log = "day.log" }', "`stages` from a log need `peak_per_s`"),
        ('{ log = "day.log", peak_per_s = 0 }', "`peak_per_s` must be a number above 0"),
        ('{ log = "day.log", peak_per_s = 5, stages = 50 }', "set `stages` to 10 or fewer"),
        ('{ log = "day.log", peak_per_s = 5, peek = 1 }', "peek"),
        ('{ log = "day.log", peak_per_s = 5, stages = 2, day = "2025-01-01" }',
         "has no request of 2025-01-01; it has 2026-11-20 to 2026-11-20"),
        ('{ log = "day.log", peak_per_s = 5, stages = 2, day = "friday" }',
         'must be as "2026-11-20"'),
        ('{ log = "words.txt", peak_per_s = 5 }', ""),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_curve_is_said_with_its_place(
    tmp_path: Path, stages: str, said: str
) -> None:
    log_of(tmp_path / "day.log", [3] * 10)
    (tmp_path / "words.txt").write_text("red\nblue\n")
    with pytest.raises(StudyError) as wrong:
        study(tmp_path, f"stages = {stages}")
    assert said in str(wrong.value)
    assert "study.toml" in str(wrong.value)


def test_a_day_without_requests_is_none(tmp_path: Path) -> None:
    log_of(tmp_path / "short.log", [1])
    with pytest.raises(QueryError, match="one minute"):
        drawn({"log": "short.log", "peak_per_s": 5, "stages": 2}, tmp_path)


def test_a_study_drives_the_curve_and_its_page_says_where_it_is_from(tmp_path: Path) -> None:
    log_of(tmp_path / "day.log", a_day())
    given = study(
        tmp_path,
        'stages = { log = "day.log", seconds = 6, peak_per_s = 300, stages = 6 }',
    )
    (treatment,) = make_plan(given).treatments
    assert treatment.load["judged_stage"] == treatment.load["curve"]["peak"]
    record = measure(given, tmp_path / "record")
    trial = record.trials[0]
    assert trial.load.curve is not None
    assert trial.load.curve["log"] == "day.log"
    judged = judge(record)
    (section,) = (s for s in document(record, judged).sections if s.id == "shape")
    texts = [block.text for block in section.blocks if block.kind == "text"]
    assert "The stages are a day of day.log: 1,440 minutes from 2026-11-20 00:00 on" in texts[0]
    assert texts[1].startswith(("Faithful to the minute", "Not faithful within a stage"))
    shaped = judged.treatments[0].trials[0].shaped
    assert shaped is not None
    offered = [stage.requests for stage in shaped.stages]
    wanted = [stage.seconds * stage.first_per_s for stage in shaped.stages]
    assert offered == pytest.approx(wanted, abs=5 * max(wanted) ** 0.5)
