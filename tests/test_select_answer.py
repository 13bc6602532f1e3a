"""Answers to a select that a user wrote: every command version, any columns, errors as errors."""

from __future__ import annotations

import pytest

from searchbench.engines import engine as engine_named
from searchbench.engines.groonga.select_answer import decode
from searchbench.lab.system.attach import Tolerant


def reply(body: str, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body.encode())}\r\n\r\n{body}".encode()


# As Groonga 13.0.0 answered, but for the times.
OLD = '[[0,1.5,0.001],[[[148],[["title","ShortText"]],["word946"],["word1630"]]]]'
NEW = (
    '{"header":{"return_code":0,"start_time":1.5,"elapsed_time":0.001},"body":{"n_hits":148,'
    '"columns":[{"name":"title","type":"ShortText"}],"records":[["word946"],["word1630"]]}}'
)
REFUSED = (
    '[[-22,1.5,0.001,"[select][table] invalid name: <Nope>",[["execute","proc_select.cpp",4983]]]]'
)
REFUSED_NEW = (
    '{"header":{"return_code":-22,"start_time":1.5,"elapsed_time":0.001,"error":{"message":'
    '"[select][table] invalid name: <Nope>","file":"proc_select.cpp","line":4983}}}'
)


@pytest.mark.parametrize("body", [OLD, NEW], ids=["version 1 and 2", "version 3"])
def test_the_total_and_the_hits_come_out_the_same_in_each_version(body: str) -> None:
    found = decode(reply(body))
    assert found.total == 148
    assert [hit.id for hit in found.hits] == ["word946", "word1630"]
    assert found.hits[0].fields == {"title": "word946"}
    assert found.hits[0].score is None


@pytest.mark.parametrize("body", [REFUSED, REFUSED_NEW], ids=["version 1 and 2", "version 3"])
def test_a_refusal_is_an_error_in_the_servers_words(body: str) -> None:
    found = decode(reply(body, "400 Bad Request"))
    assert found.total is None
    assert found.error == "[select][table] invalid name: <Nope>"


def test_a_page_of_a_front_is_an_error_with_its_status() -> None:
    assert decode(reply("<html>", "502 Bad Gateway")).error == "HTTP status 502"


def test_a_key_names_a_hit_before_an_id_and_both_before_other_columns() -> None:
    columns = '[["title","ShortText"],["_id","UInt32"],["_key","ShortText"],["_score","Int32"]]'
    found = decode(reply(f'[[0,1.5,0.001],[[[1],{columns},["a",7,"k",3]]]]'))
    assert (found.hits[0].id, found.hits[0].score) == ("k", 3.0)
    found = decode(reply('[[0,1.5,0.001],[[[1],[["n","UInt32"],["_id","UInt32"]],[9,7]]]]'))
    assert found.hits[0].id == "7"


def test_drilldowns_after_the_hits_do_not_matter() -> None:
    drilled = '[[2],[["_key","ShortText"]],["x"],["y"]]'
    body = f'[[0,1.5,0.001],[[[1],[["_id","UInt32"]],[4]],{drilled}]]'
    assert [hit.id for hit in decode(reply(body)).hits] == ["4"]


@pytest.mark.parametrize("body", ['[[0,1.5,0.001],{"uptime":3}]', "true", "{}", "<xml/>", "[[0]]"])
def test_what_is_no_answer_to_a_select_is_said_to_be_none(body: str) -> None:
    with pytest.raises(ValueError, match=r"select|JSON"):
        decode(reply(body))


@pytest.mark.parametrize("name", ["groonga", "droonga"])
def test_a_load_run_reads_them_for_both_and_gives_up_quietly_on_the_rest(name: str) -> None:
    reader = Tolerant(engine_named(name))
    assert reader.decode(reply(OLD)).total == 148
    assert [hit.id for hit in reader.decode(reply(OLD)).hits] == ["word946", "word1630"]
    assert reader.decode(reply(REFUSED, "400 Bad Request")).error
    status = reader.decode(reply('[[0,1.5,0.001],{"uptime":3}]'))
    assert (status.total, status.hits, status.error) == (None, (), None)


def test_any_search_of_opensearch_is_read_by_its_own_translator() -> None:
    body = (
        '{"took":1,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},'
        '"hits":{"total":{"value":2,"relation":"eq"},"max_score":1.0,"hits":[{"_index":"pages",'
        '"_id":"7","_score":1.0,"_source":{"title":"word946"}},{"_index":"pages","_id":"9",'
        '"_score":0.5}]}}'
    )
    found = Tolerant(engine_named("opensearch")).decode(reply(body))
    assert found.total == 2
    assert [(hit.id, hit.score) for hit in found.hits] == [("7", 1.0), ("9", 0.5)]
