"""The nodes of an OpenSearch cluster on this machine: one JVM each, and its configuration.

Java is called directly and not through ``bin/opensearch``: that starts two more JVMs first, to
find out the arguments that are spelled out here, and writes beside its own jars. The home of a
node is private; only the jars come from the shared tree.
"""

from __future__ import annotations

from collections.abc import Mapping

from searchbench.engines.engine import Companion, Parameters

VERSION = "2.19.1"
TREE = f"{{engines}}/opensearch-{VERSION}"
ANALYSIS = f"{{engines}}/analysis-common-{VERSION}/analysis-common-{VERSION}.jar"
# The modules are copied, not linked: the security manager does not follow a link out of the home.
_PREPARE = (
    'tree=$1; jar=$2; here=$3; shift 3; umask 077; mkdir -p "$here/tmp" "$here/home/modules" && '
    'cp -Rf "$tree/modules/." "$here/home/modules/" && '
    'cp -f "$jar" "$here/home/modules/analysis-common/" && exec "$@"'
)
_FREE_OF_OPTIONS = tuple(
    part
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
    for part in ("-u", name)
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
_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] [%node_name] %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""
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


def names(params: Parameters) -> tuple[str, ...]:
    """n1, which is asked, and its companions."""
    return tuple(f"n{number}" for number in range(1, int(params["nodes"]) + 1))


def command(name: str, params: Parameters) -> tuple[str, ...]:
    """What starts a node; it lives below ``{run}/NAME``."""
    heap = int(params["heap_mb"])
    here = f"{{run}}/{name}"
    return (
        *("sh", "-c", _PREPARE, "node", TREE, ANALYSIS, here),
        *("env", *_FREE_OF_OPTIONS, "java"),
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


def files(params: Parameters, settings: Mapping[str, str]) -> dict[str, str]:
    """The configuration of every node; ``settings`` are those that depend on levers."""
    found = {}
    for name in names(params):
        lines = [f"{k}: {v}" for k, v in {**_settings(name, params), **settings}.items()]
        found[f"{name}/config/opensearch.yml"] = "\n".join(lines) + "\n"
        found[f"{name}/config/log4j2.properties"] = _LOGGING
        found[f"{name}/home/modules/analysis-common/plugin-descriptor.properties"] = (
            _ANALYSIS_DESCRIPTOR
        )
    return found


def _settings(name: str, params: Parameters) -> dict[str, str]:
    every = names(params)
    found = {
        "cluster.name": "searchbench",
        "node.name": name,
        "network.host": "127.0.0.1",
        "http.port": "{port}" if name == every[0] else f"{{port:{name} http}}",
        "transport.port": f"{{port:{name}}}",
        "path.data": f'"{{data}}/{name}"',
        "path.logs": f'"{{run}}/{name}/logs"',
        # One machine, perhaps a full one: an index that is suddenly read-only is no measurement.
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        "action.auto_create_index": '"false"',
        # Limits that a query of our algebra could meet.
        "indices.query.bool.max_clause_count": "1000000",
        "search.max_buckets": "2147483647",
    }
    if len(every) == 1:
        found["discovery.type"] = "single-node"
    else:
        found["discovery.seed_hosts"] = ", ".join(f'"127.0.0.1:{{port:{n}}}"' for n in every)
        found["discovery.seed_hosts"] = f"[{found['discovery.seed_hosts']}]"
        found["cluster.initial_cluster_manager_nodes"] = f"[{', '.join(every)}]"
    return found
