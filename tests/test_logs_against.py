"""A log of production beside a record of the laboratory: whether the one tells the truth."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from records import Study, by_query
from searchbench.analysis.logs.against import (
    ALL,
    Against,
    Line,
    _held,
    _lines,
    _sentence,
    _Side,
    _without_failed,
    against,
)
from searchbench.cli import app
from searchbench.errors import QueryError, RecordError, SearchbenchError
from searchbench.logs.counts import Options
from searchbench.logs.entries import read_entries
from searchbench.logs.searches import Searches, searches_of
from searchbench.logs.sources import find
from searchbench.record import open_record

SLOW = 3.0  # times as long as the others, queries of odd numbers take


class Classed(Study):
    """A study whose queries say of which class they are."""

    def _queries(self) -> list[dict[str, Any]]:
        named = ("plain", "slow")
        return [{**row, "class": named[row["query"] % 2]} for row in super()._queries()]


def record_of(
    place: Path, kind: type[Study] = Classed, *, noise: float = 0.0, seed: int = 7, blocks: int = 3
) -> Path:
    """``noise``: by what share, as a standard deviation, trials differ as a whole."""
    study = kind(blocks=blocks, block_noise=noise, control=None, seed=seed)
    slow = dict.fromkeys(range(1, study.queries, 2), SLOW)
    study.add("a", server=by_query(0.004, slow, 0.4), rate_per_s=400.0, seconds=11.0)
    return study.write(place)


def log_of(place: Path, n: int, factor: dict[str, float], unit_us: int = 1) -> Searches:
    """A log of ``n`` searches over two hours; by class, how much faster than in the laboratory."""
    rng = np.random.default_rng(5)
    lines = []
    for i, at in enumerate(np.sort(rng.uniform(0, 7200, n)).tolist()):
        number = i % 40
        name = ("plain", "slow")[number % 2]
        took_s = 0.004 * (SLOW if name == "slow" else 1) * np.exp(0.4 * rng.standard_normal())
        took_us = int(took_s * 1e6 / factor[name] / unit_us) * unit_us
        unit = {"duration_us": took_us} if unit_us < 1000 else {"took_ms": took_us // 1000}
        lines.append({"time": 1.7e9 + at, "q": f"word{number}", "kind": name, **unit})
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = Options(columns=(("kind", "class", ""),))
    return searches_of(read_entries(find([place]), options))


def line(found: Against, of_class: str, quantile: float) -> Line:
    (one,) = [x for x in found.lines if (x.of_class, x.quantile) == (of_class, quantile)]
    return one


def test_equal_times_are_called_the_same_by_class(tmp_path: Path) -> None:
    log = log_of(tmp_path / "a.jsonl", 40_000, {"plain": 1.0, "slow": 1.0})
    (found,) = against(log, open_record(record_of(tmp_path / "record")))
    assert {x.of_class for x in found.lines} == {ALL, "plain", "slow"}
    for name, median in (("plain", 0.004), ("slow", 0.004 * SLOW)):
        one = line(found, name, 0.5)
        assert one.answer == "the same"
        assert (one.log_s, one.lab_s) == pytest.approx((median, median), rel=0.05)
        assert one.interval is not None
        assert one.interval.low < 1 < one.interval.high
    assert found.sentence.startswith("The laboratory tells the truth about production")
    assert found.shares["slow"] == pytest.approx((0.5, 0.5), abs=0.02)


def test_starts_of_the_laboratory_that_differ_are_no_difference_from_production(
    tmp_path: Path,
) -> None:
    log = log_of(tmp_path / "a.jsonl", 40_000, {"plain": 1.0, "slow": 1.0})
    wrong = 0
    for seed in range(8):
        record = record_of(tmp_path / f"record{seed}", noise=0.1, seed=seed)
        (found,) = against(log, open_record(record))
        wrong += any(one.answer in ("slower", "faster") for one in found.lines)
    assert wrong <= 1
    single = record_of(tmp_path / "single", blocks=1)
    (found,) = against(log, open_record(single))
    assert any("one valid trial" in text for text in found.remarks)


def test_a_class_that_production_answers_faster_is_named(tmp_path: Path) -> None:
    log = log_of(tmp_path / "a.jsonl", 40_000, {"plain": 1.0, "slow": 2.0})
    (found,) = against(log, open_record(record_of(tmp_path / "record")))
    assert line(found, "plain", 0.5).answer == "the same"
    one = line(found, "slow", 0.5)
    assert one.answer == "slower"
    assert one.ratio == pytest.approx(2.0, rel=0.05)
    assert "in part" in found.sentence
    assert "slower in the laboratory, up to 2" in found.sentence
    assert "of slow)" in found.sentence


def test_what_lies_below_the_resolution_of_the_log_is_not_resolved(tmp_path: Path) -> None:
    log = log_of(tmp_path / "a.jsonl", 20_000, {"plain": 10.0, "slow": 10.0}, unit_us=1000)
    (found,) = against(log, open_record(record_of(tmp_path / "record")))
    one = line(found, "plain", 0.5)
    assert one.log_s == 0
    assert one.ratio is None
    # It took less than a millisecond there, and four here: that much is known.
    assert one.answer == "slower"
    assert one.interval is not None
    assert one.interval.low > 1
    assert np.isinf(one.interval.high)
    assert any("below the log's resolution of 0.001 s" in text for text in found.remarks)
    close = log_of(tmp_path / "b.jsonl", 20_000, {"plain": 4.0, "slow": 4.0}, unit_us=1000)
    (found,) = against(close, open_record(tmp_path / "record"))
    near = line(found, "slow", 0.5)
    assert near.interval is not None
    assert near.interval.high / near.interval.low > 1.2


def test_few_searches_decide_nothing(tmp_path: Path) -> None:
    log = log_of(tmp_path / "a.jsonl", 60, {"plain": 1.0, "slow": 1.0})
    (found,) = against(log, open_record(record_of(tmp_path / "record")))
    assert {x.answer for x in found.lines} <= {"too few", "not resolved"}
    assert "is not resolved" in found.sentence


def test_queries_without_a_class_have_that_of_the_same_words_in_the_log(tmp_path: Path) -> None:
    log = log_of(tmp_path / "a.jsonl", 20_000, {"plain": 1.0, "slow": 1.0})
    (found,) = against(log, open_record(record_of(tmp_path / "record", Study)))
    # Queries of even numbers are one word; those of odd ones have a second, which no log has.
    assert line(found, "plain", 0.5).answer == "the same"
    assert found.shares["plain"][1] == pytest.approx(0.5, abs=0.02)
    assert any("The mix differs" in text for text in found.remarks)


def test_the_intervals_hold_what_they_say() -> None:
    """Searches of one moment are alike, as in a slow hour: blocks know it, singles do not."""
    rng = np.random.default_rng(11)
    every, alone = np.ones(3600, bool), np.arange(3600)
    held, tries = 0, 60
    for number in range(tries):
        sides = []
        for seed in (1, 2):
            block = np.repeat(np.arange(60), 60)
            slow = np.repeat(np.exp(0.3 * rng.standard_normal(60)), 60)
            seconds = 0.01 * slow * np.exp(0.3 * rng.standard_normal(len(block)))
            sides.append(_Side(seconds, block, np.zeros(len(block), np.int64), 0.0, seed))
        one = median(_lines(ALL, *sides, every, every))
        held += one[0] <= 1 <= one[1]
        if number == 0:
            singles = [_Side(s.seconds, alone, s.of_class, 0.0, s.seed) for s in sides]
            two = median(_lines(ALL, *singles, every, every))
            assert np.log(two[1] / two[0]) < 0.5 * np.log(one[1] / one[0])
    assert held / tries >= 0.88


def median(lines: Iterable[tuple[Line, float | None]]) -> tuple[float, float]:
    """The interval of the ratio of the medians."""
    (one,) = [x for x, _ in lines if x.quantile == 0.5]
    assert one.interval is not None
    return one.interval.low, one.interval.high


def test_of_many_equal_classes_none_is_apart_by_chance() -> None:
    """Twelve classes of three quantiles: at 95 % each, one or two of them are, in most logs."""
    rng, names = np.random.default_rng(3), [f"c{i}" for i in range(12)]
    apart, tries = 0, 15
    for _ in range(tries):
        sides = []
        for seed in (1, 2):
            n = 12 * 1200
            block, of_class = np.arange(n) * 60 // n, rng.integers(0, 12, n)
            seconds = 0.01 * np.exp(0.8 * rng.standard_normal(n))
            sides.append(_Side(seconds, block, of_class, 0.0, seed))
        found = _held("t", "t", *sides, names, "record")
        apart += any(x.answer in ("faster", "slower") for x in found.lines)
    assert apart <= 3
    # What is apart is still found among them.
    sides[1].seconds[sides[1].of_class == 4] *= 1.5
    found = _held("t", "t", *sides, names, "record")
    assert line(found, "c4", 0.5).answer == "slower"


@pytest.mark.parametrize("stretches", [1, 3, 9])
def test_a_class_that_lies_in_few_stretches_of_the_log_decides_nothing(stretches: int) -> None:
    """30 searches of a nightly report: the median of so few differs by 18 % by chance."""
    rng, names = np.random.default_rng(stretches), ["usual", "report"]
    for _ in range(5):
        sides = []
        for seed, reports in ((1, 30), (2, 3000)):
            n = 20_000
            block, of_class = np.arange(n) * 60 // n, np.zeros(n, np.int64)
            within = np.flatnonzero(block < stretches) if seed == 1 else np.arange(n)
            of_class[rng.choice(within, reports, replace=False)] = 1
            seconds = 0.01 * np.exp(0.8 * rng.standard_normal(n))
            sides.append(_Side(seconds, block, of_class, 0.0, seed))
        found = _held("t", "t", *sides, names, "record")
        one = line(found, "report", 0.5)
        assert (one.answer, one.interval) == ("not resolved", None)
        assert any(
            text.startswith("The searches of `report` lie in only ") and "of 60 equal parts" in text
            for text in found.remarks
        )
        assert line(found, "usual", 0.5).interval is not None


def test_the_command_says_it_and_refuses_what_it_cannot_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_of(tmp_path / "a.jsonl", 40_000, {"plain": 1.0, "slow": 1.0})
    record = record_of(tmp_path / "record", blocks=6)
    argv = ["logs", str(tmp_path / "a.jsonl"), "--column", "kind=class", "--against", str(record)]
    assert app(argv) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("The laboratory tells the truth about production")
    assert "The log has the server's own times" in printed
    assert app([*argv, "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert {x["answer"] for x in told["lines"]} == {"the same"}
    untimed = tmp_path / "untimed.jsonl"
    untimed.write_text('{"time": "2026-01-01T00:00:00Z", "q": "red"}\n' * 30)
    with pytest.raises(RecordError, match="does not say how long"):
        app(["logs", str(untimed), "--format", "json", "--against", str(record)])


def test_compare_names_the_way_for_a_log(tmp_path: Path) -> None:
    log_of(tmp_path / "a.jsonl", 40, {"plain": 1.0, "slow": 1.0})
    assert app(["logs", str(tmp_path / "a.jsonl"), "--record", str(tmp_path / "log")]) == 0
    with pytest.raises(SearchbenchError, match="searchbench logs FILE --against RECORD"):
        app(["compare", str(tmp_path / "log"), str(tmp_path / "log")])
    with pytest.raises(QueryError, match="takes that of a study"):
        app(["logs", str(tmp_path / "a.jsonl"), "--against", str(tmp_path / "log")])


@pytest.mark.parametrize(
    ("log", "slow", "lab", "open_"),
    [(0.03, 0.03, 0.0, True), (0.0, 0.0, 0.03, True), (0.03, 0.001, 0.0, False)],
)
def test_failures_of_either_side_leave_the_quantiles_open_that_they_may_be_beyond(
    tmp_path: Path, log: float, slow: float, lab: float, open_: bool
) -> None:
    searches = log_of(tmp_path / "log.jsonl", 9000, {"plain": 1.0, "slow": 1.0})
    (found,) = against(searches, open_record(record_of(tmp_path / "r")))
    found = replace(found, lines=tuple(replace(one, answer="the same") for one in found.lines))
    held = _without_failed(found, log, slow, lab=lab)
    assert (line(held, ALL, 0.99).answer == "not resolved") is open_
    assert line(held, ALL, 0.5).answer == "the same"


@pytest.mark.parametrize(
    ("answers", "begins"),
    [
        (("the same",) * 6, "The laboratory tells the truth about production: of 6"),
        (
            ("the same",) * 4 + ("too few", "not resolved"),
            "The laboratory tells the truth about production, as far as is known: of 6",
        ),
        (
            ("the same", *["not resolved"] * 5, *["too few"] * 3),
            "Too little is known to say whether the laboratory tells the truth about production: "
            "of 9 quantiles 1 is the same within 10%",
        ),
        (
            ("the same", "slower", "not resolved"),
            "The laboratory tells the truth about production in part: of 3",
        ),
    ],
)
def test_what_is_known_of_a_part_is_not_said_of_the_whole(
    answers: tuple[Any, ...], begins: str
) -> None:
    lines = [Line("x", 0.5, (9, 9), 1.0, 1.0, 1.0, None, answer) for answer in answers]
    assert _sentence(lines).startswith(begins)
