"""What is said of this machine before it is measured on."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchbench.lab.place import host


def machine(root: Path, driver: str, halt_poll_ns: str | None) -> Path:
    """A /sys that knows of nothing but how cores wait."""
    idle = root / "devices/system/cpu/cpuidle"
    idle.mkdir(parents=True)
    (idle / "current_driver").write_text(f"{driver}\n")
    if halt_poll_ns is not None:
        path = root / "module/haltpoll/parameters/guest_halt_poll_ns"
        path.parent.mkdir(parents=True)
        path.write_text(f"{halt_poll_ns}\n")
    return root


@pytest.mark.parametrize(
    ("driver", "halt_poll_ns", "known"),
    [
        ("haltpoll", "0", 0),
        ("haltpoll", "200000", 200_000),
        ("haltpoll", None, None),
        ("intel_idle", "0", None),
        ("none", None, None),
    ],
)
def test_a_machine_that_halts_its_cores_at_once_is_remarked_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    driver: str,
    halt_poll_ns: str | None,
    known: int | None,
) -> None:
    monkeypatch.setattr(host, "_SYS", machine(tmp_path, driver, halt_poll_ns))
    assert host.fingerprint().get("halt_poll_ns") == known
    found = [note for note in host.notes() if note.kind == "halted cores"]
    assert len(found) == (known == 0)
    for note in found:
        assert note.severity == "note"
        assert str(tmp_path / "module/haltpoll/parameters/guest_halt_poll_ns") in note.remedy


@pytest.mark.parametrize(
    ("siblings", "server", "beside"),
    [
        (["0", "1", "2", "3"], (0, 1, 2), ()),
        (["0,2", "1,3", "0,2", "1,3"], (0, 2), (1,)),  # as most machines number them
        (["0-1", "0-1", "2-3", "2-3"], (0, 1), (2,)),  # as many virtual ones do
        (["0-1", "0-1"], (0,), (0,)),  # one core
        (["", "", "", ""], (0, 1, 2), ()),
    ],
)
def test_the_load_generator_keeps_the_hyper_threads_of_its_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    siblings: list[str], server: tuple[int, ...], beside: tuple[int, ...],
) -> None:  # fmt: skip
    for cpu, text in enumerate(siblings):
        folder = tmp_path / f"devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{text}\n")
    monkeypatch.setattr(host, "_SYS", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(len(siblings))))
    found = host.placement()
    assert (found.server_cpus, found.client_cpus) == (server, (len(siblings) - 1,))
    assert found.beside_client == beside


def test_a_server_gets_a_thread_of_each_core_before_second_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cpu in range(6):
        folder = tmp_path / f"devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}\n")
    monkeypatch.setattr(host, "_SYS", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(6)))
    found = host.placement()
    assert (found.server_cpus, found.beside_client) == ((0, 2, 1, 3), (4,))
