import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.corpora.corpus import Field, FieldType, Schema
from searchbench.corpora.validate import validate
from searchbench.errors import QueryError
from searchbench.workload.queries.algebra import (
    Boolean,
    Facet,
    In,
    Mode,
    NotIn,
    Query,
    Range,
    Sort,
    Terms,
)
from searchbench.workload.queries.forms import from_json, to_json, to_text

NAMES = st.sampled_from(["title", "body", "section", "size"])
WORDS = st.text("abcdeé0189", min_size=1, max_size=6)
TERMS = st.builds(
    Terms,
    st.sampled_from(list(Mode)),
    st.lists(WORDS, min_size=1, max_size=4).map(tuple),
    st.lists(NAMES, max_size=2).map(tuple),
    st.sampled_from([1, 2]),
)


def _booleans(inner):
    parts = st.lists(inner, max_size=2).map(tuple)
    built = st.builds(Boolean, parts, parts, parts)
    return built.filter(lambda b: b.must or b.should or b.must_not)


MATCHES = st.recursive(TERMS, _booleans, max_leaves=6)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
RANGES = st.builds(Range, NAMES, NUMBERS, st.none() | NUMBERS, st.booleans(), st.booleans())
VALUES = st.lists(WORDS | st.integers(-9, 9) | st.booleans(), max_size=3).map(tuple)
FILTERS = RANGES | st.builds(In, NAMES, VALUES) | st.builds(NotIn, NAMES, VALUES)
QUERIES = st.builds(
    Query,
    st.none() | MATCHES,
    st.lists(FILTERS, max_size=2).map(tuple),
    st.lists(st.builds(Sort, NAMES, st.booleans()), max_size=2).map(tuple),
    st.lists(st.builds(Facet, NAMES, st.integers(1, 99)), max_size=2).map(tuple),
    st.none() | NAMES,
    st.integers(0, 100),
    st.integers(0, 100),
    st.lists(NAMES, max_size=2).map(tuple),
    st.lists(NAMES, max_size=2).map(tuple),
)


@given(QUERIES)
def test_a_query_survives_its_json_form(query):
    assert from_json(json.loads(json.dumps(to_json(query)))) == query


@given(QUERIES)
def test_every_query_has_one_line_of_text(query):
    assert to_text(query)
    assert "\n" not in to_text(query)


def test_absent_keys_have_the_defaults_of_the_format():
    assert from_json({}) == Query()
    assert from_json({"match": {"mode": "any", "terms": ["a"]}}) == Query(Terms(Mode.ANY, ("a",)))


def test_all_reasons_are_given_at_once():
    payload = {
        "match": {"mode": "anny", "terms": ["Two words"], "distance": 3},
        "filters": [{"range": {"field": "size"}}, {"within": {}}],
        "sort": [{"field": 4}],
        "limit": -1,
        "limmit": 3,
    }
    with pytest.raises(QueryError) as caught:
        from_json(payload)
    message = str(caught.value)
    for part in (
        "did you mean `any`?", '"Two words" is not one term', "distance",
        "neither `low` nor `high`",
        "`within`", "`sort[0].field`", "`limit` must be an integer of at least 0, not -1",
        "did you mean `limit`?",
    ):  # fmt: skip
        assert part in message


@pytest.mark.parametrize(
    "payload",
    [None, [], "x", {"match": 4}, {"match": {}}, {"match": {"must": [{}]}}, {"filters": {}},
     {"match": {"mode": "any", "terms": []}}, {"limit": True}, {"match": {"terms": "abc"}},
     {"filters": [{"in": {"field": "a"}}]}, {"facets": [{"field": "a", "limit": 0}]}],
)  # fmt: skip
def test_what_is_no_query_is_refused_with_a_sentence(payload):
    with pytest.raises(QueryError, match=r"must|no terms|neither|empty"):
        from_json(payload)


def test_hostile_nesting_is_refused_and_does_not_exhaust_the_stack():
    payload = {"mode": "any", "terms": ["a"]}
    for _ in range(500):
        payload = {"must": [payload]}
    with pytest.raises(QueryError, match="nests deeper"):
        from_json({"match": payload})


def test_the_text_form_reads_like_a_query():
    query = Query(
        Boolean(
            must=(Terms(Mode.ANY, ("linux", "kernel")),),
            must_not=(Terms(Mode.PHRASE, ("open", "bsd"), ("title",)),),
        ),
        filters=(Range("size", 10, None, include_low=False), NotIn("section", ("net", "web"))),
        sort=(Sort("size", descending=True),),
        limit=20,
    )
    assert to_text(query) == (
        '(linux OR kernel) NOT title:("open bsd") | 10 < size | section not in (net, web) '
        "| sort size desc | limit 20"
    )
    assert to_text(Query()) == "everything"
    assert to_text(Query(Terms(Mode.PREFIX, ("ab", "cd")))) == "ab* AND cd*"
    assert to_text(Query(Terms(Mode.FUZZY, ("ab",), distance=2))) == "ab~2"


SCHEMA = Schema(
    (
        Field("title", FieldType.TEXT),
        Field("section", FieldType.KEYWORD),
        Field("tags", FieldType.KEYWORDS),
        Field("size", FieldType.INTEGER),
        Field("body", FieldType.TEXT, stored=False),
    )
)


def test_a_query_that_fits_its_schema_is_silent():
    validate(
        Query(
            Terms(Mode.ALL, ("a",), ("title",)),
            (Range("size", 1, 2), In("section", ("net",)), NotIn("tags", ("x",))),
            (Sort("size"), Sort("_score", descending=True)),
            (Facet("tags"),),
            "section",
            fields=("title",),
            snippets=("title",),
        ),
        SCHEMA,
    )


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (Query(Terms(Mode.ALL, ("a",), ("titel",))), "no field `titel`; did you mean `title`?"),
        (Query(Boolean(must=(Terms(Mode.ALL, ("a",), ("section",)),))), "of type keyword"),
        (Query(filters=(Range("tags", 1),)), "does not do for a range"),
        (Query(filters=(Range("size", "big"),)), '"big" cannot be compared'),
        (Query(filters=(In("size", (True,)),)), "true cannot be compared"),
        (Query(sort=(Sort("title"),)), "fields that can: section, size"),
        (Query(facets=(Facet("size"),)), "does not do for facets"),
        (Query(group_by="title"), "does not do for grouping"),
        (Query(fields=("nothing",)), "no field `nothing`"),
        (Query(snippets=("section",)), "does not do for snippets"),
        (Query(snippets=("body",)), "`body` is not stored, so there are no snippets of it"),
        (Query(snippets=("nothing",)), "no field `nothing`"),
    ],
)
def test_a_query_that_does_not_fit_its_schema_says_why(query, said):
    with pytest.raises(QueryError) as caught:
        validate(query, SCHEMA)
    assert said in str(caught.value)


def test_terms_need_a_text_field():
    with pytest.raises(QueryError, match="no text field"):
        validate(Query(Terms(Mode.ALL, ("a",))), Schema((Field("n", FieldType.INTEGER),)))
