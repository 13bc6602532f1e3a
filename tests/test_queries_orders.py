import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.workload.queries.orders import arrange, split

LOGS = st.lists(st.integers(0, 50), min_size=1, max_size=200).map(
    lambda log: np.array(log, dtype=np.uint32)
)


def runs(order):
    """What each client asks."""
    return [
        order.sequence[a:b].tolist()
        for a, b in zip(order.client_starts[:-1], order.client_starts[1:], strict=True)
    ]


@given(LOGS, st.integers(1, 20))
def test_logged_order_split_over_clients_is_the_log_when_put_together(log, clients):
    order = arrange(log, "logged", clients=clients)
    size = max(len(log), clients)
    together = [query for run in runs(order) for query in run]
    assert together == np.resize(log, size).tolist()


@given(st.integers(0, 1000), st.integers(1, 50))
def test_runs_are_contiguous_and_differ_by_at_most_one(length, clients):
    starts = split(length, clients)
    lengths = np.diff(starts.astype(np.int64))
    assert starts[0] == 0
    assert starts[-1] == length
    assert len(lengths) == clients
    assert lengths.max() - lengths.min() <= 1
    assert lengths.tolist() == sorted(lengths.tolist(), reverse=True)


@given(LOGS, st.integers(0, 2**32))
def test_shuffled_is_a_permutation_of_the_log(log, seed):
    order = arrange(log, "shuffled", seed=seed)
    assert sorted(order.sequence.tolist()) == sorted(log.tolist())


@given(LOGS, st.integers(1, 5), st.integers(0, 2**32))
def test_a_longer_shuffled_sequence_repeats_whole_permutations(log, passes, seed):
    order = arrange(log, "shuffled", seed=seed, length=passes * len(log))
    for part in order.sequence.reshape(passes, len(log)):
        assert sorted(part.tolist()) == sorted(log.tolist())


@given(LOGS, st.integers(0, 500), st.integers(0, 2**32))
def test_drawn_has_the_length_asked_and_only_what_the_log_has(log, length, seed):
    order = arrange(log, "drawn", seed=seed, length=length)
    assert len(order.sequence) == length
    assert set(order.sequence.tolist()) <= set(log.tolist())


@pytest.mark.parametrize("order", ["logged", "shuffled", "drawn"])
def test_every_client_has_something_to_ask_even_of_a_short_log(order):
    log = np.array([3, 4], dtype=np.uint32)
    assert all(runs(arrange(log, order, clients=7, seed=1)))


def test_the_seed_decides_the_order():
    log = np.arange(100, dtype=np.uint32)
    for order in ("shuffled", "drawn"):
        one = arrange(log, order, seed=1).sequence
        assert np.array_equal(one, arrange(log, order, seed=1).sequence)
        assert not np.array_equal(one, arrange(log, order, seed=2).sequence)


def test_what_crosses_to_the_core_is_uint32():
    order = arrange(np.array([1, 2], dtype=np.uint32), "logged", clients=2)
    assert order.sequence.dtype == order.client_starts.dtype == np.uint32


def test_nothing_cannot_be_put_in_order():
    with pytest.raises(ValueError, match="needs a log"):
        arrange(np.array([], dtype=np.uint32), "logged")
