"""What is sent to an endpoint that runs already: requests, before they are bytes.

Ask          one distinct request: a path with its query, or a statement
Group        asks that together make up a share of the requests
RequestSet   the distinct ones, the log of their use, and its times or its groups
sequence     the order in which they are asked
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from searchbench.errors import QueryError
from searchbench.workload.queries.sets import BadLine
from searchbench.workload.verbatim.headers import NOT_RECORDED, is_open


@dataclass(frozen=True, slots=True)
class Ask:
    """One distinct request. ``text``: the path with its query, or the statement.

    ``host``, ``port``, ``timeout_s`` None: those of the run. ``group``: the name of its group;
    ``own_class``: the class that its line names. The same request in two groups or two classes is
    two asks.
    """

    text: str
    method: str = "GET"
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    host: str | None = None
    port: int | None = None
    timeout_s: float | None = None
    group: str = ""
    own_class: str = ""

    @property
    def is_path(self) -> bool:
        """Whether it goes over HTTP; a statement begins otherwise (with a comment: ``/*``)."""
        return self.text.startswith("/") and not self.text.startswith("/*")

    def about(self) -> dict[str, Any]:
        """What is not its text, by name, for a record; a body that is not UTF-8 in base 64."""
        told: dict[str, Any] = {"method": self.method} if self.is_path else {}
        if self.body is not None:
            try:
                told["body"] = self.body.decode()
            except UnicodeDecodeError:
                told["body_base64"] = base64.b64encode(self.body).decode("ascii")
        if self.headers:
            told["headers"] = [[n, v if is_open(n) else NOT_RECORDED] for n, v in self.headers]
        for key in ("host", "port", "timeout_s"):
            if getattr(self, key) is not None:
                told[key] = getattr(self, key)
        if self.group:
            told["group"] = self.group
        return told


@dataclass(frozen=True, slots=True)
class Group:
    """``share`` of the requests, 0 to 1. ``members``: indices of asks; one twice counts twice."""

    name: str
    share: float
    members: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class RequestSet:
    """Distinct requests and the log of their use.

    ``asks``: all different, in order of first appearance. ``log``: uint32, index of each request
    written, in order (a file of N lines: N entries). ``times_s``: float64, when each was asked,
    seconds from the first, never decreasing; None where the source says nothing. ``groups``:
    shares that sum to 1; empty where there are none. ``bad``: the first few lines that are no
    request, of ``bad_count`` in all. ``classes``: the class of each ask, "" where it has none;
    empty where none has. QueryError where these do not fit together.
    """

    name: str
    asks: tuple[Ask, ...]
    log: NDArray[np.uint32]
    times_s: NDArray[np.float64] | None = None
    groups: tuple[Group, ...] = ()
    bad: tuple[BadLine, ...] = ()
    bad_count: int = 0
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.classes and len(self.classes) != len(self.asks):
            raise QueryError(f"{self.name} has not one class for each request")
        if not self.asks or len(self.log) == 0:
            raise QueryError(f"{self.name} has no requests")
        if self.log.dtype != np.uint32:
            raise QueryError(f"the log of {self.name} is {self.log.dtype}, and must be uint32")
        if int(self.log.max()) >= len(self.asks):
            raise QueryError(
                f"the log of {self.name} names request {int(self.log.max())} of {len(self.asks)}"
            )
        if len(set(self.asks)) != len(self.asks):
            raise QueryError(f"{self.name} has the same request twice among its distinct ones")
        self._check_times()
        self._check_groups()

    def _check_times(self) -> None:
        if self.times_s is None:
            return
        if len(self.times_s) != len(self.log):
            raise QueryError(f"{self.name} has not one time for each request of its log")
        if not bool(np.all(np.isfinite(self.times_s))):
            raise QueryError(f"{self.name} has a time that is not a number")
        back = np.flatnonzero(np.diff(self.times_s) < 0)
        if len(back):
            raise QueryError(
                f"{self.name} goes back in time at request {back[0] + 2}; sort it by time"
            )

    def _check_groups(self) -> None:
        if not self.groups:
            return
        for group in self.groups:
            if not group.members:
                raise QueryError(f"the group {group.name!r} of {self.name} has no requests")
            if not 0 <= min(group.members) <= max(group.members) < len(self.asks):
                raise QueryError(f"the group {group.name!r} of {self.name} names no request")
            if not 0 <= group.share <= 1:
                raise QueryError(f"the group {group.name!r} of {self.name} has a share of "
                                 f"{group.share:g}; a share is 0 to 1")  # fmt: skip
        total = sum(group.share for group in self.groups)
        if abs(total - 1) > 1e-9:
            raise QueryError(f"the shares of the groups of {self.name} sum to {total:g}, not 1")

    @property
    def distinct(self) -> int:
        """How many different requests."""
        return len(self.asks)

    @property
    def logged(self) -> int:
        """How many requests the log has, repetitions counted."""
        return len(self.log)

    @cached_property
    def digest(self) -> str:
        """SHA-256, hex, of the asks, the log, its times and the groups."""
        sha = hashlib.sha256(b"searchbench requests 1\n")
        for ask in self.asks:
            line = {"text": ask.text, "request": ask.about()}
            sha.update(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        sha.update(self.log.astype("<u4").tobytes())
        if self.times_s is not None:
            sha.update(b"times\n" + self.times_s.astype("<f8").tobytes())
        for group in self.groups:
            told = [group.name, group.share, group.members]
            sha.update(orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE))
        if self.classes:
            sha.update(b"classes\n" + orjson.dumps(self.classes))
        return sha.hexdigest()

    def lines(self) -> Iterator[dict[str, Any]]:
        """What a record keeps of each ask: ``query`` (its index), ``text``, ``request``, and
        ``class`` where they have classes.
        """
        for number, ask in enumerate(self.asks):
            own = {"class": self.classes[number]} if self.classes else {}
            yield {"query": number, "text": ask.text, "request": ask.about(), **own}


def sequence(requests: RequestSet, seed: int, length: int) -> NDArray[np.uint32]:
    """Which ask is sent when: uint32, ``length`` indices of asks.

    Without groups the log in its order, repeated. With groups: the group of each request is
    drawn by lot, by its share, and within a group its members are shuffled once and go round.
    (drnbench makes each group's share exact to one request and shuffles the whole; by lot the
    shares hold on the average, and a longer sequence begins with a shorter one of the same
    seed.) ValueError for a length below 1.
    """
    if length < 1:
        raise ValueError("a sequence has at least one request")
    if not requests.groups:
        return np.resize(requests.log, length).astype(np.uint32)
    shares = np.array([group.share for group in requests.groups])
    bounds = np.cumsum(shares)
    # The last bound may be 1 - 1e-16 by rounding; a group without a share must not get the rest.
    bounds[np.flatnonzero(shares)[-1] :] = 1.0
    lot = np.random.default_rng([seed, 0x67726F75]).random(length)
    chosen = np.searchsorted(bounds, lot, side="right")
    result = np.empty(length, dtype=np.uint32)
    for number, group in enumerate(requests.groups):
        places = np.flatnonzero(chosen == number)
        members = np.array(group.members, dtype=np.uint32)
        shuffled = np.random.default_rng([seed, 0x6D656D62, number]).permutation(members)
        result[places] = np.resize(shuffled, len(places))
    return result
