"""Collectors one behind another: buffers, replay in order, an upstream that goes and comes back."""

from __future__ import annotations

import signal
import struct
import threading
from pathlib import Path

import psutil
import pytest

from collecting import OK, TRY_LATER, block, collecting, eventually, lines, log_frame, store


def central(place: Path, *more: str) -> str:
    return store("default", "file", f"file_path={place}", "add_newlines=1", *more)


def buffered(place: Path, port: int, size: int = 2000) -> str:
    return store(
        "default", "buffer", "retry_interval=1", "retry_interval_range=0", "buffer_send_rate=50",
        inner=[
            block("primary", "network", "remote_host=127.0.0.1", f"remote_port={port}"),
            block("secondary", "file", f"file_path={place}/buffered", f"max_size={size}"),
        ],
    )  # fmt: skip


@pytest.mark.parametrize("fsync", ["yes", "no"])
def test_an_upstream_that_is_killed_and_comes_back_gets_all_in_order(
    tmp_path: Path, fsync: str
) -> None:
    with (
        collecting(tmp_path / "up", "fsync=yes\n" + central(tmp_path / "up")) as upstream,
        collecting(
            tmp_path / "near", f"fsync={fsync}\n" + buffered(tmp_path / "near", upstream.port)
        ) as near,
    ):
        sent: list[bytes] = []
        stop = threading.Event()

        def send() -> None:
            client, number = near.client(), 0
            while not stop.is_set():
                batch = [b"%d" % (number + n) for n in range(10)]
                if client.log("web", batch) == OK:
                    sent.extend(batch)
                    number += 10
                stop.wait(0.002)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            for _ in range(2):
                eventually(lambda: len(lines(tmp_path / "up/web", "web")) > 100)
                upstream.end(signal.SIGKILL)
                before = len(sent)
                eventually(lambda before=before: len(sent) > before + 1000)
                assert list((tmp_path / "near/buffered/web").glob("web_0*"))
                upstream.start()
                reached = b"%d" % (len(sent) + 100)
                eventually(lambda reached=reached: reached in lines(tmp_path / "up/web", "web"))
        finally:
            stop.set()
            sender.join()
        eventually(lambda: sent[-1] in lines(tmp_path / "up/web", "web"))
        found = lines(tmp_path / "up/web", "web")
        assert set(found) == set(sent)
        # A call whose answer the kill cut off is sent again, whole; nothing else comes twice, and
        # what comes first comes in order.
        firsts = list(dict.fromkeys(found))
        assert firsts == sent
        assert len(found) - len(firsts) <= 2 * 10_000
        assert near.counted("retries", "web") >= 2
        # A buffered file goes once the answer to its messages is here.
        eventually(lambda: not list((tmp_path / "near/buffered/web").glob("web_0*")))


def test_memory_is_flat_while_the_upstream_is_away(tmp_path: Path) -> None:
    with collecting(tmp_path / "near", buffered(tmp_path, 9, 1_000_000)) as near:
        process, client = psutil.Process(near.process.pid), near.client()
        frame = log_frame([("web", b"x" * 1000)] * 1000)

        def send(calls: int) -> int:
            for _ in range(calls):
                client.send(frame)
                while client.answer() != OK:
                    client.send(frame)
            return int(process.memory_info().rss)

        before = send(30)
        assert send(150) < before + 20_000_000
        eventually(lambda: near.metrics()['scribe_queue_bytes{category="web"}'] == 0)
        files = (tmp_path / "buffered/web").glob("web_*")
        assert sum(file.stat().st_size for file in files) == 180_000 * 1004


def test_buffered_files_have_scribes_form_and_those_of_an_earlier_run_are_sent(
    tmp_path: Path,
) -> None:
    with collecting(tmp_path / "near", "fsync=yes\n" + buffered(tmp_path, 9)) as near:
        assert near.client().log("web", [b"first", b"", b"third"]) == OK
        near.end(signal.SIGKILL)
        (file,) = (tmp_path / "buffered/web").glob("web_*")
        records = [struct.pack("<I", len(m)) + m for m in (b"first", b"", b"third")]
        assert file.read_bytes() == b"".join(records)
        # As after a crash in the middle of a record.
        file.write_bytes(b"".join(records) + struct.pack("<I", 100) + b"torn")
        with collecting(tmp_path / "up", central(tmp_path / "up")) as upstream:
            near.config.write_text(
                near.config.read_text().replace("remote_port=9", f"remote_port={upstream.port}")
            )
            near.start()  # nobody sends anything to it
            eventually(lambda: lines(tmp_path / "up/web", "web") == [b"first", b"", b"third"])
            eventually(lambda: not list((tmp_path / "buffered/web").glob("web_00000")))
            assert near.counted("bytes_lost", "web") == 8
            assert (tmp_path / "buffered/web/web_00000.torn").read_bytes()[4:] == b"torn"


def test_a_reload_changes_stores_and_loses_nothing(tmp_path: Path) -> None:
    slow = ("max_write_interval=600", "target_write_size=1000000")
    with collecting(tmp_path, central(tmp_path / "old", *slow)) as collector:
        client = collector.client()
        assert client.log("web", [b"before"]) == OK
        good = collector.config.read_text()
        collector.config.write_text("check_interval=1\n<store>\ncategory=a\ntype=flie\n</store>\n")
        collector.process.send_signal(signal.SIGHUP)
        eventually(lambda: collector.metrics()["scribe_status"] == 5)
        assert ": 1 mistake, so the earlier configuration is kept: line 4" in collector.said()
        assert client.log("web", [b"meanwhile"]) == OK
        collector.config.write_text(good.replace("/old", "/new"))
        client.send(
            b"\x00\x00\x00\x19\x80\x01\x00\x01\x00\x00\x00\x0creinitialize\x00\x00\x00\x01\x00"
        )
        eventually(lambda: collector.metrics()["scribe_status"] == 2)
        assert client.log("web", [b"after"]) == OK
        assert collector.end() == 0
    assert lines(tmp_path / "old/web", "web") == [b"before", b"meanwhile"]
    assert lines(tmp_path / "new/web", "web") == [b"after"]


def test_what_an_old_store_has_not_taken_goes_to_the_new_one(tmp_path: Path) -> None:
    dead = store("default", "network", "remote_host=127.0.0.1", "remote_port=9")
    with collecting(tmp_path, dead) as collector:
        client = collector.client()
        assert client.log("web", [b"one"]) == OK
        collector.config.write_text("check_interval=1\n" + central(tmp_path / "new"))
        collector.process.send_signal(signal.SIGHUP)
        eventually(lambda: lines(tmp_path / "new/web", "web") == [b"one"])
        assert client.log("web", [b"two"]) == OK
        eventually(lambda: lines(tmp_path / "new/web", "web") == [b"one", b"two"])


def test_multi_gives_all_stores_every_message_once(tmp_path: Path) -> None:
    def multi(port: int, success: str) -> str:
        return store(
            "default", "multi", f"report_success={success}",
            inner=[
                block("store0", "file", f"file_path={tmp_path}/{success}", "add_newlines=1"),
                block("store1", "network", "remote_host=127.0.0.1", f"remote_port={port}"),
            ],
        )  # fmt: skip

    with collecting(tmp_path / "up", central(tmp_path / "up")) as upstream:
        upstream.end()
        with collecting(tmp_path / "all_", multi(upstream.port, "all")) as collector:
            client = collector.client()
            assert client.log("web", [b"one", b"two"]) == OK
            eventually(lambda: collector.counted("requeue", "web") > 2)
            upstream.start()
            eventually(lambda: lines(tmp_path / "up/web", "web") == [b"one", b"two"])
            assert lines(tmp_path / "all/web", "web") == [b"one", b"two"]
            upstream.end()
        with collecting(tmp_path / "any_", multi(upstream.port, "any")) as collector:
            assert collector.client().log("web", [b"three"]) == OK
            eventually(lambda: collector.counted("lost", "web") == 1)
            assert lines(tmp_path / "any/web", "web") == [b"three"]


def test_an_upstream_that_says_try_later_is_tried_again(tmp_path: Path) -> None:
    with collecting(tmp_path / "up", store("other", "null")) as upstream:
        server = ("remote_host=localhost", f"remote_port={upstream.port}")
        network = store("default", "network", *server, "use_conn_pool=yes")
        with collecting(tmp_path / "near", "fsync=yes\n" + network) as near:
            client = near.client()
            assert client.log("web", [b"x"]) == TRY_LATER
            assert client.log("other", [b"x"]) == OK
            assert near.counted("sent", "other") == 1
            assert near.counted("denied_for_failed_store", "web") == 1
