"""Elasticsearch, the distributed search engine over Lucene, as nodes on this machine."""

from __future__ import annotations

from searchbench.engines.engine import Capabilities, Parameters
from searchbench.engines.jvm_form import PLAIN
from searchbench.engines.opensearch.http import RestSearch
from searchbench.engines.opensearch.levers import DEVIATIONS, LEVERS, UNREAD

_VERSION = "8.19.0"
_TREE = f"{{engines}}/elasticsearch-{_VERSION}"
_PLUGIN = "{hosts}/elasticsearch/target/elasticsearch-analysis.jar"
# Its launcher looks for everything below the folder in which it is started.
_PREPARE = (
    "tree=$1; jar=$2; here=$3; shift 3; umask 077; "
    'mkdir -p "$here/tmp" "$here/home/bin" "$here/home/plugins/searchbench-analysis" && '
    'ln -sfn "$tree/lib" "$here/home/lib" && ln -sfn "$tree/modules" "$here/home/modules" && '
    'cp -f "$jar" "$here/home/plugins/searchbench-analysis/" && cd "$here/home" && exec "$@"'
)
_DESCRIPTOR = f"""\
name=searchbench-analysis
description=The declared analysis
version=1
elasticsearch.version={_VERSION}
java.version=17
"""
_COMPONENTS = (
    '{"org.elasticsearch.plugin.analysis.AnalyzerFactory":'
    '{"searchbench_declared":"searchbench.elasticsearch.DeclaredAnalysis"}}\n'
)


class Elasticsearch(RestSearch):
    """As OpenSearch, from which it differs in how it starts and where its analysis comes from."""

    name = "elasticsearch"
    can = Capabilities(
        title="Elasticsearch",
        home="https://www.elastic.co/elasticsearch",
        artifacts=(f"org.elasticsearch.distribution.integ-test-zip:elasticsearch:{_VERSION}:zip",),
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
        f"{_TREE}/lib": "`searchbench engines install elasticsearch` gets it from Maven Central",
        _PLUGIN: "`make java` builds it",
    }
    alone_s = 180.0

    def command(self, name: str, params: Parameters) -> tuple[str, ...]:
        """The launcher of a node, which starts the node's own JVM with ``jvm.options``."""
        here = f"{{run}}/{name}"
        return (
            *("sh", "-c", _PREPARE, "node", _TREE, _PLUGIN, here, *PLAIN),
            *("java", "-Xms4m", "-Xmx64m", "-XX:+UseSerialGC"),
            *("-Dcli.name=server", f"-Dcli.script={here}/home/bin/elasticsearch"),
            "-Dcli.libs=lib/tools/server-cli",
            *(f"-Des.path.home={here}/home", f"-Des.path.conf={here}/config"),
            *("-Des.distribution.type=zip", f"-Djava.io.tmpdir={here}/tmp"),
            *("-cp", f"{_TREE}/lib/*:{_TREE}/lib/cli-launcher/*"),
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
            f"{plugin}/stable-plugin-descriptor.properties": _DESCRIPTOR,
            f"{plugin}/named_components.json": _COMPONENTS,
        }
