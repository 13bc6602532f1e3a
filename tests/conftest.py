"""Nothing is skipped silently; and who runs where, when several workers share the suite.

Skips are named at the end, and under CI they are failures. Only the kernel and the hardware
excuse a skip under CI; such a reason begins with "kernel:" or "hardware:".

Several workers (pytest-xdist, ``--dist loadgroup``) share the tests one by one, except that those
that share a fixture of their module stay on one worker, so that each server is started once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

# No test asserts how long anything takes: machines differ, and are busy.
settings.register_profile("searchbench", deadline=None)
settings.load_profile("searchbench")

_EXCUSED = ("kernel:", "hardware:")


def pytest_configure() -> None:
    """Tests press Ctrl-C. What a shell starts in the background ignores it, and so do its children."""
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


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Keep together what shares a server, and begin with what takes longest."""
    # A wrapper, because pytest-xdist reads the groups in this same hook.
    if hasattr(config, "workerinput"):
        for item in items:
            if item.get_closest_marker("xdist_group") is None and (group := _shared(item)):
                item.add_marker(pytest.mark.xdist_group(group))
        # A long one that began last would keep one worker busy while the others have nothing to do.
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    yield


def _shared(item: pytest.Item) -> str | None:
    """Which tests this one shares a fixture of its module with; None if it stands alone.

    Those with the same parameters of such fixtures: a test under another parameter is served by
    another server. What is used by itself (``autouse``) is a condition and not a server.
    """
    if not isinstance(item, pytest.Function):
        return None
    named = item._fixtureinfo.name2fixturedefs
    by_itself = set(item._fixtureinfo.initialnames) - set(item._fixtureinfo.argnames)
    shared = [
        name
        for name, definitions in named.items()
        if definitions[-1].scope == "module" and name not in by_itself
    ]
    if not shared:
        return None
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    levels = [str(getattr(parameters[n], "name", parameters[n])) for n in shared if n in parameters]
    return " ".join([item.path.stem, *levels])
