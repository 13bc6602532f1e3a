"""What a study's files say at a first look: mistakes are found there that would end a run later."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from searchbench.cli import app
from searchbench.errors import StudyError
from searchbench.study import read_study
from searchbench.study.inputs import LOOKED_AT, look
from searchbench.study.planner import make_plan

STUDY = """\
question = "?"
[corpus]
files = "docs.csv"
{corpus}
[queries]
file = "{file}"
{queries}
[systems.tantivy]
"""
ASKED = """\
question = "?"
[requests]
file = "{file}"
[load]
clients = [1, 2]
[systems.one]
attach = "http://127.0.0.1:9"
"""
FIELDS = 'fields.title = "text"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "".join(f"{n},the lamp {n},a red lamp by door {n},{n}\n" for n in range(20))
    (tmp_path / "docs.csv").write_text(f"id,title,body,price\n{rows}")
    (tmp_path / "q.txt").write_text("red lamp\nlamp\n")
    return tmp_path


def looked(folder: Path, text: str, *, alone: bool = False) -> list[str]:
    (folder / "study.toml").write_text(text)
    study = read_study(folder / "study.toml")
    return look(study, make_plan(study), alone=alone)


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(StudyError) as wrong:
        looked(folder, text)
    return str(wrong.value).replace(f"{folder}/", "")


def study(corpus: str = "", queries: str = "", file: str = "q.txt") -> str:
    return STUDY.format(corpus=corpus, queries=queries, file=file)


def test_a_study_whose_files_are_right_has_nothing_said_about_it(folder: Path) -> None:
    assert looked(folder, study()) == []
    assert looked(folder, study(FIELDS + 'fields.text = {type = "text", column = "body"}')) == []
    assert looked(folder, study(queries='search_fields = ["title"]\nsort = ["-price"]')) == []


def test_a_column_that_the_header_lacks_is_named_with_its_line_and_the_nearest(
    folder: Path,
) -> None:
    said = complaint(folder, study('fields.body = {type = "text", column = "bdoy"}'))
    assert said.startswith("study.toml:4:40: docs.csv:1: there is no column 'bdoy'")
    assert "there are id, title, body, price. Did you mean body?" in said
    said = complaint(folder, study('id = "ident"'))
    assert said.startswith("study.toml:4:6: docs.csv:1: there is no column 'ident' for the id")


def test_first_rows_that_do_not_fit_are_complained_of_unless_they_may_be_left_out(
    folder: Path,
) -> None:
    fields = FIELDS + 'fields.body = "integer"\n'
    said = complaint(folder, study(fields))
    assert "study.toml:3:9: 20 of the first 20 rows do not fit: docs.csv:2: " in said
    assert 'bad_rows = "skip"' in said
    (told,) = looked(folder, study(fields + 'bad_rows = "skip"'))
    assert told.endswith("they will be left out")


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("q.jsonl", b'{"q": "lamp"}\n', 'as in `text_key = "q"` in [queries]'),
        ("q.txt", b"\xff\xfeh\0i\0\n\0", "q.txt:1: not UTF-8; convert it with iconv"),
        ("q.txt.gz", gzip.compress(b"lamp\n" * 9, mtime=0)[:-9], "is damaged"),
        ("/proc/self/mem", None, "cannot be read: Input/output error; name one that can"),
    ],
)
def test_queries_that_cannot_be_read_are_complained_of_where_they_are_named(
    folder: Path, file: str, content: bytes | None, words: str
) -> None:
    if content is not None:
        (folder / file).write_bytes(content)
    said = complaint(folder, study(file=file))
    assert said.startswith("study.toml:6:8: ")
    assert words in said


def test_every_query_file_is_opened_and_only_first_lines_are_read(folder: Path) -> None:
    (folder / "long.txt").write_bytes(b"lamp\n" * 2 * LOOKED_AT + b"\xff\n")
    assert looked(folder, study(file="long.txt")) == []
    both = study().replace('file = "q.txt"', 'files = ["long.txt", "/proc/self/mem"]')
    assert complaint(folder, both).startswith("study.toml:6:9: the query file /proc/self/mem")


def test_queries_that_begin_far_down_are_no_mistake(folder: Path) -> None:
    (folder / "late.txt").write_bytes(b"--\n" * 2 * LOOKED_AT + b"lamp\n")
    (told,) = looked(folder, study(file="late.txt"))
    assert "2,000 of the first 2,001 lines are no query and will be left out: late.txt:1" in told


def test_a_field_that_the_corpus_lacks_is_complained_of_where_it_is_named(folder: Path) -> None:
    said = complaint(folder, study(queries='search_fields = ["titel"]'))
    assert said == "study.toml:7:17: the corpus has no field `titel`; did you mean `title`?"
    (folder / "q.jsonl").write_text('{"text": "lamp"}\n{"text": "a", "facets": ["colour"]}\n')
    said = complaint(folder, study(file="q.jsonl"))
    assert said.startswith("study.toml:6:8: q.jsonl, query 2: the corpus has no field `colour`")


def test_levels_of_a_factor_are_looked_at_too(folder: Path) -> None:
    (folder / "other.csv").write_text("id,name\n1,lamp\n")
    text = study(FIELDS).replace('files = "docs.csv"\n', "")
    said = complaint(folder, f'{text}[factors]\n"corpus.files" = ["docs.csv", "other.csv"]\n')
    assert said.startswith("study.toml:3:8: other.csv:1: there is no column 'title'")


def test_requests_are_looked_at_and_a_long_log_is_not_read_whole(folder: Path) -> None:
    (folder / "r.txt").write_text("/a\n/b c\n")
    said = complaint(folder, ASKED.format(file="r.txt"))
    assert said.startswith("study.toml:3:8: 1 line is no request: r.txt:2: a space in the path")
    line = '127.0.0.1 - - [21/Nov/2026:04:02:46 +0000] "GET /a HTTP/1.1" 200 5\n'
    (folder / "a.log").write_text(line * LOOKED_AT + "no request\n")
    assert looked(folder, ASKED.format(file="a.log")) == []
    (folder / "a.log").write_text("no request\n" * LOOKED_AT + line)
    (told,) = looked(folder, ASKED.format(file='a.log"\nform = "access'))
    assert "1,000 of the first 1,001 lines are no request" in told


def test_ids_that_are_there_twice_are_complained_of_with_their_lines(folder: Path) -> None:
    with (folder / "docs.csv").open("a") as file:
        file.write("3,again,the lamp again,3\n21,new,a lamp,4\n5,again,the lamp again,5\n")
    said = complaint(folder, study(FIELDS))
    assert "2 of the first 23 rows do not fit: docs.csv:22: the id '3' was there before" in said
    (left_out,) = looked(folder, study('bad_rows = "skip"\n' + FIELDS))
    assert "2 of the first 23 rows do not fit" in left_out
    assert "they will be left out" in left_out


def test_cells_that_are_not_separated_as_usual_are_said_unless_declared(folder: Path) -> None:
    (folder / "s.csv").write_text("id;title\n1;red fox\n2;blue dog\n")
    text = study().replace("docs.csv", "s.csv")
    said = looked(folder, text)
    assert said == ["s: cells are separated by ;, as seen from the first rows"]
    assert looked(folder, study('delimiter = ";"').replace("docs.csv", "s.csv")) == []


def test_check_says_which_fields_and_types_were_guessed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (folder / "docs.csv").open("a") as file:
        file.write("20,the lamp,one more,4\n")
    (guess,) = looked(folder, study(), alone=True)
    assert guess == (
        "docs: fields as guessed from the first rows: title text, body text, price integer; the id "
        "is the column id. Declare them in [corpus] to be sure (fields.NAME = TYPE)"
    )
    assert looked(folder, study(FIELDS), alone=True) == []
    (folder / "docs.csv").write_text("code,name,empty\n7,red lamp,\n8,a blue lamp,\n")
    (guess,) = looked(folder, study(), alone=True)
    assert "code integer, name text; rows are numbered; empty is left out: no value" in guess
    assert app(["check", str(folder / "study.toml")]) == 0
    assert "fields as guessed" in capsys.readouterr().out


OPERATORS = """red lamp
"red lamp" -door
lamp OR door
wi-fi lamp - cheap
(lamp door)
LAMP OR DOOR
lamp | door
"""


def test_queries_with_operators_are_counted_once_with_an_example(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "ops.txt").write_text(OPERATORS)
    (told,) = looked(folder, study(FIELDS, file="ops.txt"), alone=True)
    assert told.startswith("ops.txt: 4 of 7 queries have operators (quotes, minus, OR, parenthes")
    assert 'taken as plain words, as in ops.txt:2: "red lamp" -door; ' in told
    assert looked(folder, study(FIELDS, file="ops.txt")) == [], "a run says it of the whole file"
    quick = ["--set", "load.seconds=0.1", "--set", "replicates=1", "--set", "load.warmup_s=0"]
    argv = ["run", str(folder / "study.toml"), "--record", str(folder / "r"), "--no-report"]
    assert app([*argv, *quick]) in (0, 1)
    assert capsys.readouterr().err.count("have operators") == 1


def test_a_phrase_in_quotes_is_no_operator_where_phrases_are_asked_for(folder: Path) -> None:
    (folder / "ops.jsonl").write_text('{"text": "\\"red lamp\\"", "match": "phrase"}\n' * 2)
    assert looked(folder, study(FIELDS, file="ops.jsonl"), alone=True) == []
    (folder / "ops.jsonl").write_text('{"text": "\\"red lamp\\""}\n')
    (told,) = looked(folder, study(FIELDS, file="ops.jsonl"), alone=True)
    assert told.startswith("ops.jsonl: 1 of 1 query has operators")


def test_only_the_first_lines_of_a_long_file_are_looked_at_for_operators(folder: Path) -> None:
    (folder / "ops.txt").write_text("lamp -red\n" * (LOOKED_AT + 1))
    (told,) = looked(folder, study(FIELDS, file="ops.txt"), alone=True)
    assert told.startswith("ops.txt: 1,000 of the first 1,000 queries have operators")


def test_a_file_of_ids_alone_is_no_corpus_to_search(folder: Path) -> None:
    (folder / "docs.csv").write_text("id\n1\n2\n")
    said = complaint(folder, study())
    assert "docs.csv has no column but id, so its documents have no fields" in said
