"""What is judged by class: figures, comparisons, promises, and which class breaks first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import records
from queues import Server as Queue
from queues import fixed
from records import Study, good_answer
from searchbench.analysis.capacity import first
from searchbench.analysis.capacity.bracket import bracket
from searchbench.analysis.capacity.pace import TRIALS, Driven, Seen, following, warmup_s
from searchbench.analysis.capacity.promise import judge as judge_promise
from searchbench.analysis.compare import by_class as by_class_of
from searchbench.analysis.compare import failed
from searchbench.analysis.judge import judge, steps_json, to_json
from searchbench.analysis.judgement import (
    ClassSeen,
    Curve,
    Estimate,
    Judgement,
    TreatmentResult,
    TrialResult,
)
from searchbench.analysis.trial.classes import REST, SHOWN, Classes
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.trial.replies import OTHERWISE
from searchbench.record import open_record
from searchbench.report.document.assemble import document
from searchbench.report.sheets import write_sheets
from searchbench.terminal import classes as on_terminal
from searchbench.workload.load_table import parse_promise

WORDS, PHRASE = range(20), range(20, 40)


def class_of(number: int) -> str:
    return "words" if number in WORDS else "phrase"


def by_class(words_s: float, phrase_s: float, sd: float = 0.05) -> records.Server:
    return lambda due, query, rng: (
        np.where(query < 20, words_s, phrase_s) * np.exp(sd * rng.standard_normal(due.size))
    )


def two(path: Path, a: records.Server, b: records.Server, **more: object) -> Judgement:
    study = Study(blocks=5, classes=class_of, control="a", **more)  # type: ignore[arg-type]
    study.add("a", system="tantivy", server=a, levels={"system": "tantivy"})
    study.add("b", system="sqlite", server=b, levels={"system": "sqlite"})
    return judge(open_record(study.write(path)))


def seen(found: tuple[ClassSeen, ...], name: str) -> ClassSeen:
    (one,) = (each for each in found if each.name == name)
    return one


def test_each_class_has_its_own_times_and_shares_add_up(tmp_path: Path) -> None:
    found = two(tmp_path / "r", by_class(0.002, 0.010), by_class(0.004, 0.004))
    a = found.treatments[0]
    words, phrase = seen(a.classes, "words"), seen(a.classes, "phrase")
    assert words.figures["service_p50"].value == pytest.approx(0.002, rel=0.05)
    assert phrase.figures["service_p50"].value == pytest.approx(0.010, rel=0.05)
    span = phrase.figures["service_p99"].interval
    assert span is not None
    assert span.low <= phrase.figures["service_p99"].value <= span.high
    shares = [one.figures["share"].value for one in a.classes]
    assert sum(shares) == pytest.approx(1, abs=0.01)
    rates = sum(one.figures["throughput"].value for one in a.classes)
    assert rates == pytest.approx(a.figures["throughput"].value, rel=0.01)
    assert all("error_share" in one.figures for one in a.classes)


def test_first_asks_are_those_of_the_class_itself(tmp_path: Path) -> None:
    found = two(tmp_path / "r", by_class(0.002, 0.010), by_class(0.004, 0.004))
    for treatment in found.treatments:
        for trial in treatment.trials:
            whole = trial.figures["first_asks"].value
            seen_ = [one.figures for one in trial.classes]
            each = [(figures["share"].value, figures["first_asks"]) for figures in seen_]
            assert sum(share * of.value for share, of in each) == pytest.approx(whole, abs=1e-9)
            assert all(0 <= of.value <= 1 and of.n > 0 for _, of in each)


def test_replies_that_are_others_under_load_may_all_be_of_one_class() -> None:
    """0.9 % of all, and phrases are 5 % of all: 18 % of the phrases."""
    nothing = Curve("s", (), ())
    trial = TrialResult(
        "t", "t", 0, False, "valid", "", {OTHERWISE: Estimate(0.009, "share", 400)}, {}, (),
        classes=(ClassSeen("phrase", 50, {"share": Estimate(0.05, "share", 1000)}),
                 ClassSeen("rare", 5, {"share": Estimate(0.005, "share", 1000)})),
    )  # fmt: skip
    of = TreatmentResult("t", "t", "t", {}, {}, nothing, nothing, (trial,))
    assert failed.otherwise(by_class_of.of_treatment(of, "phrase")) == pytest.approx(0.18)
    assert failed.otherwise(by_class_of.of_treatment(of, "rare")) == 1.0


def test_records_without_classes_have_none(tmp_path: Path) -> None:
    found = judge(open_record(records.two_systems(tmp_path / "r", blocks=2)))
    assert not found.class_comparisons
    assert not any(t.classes for t in found.treatments)
    assert on_terminal.table(found) == ((), ())


def test_faster_overall_and_slower_for_a_class_is_said(tmp_path: Path) -> None:
    found = two(tmp_path / "r", by_class(0.010, 0.004), by_class(0.002, 0.006))
    (whole,) = (c for c in found.comparisons if c.metric == "throughput")
    assert whole.verdict == "faster"
    own = {
        one.name: one.compared
        for one in found.class_comparisons
        if one.compared.metric == "throughput"
    }
    assert own["words"].verdict == "faster"
    assert own["phrase"].verdict == "slower"
    assert own["words"].ratio is not None
    assert own["words"].ratio.value == pytest.approx(5, rel=0.1)
    assert own["phrase"].ratio is not None
    assert own["phrase"].ratio.value == pytest.approx(4 / 6, rel=0.1)
    assert own["phrase"].queries_used == 20
    said = "By class of queries and throughput, sqlite is faster overall, but slower for phrase "
    assert said in found.verdict.decision
    assert any(point.startswith(said) for point in found.verdict.points)


def test_a_class_without_a_difference_is_not_resolved(tmp_path: Path) -> None:
    found = two(tmp_path / "r", by_class(0.004, 0.004), by_class(0.002, 0.004))
    own = {(o.name, o.compared.metric): o.compared.verdict for o in found.class_comparisons}
    assert own["words", "throughput"] == "faster"
    assert own["phrase", "throughput"] == "not resolved"
    assert "not resolved for phrase" in found.verdict.decision


def test_answers_agree_by_class_and_a_class_without_agreement_is_not_compared(
    tmp_path: Path,
) -> None:
    study = Study(blocks=3, classes=class_of)

    def other(query: int) -> dict[str, object]:
        answer = good_answer(query)
        return answer if query in WORDS else {**answer, "total": answer["total"] + 1}

    study.add("a", system="tantivy", server=by_class(0.004, 0.004), levels={"system": "tantivy"})
    study.add("b", system="sqlite", server=by_class(0.002, 0.002), levels={"system": "sqlite"},
              answer=other)  # fmt: skip
    found = judge(open_record(study.write(tmp_path / "r")))
    (agreement,) = found.agreement
    assert agreement.by_class == {"words": (20, 20), "phrase": (0, 20)}
    own = {(o.name, o.compared.metric): o.compared for o in found.class_comparisons}
    assert own["words", "throughput"].verdict == "faster"
    assert own["phrase", "throughput"].verdict == "not comparable"


def swept(path: Path, servers: dict[str, records.Server], **judging: object) -> Judgement:
    study = Study(blocks=3, control=None, classes=class_of,
                  judging={"measure": "sweep", **judging})  # fmt: skip
    for name, server in servers.items():
        for rate in (100.0, 200.0):
            study.add(f"{name}{rate:g}", system=name, server=server, rate_per_s=rate, seconds=11,
                      levels={"system": name, "load.rate_per_s": rate}, subject=name)  # fmt: skip
    return judge(open_record(study.write(path)))


def test_a_sweep_compares_its_subjects_by_class(tmp_path: Path) -> None:
    found = swept(tmp_path / "r", {"x": by_class(0.010, 0.004), "y": by_class(0.002, 0.008)})
    own = {(o.name, o.compared.verdict) for o in found.class_comparisons}
    assert own == {("words", "faster"), ("phrase", "slower")}
    assert "By class of requests" in found.verdict.decision
    step = steps_json(found)[0]
    assert [one["name"] for one in step["classes"]] == ["words", "phrase"]
    header, rows = on_terminal.table(found)  # each load once, over its three blocks
    assert header[:3] == ("treatment", "class", "share")
    assert len(rows) == len(found.steps) * 2 / 3


def test_a_promise_that_one_class_alone_breaks_is_broken_by_that_class(tmp_path: Path) -> None:
    promise = "words: p99 < 20ms; phrase: p99 < 20ms; errors < 10%"
    found = swept(tmp_path / "r", {"x": by_class(0.004, 0.030)}, promises=(promise,))
    (promised,) = found.steps[0].promises
    assert promised.verdict == "broken"
    assert promised.condition == "phrase: p99 < 20ms"
    broken = "broken at 100 and 200 requests per second, by phrase: p99 < 20ms."
    assert broken in found.verdict.decision
    assert promised.conditions == {
        "words: p99 < 20ms": "kept", "phrase: p99 < 20ms": "broken", "errors < 10%": "kept",
    }  # fmt: skip
    assert "requests of the class phrase took 20 ms or more" in promised.why
    assert promised.why.endswith("(kept: words: p99 < 20ms and errors < 10%)")
    whole = swept(tmp_path / "s", {"x": by_class(0.004, 0.030)}, promises=("p25 < 20ms",))
    assert whole.steps[0].promises[0].verdict == "kept", "over all it is not broken"


def test_a_promise_for_a_class_that_nobody_asked_cannot_be_told(tmp_path: Path) -> None:
    found = swept(tmp_path / "r", {"x": by_class(0.004, 0.004)}, promises=("rare: p99 < 1s",))
    (promised,) = found.steps[0].promises
    assert promised.verdict == "cannot tell"
    assert "no request of the class rare was due" in promised.why


def test_the_page_and_the_sheets_have_the_classes(tmp_path: Path) -> None:
    two(tmp_path / "r", by_class(0.010, 0.004), by_class(0.002, 0.006))
    record = open_record(tmp_path / "r")
    found = judge(record)
    sections = {s.id: s for s in document(record, found).sections}
    kinds = [block.kind for block in sections["classes"].blocks]
    assert kinds.count("figure") == 2
    assert kinds.count("table") >= 3
    sheets = {path.name: path for path in write_sheets(found, tmp_path)}
    lines = sheets["classes.csv"].read_text().splitlines()
    assert any(",phrase," in line and ",service_p99," in line for line in lines)
    assert to_json(found)["class_comparisons"][0]["name"] in ("words", "phrase")


def test_of_many_classes_the_rarest_are_one(tmp_path: Path) -> None:
    names = [f"c{n}" for n in range(30) for _ in range(40 - n)]
    found = Classes.of(names).shown
    assert len(found.names) == SHOWN
    assert found.names[-1] == REST
    assert found.members(REST).size == sum(40 - n for n in range(SHOWN - 1, 30))
    numbers = Classes.of(["10 words", "2 words", "1 word", "2 words"]).shown
    assert numbers.names == ("1 word", "2 words", "10 words")
    assert numbers.members("2 words").tolist() == [1, 3]


class Two(Queue):
    """One worker, two classes: a fifth of the requests are "slow"."""

    QUICK_S, SLOW_S, SLOW = 0.002, 0.006, 0.2

    def trace(self, rate_per_s: float, seconds: float, warmup_s: float) -> Trace:
        found = super().trace(rate_per_s, seconds, warmup_s)
        due = found.due / 1e9
        query = (self.rng.random(due.size) < self.SLOW).astype(np.uint32)
        done = np.rint(1e9 * lindley(due, np.where(query == 1, self.SLOW_S, self.QUICK_S)))
        classes = Classes.of(["quick", "slow"])
        return replace(found, query=query, done=done.astype(np.int64), classes=classes)


def lindley(due: np.ndarray, service: np.ndarray) -> np.ndarray:
    """When each request ends that waits for one worker, first in first out."""
    before = np.cumsum(service) - service
    ends: np.ndarray = np.maximum.accumulate(due - before) + before + service
    return ends


def truth(limits_s: dict[int, float], allowed: float) -> float:
    """The greatest rate at which fewer than ``allowed`` of each class take its limit or more, by
    bisection over two million arrivals."""
    low, high = 50.0, 1 / (0.8 * Two.QUICK_S + 0.2 * Two.SLOW_S)
    rng = np.random.default_rng(11)
    gaps, query = rng.exponential(1.0, 2_000_000), rng.random(2_000_000) < Two.SLOW
    service = np.where(query, Two.SLOW_S, Two.QUICK_S)
    for _ in range(18):
        rate = (low + high) / 2
        due = np.cumsum(gaps / rate)
        response = lindley(due, service) - due
        kept = all((response[query == of] >= s).mean() < allowed for of, s in limits_s.items())
        low, high = (rate, high) if kept else (low, rate)
    return low


def search_of(promise: str, start_per_s: float, seed: int) -> Seen:
    conditions = parse_promise(promise)
    server = Two(fixed(1, 0.002), np.random.default_rng([seed, 7]))
    driven: list[Driven] = []
    while wanted := following(Seen(driven), TRIALS - len(driven), start_per_s):
        rate, seconds = wanted.rate_per_s, wanted.seconds
        trace = server.trace(rate, seconds, warmup_s(seconds))
        driven.append(Driven(rate, seconds, judge_promise(conditions, trace), full=wanted.full))
    return Seen(driven)


@pytest.mark.parametrize(("quick_ms", "slow_ms", "breaks"), [(15, 60, "quick"), (40, 20, "slow")])
def test_a_search_finds_the_limit_of_the_class_that_breaks_first_and_names_it(
    quick_ms: int, slow_ms: int, breaks: str
) -> None:
    promise = f"quick: p95 < {quick_ms}ms; slow: p95 < {slow_ms}ms"
    own = {"quick": {0: quick_ms / 1e3}, "slow": {1: slow_ms / 1e3}}
    limits = {name: truth(limit, 0.05) for name, limit in own.items()}
    right = limits[breaks]
    assert right == min(limits.values())
    runs = [search_of(promise, right * start, seed) for seed, start in enumerate((0.5, 0.9, 1.5))]
    found = [bracket(seen) for seen in runs]
    inside = [(b.holds or 0) <= right <= (b.fails or 1e9) for b in found]
    assert sum(inside) >= 2, [(b.holds, right, b.fails) for b in found]
    for seen_by in runs:
        chances = first.breaks_first([seen_by], parse_promise(promise))
        assert chances[0].of_class == breaks
        assert first.sentence(chances).startswith(f"What breaks first is {breaks}: p95 < ")
    assert first.breaks_first(runs, parse_promise("p95 < 15ms")) == ()


def test_two_classes_that_break_at_one_rate_are_not_told_apart() -> None:
    # The same wait, 13 ms, breaks both.
    promise = "quick: p95 < 15ms; slow: p95 < 19ms"
    found = first.breaks_first([search_of(promise, 250.0, 3)], parse_promise(promise))
    assert first.sentence(found).startswith("What breaks first is not told apart: ")
    assert sum(one.chance for one in found) == pytest.approx(1)


def test_a_window_without_a_request_of_a_class_neither_keeps_nor_breaks() -> None:
    server = Two(fixed(1, 0.002), np.random.default_rng(1))
    trace = server.trace(100, 5, 0)
    none = replace(trace, query=np.zeros_like(trace.query))
    judged = judge_promise(parse_promise("quick: p99 < 1s; slow: p99 < 1s"), none)
    assert judged.verdict == "unclear"
    assert judged.seems_kept
    only = Driven(100.0, 5.0, judged)
    assert only.room > 1
