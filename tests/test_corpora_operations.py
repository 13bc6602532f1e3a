"""Decimate, duplicate and split: what they keep, how they are named, and their memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.corpora import RULES, complaints, open_corpus, scale_of, unscaled
from searchbench.corpora.corpus import Corpus, Document, Field, FieldType, Schema, digest
from searchbench.corpora.files import open_files
from searchbench.corpora.generated import open_generated
from searchbench.corpora.operations import decimated, duplicated, part
from searchbench.errors import CorpusError
from searchbench.workload.queries.registry import open_queries


class Listed(NamedTuple):
    """Documents of a list."""

    listed: list[Document]
    name: str
    schema: Schema

    def documents(self) -> Iterator[Document]:
        return iter(self.listed)


def numbered(count: int) -> Corpus:
    return open_generated(documents=count, words=1, words_sigma=0, fields={})


def split(corpus: Corpus, parts: int, rule: str = RULES[0]) -> list[Corpus]:
    return [part(corpus, n, parts, rule) for n in range(1, parts + 1)]


def ids(corpus: Corpus) -> list[str]:
    return [document.id for document in corpus.documents()]


def test_decimate_keeps_every_kth_document() -> None:
    corpus = decimated(numbered(10), 4)
    assert corpus.name == "generated /4"
    assert ids(corpus) == ["0", "4", "8"]
    assert ids(corpus) == ["0", "4", "8"]


def test_duplicate_gives_copy_after_copy_with_new_ids() -> None:
    corpus = duplicated(numbered(2), 3)
    assert corpus.name == "generated ×3"
    assert ids(corpus) == ["0", "1", "0#2", "1#2", "0#3", "1#3"]
    first, _, copy, *_ = corpus.documents()
    assert copy.values == first.values


def test_ids_that_look_like_copies_are_refused_rather_than_doubled() -> None:
    with pytest.raises(CorpusError, match="'0#2' ends like"):
        ids(duplicated(duplicated(numbered(2), 2), 2))


@given(count=st.integers(0, 40), parts=st.integers(1, 7))
@pytest.mark.parametrize("rule", RULES)
def test_parts_are_the_corpus_each_document_once_and_in_order(
    rule: str, count: int, parts: int
) -> None:
    corpus = numbered(max(count, 1))
    found = [ids(each) for each in split(corpus, parts, rule)]
    assert sorted(key for each in found for key in each) == sorted(ids(corpus))
    assert all(each == sorted(each, key=int) for each in found)
    if rule != "hash":
        sizes = [len(each) for each in found]
        assert max(sizes) - min(sizes) <= 1


def test_contiguous_parts_of_a_corpus_of_unknown_length_are_counted_once(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("".join(f'{{"id": "{n}", "n": {n}}}\n' for n in range(10)))
    corpus = open_files("d.jsonl", tmp_path, fields={"n": "integer"})
    assert [ids(each) for each in split(corpus, 3, "contiguous")] == [
        ["0", "1", "2"],
        ["3", "4", "5"],
        ["6", "7", "8", "9"],
    ]
    assert part(corpus, 1, 3).name == "d 1/3 (round-robin)"


def test_the_hash_rule_is_fixed_and_spreads_evenly() -> None:
    schema = Schema((Field("n", FieldType.INTEGER),))
    for key, place in (("a", 928), ("b", 668), ("Höhle", 749)):
        corpus = part(Listed([Document(key, {})], "listed", schema), place + 1, 1000, "hash")
        assert ids(corpus) == [key]
    sizes = [len(ids(each)) for each in split(numbered(8000), 4, "hash")]
    assert sum(sizes) == 8000
    assert all(abs(size - 2000) < 160 for size in sizes)


def test_the_digest_changes_with_the_operation() -> None:
    corpus = numbered(50)
    changed = [corpus, decimated(corpus, 3), duplicated(corpus, 2), *split(corpus, 2)]
    assert len({digest(each).digest for each in changed}) == 5
    assert digest(decimated(corpus, 2)).digest == digest(part(corpus, 1, 2)).digest
    assert digest(duplicated(corpus, 2)).documents == 100


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"decimate": 0}, "of at least 1, not 0"),
        ({"duplicate": 0}, "of at least 1, not 0"),
        ({"parts": 0}, "of at least 1, not 0"),
        ({"part": 0, "parts": 2}, "of at least 1, not 0"),
        ({"part": 3, "parts": 2}, "no part 3 of 2"),
        ({"part": 1, "parts": 2, "split_by": "modulo"}, "`split_by` must be one of"),
    ],
)
def test_one_changes_nothing_and_less_is_refused(spec, said) -> None:
    generated = {"family": "generated", "documents": 3}
    whole = open_corpus(generated, Path())
    assert open_corpus({**generated, **dict.fromkeys(spec, 1), "split_by": "hash"}, Path()) == whole
    with pytest.raises(CorpusError, match=said):
        open_corpus({**generated, **spec}, Path())


def test_operations_pass_on_what_became_of_the_rows(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"n": 1}\n{"n": "x"}\n')
    corpus = open_files("d.jsonl", tmp_path, fields={"n": "integer"}, bad_rows="skip")
    intake = digest(decimated(corpus, 2)).intake
    assert intake is not None
    assert intake.refused == 1


def peak_mb(code: str, *arguments: str) -> float:
    """Runs Python and returns its peak resident memory.

    VmHWM and not ru_maxrss: the latter begins with the memory of the process that forked.
    """
    end = (
        "\nimport re; from pathlib import Path"
        "\nprint(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + end, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    return int(done.stdout.split()[-1]) / 1024


STREAM = """
import sys
from searchbench.corpora.corpus import digest
from searchbench.corpora.generated import open_generated
from searchbench.corpora.operations import decimated, duplicated, part
corpus = open_generated(documents=int(sys.argv[1]))
summary = digest(part(decimated(duplicated(corpus, 2), 3), 1, 2, "hash"))
assert summary.documents > 0
"""

WRITE_AND_READ = """
import sys
from pathlib import Path
from searchbench.corpora.corpus import digest
from searchbench.corpora.write import write
from searchbench.corpora.files import open_files
from searchbench.corpora.generated import open_generated
corpus = open_generated(documents=int(sys.argv[1]), words=1, fields={})
path = Path(sys.argv[2])
written = write(corpus, path)
fields = {"title": "text", "body": "text"}
read = digest(open_files(path.name, path.parent, fields=fields))
assert (read.digest, read.documents) == (written.digest, written.documents)
"""


def test_a_hundred_megabytes_stream_through_the_operations_in_constant_memory() -> None:
    small, large = peak_mb(STREAM, "2000"), peak_mb(STREAM, "60000")
    assert large < 250
    assert large - small < 60


def test_reading_and_checking_ids_stays_far_below_the_bound(tmp_path: Path) -> None:
    small = peak_mb(WRITE_AND_READ, "2000", str(tmp_path / "a.jsonl"))
    large = peak_mb(WRITE_AND_READ, "200000", str(tmp_path / "b.jsonl"))
    # 200,000 ids take 1.6 MB at rest and three times that while runs merge.
    assert large - small < 60


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, (1, 1)),
        ({"scale": 1}, (1, 1)),
        ({"scale": 0.1}, (1, 10)),
        ({"scale": 0.3333}, (1, 3)),
        ({"scale": 1 / 3}, (1, 3)),
        ({"scale": 0.001}, (1, 1000)),
        ({"scale": 4}, (4, 1)),
        ({"scale": 4.0}, (4, 1)),
        ({"decimate": 3, "duplicate": 2}, (2, 3)),
    ],
)
def test_a_scale_is_a_thinning_or_a_multiple(spec, expected) -> None:
    assert scale_of(spec) == expected
    assert complaints({"family": "generated", **spec}) == []


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            {"scale": 0.3},
            "0.3 is neither a whole number n nor 1/n; the nearest is 0.333333 (1/3)",
        ),
        ({"scale": 0.0015}, "neither a whole number"),
        ({"scale": 1.5}, "1.5 is neither a whole number n nor 1/n; the nearest is 2"),
        ({"scale": 0}, "above 0"),
        ({"scale": -1}, "above 0"),
        ({"scale": True}, "must be a number"),
        ({"scale": 0.5, "decimate": 2}, "`scale` and `decimate` both set the size"),
        ({"scale": 2, "duplicate": 2}, "`scale` and `duplicate` both set the size"),
    ],
)
def test_a_scale_that_is_none_is_named_with_the_nearest(spec, said) -> None:
    [(key, sentence)] = complaints({"family": "generated", **spec})
    assert key == "scale"
    assert said in sentence


def test_a_scaled_corpus_has_so_many_documents(tmp_path) -> None:
    def count(**spec: object) -> int:
        table = {"family": "generated", "documents": 100, "words": 5.0, **spec}
        return sum(1 for _ in open_corpus(table, tmp_path).documents())

    assert (count(scale=0.1), count(scale=1), count(scale=3)) == (10, 100, 300)
    assert count(scale=0.1, parts=2, part=1) == 5


def sampled(spec: dict[str, object], base: Path) -> list[object]:
    corpus = open_corpus(unscaled(spec), base)
    queries = open_queries(
        {"distinct": 20, "seed": 3}, base, lambda: (d.values for d in corpus.documents()), ("body",)
    )
    return list(queries.queries)


def test_every_size_of_a_corpus_is_asked_the_same_queries(tmp_path) -> None:
    whole = {"family": "generated", "documents": 400, "words": 20.0}
    asked = sampled(whole, tmp_path)
    for thinned in (
        {"decimate": 4}, {"scale": 0.25}, {"scale": 3}, {"duplicate": 2},
        {"parts": 4, "part": 2, "split_by": "hash"},
    ):  # fmt: skip
        assert sampled({**whole, **thinned}, tmp_path) == asked
    assert sampled({**whole, "seed": 2}, tmp_path) != asked
