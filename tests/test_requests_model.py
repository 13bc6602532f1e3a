import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.errors import QueryError
from searchbench.workload.verbatim.model import Ask, Group, RequestSet, sequence

A, B, C = Ask("/a"), Ask("/b"), Ask("/c")


def uint32(*numbers):
    return np.array(numbers, dtype=np.uint32)


def in_groups(*shares, members=None):
    asks = tuple(Ask(f"/{n}") for n in range(3 * len(shares)))
    members = members or [(3 * n, 3 * n + 1, 3 * n + 2) for n in range(len(shares))]
    groups = tuple(
        Group(f"g{n}", s, m) for n, (s, m) in enumerate(zip(shares, members, strict=True))
    )
    return RequestSet("set", asks, np.arange(len(asks), dtype=np.uint32), groups=groups)


def test_a_set_keeps_the_distinct_requests_and_the_log():
    found = RequestSet("set", (A, B, C), uint32(0, 1, 0, 2, 0))
    assert (found.distinct, found.logged) == (3, 5)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"asks": ()}, "has no requests"),
        ({"log": uint32()}, "has no requests"),
        ({"log": np.array([0])}, "must be uint32"),
        ({"log": uint32(0, 3)}, "names request 3 of 3"),
        ({"asks": (A, B, A)}, "the same request twice"),
        ({"times_s": np.array([0.0])}, "not one time for each"),
        ({"times_s": np.array([0.0, 2.0, 1.0])}, "back in time at request 3"),
        ({"times_s": np.array([0.0, np.nan, 1.0])}, "not a number"),
        ({"groups": (Group("g", 0.5, (0,)),)}, "sum to 0.5"),
        ({"groups": (Group("g", 1.0, ()),)}, "'g' of set has no requests"),
        ({"groups": (Group("g", 1.0, (3,)),)}, "names no request"),
        ({"groups": (Group("g", 2.0, (0,)), Group("h", -1.0, (1,)))}, "a share is 0 to 1"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(parts, reason):
    whole = {"name": "set", "asks": (A, B, C), "log": uint32(0, 1, 2)}
    RequestSet(**whole)
    with pytest.raises(QueryError, match=reason):
        RequestSet(**{**whole, **parts})


def test_the_digest_tells_sets_apart_by_everything_that_is_sent_and_when():
    base = {"name": "set", "asks": (A, B), "log": uint32(0, 1)}
    others = [
        {},
        {"asks": (B, A)},
        {"asks": (A, Ask("/b", "POST"))},
        {"asks": (A, Ask("/b", body=b""))},
        {"asks": (A, Ask("/b", headers=(("A", "b"),)))},
        {"asks": (A, Ask("/b", host="h"))},
        {"asks": (A, Ask("/b", port=1))},
        {"asks": (A, Ask("/b", timeout_s=1))},
        {"log": uint32(0, 1, 1)},
        {"times_s": np.array([0.0, 1.0])},
        {"times_s": np.array([0.0, 2.0])},
        {"groups": (Group("g", 1.0, (0, 1)),)},
        {"groups": (Group("g", 1.0, (1, 0)),)},
    ]
    digests = [RequestSet(**{**base, **other}).digest for other in others]
    assert len(set(digests)) == len(others)
    assert RequestSet(**{**base, "name": "renamed"}).digest == digests[0]


def test_a_record_keeps_every_request_whole():
    whole = Ask("/p", "POST", b'{"a":1}', (("X", "y"),), "h", 80, 2.5, "g")
    binary = Ask("/q", "POST", b"\xff\x00")
    statement = Ask("SELECT 1")
    hint = Ask("/* hint */ SELECT 1")
    asks = (whole, binary, statement, hint)
    lines = list(RequestSet("set", asks, uint32(0, 1, 2, 3)).lines())
    orjson.dumps(lines)
    assert lines[0] == {
        "query": 0,
        "text": "/p",
        "request": {
            "method": "POST", "body": '{"a":1}', "headers": [["X", "(not recorded)"]], "host": "h",
            "port": 80, "timeout_s": 2.5, "group": "g",
        },
    }  # fmt: skip
    assert lines[1]["request"] == {"method": "POST", "body_base64": "/wA="}
    assert lines[2]["request"] == lines[3]["request"] == {}


def test_without_groups_the_log_is_asked_in_its_order_and_again():
    found = RequestSet("set", (A, B), uint32(0, 1, 0))
    assert sequence(found, 1, 7).tolist() == [0, 1, 0, 0, 1, 0, 0]
    assert sequence(found, 1, 2).tolist() == [0, 1]
    assert sequence(found, 1, 2).dtype == np.uint32
    with pytest.raises(ValueError, match="at least one"):
        sequence(found, 1, 0)


def test_groups_get_their_shares():
    asked = sequence(in_groups(0.6, 0.3, 0.1), 5, 100_000)
    shares = np.bincount(asked // 3, minlength=3) / len(asked)
    # Standard error of 0.6: 0.0015.
    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=5 * 0.0016)


def test_within_a_group_members_are_shuffled_once_and_go_round():
    asked = sequence(in_groups(0.5, 0.5), 5, 10_000)
    of_first = asked[asked < 3]
    first_round = of_first[:3].tolist()
    assert sorted(first_round) == [0, 1, 2]
    assert of_first.tolist() == np.resize(first_round, len(of_first)).tolist()
    orders = {
        tuple(s[s < 3][:3].tolist())
        for s in (sequence(in_groups(0.5, 0.5), n, 40) for n in range(60))
    }
    assert len(orders) == 6


def test_a_member_that_is_there_twice_is_asked_twice_as_often():
    asked = sequence(in_groups(1.0, members=[(0, 1, 0)]), 5, 3000)
    assert np.bincount(asked).tolist() == [2000, 1000]


def test_a_group_without_a_share_is_never_asked():
    # 0.1 ten times sums to less than 1 by rounding: the rest belongs to the last that has a share.
    requests = in_groups(*[0.1] * 10, 0.0)
    assert sequence(requests, 5, 50_000).max() < 30


@given(st.integers(0, 2**32), st.integers(1, 300), st.integers(1, 300))
def test_a_longer_sequence_begins_as_the_shorter_one(seed, one, other):
    requests = in_groups(0.7, 0.2, 0.1)
    short, long = (
        sequence(requests, seed, min(one, other)),
        sequence(requests, seed, max(one, other)),
    )
    assert long[: len(short)].tolist() == short.tolist()
