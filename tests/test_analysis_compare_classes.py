"""Two records compared by class of queries: beside the whole, and corrected for all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import records
from records import Study
from searchbench.analysis.compare.records import compare_records, compare_runs
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judge import to_json
from searchbench.analysis.judgement import RecordComparison, RecordLine
from searchbench.analysis.trial.classes import Classes
from searchbench.cli import app
from searchbench.record import Record, open_record
from test_analysis_classes import by_class, class_of


def run(path: Path, words_s: float, phrase_s: float, seed: int = 1, **more: object) -> Record:
    """One system; queries 0 to 19 are words, the rest phrases."""
    about: dict[str, object] = {"classes": class_of, "control": "a", "blocks": 4} | more
    study = Study(seed=seed, **about)  # type: ignore[arg-type]
    study.add("a", server=by_class(words_s, phrase_s), clients=2, seconds=6.0)
    return open_record(study.write(path))


def swept(path: Path, server: records.Server, seed: int = 1) -> Record:
    judging = {"measure": "sweep"}
    study = Study(blocks=3, seed=seed, classes=class_of, judging=judging, control=None)
    study.add("x100", server=server, rate_per_s=100.0, seconds=11, subject="x",
              levels={"load.rate_per_s": 100.0})  # fmt: skip
    return open_record(study.write(path))


def of(found: RecordComparison, name: str, metric: str) -> RecordLine:
    (line,) = [c.line for c in found.by_class if (c.name, c.line.metric) == (name, metric)]
    return line


@pytest.fixture(scope="module")
def phrases_lost(tmp_path_factory: pytest.TempPathFactory) -> tuple[Record, Record]:
    folder = tmp_path_factory.mktemp("lost")
    first = run(folder / "a", 0.010, 0.004)
    return first, run(folder / "b", 0.005, 0.006, seed=2)


def test_a_class_that_lost_is_said_beside_the_whole_that_gained(
    phrases_lost: tuple[Record, Record],
) -> None:
    found = compare_records(*phrases_lost)
    (whole,) = [line for line in found.comparisons if line.metric == "throughput"]
    assert whole.ratio is not None
    assert whole.ratio.value > 1.1
    for name, ratio in (("words", 2.0), ("phrase", 0.667)):
        line = of(found, name, "service_p50")
        assert line.ratio is not None
        assert line.ratio.value == pytest.approx(ratio, rel=0.05)
        assert line.verdict == "differs", "these are two runs"
        assert line.queries_used == 20
        assert line.value_a is not None
    words = of(found, "words", "service_p50").value_a
    assert words is not None
    assert words.value == pytest.approx(0.010, rel=0.05), "the values are those of the class"
    assert "Over all queries no resolved loss exceeds 5 %" in found.headline
    assert "but the class phrase lost more than that" in found.headline
    assert "By class of queries and p99 of service time, the second differs" in found.decision
    assert "phrase (0.6" in found.decision
    assert not found.beyond_threshold, "the whole decides the status"


def test_runs_of_both_make_a_class_slower(tmp_path: Path) -> None:
    firsts = [run(tmp_path / f"a{i}", 0.010, 0.004, seed=i) for i in range(1, 4)]
    later = [run(tmp_path / f"b{i}", 0.005, 0.006, seed=10 + i) for i in range(1, 4)]
    found = compare_records(firsts[0], later[0], 0.05, firsts[1:], later[1:])
    assert of(found, "phrase", "service_p50").verdict == "slower"
    assert of(found, "words", "service_p50").verdict == "faster"
    assert of(found, "phrase", "service_p50").runs == (3, 3)


def test_verdicts_on_classes_are_corrected_for_all_and_the_whole_for_itself(
    phrases_lost: tuple[Record, Record], tmp_path: Path
) -> None:
    with_classes = compare_records(*phrases_lost)
    plain = [run(tmp_path / "a", 0.010, 0.004, classes=None),
             run(tmp_path / "b", 0.005, 0.006, seed=2, classes=None)]  # fmt: skip
    without = compare_records(*plain)
    assert not without.by_class
    assert [(c.metric, c.verdict, c.p_value) for c in with_classes.comparisons] == [
        (c.metric, c.verdict, c.p_value) for c in without.comparisons
    ]
    same = compare_records(run(tmp_path / "c", 0.004, 0.004), run(tmp_path / "d", 0.004, 0.004, 7))
    assert same.by_class
    assert {c.line.verdict for c in same.by_class} == {"not resolved"}
    assert "By class" not in same.decision


def test_classes_with_other_queries_in_the_second_are_named_and_not_compared(
    phrases_lost: tuple[Record, Record], tmp_path: Path
) -> None:
    def moved(query: int) -> str:
        return "question" if 10 <= query < 15 else class_of(query)

    other = compare_records(phrases_lost[0], run(tmp_path / "b", 0.010, 0.004, classes=moved))
    assert {c.name for c in other.by_class} == {"phrase"}, "words has five queries less"
    assert (
        "The classes words and question do not have the same queries in all runs, so they were not "
        "compared." in other.decision
    )
    none = compare_records(phrases_lost[0], run(tmp_path / "c", 0.010, 0.004, classes=None))
    assert not none.by_class
    assert "Not all runs have classes of queries, so no class was compared." in none.decision


def test_the_order_in_which_classes_come_first_makes_no_difference(
    phrases_lost: tuple[Record, Record],
) -> None:
    """Two lists of the same queries may name their classes in another order."""
    first, second = (Run(record) for record in phrases_lost)
    of = second.classes
    assert of is not None
    second.classes = Classes(tuple(reversed(of.names)), 1 - of.of_query)
    found = compare_runs([first], [second])
    assert {c.name for c in found.by_class} == {"words", "phrase"}


def test_a_class_of_which_nothing_is_answered_alike_is_not_compared(tmp_path: Path) -> None:
    first = run(tmp_path / "a", 0.004, 0.004)
    study = Study(seed=3, classes=class_of, control="a", blocks=4)

    def other(query: int) -> dict[str, object]:
        return records.good_answer(query) | ({"total": 10_000 + query} if query >= 20 else {})

    study.add("a", server=by_class(0.002, 0.002), clients=2, seconds=6.0, answer=other)
    found = compare_records(first, open_record(study.write(tmp_path / "b")))
    words, phrase = (of(found, name, "service_p50") for name in ("words", "phrase"))
    assert words.verdict == "differs"
    assert words.queries_used == 20
    assert phrase.verdict == "not comparable"
    assert "on no query do both return the same" in phrase.reason


def test_a_sweep_is_compared_by_class_too(tmp_path: Path) -> None:
    first = swept(tmp_path / "a", by_class(0.010, 0.004))
    second = swept(tmp_path / "b", by_class(0.005, 0.008), seed=2)
    found = compare_records(first, second)
    words, phrase = (of(found, name, "response_p99") for name in ("words", "phrase"))
    assert words.ratio is not None
    assert phrase.ratio is not None
    assert words.ratio.value > 1.5
    assert phrase.ratio.value < 0.7
    assert "By class of queries and p99 of response time, the second differs overall" in (
        found.decision
    )


def test_the_terminal_the_json_and_the_page_have_the_classes(
    phrases_lost: tuple[Record, Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(record.path) for record in phrases_lost]
    page = tmp_path / "page.html"
    assert app(["compare", *paths, "--out", str(page)]) == 0
    printed = capsys.readouterr().out
    rows = [line for line in printed.splitlines() if line.startswith("phrase ")]
    assert [row.split()[1:3] for row in rows] == [["service", "p50"], ["service", "p99"]]
    assert printed.index("\nclass") > printed.index("treatment")
    assert "By class of queries" in page.read_text()
    assert "A class lost" in page.read_text()
    told = to_json(compare_records(*phrases_lost))["by_class"]
    assert {one["name"] for one in told} == {"words", "phrase"}
    assert {one["line"]["metric"] for one in told} == {"service_p50", "service_p99"}
    assert len(told) == 4


def test_a_sweep_of_closed_loops_has_the_times_of_its_classes(tmp_path: Path) -> None:
    """Each over the requests of the class that both measured."""
    runs = []
    for name, server in (("a", by_class(0.010, 0.004)), ("b", by_class(0.005, 0.006))):
        study = Study(blocks=3, classes=class_of, judging={"measure": "sweep"}, control=None)
        study.add("x2", server=server, clients=2, seconds=8, subject="x",
                  levels={"load.clients": 2})  # fmt: skip
        runs.append(open_record(study.write(tmp_path / name)))
    found = compare_records(runs[0], runs[1])
    assert {c.line.metric for c in found.by_class} == {"response_p50", "response_p99"}
    for name, ratio in (("words", 2.0), ("phrase", 0.667)):
        line = of(found, name, "response_p50")
        assert line.ratio is not None
        assert line.ratio.value == pytest.approx(ratio, rel=0.05)
        assert line.queries_measured == 20
