import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.errors import StudyError
from searchbench.workload.load_table import (
    kind_of,
    problems,
    promise_problems,
    resolve,
    resolve_told,
)
from searchbench.workload.loads import (
    ClosedLoop,
    Load,
    OpenLoop,
    Replay,
    Window,
    open_load,
    read_times,
)

NS = 1_000_000_000
TEN_S = Window(seconds=10)


def test_a_constant_rate_is_due_at_equal_gaps():
    due = OpenLoop(1000, "constant").due_ns(TEN_S, seed=1)
    assert due.dtype == np.int64
    assert len(due) == 10_000
    assert due[0] == 0
    assert set(np.diff(due).tolist()) == {1_000_000}


def test_a_rate_that_divides_badly_does_not_drift():
    due = OpenLoop(3, "constant").due_ns(Window(seconds=1000), seed=1)
    assert len(due) == 3000
    assert abs(int(due[2997]) - 999 * NS) <= 1


def test_poisson_arrivals_have_the_mean_and_the_dispersion_of_a_poisson_process():
    due = OpenLoop(2000, "poisson").due_ns(Window(seconds=100), seed=4)
    # 200,000 arrivals: a standard error of the rate of 0.22 %.
    assert len(due) == pytest.approx(200_000, rel=5 * 0.0022)
    counts = np.bincount(due // (NS // 100), minlength=10_000)
    # Index of dispersion (variance over mean of counts in 10,000 windows): 1, error 0.014.
    assert counts.var() / counts.mean() == pytest.approx(1, abs=5 * 0.0142)
    gaps = np.diff(due)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.02)


def test_a_constant_rate_has_no_dispersion_so_the_test_above_can_tell():
    due = OpenLoop(2000, "constant").due_ns(Window(seconds=100), seed=4)
    counts = np.bincount(due // (NS // 100), minlength=10_000)
    assert counts.var() / counts.mean() < 0.01


def test_a_longer_poisson_window_begins_as_the_shorter_one():
    short = OpenLoop(500).due_ns(Window(seconds=5), seed=9)
    longer = OpenLoop(500).due_ns(Window(seconds=60, warmup_s=3), seed=9)
    assert np.array_equal(short, longer[: len(short)])
    assert longer[-1] < 63 * NS
    assert not np.array_equal(short, OpenLoop(500).due_ns(Window(seconds=5), seed=10)[: len(short)])


@given(
    st.floats(0.1, 5000), st.sampled_from(["poisson", "constant"]), st.integers(1, 5000),
    st.integers(0, 100),
)  # fmt: skip
def test_a_window_of_requests_has_exactly_so_many_due_times(rate, arrivals, requests, warmup):
    window = Window(requests=requests, warmup_requests=warmup)
    due = OpenLoop(rate, arrivals).due_ns(window, seed=1)
    assert len(due) == requests + warmup
    assert (np.diff(due) >= 0).all()


def test_a_closed_loop_has_no_due_times():
    assert Load(ClosedLoop(4), TEN_S).due_ns(1) is None


def test_replay_takes_the_logs_own_times_at_a_multiple_of_its_speed(tmp_path):
    path = tmp_path / "times.txt"
    path.write_text("100.5\n101\n101\n103.5\n")
    window = Window(seconds=100)
    assert Replay(path).due_ns(window).tolist() == [0, NS // 2, NS // 2, 3 * NS]
    assert Replay(path, speed=2).due_ns(window).tolist() == [0, NS // 4, NS // 4, 3 * NS // 2]
    assert len(Replay(path).due_ns(Window(seconds=3))) == 3
    assert len(Replay(path).due_ns(Window(requests=2))) == 2
    logged = np.array([5.0, 6.0])
    assert Replay().due_ns(window, logged).tolist() == [0, NS]


def test_times_come_from_json_lines_and_packed_files_too(tmp_path):
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "a", "t": 1}\n{"text": "b", "t": 2.5}\n'))
    assert read_times(path).tolist() == [1, 2.5]


def test_times_that_cannot_be_replayed_say_why(tmp_path):
    with pytest.raises(StudyError, match="no times to replay"):
        Replay().due_ns(TEN_S)
    with pytest.raises(StudyError, match="back in time at query 3"):
        Replay().due_ns(TEN_S, np.array([1.0, 2.0, 1.5]))
    path = tmp_path / "times.txt"
    path.write_text("1\n2\nsoon\n")
    with pytest.raises(StudyError, match=r"times.txt:3:1: this is not a number of seconds"):
        read_times(path)
    path.write_text("1\nnan\n")
    with pytest.raises(StudyError, match="not finite"):
        read_times(path)
    with pytest.raises(StudyError, match="No such file"):
        read_times(tmp_path / "none.txt")


def test_the_measured_window_in_seconds_starts_after_the_warm_up():
    window = Window(seconds=10, warmup_s=2.5)
    assert window.bounds_ns(np.array([], dtype=np.int64)) == (2_500_000_000, 12_500_000_000)


def test_the_measured_window_in_requests_holds_exactly_those():
    window = Window(requests=3, warmup_requests=2)
    due = np.array([50, 10, 20, 30, 40, 60], dtype=np.int64)
    start, end = window.bounds_ns(due)
    assert [d for d in sorted(due.tolist()) if start <= d < end] == [30, 40, 50]


@pytest.mark.parametrize(
    "given_keys", [{}, {"seconds": 1, "requests": 1}, {"seconds": 1, "warmup_requests": 1}]
)
def test_a_window_is_either_seconds_or_requests(given_keys):
    with pytest.raises(ValueError, match="window"):
        Window(**given_keys)


@pytest.mark.parametrize(
    ("given_keys", "kind"),
    [({}, "closed"), ({"clients": 2}, "closed"), ({"rate_per_s": 5}, "open"),
     ({"speed": 2.0}, "replay"), ({"kind": "replay"}, "replay"),
     ({"arrivals": "constant"}, "open")],
)  # fmt: skip
def test_the_kind_of_a_load_follows_from_its_keys(given_keys, kind):
    assert kind_of(given_keys) == kind


def test_a_table_becomes_a_load():
    load = open_load({"clients": 4, "think_s": 0.5, "seconds": 5, "cpus": [1]}, Path())
    until_steady = Window(seconds=5, warmup_s=60, until_steady=True)
    assert load == Load(ClosedLoop(4, 0.5), until_steady, cpus=(1,))
    assert (load.connections, load.think_ns, load.stop_ns) == (4, NS // 2, 65 * NS)
    fixed = open_load({"seconds": 5, "warmup_s": 1}, Path())
    assert fixed.window == Window(seconds=5, warmup_s=1)
    assert load.stop_after is None
    counted = open_load({"requests": 100, "warmup_requests": 10}, Path())
    assert (counted.stop_ns, counted.stop_after) == (None, 110)
    paced = open_load({"rate_per_s": 10, "connections": 7, "requests": 5}, Path())
    assert (paced.loop, paced.connections) == (OpenLoop(10.0, "poisson", 7), 7)
    assert paced.stop_after is None


@pytest.mark.parametrize(
    "given_keys",
    [{}, {"clients": 3, "requests": 7}, {"rate_per_s": 4.0, "warmup_s": 0.0},
     {"warmup_limit_s": 20.0},
     {"kind": "replay", "speed": 3.0}],
)  # fmt: skip
def test_a_whole_table_means_the_same_as_the_short_one(given_keys):
    assert open_load(resolve(given_keys), Path()) == open_load(given_keys, Path())
    assert open_load(resolve_told(given_keys), Path()) == open_load(given_keys, Path())
    assert None not in resolve_told(given_keys).values()


@pytest.mark.parametrize(
    ("given_keys", "key"),
    [
        ({"clients": 2, "rate_per_s": 5}, "clients"),
        ({"clients": 2, "connections": 5}, "connections"),
        ({"kind": "open"}, "kind"),
        ({"arrivals": "constant"}, "arrivals"),
        ({"kind": "closed", "speed": 2.0}, "speed"),
        ({"kind": "replay", "order": "shuffled"}, "order"),
        ({"requests": 5, "seconds": 5}, "requests"),
        ({"requests": 5, "warmup_s": 5}, "requests"),
        ({"requests": 5, "warmup_limit_s": 5}, "requests"),
        ({"warmup_s": 5, "warmup_limit_s": 5}, "warmup_limit_s"),
        ({"kind": "replay", "warmup_limit_s": 5}, "warmup_limit_s"),
        ({"warmup_requests": 5}, "warmup_requests"),
        ({"cpus": [0, 0]}, "cpus"),
        ({"cpus": [-1]}, "cpus"),
    ],
)
def test_keys_that_do_not_go_together_are_named(given_keys, key):
    assert key in {name for name, _ in problems(given_keys)}
    with pytest.raises(StudyError):
        open_load(given_keys, Path())


def test_how_long_a_load_lasts_is_estimated():
    assert open_load({"seconds": 5, "warmup_s": 2}, Path()).expected_s() == 7
    assert open_load({"seconds": 5, "warmup_limit_s": 2}, Path()).expected_s() == 7
    assert 5 < open_load({"seconds": 5}, Path()).expected_s() < 10
    assert open_load({"requests": 100, "rate_per_s": 10}, Path()).expected_s() == 10
    assert open_load({"requests": 100, "clients": 2}, Path()).expected_s(0.01) == 0.5


def test_a_replay_without_seconds_sends_the_whole_log(tmp_path):
    path = tmp_path / "times.txt"
    path.write_text("".join(f"{100 + i / 10}\n" for i in range(301)))  # 30 s
    load = open_load({"times": path.name}, tmp_path)
    due = load.due_ns(1)
    assert len(due) == 301
    assert (due[0], due[-1]) == (0, 30 * NS)
    assert load.stop_ns is None
    start, end = load.window.bounds_ns(due)
    assert start == 0
    assert 30 * NS < end <= 30 * NS + NS // 1000
    assert load.expected_s(logged_s=30) == 30


def test_a_replay_lasts_as_long_as_its_log_at_its_own_speed_or_as_it_is_told():
    logged = np.array([0.0, 10.0, 30.0])
    fast = open_load({"speed": 2.0}, Path())
    assert fast.due_ns(1, logged).tolist() == [0, 5 * NS, 15 * NS]
    assert fast.expected_s(logged_s=30) == 15
    cut = open_load({"kind": "replay", "seconds": 12}, Path())
    assert len(cut.due_ns(1, logged)) == 2
    assert cut.window.bounds_ns(np.array([0])) == (0, 12 * NS)
    warm = open_load({"kind": "replay", "warmup_s": 5}, Path())
    assert warm.window.bounds_ns(warm.due_ns(1, logged))[0] == 5 * NS
    counted = open_load({"kind": "replay", "requests": 2}, Path())
    assert len(counted.due_ns(1, logged)) == 2
    for given_keys in ({"speed": 2.0}, {"kind": "replay", "seconds": 12}):
        assert open_load(resolve_told(given_keys), Path()) == open_load(given_keys, Path())


SEARCH = {"find_capacity": True, "slo": ["p99 < 50ms"], "connections": 32, "arrivals": "constant"}


def test_what_the_trials_of_a_search_share_is_the_table_without_what_it_chooses():
    shared = resolve_told(SEARCH)
    assert shared["kind"] == "open"
    assert not {"rate_per_s", "seconds", "warmup_s", "find_capacity", "slo", "effort"} & set(shared)
    look = {"kind": "closed", "clients": 16, "seconds": 2.0, "warmup_s": 0.0}
    assert open_load(resolve_told({**shared, **look}), Path()) == open_load(look, Path())
    chosen = {"kind": "open", "rate_per_s": 50.0, "seconds": 3.0, "warmup_s": 1.0}
    told = resolve_told({**shared, **chosen, "promise": 0, "full": True})
    assert open_load(told, Path()).loop == OpenLoop(50.0, "constant", 32)
    assert (told["promise"], told["full"]) == (0, True)


@pytest.mark.parametrize(
    ("given_keys", "key", "said"),
    [
        ({**SEARCH, "rate_per_s": 5}, "rate_per_s", "chooses `rate_per_s` itself"),
        ({**SEARCH, "seconds": 5}, "seconds", "chooses `seconds` itself"),
        ({**SEARCH, "clients": 5}, "clients", "chooses `clients` itself"),
        ({**SEARCH, "kind": "closed"}, "kind", "drives open loops"),
        ({"find_capacity": True}, "find_capacity", "needs a promise"),
        ({"find_capacity": True, "slo": []}, "slo", "needs a promise"),
        ({"abort": True}, "abort", "give one with `slo`"),
        ({**SEARCH, "abort": True}, "abort", "goes on after a broken promise"),
        ({"find_capacity": False, "effort": 2.0}, "effort", "add find_capacity = true"),
        ({"cache_entries": 10}, "cache_entries", "goes with `cache_hit`"),
        ({"cache_hit": 0.0, "cache_law": "zipf:0"}, "cache_law", "as in zipf:0.8"),
        ({"cache_hit": 0.5, "cache_law": "pareto"}, "cache_law", "uniform, zipf, or zipf:EXPONENT"),
        ({"ssh": "ssh -p 22"}, "ssh", "there are none"),
    ],
)
def test_keys_of_searches_caches_and_machines_have_their_sentences(given_keys, key, said):
    assert any(key == name and said in sentence for name, sentence in problems(given_keys))


def test_promises_that_cannot_be_kept_track_of_are_named_by_their_number():
    wrong = ["p99 < 50ms", "p99 < 50", "p99<0.05s", "errors < 1%, p99 > 5ms"]
    found = dict(promise_problems({"slo": wrong}))
    assert set(found) == {1, 2, 3}
    assert "is not a promise" in found[1]
    assert found[2].endswith("is the same promise as number 1")
    assert '"p99 > 5ms" (character 14) is not a promise' in found[3]
