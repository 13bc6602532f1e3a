"""N-Triples by the W3C's grammar, files of them as documents, and the generated ones."""

from __future__ import annotations

import gzip
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from searchbench.corpora import complaints, open_corpus
from searchbench.corpora.corpus import Document, digest
from searchbench.corpora.linked import (
    ARTICLES,
    CATEGORIES,
    MOST_TRIPLES,
    NAMES,
    TRIPLES,
    Linked,
)
from searchbench.corpora.ntriples import NotATriple, Triple, parse, written
from searchbench.corpora.triples import GeneratedTriples, TripleFiles, label, open_triples
from searchbench.errors import CorpusError

A, P, B = "http://a.example/x", "http://p.example/is", "http://b.example/y"
# As in the W3C's tests of the syntax: what is a statement, and what is none.
RIGHT = {
    f"<{A}> <{P}> <{B}> .": Triple(A, P, B),
    f"<{A}><{P}><{B}>.": Triple(A, P, B),
    f" \t<{A}>\t<{P}>  <{B}>. # said": Triple(A, P, B),
    f'<{A}> <{P}> "caf\\u00E9"@fr-be .': Triple(A, P, "café", "@fr-be"),
    f'<{A}> <{P}> "a\\tb\\b\\n\\r\\f\\"\\\'\\\\" .': Triple(A, P, "a\tb\b\n\r\f\"'\\", ""),
    f'<{A}> <{P}> "\\U0001F600 é"^^<http://t.example/\\u0041> .': Triple(
        A, P, "😀 é", "^^http://t.example/A"
    ),
    f'<{A}> <{P}> "" .': Triple(A, P, "", ""),
    f'<{A}> <{P}> "# . <x>" .#': Triple(A, P, "# . <x>", ""),
    f"_:1a.b <{P}> _:é:-9 .": Triple("_:1a.b", P, "_:é:-9"),
    f"_:b0<{P}>_:b1.": Triple("_:b0", P, "_:b1"),
    "<scheme:> <urn:x> <a+b-c.d:\\u00e9> .": Triple("scheme:", "urn:x", "a+b-c.d:é"),
}
WRONG = {
    f"<{A}> <{P}> <{B}>": "what follows the object must be a full stop",
    f"<{A}> <{P}> <{B}> . .": "what follows the object",
    f"<{A}> <{P}> <{B}> , <{B}> .": "what follows the object",
    f"<{A}> <{P}> .": "the object must be",
    f"<{A}> <{P}>": "the object must be .*the line ends here",
    f"<{A}> _:p <{B}> .": "the predicate must be an IRI",
    f'"x" <{P}> <{B}> .': "column 1: the subject must be",
    "@prefix a: <http://x/> .": "the subject",
    f"<{A} > <{P}> <{B}> .": "the subject",
    f"<x> <{P}> <{B}> .": "<x> is not absolute",
    f"<> <{P}> <{B}> .": "not absolute",
    f"<{A}\\u0020> <{P}> <{B}> .": "a character that no IRI may have",
    f"<{A}\\u00ZZ11> <{P}> <{B}> .": "the subject",
    f"<{A}> <{P}> <{B}\\n> .": "the object",
    f'<{A}> <{P}> "\\uD800" .': "is no character",
    f'<{A}> <{P}> "\\U00110000" .': "is no character",
    f'<{A}> <{P}> "\\a" .': "the object",
    f'<{A}> <{P}> "x"@ .': "what follows the object",
    f'<{A}> <{P}> "x"@1 .': "what follows the object",
    f'<{A}> <{P}> "x"^^y .': "what follows the object",
    f"<{A}> <{P}> 'x' .": "the object",
    f"<{A}> <{P}> 12 .": "the object",
    f"_:a. <{P}> <{B}> .": "the predicate",
    f"_:-a <{P}> <{B}> .": "the subject",
}


@pytest.mark.parametrize("line", RIGHT)
def test_a_statement_is_read_with_its_escapes_resolved_and_written_again(line: str) -> None:
    assert parse(line) == RIGHT[line]
    assert parse(written(RIGHT[line])) == RIGHT[line]


@pytest.mark.parametrize("line", WRONG)
def test_what_is_no_statement_is_told_with_its_column(line: str) -> None:
    with pytest.raises(NotATriple, match=WRONG[line]) as told:
        parse(line)
    assert str(told.value).startswith("column ")


def test_comments_and_empty_lines_hold_nothing() -> None:
    assert [parse(line) for line in ("", " \t", "# x", "  # <a> <b> <c> .")] == [None] * 4


def test_a_long_line_that_is_wrong_is_refused_at_once() -> None:
    for line in ("<" + "a" * 200_000, f'<{A}> <{P}> "' + "a\\n" * 100_000):
        with pytest.raises(NotATriple):
            parse(line)


def files(folder: Path, content: bytes, name: str = "t.nt") -> TripleFiles:
    (folder / name).write_bytes(content)
    found = open_triples(files=name, base=folder)
    assert isinstance(found, TripleFiles)
    return found


def lines(*triples: tuple[str, str]) -> bytes:
    return "".join(f"<http://e/{s}> <{P}> {o} .\n" for s, o in triples).encode()


def test_a_subject_is_a_document_with_its_objects_as_text(tmp_path: Path) -> None:
    content = b"# started\r\n" + lines(
        ("Anni_1940", "<http://e/Categoria:Decenni_del_XX_secolo>"),
        ("Anni_1940", "<http://e/Citt%C3%A0#Anni>"),
        ("Anni_1940", '"a_b c"@it'),
        ("Anni_1940", "<http://e/Categoria:Decenni_del_XX_secolo>"),
        ("Anni_1900", '"only text"'),
    ).replace(b"\n", b"\r\n")
    corpus = files(tmp_path, gzip.compress(content), "t.nt.gz")
    assert list(corpus.documents()) == [
        Document(
            "http://e/Anni_1940",
            {
                "title": "Anni 1940",
                "body": "Categoria:Decenni del XX secolo. Anni. a_b c. "
                "Categoria:Decenni del XX secolo",
                "categories": ["Categoria:Decenni del XX secolo", "Anni"],
                "degree": 4,
            },
        ),
        Document("http://e/Anni_1900", {"title": "Anni 1900", "body": "only text", "degree": 1}),
    ]
    assert corpus.intake is not None
    assert (corpus.intake.rows, corpus.intake.accepted, corpus.intake.refused) == (5, 5, 0)
    assert len(list(corpus.triples())) == 5


def test_names_are_the_ends_of_iris() -> None:
    wanted = {
        "http://e/a_b": "a b",
        "http://e/x#y_": "y",
        "http://e/x/": "http://e/x/",
        "urn:x": "urn:x",
        "_:b_0": "_:b_0",
        "http://e/C%2FD": "C/D",
    }
    assert {term: label(term) for term in wanted} == wanted


def test_bad_lines_are_counted_with_their_numbers_and_left_out(tmp_path: Path) -> None:
    good = lines(("a", f"<{B}>"))
    corpus = files(tmp_path, good + b"nonsense\n\n# x\n" + good + b"<a\xff> .\n" + good[:-3])
    (found,) = corpus.documents()
    assert found.values["degree"] == 2
    intake = corpus.intake
    assert intake is not None
    assert (intake.rows, intake.accepted, intake.refused) == (5, 2, 3)
    assert [row.line for row in intake.first] == [2, 6, 7]
    assert "column 1: the subject must be" in intake.first[0].reason
    assert "column 3 (byte): it is not UTF-8" in intake.first[1].reason
    assert "full stop" in intake.first[2].reason
    assert corpus.first_rows(2).refused == 1


def test_a_subject_that_comes_again_later_is_left_out_with_the_remedy(tmp_path: Path) -> None:
    corpus = files(tmp_path, lines(("a", f"<{B}>"), ("b", f"<{B}>"), ("a", f"<{B}>")))
    assert [d.id for d in corpus.documents()] == ["http://e/a", "http://e/b"]
    assert corpus.intake is not None
    assert (corpus.intake.accepted, corpus.intake.refused) == (2, 1)
    assert "sort the file" in str(corpus.intake.first[0])
    assert len(list(corpus.triples())) == 3  # as triples they are all there


def test_a_file_without_a_triple_is_refused_with_its_first_line(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"t\.nt has no triple in it: .*t\.nt:1: column 1"):
        list(files(tmp_path, b"a,b,c\n").documents())
    with pytest.raises(CorpusError, match=r"t\.nt has no triple in it\."):
        list(files(tmp_path, b"# nothing\n").triples())
    with pytest.raises(CorpusError, match=r"no file .*x\.nt"):
        open_triples(files="x.nt", base=tmp_path)


def generated(count: int, seed: int = 1) -> GeneratedTriples:
    found = open_triples(base=Path(), triples=count, seed=seed)
    assert isinstance(found, GeneratedTriples)
    return found


def test_the_same_seed_gives_the_same_triples_and_fewer_begin_more() -> None:
    many = list(generated(9000).triples())
    assert list(generated(9000).triples()) == many
    assert list(generated(5000).triples()) == many[:5000]
    assert list(generated(5000, seed=2).triples()) != many[:5000]


def test_generated_triples_are_the_same_on_every_machine() -> None:
    """The digest as it was first made: a change here breaks comparison with older records."""
    summary = digest(generated(20_000, seed=7))
    assert (summary.documents, summary.text_bytes) == (11_774, 618_382)
    assert summary.digest == "ec2925ffaf0f839ccb61f61670d376a357f6a0651733b8be8b7a520ab44a1c08"


@pytest.mark.slow
def test_as_many_triples_as_published_have_as_many_names() -> None:
    of_article: Counter[str] = Counter()
    of_category: Counter[str] = Counter()
    for triple in generated(TRIPLES).triples():
        of_article[triple.subject] += 1
        of_category[triple.object] += 1
    assert (len(of_article), len(of_category)) == (ARTICLES, CATEGORIES)
    assert not of_article.keys() & of_category.keys()
    assert len(of_article) + len(of_category) == NAMES == 942_949
    assert of_article.total() == TRIPLES == 1_390_193
    degrees = Counter(of_article.values())
    assert degrees[1] > degrees[2] > degrees[3] > degrees[4] > degrees[6]
    assert 8 < max(degrees) < 40
    sizes = sorted(of_category.values(), reverse=True)
    assert 0.001 < sizes[0] / TRIPLES < 0.004
    assert sizes[10] > 10 * sizes[5000] > 10
    assert sizes[-1] == 1


def test_an_article_has_each_category_once_and_its_triples_follow_each_other() -> None:
    triples = list(generated(30_000).triples())
    assert len(set(triples)) == len(triples)
    documents = list(generated(30_000).documents())
    assert len({d.id for d in documents}) == len(documents)
    assert sum(d.values["degree"] for d in documents) == 30_000
    assert all(len(d.values["categories"]) == d.values["degree"] for d in documents)


def test_the_stream_goes_on_beyond_the_publication_with_new_names() -> None:
    linked = Linked(1)
    beyond = list(islice(linked._block(340), 4096))
    before = {t.subject for t in linked._block(0)} | {t.subject for t in linked._block(339)}
    assert not before & {t.subject for t in beyond}
    last = list(linked._block(MOST_TRIPLES * 340 // TRIPLES))
    assert len({t.subject for t in last}) > 2000


def test_what_is_generated_is_read_again_as_it_was(tmp_path: Path) -> None:
    corpus = generated(2000)
    text = "".join(f"{written(triple)}\n" for triple in corpus.triples())
    again = files(tmp_path, text.encode())
    assert list(again.triples()) == list(corpus.triples())
    assert digest(again).digest == digest(corpus).digest


def test_a_study_names_files_or_a_size() -> None:
    family = {"family": "triples"}
    assert complaints(family) == complaints(family | {"triples": 5, "seed": 2}) == []
    assert complaints(family | {"files": ["a.nt"]}) == []
    (found,) = complaints(family | {"files": "a.nt", "triples": 5})
    assert found[0] == "triples"
    assert "leave it out" in found[1]
    assert complaints(family | {"triples": 10_000_001})
    assert complaints(family | {"documents": 5})[0][0] == "documents"
    spec = family | {"triples": 100, "scale": 0.5}
    whole = open_corpus(family | {"triples": 100}, Path())
    half = open_corpus(spec, Path())
    assert len(list(half.documents())) == -(-len(list(whole.documents())) // 2)
