"""Steps of a sweep in which the server gave other answers under load than when asked alone."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from records import Study, good_answer, single_queue
from searchbench.analysis.compare.records import compare_records
from searchbench.cli.compare import compare
from searchbench.record import open_record
from test_analysis_steps import by_clients, judged, line_of, load_run, ordered

ALONE, SAMPLED = 40, 200  # replies of a trial: captured before the drive, and kept under load
EMPTY = {"total": 0, "ids": [], "scores": []}


def sweep() -> Study:
    return load_run(queries=ALONE, under_load=SAMPLED)


def otherwise(changed: int = SAMPLED, **other: Any) -> Any:
    """Answers well when asked alone; of the replies under load the first few are others."""
    asked = count()

    def answer(query: int) -> dict[str, Any]:
        at = next(asked) % (ALONE + SAMPLED) - ALONE
        return good_answer(query) | ((other or EMPTY) if 0 <= at < changed else {})

    return answer


def lying(run: Study | None = None, **other: Any) -> Study:
    """A server of four workers that gives wrong answers, four times as fast, from 4 clients on."""
    run = by_clients((1, 2), system="liar", run=run or sweep(), seconds=11.0)
    return by_clients((4, 8), system="liar", factor=0.25, run=run, seconds=11.0,
                      answer=otherwise(**other))  # fmt: skip


def test_a_server_that_is_fast_by_other_answers_wins_nothing(tmp_path: Path) -> None:
    found = judged(lying(by_clients((1, 2, 4, 8), system="honest", run=sweep(), seconds=11.0)),
                   tmp_path / "r")  # fmt: skip
    own = [s for s in ordered(found) if s.subject == "liar"]
    assert [s.status for s in own] == ["valid", "valid", "void", "void"]
    assert line_of(found, own[2])[-1] == "void: other answers under load"
    assert found.verdict.best is None
    assert {(c.a, c.b): c.verdict for c in found.comparisons} == {
        ("honest-1", "liar-1"): "not resolved",
        ("honest-2", "liar-2"): "not resolved",
        ("honest-4", "liar-4"): "not comparable",
        ("honest-8", "liar-8"): "not comparable",
    }
    said = found.verdict.decision
    assert said.startswith("Void: 2 of 8 steps")
    assert "(other answers under load)" in said
    assert (
        "At 4 clients and 8 clients liar gave other answers than when asked alone (e.g. 200 of 200 "
        "sampled replies), so its times there are not those of the answers asked for. Lower" in said
    )
    (sentence,) = (line for line in said.split("\n") if line.startswith("liar answered up to"))
    assert ", at 2 clients. That is the last usable step" in sentence


def test_what_gives_other_answers_at_one_load_is_not_the_best_by_the_others(tmp_path: Path) -> None:
    run = by_clients((1, 2, 4), system="slow", factor=3.0, run=sweep(), seconds=11.0)
    by_clients((1, 2), system="liar", run=run, seconds=11.0)
    by_clients((4,), system="liar", run=run, seconds=11.0, answer=otherwise())
    found = judged(run, tmp_path / "r")
    assert found.verdict.best is None
    assert "At 2 of 3 equal loads liar answers" in found.verdict.decision
    assert "(1 not resolved or not comparable)" in found.verdict.decision


@pytest.mark.parametrize(("changed", "status"), [(2, "valid"), (3, "void")])
def test_of_the_sampled_replies_1_per_cent_may_be_others_as_in_a_study(
    tmp_path: Path, changed: int, status: str
) -> None:
    (step,) = judged(by_clients((2,), run=sweep(), answer=otherwise(changed)), tmp_path / "r").steps
    assert step.status == status
    (finding,) = (f for f in step.findings if f.kind == "other answers under load")
    assert finding.number == f"{changed} of 200 sampled replies"


@pytest.mark.parametrize(("outcome", "status"), [(2, "valid"), (0, "void")])
def test_errors_are_a_result_but_not_what_counts_as_answered_and_cannot_be_read(
    tmp_path: Path, outcome: int, status: str
) -> None:
    unread = EMPTY | {"total": None, "outcome": outcome, "error": "no JSON"}
    run = by_clients((2,), run=sweep(), error_share=0.1, answer=otherwise(20, **unread))
    found = judged(run, tmp_path / "r")
    assert [s.status for s in found.steps] == [status]
    assert ("failed" in found.verdict.decision) is (status == "valid")


def test_a_rate_is_not_kept_up_with_by_other_answers(tmp_path: Path) -> None:
    run = sweep()
    for rate in (100, 200):
        run.add(f"r{rate}", server=single_queue(1 / 1000), rate_per_s=rate, seconds=11.0,
                levels={"load.rate_per_s": rate},
                answer=otherwise() if rate == 200 else good_answer)  # fmt: skip
    said = judged(run, tmp_path / "r").verdict.decision
    assert "keeps up with 100 requests per second" in said
    assert "keeps up with 200" not in said
    assert "That is the highest rate of a usable step, so tantivy may sustain more" in said
    assert "At 200 requests per second tantivy gave other answers" in said


def test_nothing_is_known_where_every_step_has_other_answers(tmp_path: Path) -> None:
    found = judged(by_clients((1, 2), run=sweep(), answer=otherwise()), tmp_path / "r")
    assert not found.verdict.resolved
    assert found.void == (
        "Void: none of the 2 steps says anything about what the server sustains (other answers "
        "under load), so there is no answer."
    )
    assert "at most" not in found.verdict.decision


def test_two_sweeps_are_not_compared_where_one_gave_other_answers(tmp_path: Path) -> None:
    before = by_clients((1, 2, 4, 8), system="liar", run=sweep(), seconds=11.0)
    paths = before.write(tmp_path / "a"), lying().write(tmp_path / "b")
    a, b = map(open_record, paths)
    for found, which in ((compare_records(a, b), "second"), (compare_records(b, a), "first")):
        by_label = {line.label: line for line in found.comparisons if line.metric == "throughput"}
        assert [line.verdict for line in by_label.values()] == [
            "not resolved", "not resolved", "not comparable", "not comparable",
        ]  # fmt: skip
        last = list(by_label.values())[-1]
        assert last.ratio is None
        assert last.reason == (f"the {which} gave other answers under load than when asked alone")
        assert (found.only_in_a, found.only_in_b) == ((), ())
        assert f"Void, in the {which} record: 2 of 4 steps" in found.decision
        # What was measured well before and is not now is lost, however fast it is.
        assert found.beyond_threshold is (which == "second")
        said = (
            " Lost, answered well in the first and not in the second: liar 4 (other answers under "
            "load: 200 of 200 sampled replies); liar 8 ("
        )
        assert (said in found.decision) is (which == "second")
    assert [compare(*paths), compare(*paths[::-1])] == [1, 0]
    both = compare_records(open_record(lying().write(tmp_path / "c")), b)
    assert both.comparisons[-1].reason.startswith("the first and the second gave other answers")
    assert not both.lost


def test_a_further_run_with_other_answers_counts_for_no_line(tmp_path: Path) -> None:
    def honest(seed: int) -> Study:
        run = load_run(queries=ALONE, under_load=SAMPLED, seed=seed)
        return by_clients((1, 2, 4, 8), system="liar", run=run, seconds=11.0)

    runs = {"a": honest(1), "b": honest(2), "c": lying()}
    a, b, c = (open_record(run.write(tmp_path / name)) for name, run in runs.items())
    found = compare_records(a, b, 0.05, [c])
    assert [line.runs for line in found.comparisons if line.metric == "throughput"] == [
        (2, 1), (2, 1), (1, 1), (1, 1),
    ]  # fmt: skip


def dying(at_s: float, **more: Any) -> Study:
    """A server that is asked by 1, 2 and 4 clients, and is gone so long after the last began."""
    run = by_clients((1, 2), system="mortal", run=sweep(), seconds=11.0)
    return by_clients((4,), system="mortal", run=run, seconds=11.0, dies_at_s=at_s, **more)


def test_a_step_within_which_the_server_died_has_no_rate(tmp_path: Path) -> None:
    honest = by_clients((1, 2, 4), system="honest", factor=3.0, run=dying(4.2), seconds=11.0)
    found = judged(honest, tmp_path / "r")
    (step,) = (s for s in found.steps if s.status == "void")
    assert step.reason == "server died: after 3.2 s of 10 s"
    assert (step.label, step.answered, step.achieved) == ("mortal 4", None, None)
    assert line_of(found, step)[-1] == "void: server died"
    said = found.verdict.decision
    assert (
        "At 4 clients mortal ended (after 3.2 s of 10 s), so what it sustains there is unknown. "
        "Its log may say why." in said
    )
    assert "mortal answered up to" in said
    assert ", at 2 clients. That is the last usable step" in said
    assert found.verdict.best is None, "it wins at 1 and 2 clients, and is dead at 4"


@pytest.mark.parametrize(("share", "status"), [(0.0, "valid"), (0.05, "void")])
def test_a_worker_that_is_replaced_makes_no_step_void_while_requests_are_answered(
    tmp_path: Path, share: float, status: str
) -> None:
    note = {"kind": "server ended", "number": "", "meaning": "a process ended", "remedy": "look"}
    run = by_clients((2,), run=sweep(), error_share=share, extra={"notes": [note]})
    (step,) = judged(run, tmp_path / "r").steps
    assert step.status == status
    (finding,) = (f for f in step.findings if f.kind == "server ended")
    assert finding.number, "an empty figure tells nothing"


@pytest.mark.parametrize(
    ("at_s", "why"),
    [(4.2, "server died: after 3.2 s of 10 s"), (0.0, "no request was answered well")],
)
def test_a_load_at_which_the_second_is_dead_is_lost(tmp_path: Path, at_s: float, why: str) -> None:
    before = by_clients((1, 2, 4), system="mortal", run=sweep(), seconds=11.0)
    after = dying(at_s)
    before.blocks = after.blocks = 3
    a, b = before.write(tmp_path / "a"), after.write(tmp_path / "b")
    assert [compare(a, b), compare(b, a)] == [1, 0]
    found = compare_records(open_record(a), open_record(b))
    assert found.lost == {"mortal 4": why}
    assert f"not in the second: mortal 4 ({why})." in found.decision
    assert found.would_change[0].startswith("The second failed at mortal 4 (")


def test_a_load_at_which_the_second_died_once_is_not_known_to_be_lost(tmp_path: Path) -> None:
    before = by_clients((1, 2, 4), system="mortal", run=sweep(), seconds=11.0)
    a, b = before.write(tmp_path / "a"), dying(4.2).write(tmp_path / "b")
    assert [compare(a, b), compare(b, a)] == [3, 0]
    found = compare_records(open_record(a), open_record(b))
    assert (dict(found.lost), found.beyond_threshold, found.regressed) == ({}, False, None)
    assert found.not_known["mortal 4"].startswith("server died: after 3.2 s of 10 s, in 1 of 1")


def test_a_load_that_only_the_client_or_the_machine_spoiled_is_not_lost(tmp_path: Path) -> None:
    before = by_clients((1, 2), system="same", run=sweep(), seconds=11.0)
    after = by_clients((1,), system="same", run=sweep(), seconds=11.0)
    by_clients((2,), system="same", run=after, seconds=11.0, lag_ns=3_000_000)
    a, b = (open_record(run.write(tmp_path / n)) for n, run in (("a", before), ("b", after)))
    found = compare_records(a, b)
    assert (dict(found.lost), found.beyond_threshold) == ({}, False)
    assert found.only_in_a == ()
    assert "spoilt by the load generator" in found.not_known["same 2"]
