"""Is the engine here, in which version; how to get it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from searchbench.engines import defaults
from searchbench.engines.engine import Engine, Service
from searchbench.errors import LabError, NotInstalled
from searchbench.lab.conduct.serve import Sentences, serving
from searchbench.lab.get import artifacts
from searchbench.lab.system.names import Places, engines_home, program

_TIMEOUT_S = 900.0
_POLICY = Path("/usr/sbin/policy-rc.d")
# What tests start that is no engine, and the Debian packages that bring it: for several client
# machines, and for logs and caches of a web server.
_FOR_TESTS = {
    "/usr/sbin/sshd": "openssh-server",
    "ssh": "openssh-client",
    "ip": "iproute2",
    "nginx": "nginx-light",
}
# Nobody who runs tests has asked for servers that start with the machine from then on.
_SERVICES = {
    "openssh-server": ("ssh.service", "ssh.socket"),
    "nginx-light": ("nginx.service",),
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
    for name, remedy in wanted.items():
        if program(name) is None:
            return f"there is no {name}: {remedy}"
    return None


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
    return "`make java`" if needs(engine) else "comes with searchbench"


def _how(engine: Engine) -> str:
    """What to do to get one that is not here."""
    if engine.can.packages or engine.can.artifacts:
        return f"searchbench engines install {engine.name}"
    return "`make java`" if needs(engine) else "it comes with searchbench and does not start"


def _service(engine: Engine) -> Service:
    return engine.service(defaults(engine), Sentences.schema)


def install(engines: Sequence[Engine], say: Callable[[str], object]) -> None:
    """Get the Debian packages and Maven artifacts that bring these engines.

    Every command is said before it is run. NotInstalled, with the command, where we may not;
    LabError with the words of apt or Maven.
    """
    for engine in engines:
        if not engine.can.packages and not engine.can.artifacts:
            here = "`make java` builds it" if needs(engine) else "it comes with searchbench"
            say(
                f"{engine.can.title}: there is nothing to install; {engine.can.unavailable or here}"
            )
    packages = list(dict.fromkeys(p for engine in engines for p in engine.can.packages))
    if packages:
        get_packages(packages, say)
    wanted = list(dict.fromkeys(a for engine in engines for a in engine.can.artifacts))
    artifacts.get(wanted, engines_home(), say)


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
    argv = [command[0], *waiting, *command[1:]]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"`{' '.join(command)}` did not end in {_TIMEOUT_S:.0f} s") from error
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise LabError(f"`{' '.join(command)}` failed: {' | '.join(words)}")
