"""The query cache of MariaDB, and of MySQL to 5.7: its hits among the SELECTs.

MariaDB counts a hit as a SELECT too (``Com_select``); MySQL does not.
"""

from __future__ import annotations

from searchbench.engines.engine import CacheCounters, CacheState, Request
from searchbench.engines.mysql_form import query, split

# SHOW is no SELECT, so asking does not count.
_ASKED = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'query_cache_type', "
    "'query_cache_size')",
    "SHOW GLOBAL STATUS WHERE Variable_name IN ('Qcache_hits', 'Com_select')",
)


def request() -> Request:
    """Two statements on one connection."""
    return Request(tuple(map(query, _ASKED)))


def state(reply: bytes) -> CacheState:
    """The counters where the cache is on. It holds bytes, not a number of answers."""
    results = split(reply)
    trouble = next((r.error for r in results if r.error), None)
    if trouble or len(results) != len(_ASKED):
        raise ValueError(trouble or f"two results were asked for, {len(results)} came")
    known = {str(row["Variable_name"]): row["Value"] or "" for r in results for row in r.dicts()}
    # Servers without a query cache (MySQL 8) have no such variables.
    if known.get("query_cache_type", "OFF") == "OFF" or known.get("query_cache_size") == "0":
        return CacheState(entries=0)
    hits, selects = int(known["Qcache_hits"]), int(known["Com_select"])
    lookups = selects if "mariadb" in known["version"].lower() else selects + hits
    return CacheState(CacheCounters(hits, lookups, "Qcache_hits"))
