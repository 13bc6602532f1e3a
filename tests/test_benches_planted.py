"""What is planted into logs comes back from ``searchbench logs``, and what does not is seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benches import planted
from benches.planted import SERVERS, Truth, between, plant, wrong

Planted = tuple[Path, dict[str, Truth], list[str]]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """A hundred thousand lines of seven servers."""
    folder = tmp_path_factory.mktemp("planted")
    return (folder, *plant(folder, 100_000, seed=5))


def test_every_planted_truth_comes_back(logs: Planted) -> None:
    folder, truths, words = logs
    assert wrong(folder, truths, words) == []
    assert sum(truth.lines for truth in truths.values()) == pytest.approx(100_000, rel=1e-3)
    assert {form.name for form, _ in SERVERS.values()} == {
        "sphinx", "sphinxql", "access", "json", "mysql-slow"
    }  # fmt: skip
    assert all(truth.failed > 0 for truth in truths.values() if "errors" in truth.format.says)


def test_what_comes_back_otherwise_is_seen(logs: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, truths, words = logs
    whole, alone = planted.read(folder), planted.read(folder / "db")
    monkeypatch.setattr(planted, "read", lambda of: whole if of == folder else alone)
    one = truths["sphinx-1"]
    # A time that is 1 % longer, and one search more that found nothing.
    longer = np.zeros_like(one.took)
    at = np.flatnonzero(one.took)
    np.add.at(longer, np.minimum(np.ceil(at * 1.01).astype(int), len(longer) - 1), one.took[at])
    for other, said in (
        (replace(one, took=longer), "sphinx-1, quantile 0.5"),
        (replace(one, zero=one.zero + 1), "sphinx-1, without hits"),
        (replace(one, lines=one.lines + 1), "sphinx-1, lines"),
        (replace(one, by_class=one.by_class + one.by_class), "classes"),
        (replace(one, by_index=one.by_index + one.by_index), "indexes"),
        (replace(one, by_words=one.by_words + one.by_words), "words"),
        (replace(one, asked=one.asked * 2), "most asked"),
    ):
        (found, *_) = wrong(folder, {**truths, "sphinx-1": other}, words)
        assert found.startswith(said), found


def test_a_quantile_lies_between_the_times_on_both_sides_of_it() -> None:
    counts = np.array([0, 2, 0, 1, 1])
    assert between(counts, 0.5) == (1, 3)
    assert between(counts, 0.75) == (3, 4)
    assert between(counts, 0.9) == (3, 4)
    assert between(counts, 0.1) == (1, 1)
