"""Dates in quotes that statements compare with numbers: found by the text, said by ``check``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pages import section
from searchbench.cli import app
from searchbench.engines.mariadb import MariaDB
from searchbench.lab.get.install import missing
from searchbench.workload.operations.dates import dates_compared

COLUMNS = ("day", "price")


@pytest.mark.parametrize(
    ("where", "column"),
    [
        ("day > '2024-01-01'", "day"),
        ("day>='2024-01-01 10:00:00'", "day"),
        ("o.day <> '2024-01-01T10:00Z'", "day"),
        ("`shop`.`Day` <=> '2024-1-1'", "day"),
        ("price = DATE '2024-01-01'", "price"),
        ("'2024-01-01' < o.day AND 1", "day"),
        ("NOT '2024-01-01'<=day", "day"),
        ("note = 3 AND day BETWEEN '2024-01-01' AND 3", "day"),
        ("day NOT BETWEEN 3 AND '2024-01-01'", "day"),
        ("day NOT BETWEEN '2024-01-01' AND DATE '2024-01-02'", "day day"),
        ("day IN ('2024-01-01', '2024-01-02')", "day day"),
        ("day NOT IN ('2024-01-01')", "day"),
        ('day > "2024-01-01"', "day"),
        ("day = 1704067200000", ""),
        ("note > '2024-01-01'", ""),
        ("FROM_UNIXTIME(day / 1000) > '2024-01-01'", ""),
        ("'2024-01-01' < FROM_UNIXTIME(day / 1000)", ""),
        ("'2024-01-01' < day / 1000", ""),
        ("day > '2024' AND day = 'soon'", ""),
        ("day > UNIX_TIMESTAMP('2024-01-01') * 1000", ""),
        ("1 -- day > '2024-01-01'", ""),
        ("1 /* day > '2024-01-01' */ AND note = 'it''s day > '", ""),
        ('id IN ([each ",": {id}]) AND day > {day}', ""),
        ("'2024-01-01'", ""),
    ],
)
def test_what_stands_beside_a_date_in_quotes_is_compared_with_it(where: str, column: str) -> None:
    text = f"SELECT *\nFROM orders o\nWHERE {where};"
    found = [*dates_compared(text, COLUMNS)]
    assert " ".join(each.column for each in found) == column
    assert all(each.line == 3 for each in found)


STUDY = """question = "?"
[corpus]
family = "table"
table = "orders"
files = "orders.csv"
key = "id"
[operations.count.methods.file]
file = "day.sql"
[operations.count.methods.here]
sql = '''
SELECT COUNT(*) FROM orders
WHERE price > '2024-01-03'
'''
[operations.count.methods.right]
sql = "SELECT COUNT(*) FROM orders WHERE day > 1704240000000"
[systems.mariadb]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n},2024-01-{n:02d},{n}.5\n" for n in range(1, 8))
    (tmp_path / "orders.csv").write_text("id,day,price\n" + rows)
    (tmp_path / "day.sql").write_text(
        "-- of the days after the third\nSELECT COUNT(*)\nFROM orders WHERE day > '2024-01-03';\n"
    )
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def checked(capsys: pytest.CaptureFixture[str]) -> str:
    assert app(["check", "study.toml"]) == 0, "it is a doubt, not a mistake"
    return " ".join(capsys.readouterr().out.split())


def test_check_names_the_line_and_the_number_to_write(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = checked(capsys)
    assert (
        "day.sql:3: `day` is a date. In a database that is filled from the corpus, that is a"
        in said
    )
    assert "MariaDB compares it with the number 2024, without a message" in said
    assert "Write 1704240000000 in place of '2024-01-03'" in said
    assert "study.toml:12: `price` is a number, but '2024-01-03' is a date" in said
    assert said.count("without a message") == 2, "the third method is right"


def test_the_rows_are_wrong_without_a_message_and_right_with_the_number(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if lacking := missing(MariaDB()):
        pytest.skip(f"no mariadb here: {lacking}")
    for method, count in (("file", "7"), ("right", "4")):
        assert app(["wire", "study.toml", method, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert count in str(found["answer"]), method


def test_nothing_is_said_of_texts_and_of_a_database_that_runs_already(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = 'columns = { id = "integer", day = "keyword", price = "keyword" }\n'
    (folder / "study.toml").write_text(STUDY.replace('key = "id"\n', 'key = "id"\n' + columns))
    assert "without a message" not in checked(capsys)
    there = '[ingest]\nindex = "as-found"\n[systems.mariadb]\nattach = "mysql://a@127.0.0.1:3/b"\n'
    (folder / "study.toml").write_text(STUDY.replace("[systems.mariadb]\n", there))
    assert "without a message" not in checked(capsys)


def test_a_database_without_such_a_conversion_is_said_to_refuse_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "study.toml").write_text(STUDY.replace("mariadb", "postgresql"))
    assert checked(capsys).count("PostgreSQL cannot compare it with text") == 2


def test_the_page_says_so() -> None:
    said = section("docs/OPERATIONS.md", "2. Put the methods into a study")
    assert "compare a number with a date in quotes" in said
