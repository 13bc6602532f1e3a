"""Obtains what a corpus needs from outside: package descriptions, kept as a snapshot.

The lists come by apt-get into a private folder, without root and without touching the
system's own. What is kept is one file of JSON lines, named after the release and its date,
and beside it a note with its digest. A snapshot is never changed: later runs read the same.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from hashlib import file_digest
from pathlib import Path

import orjson

from searchbench.corpora.debian import ListsCorpus
from searchbench.corpora.write import write
from searchbench.errors import LabError, NotInstalled
from searchbench.lab.get import finished

FETCH_TIMEOUT_S = 300.0
STAGE = "fetch"

_MADE = ".jsonl.zst"


@dataclass(frozen=True, slots=True)
class Note:
    """What stands beside a snapshot. ``release_date``: of the newest release file used, UTC.

    ``digest`` is that of the corpus, ``sha256`` that of the file.
    """

    origin: str
    codename: str
    release_date: str
    digest: str
    documents: int
    text_bytes: int
    sha256: str


def cache_folder() -> Path:
    """``$SEARCHBENCH_CACHE``, else ``$XDG_CACHE_HOME/searchbench``, else ~/.cache/searchbench."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("SEARCHBENCH_CACHE") or Path(home, "searchbench"))


def debian_snapshot(cache: Path | None = None, *, refresh: bool = False) -> Path:
    """The newest snapshot in the cache; fetched where there is none, or to ``refresh``.

    NotInstalled without apt-get; LabError (stage "fetch") where the archive cannot be reached
    or a snapshot is not what its note says.
    """
    folder = (cache or cache_folder()) / "debian"
    if not refresh and (kept := snapshots(folder)):
        _verify(kept[-1])
        return kept[-1]
    if shutil.which("apt-get") is None:
        raise NotInstalled(
            "The package descriptions come by apt-get, which is not here; use a generated corpus "
            '(family = "generated"), your own files, or a snapshot made on a Debian machine, '
            f"copied to {folder}."
        )
    # A folder that others may enter: apt downloads as its own user, if it is started by root.
    with tempfile.TemporaryDirectory(prefix="searchbench-apt-") as name:
        private = Path(name)
        private.chmod(0o755)
        _update(private)
        return keep(private / "lists", folder)


def snapshots(folder: Path) -> list[Path]:
    """The snapshots in a folder that have their note, oldest release first."""
    found = [path for path in folder.glob(f"*{_MADE}") if _note(path).is_file()]
    return sorted(found, key=lambda path: (read_note(path).release_date, path.name))


def read_note(snapshot: Path) -> Note:
    """What stands beside a snapshot; LabError where it cannot be read."""
    try:
        return Note(**orjson.loads(_note(snapshot).read_bytes()))
    except (OSError, orjson.JSONDecodeError, TypeError) as error:
        raise LabError(
            f"{_note(snapshot)} cannot be read ({error}); delete it and the snapshot beside it.",
            STAGE,
        ) from error


def keep(lists: Path, folder: Path) -> Path:
    """Writes the snapshot of a folder of lists, and its note; the one there, if it is the same."""
    origin, codename, date = _release(lists)
    path = folder / f"{origin}-{codename}-{date:%Y%m%dT%H%M%SZ}{_MADE}"
    if path.is_file() and _note(path).is_file():
        _verify(path)
        return path
    summary = write(ListsCorpus(origin, lists), path)
    held = (summary.digest, summary.documents, summary.text_bytes)
    note = Note(origin, codename, f"{date:%Y-%m-%dT%H:%M:%SZ}", *held, _sha256(path))
    temporary = _note(path).with_suffix(".tmp")
    temporary.write_bytes(orjson.dumps(note, option=orjson.OPT_INDENT_2))
    temporary.replace(_note(path))  # last: a snapshot counts once its note is there
    return path


def _update(private: Path) -> None:
    for name in ("lists/partial", "cache/archives/partial"):
        (private / name).mkdir(parents=True)
    configuration = private / "apt.conf"
    configuration.write_text(_configuration(private))
    argv = ["apt-get", "-q", "-c", str(configuration), "update"]
    late = LabError(
        f"apt-get did not fetch the package lists within {FETCH_TIMEOUT_S:.0f} s; "
        "look at the network, or use a generated corpus.",
        STAGE,
    )
    done = finished(argv, FETCH_TIMEOUT_S, late)
    said = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))]
    # apt-get ends with 0 although a source could not be fetched, and then only warns.
    fetched = any((private / "lists").glob("*_Translation-en*"))
    if done.returncode or not fetched:
        reason = said[0] if said else f"exit code {done.returncode}, no descriptions"
        raise LabError(
            f"apt-get could not fetch the package lists ({reason}); "
            "look at the network and /etc/apt/sources.list, or use a generated corpus.",
            STAGE,
        )


def _configuration(private: Path) -> str:
    """Read by apt-get after the system's own. Its hooks are left out: they clean system folders."""
    return f"""\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear Acquire::Languages;
Acquire::Languages {{ "en"; }};
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::IndexTargets::deb::CNF::DefaultEnabled "false";
Dir::State::lists "{private}/lists";
Dir::Cache "{private}/cache";
Debug::NoLocking "true";
"""


def _release(lists: Path) -> tuple[str, str, datetime]:
    """Origin and codename of the largest release, and the newest date of all."""
    found: list[tuple[int, str, str, datetime]] = []
    for path in sorted((*lists.glob("*_InRelease"), *lists.glob("*_Release"))):
        head = _head(path)
        try:
            date = parsedate_to_datetime(head["Date"])
        except (KeyError, ValueError):
            continue
        origin = "".join(c for c in head.get("Origin", "debian").lower() if c.isalnum())
        codename = "".join(c for c in head.get("Codename", "unknown").lower() if c.isalnum())
        base = path.name.removesuffix("InRelease").removesuffix("Release")
        size = sum(each.stat().st_size for each in lists.glob(f"{base}*_Packages*"))
        found.append((size, origin, codename, date))
    if not found:
        raise LabError(f"{lists} has no release file, so its lists have no date.", STAGE)
    _, origin, codename, _ = max(found)
    return origin, codename, max(date for _, _, _, date in found)


def _head(path: Path) -> dict[str, str]:
    head: dict[str, str] = {}
    with path.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if line.startswith(("MD5Sum:", "SHA256:")):
                break
            name, colon, value = line.partition(":")
            if colon:
                head.setdefault(name, value.strip())
    return head


def _verify(snapshot: Path) -> None:
    if _sha256(snapshot) != read_note(snapshot).sha256:
        raise LabError(
            f"{snapshot} is not the file that its note describes; delete both to fetch again.",
            STAGE,
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _note(snapshot: Path) -> Path:
    return snapshot.with_name(snapshot.name.removesuffix(_MADE) + ".json")
