"""The caches of OpenSearch and Elasticsearch: of whole requests, and of filters within them.

Both count once for each shard. The request cache keeps answers of single shards; where requests are
not cached whole, the query cache may still have their filters.
"""

from __future__ import annotations

from typing import Any

import orjson

from searchbench.engines.engine import CacheCounters, CacheState, Request
from searchbench.engines.http_form import get, split


def request() -> Request:
    """The statistics of all indexes."""
    return Request((get("/_stats/request_cache,query_cache"),))


def state(reply: bytes) -> CacheState:
    """The counters of both. They hold bytes, not a number of answers."""
    (http,) = split(reply)
    if http.status != 200:
        raise ValueError(f"HTTP status {http.status}")
    total: dict[str, Any] = orjson.loads(http.body)["_all"]["total"]
    filters = _counters(total, "query_cache")
    return CacheState(_counters(total, "request_cache", filters))


def _counters(
    total: dict[str, Any], name: str, other: CacheCounters | None = None
) -> CacheCounters:
    hits = int(total[name]["hit_count"])
    lookups = hits + int(total[name]["miss_count"])
    return CacheCounters(hits, lookups, f"the {name.replace('_', ' ')}", False, other)
