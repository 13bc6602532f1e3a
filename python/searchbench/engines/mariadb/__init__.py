"""MariaDB's full-text search over the MySQL protocol.

engine    levers, requests and answers
query     the query algebra as SQL
table     tables, columns, documents as INSERT statements
text      the copy of a text that is indexed
counters  what it says of its query cache
"""

from searchbench.engines.mariadb.engine import MariaDB

__all__ = ["MariaDB"]
