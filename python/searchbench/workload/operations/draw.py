"""Which rows an operation asks for: drawn from the corpus with the seed, in an order.

ascending   random rows, their keys in the corpus's order
random      the same rows in an order drawn by lot
clustered   rows that follow each other in the corpus, from a place that is drawn

The same seed gives the same rows whatever the method is, and those of a smaller number are not the
beginning of those of a greater one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.errors import QueryError

ORDERS = ("ascending", "random", "clustered")
Columns = Mapping[str, NDArray[Any]]


def places_of(held: int, rows: int, draws: int, order: str, seed: int) -> list[NDArray[np.int64]]:
    """For each draw the places (from 0) of ``rows`` of the ``held`` rows, all different.

    QueryError where there are not so many.
    """
    if rows > held:
        raise QueryError(f"{rows:,} different rows are asked for, and the corpus has {held:,}")
    found = []
    for number in range(draws):
        rng = np.random.default_rng([seed, number, rows])
        if order == "clustered":
            start = int(rng.integers(0, held - rows + 1))
            found.append(np.arange(start, start + rows, dtype=np.int64))
            continue
        chosen = rng.choice(held, rows, replace=False, shuffle=True).astype(np.int64)
        found.append(np.sort(chosen) if order == "ascending" else chosen)
    return found


def values_at(columns: Columns, names: Sequence[str], places: NDArray[np.int64]) -> list[list[Any]]:
    """By column the values at these places, as Python has them."""
    return [columns[name][places].tolist() for name in names]
