"""Package descriptions: parsing lists, and fetching them with apt-get from a local archive."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from searchbench.corpora import open_corpus
from searchbench.corpora.corpus import digest
from searchbench.corpora.debian import ListsCorpus, newer, paragraphs
from searchbench.errors import CorpusError, LabError, NotInstalled
from searchbench.lab.get.fetch import debian_snapshot, keep, read_note, snapshots

PACKAGES = """\
Package: zebra
Version: 1.0-1
Installed-Size: 12
Maintainer: Zoë <zoe@example.org>
Architecture: all
Description: striped animal
Description-md5: 11111111111111111111111111111111
Tag: role::program, use::viewing,
 works-with::image
Section: games
Priority: optional
Size: 3456

Package: ant
Version: 2.0
Description: small animal
Section: libs
"""
SECURITY = """\
Package: zebra
Version: 1.0-1+deb12u1
Description: striped animal
Description-md5: 22222222222222222222222222222222
Section: games

Package: ant
Version: 2.0~rc1
Description: older ant
"""
TRANSLATION = """\
Package: zebra
Description-md5: 11111111111111111111111111111111
Description-en: striped animal
 The old text.

Package: zebra
Description-md5: 22222222222222222222222222222222
Description-en: striped animal
 It has stripes,
 black ones.
 .
  * and white ones
"""
RELEASE = """\
Origin: Example
Codename: savanna
Date: Sat, 11 Jul 2026 10:16:37 UTC
Architectures: all {architecture}
Components: main
SHA256:
"""


def lists(folder: Path) -> Path:
    folder.mkdir()
    (folder / "main_Packages.gz").write_bytes(gzip.compress(PACKAGES.encode()))
    (folder / "security_Packages").write_text(SECURITY)
    (folder / "main_i18n_Translation-en").write_text(TRANSLATION)
    (folder / "main_InRelease").write_text(RELEASE)
    return folder


def test_lists_are_joined_and_the_newest_version_of_a_package_is_kept(tmp_path: Path) -> None:
    ant, zebra = ListsCorpus("x", lists(tmp_path / "lists")).documents()
    assert ant.values == {
        "title": "ant: small animal",
        "package": "ant",
        "section": "libs",
        "version": "2.0",
    }
    assert zebra.id == "zebra"
    assert zebra.values["version"] == "1.0-1+deb12u1"
    assert zebra.values["body"] == "It has stripes,\nblack ones.\n\n * and white ones"


def test_tags_and_sizes_come_from_the_index(tmp_path: Path) -> None:
    folder = lists(tmp_path / "lists")
    (folder / "security_Packages").unlink()
    zebra = list(ListsCorpus("x", folder).documents())[1].values
    assert zebra["tags"] == ["role::program", "use::viewing", "works-with::image"]
    assert (zebra["size"], zebra["installed_size"]) == (3456, 12)
    assert zebra["maintainer"] == "Zoë <zoe@example.org>"
    assert zebra["body"] == "The old text."


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("1:0.1", "9.9"),
        ("1.10", "1.9"),
        ("1.0", "1.0~rc1"),
        ("1.0~rc1", "1.0~~"),
        ("1.0-2", "1.0-1"),
        ("1.0+b1", "1.0"),
        ("1.0a", "1.0"),
        ("1.0+", "1.0a"),
        ("1.0-1", "1.0"),
        ("2-1-1", "2-1-0"),
    ],
)
def test_versions_are_ordered_as_debian_orders_them(later: str, earlier: str) -> None:
    assert newer(later, earlier)
    assert not newer(earlier, later)


@pytest.mark.parametrize(("a", "b"), [("1.0", "0:1.0"), ("1.0", "1.00"), ("1.0", "1.0-0")])
def test_versions_that_are_the_same_to_debian_are_not_newer(a: str, b: str) -> None:
    assert not newer(a, b)
    assert not newer(b, a)


def test_the_dots_of_empty_lines_go() -> None:
    assert paragraphs(" a\n .\n b") == "a\n\nb"


def test_a_folder_without_lists_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no Packages lists"):
        list(ListsCorpus("x", tmp_path).documents())


def test_a_snapshot_reads_as_the_lists_did_and_is_named_by_release_and_date(
    tmp_path: Path,
) -> None:
    folder = lists(tmp_path / "lists")
    path = keep(folder, tmp_path / "cache")
    assert path.name == "example-savanna-20260711T101637Z.jsonl.zst"
    corpus = open_corpus({"family": "debian", "snapshot": str(path)}, Path())
    assert corpus.name == "example"
    assert list(corpus.documents()) == list(ListsCorpus("x", folder).documents())
    note = read_note(path)
    assert note.documents == 2
    assert digest(corpus).digest == note.digest == digest(ListsCorpus("x", folder)).digest


def test_a_kept_snapshot_is_read_again_without_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = keep(lists(tmp_path / "lists"), tmp_path / "debian")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert debian_snapshot(tmp_path) == path
    assert keep(tmp_path / "lists", tmp_path / "debian") == path


def test_a_snapshot_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = keep(lists(tmp_path / "lists"), tmp_path / "debian")
    with path.open("ab") as file:
        file.write(b"x")
    with pytest.raises(LabError, match="not the file that its note describes"):
        debian_snapshot(tmp_path)


def test_a_snapshot_without_its_note_does_not_count(tmp_path: Path) -> None:
    path = keep(lists(tmp_path / "lists"), tmp_path / "debian")
    path.with_name("example-savanna-20260711T101637Z.json").unlink()
    assert snapshots(tmp_path / "debian") == []


def test_a_damaged_snapshot_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "debian-x.jsonl"
    path.write_text('{"id": "a", "title": "a"}\n{"id": "b", "size": "large"}\n')
    with pytest.raises(CorpusError, match=r"debian-x\.jsonl:2: .*damaged"):
        list(open_corpus({"family": "debian", "snapshot": str(path)}, Path()).documents())


def test_without_apt_get_the_remedy_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstalled, match="generated"):
        debian_snapshot(tmp_path)


def archive(folder: Path, architecture: str) -> str:
    """A small archive on disk in Debian's layout; returns its line for sources.list."""
    suite = folder / "dists" / "savanna"
    files = {
        f"main/binary-{architecture}/Packages": PACKAGES,
        "main/i18n/Translation-en": TRANSLATION,
    }
    release = RELEASE.format(architecture=architecture)
    for name, content in files.items():
        path = suite / name
        path.parent.mkdir(parents=True)
        path.write_text(content)
        data = content.encode()
        release += f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}\n"
    (suite / "Release").write_text(release)
    return f"deb [trusted=yes arch={architecture}] file:{folder} savanna main\n"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that apt's own user may enter, as pytest's are not, when root runs the tests."""
    with tempfile.TemporaryDirectory(prefix="searchbench-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def isolate(folder: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Points apt-get at one source; its hook would leave the file returned, if it were run."""
    (folder / "sources.list").write_text(source)
    (folder / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{folder}/sources.list";\nDir::Etc::sourceparts "-";\n'
        f'APT::Update::Post-Invoke {{ "touch {folder}/hook"; }};\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(folder / "apt.conf"))
    return folder / "hook"


needs_apt = pytest.mark.skipif(shutil.which("apt-get") is None, reason="apt-get is not installed")


@needs_apt
def test_apt_get_fetches_an_archive_privately_and_runs_no_hooks(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["dpkg", "--print-architecture"]
    architecture = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    hook = isolate(shared, archive(shared / "archive", architecture), monkeypatch)
    path = debian_snapshot(shared / "cache")
    assert path == shared / "cache/debian/example-savanna-20260711T101637Z.jsonl.zst"
    corpus = open_corpus({"family": "debian", "snapshot": str(path)}, Path())
    assert [document.values.get("body") for document in corpus.documents()] == [
        None,
        "The old text.",
    ]
    assert not hook.exists()
    assert debian_snapshot(shared / "cache", refresh=True) == path


@needs_apt
def test_an_archive_that_is_not_there_is_an_error_with_apts_own_reason(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolate(shared, f"deb [trusted=yes] file:{shared}/nowhere savanna main\n", monkeypatch)
    with pytest.raises(LabError, match=r"could not fetch.*(E:|W:)") as caught:
        debian_snapshot(shared / "cache")
    assert caught.value.stage == "fetch"
    assert snapshots(shared / "cache" / "debian") == []
