"""What is sent to an endpoint that runs already: requests before they are bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.queries.sets import BadLine


@dataclass(frozen=True, slots=True)
class Ask:
    text: str
    method: str = "GET"
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    host: str | None = None
    port: int | None = None
    timeout_s: float | None = None
    group: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    share: float
    members: tuple[int, ...]


@dataclass(frozen=True)
class RequestSet:
    name: str
    asks: tuple[Ask, ...]
    log: NDArray[np.uint32]
    times_s: NDArray[np.float64] | None = None
    groups: tuple[Group, ...] = ()
    bad: tuple[BadLine, ...] = ()
    bad_count: int = 0

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(repr((self.asks, self.log.tobytes())).encode()).hexdigest()[:16]

    def lines(self) -> Iterator[dict[str, Any]]:
        for n, a in enumerate(self.asks):
            yield {"query": n, "text": a.text, "request": {"method": a.method}}
