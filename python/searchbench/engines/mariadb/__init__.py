"""MariaDB's full-text search over the MySQL protocol.

engine  levers, requests and answers
query   the query algebra as SQL
table   tables, columns, documents as INSERT statements; the copy of a text that is indexed
"""

from searchbench.engines.mariadb.engine import MariaDB

__all__ = ["MariaDB"]
