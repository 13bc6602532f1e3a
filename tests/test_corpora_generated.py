"""Generated text: reproducible, and true to the laws it declares."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from searchbench.corpora import open_corpus
from searchbench.corpora.conform import Conformer
from searchbench.corpora.corpus import digest
from searchbench.corpora.generated import GeneratedCorpus, open_generated
from searchbench.corpora.laws import LARGEST, Zipf, spell, word
from searchbench.errors import CorpusError


def made(**options: Any) -> GeneratedCorpus:
    return open_generated(**options)


def tokens(corpus: GeneratedCorpus) -> list[str]:
    found: list[str] = []
    for document in corpus.documents():
        text = f"{document.values['title']} {document.values['body']}"
        found += text.lower().replace(".", "").split()
    return found


def test_the_same_seed_gives_the_same_text_and_another_another() -> None:
    first = digest(made(documents=2500))
    assert digest(made(documents=2500)) == first
    assert digest(made(documents=2500, seed=2)).digest != first.digest


def test_the_text_is_the_same_on_every_machine_and_with_every_numpy() -> None:
    """The digest as it was first made: a change here breaks comparison with older records."""
    summary = digest(made(documents=3000, seed=7))
    assert summary.digest == "185d8f26808289f189e22d24ad8f54fe202c0ae399c88545755e802ac8e919bc"
    assert summary.text_bytes == 2714213


def test_the_text_does_not_depend_on_the_vector_unit_of_the_processor() -> None:
    """NumPy takes other code for exp and log where there is AVX-512, and it may round apart."""
    names = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
    code = (
        "from searchbench.corpora.corpus import digest\n"
        "from searchbench.corpora.generated import open_generated\n"
        "print(digest(open_generated(documents=3000)).digest)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(disabled)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for disabled in ([], names)
    }
    assert len(found) == 1


def test_a_smaller_corpus_begins_a_larger_one() -> None:
    large = islice(made(documents=5000).documents(), 1500)
    assert list(made(documents=1500).documents()) == list(large)


def test_documents_are_made_without_those_before_them() -> None:
    corpus = made(documents=5000)
    every = list(corpus.documents())
    assert len(every) == corpus.count == 5000
    assert list(made(documents=5000).between(2040, 3100)) == every[2040:3100]
    assert list(corpus.between(4990, 9000)) == every[4990:]
    assert list(corpus.between(7, 7)) == []


def test_documents_fit_their_schema() -> None:
    corpus = made(documents=1100)
    for document in corpus.documents():
        assert Conformer(corpus.schema)(document.values) == document.values
    assert len({document.id for document in corpus.documents()}) == 1100


def test_texts_are_sentences() -> None:
    for document in made(documents=300).documents():
        body, title = document.values["body"], document.values["title"]
        assert body.endswith(".")
        assert title[0].isupper()
        assert "." not in title
        for sentence in body[:-1].split(". "):
            assert sentence[0].isupper()
            assert sentence[1:] == sentence[1:].lower()
            assert "  " not in sentence


@pytest.mark.parametrize("exponent", [0.8, 1.0, 1.2])
def test_word_frequencies_follow_zipf_with_the_declared_exponent(exponent: float) -> None:
    counts = Counter(tokens(made(documents=8000, zipf_exponent=exponent)))
    frequencies = np.array([count for _, count in counts.most_common(1000)], float)
    ranks = np.arange(1, 1001)
    slope, _ = np.polyfit(np.log(ranks[9:] + 2.7), np.log(frequencies[9:]), 1)
    assert -slope == pytest.approx(exponent, abs=0.05)


@pytest.mark.parametrize(("k", "beta"), [(44.0, 0.49), (20.0, 0.6)])
def test_the_vocabulary_grows_by_heaps_law_with_the_declared_constants(
    k: float, beta: float
) -> None:
    words = tokens(made(documents=30_000, heaps_k=k, heaps_beta=beta))
    seen: set[str] = set()
    lengths, distinct = [], []
    step = len(words) // 30
    for place in range(0, len(words), step):
        seen.update(words[place : place + step])
        lengths.append(min(place + step, len(words)))
        distinct.append(len(seen))
    slope, height = np.polyfit(np.log(lengths[8:]), np.log(distinct[8:]), 1)
    assert slope == pytest.approx(beta, abs=0.05)
    assert distinct[-1] == pytest.approx(k * len(words) ** beta, rel=0.05)
    assert np.isfinite(height)


def test_lengths_of_bodies_are_lognormal_with_the_declared_median_and_sigma() -> None:
    corpus = made(documents=6000, words=80, words_sigma=0.6)
    lengths = [len(document.values["body"].split()) for document in corpus.documents()]
    assert np.median(lengths) == pytest.approx(80, rel=0.04)
    assert np.std(np.log(lengths)) == pytest.approx(0.6, rel=0.04)


def test_a_word_comes_again_in_its_document_by_burst() -> None:
    def distinct_share(burst: float) -> float:
        bodies = [d.values["body"].split() for d in made(documents=2000, burst=burst).documents()]
        return float(np.mean([len(set(body)) / len(body) for body in bodies]))

    assert distinct_share(0.5) < distinct_share(0.0) - 0.15


def test_words_are_distinct_pronounceable_and_short_where_frequent() -> None:
    table, lengths = spell(1, 200_001)
    assert len(np.unique(table, axis=0)) == 200_000
    assert lengths[:960].max() <= 6
    assert lengths.max() <= 14
    for rank in (1, 960, 961, 116_160, 116_161, LARGEST):
        assert word(rank).isalpha()
        assert set(word(rank)) & set("aeiou")
    alone, _ = spell(150_000, 150_001)
    assert (alone[0] == table[149_999]).all()


def test_zipf_ranks_stay_within_their_bounds() -> None:
    uniform = np.array([0.0, 0.5, 1 - 2**-53])
    for exponent in (0.5, 1.0, 2.0):
        found = Zipf(exponent, 2.7).ranks(uniform, 1000.0)
        assert found[0] == 1
        assert found[-1] == 1000
    assert Zipf(1.0).ranks(uniform, 1.0).tolist() == [1, 1, 1]


def test_zipf_draws_are_within_a_percent_of_the_law_itself() -> None:
    uniform = (np.arange(2_000_000) + 0.5) / 2_000_000
    drawn = np.bincount(Zipf(1.0, 2.7).ranks(uniform, 5000.0), minlength=5001)[1:] / 2_000_000
    law = (np.arange(1, 5001) + 2.7) ** -1.0
    law /= law.sum()
    assert np.abs(drawn[:200] / law[:200] - 1).max() < 0.01


FIELDS = {
    "kind": {"type": "keyword", "distribution": "zipf", "distinct": 20, "exponent": 1.0},
    "tags": {"type": "keywords", "distinct": 30, "mean": 2},
    "die": {"type": "integer", "low": 1, "high": 6},
    "votes": {"type": "integer", "distribution": "zipf", "distinct": 1000, "exponent": 1.5},
    "weight": {"type": "float", "distribution": "normal", "mean": 70.0, "sd": 10.0},
    "price": {"type": "float", "distribution": "lognormal", "median": 20.0, "sigma": 0.5},
    "seen": {"type": "date", "low": "2020-01-01", "high": "2021-01-01"},
    "sold": {"type": "boolean", "share": 0.25, "missing": 0.5},
}


def test_fields_have_their_declared_distributions() -> None:
    corpus = made(documents=8000, words=3, fields=FIELDS)
    documents = [document.values for document in corpus.documents()]

    def column(name: str) -> list[Any]:
        return [values[name] for values in documents if name in values]

    kinds = Counter(column("kind")).most_common()
    assert len(kinds) == 20
    assert kinds[0][1] / kinds[9][1] == pytest.approx(11, rel=0.3)
    assert set(column("die")) == {1, 2, 3, 4, 5, 6}
    assert np.mean(column("die")) == pytest.approx(3.5, abs=0.1)
    assert np.mean(column("weight")) == pytest.approx(70, abs=0.5)
    assert np.std(column("weight")) == pytest.approx(10, rel=0.05)
    assert np.median(column("price")) == pytest.approx(20, rel=0.05)
    assert np.std(np.log(column("price"))) == pytest.approx(0.5, rel=0.05)
    assert len(column("sold")) / 8000 == pytest.approx(0.5, abs=0.03)
    assert np.mean(column("sold")) == pytest.approx(0.25, abs=0.03)
    low = datetime(2020, 1, 1, tzinfo=UTC).timestamp() * 1000
    assert all(low <= date < low + 366 * 86_400_000 for date in column("seen"))
    assert max(map(len, column("tags"))) <= 4
    assert all(len(set(tags)) == len(tags) for tags in column("tags"))


def test_the_values_of_a_field_do_not_depend_on_the_other_fields() -> None:
    every = [d.values["die"] for d in made(documents=100, fields=FIELDS).documents()]
    alone = made(documents=100, fields={"die": FIELDS["die"]})
    assert [document.values["die"] for document in alone.documents()] == every


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"n": "integer"}, "must be a table"),
        ({"n": {"type": "intger"}}, r'type "intger".*did you mean integer\?'),
        ({"n": {"type": "text"}}, 'type "text"'),
        ({"n": {"type": "float", "distribution": "gauss"}}, "distribution 'gauss'"),
        ({"n": {"type": "integer", "lo": 5}}, r"no key 'lo'.*did you mean low\?"),
        ({"n": {"type": "integer", "low": 5, "high": 5}}, "not below"),
        ({"n": {"type": "date", "low": "soon"}}, "an ISO 8601 date is expected"),
        ({"n": {"type": "boolean", "share": 2}}, "goes from 0 to 1"),
        ({"n": {"type": "float", "low": "x"}}, "a number is expected"),
        ({"title": {"type": "keyword"}}, "needs another name"),
        ({"id": {"type": "keyword"}}, "needs another name"),
    ],
)
def test_a_field_that_is_wrong_is_one_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CorpusError, match=sentence):
        open_corpus({"family": "generated", "fields": fields}, Path())


def test_laws_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(CorpusError, match="more distinct words than a text has"):
        made(heaps_k=200, heaps_beta=0.9)
    with pytest.raises(CorpusError, match="can be spelt"):
        made(documents=10**13)


def test_long_documents_make_small_blocks() -> None:
    corpus = made(documents=3, words=200_000, words_sigma=0.1)
    assert corpus.block_documents == 1
    assert all(len(d.values["body"]) > 600_000 for d in corpus.documents())
