"""The nodes of an OpenSearch cluster on this machine: one JVM each, and its configuration.

Java is called directly and not through ``bin/opensearch``: that starts two more JVMs first, to
find out the arguments that are spelled out here, and writes beside its own jars. The home of a
node is private; only the jars come from the shared tree.
"""

from __future__ import annotations

from searchbench.engines.engine import Companion, Parameters
from searchbench.engines.opensearch.levers import LOGGING, WITHOUT_OPTIONS, configuration, names

VERSION = "2.19.1"
TREE = f"{{engines}}/opensearch-{VERSION}"
ANALYSIS = f"{{engines}}/analysis-common-{VERSION}/analysis-common-{VERSION}.jar"
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
_ANALYSIS_DESCRIPTOR = f"""\
description=Analyzers
version={VERSION}
name=analysis-common
classname=org.opensearch.analysis.common.CommonAnalysisPlugin
java.version=11
opensearch.version={VERSION}
custom.foldername=
extended.plugins=
has.native.controller=false
"""


_LIMITS = {"indices.query.bool.max_clause_count": "1000000"}


def command(name: str, params: Parameters) -> tuple[str, ...]:
    """What starts a node; it lives below ``{run}/NAME``."""
    heap = int(params["heap_mb"])
    here = f"{{run}}/{name}"
    return (
        *("sh", "-c", _PREPARE, "node", TREE, ANALYSIS, here),
        *("env", *WITHOUT_OPTIONS, "java"),
        *(f"-Xms{heap}m", f"-Xmx{heap}m", f"-XX:MaxDirectMemorySize={heap // 2}m"),
        *_JVM,
        f"-Djava.io.tmpdir={here}/tmp",
        f"-XX:ErrorFile={here}/hs_err.log",
        f"-Dopensearch.path.home={here}/home",
        f"-Dopensearch.path.conf={here}/config",
        *("-cp", f"{TREE}/lib/*", "org.opensearch.bootstrap.OpenSearch"),
    )


def companions(params: Parameters) -> tuple[Companion, ...]:
    """All nodes but the first."""
    return tuple(Companion(name, command(name, params)) for name in names(params)[1:])


def files(params: Parameters) -> dict[str, str]:
    """The configuration of every node."""
    found = {}
    for name in names(params):
        settings = configuration(name, params, "cluster.initial_cluster_manager_nodes", _LIMITS)
        found[f"{name}/config/opensearch.yml"] = settings
        found[f"{name}/config/log4j2.properties"] = LOGGING
        found[f"{name}/home/modules/analysis-common/plugin-descriptor.properties"] = (
            _ANALYSIS_DESCRIPTOR
        )
    return found
