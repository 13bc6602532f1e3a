"""Hosts that are reached by ssh: their links for a whole run, and what is known of them in a trial.

A link lives as long as the run, so that an index crosses the network once; what is started over it
lives as long as a deployment. Where a link is lost, the trial fails, and the next one makes
another.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from searchbench.errors import LabError
from searchbench.lab.place import host as here
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.remote.left import Remote
from searchbench.lab.remote.link import HostError, Link
from searchbench.lab.system.seat import Seat
from searchbench.places import Host
from searchbench.record.elsewhere import Elsewhere
from searchbench.record.trial import Lever, Note

_STALE_NS = 1_000_000_000  # counters that are further from an end of a window say nothing of it
_ONE_MACHINE = Note(
    kind="hosts are one machine",
    severity="note",
    meaning="they share processor and memory, and no network lies between them; separate "
    "machines would not slow each other down, and would be farther apart",
    remedy="name hosts that are different machines",
)


@dataclass
class Links:
    """The links of a run, by the host; all are noted in ``ledger`` before they are made."""

    ledger: Ledger
    _open: dict[tuple[str, ...], tuple[Link, int]] = field(default_factory=dict)

    def link(self, host: Host) -> Link:
        """The one to this host, made if it is not there or was lost; HostError if it cannot be."""
        key = (host.name, host.ssh_command, host.ssh, host.address, host.folder)
        if key in self._open:
            link, number = self._open[key]
            if not link.lost:
                link.host = host
                return link
            link.close()
            del self._open[key]
            # It has ended there by itself; if not, whatever is left would disturb the next.
            self.ledger.undo(number)
        name = f"{self.ledger.unique()}-{secrets.token_hex(3)}"
        link = Link(host, name)
        number = self.ledger.note(Remote(host.ssh_command, host.ssh, link.folder))
        try:
            link.open()
        except HostError:
            if link.greeted and link.left != "":
                self.ledger.undo(number)
            else:
                self.ledger.settled(number)  # nothing was made there, or it is gone
            raise
        except BaseException:
            link.close()  # the ledger undoes it, if it must be
            raise
        self._open[key] = (link, number)
        return link

    def close(self) -> list[str]:
        """End all of them, with what runs there; what is left, and why."""
        problems: list[str] = []
        every, self._open = list(self._open.values()), {}
        for link, _ in every:
            link.hang_up() if link.lost else None
        for link, number in every:
            if link.close():
                problems += self.ledger.undo(number)
            else:
                self.ledger.settled(number)
        return problems


class Remotes:
    """The hosts of one deployment that are reached by ssh."""

    def __init__(self, hosts: Sequence[Host], links: Links) -> None:
        self.hosts = {host.name: host for host in hosts}
        self._links, self._by_name = links, dict[str, Link]()
        self._found: dict[str, Lever] = {}
        self._count: dict[str, int] = {}

    @property
    def levers(self) -> list[Lever]:
        """What is known of each, until now."""
        return list(self._found.values())

    @property
    def notes(self) -> list[Note]:
        """A note if two of them are one machine, or this one."""
        machines: dict[str, list[str]] = {_boot(here.fingerprint()): ["this machine"]}
        for name, link in self._by_name.items():
            machines.setdefault(_boot(link.machine) or name, []).append(name)
        return [replace(_ONE_MACHINE, number=" and ".join(names))
                for names in machines.values() if len(names) > 1]  # fmt: skip

    def confine(self) -> None:
        """Reach each of them, at the address where it will listen; HostError where it is not."""
        for name, host in self.hosts.items():
            link = self._by_name[name] = self._links.link(host)
            trip_s = link.round_trip_s()
            about = link.machine
            size = f"{about['cores']} cores, {about['memory_bytes'] / 1e9:,.1f} GB"
            same = _boot(about) == _boot(here.fingerprint())
            self._found[name] = Lever(
                name=f"hosts.{name}",
                asked=f"the machine that ssh reaches as {host.ssh}",
                read_back=f"{about['hostname']}: {about['cpu'] or 'processor not known'}, {size}, "
                f"Linux {about['kernel']}; it is {'this' if same else 'another'} machine by its "
                "boot id",
                effect=f"{link.address} is its own, and a round trip took {trip_s * 1e3:.3f} ms",
                figures={"round_trip_s": trip_s, "cores": about["cores"],
                         "memory_bytes": about["memory_bytes"]},
            )  # fmt: skip

    def seat(self, host: Host) -> Seat:
        """Where its processes run."""
        link = self._by_name[host.name]
        return Seat(address=link.address, host=host.name, link=link)

    def loaded(self, by_host: Mapping[str, Sequence[int]]) -> None:
        """LabError (stage ``place``) if nothing runs on a host; ``by_host``: ids of processes."""
        for name, link in self._by_name.items():
            count = self._count[name] = len(by_host.get(name, ()))
            if not count:
                raise LabError(f"no process of the system runs on host {name}", "place")
            lever = self._found[name]
            says = "".join(f"; `{command}` says {line}" for command, line in link.says.items())
            ran = f"{count} process{'' if count == 1 else 'es'} there, known by the host's /proc"
            self._found[name] = replace(lever, effect=f"{lever.effect}; {ran}{says}",
                                        figures={**lever.figures, "processes": count})  # fmt: skip

    def elsewhere(self, start_unix_ns: int, end_unix_ns: int) -> list[Elsewhere]:
        """What each did within a window, by our clock: when its counters arrived here."""
        own = _boot(here.fingerprint())
        return [
            Elsewhere(
                host=name,
                ssh=link.host.ssh,
                address=link.address,
                hostname=link.machine["hostname"],
                boot_id=_boot(link.machine),
                this_machine=_boot(link.machine) == own,
                cpu=link.machine["cpu"],
                cores=link.machine["cores"],
                memory_bytes=link.machine["memory_bytes"],
                kernel=link.machine["kernel"],
                processes=self._count.get(name, 0),
                seconds=(end_unix_ns - start_unix_ns) / 1e9,
                versions=dict(link.says),
                **_used(link.samples, start_unix_ns, end_unix_ns),
            )
            for name, link in self._by_name.items()
        ]


def _boot(about: Mapping[str, object]) -> str:
    return str(about.get("boot_id", ""))


def _used(
    samples: Sequence[tuple[int, Mapping[str, float]]], start_ns: int, end_ns: int
) -> dict[str, float | None]:
    """By how much counters grew within a window, interpolated; None where they are not known."""

    def grown(name: str) -> float | None:
        seen = [(at, row[name]) for at, row in samples if name in row]
        if len(seen) < 2 or seen[0][0] > start_ns + _STALE_NS or seen[-1][0] < end_ns - _STALE_NS:
            return None
        # Relative to the first, since a float does not hold nanoseconds since 1970.
        t = np.array([at - seen[0][0] for at, _ in seen], np.float64)
        values = np.array([value for _, value in seen], np.float64)
        ends = np.interp([start_ns - seen[0][0], end_ns - seen[0][0]], t, values)
        return max(0.0, float(ends[1] - ends[0]))

    inside = [row["rss_bytes"] for at, row in samples
              if "rss_bytes" in row and start_ns <= at <= end_ns]  # fmt: skip
    return {
        "cpu_s": grown("cpu_s"),
        "peak_rss_bytes": max(inside, default=None),
        "read_bytes": grown("read_bytes"),
        "write_bytes": grown("write_bytes"),
        "major_faults": grown("major_faults"),
        "busy_s": grown("busy_s"),
        "steal_s": grown("steal_s"),
    }
