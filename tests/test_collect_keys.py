"""What keys of scribe.conf do that concern more than one store: queues, threads, categories."""

from __future__ import annotations

from pathlib import Path

from collecting import OK, block, collecting, eventually, lines, log_frame, store


def test_must_succeed_no_drops_what_a_store_does_not_take_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file where the folder should be")
    text = store(
        "default", "file", f"file_path={tmp_path}/kept", "add_newlines=1", "must_succeed=no"
    )
    with collecting(tmp_path / "near", text) as collector:
        client = collector.client()
        assert client.log("web", [b"gone", b"too"]) == OK
        eventually(lambda: collector.counted("lost", "web") == 2)
        assert collector.counted("requeue", "web") == 0
        (tmp_path / "kept").unlink()
        assert client.log("web", [b"kept"]) == OK
        eventually(lambda: lines(tmp_path / "kept/web", "web") == [b"kept"])
        assert collector.counted("lost", "web") == 2


def test_must_succeed_is_yes_without_the_key(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file where the folder should be")
    text = store("default", "file", f"file_path={tmp_path}/kept", "add_newlines=1")
    with collecting(tmp_path / "near", text) as collector:
        assert collector.client().log("web", [b"kept"]) == OK
        eventually(lambda: collector.counted("requeue", "web") > 0)
        (tmp_path / "kept").unlink()
        eventually(lambda: lines(tmp_path / "kept/web", "web") == [b"kept"])
        assert collector.counted("lost", "web") == 0


def test_one_thread_for_all_categories_of_a_store_writes_the_names_that_are_configured(
    tmp_path: Path,
) -> None:
    text = "new_thread_per_category=no\n" + "".join(
        [
            store("default", "file", f"file_path={tmp_path}/all", "base_filename=rest",
                  "add_newlines=1", "write_category=yes"),
            store("web*", "file", f"file_path={tmp_path}/all", "add_newlines=1"),
            store("exact", "file", f"file_path={tmp_path}/all", "add_newlines=1"),
            store("many", "multifile", f"file_path={tmp_path}/many", "add_newlines=1")
            .replace("category=many", "categories=many1 many2"),
        ]
    )  # fmt: skip
    entries = [
        ("a", b"1"), ("b", b"2"), ("a", b"3"), ("web", b"4"), ("web2", b"5"), ("exact", b"6"),
        ("many1", b"7"), ("many2", b"8"),
    ]  # fmt: skip
    with collecting(tmp_path / "near", text) as collector:
        client = collector.client()
        client.send(log_frame(entries))
        assert client.answer() == OK
        assert collector.end() == 0
    everything = {
        str(file.relative_to(tmp_path)): file.read_text().split()
        for part in ("all", "many")
        for file in (tmp_path / part).rglob("*_0*")
    }
    assert everything == {
        "all/rest_00000": ["a", "1", "b", "2", "a", "3"],
        # Those of a prefix are named by what stands before the star.
        "all/web_00000": ["4", "5"],
        "all/exact_00000": ["6"],
        "many/many1/many1_00000": ["7"],
        "many/many2/many2_00000": ["8"],
    }


def test_a_buffer_of_several_categories_sends_each_message_under_its_own(tmp_path: Path) -> None:
    up = store("default", "file", f"file_path={tmp_path}/up", "add_newlines=1")
    with collecting(tmp_path / "upstream", up) as upstream:
        upstream.end()
        text = "new_thread_per_category=no\n" + store(
            "web*", "buffer", "retry_interval=1", "retry_interval_range=0",
            inner=[
                block("primary", "network", f"service_list=127.0.0.1:{upstream.port}"),
                block("secondary", "file", f"file_path={tmp_path}/spool"),
            ],
        )  # fmt: skip
        with collecting(tmp_path / "near", text) as near:
            client = near.client()
            client.send(log_frame([("web1", b"one"), ("web2", b"two"), ("web1", b"three")]))
            assert client.answer() == OK
            eventually(lambda: (tmp_path / "spool/web_00000").exists())
            upstream.start()
            eventually(lambda: lines(tmp_path / "up/web1", "web1") == [b"one", b"three"])
            eventually(lambda: lines(tmp_path / "up/web2", "web2") == [b"two"])
