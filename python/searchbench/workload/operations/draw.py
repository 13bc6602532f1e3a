"""Which rows an operation asks for: drawn from the corpus with the seed, in an order.

ascending   random rows, their keys in the corpus's order
random      the same rows in an order drawn by lot
clustered   rows that follow each other in the corpus; which is the first is drawn by lot

The same seed gives the same rows for every method. A draw of few rows is not the beginning of a
draw of more rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.errors import QueryError

ORDERS = ("ascending", "random", "clustered")
Columns = Mapping[str, NDArray[Any]]


def rows_of(held: int, rows: int, draws: int, order: str, seed: int) -> list[NDArray[np.int64]]:
    """For each draw the numbers (from 0) of ``rows`` of the ``held`` rows, all different.

    QueryError if there are fewer rows than that.
    """
    if rows > held:
        raise QueryError(
            f"the operation asks for {rows:,} different rows, and the corpus has {held:,}; "
            "make `rows` smaller, or the corpus larger"
        )
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


def values_at(
    columns: Columns, names: Sequence[str], numbers: NDArray[np.int64]
) -> list[list[Any]]:
    """By column the values in these rows, as Python has them."""
    return [columns[name][numbers].tolist() for name in names]
