"""SenseiDB, over its own HTTP.

engine     levers, requests and answers
request    what it is asked, before it is written in one of its languages
languages  as JSON and as BQL
columns    a schema as a table, documents as events
"""

from searchbench.engines.sensei.engine import Sensei

__all__ = ["Sensei"]
