"""A log with other words: the load stays as it was, and the words do not."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import numpy as np
import pytest

from replaying import generated, written
from searchbench.cli import app
from searchbench.errors import QueryError
from searchbench.logs.anonymous.pseudonyms import Pseudonyms, Vocabulary
from searchbench.workload.queries.analysis import terms
from searchbench.workload.queries.registry import open_queries
from searchbench.workload.verbatim.files import read_requests

LOGS = Path(__file__).parent / "logs"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(tmp_path_factory.mktemp("generated"))


def words_of(line: dict[str, Any]) -> list[str]:
    return re.findall(r"[^\W_]+", line["text"])


def test_anonymised_searches_repeat_as_they_did_and_are_as_long(log: Path, tmp_path: Path) -> None:
    plain = written(log, tmp_path / "plain.jsonl")
    other = written(log, tmp_path / "other.jsonl", "--anonymise")
    assert len(plain) == len(other)
    a = open_queries({"file": "plain.jsonl"}, tmp_path)
    b = open_queries({"file": "other.jsonl"}, tmp_path)
    assert a.log.tolist() == b.log.tolist()
    assert a.times_s is not None
    assert b.times_s is not None
    assert b.times_s == pytest.approx(a.times_s - a.times_s[0], abs=1e-6)
    assert b.times_s[0] == 0
    replaced: dict[str, str] = {}
    asked: Counter[str] = Counter()
    for before, after in zip(plain, other, strict=True):
        one, two = words_of(before), words_of(after)
        assert [len(word) for word in one] == [len(word) for word in two]
        assert before["class"] == after["class"]
        for word, instead in zip(one, two, strict=True):
            assert word != instead
            assert replaced.setdefault(word, instead) == instead
        asked.update(set(one))
    assert len(set(replaced.values())) == len(replaced)
    # Words that are asked often trade places with such as are asked about as often.
    often = [word for word, n in asked.items() if n >= 10]
    ratio = [asked[replaced[word]] / asked[word] for word in often if replaced[word] in asked]
    assert len(ratio) > 0.9 * len(often)
    assert np.mean([0.5 <= r <= 2 for r in ratio]) > 0.9
    # Rare words are nobody's: they are made up.
    rare = {word for word, n in asked.items() if n < 10}
    assert not any(replaced[word] in often for word in rare)


def test_a_key_gives_the_same_words_in_another_log(tmp_path: Path) -> None:
    line = "[Fri Nov 20 20:39:57.302 2026] 0.003 sec [all/0/rel 9 (0,20)] [docs] {}\n"
    one, two = tmp_path / "one.log", tmp_path / "two.log"
    one.write_text("".join(line.format(text) for text in ["red lamp", "red lamp 2024"] * 12))
    two.write_text("".join(line.format(text) for text in ["blue lamp", "Red 2024 smith"] * 2))
    key = tmp_path / "key.json"
    a = written(one, tmp_path / "a.jsonl", "--anonymise", "--key", str(key))
    assert key.stat().st_mode & 0o077 == 0
    b = written(two, tmp_path / "b.jsonl", "--anonymise", "--key", str(key))
    (red, lamp, year) = words_of(a[1])
    assert words_of(b[0])[1] == lamp
    assert words_of(b[1])[:2] == [red.capitalize(), year]
    assert year.isdigit()
    assert {"red", "lamp", "smith", "blue", "2024"}.isdisjoint(
        {words_of(line)[0].lower() for line in (a[0], b[0])} | {words_of(b[1])[2]}
    )
    c = written(two, tmp_path / "c.jsonl", "--anonymise")
    assert [words_of(line) for line in c] != [words_of(line) for line in b]
    key.write_text("{}")
    with pytest.raises(QueryError, match="is not a key"):
        app(["logs", str(one), "--queries", str(tmp_path / "d.jsonl"), "--anonymise", "--key",
             str(key)])  # fmt: skip


def test_words_of_documents_take_the_place_of_such_as_are_in_as_many(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    names = ["".join(chr(97 + c) for c in rng.integers(0, 26, 5)) for _ in range(400)]
    in_documents = {name: int(2 ** rng.uniform(0, 12)) for name in names}
    (tmp_path / "words.txt").write_text("".join(f"{w}\t{n}\n" for w, n in in_documents.items()))
    line = "[Fri Nov 20 20:39:57.302 2026] 0.003 sec [all/0/rel 9 (0,20)] [docs] {}\n"
    asked = [*names[:200], "zzzzzz", "qqqqq"]
    (tmp_path / "query.log").write_text("".join(line.format(w) for w in asked))
    argv = ["--anonymise", "--documents", str(tmp_path / "words.txt")]
    file = written(tmp_path / "query.log", tmp_path / "out.jsonl", *argv)
    instead = [found["text"] for found in file]
    assert all(word in in_documents for word in instead[:200])
    ratio = np.array([in_documents[b] / in_documents[a] for a, b in zip(asked[:200], instead[:200],
                                                                       strict=True)])  # fmt: skip
    assert np.mean((ratio > 0.49) & (ratio < 2.01)) > 0.95
    # What no document has becomes what no document has.
    assert not {*instead[200:]} & {*in_documents, "zzzzzz", "qqqqq"}
    assert [len(word) for word in instead[200:]] == [6, 5]


@pytest.mark.parametrize("name", ["nginx-combined.log", "groonga-query.log", "opensearch-slow.json",
                                  "sphinx-query-sphinxql.log", "mariadb-slow.log",
                                  "postgresql-stderr-duration.log", "nginx-json.log"])  # fmt: skip
def test_requests_keep_their_structure_and_lose_their_words(name: str, tmp_path: Path) -> None:
    plain = written(LOGS / name, tmp_path / "plain.jsonl")
    other = written(LOGS / name, tmp_path / "other.jsonl", "--anonymise")
    a, b = (read_requests(tmp_path / f"{n}.jsonl") for n in ("plain", "other"))
    assert a.log.tolist() == b.log.tolist()
    changed = 0
    for before, after in zip(plain, other, strict=True):
        assert before.keys() == after.keys()
        assert before["index"] == after["index"]
        one, two = (_plainly(line) for line in (before, after))
        if "sql" in before:
            # Comments go.
            one = re.sub(r"/\*.*?\*/|--.*|^#.*", " ", one)
        # Everything but words and numbers stands where it stood.
        assert re.sub(r"[^\W_]+", "w", one) == re.sub(r"[^\W_]+", "w", two)
        changed += one != two
    assert changed > len(plain) / 2
    # What a server understood, it still understands: names of columns and commands are there.
    for known in ("select", "match_columns", "output_columns", "WHERE", "FROM", "_search"):
        assert sum(known in json.dumps(line) for line in plain) == sum(
            known in json.dumps(line) for line in other
        )


def _plainly(line: dict[str, Any]) -> Any:
    """What is asked, with the escapes of a path undone."""
    body = json.dumps(line["body"]) if "body" in line else ""
    return line["sql"] if "sql" in line else unquote_plus(line["path"]) + body


def test_terms_are_those_of_the_declared_analysis_after_anonymising(tmp_path: Path) -> None:
    line = "[Fri Nov 20 20:39:57.302 2026] 0.003 sec [all/0/rel 9 (0,20)] [docs] {}\n"
    odd = ["東京 ラーメン", "Ωmega Straße", "naïve café 007", "ЁЛКА x", "ab1c2 9", "한국어"]
    (tmp_path / "query.log").write_text("".join(line.format(text) for text in odd))
    plain = written(tmp_path / "query.log", tmp_path / "plain.jsonl")
    other = written(tmp_path / "query.log", tmp_path / "other.jsonl", "--anonymise")
    for before, after in zip(plain, other, strict=True):
        one, two = terms(before["text"]), terms(after["text"])
        assert [len(word) for word in one] == [len(word) for word in two]
        assert all(a != b for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("alphabet", ["0123456789", "abcdefghijklmnopqrstuvwxyz", "абвгд"])
def test_made_up_words_are_a_permutation_in_which_none_stays(alphabet: str) -> None:
    every = {a + b for a in alphabet for b in alphabet}
    # Some of them are known words, which nothing may become.
    known = dict.fromkeys(sorted(every)[::3], 20)
    names = Pseudonyms(b"k" * 32, Vocabulary("log", known))
    others = Pseudonyms(b"l" * 32, Vocabulary("log", known))
    instead = {word: names.of(word) for word in every}
    assert len(set(instead.values())) == len(every)
    assert all(word != other for word, other in instead.items())
    assert {instead[word] for word in known} == set(known)
    assert {len(other) for other in instead.values()} == {2}
    assert instead != {word: others.of(word) for word in every}
