"""What the collector has acknowledged outlives kill -9 and a full disk where fsync is asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collecting import OK, TRY_LATER, Client, Collector, block, collecting, eventually, lines, store


class Senders:
    """Clients that send numbered messages until the server is gone, each knowing its answers."""

    def __init__(self, collector: Collector, count: int = 4) -> None:
        self.acknowledged: list[list[bytes]] = [[] for _ in range(count)]
        self.threads = [
            threading.Thread(target=self._send, args=(collector.client(), n)) for n in range(count)
        ]
        for thread in self.threads:
            thread.start()

    def _send(self, client: Client, who: int) -> None:
        number = 0
        try:
            while True:
                batch = [b"%d:%d" % (who, number + n) for n in range(10)]
                if client.log("web", batch) == OK:
                    self.acknowledged[who] += batch
                    number += 10
        except (OSError, ConnectionError):
            return

    def join(self) -> list[list[bytes]]:
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive()
        return self.acknowledged


def in_order(found: list[bytes], acknowledged: list[list[bytes]]) -> None:
    """All that was acknowledged is there, that of each client in its order, once."""
    for who, sent in enumerate(acknowledged):
        mine = [line for line in found if line.startswith(b"%d:" % who)]
        assert mine[: len(sent)] == sent
        assert len(mine) - len(sent) <= 10  # the call that was not answered


@pytest.mark.parametrize("round_", range(3))
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, round_: int) -> None:
    text = "fsync=yes\n" + store(
        "default", "file", f"file_path={tmp_path}", "add_newlines=1", "max_size=1000"
    )
    with collecting(tmp_path, text) as collector:
        senders = Senders(collector)
        eventually(lambda: sum(map(len, senders.acknowledged)) > 500 * (round_ + 1))
        collector.end(signal.SIGKILL)
        acknowledged = senders.join()
    in_order(lines(tmp_path / "web", "web"), acknowledged)
    assert len(list((tmp_path / "web").glob("web_0*"))) > 1  # it was rotated meanwhile


def test_without_fsync_what_a_kill_loses_is_counted_and_bounded(tmp_path: Path) -> None:
    text = store(
        "default", "file", f"file_path={tmp_path}", "add_newlines=1", "max_write_interval=600"
    )
    with collecting(tmp_path, text) as collector:
        client = collector.client()
        said = [client.log("web", [b"x" * 100] * 10) for _ in range(100)]
        assert said == [OK] * 100
        # A store that keeps up leaves at most target_write_size waiting, and what is on its way.
        eventually(lambda: 1000 - len(lines(tmp_path / "web", "web")) <= 16_384 // 100 + 10)
        collector.end(signal.SIGKILL)
        there = len(lines(tmp_path / "web", "web"))
        collector.start()
        assert collector.counted("lost", "web") == 1000 - there
        # Where all was written before the kill, nothing is lost, and nothing is said of it.
        assert ("up to" in collector.said()) == (there < 1000)
        assert there == 1000 or f"up to {1000 - there} messages" in collector.said()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of ext4 with a few megabytes."""
    if os.geteuid() != 0:
        pytest.skip("kernel: mounting needs root")
    image, point = tmp_path / "image", tmp_path / "disk"
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(8 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    done = subprocess.run(["mount", "-o", "loop", image, point], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"kernel: no loop mount: {done.stderr.strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True)


@pytest.mark.parametrize("fsync", ["yes", "no"])
def test_a_full_disk_loses_nothing(small_disk: Path, tmp_path: Path, fsync: str) -> None:
    filler = small_disk / "filler"
    with filler.open("wb") as file:
        file.truncate(0)
        try:
            while True:
                os.write(file.fileno(), b"x" * 65536)
                os.fsync(file.fileno())
        except OSError:
            os.ftruncate(file.fileno(), max(0, file.tell() - 1_000_000))
    text = f"fsync={fsync}\nmax_queue_size=200000\n" + store(
        "default", "file", f"file_path={small_disk}", "add_newlines=1"
    )
    with collecting(tmp_path / "collector", text) as collector:
        client, acknowledged, number = collector.client(), [], 0
        until = time.monotonic() + 60
        refused = 0
        while refused < 5 and time.monotonic() < until:
            batch = [b"%07d " % (number + n) + b"y" * 90 for n in range(100)]
            if client.log("web", batch) == OK:
                acknowledged += batch
                number += 100
            else:
                refused += 1
                time.sleep(0.05)
        assert refused == 5
        assert "No space left" in collector.said()
        if fsync == "yes":
            assert lines(small_disk / "web", "web")[: len(acknowledged)] == acknowledged
        filler.unlink()

        def taken() -> bool:
            return client.log("web", [b"after"]) == OK

        eventually(taken)
        eventually(lambda: b"after" in lines(small_disk / "web", "web"))
        found = lines(small_disk / "web", "web")
        assert [line for line in found if line != b"after"] == acknowledged
        assert collector.end() == 0


def test_two_stores_of_one_file_lose_nothing_of_each_other(
    small_disk: Path, tmp_path: Path
) -> None:
    """What one could not write is cut off only where nobody else writes."""
    same = (f"file_path={small_disk}", "base_filename=both", "add_newlines=1", "max_size=0")
    text = "fsync=yes\n" + store("a", "file", *same) + store("b", "file", *same)
    with collecting(tmp_path / "collector", text) as collector:
        clients = {name: collector.client() for name in ("a", "b")}
        acknowledged, refused = [], 0
        for number in range(4000):
            name = "ab"[number % 2]
            # Of several sizes: one of them may still find room where another does not.
            message = f"{name}{number:05} ".encode() + b"q" * (10, 3000, 30_000)[number % 3]
            if clients[name].log(name, [message]) == OK:
                acknowledged.append(message)
            else:
                refused += 1
                if refused == 60:
                    break
        assert refused == 60
        found = set(b"".join(f.read_bytes() for f in small_disk.glob("both_*")).split(b"\n"))
        assert [m[:6] for m in acknowledged if m not in found] == []
        assert len(acknowledged) > 100


def test_a_buffer_on_a_full_disk_says_try_later(small_disk: Path, tmp_path: Path) -> None:
    text = "fsync=yes\n" + store(
        "default", "buffer", "retry_interval=600",
        inner=[
            block("primary", "network", "remote_host=127.0.0.1", "remote_port=9"),
            block("secondary", "file", f"file_path={small_disk}", "max_size=100000"),
        ],
    )  # fmt: skip
    with collecting(tmp_path / "collector", text) as collector:
        client = collector.client()
        said = []
        while TRY_LATER not in said and len(said) < 200:
            said.append(client.log("web", [b"z" * 1000] * 100))
        assert said[0] == OK
        assert said[-1] == TRY_LATER
        records = sum(
            file.read_bytes().count(b"z" * 1000) for file in (small_disk / "web").glob("web_*")
        )
        assert records == 100 * said.count(OK)
