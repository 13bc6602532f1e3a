"""A JVM as engines start it: its levers, and what its defaults would take from the machine."""

from __future__ import annotations

from searchbench.engines.engine import Parameters
from searchbench.engines.levers import choice, number

_COLLECTORS = {
    "serial": "-XX:+UseSerialGC",
    "parallel": "-XX:+UseParallelGC",
    "g1": "-XX:+UseG1GC",
}
JVM_LEVERS = {
    number("heap_mb", 512, (32, 1048576)): "heap of the JVM (-Xms and -Xmx)",
    choice("gc", *_COLLECTORS): "garbage collector of the JVM",
}
# The JVM would take more arguments from these.
PLAIN = ("env", "-u", "JAVA_TOOL_OPTIONS", "-u", "JDK_JAVA_OPTIONS", "-u", "_JAVA_OPTIONS")
JAVA_17 = (
    "install Java 17 or later (Debian: apt-get install openjdk-17-jdk-headless maven), "
    "then `make java`"
)


def jvm(params: Parameters, java: tuple[str, ...] = ("java",)) -> tuple[str, ...]:
    """The command of a JVM by the levers ``heap_mb`` and ``gc``, without what it is to run."""
    heap = params["heap_mb"]
    return (
        *(*PLAIN, *java, f"-Xms{heap}m", f"-Xmx{heap}m", _COLLECTORS[str(params["gc"])]),
        *("-XX:+ExitOnOutOfMemoryError", "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true"),
    )
