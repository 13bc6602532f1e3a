import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.errors import QueryError
from searchbench.workload.queries.algebra import Mode, Terms
from searchbench.workload.queries.analysis import terms
from searchbench.workload.queries.registry import open_queries
from searchbench.workload.queries.sample import Lengths, sample

FIELDS = ("title", "body")


def corpus(documents, seed=1, words=3000):
    """Documents of natural lengths over a vocabulary; the same each time."""

    def stream():
        rng = random.Random(seed)
        for number in range(documents):
            yield {
                "title": " ".join(f"{rng.randrange(words):04d}word" for _ in range(4)),
                "body": " ".join(
                    f"{rng.randrange(words):04d}Word," for _ in range(rng.randrange(80))
                ),
                "size": number,
            }

    return stream


def within(query, words):
    """Does one text have the query's words next to each other, in order?"""
    n = len(query)
    return any(words[i : i + n] == query for i in range(len(words) - n + 1))


def sampled(documents, **spec):
    return open_queries(spec, Path(), documents, FIELDS)


def test_there_are_exactly_so_many_distinct_queries_in_a_log_of_a_length():
    found = sampled(corpus(5000), distinct=677, logged=1000)
    assert (found.distinct, found.logged) == (677, 1000)
    assert len(set(found.queries)) == 677


def test_the_mean_number_of_words_is_that_of_the_seed_by_default():
    found = sampled(corpus(2000), distinct=400)
    assert found.mean_terms == pytest.approx(3.1, abs=0.03)


@given(
    st.lists(st.floats(0.001, 1), min_size=1, max_size=12), st.integers(1, 500), st.floats(0, 0.99)
)
def test_counts_of_lengths_are_within_one_of_their_expectation(weights, n, offset):
    counts = Lengths(tuple(weights)).counts(n, offset)
    assert counts.total() == n
    for length, weight in enumerate(weights, 1):
        assert abs(counts[length] - n * weight / sum(weights)) <= 1 + 1e-6


def test_every_all_query_matches_a_document():
    documents = [set(terms(d["title"])) | set(terms(d["body"])) for d in corpus(500)()]
    for query in sampled(corpus(500), distinct=300, match="all").queries:
        assert isinstance(query.match, Terms)
        assert any(set(query.match.terms) <= words for words in documents)


def test_every_phrase_is_found_within_one_field():
    texts = [terms(d[f]) for d in corpus(300)() for f in FIELDS]
    found = sampled(corpus(300), distinct=200, match="phrase")
    assert any(len(q.match.terms) > 4 for q in found.queries)  # type: ignore[union-attr]
    for query in found.queries:
        assert isinstance(query.match, Terms)
        assert any(within(query.match.terms, words) for words in texts)


def test_prefixes_are_beginnings_of_words_of_one_document():
    documents = [terms(d["title"]) + terms(d["body"]) for d in corpus(200)()]
    for query in sampled(corpus(200), distinct=100, match="prefix").queries:
        assert isinstance(query.match, Terms)
        assert any(
            all(any(w.startswith(p) for w in words) for p in query.match.terms)
            for words in documents
        )


@pytest.mark.parametrize("distance", [1, 2])
def test_fuzzy_words_are_within_their_distance(distance):
    documents = [terms(d["title"]) + terms(d["body"]) for d in corpus(200)()]
    found = sampled(corpus(200), distinct=60, match="fuzzy", distance=distance)

    def near(a, b):
        return len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) <= distance

    changed = 0
    for query in found.queries:
        assert isinstance(query.match, Terms)
        assert any(
            all(any(near(t, w) for w in words) for t in query.match.terms) for words in documents
        )
        changed += any(not t.endswith("word") for t in query.match.terms)
    assert changed > 0


def test_the_seed_decides_and_another_seed_decides_otherwise():
    one = sampled(corpus(1000), distinct=100, logged=200, seed=1)
    assert one.digest == sampled(corpus(1000), distinct=100, logged=200, seed=1).digest
    assert one.digest != sampled(corpus(1000), distinct=100, logged=200, seed=2).digest


def test_a_small_corpus_is_passed_over_until_there_are_enough():
    assert sampled(corpus(5), distinct=300, match="any").distinct == 300


def test_a_corpus_that_has_not_so_many_queries_says_how_many_it_has():
    with pytest.raises(QueryError, match="only 2 of 10 distinct"):
        sampled(lambda: [{"title": "one two"}], distinct=10, length_weights=[1])


def test_a_corpus_without_text_or_documents_is_refused():
    with pytest.raises(QueryError, match="only 0 of"):
        sampled(list, distinct=1)
    with pytest.raises(QueryError, match="no corpus to sample"):
        open_queries({}, Path())
    with pytest.raises(QueryError, match="`size` is not one"):
        sampled(corpus(10), distinct=1, search_fields=["size"])


def test_words_come_only_from_the_fields_that_are_searched():
    titles = {w for d in corpus(50)() for w in terms(d["title"])}
    for query in sampled(corpus(50), distinct=40, search_fields=["title"]).queries:
        assert isinstance(query.match, Terms)
        assert set(query.match.terms) <= titles
        assert query.match.fields == ("title",)


def test_short_documents_give_short_queries_and_the_mean_says_so():
    titles = [{"title": f"red shoe {n}"} for n in range(500)]
    found = open_queries({"distinct": 200, "words": 8}, Path(), lambda: titles, ["title"])
    assert found.distinct == 200
    assert max(len(q.match.terms) for q in found.queries) == 3  # type: ignore[union-attr]
    assert found.mean_terms < 3


def test_every_document_has_the_same_chance():
    # 40 documents of one word of their own, 10 drawn, 2,000 times: 500 each, deviation 19.
    documents = [{"title": f"only{i}"} for i in range(40)]
    counts = Counter(
        words[0]
        for seed in range(2000)
        for words in sample(
            lambda: documents, FIELDS, distinct=10, mode=Mode.ALL, lengths=Lengths((1.0,)),
            contiguous=False, seed=seed,
        )
    )  # fmt: skip
    assert len(counts) == 40
    assert min(counts.values()) > 500 - 5 * 19
    assert max(counts.values()) < 500 + 5 * 19


def test_the_reservoir_gives_late_documents_the_same_chance_as_early_ones():
    # 10,000 documents, a reservoir of 2 * 20 + 64: skipping has to be right for this to hold.
    documents = [{"title": f"only{i:05d}"} for i in range(10_000)]
    places = [
        int(words[0][4:])
        for seed in range(100)
        for words in sample(
            lambda: documents, FIELDS, distinct=20, mode=Mode.ALL, lengths=Lengths((1.0,)),
            contiguous=False, seed=seed,
        )
    ]  # fmt: skip
    quarters = Counter(place // 2500 for place in places)
    # 2,000 draws, 500 a quarter, deviation 19.
    assert all(abs(quarters[q] - 500) < 5 * 19 for q in range(4)), quarters


@given(
    st.floats(1, 12), st.sampled_from(["geometric", "poisson"]),
)  # fmt: skip
def test_truncated_lengths_have_exactly_the_mean_that_was_asked(mean, form):
    lengths = Lengths.of_mean(mean, form, 12)
    assert len(lengths.weights) <= 12
    assert lengths.mean == pytest.approx(mean, abs=1e-6)


def test_a_mean_that_cannot_be_is_refused():
    with pytest.raises(QueryError, match="not between 1 and 5"):
        Lengths.of_mean(6, "geometric", 5)
