"""The levers that OpenSearch and Elasticsearch share, and the settings of their nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from searchbench.engines.engine import Parameters
from searchbench.engines.levers import choice, described, number, switch

_REQUEST = "never: it goes with each request and is not kept"
LEVERS = described(
    {
        number("nodes", 1, (1, 5), index=True): "how many processes the cluster has, all on this "
        "machine",
        number("shards", 1, (1, 64), index=True): "parts of the index",
        number("replicas", 0, (0, 4), index=True): "further copies of each shard, on other nodes; "
        "there must be fewer than nodes",
        choice("segments", "merged", "as-is", index=True): "merge each shard to one segment, or "
        "leave the segments as they are",
        number("refresh_ms", 0, (0, 3_600_000), index=True): "how often, in ms, new documents are "
        "made visible while batches come in; 0: only when asked",
        switch("query_cache", True, index=True): "cache which documents match filters that recur "
        "(true: the engines' own default)",
        switch("request_cache", False): "cache whole answers of each shard; false, so that we do "
        "not measure the cache",
        choice("statistics", "local", "global"): "term statistics for BM25: of each shard (local), "
        "or of all together (global: dfs_query_then_fetch)",
        choice("ties", "ingest", "shard"): "how ties between several shards are broken: by the "
        "order of ingest, which needs one more sort key, or by shard",
        choice("preference", "any", "local"): "which copy of a shard is searched. any: any of "
        "them; local: the one on the node that was asked, if it has one",
        number("heap_mb", 512, (64, 1048576)): "heap of each node's JVM (-Xms and -Xmx)",
    }
)
UNREAD = {
    "segments": "never: a single segment does not show whether it was merged",
    "statistics": _REQUEST,
    "ties": _REQUEST,
    "preference": _REQUEST,
}
DEVIATIONS = {
    "scoring": "BM25 (k1 1.2, b 0.75) without the constant factor k1 + 1, field lengths "
    "rounded to one byte; several fields add up; a prefix or fuzzy term counts 1",
    "analysis": "letters and digits as of Unicode 13 (Java 17); a word of more than "
    "10,922 UTF-16 units is not indexed",
    "sort": "the smallest and the greatest 64-bit integer sort with the missing values",
    "keyword": "a document with a keyword of more than 32,766 bytes is refused; ids have "
    "1 to 512 bytes",
}
LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] [%node_name] %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


def configuration(
    name: str, every: Sequence[str], params: Parameters, electing: str, more: Mapping[str, str]
) -> str:
    """The settings of the node ``name`` as YAML.

    ``every``: the nodes, of which the first is asked; ``electing``: the setting that names the
    first electors; ``more``: settings beside these.
    """
    found = {
        "cluster.name": "searchbench",
        "node.name": name,
        "network.host": "127.0.0.1",
        "http.port": "{port}" if name == every[0] else f"{{port:{name} http}}",
        "transport.port": f"{{port:{name}}}",
        "path.data": f'"{{data}}/{name}"',
        "path.logs": f'"{{run}}/{name}/logs"',
        # One machine, perhaps a full one: an index that is suddenly read-only is no measurement.
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        "action.auto_create_index": '"false"',
        # A limit that a query of our algebra could meet.
        "search.max_buckets": "2147483647",
        "indices.requests.cache.size": "1%" if params["request_cache"] else "0%",
    }
    if len(every) == 1:
        found["discovery.type"] = "single-node"
    else:
        seeds = ", ".join(f'"127.0.0.1:{{port:{n}}}"' for n in every)
        found["discovery.seed_hosts"] = f"[{seeds}]"
        found[electing] = f"[{', '.join(every)}]"
        # At a new start shards are looked for once all nodes are back, not copied anew before.
        found["gateway.expected_data_nodes"] = str(len(every))
    return "".join(f"{k}: {v}\n" for k, v in {**found, **more}.items())
