import subprocess
import sys
from pathlib import Path

import pytest

from searchbench.engines import ENGINES, defaults
from searchbench.errors import StudyError
from searchbench.study import Factor, read_study
from searchbench.study.model import key_of, system_of, table_of
from study_texts import SHORT, right, with_lines, wrong

WRONG = """\
questoin = "x"
seed = "one"
[corpus]
files = "prodcts.csv"
decimat = 2
[queries]
file = "nope.txt"
match = "anny"
filters = [{ rang = 1 }]
[systems.tantivi]
[systems.sqlite]
cache_mb = -1
pagesize = 4096
[systems.lite]
engine = "sqlte"
[load]
clients = 4
requests = 10
seconds = 5
[factors]
"load.clients" = [1, 1, 0, "x"]
"load.cleints" = [1]
"systems.*.parts" = [1, 2]
"systems.sqlite.mmap_mb" = []
"foo.bar" = [1]
[agreement]
require = "totl"
[verdict]
metric = "response_p9"
[[exclude]]
when = { "load.clints" = 1 }
"""


@pytest.fixture
def base(tmp_path):
    (tmp_path / "products.csv").write_text("id,title\n1,red shoe\n")
    (tmp_path / "queries.txt").write_text("red shoe\nblue\n")
    return tmp_path


def test_a_study_of_ten_lines_is_enough(base):
    study = right(SHORT, base)
    assert [(s.name, s.engine) for s in study.systems] == [
        ("tantivy", "tantivy"),
        ("sqlite", "sqlite"),
    ]
    assert study.systems[1].parameters == defaults(ENGINES["sqlite"])
    assert study.load == {"clients": 4, "seconds": 5}
    assert (study.replicates, study.seed, study.control.aa, study.ingest) == (
        3,
        1,
        True,
        "per-block",
    )
    assert (study.agreement.require, study.agreement.k) == ("totals", 10)
    assert study.text == SHORT


def test_all_mistakes_are_listed_at_once_with_their_places(base):
    complaints = wrong(WRONG, base)
    expected = {
        "": "`question = \"...\"` is missing",
        "1:1": "did you mean `question`?",
        "2:8": "`seed` must be an integer from 0 to 9007199254740992, not \"one\"",
        "4:9": "there is no file \"prodcts.csv\"",
        "5:1": "did you mean",
        "7:8": "there is no file \"nope.txt\"",
        "8:9": "did you mean `any`?",
        "9:11": "did you mean `range`?",
        "10:10": "there is no engine `tantivi` (did you mean `tantivy`?)",
        "12:12": "`cache_mb` must be an integer from 0 to 65536, not -1",
        "13:1": "sqlite has no key `pagesize` (did you mean `page_size`?)",
        "15:10": "there is no engine `sqlte` (did you mean `sqlite`?)",
        "17:1": "`clients` is set here and varied as \"load.clients\"",
        "18:12": "give `requests` or `seconds`, not both",
        "21:22": "`load.clients` has the level 1 twice",
        "21:25": "`clients` must be an integer from 1 to 65535, not 0",
        "21:28": "`clients` must be an integer from 1 to 65535, not \"x\"",
        "22:1": "did you mean `clients`?",
        "23:1": "sqlite has no parameter `parts`",
        "24:28": "must be a list of levels, not []",
        "25:1": "names nothing that can be a factor",
        "27:11": "did you mean `totals`?",
        "29:10": "did you mean `response_p99`?",
        "31:10": "did you mean `load.clients`?",
    }  # fmt: skip
    for place, said in expected.items():
        start = f"s.toml:{place}: " if place else "s.toml: "
        assert any(c.startswith(start) and said in c for c in complaints), (place, complaints)
    assert any("needs a `reason`" in c for c in complaints)


def test_complaints_come_in_the_order_of_the_file(base):
    lines = [int(c.split(":")[1]) for c in wrong(WRONG, base) if c.split(":")[1].isdigit()]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("text", "place"),
    [("question = \n", "1:12"), ('question = "a"\nquestion = "b"\n', "2:1"), ("[corpus\n", "1:8")],
)
def test_a_file_that_is_not_toml_says_where(text, place, base):
    [complaint] = wrong(text, base)
    assert complaint.startswith(f"s.toml:{place}: this is not TOML: ")
    assert "\n" not in complaint


def test_a_text_where_a_table_belongs_is_told_so(base):
    text = 'question = "?"\nqueries = "q.txt"\n[corpus]\nfiles = "products.csv"\n[systems.null]\n'
    assert wrong(text, base) == ['s.toml:2:11: `queries` must be a table, not "q.txt"']


def test_an_empty_file_wants_everything_that_a_study_needs(base):
    complaints = " ".join(wrong("", base))
    for needed in ("question", "corpus", "at least one system"):
        assert needed in complaints


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("cpus = [0, 0]", "different numbers"),
        ('[control]\naa = "yes"', '`aa` must be true or false, not "yes"'),
        ('[control]\ntreatement = "t01"', "did you mean `treatment`?"),
        ('[ingest]\nindex = "per-blok"', "did you mean `per-block`?"),
        ("[agreement]\nk = 0", "from 1 to 10000, not 0"),
        ("held = 4\n", "[load] has no key `held`"),
        ('[held]\nclients = 4\n[factors]\n"load.clients" = [1, 2]', "but `load.clients` is varied"),
        ('[factors]\n"systems.solr.heap" = [1]', "there is no system `solr`"),
        ('[factors]\n"systems.tantivy.part" = [1]', "did you mean `parts`?"),
        ('[factors]\n"systems.tantivy.parts" = [1, 65]', "from 1 to 64, not 65"),
        ('[factors]\n"systems.tantivy.merge" = ["flat", "deep"]', '"two-level", not "deep"'),
        ('[factors]\n"systems.sqlite.merged" = [true, 1]', "true or false, not 1"),
        ('[factors]\n"systems.sqlite.page_size" = [4096, 5000]', "not 5000"),
        ('[factors]\n"queries.filters" = [1]', "cannot be a factor"),
        ('[factors]\n"queries.limit" = 10', "must be a list of levels, not 10"),
        ('[factors]\n"queries.limit" = [[1]]', "a level must be a string, a number"),
        ('[factors]\n"corpus.decimate" = [1, 0]', "at least 1"),
        ('[factors]\n"corpus.decimat" = [1]', "did you mean `decimate`?"),
        ('[factors]\n"corpus.documents" = [1]', "[corpus] has no key `documents`"),
        ('[factors]\n"queries.file" = ["queries.txt", "no.txt"]', 'no file "no.txt"'),
        ('[[exclude]]\nwhen = { system = "solr" }\nreason = "no"', 'no level "solr"'),
        ('[[exclude]]\nwhen = { system = "sqlite" }\nreason = ""', "needs a `reason`"),
        ('[[exclude]]\nreason = "no"', "needs `when`"),
        ('[[exclude]]\nwehn = {}\nreason = "no"', "did you mean `when`?"),
        ('[systems."a=b"]\nengine = "null"', "a system's name has no"),
        ("[systems.x]\nengine = 4", "`engine` must be a string"),
    ],
)
def test_each_kind_of_mistake_has_its_sentence(lines, said, base):
    complaints = with_lines(lines, base)
    assert any(said in c for c in complaints), complaints


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"products.csv"', '["products.csv", "more.csv"]', '3:26: there is no file "more.csv"'),
        ('"products.csv"', '"*.parquet"', "there is no file"),
        ('[corpus]\nfiles = "products.csv"\n', "", "a study needs a corpus"),
        ('files = "products.csv"', 'family = "webcrawl"', "family"),
        ("clients = 4", "clients = 4\nrate_per_s = 10", "is for a closed loop"),
        ("seconds = 5", "seconds = 0", "above 0 and at most 86400, not 0"),
        ("clients = 4", "clients = true", "not true"),
        ("[load]", "[laod]", "did you mean `load`?"),
        ("[systems.tantivy]\n[systems.sqlite]\n", "", "at least one system"),
        ('match = "any"', "distinct = 5", "`distinct` is for queries sampled from the corpus"),
        ('question = "Which', 'question = " "\nanalysis = "Which', "`question` is empty"),
        ('question = "Which', 'queries = "q.txt"\nquestion = "Which', "duplicate key"),
        ('[queries]\nfile = "queries.txt"\nmatch = "any"', "[load.x]", "no key `x`"),
    ],
)
def test_a_change_for_the_worse_is_noticed(old, new, said, base):
    assert old in SHORT
    complaints = wrong(SHORT.replace(old, new), base)
    assert any(said in c for c in complaints), complaints


def test_factors_may_be_written_dotted_or_quoted(base):
    text = SHORT.replace("clients = 4\n", "")
    quoted = right(text + '[factors]\n"load.clients" = [1, 2]\n', base)
    dotted = right(text + "[factors]\nload.clients = [1, 2]\n", base)
    assert quoted.factors == dotted.factors == (Factor("load.clients", (1, 2)),)
    complaints = wrong(text + "[factors]\nload.clients = [1, 0]\n", base)
    assert complaints[0].startswith("s.toml:12:20: ")


def test_a_path_names_a_table_a_system_and_a_key():
    path = "systems.tantivy.parts"
    assert (table_of(path), system_of(path), key_of(path)) == ("systems", "tantivy", "parts")
    assert system_of("load.clients") is None


def test_a_parameter_that_all_systems_have_may_be_varied_for_all(base):
    text = SHORT.replace("[systems.sqlite]", '[systems.other]\nengine = "tantivy"')
    study = right(text + '[factors]\n"systems.*.parts" = [1, 2]\n', base)
    assert system_of(study.factors[0].path) == "*"
    complaints = wrong(
        text + '[factors]\n"systems.*.parts" = [1, 2]\n"systems.other.parts" = [4]\n', base
    )
    assert any("vary the same parameter" in c for c in complaints)


def test_parameters_of_a_system_are_completed_by_the_engines_defaults(base):
    study = right(SHORT.replace("[systems.tantivy]", "[systems.tantivy]\nparts = 4"), base)
    assert study.systems[0].parameters == {**defaults(ENGINES["tantivy"]), "parts": 4}


def test_folders_and_patterns_are_corpora_too(base):
    (base / "texts").mkdir()
    assert right(SHORT.replace('"products.csv"', '"texts"'), base)
    assert right(SHORT.replace('"products.csv"', '"prod*.csv"'), base)


def test_files_are_named_from_where_the_study_stands(base, monkeypatch):
    (base / "my.toml").write_text(SHORT)
    monkeypatch.chdir("/")
    study = read_study(base / "my.toml")
    assert (study.base, study.name) == (base, "my")


def test_what_cannot_be_read_is_one_sentence(tmp_path):
    with pytest.raises(StudyError, match="cannot be read: No such file"):
        read_study(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'seed = 1\nquestion = "caf\xe9"\n')
    with pytest.raises(StudyError, match=r"latin.toml:2:1: a study file is UTF-8"):
        read_study(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("products.csv", "product.csv", " (did you mean `products.csv`?)"),
        ("products.csv", "data/item.csv", " (did you mean `data/items.csv`?)"),
        ("products.csv", "dta/items.csv", " (there is no folder {base}/dta)"),
        ("products.csv", "unlike.parquet", ""),
        ("queries.txt", "query.txt", " (did you mean `queries.txt`?)"),
    ],
)
def test_of_a_file_that_does_not_exist_the_nearest_is_named(old, new, hint, base):
    (base / "data").mkdir()
    (base / "data/items.csv").write_text("id,title\n1,red shoe\n")
    [complaint] = wrong(SHORT.replace(old, new), base)
    assert complaint.endswith(f'there is no file "{new}" in {base}{hint.format(base=base)}')


def test_of_a_study_that_does_not_exist_the_nearest_is_named(base):
    (base / "study.toml").write_text(SHORT)
    with pytest.raises(StudyError, match=f"No such file.* .did you mean `{base}/study.toml`"):
        read_study(base / "stdy.toml")


@pytest.mark.parametrize("path", sorted(Path("studies").glob("*.toml")), ids=str)
def test_the_shipped_studies_are_right_and_say_what_to_look_for(path):
    study = read_study(path)
    assert len(study.analysis) > 200
    # A build that has no replicate resolves little: a study that is copied must not teach that.
    assert study.ingest != "once"


def test_checking_a_study_does_not_load_what_only_measuring_needs():
    heavy = "pyarrow", "duckdb", "altair", "scipy"
    code = f"import sys, searchbench.study; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("attach", "said"),
    [
        (
            '"127.0.0.1:10041,127.0.0.1:10042"',
            'is several addresses; give a list: attach = ["127.0.0.1:10041", "127.0.0.1:10042"]',
        ),
        ('"127.0.0.1"', 'is not an address; give HOST:PORT or a URL, as in "127.0.0.1:9306"'),
        ('"127.0.0.1:0"', "its port must be a number from 1 to 65535"),
        ('"127.0.0.1:65536"', "its port must be a number from 1 to 65535"),
        ('"127.0.0.1:http"', "its port must be a number from 1 to 65535"),
        ('":80"', "has no host"),
        ('"::1:80"', 'or "[::1]:9306"'),
        ('"http://:80"', "has no host, as in http://127.0.0.1:80"),
        ('"http://127.0.0.1:99999"', "needs a port from 1 to 65535"),
        ('"frames://127.0.0.1"', "frames:// needs a port"),
        ('"sphinx+tls://127.0.0.1"', "sphinx+tls:// is not spoken"),
        ('"htp://127.0.0.1"', "did you mean `http`?"),
        ('"mysql://u:secret@127.0.0.1"', "a password in the URL of 127.0.0.1 would be on record"),
        ('"10.1.2.3:80"', "set `remote = true` if that server is yours"),
        ('"a b:80"', "without spaces"),
        ('""', "is not an address"),
        ("[]", "`attach` is an empty list"),
        ('["127.0.0.1:80", "127.0.0.1:80"]', "an address is given twice"),
        ('["127.0.0.1:80", "http://127.0.0.1:81"]', "are HOST:PORT and http"),
        ("4", "`attach` must be a string or a list of strings, not 4"),
    ],
)
def test_an_address_that_is_none_is_noticed_before_anything_runs(attach, said, base):
    complaints = with_lines(f'[systems.x]\nengine = "sphinx"\nattach = {attach}\n', base)
    assert any(said in c and c.startswith("s.toml:14:") for c in complaints), complaints


def test_addresses_of_several_kinds_are_right(base):
    for attach in ('["127.0.0.1:80", "localhost:81"]', '"[::1]:9306"', '"http://localhost"',
                   '"sphinxql://127.0.0.1:9306"', '"postgres://me@db:5432/shop"',
                   '"10.1.2.3:80"\nremote = true'):  # fmt: skip
        assert right(SHORT + f'[systems.x]\nengine = "sphinx"\nattach = {attach}\n', base)
    [complaint] = with_lines("[systems.null]\nremote = true\n", base)
    assert "`remote` is about the addresses of `attach`" in complaint


def test_systems_as_found_are_systems_that_run(base):
    complaints = with_lines('[ingest]\nindex = "as-found"\n', base)
    assert [c.split(" ")[1] for c in complaints] == ["tantivy", "sqlite"]
    assert all("so there is nothing that can be taken as found" in c for c in complaints)
