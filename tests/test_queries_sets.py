import gzip
import json

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from searchbench.errors import QueryError
from searchbench.workload.queries.algebra import In, Mode, Query, Sort, Terms
from searchbench.workload.queries.orders import by_first_appearance, repeat
from searchbench.workload.queries.registry import open_queries, problems
from searchbench.workload.queries.sets import QuerySet, Template, from_files

LINES = "Red Shoe\nblue\nred shoe!\n\n--\nblue\n"


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_file_of_lines_becomes_distinct_queries_and_a_log(tmp_path):
    found = from_files([write(tmp_path / "q.txt", LINES)], Template(Mode.ANY))
    assert found.queries == (
        Query(Terms(Mode.ANY, ("red", "shoe"))),
        Query(Terms(Mode.ANY, ("blue",))),
    )
    assert found.log.tolist() == [0, 1, 0, 1]
    assert found.log.dtype == np.uint32
    assert (found.distinct, found.logged, found.mean_terms, found.name) == (2, 4, 1.5, "q.txt")


def test_lines_without_a_term_are_counted_and_shown_with_their_numbers(tmp_path):
    found = from_files([write(tmp_path / "q.txt", LINES)], Template())
    assert found.bad_count == 2
    assert [b.line for b in found.bad] == [4, 5]
    assert str(found.bad[1]) == "q.txt:5: no letter or digit, so no term"


def test_bad_lines_refuse_the_file_if_asked_to(tmp_path):
    path = write(tmp_path / "q.txt", LINES)
    with pytest.raises(QueryError, match=r"2 lines are not queries: q.txt:4: .*bad_lines"):
        from_files([path], Template(), bad_lines="refuse")


def test_many_bad_lines_are_all_counted_but_few_are_kept(tmp_path):
    found = from_files([write(tmp_path / "q.txt", "a\n" + "-\n" * 500)], Template())
    assert (found.bad_count, len(found.bad)) == (500, 20)


def test_a_file_without_any_query_is_refused(tmp_path):
    with pytest.raises(QueryError, match="no usable query"):
        from_files([write(tmp_path / "q.txt", "--\n")], Template())


def test_bytes_that_are_not_utf8_are_a_bad_line(tmp_path):
    found = from_files([write(tmp_path / "q.txt", b"caf\xc3\xa9\ncaf\xe9\n")], Template())
    assert found.queries[0].match == Terms(Mode.ALL, ("café",))
    assert found.bad[0].reason.startswith("not UTF-8; convert")


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(QueryError, match=r"none.txt cannot be read: No such file"):
        from_files([tmp_path / "none.txt"], Template())


def test_packed_files_are_the_same_set(tmp_path):
    plain = from_files([write(tmp_path / "q.txt", LINES)], Template())
    packed = LINES.encode()
    gz = write(tmp_path / "q.txt.gz", gzip.compress(packed))
    zst = write(tmp_path / "q.txt.zst", zstandard.compress(packed) + zstandard.compress(b"new\n"))
    assert from_files([gz], Template()).digest == plain.digest
    assert from_files([zst], Template()).queries == (
        *plain.queries,
        Query(Terms(Mode.ALL, ("new",))),
    )


def test_a_damaged_packed_file_is_refused_and_not_read_by_half(tmp_path):
    whole = gzip.compress(("word\n" * 10_000).encode())
    with pytest.raises(QueryError, match="cannot be read"):
        from_files([write(tmp_path / "q.gz", whole[: len(whole) // 2])], Template())


def test_several_files_are_one_log(tmp_path):
    a, b = write(tmp_path / "a.txt", "x\ny\n"), write(tmp_path / "b.txt", "y\nz\n")
    found = from_files([a, b], Template())
    assert found.log.tolist() == [0, 1, 1, 2]
    assert found.name == "a.txt+b.txt"
    assert from_files([a, b], Template(), lines=3).logged == 3


def test_json_lines_take_the_algebra_or_a_text(tmp_path):
    lines = [
        {"match": {"mode": "any", "terms": ["a"]}, "limit": 5},
        {"text": "Open BSD", "match": "phrase"},
        {"text": "Open BSD"},
        {"filters": [{"in": {"field": "section", "values": ["net"]}}]},
        {"text": "--"},
        {"match": {"mode": "any", "terms": ["Not Analysed"]}},
        [],
    ]
    content = "\n".join(json.dumps(line) for line in lines) + "\n{"
    found = from_files(
        [write(tmp_path / "q.jsonl", content)], Template(rest=Query(sort=(Sort("size"),), limit=3))
    )
    assert found.queries == (
        Query(Terms(Mode.ANY, ("a",)), sort=(Sort("size"),), limit=5),
        Query(Terms(Mode.PHRASE, ("open", "bsd")), sort=(Sort("size"),), limit=3),
        Query(Terms(Mode.ALL, ("open", "bsd")), sort=(Sort("size"),), limit=3),
        Query(None, (In("section", ("net",)),), (Sort("size"),), limit=3),
    )
    assert [b.line for b in found.bad] == [5, 6, 7, 8]


def test_times_of_a_log_are_kept_and_have_to_be_whole(tmp_path):
    with_times = write(tmp_path / "t.jsonl", '{"text": "a", "t": 1.5}\n{"text": "b", "t": 3}\n')
    found = from_files([with_times], Template())
    assert found.times_s is not None
    assert found.times_s.tolist() == [1.5, 3.0]
    half = write(tmp_path / "h.jsonl", '{"text": "a", "t": 1.5}\n{"text": "b"}\n')
    with pytest.raises(QueryError, match="1 of 2 queries have no time"):
        from_files([half], Template())


def test_json_lines_with_their_words_by_another_key_name_it_and_the_remedy(tmp_path):
    theirs = write(tmp_path / "q.jsonl", '{"q": "Red shoe", "user": 7, "t": 1}\n')
    with pytest.raises(QueryError) as refused:
        from_files([theirs], Template())
    assert "q.jsonl:1: the words are expected as `text`, and the line has `q`, `user`" in str(
        refused.value
    )
    assert 'as in `text_key = "q"` in [queries]' in str(refused.value)
    found = open_queries({"file": "q.jsonl", "text_key": "q"}, tmp_path)
    assert found.queries == (Query(Terms(Mode.ALL, ("red", "shoe"))),)
    assert found.times_s is not None
    with pytest.raises(QueryError, match=r"no key `query`.*the line has `q`, `user`"):
        from_files([theirs], Template(), text_key="query")


def test_json_lines_of_ours_need_no_words(tmp_path):
    ours = write(tmp_path / "q.jsonl", '{"sort": ["-size"]}\n{"match": null}\n')
    assert from_files([ours], Template()).bad_count == 0


def test_json_lines_are_known_by_their_content_too(tmp_path):
    found = from_files([write(tmp_path / "q.json", '{"text": "a"}\n{"text": "b"}\n')], Template())
    assert [q.match for q in found.queries] == [Terms(Mode.ALL, (w,)) for w in "ab"]
    plain = write(tmp_path / "q.txt", '{braces} "and" quotes\n')
    assert from_files([plain], Template()).logged == 1
    with pytest.raises(QueryError, match="has no JSON lines, and `text_key`"):
        from_files([plain], Template(), text_key="q")


def test_the_digest_is_of_queries_and_log_and_nothing_else():
    a, b = Query(Terms(Mode.ALL, ("a",))), Query(Terms(Mode.ALL, ("b",)))
    log = np.array([0, 1, 0], dtype=np.uint32)
    one = QuerySet("one", (a, b), log)
    assert one.digest == QuerySet("other name", (a, b), log).digest
    assert one.digest != QuerySet("one", (a, b), np.array([0, 1, 1], dtype=np.uint32)).digest
    assert one.digest != QuerySet("one", (b, a), log).digest
    # Golden: records name query sets by it, so it may not change unnoticed.
    assert one.digest.startswith("14becab9cf605688")


def test_a_log_that_does_not_name_its_queries_in_order_is_refused():
    queries = (Query(Terms(Mode.ALL, ("a",))), Query(Terms(Mode.ALL, ("b",))))
    with pytest.raises(QueryError, match="in order"):
        QuerySet("x", queries, np.array([1, 0], dtype=np.uint32))
    with pytest.raises(QueryError, match="in order"):
        QuerySet("x", queries, np.array([0, 0], dtype=np.uint32))
    with pytest.raises(QueryError, match="no queries"):
        QuerySet("x", (), np.array([], dtype=np.uint32))


@given(
    st.integers(1, 60), st.integers(0, 200), st.sampled_from(["each", "uniform", "zipf"]),
    st.integers(0, 2**40),
)  # fmt: skip
def test_a_log_has_its_length_and_exactly_so_many_distinct(distinct, more, repetition, seed):
    log = repeat(distinct, distinct + more, repetition, 1.0, seed)
    assert len(log) == distinct + more
    assert set(log.tolist()) == set(range(distinct))
    assert np.array_equal(log, repeat(distinct, distinct + more, repetition, 1.0, seed))


def test_zipf_draws_fall_with_the_rank_and_uniform_ones_do_not():
    zipf = np.bincount(repeat(100, 200_000, "zipf", 1.0, 5))
    # Chance of rank 1 over that of rank 10 is 10 ** exponent; the counts are some thousands.
    assert zipf[0] / zipf[9] == pytest.approx(10, rel=0.1)
    uniform = np.bincount(repeat(100, 200_000, "uniform", 1.0, 5))
    assert uniform.max() / uniform.min() < 1.3


def test_a_log_shorter_than_its_queries_is_refused():
    with pytest.raises(QueryError, match="cannot hold"):
        repeat(10, 9, "zipf", 1.0, 0)


@given(st.lists(st.integers(0, 9), min_size=1))
def test_renumbering_keeps_the_log_and_orders_first_appearances(log):
    old, new = by_first_appearance(np.array(log, dtype=np.uint32))
    assert old[new].tolist() == log
    assert list(dict.fromkeys(new.tolist())) == list(range(len(set(log))))


def test_the_table_of_a_study_opens_a_file_with_its_template(tmp_path):
    write(tmp_path / "q.txt", LINES)
    spec = {
        "file": "q.txt", "match": "phrase", "limit": 3, "sort": ["-size"],
        "filters": [{"in": {"field": "section", "values": ["net"]}}], "facets": ["tags"],
        "search_fields": "title",
    }  # fmt: skip
    assert list(problems(spec)) == []
    [first, _] = open_queries(spec, tmp_path).queries
    assert first.match == Terms(Mode.PHRASE, ("red", "shoe"), ("title",))
    assert first.sort == (Sort("size", descending=True),)
    assert (first.limit, first.facets[0].field) == (3, "tags")


def test_a_file_can_be_repeated_into_a_longer_log(tmp_path):
    write(tmp_path / "q.txt", "a\nb\nc\n")
    found = open_queries({"file": "q.txt", "logged": 50, "repetition": "uniform"}, tmp_path)
    assert (found.distinct, found.logged) == (3, 50)


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        ({"file": "a", "files": ["b"]}, "files"),
        ({"file": "a", "distinct": 5}, "distinct"),
        ({"format": "jsonl"}, "format"),
        ({"distinct": 10, "logged": 9}, "logged"),
        ({"repetition": "zipf"}, "repetition"),
        ({"words": 30}, "words"),
        ({"words": 2, "length_weights": [1]}, "length_weights"),
        ({"length_weights": [0, 0]}, "length_weights"),
        ({"exponent": 2.0}, "exponent"),
        ({"filters": [{"in": 4}]}, "filters"),
        ({"sort": [4]}, "sort"),
        ({"facets": [{}]}, "facets"),
    ],
)
def test_keys_that_do_not_go_together_are_named(spec, key):
    assert key in {name for name, _ in problems(spec)}
