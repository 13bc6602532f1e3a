"""Lucene, the search library under Elasticsearch and Solr, behind a library host in Java."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import INGEST, Capabilities, Parameter, Parameters, Service
from searchbench.engines.frames import SETTLE, LibraryHost, frame, host_options
from searchbench.engines.job import MERGE, OPENING, Job, Proof, Work
from searchbench.engines.jvm_form import JAVA_17, JVM_LEVERS, jvm
from searchbench.engines.levers import choice, described, number, switch
from searchbench.errors import Unsupported

_OF_THE_JVM = ["jdk", *(lever.name for lever in JVM_LEVERS)]
# As Lucene itself advises: the vector instructions of the processor, where the JDK and it agree.
_ADVISED = ("--add-modules", "jdk.incubator.vector", "--enable-native-access=ALL-UNNAMED")


class Lucene(LibraryHost):
    """Parts in one process; heap and garbage collector are fixed, whatever machine it runs on.

    ``place``: where the host was built. ``least``: the oldest JDK that it runs on.
    """

    place: ClassVar[str] = "{hosts}/lucene/target"
    least: ClassVar[int] = 17
    needs: ClassVar[Mapping[str, str]] = {
        "java": JAVA_17,
        "{hosts}/lucene/target/lucene-host.jar": "`make java` builds it",
    }

    name = "lucene"
    can = Capabilities(
        title="Lucene",
        home="https://lucene.apache.org",
        cannot={"snippets": "we could: Lucene has highlighters; nobody has written it in the host"},
        deviations={
            "scoring": "BM25 (k1 1.2, b 0.75) without the constant factor k1 + 1, field lengths "
            "rounded to one byte; several fields add up",
            "analysis": "letters and digits as the JDK knows them (Java 17: Unicode 13, Java 25: "
            "Unicode 16); a word of more than 32,766 bytes is not indexed",
            "sort": "the smallest and the greatest 64-bit integer (or date) sort with the missing "
            "values",
        },
        unread={
            "jdk": "never: a JVM does not know whether there is a newer one; its facts say which "
            "one ran (`java`), and a version that is not installed is refused at the start",
        },
    )
    parameters = described(
        {
            number("parts", 1, (1, 64), index=True): "how many indexes in one process are "
            "searched, one after another, as one",
            choice("searcher", "shared", "per-thread"): "shared: one searcher for all connections; "
            "per-thread: one for each",
            choice("segments", "merged", "as-is", index=True): "merge each part to one segment, "
            "or leave the segments as they are",
            choice("directory", "mmap", "nio", "ram"): "how the index is read: mapped, with read "
            "calls, or copied into the heap",
            number("indexing_memory_mb", 64, (16, 65536), index=True): "memory of the index "
            "writers of all parts together, within the heap",
            number("refresh_ms", 0, (0, 3_600_000), index=True): "how often, in ms, new documents "
            "are made visible while batches come in; 0: only when asked",
            switch("keys", False, index=True): "index the ids; without that, documents can be "
            "inserted but not replaced or deleted",
            Parameter("jdk", str, "newest", "", index=True): "version of the JDK that it runs on; "
            "newest: the latest that is found, the same for all versions of Lucene",
            **JVM_LEVERS,
        }
    )

    def service(self, params: Parameters, schema: Schema) -> Service:
        """A JVM of its own. What its defaults would take from the machine is spelled out."""
        own = [p for p in self.parameters if p.name not in _OF_THE_JVM]
        jdk = ("sh", "{hosts}/with-jdk", str(self.least), str(params["jdk"]), "java")
        return Service(
            argv=(
                *jvm(params, (*jdk, *_ADVISED)),
                *("-cp", f"{self.place}/lucene-host.jar:{self.place}/lib/*"),
                "searchbench.lucene.Host",
                *host_options(own, params),
            ),
            wire="frames",
            ready=self.facts_request(),
            needs=self.needs,
            ready_timeout_s=60.0,
        )

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The documents; a forced merge; opening."""
        return (INGEST, MERGE, OPENING)

    def work(
        self,
        job: str,
        levels: Parameters,
        schema: Schema,
        params: Parameters,
        done: Sequence[str] = (),
    ) -> Work:
        """Every part to one segment, which is proven by the facts of the host."""
        if job != MERGE.name:
            return super().work(job, levels, schema, params, done)
        if params["segments"] == "merged":
            raise Unsupported('with segments = "merged" the ingest itself ends with a merge, so '
                              'the job has nothing to do; set segments = "as-is"')  # fmt: skip
        return Work(
            requests=(frame(SETTLE, b'{"merge": true}'),),
            proven=(Proof("segments of a part", self.facts_request(), 1),),
        )

    def left(self, reply: bytes) -> object:
        """How many segments the part with most of them has."""
        return max(self.facts(reply).extra["segments_by_part"])


class Lucene10(Lucene):
    """The same host built with Lucene 10, whose vector instructions and mapping are the JDK's."""

    name = "lucene10"
    can = replace(Lucene.can, title="Lucene 10")
    place = "{hosts}/lucene/target10"
    least = 21
    needs: ClassVar[Mapping[str, str]] = {
        "{hosts}/lucene/target10/lucene-host.jar": "`make java` builds it where there is a JDK 21 "
        "or later: set SEARCHBENCH_JDK to its folder, or install one below /usr/lib/jvm",
    }
