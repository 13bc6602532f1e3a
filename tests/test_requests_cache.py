"""What is promised of a cache is what simulated caches do."""

from __future__ import annotations

import random
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from searchbench.errors import QueryError
from searchbench.workload.draw import CachePlan, Policy, draw, hit_rate, plan

Hits = np.ndarray[tuple[int], np.dtype[np.bool_]]


def lru(sequence: Iterable[int], entries: int) -> Hits:
    held: OrderedDict[int, None] = OrderedDict()
    hits = []
    for asked in sequence:
        hits.append(asked in held)
        held[asked] = None
        held.move_to_end(asked)
        if len(held) > entries:
            held.popitem(last=False)
    return np.array(hits)


def fifo(sequence: Iterable[int], entries: int) -> Hits:
    held: OrderedDict[int, None] = OrderedDict()
    hits = []
    for asked in sequence:
        hits.append(asked in held)
        held[asked] = None
        if len(held) > entries:
            held.popitem(last=False)
    return np.array(hits)


def replaced_at_random(sequence: Iterable[int], entries: int) -> Hits:
    rng, places, held, hits = random.Random(1), [], set(), []
    for asked in sequence:
        hits.append(asked in held)
        if asked in held:
            continue
        held.add(asked)
        if len(places) < entries:
            places.append(asked)
        else:
            place = rng.randrange(entries)
            held.remove(places[place])
            places[place] = asked
    return np.array(hits)


CACHES: dict[Policy, Callable[[Iterable[int], int], Hits]] = {
    "lru": lru,
    "fifo": fifo,
    "random": replaced_at_random,
}
MEASURED = 20_000


def measured(made: CachePlan, seed: int) -> float:
    sequence = draw(made, made.warmup_requests + MEASURED, seed).tolist()
    hits = CACHES[made.policy](sequence, made.cache_entries)
    return float(hits[made.warmup_requests :].mean())


def offered(*what: Any, **how: Any) -> CachePlan | str:
    """The plan, or why there is none."""
    try:
        return plan(*what, **how)
    except QueryError as error:
        return str(error)


def agrees(made: CachePlan, seed: int) -> None:
    # Five spreads: with some hundred examples, four would be passed by chance now and then.
    off = abs(measured(made, seed) - made.expected_hit)
    assert off <= 5 * made.spread(MEASURED) + (0.0 if made.exponent == 0 else 0.01)


@settings(max_examples=40)
@given(st.integers(1, 300), st.floats(0.05, 0.95), st.sampled_from(list(CACHES)), st.integers(0, 9))
@example(100, 0.5, "lru", 1)
@example(100, 0.8, "random", 1)
def test_equal_chances_hit_any_full_cache_as_often_as_was_wanted(
    entries: int, hit: float, policy: Policy, seed: int
) -> None:
    made = offered(entries, hit, policy=policy)
    if isinstance(made, str):
        # Few entries give few rates to choose from.
        assert "too small" in made
        assert entries < 100
        return
    assert made.expected_hit == pytest.approx(hit, abs=0.01)
    agrees(made, seed)


@settings(max_examples=40)
@given(
    st.integers(10, 300),
    st.floats(0.05, 0.95),
    st.floats(0.2, 1.4),
    st.sampled_from(list(CACHES)),
    st.integers(0, 9),
)
def test_zipf_finds_the_number_of_requests_for_an_exponent(
    entries: int, hit: float, exponent: float, policy: Policy, seed: int
) -> None:
    made = offered(entries, hit, "zipf", exponent=exponent, policy=policy)
    if isinstance(made, str):
        assert "smaller exponent" in made or "too small" in made
        return
    assert made.expected_hit == pytest.approx(hit, abs=0.01)
    assume(made.distinct < 1_000_000)
    agrees(made, seed)


@settings(max_examples=40)
@given(
    st.integers(10, 200),
    st.floats(0.05, 0.95),
    st.floats(1.1, 20),
    st.sampled_from(list(CACHES)),
    st.integers(0, 9),
)
def test_the_exponent_that_a_refusal_names_does_for_the_requests_that_there_are(
    entries: int, hit: float, times: float, policy: Policy, seed: int
) -> None:
    available = int(entries * times / hit) + 1
    told = offered(entries, hit, "zipf", available=available, policy=policy)
    named = re.search(r"zipf:([0-9.]+)", str(told))
    assume(named is not None)
    assert named is not None
    made = plan(entries, hit, "zipf", exponent=float(named[1]), available=available, policy=policy)
    assert 0.9 * available < made.distinct <= available
    agrees(made, seed)


def test_ten_entries_are_enough_and_fewer_are_refused() -> None:
    for policy in CACHES:
        for hit, exponent in ((0.3, 1.1), (0.7, 0.7), (0.7, 1.3), (0.5, 1.3)):
            agrees(plan(10, hit, "zipf", exponent=exponent, policy=policy), 1)
    assert "cannot be predicted" in refusal(9, 0.5, "zipf")


def test_a_tail_in_bins_sums_as_one_rank_at_a_time() -> None:
    for exponent, hit in ((0.3, 0.4), (1.0, 0.85), (1.7, 0.999)):
        for policy in CACHES:
            made = plan(5000, hit, "zipf", exponent=exponent, policy=policy)
            assert made.distinct > 4096
            assert made.expected_hit == pytest.approx(made.wanted_hit, abs=1e-4)


def test_the_rate_of_any_frequencies_is_known() -> None:
    assert hit_rate(np.full(200, 7.0), 100) == pytest.approx(0.5)
    assert hit_rate(np.array([3.0, 1.0, 0.0]), 2) == 1
    made = plan(100, 0.5, "zipf")
    assert hit_rate(made.weights * 9, 100) == pytest.approx(made.expected_hit)


def test_the_measured_rate_scatters_as_was_said() -> None:
    for made in (plan(50, 0.5), plan(50, 0.5, "zipf", exponent=0.7), plan(50, 0.8, "zipf")):
        rates = [
            lru(draw(made, made.warmup_requests + 500, seed).tolist(), 50)[-500:].mean()
            for seed in range(150)
        ]
        # The standard deviation of 150 rates is itself known to about 6 %.
        assert 0.7 < np.std(rates) / made.spread(500) < 1.2


def test_after_the_warm_up_the_cache_is_full_and_before_it_misses_are_expected() -> None:
    for made in (plan(100, 0.5), plan(100, 0.8), plan(100, 0.5, "zipf")):
        full_after, rates = [], []
        for seed in range(60):
            sequence = draw(made, 1000, seed)
            _, first = np.unique(sequence, return_index=True)
            full_after.append(np.sort(first)[made.cache_entries - 1] + 1)
            rates.append(lru(sequence.tolist(), 100).mean())
        assert np.mean(full_after) == pytest.approx(made.fill_requests, rel=0.05)
        assert np.mean(np.array(full_after) <= made.warmup_requests) >= 0.95
        # Until it is full, each entry is a miss.
        missed = made.cache_entries + (1 - made.expected_hit) * (1000 - made.fill_requests)
        assert np.mean(rates) == pytest.approx(1 - missed / 1000, abs=0.01)
        assert 1 - missed / 1000 < made.expected_hit - 0.01


def test_requests_that_overlap_lose_hits_but_never_more_than_there_are() -> None:
    made = plan(100, 0.5)
    assert made.overlap(1) == 0
    assert made.overlap(16) == pytest.approx(15 / 200)
    assert made.overlap(10_000) == made.expected_hit


def test_draws_are_independent_so_that_a_cache_is_hit_where_a_cycle_never_hits_it() -> None:
    made = plan(100, 0.5)
    cyclic = np.tile(np.arange(made.distinct), 20).tolist()
    assert lru(cyclic, 100).sum() == 0
    assert fifo(cyclic, 100).sum() == 0
    drawn = draw(made, 4000, 1)
    assert drawn.dtype == np.uint32
    assert lru(drawn.tolist(), 100)[made.warmup_requests :].mean() == pytest.approx(0.5, abs=0.05)
    # What follows a request does not depend on it: repeats come as often as chance has them.
    assert np.mean(drawn[1:] == drawn[:-1]) == pytest.approx(1 / 200, abs=0.006)


def test_a_longer_drawing_begins_as_the_shorter_one_and_the_most_frequent_is_the_first() -> None:
    made = plan(100, 0.5, "zipf")
    assert np.array_equal(draw(made, 500, 3), draw(made, 9000, 3)[:500])
    assert not np.array_equal(draw(made, 500, 3), draw(made, 500, 4))
    counts = np.bincount(draw(made, 200_000, 3), minlength=made.distinct)
    assert counts.argmax() == 0
    assert counts[:50] / 200_000 == pytest.approx(made.weights[:50], abs=0.003)
    assert made.weights.sum() == pytest.approx(1)


def refusal(*what: Any, **how: Any) -> str:
    with pytest.raises(QueryError) as told:
        plan(*what, **how)
    assert "\n" not in str(told.value)
    return str(told.value)


def test_what_cannot_be_had_is_refused_with_what_would_do() -> None:
    assert "ask fewer distinct requests than it has entries" in refusal(100, 1)
    assert "start it without one" in refusal(100, 0)
    assert "50 % is 0.5" in refusal(100, 50)
    assert "not a probability" in refusal(100, float("nan"))
    assert "has no entries" in refusal(0, 0.5)
    assert "no exponent" in refusal(100, 0.5, exponent=1.2)
    assert "not between 0 and 10" in refusal(100, 0.5, "zipf", exponent=-1)
    assert "too small for a hit rate of 0.8: 4 distinct requests give 0.75" in refusal(3, 0.8)
    assert "equal chances, which need 1,000" in refusal(100, 0.1, "zipf", exponent=1.5)
    assert "at most 10,000,000" in refusal(100, 1e-9)
    assert "at most 10,000,000" in refusal(20_000_000, 0.5, "zipf")


def test_too_few_requests_are_refused_with_how_many_it_takes_and_how_to_get_them() -> None:
    told = refusal(100, 0.5, available=150)
    assert "takes 200 distinct requests, and there are 150" in told
    assert "--distinct --limit 200" in told
    assert "with the exponent 0.892 (zipf:0.892)" in refusal(100, 0.5, "zipf", available=800)
    assert 790 < plan(100, 0.5, "zipf", exponent=0.892, available=800).distinct <= 800
    assert plan(100, 0.5, available=200).distinct == 200


def test_a_plan_goes_on_record() -> None:
    said = plan(100, 0.8).as_json()
    assert said["distinct"] == 125
    assert said["expected_hit"] == said["wanted_hit"] == 0.8
    assert "weights" not in said
