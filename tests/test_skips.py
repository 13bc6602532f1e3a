"""The rule about skips holds: a test that is skipped under CI is a failed one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("reason", "ci", "spark", "failed"),
    [
        ("no browser here", "true", "", True),
        ("kernel: no such call", "true", "", False),
        ("hardware: one core", "true", "", False),
        ("extra: no pyspark", "true", "", False),
        ("extra: no pyspark", "true", "1", True),
        ("no browser here", "", "", False),
    ],
)
def test_only_kernel_hardware_and_an_extra_not_asked_for_excuse_a_skip(
    tmp_path: Path, reason: str, ci: str, spark: str, failed: bool
) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_it.py").write_text(
        f"import pytest\ndef test_it():\n    pytest.skip({reason!r})\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", str(tmp_path)],
        cwd=tmp_path, env={**os.environ, "CI": ci, "SPARK": spark}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode != 0) == failed
    assert reason in done.stdout
