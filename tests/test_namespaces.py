"""The machines of tests: one file has them at a time, and waiting for them is no hanging."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from namespaces import alone

LONG_S = 200.0


@pytest.fixture
def alarm() -> Iterator[None]:
    """An alarm of the process, as pytest-timeout sets one; that of pytest-timeout afterwards."""
    before = signal.setitimer(signal.ITIMER_REAL, LONG_S)
    yield
    signal.setitimer(signal.ITIMER_REAL, *before)


def remaining_s() -> float:
    return signal.getitimer(signal.ITIMER_REAL)[0]


def until(true: threading.Event, alarm_runs: bool) -> None:
    give_up = time.monotonic() + 20
    while bool(remaining_s()) != alarm_runs or (alarm_runs and not true.is_set()):
        assert time.monotonic() < give_up
        time.sleep(0.01)


@pytest.mark.usefixtures("alarm")
def test_a_second_file_waits_for_the_machines_and_its_alarm_with_it(tmp_path: Path) -> None:
    """A lock is of an open file, so that two threads stand for two workers."""
    lock = tmp_path / "lock"
    has, ends = threading.Event(), threading.Event()

    def second() -> None:
        with alone(lock):
            has.set()
            ends.wait(20)

    thread = threading.Thread(target=second)
    with alone(lock):
        assert 0 < remaining_s() <= LONG_S, "who has the machines may not hang"
        thread.start()
        until(has, alarm_runs=False)
        assert not has.wait(0.5), "two have the machines at once"
    until(has, alarm_runs=True)
    assert remaining_s() <= LONG_S
    ends.set()
    thread.join()
    with alone(lock):
        pass
