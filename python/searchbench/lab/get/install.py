"""Is the engine here, in which version; how to get it: Debian packages and Maven artifacts.

An artifact becomes a folder below ``engines_home()``: complete, or not there at all.

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
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Engine, Service
from searchbench.errors import LabError, NotInstalled
from searchbench.lab.conduct.serve import Sentences, serving
from searchbench.lab.get import finished
from searchbench.lab.system.names import Places, engines_home, jvm_hosts, program
from searchbench.study.plan import Plan

_TIMEOUT_S = 900.0
# Pinned: `mvn dependency:..` would take whatever version is the newest on that day.
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_ARCHIVES = ("zip", "tar.gz", "tgz", "tar", "tar.bz2", "tar.xz")
_UNREACHED = ("could not transfer", "unknown host", "offline mode", "connection refused")
_POLICY = Path("/usr/sbin/policy-rc.d")
# What tests start that is no engine, and the Debian packages that bring it: for several client
# machines, for logs and caches of a web server, and for storages.
_FOR_TESTS = {
    "/usr/sbin/sshd": "openssh-server",
    "ssh": "openssh-client",
    "ip": "iproute2",
    "nginx": "nginx-light",
    "mkfs.xfs": "xfsprogs",
    "mkfs.btrfs": "btrfs-progs",
    "compsize": "btrfs-compsize",
    "zfs-fuse": "zfs-fuse",
    "nbdkit": "nbdkit",
    "nbdfuse": "libnbd-bin",
    "bpftrace": "bpftrace",
}
# Nobody who runs tests has asked for servers that start with the machine from then on.
_SERVICES = {
    "openssh-server": ("ssh.service", "ssh.socket"),
    "nginx-light": ("nginx.service",),
    "zfs-fuse": ("zfs-fuse.service",),
}


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether an engine can be started here. ``version`` as it says itself once started."""

    present: bool
    version: str | None
    how_to_get: str


def needs(engine: Engine) -> bool:
    """Does it need more on the machine than what is built with searchbench?"""
    can = engine.can
    return bool(can.packages or can.artifacts or can.unavailable or _service(engine).needs)


def missing(engine: Engine) -> str | None:
    """What of it is not on this machine and how to get it; None if all is. Starts nothing."""
    if engine.can.unavailable:
        return engine.can.unavailable
    service = _service(engine)
    places = Places(Path(), Path(), 0)
    wanted = {places.fill(name): remedy for name, remedy in service.needs.items()}
    if not wanted:
        wanted = {places.fill(service.argv[0]): f"searchbench engines install {engine.name}"}
    absent = (name for name in wanted if program(name) is None)
    return next((f"there is no {name}: {_doable(wanted[name])}" for name in absent), None)


def make_java() -> str:
    """The command that builds hosts for the JVM, and where it can be given."""
    return "`make java`" if _in_checkout() else "`make java` in a checkout"


def _in_checkout() -> bool:
    """An installed searchbench has neither the Makefile nor the sources in Java."""
    return (jvm_hosts().parent / "Makefile").is_file()


def _doable(remedy: str) -> str:
    if "`make java`" not in remedy or _in_checkout():
        return remedy
    return (
        f"{remedy}; this needs a checkout of searchbench's repository, and "
        "SEARCHBENCH_JAVA_HOSTS=CHECKOUT/java in the environment"
    )


def lacking(plan: Plan) -> list[str]:
    """A sentence for each system that is to be started and is not on this machine."""
    named = {t.system: t.engine for t in plan.treatments if not t.attach}
    return [
        f"{system}: {absent}; or leave {system} out"
        for system, name in named.items()
        if (absent := missing(ENGINES[name]))
    ]


def look(engine: Engine) -> Presence:
    """Is everything there that it needs? Starts nothing, so the version is not known."""
    lacking = missing(engine)
    if lacking is None:
        return Presence(True, None, _origin(engine))
    if engine.can.unavailable:
        return Presence(False, None, f"not run here: {lacking}")
    return Presence(False, None, f"{_how(engine)}; now: {lacking}")


def presence(engine: Engine) -> Presence:
    """Start the engine with its defaults and ask it: what does not start is not here."""
    if engine.can.unavailable:
        return look(engine)
    with tempfile.TemporaryDirectory(prefix="searchbench-") as folder:
        try:
            with serving(engine, defaults(engine), Sentences(), Path(folder)) as (running, _done):
                return Presence(True, running.facts.version, _origin(engine))
        except LabError as error:
            return Presence(False, None, f"{_how(engine)}; now: {error}")


def _origin(engine: Engine) -> str:
    """Where an engine that is here came from."""
    can = engine.can
    if can.artifacts:
        return f"Maven: {' '.join(can.artifacts)}"
    if can.packages:
        return f"Debian: {' '.join(can.packages)}"
    return make_java() if needs(engine) else "comes with searchbench"


def _how(engine: Engine) -> str:
    """What to do to get one that is not here."""
    if engine.can.packages or engine.can.artifacts:
        return f"searchbench engines install {engine.name}"
    return make_java() if needs(engine) else "it comes with searchbench and does not start"


def _service(engine: Engine) -> Service:
    return engine.service(defaults(engine), Sentences.schema)


def install(engines: Sequence[Engine], say: Callable[[str], object]) -> None:
    """Get the Debian packages and Maven artifacts that bring these engines.

    Every command is said before it is run. NotInstalled, with the command, where we may not;
    LabError with the words of apt or Maven.
    """
    for engine in engines:
        if not engine.can.packages and not engine.can.artifacts:
            here = f"{make_java()} builds it" if needs(engine) else "it comes with searchbench"
            say(
                f"{engine.can.title}: there is nothing to install; {engine.can.unavailable or here}"
            )
    packages = list(dict.fromkeys(p for engine in engines for p in engine.can.packages))
    if packages:
        get_packages(packages, say)
    wanted = list(dict.fromkeys(a for engine in engines for a in engine.can.artifacts))
    get_artifacts(wanted, engines_home(), say)


def install_for_tests(say: Callable[[str], object]) -> None:
    """Get what is not an engine and is started by tests; errors as of ``install``."""
    lacking = [p for name, p in _FOR_TESTS.items() if program(name) is None]
    if not lacking:
        return
    get_packages(lacking, say)
    # A server that was here before is left as it was.
    services = [name for package in lacking for name in _SERVICES.get(package, ())]
    if services and shutil.which("systemctl"):
        _run(["systemctl", "disable", "--quiet", *services], apt=False)


def get_packages(packages: Sequence[str], say: Callable[[str], object]) -> None:
    """Install Debian packages; their services stay down. NotInstalled, LabError as ``install``."""
    get = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    if shutil.which("apt-get") is None:
        raise NotInstalled(
            f"these come from Debian packages: {', '.join(packages)}; there is no apt-get here"
        )
    if os.geteuid() != 0:
        raise NotInstalled(f"installing needs root; give this command: sudo {' '.join(get)}")
    with _services_stay_down():
        for command in (["apt-get", "update", "-q"], get):
            say(" ".join(command))
            _run(command)


@contextmanager
def _services_stay_down() -> Iterator[None]:
    """Debian starts a server when it installs it, unless this file says no; ours are started by us.

    invoke-rc.d(8): exit status 101 means that an action is not allowed. A file that somebody else
    put there decides for us and is left alone.
    """
    if _POLICY.exists():
        yield
        return
    try:
        _POLICY.write_text("#!/bin/sh\nexit 101\n")
        _POLICY.chmod(0o755)
        yield
    finally:
        _POLICY.unlink(missing_ok=True)


def _run(command: list[str], *, apt: bool = True) -> None:
    # Another apt may be at work; it is waited for.
    waiting = ["-o", "DPkg::Lock::Timeout=300"] if apt else []
    shown = " ".join(command)
    late = LabError(f"`{shown}` did not end within {_TIMEOUT_S:.0f} s")
    done = finished([command[0], *waiting, *command[1:]], _TIMEOUT_S, late)
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise LabError(f"`{shown}` failed: {' | '.join(words)}")


def _folder_of(coordinates: str, home: Path) -> Path:
    """Where the artifact is once it is here; ValueError where these are no coordinates."""
    _group, artifact, version, _kind = coordinates.split(":")
    return home / f"{artifact}-{version}"


def get_artifacts(artifacts: Sequence[str], home: Path, say: Callable[[str], object]) -> None:
    """Get those that are not here yet; every command is said before it is run.

    NotInstalled where there is no Maven; LabError where it fails, with its own words.
    """
    absent = [a for a in artifacts if not _folder_of(a, home).exists()]
    for coordinates in artifacts:
        if coordinates not in absent:
            say(f"{_folder_of(coordinates, home)} is here")
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
    kind = coordinates.split(":")[3]
    place = _folder_of(coordinates, home)
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
        late = LabError(f"getting {coordinates} did not end within {_TIMEOUT_S:.0f} s")
        # In a folder of its own: Maven leaves notes in the one where it is run.
        done = finished(command, _TIMEOUT_S, late, Path(part))
        if done.returncode:
            raise _failure(coordinates, f"{done.stdout}\n{done.stderr}", Path(part))
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


def _failure(coordinates: str, said: str, place: Path) -> LabError:
    if "no space left on device" in said.lower():
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
