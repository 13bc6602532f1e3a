"""What a fault took of acknowledged writes, by counts that are known: no server is needed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from searchbench.analysis.roles import faults
from searchbench.analysis.roles.accepted import Written
from searchbench.analysis.roles.model import Durable, FaultResult
from searchbench.analysis.trial.measured import NEVER
from searchbench.report.tables import roles as tables

BEFORE = 10_000


def acknowledged(**kinds: int) -> Written:
    """So many documents of each kind, one a request, all taken."""
    kind = np.repeat(np.array([*kinds], object), [*kinds.values()])
    n = kind.size
    at, no, one = np.arange(n), np.zeros(n, np.bool_), np.ones(n, np.int64)
    nothing = np.full(n, None, object)
    return Written(at, at, at, at, at, ~no, no, no, one, one, kind, nothing, nothing)


def durable(
    monkeypatch: pytest.MonkeyPatch, made: Written, after: int, updated: int | None
) -> Durable:
    applied = SimpleNamespace(before=BEFORE, after=after, updated=updated, drawn=[])
    run: Any = SimpleNamespace(does="write", idle=False, applied=applied)
    trial: Any = SimpleNamespace(beside=[run], fault=SimpleNamespace(begun=1, trouble=""))
    monkeypatch.setattr(faults, "written", lambda *_: made)
    found = faults._durable(SimpleNamespace(), [trial])  # type: ignore[arg-type]
    assert found is not None
    return found


def lost_cell(durable: Durable) -> str:
    """What the table has of it."""
    of = FaultResult("x", "kill", "server", "t", "t", {}, 1, back=True, durable=durable)
    return str(tables.faults([of]).rows[0][-1].text)


def test_what_was_taken_unseen_may_hide_what_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 300 acknowledged inserts 10 are gone, and 10 that nobody answered were taken."""
    made, last = acknowledged(insert=310), np.arange(310) >= 300
    made = replace(made, well=~last, doubt=last, taken=np.where(last, 0, 1),
                   done=np.where(last, NEVER, made.done))  # fmt: skip
    found = durable(monkeypatch, made, BEFORE + 300, None)
    assert (found.lost, found.unknown) == (0, 10)
    assert "none is gone by the count (whether 10 more were taken" in faults.durability(found)
    assert lost_cell(found) == "at least 0"


def test_a_document_that_was_updated_and_is_gone_is_lost_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = acknowledged(insert=500, update=500)
    found = durable(monkeypatch, made, BEFORE + 500 - 10, 500 - 10)
    assert (found.lost, found.cancels) == (10, 0)
    assert "10 are gone;" in faults.durability(found)


@pytest.mark.parametrize(("deletes", "hides"), [(0, 0), (500, 1)])
def test_inserts_that_are_gone_may_hide_behind_deletes_that_are_undone(
    monkeypatch: pytest.MonkeyPatch, deletes: int, hides: int
) -> None:
    """Of both kinds the last 50 are lost: the count is what it must be."""
    made = acknowledged(insert=500, **({"delete": deletes} if deletes else {}))
    lost = 50 if not deletes else 0
    cell = {(0, 0): "50", (500, 1): "at least 0"}[deletes, hides]
    found = durable(monkeypatch, made, BEFORE + 500 - deletes - lost, None)
    assert (found.lost, found.cancels) == (lost, hides)
    assert lost_cell(found) == cell
    assert ("a delete that is undone hides an insert that is gone" in faults.durability(found)) is (
        hides == 1
    )


@pytest.mark.parametrize("others", [0, 2])
def test_a_trial_whose_server_did_not_come_back_is_said_and_may_have_lost_all(
    monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    """It was left out: "Of 600 documents that were acknowledged in the drive, none is gone"."""
    made = acknowledged(insert=300)
    applied = SimpleNamespace(before=BEFORE, after=BEFORE + 300, updated=None, drawn=[])
    trials: Any = [
        SimpleNamespace(
            beside=[SimpleNamespace(does="write", idle=False, applied=there)],
            fault=SimpleNamespace(begun=1, trouble="" if there else "it did not start"),
        )
        for there in (*[applied] * others, None)
    ]
    monkeypatch.setattr(faults, "written", lambda *_: made)
    found = faults._durable(SimpleNamespace(), trials)  # type: ignore[arg-type]
    assert found is not None
    assert (found.never_back, found.unlooked, found.acknowledged) == (1, 300, 300 * others)
    said = faults.durability(found)
    assert "In 1 trial the server did not come back" in said
    assert "300 documents acknowledged there is unknown: it may be all of them" in said
    assert ("In the other trials: Of 600" in said) is bool(others)
    assert lost_cell(found) == ("at least 0" if others else "unknown")
