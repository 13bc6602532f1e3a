"""What an engine cannot do is refused with its reason, whatever its translator does."""

from __future__ import annotations

import pytest

from searchbench.corpora.corpus import Field, FieldType, Schema
from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Capabilities, Parameters, Request
from searchbench.engines.features import features, refuse
from searchbench.engines.tantivy import Tantivy
from searchbench.errors import Unsupported
from searchbench.lab.conduct.serve import tap
from searchbench.lab.drive.workload import compile_all
from searchbench.workload.queries.algebra import Boolean, Facet, In, Mode, Query, Sort, Terms

SCHEMA = Schema((Field("title", FieldType.TEXT),))
SNIPPETS = Query(Terms(Mode.ALL, ("fox",)), snippets=("title",))


class Careless(Tantivy):
    """A translator that compiles whatever it is given."""

    can = Capabilities(
        "Careless", "", cannot={"snippets": "we could: nobody has", "fuzzy": "never"}
    )

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        return Request((b"",))


def test_the_lab_refuses_before_it_compiles() -> None:
    fuzzy = Query(Boolean(should=(Terms(Mode.FUZZY, ("fxo",)),)))
    plain = Query(Terms(Mode.ALL, ("fox",)))
    compiled = compile_all(Careless(), [SNIPPETS, plain, fuzzy], SCHEMA, {})
    assert compiled.request_to_query.tolist() == [1]
    assert compiled.unsupported == (
        (0, "Careless cannot do snippets: we could: nobody has"),
        (2, "Careless cannot do fuzzy: never"),
    )
    with pytest.raises(Unsupported, match="snippets"):
        tap(Careless(), SNIPPETS)


@pytest.mark.parametrize("name", ["lucene", "null"])
def test_no_library_host_is_sent_a_key_that_it_does_not_know(name: str) -> None:
    engine = ENGINES[name]
    with pytest.raises(Unsupported, match=r"snippets: (we could|never)"):
        engine.compile(SNIPPETS, SCHEMA, defaults(engine))


def test_every_part_of_a_query_has_its_name() -> None:
    query = Query(
        Boolean(must_not=(Terms(Mode.PREFIX, ("a",)), Terms(Mode.ANY, ("b",)))),
        (In("n", (1,)),),
        (Sort("_score"), Sort("n")),
        (Facet("k"),),
        "k",
        fields=("n",),
        snippets=("t",),
    )
    wanted = ["boolean", "prefix", "filters", "sort", "facets", "group_by", "fields", "snippets"]
    assert list(features(query)) == wanted
    assert list(features(Query(sort=(Sort("_score"),)))) == []
    refuse(Capabilities("Able", ""), query)
