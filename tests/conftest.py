"""Nothing is skipped silently; and who runs where, when several workers share the suite.

Skips are named at the end, and under CI they are failures. Only the kernel and the hardware
excuse a skip under CI; such a reason begins with "kernel:" or "hardware:". So does an extra that
`make` was not told to get (SPARK=1); such a reason begins with "extra:".

Several workers (pytest-xdist, ``--dist loadfile``) share the suite file by file, so that what a
file starts for all its tests is started once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

from searchbench.engines import jvm_form
from searchbench.engines.opensearch import engine as opensearch

# No test asserts how long anything takes: machines differ, and are busy.
settings.register_profile("searchbench", deadline=None)
settings.load_profile("searchbench")

# Several workers measure at once on one machine, so foreign CPU must not make their trials invalid.
os.environ.setdefault("SEARCHBENCH_SHARED_MACHINE", "1")

# Half of the CPU time in which a JVM starts is spent on C2, whose code is fast after some seconds,
# and a tenth on verifying classes that every JVM here has loaded before. No test asserts how fast a
# server is.
QUICK_START = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)

_EXCUSED = ("kernel:", "hardware:", *(() if os.environ.get("SPARK") else ("extra:",)))


def pytest_configure() -> None:
    """Tests press Ctrl-C, which what a shell starts in the background ignores, children too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where CI is to run everything."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not reason.removeprefix("Skipped: ").startswith(_EXCUSED):
            report.outcome = "failed"
            report.longrepr = f"skipped under CI: {reason}"
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Several workers begin with the files that take longest.

    One that began last would keep its worker busy while the others have nothing to do.
    """
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session", autouse=True)
def jvms_start_quickly() -> Iterator[None]:
    """The JVMs that tests start in this process compile with C1 alone, and verify no classes."""
    plain = (*jvm_form.PLAIN, f"JAVA_TOOL_OPTIONS={' '.join(QUICK_START)}")
    files = opensearch.Elasticsearch.files

    def quick(
        engine: opensearch.Elasticsearch, name: str, params: jvm_form.Parameters
    ) -> dict[str, str]:
        found = files(engine, name, params)
        options = "".join(f"{option}\n" for option in QUICK_START)
        return found | {"config/jvm.options": found["config/jvm.options"] + options}

    with pytest.MonkeyPatch.context() as patch:
        for module in (jvm_form, opensearch):
            patch.setattr(module, "PLAIN", plain)
        patch.setattr(opensearch.Elasticsearch, "files", quick)
        yield
