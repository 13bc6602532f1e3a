"""PostgreSQL's own full-text search.

engine  levers, requests and answers
query   the query algebra as SQL and text search queries
table   columns, indexes, documents as rows, texts as vectors of words
"""

from searchbench.engines.postgresql.engine import Postgresql

__all__ = ["Postgresql"]
