"""What every corpus has: a schema, documents, a digest; and the table that opens one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from searchbench.corpora import SPEC_KEYS, complaints, keys_of, open_corpus
from searchbench.corpora.corpus import Document, Field, FieldType, Schema, digest
from searchbench.errors import CorpusError

SCHEMA = Schema((Field("body", FieldType.TEXT), Field("n", FieldType.INTEGER)))


@dataclass
class Listed:
    """Documents of a list."""

    listed: list[Document]
    name: str = "listed"
    schema: Schema = SCHEMA

    def documents(self) -> Iterator[Document]:
        return iter(self.listed)


def test_a_schema_says_its_fields_as_json() -> None:
    schema = Schema(tuple(Field(f"f_{t}", t, stored=t != "text") for t in FieldType))
    assert [each["type"] for each in schema.to_json()["fields"]] == list(FieldType)
    assert schema.to_json()["fields"][0] == {"name": "f_text", "type": "text", "stored": False}


def test_the_digest_is_of_schema_and_documents_and_not_of_the_name() -> None:
    documents = [Document("1", {"body": "one", "n": 1}), Document("2", {"body": "zwölf"})]
    summary = digest(Listed(documents))
    assert (summary.documents, summary.text_bytes) == (2, 3 + 6)
    assert digest(Listed(documents, "other")).digest == summary.digest
    turned = [Document("1", {"n": 1, "body": "one"}), documents[1]]
    assert digest(Listed(turned)).digest == summary.digest
    assert digest(Listed(documents[::-1])).digest != summary.digest
    assert digest(Listed([documents[0]])).digest != summary.digest
    other = Schema((Field("body", FieldType.TEXT, stored=False), Field("n", FieldType.INTEGER)))
    assert digest(Listed(documents, schema=other)).digest != summary.digest


def test_a_value_that_is_not_canonical_is_an_error_that_names_the_document() -> None:
    with pytest.raises(CorpusError, match="'7'"):
        digest(Listed([Document("7", {"body": object()})]))


def test_every_default_of_the_table_of_keys_is_one_that_the_key_would_take() -> None:
    for key in SPEC_KEYS:
        if key.default is None or key.name == "family":
            continue
        for family in key.families:
            spec = {"family": family, "files": "a.csv"} if family == "files" else {"family": family}
            assert complaints(spec | {key.name: key.default}) == [], key


def test_a_wrong_table_names_every_mistake_and_the_nearest_key() -> None:
    found = complaints({"family": "generated", "docments": 5, "words": "many", "burst": 3})
    assert [name for name, _ in found] == ["docments", "words", "burst"]
    assert "did you mean `documents`?" in found[0][1]
    sentences = r"docments.*; `words` must be .*, not \"many\"; `burst` must"
    with pytest.raises(CorpusError, match=sentences):
        open_corpus({"family": "generated", "docments": 5, "words": "many", "burst": 3}, Path())


def test_a_family_that_is_none_is_named_with_the_nearest() -> None:
    with pytest.raises(CorpusError, match=r"no corpus family 'debain'.*did you mean `debian`\?"):
        open_corpus({"family": "debain"}, Path())


def test_files_are_required_and_keys_of_other_families_are_not_taken() -> None:
    assert [name for name, _ in complaints({"documents": 5})] == ["documents", "files"]
    assert "snapshot" in keys_of("debian")
    assert "snapshot" not in keys_of("files")
    with pytest.raises(CorpusError, match="not been fetched"):
        open_corpus({"family": "debian"}, Path())


def test_operations_of_the_table_apply_in_their_order() -> None:
    spec = {
        "family": "generated",
        "documents": 8,
        "decimate": 2,
        "duplicate": 2,
        "parts": 2,
        "part": 2,
        "split_by": "contiguous",
    }
    corpus = open_corpus(spec, Path())
    assert corpus.name == "generated /2 ×2 2/2 (contiguous)"
    assert [document.id for document in corpus.documents()] == ["0#2", "2#2", "4#2", "6#2"]


def test_a_part_that_is_not_there_is_a_complaint() -> None:
    assert complaints({"family": "generated", "parts": 2, "part": 3}) == [
        ("part", "there is no part 3 of 2")
    ]


def test_mistakes_within_the_fields_are_found_before_any_file_is_opened() -> None:
    (found,) = complaints({"files": "nowhere.csv", "fields": {"title": "txt"}})
    assert found[0] == "fields"
    assert "Did you mean text?" in found[1]
    (found,) = complaints({"family": "generated", "fields": {"n": {"type": "integer", "lo": 1}}})
    assert "did you mean low?" in found[1]
    for family, kind in (("files", "text"), ("generated", "integer")):
        table = {"family": family, "files": "a.csv"} if family == "files" else {"family": family}
        (found,) = complaints(table | {"fields": {"n": {"type": kind, "stored": "no"}}})
        assert "true or false is expected" in found[1]
