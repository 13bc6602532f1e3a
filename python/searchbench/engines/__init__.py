"""The engines: one line each. What an engine is stands in engine.py."""

from __future__ import annotations

import difflib

from searchbench.engines.engine import Engine, Level
from searchbench.engines.groonga import Droonga, Groonga
from searchbench.engines.lucene import Lucene, Lucene10
from searchbench.engines.mariadb import MariaDB
from searchbench.engines.null import Null
from searchbench.engines.opensearch import Elasticsearch, OpenSearch
from searchbench.engines.orientdb import OrientDB
from searchbench.engines.postgresql import Postgresql
from searchbench.engines.sensei import Sensei
from searchbench.engines.sphinx import Manticore, Sphinx, SphinxApi
from searchbench.engines.sqlite import Sqlite
from searchbench.engines.tantivy import Tantivy
from searchbench.errors import SearchbenchError

_TABLE: tuple[Engine, ...] = (
    Tantivy(),
    Sqlite(),
    Lucene(),
    Lucene10(),
    Groonga(),
    Droonga(),
    Sphinx(),
    SphinxApi(),
    Manticore(),
    MariaDB(),
    Postgresql(),
    OpenSearch(),
    Elasticsearch(),
    Sensei(),
    OrientDB(),
    Null(),
)
ENGINES: dict[str, Engine] = {engine.name: engine for engine in _TABLE}


def engine(name: str) -> Engine:
    """The engine of that name, or a sentence with the nearest one."""
    try:
        return ENGINES[name]
    except KeyError:
        near = difflib.get_close_matches(name, ENGINES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(ENGINES)}"
        raise SearchbenchError(f"there is no engine {name!r}; {hint}") from None


def defaults(engine: Engine) -> dict[str, Level]:
    """Every parameter at its default."""
    return {p.name: p.default for p in engine.parameters}
