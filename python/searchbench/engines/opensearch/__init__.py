"""OpenSearch and Elasticsearch.

engine         OpenSearch: how a node starts, its analysis
elasticsearch  Elasticsearch: the same of its own
http           what both have in common: the cluster, and what goes over the wire
query          the query algebra in the Query DSL
levers         the levers of both, and the settings of their nodes
"""

from searchbench.engines.opensearch.elasticsearch import Elasticsearch
from searchbench.engines.opensearch.engine import OpenSearch

__all__ = ["Elasticsearch", "OpenSearch"]
