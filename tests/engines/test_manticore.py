"""Manticore's translator, without a server: what it would send, and replies in Sphinx's form."""

from __future__ import annotations

import pytest

from engines.test_mysql_form import column, packet, string
from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines import ENGINES, defaults
from searchbench.lab.get.install import missing, presence

MANTICORE = ENGINES["manticore"]
SCHEMA = Schema((Field("title", FieldType.TEXT), Field("tags", FieldType.KEYWORDS)))


END = packet(b"\xfe\0\0\x02\0")


def table(names: tuple[bytes, ...], *rows: tuple[bytes, ...]) -> bytes:
    head = packet(bytes([len(names)])) + b"".join(map(column, names)) + END
    return head + b"".join(packet(b"".join(map(string, row))) for row in rows) + END


META = table((b"Variable_name", b"Value"), (b"total", b"1"), (b"total_found", b"7"))
STATUS = table((b"Counter", b"Value"), (b"version", b"6.2.12 dc5144d35@230822"))
NO_TABLE = packet(b"\xff\x28\x04#42000unknown local table(s) 'docs' in search request")


def test_it_says_that_it_was_never_run() -> None:
    assert "attach" in str(missing(MANTICORE))
    assert presence(MANTICORE).how_to_get.startswith("not run here")
    assert "untried" in MANTICORE.can.deviations


def test_version_and_documents_are_read_before_and_after_there_is_a_table() -> None:
    before = MANTICORE.facts(STATUS + NO_TABLE)
    assert (before.version, before.documents) == ("6.2.12", None)
    after = MANTICORE.facts(STATUS + table((b"key",), (b"a",)) + META)
    assert (after.version, after.documents) == ("6.2.12", 7)
    with pytest.raises(ValueError, match="not Manticore"):
        MANTICORE.facts(table((b"Counter", b"Value"), (b"uptime", b"3")) + NO_TABLE)


def test_the_table_has_a_column_for_all_that_is_inserted() -> None:
    (create,) = MANTICORE.create(SCHEMA, defaults(MANTICORE))
    made = create.exchanges[0][5:].decode()
    columns = [c.split()[0] for c in made.split("(", 1)[1].split(")", 1)[0].split(", ")]
    document = Document("a", {"title": "it's", "tags": ["x"]})
    (insert,) = MANTICORE.batch([document], 4, SCHEMA, defaults(MANTICORE)).exchanges
    named = insert[5:].decode().split("(", 1)[1].split(")", 1)[0].split(",")
    assert named == ["id", *columns]
    assert "\n" not in made
    assert ",'it\\'s',1," in insert[5:].decode()


def test_hits_and_warnings_are_decoded() -> None:
    rows = table((b"key", b"score"), (b"a", b"1500"))
    hits = MANTICORE.decode(rows + META)
    assert (hits.total, hits.hits[0].id, hits.hits[0].score, hits.partial) == (7, "a", 1500, False)
    lost = table((b"Variable_name", b"Value"), (b"total_found", b"3"), (b"warning", b"agent gone"))
    assert MANTICORE.decode(rows + lost).partial
    with pytest.raises(ValueError, match="SHOW META"):
        MANTICORE.decode(rows)
