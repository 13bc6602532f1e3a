"""What `plan` says of crossings that are left out: in few sentences, and exactly which."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from searchbench.cli import app
from searchbench.study.left_out import left_out
from searchbench.study.plan import Excluded, Judging, Level, Plan, Treatment
from searchbench.study.planner import make_plan
from study_texts import SHORT, right

FACTORS = """
[factors]
"load.clients" = [1, 2, 4]
"queries.match" = ["any", "all", "phrase"]
"systems.tantivy.parts" = [1, 2]
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "products.csv").write_text("id,title\n1,red shoe\n")
    (tmp_path / "queries.txt").write_text("red shoe\nblue\n")
    return tmp_path


def text(*excluded: str) -> str:
    entries = "".join(f"[[exclude]]\nwhen = {{ {when} }}\nreason = \"{why}\"\n"
                      for when, _, why in (each.partition(": ") for each in excluded))  # fmt: skip
    short = SHORT.replace('match = "any"\n', "").replace("clients = 4\n", "")
    return short + FACTORS + entries


def said(base: Path, *excluded: str) -> list[str]:
    return list(left_out(make_plan(right(text(*excluded), base))))


def test_crossings_of_one_reason_are_one_sentence_with_their_levels(base: Path) -> None:
    slow = '"load.clients" = 4, "queries.match" = ["all", "phrase"]: too slow'
    assert said(base, slow) == [
        "left out: 6 treatments with load.clients = 4 and queries.match = all or phrase: too slow"
    ]
    assert said(base, '"system" = "sqlite", "load.clients" = [2, 4]: one writer') == [
        "left out: 6 treatments with system = sqlite and load.clients = 2 or 4: one writer"
    ]
    assert said(base, '"systems.tantivy.parts" = 2, "load.clients" = 1: known') == [
        "left out: 3 treatments with load.clients = 1 and systems.tantivy.parts = 2: known"
    ]
    assert said(base) == []


def test_what_another_reason_left_out_before_is_not_counted_twice(base: Path) -> None:
    found = said(
        base, '"system" = "sqlite", "load.clients" = 4: one writer', '"queries.match" = "any": dull'
    )
    first = "left out: 3 treatments with system = sqlite and load.clients = 4: one writer"
    assert first in found
    found.remove(first)
    assert all(one.endswith(": dull") for one in found)
    counts = [int(re.findall(r"\d+", one)[0]) for one in found]
    assert sum(counts) == 9 - 1
    assert len(counts) == 2


def test_plan_wraps_them_at_80_columns(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (base / "s.toml").write_text(text('"queries.match" = ["all", "any"]: ' + "long " * 30 + "end"))
    assert app(["plan", str(base / "s.toml")]) == 0
    printed = capsys.readouterr().out
    assert printed.count("left out") == 1
    assert "left out: 18 treatments with queries.match = any or all: long" in printed
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.parametrize("seed", range(40))
def test_the_sentences_name_exactly_what_is_left_out(seed: int) -> None:
    rng = random.Random(seed)
    factors: dict[str, list[Level]] = {
        "system": ["a", "b", "c"],
        "load.clients": [1, 2, 4],
        "queries.match": ["any", "all"],
        "systems.a.parts": [1, 2, 3],
        "systems.b.merged": [True, False],
    }
    crossings: list[dict[str, Level]] = []
    for system in ("a", "b", "c"):
        own = [p for p in factors if not p.startswith("systems.") or p.split(".")[1] == system]
        levels = [[system] if path == "system" else factors[path] for path in own]
        crossings += [dict(zip(own, one, strict=True)) for one in itertools.product(*levels)]
    reasons = ["", "", "one", "two"]
    why = [rng.choice(reasons) for _ in crossings] if seed % 2 else _by_rule(crossings, rng)
    plan = Plan(
        question="?",
        seed=1,
        treatments=tuple(_treatment(c) for c, w in zip(crossings, why, strict=True) if not w),
        excluded=tuple(Excluded(c, w) for c, w in zip(crossings, why, strict=True) if w),
        judging=Judging(factors=factors),
    )
    named: Counter[tuple[int, str]] = Counter()
    for sentence in left_out(plan):
        found = re.fullmatch(r"left out: (\d+) treatments?(?: with (.*))?: (\w+)", sentence)
        assert found, sentence
        wanted = dict(one.split(" = ") for one in (found[2] or "").split(" and ") if one)
        fitting = [i for i, c in enumerate(crossings) if all(
            path in c and str(c[path]).lower() in re.split(r", | or ", levels)
            for path, levels in wanted.items()
        )]  # fmt: skip
        assert len(fitting) == int(found[1]), sentence
        named.update((i, found[3]) for i in fitting)
    assert named == Counter((i, w) for i, w in enumerate(why) if w)


def _by_rule(crossings: list[dict[str, Level]], rng: random.Random) -> list[str]:
    """As a study's exclusions do it: the first that fits gives the reason."""
    clients, system = rng.choice([1, 2, 4]), rng.choice("abc")
    rules = [({"load.clients": clients}, "one"), ({"system": system}, "two")]
    return [
        next((w for when, w in rules if all(c.get(p) == v for p, v in when.items())), "")
        for c in crossings
    ]


def _treatment(levels: dict[str, Level]) -> Treatment:
    return Treatment(id="", label="", system="", engine="", levels=levels, settings={})
