"""OrientDB.

engine  its levers, how a server starts, requests and answers
query   the query algebra in its SQL, with Lucene's own syntax within
rest    requests and replies as bytes
"""

from searchbench.engines.orientdb.engine import OrientDB

__all__ = ["OrientDB"]
