"""Writing a corpus: whole or not at all, and read back the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from searchbench.corpora.corpus import Document, digest
from searchbench.corpora.files import open_files
from searchbench.corpora.generated import open_generated
from searchbench.corpora.write import write
from searchbench.errors import CorpusError

FIELDS = {
    "title": "text",
    "body": "text",
    "category": "keyword",
    "tags": "keywords",
    "price": "float",
    "popularity": "integer",
    "published": "date",
    "available": "boolean",
}


@pytest.mark.parametrize("end", ["", ".gz", ".zst", ".xz", ".bz2"])
def test_a_written_corpus_is_read_back_with_the_same_digest(tmp_path: Path, end: str) -> None:
    corpus = open_generated(documents=1500, words=10)
    path = tmp_path / "new" / f"made.jsonl{end}"
    written = write(corpus, path)
    back = digest(open_files(str(path), tmp_path, fields=FIELDS))
    assert written == digest(corpus)
    assert (back.digest, back.documents, back.text_bytes) == (
        written.digest,
        written.documents,
        written.text_bytes,
    )
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("end", ["", ".gz", ".zst"])
def test_the_same_documents_give_the_same_bytes(tmp_path: Path, end: str) -> None:
    corpus = open_generated(documents=100)
    paths = [tmp_path / f"{name}.jsonl{end}" for name in "ab"]
    for path in paths:
        write(corpus, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_corpus_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    path.write_text("old")
    (tmp_path / "in.jsonl").write_text('{"n": 1}\n{"n": "x"}\n')
    with pytest.raises(CorpusError, match="do not fit"):
        write(open_files("in.jsonl", tmp_path, fields={"n": "integer"}), path)
    assert path.read_text() == "old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.jsonl", "made.jsonl"]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CorpusError, match=r"made\.jsonl cannot be written: "):
        write(open_generated(documents=1), tmp_path / "file" / "made.jsonl")
    with pytest.raises(CorpusError, match="is read but not written"):
        write(open_generated(documents=1), tmp_path / "made.jsonl.lz4")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("end", ["", ".gz", ".zst"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path, end: str) -> None:
    """On a file system of 256 KiB, in a mount namespace of its own."""
    code = f"""
from pathlib import Path
from searchbench.corpora.generated import open_generated
from searchbench.corpora.write import write
from searchbench.errors import CorpusError
folder = Path({str(tmp_path)!r})
try:
    write(open_generated(documents=20000), folder / "made.jsonl{end}")
except CorpusError as error:
    print(error)
print(sorted(each.name for each in folder.iterdir()))
"""
    script = tmp_path.parent / f"{tmp_path.name}.py"
    script.write_text(code)
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mounted = f"mount -t tmpfs -o size=256k none {tmp_path} && exec {sys.executable} {script}"
    done = subprocess.run([*argv, mounted], capture_output=True, text=True, check=False)
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip(f"the kernel allows no private file system: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert "The disk is full" in done.stdout
    assert done.stdout.rstrip().endswith("[]")


def test_documents_keep_every_letter(tmp_path: Path) -> None:
    text = 'quotes " and \\ lines\n tabs\t nul \x00 日本 🦀 \u2028'
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    corpus = open_files("a.txt", tmp_path)
    write(corpus, tmp_path / "b.jsonl")
    back = open_files("b.jsonl", tmp_path, fields={"title": "text", "body": "text"})
    assert list(back.documents()) == [Document("a.txt", {"title": "a.txt", "body": text})]
