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
