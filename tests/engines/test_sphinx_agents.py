"""Sphinx's agents with several parts: the answers of one index, and each asked by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.test_conformance import SCHEMA
from engines.test_sphinx import FULL, SPHINX, ask, ids, served, whole
from searchbench.engines import defaults
from searchbench.engines.engine import Level
from searchbench.errors import Unsupported
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.exchange import ask as at_wire

__all__ = ["whole"]


@pytest.fixture(autouse=True, scope="module")
def _here() -> None:
    if lacking := missing(SPHINX):
        pytest.skip(f"no Sphinx here: {lacking}")


def test_agents_with_several_parts_answer_as_one_index_and_each_by_itself(
    tmp_path: Path, whole: Deployment
) -> None:
    with served(tmp_path, parts=4, part_kind="mixed", parts_by_agent="1,2") as running:
        assert len(running.processes) == 3
        wanted = ask(whole, FULL)
        assert ask(running, FULL) == wanted
        assert running.facts.parameters["parts"] == 4
        assert running.facts.parameters["parts_by_agent"] == "1,2"
        request = SPHINX.compile(FULL, SCHEMA, running.params)
        alone = running.alone()
        assert list(alone) == ["p1", "p2"]
        found = [SPHINX.decode(at_wire(endpoint, [request])[0]) for endpoint in alone.values()]
        assert [hits.error for hits in found] == [None, None]
        held = [set(ids(hits)) for hits in found]
        assert not held[0] & held[1]
        assert held[0] | held[1] < set(ids(wanted))


@pytest.mark.parametrize(
    ("levers", "said"),
    [
        ({"part_kind": "local"}, "with part_kind = local there are none"),
        ({"part_kind": "agent", "parts": 4}, "the agents have 3 parts, and `parts` is 4"),
        ({"part_kind": "mixed", "parts": 3}, "the agents have 3 parts and the server one, and"),
    ],
)
def test_parts_that_agents_cannot_have_are_refused(levers: dict[str, Level], said: str) -> None:
    params = {**defaults(SPHINX), "parts": 3, "parts_by_agent": "1,2", **levers}
    with pytest.raises(Unsupported, match=said):
        SPHINX.service(params, SCHEMA)
