"""OpenSearch and Elasticsearch, distributed search engines over Lucene, as nodes on this machine.

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

_ELASTIC_VERSION = "8.19.0"
_ELASTIC_TREE = f"{{engines}}/elasticsearch-{_ELASTIC_VERSION}"
_PLUGIN = "{hosts}/elasticsearch/target/elasticsearch-analysis.jar"
# Its launcher looks for everything below the folder in which it is started.
_ELASTIC_PREPARE = (
    "tree=$1; jar=$2; here=$3; shift 3; umask 077; "
    'mkdir -p "$here/tmp" "$here/home/bin" "$here/home/plugins/searchbench-analysis" && '
    'ln -sfn "$tree/lib" "$here/home/lib" && ln -sfn "$tree/modules" "$here/home/modules" && '
    'cp -f "$jar" "$here/home/plugins/searchbench-analysis/" && cd "$here/home" && exec "$@"'
)
_ELASTIC_DESCRIPTOR = f"""\
name=searchbench-analysis
description=The declared analysis
version=1
elasticsearch.version={_ELASTIC_VERSION}
java.version=17
"""
_COMPONENTS = (
    '{"org.elasticsearch.plugin.analysis.AnalyzerFactory":'
    '{"searchbench_declared":"searchbench.elasticsearch.DeclaredAnalysis"}}\n'
)


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


class Elasticsearch(RestSearch):
    """As OpenSearch, from which it differs in how it starts and where its analysis comes from."""

    name = "elasticsearch"
    can = Capabilities(
        title="Elasticsearch",
        home="https://www.elastic.co/elasticsearch",
        artifacts=(
            f"org.elasticsearch.distribution.integ-test-zip:elasticsearch:{_ELASTIC_VERSION}:zip",
        ),
        unread=UNREAD,
        deviations=DEVIATIONS,
    )
    parameters = LEVERS
    analysis = {"analyzer": {"declared": {"type": "searchbench_declared"}}}  # noqa: RUF012
    # It has two policies; the one for data that come in order of time joins only neighbours.
    merge_policy = {"merge.policy.type": "time_based"}  # noqa: RUF012
    electing = "cluster.initial_master_nodes"
    settings = {"xpack.security.enabled": "false"}  # noqa: RUF012
    needs = {  # noqa: RUF012
        "java": "install Java 17 (Debian: apt-get install openjdk-17-jdk-headless maven)",
        f"{_ELASTIC_TREE}/lib": "`searchbench engines install elasticsearch` gets it from "
        "Maven Central",
        _PLUGIN: "`make java` builds it",
    }
    alone_s = 180.0

    def command(self, name: str, params: Parameters) -> tuple[str, ...]:
        """The launcher of a node, which starts the node's own JVM with ``jvm.options``."""
        here = f"{{run}}/{name}"
        return (
            *("sh", "-c", _ELASTIC_PREPARE, "node", _ELASTIC_TREE, _PLUGIN, here, *PLAIN),
            *("java", "-Xms4m", "-Xmx64m", "-XX:+UseSerialGC"),
            *("-Dcli.name=server", f"-Dcli.script={here}/home/bin/elasticsearch"),
            "-Dcli.libs=lib/tools/server-cli",
            *(f"-Des.path.home={here}/home", f"-Des.path.conf={here}/config"),
            *("-Des.distribution.type=zip", f"-Djava.io.tmpdir={here}/tmp"),
            *("-cp", f"{_ELASTIC_TREE}/lib/*:{_ELASTIC_TREE}/lib/cli-launcher/*"),
            "org.elasticsearch.launcher.CliToolLauncher",
        )

    def env(self, name: str) -> dict[str, str]:
        """What the launcher would take from ours."""
        return {"ES_TMPDIR": f"{{run}}/{name}/tmp", "ES_JAVA_OPTS": "", "CLI_JAVA_OPTS": ""}

    def files(self, name: str, params: Parameters) -> dict[str, str]:
        """The arguments of the node's JVM, and what makes a plugin of the jar with the analysis."""
        heap = int(params["heap_mb"])
        plugin = "home/plugins/searchbench-analysis"
        return {
            # A temporary folder above the jars would let plugins read them, which is refused.
            "config/jvm.options": f"-Xms{heap}m\n-Xmx{heap}m\n-XX:+UseG1GC\n"
            "-XX:+ExitOnOutOfMemoryError\n-XX:-UsePerfData\n"
            f"-Djava.io.tmpdir={{run}}/{name}/tmp\n",
            f"{plugin}/stable-plugin-descriptor.properties": _ELASTIC_DESCRIPTOR,
            f"{plugin}/named_components.json": _COMPONENTS,
        }
