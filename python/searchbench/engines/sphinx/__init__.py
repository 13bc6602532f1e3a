"""Sphinx over SphinxQL and over its native protocol; Manticore.

engine     Sphinx over either wire: levers, requests and answers
manticore  Manticore, which is attached to
query      the query algebra as Sphinx understands it
ql         that as SphinxQL, and its results as hits
api        that in the native protocol, and its replies as hits
conf       configuration of searchd and indexer: parts, agents, levels
values     names, numbers and texts of a document
charset    the declared analysis as a charset_table
"""

from searchbench.engines.sphinx.engine import Sphinx, SphinxApi
from searchbench.engines.sphinx.manticore import Manticore

__all__ = ["Manticore", "Sphinx", "SphinxApi"]
