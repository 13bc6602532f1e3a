"""Maven artifacts → folders below ``engines_home()``: complete, or not there at all.

    group:artifact:version:type    becomes    {engines}/artifact-version/

An archive (zip, tar.gz) is unpacked; the one folder that it usually holds is left out, so its
``bin`` is ``{engines}/artifact-version/bin``. A jar is put there as it is, under the name
``artifact-version.jar``. Maven's own repository keeps what was fetched, so that getting it again
needs no network.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from searchbench.errors import LabError, NotInstalled

# Pinned: `mvn dependency:..` would take whatever version is the newest on that day.
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_TIMEOUT_S = 900.0
_ARCHIVES = ("zip", "tar.gz", "tgz", "tar", "tar.bz2", "tar.xz")
_UNREACHED = ("could not transfer", "unknown host", "offline mode", "connection refused")
_FULL = "no space left on device"


def folder_of(coordinates: str, home: Path) -> Path:
    """Where the artifact is once it is here; ValueError where these are no coordinates."""
    _group, artifact, version, _kind = _parts(coordinates)
    return home / f"{artifact}-{version}"


def get(artifacts: Sequence[str], home: Path, say: Callable[[str], object]) -> None:
    """Get those that are not here yet; every command is said before it is run.

    NotInstalled where there is no Maven; LabError where it fails, with its own words.
    """
    absent = [a for a in artifacts if not folder_of(a, home).exists()]
    for coordinates in artifacts:
        if coordinates not in absent:
            say(f"{folder_of(coordinates, home)} is here")
    if not absent:
        return
    maven = shutil.which("mvn")
    if maven is None:
        raise NotInstalled(
            f"{', '.join(absent)} come(s) from a Maven repository, and there is no mvn here; "
            "install Maven (Debian: apt-get install maven)"
        )
    try:
        home.mkdir(parents=True, exist_ok=True)
        for coordinates in absent:
            _get(coordinates, home, maven, say)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _full(home) from error
        raise LabError(f"{home} cannot be written: {error.strerror or error}") from error


def _get(coordinates: str, home: Path, maven: str, say: Callable[[str], object]) -> None:
    """Beside its place first, on the same file system; then it is renamed, whole."""
    _group, _artifact, _version, kind = _parts(coordinates)
    place = folder_of(coordinates, home)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=home) as part:
        unpacked = Path(part) / "content"
        command = [
            maven,
            *("--batch-mode", "--quiet", "-Dstyle.color=never"),
            f"{_PLUGIN}:{'unpack' if kind in _ARCHIVES else 'copy'}",
            f"-Dartifact={coordinates}",
            f"-DoutputDirectory={unpacked}",
        ]
        say(" ".join(command))
        _run(command, Path(part), coordinates)
        inside = list(unpacked.iterdir()) if unpacked.is_dir() else []
        if not inside:
            raise LabError(f"Maven got {coordinates} and nothing was in it")
        whole = inside[0] if len(inside) == 1 and inside[0].is_dir() else unpacked
        try:
            whole.rename(place)
        except OSError as error:
            # Somebody else was quicker; what stands there came in the same way.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    say(f"{place} is here")


def _run(command: Sequence[str], place: Path, coordinates: str) -> None:
    # In a folder of its own: Maven leaves notes in the one where it is run.
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            cwd=place,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"getting {coordinates} did not end in {_TIMEOUT_S:.0f} s") from error
    if done.returncode:
        raise _failure(coordinates, f"{done.stdout}\n{done.stderr}", place)


def _failure(coordinates: str, said: str, place: Path) -> LabError:
    if _FULL in said.lower():
        return _full(place)
    errors = [line.partition("[ERROR]")[2].strip() for line in said.splitlines()]
    words = next((line for line in errors if line), said.strip()[-300:] or "it said nothing")
    words = words.removesuffix("-> [Help 1]").strip()
    if any(sign in said.lower() for sign in _UNREACHED):
        return LabError(f"Maven could not reach a repository for {coordinates}: {words}")
    return LabError(f"Maven could not get {coordinates}: {words}")


def _full(place: Path) -> LabError:
    return LabError(
        f"the disk under {place} is full; make room, or name another place in SEARCHBENCH_ENGINES"
    )


def _parts(coordinates: str) -> tuple[str, str, str, str]:
    group, artifact, version, kind = coordinates.split(":")
    return group, artifact, version, kind
