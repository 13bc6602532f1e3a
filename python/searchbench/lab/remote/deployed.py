"""What of one deployment runs on one host: its files and processes there, and its programs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from searchbench.engines.engine import Service
from searchbench.lab.remote.files import pull, push
from searchbench.lab.remote.link import HostError, Link
from searchbench.lab.system.names import Places, free_port, program
from searchbench.lab.system.seat import Seat

_RUN = "run"  # of configuration and logs, below the link's folder
_COMMAND_S = 3600.0
_TRIES = 100


class Far:
    """A process on a host, as a ``Popen`` of this machine is one here."""

    def __init__(self, link: Link, name: str, pid: int) -> None:
        self.link, self.name, self.pid = link, name, pid

    def poll(self) -> int | None:
        """Its exit code if it has ended, as far as the host has said; below 0: by a signal."""
        return self.link.exits.get(self.name)


class Side:
    """A host in one deployment. ``places``: what names stand for here; there they have others.

    ``data``: the index as it lies here. It is copied, and the copy is what the processes open.
    """

    def __init__(self, link: Link, places: Places, run: Path) -> None:
        self.link, self._own, self._run = link, places, run
        self._index = _kept(link, places.data)
        top = Path(link.folder)
        # The same ports: a name stands for one port, whoever names it.
        self.places = replace(places, data=top / self._index, run=top / _RUN, laid={})

    def lay(self, files: Mapping[str, str], patterns: Sequence[str]) -> None:
        """The configuration, and the files of the index that match ``patterns`` (none: all)."""
        self.link.begin(self._run)
        self.link.ask("fresh", path=_RUN)
        for name, content in files.items():
            self.link.put(f"{_RUN}/{name}", self.places.fill(content).encode())
        push(self.link, self._own.data, self._index, patterns)
        if not any(self._own.data.iterdir()):
            self.link.ask("fresh", path=self._index)

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str], log: str) -> Far:
        """Start a process; its output is appended to ``log`` here while it runs."""
        fill = self.places.fill
        found = self.link.ask(
            "start", name=name, argv=[fill(part) for part in argv], run=_RUN, log=log,
            env={key: fill(value) for key, value in env.items()}, path=list(self.link.host.path),
        )  # fmt: skip
        return Far(self.link, name, int(found["pid"]))

    def complete(self, argv: Sequence[str], log: str) -> None:
        """Run a command to its end; HostError with its exit code if it fails."""
        filled = [self.places.fill(part) for part in argv]
        found = self.link.ask(
            "run", _COMMAND_S, argv=filled, env={}, run=_RUN, log=log,
            path=list(self.link.host.path),
        )  # fmt: skip
        if found["code"]:
            raise HostError(
                self.link.host.name,
                f"`{' '.join(filled[:3])}` ended there with exit code {found['code']}; see {log}",
                stage="deploy",
            )

    def listens(self, name: str, port: int) -> tuple[bool, bool]:
        """Whether that process listens on a port, and whether anybody does."""
        found = self.link.ask("listens", name=name, port=port)
        return bool(found["ours"]), bool(found["any"])

    def processes(self) -> dict[str, list[int]]:
        """The ids there of what was started, with what that has started, by name."""
        return {name: list(pids) for name, pids in self.link.ask("processes")["pids"].items()}

    def stop(self, how: str, wait_s: float) -> None:
        """Ask all to end, then kill them; HostError where they do not, or the host is lost."""
        self.link.ask("stop", wait_s + 30.0, how=how, wait_s=wait_s)

    def fetch(self) -> None:
        """Bring back what the processes changed of the index."""
        pull(self.link, self._index, self._own.data)


def free_everywhere(links: Iterable[Link]) -> Callable[[], int]:
    """What gives a port that nobody uses now, here and on each of these hosts."""
    every = list(links)

    def choose() -> int:
        for _ in range(_TRIES):
            port = free_port()
            if all(port in link.ask("free", ports=[port])["free"] for link in every):
                return port
        raise HostError(every[0].host.name, f"none of {_TRIES} ports is free both there and here")

    return choose


def insist_programs(title: str, service: Service, seats: Mapping[str, Seat]) -> None:
    """HostError where a host lacks a program, or has it in another version than another machine.

    ``seats``: of each process, "" being the one that is asked. This machine counts if it has the
    program, whether or not a process runs here: it makes the index.
    """
    wanted: dict[str, set[str]] = {}
    links: dict[str, Link] = {}
    for name, seat in seats.items():
        if seat.link is None:
            continue
        links[seat.host] = seat.link
        own = [each.argv[0] for each in service.companions if each.name == name]
        own += [service.argv[0], *service.needs] if not name else []
        wanted.setdefault(seat.host, set()).update(own)
    for host, names in wanted.items():
        link = links[host]
        path = list(link.host.path)
        found = link.ask("programs", names=sorted(names), path=path)["found"]
        if absent := [name for name in sorted(names) if not found[name]]:
            raise HostError(
                host, f"there is no {absent[0]} there, which {title} needs; install it on that "
                "machine, or give the folder that has it with `path`", "path" if path else "ssh",
                "deploy",
            )  # fmt: skip
    if service.says and links:
        _one_version(service.says, links)


def _one_version(says: Sequence[str], links: Mapping[str, Link]) -> None:
    named, own = " ".join(says), _said(tuple(says))
    seen = {"this machine": own} if own else {}
    for host, link in links.items():
        if named not in link.says:
            found = link.ask("says", command=list(says), path=list(link.host.path))
            link.says[named] = str(found["line"])
        other = next(iter(seen.items()), None)
        if other is not None and other[1] != link.says[named]:
            raise HostError(
                host, f"`{named}` says {link.says[named]!r} there, and {other[1]!r} on {other[0]}; "
                "install the same version on both", "path" if link.host.path else "ssh", "deploy",
            )  # fmt: skip
        seen[host] = link.says[named]


@lru_cache
def _said(command: tuple[str, ...]) -> str:
    """The first line that a program of this machine prints; "" where it is not to be had."""
    try:
        done = subprocess.run(
            [program(command[0]) or command[0], *command[1:]], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.decode(errors="replace").splitlines()
    return next((line.strip() for line in lines if line.strip()), "")


def _kept(link: Link, data: Path) -> str:
    """The name there of the copy of an index; copies of those that are gone here go too."""
    for path, name in list(link.kept.items()):
        if not Path(path).exists():
            link.ask("drop", path=name, names=[])
            del link.kept[path]
    if str(data) not in link.kept:
        link.kept[str(data)] = f"index-{next(link.numbers)}"
    return link.kept[str(data)]
