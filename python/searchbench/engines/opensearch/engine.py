"""OpenSearch, the distributed search engine over Lucene, as a cluster of nodes on this machine."""

from __future__ import annotations

from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import Capabilities, Parameters, Service
from searchbench.engines.opensearch import node
from searchbench.engines.opensearch.http import RestSearch, whole
from searchbench.engines.opensearch.levers import (
    DEVIATIONS,
    LEVERS,
    UNREAD,
    ready_timeout_s,
    refuse_idle_copies,
)

_GET = "`searchbench engines install opensearch` gets it from Maven Central"


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
        unread=UNREAD,
        deviations=DEVIATIONS,
    )
    parameters = LEVERS
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
        refuse_idle_copies(self.can.title, params)
        return Service(
            argv=node.command("n1", params),
            wire="http",
            ready=self.ready(params),
            whole=whole(params),
            files=node.files(params),
            needs={
                "java": "install Java 17 (Debian: apt-get install openjdk-17-jre-headless)",
                f"{node.TREE}/lib": _GET,
                node.ANALYSIS: _GET,
            },
            companions=node.companions(params),
            refuses_root=True,
            ready_timeout_s=ready_timeout_s(120.0, params),
        )
