"""OpenSearch and Elasticsearch.

engine  of each how a node starts, and its analysis
http    what both have in common: the cluster, and what goes over the wire
query   the query algebra in the Query DSL
levers  the levers of both, and the settings of their nodes
"""

from searchbench.engines.opensearch.engine import Elasticsearch, OpenSearch

__all__ = ["Elasticsearch", "OpenSearch"]
