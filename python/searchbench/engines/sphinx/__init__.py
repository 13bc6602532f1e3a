"""Sphinx over SphinxQL and over its native protocol; Manticore.

engine  Sphinx over SphinxQL, and Manticore: requests and answers
query   the query algebra as Sphinx understands it, and hits from its answers
api     Sphinx over its native protocol
conf    levers, and the configuration of searchd and indexer: parts, agents, levels
values  names, numbers and texts of a document; the declared analysis as a charset_table
"""

from searchbench.engines.sphinx.api import SphinxApi
from searchbench.engines.sphinx.engine import Manticore, Sphinx

__all__ = ["Manticore", "Sphinx", "SphinxApi"]
