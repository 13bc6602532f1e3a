"""Every host that is reached by ssh, looked at before the first minute is spent.

A host that is lost later fails a trial. One that is not there to begin with, or not as the study
says, is a mistake in the study, and is told with the position of the key that is wrong.
"""

from __future__ import annotations

from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import Engine
from searchbench.lab.remote.deployed import insist_programs
from searchbench.lab.remote.hosts import Links
from searchbench.lab.remote.link import HostError
from searchbench.lab.system.seat import Seat, seated
from searchbench.places import Host, Place, place_of
from searchbench.study import Study
from searchbench.study.plan import Treatment
from searchbench.study.positions import Source


class Survey:
    """Collects what is wrong with the hosts of a study; ``finish`` raises it as a StudyError."""

    def __init__(self, study: Study, links: Links) -> None:
        self._source = Source(study.text, study.path, study.moved)
        self._links = links
        self._known: dict[Host, bool] = {}

    def place(self, treatment: Treatment) -> Place | None:
        """The place of a treatment that has such hosts; all of them are looked at."""
        found = None if treatment.attach else place_of(treatment.settings)
        if found is None or not any(host.ssh for host in found.hosts.values()):
            return None
        for host in found.hosts.values():
            if host.ssh and host not in self._known:
                self._known[host] = self._reached(host)
        return found

    def programs(self, place: Place, engine: Engine, treatment: Treatment, schema: Schema) -> None:
        """Has each host the programs of a system, in one version?"""
        if not all(self._known[host] for host in place.hosts.values() if host.ssh):
            return
        service = engine.service(treatment.parameters, schema)
        seats = seated(engine.name, service, self._seat(place.host),
                       [self._seat(host) for host in place.agents])  # fmt: skip
        try:
            insist_programs(engine.can.title, service, seats)
        except HostError as error:
            self._complain(error)

    def finish(self) -> None:
        """StudyError if anything is wrong."""
        self._source.finish()

    def _seat(self, host: Host | None) -> Seat:
        if host is None or not host.ssh:
            return Seat()
        return Seat(host=host.name, link=self._links.link(host))

    def _reached(self, host: Host) -> bool:
        try:
            self._links.link(host).round_trip_s()
        except HostError as error:
            self._complain(error)
            return False
        return True

    def _complain(self, error: HostError) -> None:
        self._source.at_value(("hosts", error.host, error.key), str(error))
