"""What a fault took of acknowledged writes, by counts that are known: no server is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from searchbench.analysis.roles import faults
from searchbench.analysis.roles.accepted import Written
from searchbench.analysis.roles.model import Durable

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
    trial: Any = SimpleNamespace(beside=[run], fault=SimpleNamespace(begun=1))
    monkeypatch.setattr(faults, "written", lambda *_: made)
    found = faults._durable(SimpleNamespace(), [trial])  # type: ignore[arg-type]
    assert found is not None
    return found


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
    found = durable(monkeypatch, made, BEFORE + 500 - deletes - lost, None)
    assert (found.lost, found.cancels) == (lost, hides)
    assert ("a delete that is undone hides an insert that is gone" in faults.durability(found)) is (
        hides == 1
    )
