"""OpenSearch and Elasticsearch.

engine         OpenSearch: how its nodes start, its analysis
elasticsearch  Elasticsearch: the same of its own
http           what both have in common on the wire
query          the query algebra in the Query DSL
levers         the levers of both, and the settings of their nodes
node           the nodes of an OpenSearch cluster
counters       what both say of their caches
"""

from searchbench.engines.opensearch.elasticsearch import Elasticsearch
from searchbench.engines.opensearch.engine import OpenSearch

__all__ = ["Elasticsearch", "OpenSearch"]
