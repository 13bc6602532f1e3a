import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.errors import QueryError
from searchbench.workload.verbatim.drnbench import line_of
from searchbench.workload.verbatim.files import read_requests
from searchbench.workload.verbatim.model import Ask


@pytest.fixture
def read(tmp_path):
    def read(source, **options):
        path = tmp_path / "patterns.json"
        path.write_bytes(source.encode() if isinstance(source, str) else orjson.dumps(source))
        return read_requests(path, **options)

    return read


PATH = "/path/to/endpoint"

# Every shape that drnbench's own tests name, with what becomes of it.
SHAPES = {
    "a list of paths": ([PATH], None),
    "a list of objects": ([{"path": PATH}], None),
    "a group of paths": ({"patterns": [PATH]}, [""]),
    "a group of objects": ({"patterns": [{"path": PATH}]}, [""]),
    "groups as bare lists of paths": ([[PATH]], ["1"]),
    "groups as bare lists of objects": ([[{"path": PATH}]], ["1"]),
    "groups of paths": ([{"patterns": [PATH]}], ["1"]),
    "groups of objects": ([{"patterns": [{"path": PATH}]}], ["1"]),
    "named groups as bare lists of paths": ({"group": [PATH]}, ["group"]),
    "named groups as bare lists of objects": ({"group": [{"path": PATH}]}, ["group"]),
    "named groups of paths": ({"group": {"patterns": [PATH]}}, ["group"]),
    "named groups of objects": ({"group": {"patterns": [{"path": PATH}]}}, ["group"]),
    "a named group of one pattern": ({"group": {"pattern": {"path": PATH}}}, ["group"]),
    "a group of one path": ([{"pattern": PATH}], ["1"]),
    "one object alone": ({"path": PATH}, None),
}


@pytest.mark.parametrize(("source", "groups"), SHAPES.values(), ids=SHAPES)
def test_every_shape_of_drnbench_is_read(read, source, groups):
    found = read(source)
    assert [ask.text for ask in found.asks] == [PATH]
    assert [ask.method for ask in found.asks] == ["GET"]
    assert [group.name for group in found.groups] == (groups or [])
    assert [group.share for group in found.groups] == ([1.0] if groups else [])
    assert found.log.tolist() == [0]


def test_a_file_with_everything_is_read_as_drnbench_means_it(read):
    found = read(
        """
        {
          "user search": {
            "frequency": 0.61, "method": "GET", "host": "users.example", "port": 81, "timeout": 2,
            "patterns": [
              { "path": "/users?q=foo" },
              { "path": "/users?q=bar", "host": "other.example", "port": "82", "timeout": 0.5 },
              "/users?q=baz"
            ]
          },
          "item load": {
            "frequency": 0.32, "path": "/d/load?table=Item", "method": "post",
            "patterns": [ { "body": [{"_key": "a"}] }, { "body": "raw", "headers": {"A": "b"} } ]
          },
          "rest": ["/status"]
        }
        """
    )
    own = {"host": "users.example", "port": 81, "timeout_s": 2.0, "group": "user search"}
    assert found.asks == (
        Ask("/users?q=foo", **own),
        Ask("/users?q=bar", host="other.example", port=82, timeout_s=0.5, group="user search"),
        Ask("/users?q=baz", **own),
        Ask("/d/load?table=Item", "POST", b'[{"_key":"a"}]', group="item load"),
        Ask("/d/load?table=Item", "POST", b"raw", (("A", "b"),), group="item load"),
        Ask("/status", group="rest"),
    )
    assert [group.members for group in found.groups] == [(0, 1, 2), (3, 4), (5,)]
    # The last has 1/3 for want of its own; all are divided by the sum.
    total = 0.61 + 0.32 + 1 / 3
    assert [group.share for group in found.groups] == pytest.approx(
        [0.61 / total, 0.32 / total, 1 / 3 / total]
    )


def test_frequencies_that_are_numbers_of_any_size_become_shares(read):
    found = read([{"frequency": 30, "patterns": ["/a"]}, {"frequency": "10", "pattern": "/b"}])
    assert [group.share for group in found.groups] == [0.75, 0.25]


def test_the_same_path_in_two_groups_is_two_requests(read):
    found = read({"a": ["/x", "/x"], "b": ["/x"]})
    assert [ask.group for ask in found.asks] == ["a", "b"]
    assert [group.members for group in found.groups] == [(0, 0), (1,)]


def test_an_object_that_goes_with_get_becomes_parameters_as_in_drnbench(read):
    body = {"table": "Docs", "query": "a b&c", "sort": {"by": ["x", "y"]}, "empty": None, "n": 1}
    found = read([{"path": "/d/select", "method": "GET", "body": body}])
    assert found.asks == (
        Ask("/d/select?table=Docs&query=a%20b%26c&sort[by][]=x&sort[by][]=y&empty&n=1"),
    )


def test_a_body_makes_a_post_where_no_method_is_said(read):
    found = read([{"path": "/a", "body": {"query": {"match_all": {}}}}, "/b"])
    assert [(a.method, a.body) for a in found.asks] == [
        ("POST", b'{"query":{"match_all":{}}}'),
        ("GET", None),
    ]


def test_what_a_request_does_not_say_comes_from_its_group_or_the_run(read):
    found = read({"path": "/of", "patterns": [{"body": "x"}, "/b"]}, method="PUT")
    assert [(a.text, a.method) for a in found.asks] == [("/of", "PUT"), ("/b", "PUT")]


BROKEN = {
    "a comma": ('["/a",\n "/b"\n "/c"]', r":3: not JSON"),
    "an unknown key": (
        '{"g": {\n  "frequncy": 1,\n  "patterns": ["/a"]}}',
        r":1: group 'g': `frequncy` is not known here; did you mean `frequency`\?",
    ),
    "a key of a pattern": ('[\n"/a",\n{"path": "/b", "metod": "GET"}]', r":3: .*`method`"),
    "a space": ('{"g": {"patterns": [\n"/a",\n"/b c"\n]}}', r":3: pattern 2 of group 'g'.*%20"),
    "no path": ('[{"method":\n"GET"}]', r":1: pattern 1: it has no `path`"),
    "a number": ('["/a",\n\n7]', r":3: pattern 2: a request is a path or an object"),
    "a scalar": ("7", r":1: 7 is neither a list nor an object; expected a list of paths"),
    "a frequency": ('[{"frequency": "often", "patterns": ["/a"]}]', r"`frequency` must be a num"),
    "below 0": ('[{"frequency": -1, "patterns": ["/a"]}]', r"0 or more, not -1"),
    "all 0": ('[{"frequency": 0, "patterns": ["/a"]}]', r"every group has the frequency 0"),
    "no patterns": ('{"g": {"frequency": 1}, "h": ["/a"]}', r"group 'g': it has no `patterns`"),
    "empty patterns": ('{"g": {"patterns": []}}', r"`patterns` must be a list of requests"),
    "both": ('{"g": {"patterns": ["/a"], "pattern": "/b"}}', r"`pattern` and `patterns`"),
    "a port": ('[{"path": "/a", "port": 70000}]', r"`port` must be a number from 1 to 65535"),
    "a timeout": ('[{"path": "/a", "timeout": 0}]', r"seconds above 0, not 0"),
    "a command": ('{"g": {"command": "search", "patterns": [{}]}}', r"mode http-droonga"),
    "a list of nothing": ("[]", r"has no requests; expected a path a line"),
    "a bare word": ('["select"]', r"'select' is not a path: a path begins with /"),
}


@pytest.mark.parametrize(("source", "reason"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_told_with_its_line_and_what_would_be_right(read, source, reason):
    with pytest.raises(QueryError, match=reason):
        read(source)


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def trails(value, at=()):
    yield at
    if isinstance(value, dict):
        for key, part in value.items():
            yield from trails(part, (*at, key))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from trails(part, (*at, number))


@given(TREES)
def test_the_line_of_every_value_is_found(tree):
    # One value or bracket a line, so that the truth is the count of those before it.
    lines = ['{"pad":', "0,", '"tree":']

    def write(value, at, found):
        found[at] = len(lines) + 1
        if isinstance(value, dict):
            lines.append("{")
            for number, (key, part) in enumerate(value.items()):
                lines.append(("," if number else "") + orjson.dumps(key).decode() + ":")
                write(part, (*at, key), found)
            lines.append("}")
        elif isinstance(value, list):
            lines.append("[")
            for number, part in enumerate(value):
                if number:
                    lines.append(",")
                write(part, (*at, number), found)
            lines.append("]")
        else:
            lines.append(orjson.dumps(value).decode())

    found = {}
    write(tree, ("tree",), found)
    lines.append("}")
    text = "\n".join(lines)
    for trail in trails(tree, ("tree",)):
        assert line_of(text, trail) == found[trail]
