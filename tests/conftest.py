"""Nothing is skipped silently: skips are named at the end, and under CI they are failures.

Only the kernel and the hardware excuse a skip under CI; such a reason begins with "kernel:" or
"hardware:".
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

# No test asserts how long anything takes: machines differ, and are busy.
settings.register_profile("searchbench", deadline=None)
settings.load_profile("searchbench")

_EXCUSED = ("kernel:", "hardware:")


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
