"""OpenSearch, the distributed search engine over Lucene, as a cluster of nodes on this machine."""

from __future__ import annotations

from searchbench.corpora.corpus import Schema
from searchbench.engines import opensearch_node as node
from searchbench.engines.engine import Capabilities, Parameter, Parameters, Service
from searchbench.engines.opensearch_http import RestSearch, whole
from searchbench.errors import Unsupported

_GET = "`searchbench engines install opensearch` gets it from Maven Central"
REQUEST = "never: it goes with each request and is not kept"


class OpenSearch(RestSearch):
    """Nodes of one cluster, one index; the first node is asked and coordinates the others."""

    name = "opensearch"
    can = Capabilities(
        title="OpenSearch",
        home="https://opensearch.org",
        artifacts=(
            f"org.opensearch.distribution.integ-test-zip:opensearch:{node.VERSION}:zip",
            f"org.opensearch.plugin:analysis-common:{node.VERSION}:jar",
        ),
        unread={
            "segments": "never: whether a single segment was merged or came so leaves no trace",
            "statistics": REQUEST,
            "ties": REQUEST,
            "preference": REQUEST,
        },
        deviations={
            "scoring": "BM25 (k1 1.2, b 0.75) without the constant factor k1 + 1, field lengths "
            "rounded to one byte; several fields add up; a prefix or fuzzy term counts 1",
            "analysis": "letters and digits as of Unicode 13 (Java 17); a word of more than "
            "10,922 UTF-16 units is not indexed",
            "sort": "an integer of the least or greatest 64-bit value sorts with the missing ones",
            "keyword": "a document with a keyword of more than 32,766 bytes is refused; ids have "
            "1 to 512 bytes",
        },
    )
    parameters = (
        Parameter(
            "nodes", int, 1, "processes of the cluster, on this machine", (), 1, 5, index=True
        ),
        Parameter("shards", int, 1, "parts of the index", (), 1, 64, index=True),
        Parameter(
            "replicas",
            int,
            0,
            "further copies of each shard, on other nodes: less than nodes",
            (),
            0,
            4,
            index=True,
        ),
        Parameter(
            "segments",
            str,
            "merged",
            "merge each shard to one segment, or leave the segments as they are",
            choices=("merged", "as-is"),
            index=True,
        ),
        Parameter(
            "refresh_ms",
            int,
            0,
            "show new documents this often while batches come in; 0: only when asked",
            minimum=0,
            maximum=3_600_000,
            index=True,
        ),
        Parameter(
            "query_cache",
            bool,
            True,
            "cache the documents of filters that come again (OpenSearch's own default)",
            index=True,
        ),
        Parameter(
            "request_cache",
            bool,
            False,
            "cache whole answers of each shard; off, so that the speed is not the cache's",
        ),
        Parameter(
            "statistics",
            str,
            "local",
            "term statistics for BM25: of each shard, or of all (dfs_query_then_fetch)",
            choices=("local", "global"),
        ),
        Parameter(
            "ties",
            str,
            "ingest",
            "break ties over several shards by the order of ingest, a sort key more, or by shard",
            choices=("ingest", "shard"),
        ),
        Parameter(
            "preference",
            str,
            "any",
            "which copy of a shard is asked: any, or one on the node that was asked if it has one",
            choices=("any", "local"),
        ),
        Parameter(
            "heap_mb",
            int,
            512,
            "heap of each node's JVM, least and most",
            minimum=64,
            maximum=1048576,
        ),
    )
    # Lucene's own regular expressions know no classes of Unicode, so the slower `pattern`.
    analysis = {  # noqa: RUF012 -- a declaration, like the others
        "tokenizer": {"runs": {"type": "pattern", "pattern": "[^\\p{L}\\p{N}]+"}},
        "filter": {"indexable": {"type": "length", "max": 10_922}},
        "analyzer": {
            "declared": {
                "type": "custom",
                "tokenizer": "runs",
                "filter": ["lowercase", "indexable"],
            }
        },
    }
    # The default policy joins segments that are no neighbours, and ties lose their order.
    merge_policy = {"merge.policy": "log_byte_size"}  # noqa: RUF012

    def service(self, params: Parameters, schema: Schema) -> Service:
        """One JVM a node. What its launcher would take from the machine is spelled out."""
        if int(params["replicas"]) >= int(params["nodes"]):
            raise Unsupported(
                f"OpenSearch cannot keep {params['replicas']} replicas on {params['nodes']} "
                "node(s): a copy of a shard never stands beside another; take more nodes or "
                "fewer replicas"
            )
        cached = "1%" if params["request_cache"] else "0%"
        return Service(
            argv=node.command("n1", params),
            wire="http",
            ready=self.ready(params),
            whole=whole(params),
            files=node.files(params, {"indices.requests.cache.size": cached}),
            needs={
                "java": "install Java 17 (Debian: apt-get install openjdk-17-jre-headless)",
                f"{node.TREE}/lib": _GET,
                node.ANALYSIS: _GET,
            },
            companions=node.companions(params),
            refuses_root=True,
            ready_timeout_s=120.0,
        )
