"""What Groonga says of its query cache: the hits among the selects, and how many answers it holds.

``status`` counts every ``select`` since the start as a lookup (``n_queries``) and gives the hits
among them in percent. Groonga takes nothing from its cache that it answered in the second in which
its database last changed, or before: a warm-up begins a second after the last document came in.

groonga-httpd counts in each of its workers by itself and does not say which one answers, so its
counters are not taken; the size of its cache is.
"""

from __future__ import annotations

from typing import Any

import orjson

from searchbench.engines.engine import CacheCounters, CacheState, Request
from searchbench.engines.groonga.commands import do
from searchbench.engines.http_form import HttpReply, split


def request() -> Request:
    """Both commands; neither is a lookup."""
    return Request((do("status"), do("cache_limit")))


def state(reply: bytes) -> CacheState:
    """Counters and size; ValueError where these are not the two replies."""
    replies = split(reply)
    if len(replies) != 2:
        raise ValueError(f"two replies were asked for, {len(replies)} came")
    status, limit = map(_body, replies)
    if not isinstance(limit, int):
        raise ValueError(f"the size of the cache is no number, but {limit!r}")
    if not replies[0].headers.get("server", "").startswith("Groonga"):
        return CacheState(entries=limit)
    lookups = int(status["n_queries"])
    hits = round(float(status["cache_hit_rate"]) * lookups / 100)
    return CacheState(CacheCounters(hits, lookups, "Groonga's status"), limit)


def _body(http: HttpReply) -> Any:
    if http.status != 200:
        raise ValueError(f"HTTP status {http.status}")
    answer = orjson.loads(http.body)
    return answer["body"] if isinstance(answer, dict) else answer[1]
