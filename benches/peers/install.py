"""``make bench-peers``: gets the clients and servers that `make bench` sets beside ours.

Debian's packages where we may install them, oha by cargo and k6 by Go in pinned versions into
.tools/peers. What cannot be had is a line and no failure: its rows are then missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benches.peers.peer import BUILT
from searchbench.errors import SearchbenchError
from searchbench.lab.get.install import get_packages

OHA = "1.16.0"
K6 = "1.8.1"
# The program that says that a package is here, and the package.
PACKAGES = {
    "wrk": "wrk",
    "hey": "hey",
    "ab": "apache2-utils",
    "h2load": "nghttp2-client",
    "nginx": "nginx-light",
    "sysbench": "sysbench",
    "mariadbd": "mariadb-server",
    "goaccess": "goaccess",
    "pgbadger": "pgbadger",
    "pt-query-digest": "percona-toolkit",
}
_ROOT = BUILT.parent
_LONGEST_S = 1800.0


def main() -> int:
    """Get what is missing; the exit code is 0 whatever could be had."""
    for line in (*_debian(), *_oha(), *_k6()):
        print(line, flush=True)
    return 0


def _debian() -> Iterator[str]:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [package for name, package in PACKAGES.items() if not shutil.which(name, path=path)]
    # Debian has pgbench off the path, below the version of PostgreSQL that it belongs to.
    if not shutil.which("pgbench") and not any(Path("/usr/lib/postgresql").glob("*/bin/pgbench")):
        missing.append("postgresql")
    if not missing:
        yield "Debian's packages are here"
        return
    try:
        get_packages(missing, print)
        yield f"installed: {', '.join(missing)}"
    except SearchbenchError as error:
        yield f"NOT HERE: {', '.join(missing)}: {error}"


def _oha() -> Iterator[str]:
    # Its own way to be without TLS does not compile in this version.
    argv = ["cargo", "install", "oha", "--version", OHA, "--locked", "--root", str(_ROOT)]
    built = {"CARGO_TARGET_DIR": str(_ROOT / "build")}
    yield from _built("oha", OHA, ["--version"], argv, built, "Rust 1.88 or later")
    shutil.rmtree(_ROOT / "build", ignore_errors=True)


def _k6() -> Iterator[str]:
    argv = ["go", "install", f"go.k6.io/k6@v{K6}"]
    # The toolchain that is here, or none: another one is not ours to get.
    built = {"GOBIN": str(BUILT), "GOTOOLCHAIN": "local"}
    yield from _built("k6", K6, ["version"], argv, built, "Go 1.25 or later")


def _built(
    name: str, version: str, ask: list[str], argv: list[str], extra: dict[str, str], needs: str
) -> Iterator[str]:
    """Build it unless it is here in this version."""
    program = BUILT / name
    if program.is_file():
        said = subprocess.run([program, *ask], capture_output=True, text=True, check=False).stdout
        if version in said:
            yield f"{name} {version} is here"
            return
    if not shutil.which(argv[0]):
        yield f"NOT HERE: {name} {version} needs {needs} to be built, and there is no {argv[0]}"
        return
    print(" ".join(argv), "(some minutes)", flush=True)
    try:
        done = subprocess.run(
            argv, env=os.environ | extra, capture_output=True, text=True, timeout=_LONGEST_S,
            check=False,
        )  # fmt: skip
        failed, why = done.returncode != 0, " | ".join(done.stderr.strip().splitlines()[-2:])
    except subprocess.TimeoutExpired:
        failed, why = True, f"not built in {_LONGEST_S / 60:.0f} minutes"
    yield f"NOT HERE: {name} {version} ({needs}): {why}" if failed else f"{name} {version} is built"


if __name__ == "__main__":
    sys.exit(main())
