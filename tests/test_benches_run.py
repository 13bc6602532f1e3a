"""Benches that need servers, run small: all figures are there, and what is counted is right.

No test asserts how fast or how large anything is: machines differ, and are busy.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from benches import away, cars, million, placed, roles
from benches.figure import Figure
from benches.table import Table

from searchbench.engines import ENGINES
from searchbench.engines.groonga import Groonga
from searchbench.engines.mariadb import MariaDB
from searchbench.lab.get.install import missing
from searchbench.lab.place.abilities import ability
from searchbench.places import Place


def test_no_method_has_a_statement_parsed_twice() -> None:
    if lacking := missing(MariaDB()):
        pytest.skip(f"no mariadb here: {lacking}")
    found = {f.name: f for f in million.figures(300) if isinstance(f, Figure)}
    assert len(found) == 3 * len(million.METHODS)
    parsed = {name: f for name, f in found.items() if name.endswith("parsed more often than once")}
    assert [f.measured for f in parsed.values()] == [0] * len(million.METHODS)
    one = parsed["300 ids by single prepared statements: statements parsed more often than once"]
    for said in ("Com_stmt_prepare 1", "Com_stmt_execute 600"):
        assert said in one.note


def test_commit_to_visible_is_said_of_each_delay_and_interval() -> None:
    table, *figures = roles.commit_to_visible((30,), (5,), seconds=2.0)
    assert isinstance(table, Table)
    ((truth, asked, markers, _, between, *_),) = table.rows
    assert (truth, asked) == ("30", "5")
    assert int(markers) > 20
    # However late a machine asks: that an ask did not find it was true when it was sent.
    assert float(between.partition("–")[0]) <= 30 + 1e3 * roles.ANSWER_S
    assert [f.at_most for f in figures if isinstance(f, Figure)] == [5, 5, 1]


def test_readers_beside_a_writer_have_a_ratio_and_a_floor_for_each_figure() -> None:
    # A p99 needs 299 answers, which a busy machine does not give in so short a window.
    metrics = {name: called for name, called in roles.METRICS.items() if name != "service_p99"}
    figures = list(roles.beside_a_writer(blocks=2, seconds=0.5, metrics=metrics))
    assert len(figures) == 2
    for figure in figures:
        assert figure.at_most is not None
        assert figure.at_most >= 0
        assert "pairs of the A/A control" in figure.note


def test_what_a_collector_kept_while_its_upstream_was_away_arrives() -> None:
    memory, lacking = away.figures(2.0)
    assert int(memory.note.partition(" ")[0].replace(",", "")) >= 1_000
    assert lacking.measured == 0


def test_cars_come_into_a_system_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    if lacking := missing(Groonga()):
        pytest.skip(f"no groonga here: {lacking}")
    groonga = cars.System("groonga", "Groonga", "load", part=100)
    monkeypatch.setattr(cars, "SYSTEMS", (groonga,))
    figure, table = cars.figures(cars.COPY)
    assert isinstance(figure, Figure)
    assert figure.measured > 0
    assert isinstance(table, Table)
    assert [line[:3] for line in table.rows] == [
        ("Groonga", "load, 1,000 at once", "15,000"),
        ("Groonga", "one by one", "150"),
    ]
    assert "(Groonga one in 100)" in table.notes[0]


def test_a_place_that_leaves_a_tenth_of_the_cpu_is_seen_to_cost_much(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not (able := ability("cpu_share")).here:
        pytest.skip(f"no share of CPU here: {able.missing}")
    for name, short in (("STARTS", 2), ("TURNS", 6), ("TURN_S", 0.3), ("WARM_S", 0.3)):
        monkeypatch.setattr(placed, name, short)
    tenth = Place(name="there", cpu_share=0.1)
    there, again = placed.asked_in_turns(ENGINES["tantivy"], tenth, tmp_path.resolve())
    assert there.ratio < 0.5 < again.ratio < 2
    assert there.low < there.ratio < there.high
