"""Sweeps, capacity searches, and requests that are sent as they are, in study files."""

import re

import pytest

from searchbench.study import Factor
from searchbench.study.reference import reference
from study_texts import SHORT, right, wrong


@pytest.fixture
def base(tmp_path):
    (tmp_path / "products.csv").write_text("id,title\n1,red shoe\n")
    (tmp_path / "queries.txt").write_text("red shoe\nblue\n")
    return tmp_path


SWEPT = SHORT.replace("clients = 4", "clients = [1, 2, 4]")
SEARCHED = SHORT.replace("clients = 4\nseconds = 5", "find_capacity = true\nslo = ['p99 < 50ms']")
LOADED = """\
question = "What load does it sustain?"
command = ["load", "http://127.0.0.1:10041", "--clients", "1:3:2"]
[requests]
file = "queries.txt"
form = "paths"
[systems."127.0.0.1:10041"]
attach = ["http://127.0.0.1:10041/d/", "http://127.0.0.1:10042"]
engine = "groonga"
remote = false
[systems.other]
attach = "mysql://127.0.0.1/shop"
[load]
clients = [1, 3]
seconds = 10.0
warmup_s = 1.0
pause_s = 0.5
spread = "round"
realtime = true
order = "logged"
timeout_s = 10.0
idle = "hybrid"
think_s = 0.0
cache_hit = 0.5
cache_entries = 100
cache_law = "zipf:0.8"
machines = ["localhost"]
ssh = "ssh -p 22"
client_command = "searchbench-client"
[ingest]
index = "as-found"
[agreement]
captures = 150
capture = "before"
"""


def test_a_list_of_clients_or_rates_is_a_sweep(base):
    study = right(SWEPT, base)
    assert study.measure == "sweep"
    assert study.steps == Factor("load.clients", (1, 2, 4))
    assert (study.replicates, study.control.aa) == (1, False)
    paced = right(SHORT.replace("clients = 4", "rate_per_s = [10, 20.5]"), base)
    assert paced.steps == Factor("load.rate_per_s", (10, 20.5))
    assert right(SHORT, base).measure == "trials"
    assert right("replicates = 4\n" + SWEPT, base).replicates == 4


def test_of_two_wrong_addresses_each_is_complained_of_where_it_stands(base):
    text = LOADED.replace("http://127.0.0.1:10041/d/", "htp://127.0.0.1")
    found = wrong(text.replace('"http://127.0.0.1:10042"', '"127.0.0.1:10042"'), base)
    columns = [c.split(":")[1:3] for c in found if "s.toml:7:" in c]
    assert columns == [["7", "11"], ["7", "30"]], found


def test_a_search_for_capacity_has_promises_and_chooses_its_loads(base):
    study = right(SEARCHED + "effort = 0.5\n", base)
    assert (study.measure, study.promises, study.replicates) == ("capacity", ("p99 < 50ms",), 1)
    one = right(SEARCHED.replace("['p99 < 50ms']", "'p99 < 50ms, errors < 0.1%'"), base)
    assert one.promises == ("p99 < 50ms, errors < 0.1%",)
    assert not one.control.aa


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SWEPT.replace("[1, 2, 4]", "[1, 0, 1, 2.5]"),
         ["10:15: step of a sweep: `clients` must be an integer", "10:18: `clients` has the step 1",
          "10:21: step of a sweep"]),
        (SWEPT.replace("[1, 2, 4]", "[]"), ["10:11: `clients` is an empty list"]),
        (SWEPT + "rate_per_s = [5]\n",
         ["12:1: `clients` (at 10:1) and `rate_per_s` are lists"]),
        (SWEPT + '[factors]\n"load.clients" = [1]\n',
         ["10:1: `clients` is set here and varied as \"load.clients\" in [factors], at 13:1"]),
        (SWEPT + "[control]\naa = true\n", ["13:6: controls are for trials, and this is a sweep"]),
        (SWEPT + "[control]\ntreatment = 't01'\n", ["13:1: controls are for trials"]),
        (SHORT + "pause_s = 1\n", ["12:11: `pause_s` is between the steps of a sweep"]),
        (SWEPT + "[agreement]\ncapture = 'after'\n", ['13:11: `capture = "after"` is for trials']),
        (SEARCHED + "[control]\naa = true\n",
         ["controls are for trials, and this is a capacity search"]),
        (SEARCHED + "clients = [1, 2]\n", ["12:11: a capacity search chooses `clients`"]),
        (SEARCHED + "rate_per_s = 5\n", ["12:14: a capacity search chooses `rate_per_s`"]),
        (SEARCHED + "seconds = 5\n", ["12:11: a capacity search chooses `seconds`"]),
        (SEARCHED + "warmup_s = 5\n", ["12:12: a capacity search chooses `warmup_s`"]),
        (SEARCHED + '[factors]\n"load.rate_per_s" = [1]\n', ["13:22: a capacity search"]),
        (SEARCHED + '[factors]\n"load.effort" = [1]\n', ["13:1: `load.effort` cannot be a factor"]),
        (SEARCHED + '[verdict]\nmetric = "throughput"\n', ["13:1: a capacity search is"]),
        (SHORT + "slo = 'p99 < 1s'\n", ["12:7: `slo` is for a sweep, whose steps it judges"]),
        (SWEPT.replace("seconds = 5", "requests = 5\nslo = 'p99 < 1s'\nabort = true"),
         ["13:9: `abort` judges a window while it is driven"]),
        (SEARCHED.replace("['p99 < 50ms']", "['p99 < 50ms', 'p99 < 50']"),
         ["11:22: \"p99 < 50\" is not a promise; give for example"]),
        (SEARCHED.replace("['p99 < 50ms']", "'p99 < 50ms, p9'"),
         ["11:7: \"p9\" (character 13) is not a promise"]),
        (SEARCHED.replace("slo = ['p99 < 50ms']", "effort = 1"), ["10:17: a capacity search"]),
    ],
)  # fmt: skip
def test_mistakes_in_sweeps_and_searches_have_their_positions(text, said, base):
    complaints = wrong(text, base)
    for one in said:
        assert any(one in c for c in complaints), (one, complaints)


def test_what_searchbench_load_writes_is_a_study(base):
    (base / "queries.txt").write_text("/a\n/b\n")
    study = right(LOADED, base)
    first, other = study.systems
    assert (first.name, first.engine, dict(first.parameters)) == ("127.0.0.1:10041", "groonga", {})
    assert first.attach == ("http://127.0.0.1:10041/d/", "http://127.0.0.1:10042")
    assert (other.engine, other.attach, other.remote) == ("", ("mysql://127.0.0.1/shop",), False)
    assert study.requests == {"file": "queries.txt", "form": "paths"}
    assert (study.corpus, study.queries) == ({}, {})
    assert (study.measure, study.ingest) == ("sweep", "as-found")
    assert (study.agreement.captures, study.agreement.capture) == (150, "before")
    assert study.command[:2] == ("load", "http://127.0.0.1:10041")
    assert study.load["machines"] == ["localhost"]
    assert right(LOADED.replace('[ingest]\nindex = "as-found"\n', ""), base).ingest == "as-found"
    alone = LOADED.replace('machines = ["localhost"]\nssh = "ssh -p 22"', 'ssh = "ssh"')
    assert right(alone + "[control]\naa = false\n", base).load["ssh"] == "ssh"
    plain = LOADED.replace('engine = "groonga"', 'engine = "none"')
    assert right(plain, base).systems[0].engine == "none"


def test_one_path_may_be_asked_in_place_of_a_file(base):
    text = LOADED.replace('file = "queries.txt"\nform = "paths"', 'path = "/d/status"')
    text = text.replace("mysql://127.0.0.1/shop", "http://[::1]:80")
    assert right(text, base).requests == {"path": "/d/status"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('file = "queries.txt"\n', "", '3:2: [requests] need a `file`, or one `path`'),
        ('"queries.txt"', '"querys.txt"', "4:8: there is no file \"querys.txt\""),
        ('file = "queries.txt"', 'file = "queries.txt"\npath = "/"', "5:8: give `file` or `path`"),
        ('"paths"', '"path"', "5:8: `form` must be one of \"auto\", \"paths\""),
        ('file = "queries.txt"', 'path = "/"', "5:8: `form` is for a file"),
        ('file = "queries.txt"\nform = "paths"', 'path = "d"', '4:8: `path` must begin with "/"'),
        ('file = "queries.txt"\nform = "paths"', 'path = "/"', "4:8: `path` is asked over HTTP"),
        ('form = "paths"', 'method = "get"', "5:10: `method` must be one of HTTP's in capitals"),
        ("[systems.other]", "[corpus]\nfamily = 'debian'\n[systems.other]",
         "10:2: [requests] (at 3:2) are sent as they are, in place of a corpus"),
        ("[systems.other]", "[queries]\n[systems.other]", "10:2: [requests] (at 3:2)"),
        ("[systems.other]", "[systems.new]\n[systems.other]", "10:10: requests are sent as they "
         "are to a system that runs already"),
        ("remote = false", "threads = 4", "9:1: `threads` cannot be set: requests are sent as"),
        ("remote = false", "remot = false", "did you mean `remote`?"),
        ('"groonga"', '"gronga"', "8:10: there is no engine `gronga` (did you mean `groonga`?)"),
        ('"mysql://127.0.0.1/shop"', '"127.0.0.1:3306"', "11:10: requests are sent as they are"),
        ('index = "as-found"', 'index = "once"', "are sent to systems as they are found"),
        ("[ingest]", '[factors]\n"corpus.decimate" = [1]\n[ingest]', "this study has no [corpus]"),
        ("[ingest]", '[factors]\n"systems.127.0.0.1:10041.threads" = [1]\n[ingest]',
         "30:1: `systems.127.0.0.1:10041.threads`: 127.0.0.1:10041 has no parameters"),
        ("clients = [1, 3]", "kind = 'replay'\ntimes = 'no.txt'", "there is no file \"no.txt\""),
        ("zipf:0.8", "zipf:x", "`cache_law` must be uniform, zipf, or zipf:EXPONENT"),
        ("cache_hit = 0.5", "cache_hit = 1.5", "`cache_hit` must be a number from 0 to 1, not 1.5"),
        ("captures = 150", "captures = -1", "`captures` must be an integer from 0"),
    ],
)  # fmt: skip
def test_mistakes_in_a_study_of_requests_have_their_sentences(old, new, said, base):
    assert old in LOADED
    complaints = wrong(LOADED.replace(old, new, 1), base)
    assert any(said in c for c in complaints), complaints


def test_one_path_has_no_times_to_replay(base):
    text = LOADED.replace('file = "queries.txt"\nform = "paths"', 'path = "/"')
    text = text.replace("clients = [1, 3]", "speed = 2.0").replace("think_s = 0.0\n", "")
    text = text.replace("mysql://127.0.0.1/shop", "http://127.0.0.1").replace("pause_s = 0.5\n", "")
    assert any("one `path` has no times" in c for c in wrong(text, base))


def test_the_whole_studies_on_the_page_of_reference_are_right(base):
    (base / "access.log").write_text(
        "".join(
            f"1.2.3.4 - - [01/Jan/2026:{m // 60:02}:{m % 60:02}:00 +0000] "
            '"GET /search?q=a HTTP/1.1" 200 1\n'
            for m in range(24 * 60)
        )
    )
    blocks = re.findall(r"```toml\n(.*?)```", reference(), re.DOTALL)
    whole = [right(block, base) for block in blocks if block.startswith("question")]
    assert [study.measure for study in whole] == ["trials", "sweep", "trials"]
    loads = [block for block in blocks if block.startswith("[load]")]
    head = 'question = "?"\n[corpus]\nfamily = "debian"\n[queries]\n[systems.sphinx]\n'
    measures = [right(head + load, base).measure for load in loads]
    assert measures == ["sweep", "trials", "trials", "capacity", "capacity"]
