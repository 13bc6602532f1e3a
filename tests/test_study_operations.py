"""[operations] of a study: methods as a factor, and every mistake in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchbench.errors import StudyError
from searchbench.study import Study
from searchbench.study.inputs import look
from searchbench.study.planner import make_plan
from searchbench.study.quick import read_quick
from searchbench.study.read import parse_study

TOP = """question = "?"
[corpus]
family = "table"
table = "data"
rows = 500
[systems.mariadb]
[systems.postgresql]
"""
FETCH = """[operations.fetch]
key = "id"
draws = 3
[operations.fetch.methods.in]
sql = 'SELECT * FROM data WHERE id IN ([each ",": {id}])'
[operations.fetch.methods.singles]
systems = "mariadb"
sql = \"\"\"
-- @each
SELECT * FROM data WHERE id = {id};
\"\"\"
"""


def read(rest: str, base: Path = Path()) -> Study:
    return parse_study(TOP + rest, "study.toml", base)


def looked(rest: str, base: Path) -> None:
    study = read(rest, base)
    look(study, make_plan(study))


def wrong(rest: str, base: Path = Path()) -> list[str]:
    with pytest.raises(StudyError) as found:
        looked(rest, base)
    return [str(complaint).removeprefix("study.toml:") for complaint in found.value.complaints]


def test_each_method_is_a_treatment_of_each_system_that_it_is_for() -> None:
    plan = make_plan(read(FETCH + '[factors]\n"operations.fetch.rows" = [1, 10]\n'))
    assert [t.label for t in plan.treatments] == [
        "mariadb method=in rows=1",
        "mariadb method=in rows=10",
        "mariadb method=singles rows=1",
        "mariadb method=singles rows=10",
        "postgresql method=in rows=1",
        "postgresql method=in rows=10",
    ]
    operation = plan.treatments[3].operation
    assert (operation["name"], operation["method"], operation["rows"]) == ("fetch", "singles", 10)
    assert (operation["key"], operation["order"], operation["draws"]) == (["id"], "random", 3)
    assert plan.judging.factors["method"] == ["in", "singles"]
    assert plan.judging.metric == "service_p50"
    assert all("queries" not in t.settings for t in plan.treatments)


def test_a_factor_of_one_operation_does_not_multiply_another() -> None:
    more = '[operations.all.methods.count]\nsql = "SELECT COUNT(*) FROM data"\n'
    rows = '[factors]\n"operations.fetch.rows" = [1, 10, 100]\n'
    plan = make_plan(read(FETCH + more + rows))
    counted = [t for t in plan.treatments if t.levels["operation"] == "all"]
    assert len(counted) == 2
    assert all("operations.fetch.rows" not in t.levels for t in counted)
    assert len(plan.treatments) == 2 + 9


def test_a_file_has_the_statements_too(tmp_path: Path) -> None:
    (tmp_path / "in.sql").write_text('SELECT *\nFROM data WHERE id IN ([each ",": {idd}]);\n')
    file = '[operations.fetch]\nkey = "id"\n[operations.fetch.methods.m]\nfile = "in.sql"\n'
    (said,) = wrong(file, tmp_path)
    assert said.startswith("11:8: line 1 of in.sql: {idd} is not a column of the key: `key` has id")
    (said,) = wrong(file.replace("in.sql", "ni.sql"), tmp_path)
    assert "the statements cannot be read from " in said
    assert "No such file" in said
    assert "in.sql" in said


FILES = """question = "?"
[corpus]
family = "table"
files = "orders.csv"
key = "order_id"
indexes = ["day"]
[systems.mariadb]
[operations.fetch]
key = "order_id"
[operations.fetch.methods.in]
file = "in.sql"
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('key = "order_id"', 'key = "order_idd"',
         "5:7: there is no column 'order_idd' for the key; there are order_id, day. "
         "Did you mean order_id?"),
        ('"\nkey = "order_id"\nindexes', '"\nkey = "order_idd"\nindexes',
         "5:7: there is no column 'order_idd' for the key"),
        ('fetch]\nkey = "order_id"', 'fetch]\nkey = "order_idd"',
         '9:7: orders has no column "order_idd", which `key` of operations.fetch names '
         "(did you mean `order_id`?)"),
        ('"day"', '"dai"', "6:11: `indexes`: there is no column \"dai\"; did you mean `day`?"),
        ('files = "orders.csv"\nkey = "order_id"', 'rows = 500\nkey = "order_idd"',
         '5:7: `key`: there is no column "order_idd"'),
    ],
)  # fmt: skip
def test_a_key_of_the_study_that_is_mistyped_is_not_blamed_on_the_statements(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "orders.csv").write_text("order_id,day\n1,2024-01-01\n2,2024-01-02\n")
    sql = 'SELECT * FROM orders WHERE order_id IN ([each ",": {order_id}]);\n'
    (tmp_path / "in.sql").write_text(sql)

    def looked_at() -> None:
        study = parse_study(FILES.replace(old, new), "study.toml", tmp_path)
        look(study, make_plan(study))

    with pytest.raises(StudyError) as found:
        looked_at()
    (complaint,) = found.value.complaints
    named = str(complaint).replace(f"{tmp_path}/orders.csv:1: ", "")
    assert named.removeprefix("study.toml:").startswith(said)


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("[operations]\n", "8:2: [operations] names no operation"),
        ('[operations.f]\nkey = "id"\n', "8:13: the operation f has no method that answers it"),
        (FETCH.replace("key", "keys"), "9:1: [operations.fetch] has no key `keys`"),
        (FETCH.replace("draws = 3", "draws = 0"), "10:9: `draws` must be an integer"),
        (FETCH.replace('"mariadb"', '"mariadbb"'), "14:11: there is no system \"mariadbb\""),
        (FETCH.replace("{id}]", "{idd}]"), "12:7: line 1: {idd} is not a column of the key"),
        (FETCH.replace("-- @each", "-- @eech"), "15:7: line 1: there is no mark @eech"),
        (FETCH + "[queries]\ndistinct = 3\n", "[operations] say what is asked"),
        (FETCH + "[systems.sqlite]\n", "no method is for sqlite: sqlite is asked in `query`"),
        (FETCH + '[factors]\n"operations.fetch.key" = ["id", "a"]\n',
         "`key` of an operation cannot be a factor (there are `rows`, `order`, `draws`)"),
        (FETCH + "[operations.f.methods.m]\n",
         "in `sql`, `bql`, `http` or `query`, or in a `file`, as in"),
        (FETCH + '[factors]\n"operations.fetch.key" = ["id"]\n', "`key` of an operation cannot be"),
        (FETCH + '[factors]\n"operations.fitch.rows" = [1]\n', "there is no operation `fitch`"),
        ('[operations.f]\nrows = 3\n[operations.f.methods.m]\nsql = "SELECT 1"\n',
         "9:8: `rows` has no meaning without `key`"),
        (FETCH + '[factors]\n"operations.fetch.rows" = [1, 501]\n',
         "501 different rows are asked for, and data has 500"),
        (FETCH.replace('key = "id"', 'key = "owner_id"').replace("{id}", "{owner_id}"),
         'has no column "owner_id"'),
        (FETCH.replace("[operations.fetch.methods.in]\n",
                       "[operations.fetch.methods.in]\nsystems = [\"mariadb\"]\n")
         .replace("sql = 'SELECT", "sql = '-- @once\nSELECT 1; SELECT", 1), "this is not TOML"),
    ],
)  # fmt: skip
def test_mistakes_are_complained_of_in_their_place(rest: str, said: str) -> None:
    complaints = wrong(rest)
    assert any(said in each for each in complaints), complaints


BOTH = """question = "?"
[corpus]
family = "cars"
[systems.mariadb]
[systems.sensei]
columns = "plain"
[operations.colors.methods.sql]
sql = "SELECT color, COUNT(*) FROM car GROUP BY color"
[operations.colors.methods.json]
rows_at = "facets.color: value, count"
http = '{"facets": {"color": {"max": 20}}}'
[operations.colors.methods.bql]
rows_at = "facets.color: value, count"
bql = "SELECT color FROM car BROWSE BY color"
"""


def test_a_method_is_for_the_systems_that_are_asked_in_its_language(tmp_path: Path) -> None:
    plan = make_plan(parse_study(BOTH, "study.toml", Path()))
    asked = [(t.system, t.operation["method"], t.operation["language"]) for t in plan.treatments]
    assert asked == [
        ("mariadb", "sql", "sql"),
        ("sensei", "json", "http"),
        ("sensei", "bql", "bql"),
    ]
    assert plan.treatments[1].operation["rows_at"] == ["facets.color: value, count"]
    # The ending of a file says its language.
    (tmp_path / "x.bql").write_text("-- @rows hits: color\nSELECT color FROM car\n")
    text = BOTH.replace('bql = "SELECT color FROM car BROWSE BY color"', 'file = "x.bql"')
    found = make_plan(parse_study(text, "study.toml", tmp_path)).treatments[2].operation
    assert (found["language"], found["file"]) == ("bql", "x.bql")


JSON_METHOD = """rows_at = "facets.color: value, count"
http = '{"facets": {"color": {"max": 20}}}'"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (JSON_METHOD, "rows_at = \"facets..color\"\nhttp = '{}'",
         "10:11: 'facets..color' is not a path to rows"),
        (JSON_METHOD, 'http = "GET /x"',
         "nothing says where the rows lie in its reply: give `rows_at`"),
        ('sql = "S', 'rows_at = "a"\nsql = "S', "`rows_at` is for replies in JSON; the rows"),
        ('sql = "S', 'systems = "sensei"\nsql = "S',
         "the method is in SQL, and sensei is asked in `http` or `bql`"),
        ('bql = "', 'http = "{}"\nbql = "', "or in a `file`, not in bql and http"),
        ('"max": 20}}}', '"max": 20}}', "11:8: line 1: the body is not JSON"),
        ("[systems.sensei]\n", "[systems.groonga]\n[systems.sensei]\n",
         "a request that is only a body does not say where it goes"),
        ("[systems.sensei]\n", "[systems.tantivy]\n[systems.sensei]\n",
         "no method is for tantivy: tantivy is asked in `query` (engines that take SQL"),
    ],
)  # fmt: skip
def test_mistakes_in_methods_that_are_not_sql(old: str, new: str, said: str) -> None:
    assert old in BOTH
    with pytest.raises(StudyError) as found:
        parse_study(BOTH.replace(old, new, 1), "study.toml", Path())
    complaints = [str(c).removeprefix("study.toml:") for c in found.value.complaints]
    assert any(said in each for each in complaints), complaints


def test_what_is_sent_once_is_not_for_a_system_that_runs() -> None:
    running = FETCH.replace("-- @each\n", "-- @once\nCREATE TABLE x (a INT);\n-- @each\n")
    text = TOP.replace("[systems.mariadb]\n", '[systems.mariadb]\nattach = "127.0.0.1:3306"\n')
    with pytest.raises(StudyError, match="@once is sent when an index is made, and mariadb runs"):
        parse_study(text + running, "study.toml", Path())


def test_a_first_look_asks_for_few_rows(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    sizes = "[1, 10, 100, 200, 400, 1000, 100000]"
    text = TOP.replace("rows = 500", "rows = 200_000")
    path.write_text(text + FETCH + f'[factors]\n"operations.fetch.rows" = {sizes}\n')
    asked = {t.operation["rows"] for t in make_plan(read_quick(path)).treatments}
    assert asked == {1, 100, 1000}
    # What the user keeps is kept.
    plan = make_plan(read_quick(path, only=["operations.fetch.rows=10"]))
    assert {t.operation["rows"] for t in plan.treatments} == {10}


QUERY = """[operations.kinds.methods.query]
query = '{}'
"""


@pytest.mark.parametrize(
    ("query", "rest", "said"),
    [
        ("SELECT 1", "", "line 1: 'SELECT 1' is no query of the algebra: write one object"),
        ('{"filters": [}', "", "line 1: the body is not JSON"),
        ('{"filtres": []}', "", "unknown key `filtres` in the query; did you mean `filters`?"),
        (
            "{}",
            'rows_at = "hits: state"\n',
            "does not return state; add it to the query's `fields`",
        ),
        ("{}", 'rows_at = "facets.state: value, count"\n', "asks for no such facet, it has none"),
        ("{}", 'rows_at = "groups: value, count"\n', "has no groups; give it `group_by`"),
        ("{}", 'rows_at = "count"\n', "the answer to a query has total, hits, facets, groups"),
        ('{"limit": 0}', 'rows_at = "hits: id"\n', "has `limit` 0, so it returns no hits"),
        ('{"facets": ["stat"]}', "", "the corpus has no field `stat`; did you mean `state`?"),
        ('{"facets": ["owner"]}', "", "`owner` is of type integer, which does not do for facets"),
    ],
)
def test_a_query_that_does_not_give_what_is_compared_is_complained_of_in_its_place(
    query: str, rest: str, said: str
) -> None:
    found = wrong(QUERY.format(query) + rest)
    assert len(found) == 1
    assert said in found[0]
    assert found[0].startswith("9:")


def test_a_query_that_a_system_cannot_be_asked_is_complained_of_with_the_reason() -> None:
    query = '{"match": {"mode": "fuzzy", "terms": ["word"], "fields": ["note"]}}'
    columns = '[corpus.columns]\nnote = {type = "text", words = 3}\n'
    found = wrong(QUERY.format(query) + columns)
    assert found
    assert all("cannot be asked this: " in each and "cannot do fuzzy" in each for each in found)
    assert "name the systems that can under `systems`" in found[0]


def test_a_query_is_not_for_columns_that_take_none() -> None:
    plain = '[systems.sensei]\ncolumns = "plain"\n'
    only = QUERY.format("{}") + 'systems = "sensei"\n'
    found = wrong(plain + only)
    said = "the method is a query of the algebra, and sensei is asked in `http` or `bql`"
    assert any(said in each for each in found)


def test_a_query_has_values_of_the_key(tmp_path: Path) -> None:
    text = '{"filters": [{"in": {"field": "state", "values": [[each ", ": {state}]]}}]}'
    key = '[operations.kinds]\nkey = "state"\n'
    looked(key + QUERY.replace("{}", text), tmp_path)
    (found,) = wrong(key + QUERY.replace("{}", text.replace('"state"', '"owner"')))
    assert "`owner` is of type integer, so" in found
