"""Servers whose replies take long, whose errors or cold state pass, and whose starts differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from queues import Floats, Serve, drawn, fixed, random
from records import Study, constant, exponential, lognormal
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement
from searchbench.record import open_record
from searchbench.terminal.answer import exit_code
from searches import Lab


def searched(
    path: Path, servers: dict[str, Serve], promise: str, per_s: float, **keys: object
) -> tuple[Judgement, int]:
    record = Lab(path, servers, (promise,), look_per_s=per_s, **keys).run()  # type: ignore[arg-type]
    judged = judge(record)
    return judged, exit_code(record, judged)


# (server, promise, what a closed loop answers); limits of 30.2 and 10.7 a second
SLOW = [
    (random(4, 0.1), "p99 < 600ms", 40.0),
    (random(1, 0.05), "p99 < 500ms", 20.0),
]


@pytest.mark.parametrize(("serve", "promise", "per_s"), SLOW, ids=["M/M/4", "M/M/1"])
def test_a_limit_of_slow_requests_is_rough_until_its_trials_are_long_enough(
    tmp_path: Path, serve: Serve, promise: str, per_s: float
) -> None:
    judged, _ = searched(tmp_path / "r", {"s": serve}, promise, per_s)
    (found,) = judged.capacity
    assert found.enough > 2, "300 late requests of 1 % are 1,000 s at 30 a second"
    if found.holds is not None or found.fails is not None:
        assert "This answer is rough: requests that take so long need longer trials" in (
            found.sentence
        )
        assert "(95 %" not in found.sentence
    assert found.chance_inside is None


def test_a_limit_of_fast_requests_is_as_sure_as_it_was(tmp_path: Path) -> None:
    judged, _ = searched(tmp_path / "r", {"s": fixed(4, 0.002)}, "p99 < 10ms", 1800.0)
    (found,) = judged.capacity
    assert found.enough == 0.3
    assert "rough" not in found.sentence
    assert (found.holds or 0) < 1740 < (found.fails or 0)


def early_errors(serve: Serve, until_s: float, share: float) -> Serve:
    """A share of the requests of the first seconds of a search fails, and none ever after."""
    began = [0.0]

    def server(due: Floats, rng: np.random.Generator) -> tuple[Floats, np.ndarray]:
        done, ok = serve(due, rng)
        fails = (began[0] + due < until_s) & (rng.random(len(due)) < share)
        began[0] += float(due[-1]) + 1.0
        return done, ok & ~fails

    return server


@pytest.mark.parametrize("until_s", [10.0, 40.0])
def test_errors_of_the_first_seconds_are_not_called_errors_at_any_rate(
    tmp_path: Path, until_s: float
) -> None:
    """Both sustain 1,740 a second."""
    servers = {"a": fixed(4, 0.002), "b": early_errors(fixed(4, 0.002), until_s, 0.01)}
    judged, status = searched(
        tmp_path / "r", servers, "p99 < 10ms, errors < 0.1%", 1500.0, effort=0.5
    )
    assert "on keeps errors" not in judged.verdict.decision
    assert (judged.verdict.best, judged.verdict.resolved) == (None, False)
    assert status != 1


def test_errors_that_last_are_errors_at_any_rate(tmp_path: Path) -> None:
    servers = {"b": early_errors(fixed(4, 0.002), 1e9, 0.01)}
    judged, status = searched(
        tmp_path / "r", servers, "p99 < 10ms, errors < 0.1%", 1500.0, effort=0.5
    )
    assert "on keeps errors < 0.1%" in judged.verdict.decision
    assert status == 1


def test_two_searches_of_servers_whose_starts_differ_show_no_usual_limit(tmp_path: Path) -> None:
    said = []
    for seed in range(6):  # speeds that scatter by 8 % mostly leave an end open
        servers = {"s": drawn(fixed(4, 0.002), 0.05)}
        judged, _ = searched(
            tmp_path / str(seed), servers, "p99 < 10ms", 1500.0, blocks=2, seed=seed, effort=0.3
        )
        (found,) = judged.capacity
        if "They do not agree" in found.sentence:
            assert found.chance_inside is None
            assert "(95 %" not in found.sentence
        said.append(found.sentence)
    assert any("from the least to the greatest of 2 searches" in one for one in said)


# A server that answers every request in the same time, however many there are, has no queue.
ALONE = [(2.0, 20.0, 10.0), (3.0, 5.0, 10.0), (1.5, 100.0, 10.0), (3.0, 20.0, 30.0)]


@pytest.mark.parametrize("arrivals", ["poisson", "constant"])
@pytest.mark.parametrize(("service_s", "rate", "window_s"), ALONE)
def test_replies_in_flight_are_no_queue(
    tmp_path: Path, service_s: float, rate: float, window_s: float, arrivals: str
) -> None:
    (step,) = driven(tmp_path / "r", constant(service_s), rate, window_s, arrivals).steps
    assert step.keeps_up is not False
    assert step.achieved is not None
    assert step.achieved.interval is not None
    assert step.achieved.interval.high > 0.99, "random arrivals are a few more at the end"
    assert not {"stalls"} & {f.kind for f in step.findings}
    assert step.promises[0].verdict != "broken"


def test_replies_in_flight_of_random_times_are_no_queue_either(tmp_path: Path) -> None:
    (step,) = driven(tmp_path / "r", exponential(2.0), 60.0, 10.0, "poisson").steps
    assert step.keeps_up is not False


def test_a_queue_that_grows_is_one_however_slow_the_replies_are(tmp_path: Path) -> None:
    def growing(due: Floats, query: Floats, rng: np.random.Generator) -> Floats:
        return 2.0 + 0.1 * due  # it serves ten of eleven

    (step,) = driven(tmp_path / "r", growing, 60.0, 20.0, "constant").steps
    assert step.keeps_up is False


@pytest.mark.parametrize("share", [0.8, 0.9, 0.95])
def test_a_slow_start_is_no_usual_number_of_replies_in_flight(tmp_path: Path, share: float) -> None:
    """The first 50 take 3 s, beside a queue that grows: it serves so much of what comes."""

    def starting(due: Floats, query: Floats, rng: np.random.Generator) -> Floats:
        work = np.full(due.size, 1 / (200 * share))
        before = np.cumsum(work) - work
        took = np.maximum.accumulate(due - before) + before + work - due
        took[:50] = np.maximum(took[:50], 3.0)
        return took

    promise = "errors < 1%"
    (step,) = driven(tmp_path / "r", starting, 200.0, 10.0, "poisson", promise).steps
    assert step.achieved is not None
    assert step.achieved.value < 0.99
    assert step.promises[0].verdict != "kept"
    if share < 0.95:
        assert step.keeps_up is False


def driven(
    path: Path,
    server: object,
    rate: float,
    window_s: float,
    arrivals: str,
    promise: str = "p99 < 5s",
) -> Judgement:
    run = Study(blocks=1, control=None, trial_noise=0.0, block_noise=0.0,
                judging={"measure": "sweep", "promises": (promise,)})  # fmt: skip
    run.add("r1", server=server, rate_per_s=rate, arrivals=arrivals, seconds=window_s + 1,  # type: ignore[arg-type]
            warmup_s=1, levels={"load.rate_per_s": rate})  # fmt: skip
    return judge(open_record(run.write(path)))


def test_a_promise_is_not_broken_by_a_system_that_was_still_cold(tmp_path: Path) -> None:
    base = lognormal(0.004, 0.1)

    def cold(due: Floats, query: Floats, rng: np.random.Generator) -> Floats:
        return base(due, query, rng) * np.where(due < 8, 12.0, 1.0)

    def leaking(due: Floats, query: Floats, rng: np.random.Generator) -> Floats:
        return base(due, query, rng) * 2 ** (due / 10)

    (step,) = driven(tmp_path / "cold", cold, 300.0, 10.0, "poisson", "p99 < 15ms").steps
    assert step.steadiness == "not steady"
    assert step.promises[0].verdict == "cannot tell"
    assert "the system became faster within the window" in step.promises[0].why
    (step,) = driven(tmp_path / "leak", leaking, 300.0, 10.0, "poisson", "p99 < 15ms").steps
    assert step.promises[0].verdict == "cannot tell"
    (step,) = driven(tmp_path / "broken", base, 300.0, 10.0, "poisson", "p99 < 3ms").steps
    assert step.promises[0].verdict == "broken"


def test_a_quick_search_of_a_fast_server_is_not_rough_for_slow_requests(tmp_path: Path) -> None:
    """Its times vary, and at an effort of 0.1 no trial is long."""
    lab = Lab(tmp_path / "r", {"sphinx": random(4, 0.002)}, ("p99 < 20ms",), effort=0.1)
    (one,) = judge(lab.run()).capacity
    assert "This answer is rough" in one.sentence
    assert "requests that take so long" not in one.sentence


def test_a_limit_of_a_rare_quantile_is_rough_for_that_and_not_for_slow_requests(
    tmp_path: Path,
) -> None:
    judged, _ = searched(tmp_path / "r", {"s": fixed(1, 0.002)}, "p99.9 < 20ms", 400.0)
    (found,) = judged.capacity
    assert found.enough > 1, "300 late requests of 0.1 % are more than 600 s at 500 a second"
    assert found.holds is not None
    assert "rough: p99.9 < 20ms is of so rare a quantile that a trial has to have 300,000 " in (
        found.sentence
    )
    assert "requests that take so long" not in found.sentence
    assert "or promise a quantile that is less rare" in found.sentence
