"""OpenSearch, the distributed search engine over Lucene, as a cluster of nodes on this machine.

Java is called directly and not through ``bin/opensearch``: that starts two more JVMs first, to
find out the arguments that are spelled out here, and writes beside its own jars. The home of a
node is private; only the jars come from the shared tree.
"""

from __future__ import annotations

from searchbench.engines.engine import Capabilities, Parameters
from searchbench.engines.jvm_form import PLAIN
from searchbench.engines.opensearch.http import RestSearch
from searchbench.engines.opensearch.levers import DEVIATIONS, LEVERS, UNREAD

_VERSION = "2.19.1"
_TREE = f"{{engines}}/opensearch-{_VERSION}"
_ANALYSIS = f"{{engines}}/analysis-common-{_VERSION}/analysis-common-{_VERSION}.jar"
# The modules are copied, not linked: the security manager does not follow a link out of the home.
_PREPARE = (
    'tree=$1; jar=$2; here=$3; shift 3; umask 077; mkdir -p "$here/tmp" "$here/home/modules" && '
    'cp -Rf "$tree/modules/." "$here/home/modules/" && '
    'cp -f "$jar" "$here/home/modules/analysis-common/" && exec "$@"'
)
# What OpenSearch's own launcher gives the JVM, but for logs of the garbage collector and dumps.
_JVM = (
    "-XX:+AlwaysPreTouch",
    "-XX:+UseG1GC",
    "-XX:G1ReservePercent=25",
    "-XX:InitiatingHeapOccupancyPercent=30",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    "-XX:-OmitStackTraceInFastThrow",
    "-Xss1m",
    "-Djava.awt.headless=true",
    "-Dfile.encoding=UTF-8",
    "-Djava.locale.providers=SPI,COMPAT",
    "-Djava.security.manager=allow",
    "-Djava.util.concurrent.ForkJoinPool.common.threadFactory="
    "org.opensearch.secure_sm.SecuredForkJoinWorkerThreadFactory",
    "-Djna.nosys=true",
    "-Dio.netty.noUnsafe=true",
    "-Dio.netty.noKeySetOptimization=true",
    "-Dio.netty.recycler.maxCapacityPerThread=0",
    "-Dio.netty.allocator.numDirectArenas=0",
    "-Dlog4j.shutdownHookEnabled=false",
    "-Dlog4j2.disable.jmx=true",
    "-Dopensearch.networkaddress.cache.ttl=60",
    "-Dopensearch.networkaddress.cache.negative.ttl=10",
    "-Dopensearch.distribution.type=zip",
    "-Dopensearch.bundled_jdk=false",
)
# Its archive holds no analysis but the simplest; this module brings `pattern` and `lowercase`.
_DESCRIPTOR = f"""\
description=Analyzers
version={_VERSION}
name=analysis-common
classname=org.opensearch.analysis.common.CommonAnalysisPlugin
java.version=11
opensearch.version={_VERSION}
custom.foldername=
extended.plugins=
has.native.controller=false
"""
_GET = "`searchbench engines install opensearch` gets it from Maven Central"


class OpenSearch(RestSearch):
    """Nodes of one cluster, one index; the first node is asked and coordinates the others."""

    name = "opensearch"
    can = Capabilities(
        title="OpenSearch",
        home="https://opensearch.org",
        artifacts=(
            f"org.opensearch.distribution.integ-test-zip:opensearch:{_VERSION}:zip",
            f"org.opensearch.plugin:analysis-common:{_VERSION}:jar",
        ),
        unread=UNREAD,
        deviations=DEVIATIONS,
    )
    parameters = LEVERS
    # Lucene's own regular expressions know no classes of Unicode, so the slower `pattern`.
    analysis = {  # noqa: RUF012 -- a declaration, like the others
        "tokenizer": {"runs": {"type": "pattern", "pattern": "[^\\p{L}\\p{N}]+"}},
        "filter": {"indexable": {"type": "length", "max": 10_922}},
        "analyzer": {
            "declared": {
                "type": "custom",
                "tokenizer": "runs",
                "filter": ["lowercase", "indexable"],
            }
        },
    }
    # The default policy joins segments that are no neighbours, and ties lose their order.
    merge_policy = {"merge.policy": "log_byte_size"}  # noqa: RUF012
    electing = "cluster.initial_cluster_manager_nodes"
    settings = {"indices.query.bool.max_clause_count": "1000000"}  # noqa: RUF012
    needs = {  # noqa: RUF012
        "java": "install Java 17 (Debian: apt-get install openjdk-17-jre-headless)",
        f"{_TREE}/lib": _GET,
        _ANALYSIS: _GET,
    }
    alone_s = 120.0

    def command(self, name: str, params: Parameters) -> tuple[str, ...]:
        """A JVM. What its launcher would take from the machine is spelled out."""
        heap = int(params["heap_mb"])
        here = f"{{run}}/{name}"
        return (
            *("sh", "-c", _PREPARE, "node", _TREE, _ANALYSIS, here, *PLAIN, "java"),
            *(f"-Xms{heap}m", f"-Xmx{heap}m", f"-XX:MaxDirectMemorySize={heap // 2}m"),
            *(*_JVM, f"-Djava.io.tmpdir={here}/tmp", f"-XX:ErrorFile={here}/hs_err.log"),
            f"-Dopensearch.path.home={here}/home",
            f"-Dopensearch.path.conf={here}/config",
            *("-cp", f"{_TREE}/lib/*", "org.opensearch.bootstrap.OpenSearch"),
        )

    def files(self, name: str, params: Parameters) -> dict[str, str]:
        """What makes a module of the jar with the analysis."""
        return {"home/modules/analysis-common/plugin-descriptor.properties": _DESCRIPTOR}
