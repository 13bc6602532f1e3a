"""Groonga, and Droonga, its replicated sibling.

engine         Groonga: levers, requests and answers
service        its two servers, groonga -s and groonga-httpd
droonga        Droonga, which is attached to
commands       commands as HTTP requests, for both
script         the query algebra in Groonga's script syntax, for both
select_answer  answers to a select that somebody else wrote
"""

from searchbench.engines.groonga.droonga import Droonga
from searchbench.engines.groonga.engine import Groonga

__all__ = ["Droonga", "Groonga"]
