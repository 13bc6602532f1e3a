"""Manticore, Sphinx's successor: the same dialect over the same wire, attached to. Never run here.

No Debian package and no Maven artifact brings it, so what stands here was written from its manual
and from what Sphinx 2.2 does with the same statements; no server has answered it yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from searchbench.corpora.corpus import Document, Schema
from searchbench.engines.engine import (
    Capabilities,
    Facts,
    Hits,
    Offline,
    Parameter,
    Parameters,
    Request,
    Service,
)
from searchbench.engines.mysql_form import query as packet
from searchbench.engines.mysql_form import split
from searchbench.engines.sphinx import ql, values
from searchbench.engines.sphinx.charset import charset_table
from searchbench.engines.sphinx.query import NO_FUZZY, RANKERS, plan
from searchbench.workload.queries.algebra import Query

_TABLE = "docs"
_NEVER = "never: it is said in each query"
_KINDS = {"field": "text indexed", "multi_64": "multi64"}
_CONFIG = """searchd
{
  listen = 127.0.0.1:{port}:mysql
  log = {run}/searchd.log
  pid_file = {run}/searchd.pid
  data_dir = {data}
  collation_server = binary
  max_packet_size = 128M
}
"""


class Manticore:
    """One real-time table, made and filled over SphinxQL."""

    name = "manticore"
    can = Capabilities(
        title="Manticore",
        home="https://manticoresearch.com",
        unavailable="neither Debian nor Maven Central has it; attach to one that runs",
        cannot={
            "fuzzy": NO_FUZZY,
            "parts": "we could: distributed tables are as in Sphinx; here it is one table",
        },
        deviations={
            "scoring": "weights are whole numbers: proximity times 1000 and BM25",
            "facets": "of a field with several values, the last of those with equal counts may be "
            "others",
            "untried": "no server has answered this translator yet: its first answers try it",
        },
        unread=dict.fromkeys(("match_mode", "ranker"), _NEVER),
    )
    parameters = (
        Parameter(
            "match_mode",
            str,
            "algebra",
            "how plain terms are asked: in the extended syntax as the algebra has them, or as "
            "Sphinx rewrote the match mode of old that means the same, with its own ranker",
            choices=("algebra", "any", "all", "phrase", "boolean"),
        ),
        Parameter(
            "ranker",
            str,
            "proximity_bm25",
            "how matches are weighted, where match_mode is algebra",
            choices=RANKERS,
        ),
    )

    def service(self, params: Parameters, schema: Schema) -> Service:
        """One searchd that keeps its tables itself."""
        return Service(
            argv=("searchd", "--config", "{run}/manticore.conf", "--nodetach"),
            wire="sphinxql",
            ready=self.facts_request(),
            login=("root", "", ""),
            files={"manticore.conf": _CONFIG},
        )

    def offline(self, schema: Schema, params: Parameters) -> Offline | None:
        """None: it is ingested into."""
        return None

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """One table with the declared analysis."""
        columns = [(values.KEY, "string"), *values.columns(schema)]
        written = ", ".join(f"{name} {_KINDS.get(kind, kind)}" for name, kind in columns)
        table = charset_table().replace("\\\n", " ")
        return [
            Request(
                (
                    packet(
                        f"CREATE TABLE {_TABLE} ({written}) charset_table={ql.literal(table)} "
                        "min_prefix_len='1' dict='keywords'"
                    ),
                )
            )
        ]

    def batch(
        self, documents: Sequence[Document], start: int, schema: Schema, params: Parameters
    ) -> Request:
        """One INSERT; numbers count from 1."""
        return Request((packet(ql.insert(_TABLE, enumerate(documents, start + 1), schema)),))

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Memory to disk, and the chunks of the disk to one."""
        return [
            Request(
                (
                    packet(f"FLUSH RAMCHUNK {_TABLE}"),
                    packet(f"OPTIMIZE TABLE {_TABLE} OPTION sync=1, cutoff=1"),
                )
            )
        ]

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """SELECTs and SHOW META in one packet."""
        ask = plan(query, schema, params, self.can.title)
        return Request((packet(ql.statements(ask, _TABLE)),))

    def decode(self, reply: bytes) -> Hits:
        """Hits, counts, warnings; a warning means that a part did not answer."""
        return ql.hits(reply)

    def facts_request(self) -> Request:
        """Version, and how many documents there are once there is a table."""
        return Request(
            (
                packet("SHOW STATUS LIKE 'version'"),
                packet(f"SELECT {values.KEY} FROM {_TABLE} LIMIT 0,1; SHOW META"),
            )
        )

    def facts(self, reply: bytes) -> Facts:
        """Before ``create`` there are no documents to count."""
        status, *rest = split(reply)
        told = ql.pairs(status)
        if "version" not in told:
            raise ValueError(
                status.error or "SHOW STATUS tells no version, so this is no Manticore"
            )
        build = told["version"]
        found = ql.pairs(rest[-1]) if len(rest) == 2 and not rest[-1].code else {}
        return Facts(
            version=build.split(" ", 1)[0],
            documents=int(found["total_found"]) if "total_found" in found else None,
            extra={"build": build},
        )

    def analyse(self, text: str) -> Request | None:
        """CALL KEYWORDS; in a text an asterisk is no wildcard."""
        plain = values.searchable(text).replace("*", " ")
        return Request((packet(f"CALL KEYWORDS({ql.literal(plain)}, '{_TABLE}')"),))

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """The terms in order."""
        (result,) = split(reply)
        if result.error:
            raise ValueError(result.error)
        return tuple(str(row["tokenized"]) for row in result.dicts())

    def refused(self, reply: bytes) -> tuple[tuple[str, str], ...]:
        """A statement is taken whole or refused whole, which is an error of the batch."""
        return ()

    def check(self, reply: bytes) -> str | None:
        """The first error of the statements."""
        return next((r.error for r in split(reply) if r.code), None)
