"""The collector as its clients see it: the protocol, categories, counters, configuration."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from collecting import (
    OK,
    TRY_LATER,
    Collector,
    block,
    collecting,
    eventually,
    framed,
    lines,
    log_frame,
    store,
)
from searchbench.cli import app
from searchbench.errors import CollectError


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("collect")


@pytest.fixture(scope="module")
def collector(place: Path) -> Iterator[Collector]:
    text = "max_queue_size=1000000\n" + "".join(
        [
            store("default", "file", f"file_path={place}/all", "add_newlines=1"),
            store("exact", "file", f"file_path={place}", "base_filename=exact-file"),
            store("nothing*", "null"),
            store("bucket_me", "bucket", "num_buckets=5", "bucket_type=key_hash",
                  "bucket_subdir=b", inner=[block("bucket", "file", f"file_path={place}/buckets")]),
            store("events", "thriftfile", f"file_path={place}/events"),
        ]
    )  # fmt: skip
    with collecting(place, text) as running:
        yield running
        assert running.end() == 0, running.said()


@contextmanager
def thriftpy2_client(port: int, *, strict: bool = True) -> Iterator[Any]:
    import thriftpy2
    from thriftpy2.protocol import TBinaryProtocolFactory
    from thriftpy2.rpc import make_client
    from thriftpy2.transport import TFramedTransportFactory

    if "scribe_thrift" not in sys.modules:
        thriftpy2.load(str(Path(__file__).with_name("scribe.thrift")), "scribe_thrift")
    client = make_client(
        sys.modules["scribe_thrift"].scribe, "127.0.0.1", port,
        proto_factory=TBinaryProtocolFactory(strict_read=False, strict_write=strict),
        trans_factory=TFramedTransportFactory(), timeout=10_000,
    )  # fmt: skip
    try:
        yield client
    finally:
        client.close()


@pytest.mark.parametrize("strict", [True, False])
def test_facebooks_own_client_logs(collector: Collector, place: Path, strict: bool) -> None:
    from scribe import scribe
    from thrift.protocol import TBinaryProtocol
    from thrift.transport import TSocket, TTransport

    transport = TTransport.TFramedTransport(TSocket.TSocket("127.0.0.1", collector.port))
    protocol = TBinaryProtocol.TBinaryProtocol(transport, strictRead=False, strictWrite=strict)
    client = scribe.Client(protocol)
    transport.open()
    name = f"facebook{strict}"
    entries = [scribe.LogEntry(category=name, message=f"message {n}") for n in range(300)]
    assert client.Log(messages=entries) == scribe.ResultCode.OK
    assert client.Log(messages=[]) == scribe.ResultCode.OK
    transport.close()
    expected = [f"message {n}".encode() for n in range(300)]
    eventually(lambda: lines(place / "all" / name, name) == expected)


@pytest.mark.parametrize("strict", [True, False])
def test_thriftpy2_has_all_of_fb303(collector: Collector, strict: bool) -> None:
    from thriftpy2.thrift import TApplicationException

    with thriftpy2_client(collector.port, strict=strict) as client:
        types = sys.modules["scribe_thrift"]
        name = f"counted{strict}"
        entry = types.LogEntry(category=name, message="one")
        assert client.Log([entry] * 3) == types.ResultCode.OK
        assert client.getName() == "Scribe"
        assert client.getVersion().startswith("2.2 ")
        assert client.getStatus() == types.fb_status.ALIVE
        assert client.getStatusDetails() == ""
        counters = client.getCounters()
        assert counters[f"{name}:received good"] == 3
        assert counters["scribe_overall:received good"] >= 3
        assert client.getCounter(f"{name}:received good") == 3
        assert client.getCounter("no such counter") == 0
        client.setOption("key", "value")
        assert client.getOption("key") == "value"
        assert client.getOptions()["key"] == "value"
        assert client.getCpuProfile(1) == ""
        assert abs(client.aliveSince() - collector.config.stat().st_mtime) < 60
        with pytest.raises(TApplicationException, match="no method"):
            client.nothingOfTheKind()
        assert client.getName() == "Scribe"


def test_debians_perl_library_logs(collector: Collector, place: Path) -> None:
    ask = ["perl", "-MThrift::BinaryProtocol", "-e", "1"]
    if subprocess.run(ask, capture_output=True).returncode:
        pytest.skip("Perl has no Thrift: apt-get install libthrift-perl libbit-vector-perl")
    done = subprocess.run(
        ["perl", str(Path(__file__).with_name("scribe_client.pl")), str(collector.port), "perl"],
        input=b"one\ntwo\n", capture_output=True, timeout=60,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (b"0\n0\n", b"")
    eventually(lambda: lines(place / "all/perl", "perl") == [b"one", b"", b"two", b""])


def test_messages_are_any_bytes_and_calls_may_be_pipelined(
    collector: Collector, place: Path
) -> None:
    messages = [bytes([n]) * 3 for n in range(256) if n not in (10, 13)] + [b"", b"\xff\xfe\x00"]
    frames = [
        log_frame([("exact", message)], strict=n % 2 == 0, number=n)
        for n, message in enumerate(messages)
    ]
    client = collector.client()
    whole = b"".join(frames)
    for at in range(0, len(whole), 997):  # frames come in pieces
        client.send(whole[at : at + 997])
    for number, _ in enumerate(messages):
        answer = client.frame()
        assert answer[-5:-1] == struct.pack(">i", OK)
        # As it was asked: the strict head begins with a version, the old one with a length.
        strict = number % 2 == 0
        assert answer[:4] == (b"\x80\x01\x00\x02" if strict else b"\x00\x00\x00\x03")
        at = 11 if strict else 8
        assert struct.unpack(">i", answer[at : at + 4]) == (number,)
    eventually(lambda: (place / "exact-file_00000").read_bytes() == b"".join(messages))


def test_a_field_that_a_later_scribe_has_is_passed_over(collector: Collector, place: Path) -> None:
    entry = b"\x0d\x00\x03\x0b\x0b" + struct.pack(">i", 1) + struct.pack(">i", 1) + b"k"
    entry += struct.pack(">i", 1) + b"v"
    entry += b"\x0b\x00\x01" + struct.pack(">i", 5) + b"later"
    entry += b"\x0b\x00\x02" + struct.pack(">i", 2) + b"hi\x00"
    client = collector.client()
    client.send(framed(b"Log", b"\x0f\x00\x01\x0c\x00\x00\x00\x01" + entry + b"\x00"))
    assert client.answer() == OK
    eventually(lambda: lines(place / "all/later", "later") == [b"hi"])


def test_malformed_frames_end_their_connection_only(collector: Collector) -> None:
    before = collector.metrics()["scribe_malformed_total"]
    healthy = collector.client()
    for frame in (
        struct.pack(">I", 0xFFFFFFFF),
        struct.pack(">i", 8) + b"\x80\x02\x00\x01\x00\x00\x00\x03",
        log_frame([("exact", b"x")])[:-1].replace(b"\x0c\x00\x00\x00\x01", b"\x0c\x7f\xff\xff\xff")
        + b"\x00",
        b"POST / HTTP/1.1\r\n\r\n",
    ):
        client = collector.client()
        client.send(frame)
        client.rest()
    assert collector.metrics()["scribe_malformed_total"] == before + 4
    assert healthy.log("nothing1", [b"still here"]) == OK


def test_half_a_frame_is_no_message(collector: Collector) -> None:
    frame = log_frame([("halves", b"x" * 100)])
    client = collector.client()
    client.send(frame[:50])
    client.socket.close()
    assert collector.client().log("nothing1", [b"x"]) == OK
    assert "halves" not in str(collector.metrics())


@pytest.mark.parametrize("category", ["", "../up", "a/b", ".hidden", "new\nline", "x" * 300])
def test_categories_that_would_be_no_file_are_refused(collector: Collector, category: str) -> None:
    client = collector.client()
    client.send(log_frame([("exact", b"with it"), (category, b"x")]))
    assert client.answer() == TRY_LATER


def test_prefix_null_bucket_and_thriftfile(collector: Collector, place: Path) -> None:
    client = collector.client()
    assert client.log("nothing.of.it", [b"x"] * 7) == OK
    eventually(lambda: collector.counted("ignored", "nothing.of.it") == 7)
    keys = [b"a", b"123", b"user42", "é".encode()]
    assert client.log("bucket_me", [key + b":rest\n" for key in keys] + [b"none\n"]) == OK
    folder = place / "buckets"

    def in_bucket(number: int) -> list[bytes]:
        return lines(folder / f"b{number:03}", "bucket_me")

    eventually(lambda: in_bucket(0) == [b"none"])
    eventually(lambda: in_bucket(1) == [b"a:rest", b"user42:rest"])
    eventually(lambda: in_bucket(5) == [b"123:rest", "é:rest".encode()])
    assert client.log("events", [b"one", b"three"]) == OK
    events = struct.pack("=I", 3) + b"one" + struct.pack("=I", 5) + b"three"
    eventually(lambda: (place / "events/events_00000").read_bytes() == events)
    assert client.log("events", [b"x" * (16 << 20)]) == TRY_LATER


def test_a_queue_that_is_full_says_so(tmp_path: Path) -> None:
    text = "max_queue_size=2000\n" + store(
        "default", "network", "remote_host=127.0.0.1", "remote_port=9", "timeout=1000"
    )
    with collecting(tmp_path, text) as collector:
        client = collector.client()
        said = [client.log("web", [b"x" * 100]) for _ in range(100)]
        assert OK in said
        assert said[-1] == TRY_LATER
        kept = said.count(OK)
        assert collector.counted("denied_for_queue_size", "web") == 100 - kept
        assert collector.metrics()["scribe_status"] == 5
        with thriftpy2_client(collector.port) as fb303:
            assert "refused" in fb303.getStatusDetails()
        # What was answered with OK is saved when it is told to stop, and taken up at the start.
        assert collector.end() == 0
        collector.config.write_text(
            "host=127.0.0.1\n" + store("default", "file", f"file_path={tmp_path}", "add_newlines=1")
        )
        collector.start()
        eventually(lambda: lines(tmp_path / "web", "web") == [b"x" * 100] * kept)
        eventually(lambda: not list(tmp_path.glob("scribe.conf.state/left_*")))


def test_more_than_max_msg_per_second_is_denied(tmp_path: Path) -> None:
    with collecting(tmp_path, "max_msg_per_second=100\n" + store("default", "null")) as collector:
        client = collector.client()
        said = [client.log("web", [b"x"] * 50) for _ in range(20)]
        assert TRY_LATER in said
        # Half of it and more passes uncounted: it could never be sent otherwise.
        assert client.log("web", [b"x"] * 51) == OK
        assert collector.metrics()["scribe_denied_for_rate_total"] == 50 * said.count(TRY_LATER)


def test_connections_above_max_conn_are_closed(tmp_path: Path) -> None:
    with collecting(tmp_path, "max_conn=2\n" + store("default", "null")) as collector:
        clients = [collector.client() for _ in range(2)]
        assert [client.log("web", [b"x"]) for client in clients] == [OK, OK]
        assert collector.client().rest() == b""
        clients[0].socket.close()

        def served() -> bool:
            try:
                return collector.client().log("web", [b"x"]) == OK
            except OSError:
                return False

        eventually(served)


def test_a_message_that_no_store_takes_is_not_acknowledged(tmp_path: Path) -> None:
    with collecting(tmp_path, store("known", "null")) as collector:
        client = collector.client()
        assert client.log("unknown", [b"x"]) == TRY_LATER
        assert client.log("known", [b"x"]) == OK
        assert collector.metrics()["scribe_denied_for_no_store_total"] == 1


def test_shutdown_by_a_client_writes_what_is_held(tmp_path: Path) -> None:
    text = store("default", "file", f"file_path={tmp_path}", "max_write_interval=1000",
                 "target_write_size=1000000")  # fmt: skip
    with collecting(tmp_path, text) as collector:
        assert collector.client().log("web", [b"held"]) == OK
        with thriftpy2_client(collector.port) as client:
            client.shutdown()
        assert collector.process.wait(20) == 0
    assert (tmp_path / "web/web_00000").read_bytes() == b"held"


def test_lines_and_whole_input_are_sent_by_cat(collector: Collector, place: Path) -> None:
    def cat(name: str, text: bytes, *more: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "searchbench", "collect", "cat", name, "--host",
             f"127.0.0.1:{collector.port}", *more],
            input=text, check=True, timeout=60,
        )  # fmt: skip

    cat("cat_lines", b"one\ntwo\nhalf")
    cat("cat_whole", b"one\ntwo\n", "--whole")
    eventually(lambda: collector.counted("written", "cat_lines") == 3)
    eventually(lambda: collector.counted("written", "cat_whole") == 1)
    assert (place / "all/cat_whole/cat_whole_00000").read_bytes() == b"one\ntwo\n\n"


def test_a_mistake_has_its_line_and_the_nearest_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scribe.conf"
    path.write_text("port=1463\n<store>\ncategory=a\ntype=file\nmax_sise=5\n</store>\n")
    with pytest.raises(
        CollectError, match=f"{path}:5: there is no key max_sise .did you mean max_s"
    ):
        app(["collect", "check", str(path)])
    assert app(["collect", "check", "--json", str(path)]) == 2
    (mistake,) = json.loads(capsys.readouterr().out)["mistakes"]
    assert (mistake["line"], mistake["key"], mistake["fatal"]) == (5, "max_sise", True)
    done = subprocess.run(
        [sys.executable, "-m", "searchbench", "collect", "-c", str(path)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert re.search(r"line 5: there is no key max_sise", done.stderr)


def test_a_store_whose_type_is_misspelt_is_checked_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "scribe.conf"
    path.write_text("<store>\ncategory=a\ntyp=file\nmax_sise=5\n</store>\n")
    with pytest.raises(CollectError) as said:
        app(["collect", "check", str(path)])
    assert str(said.value).splitlines() == [
        f"{path}:3: there is no key typ (did you mean type?)",
        f"{path}:4: there is no key max_sise (did you mean max_size?)",
    ]


def cat(port: int, category: str, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "searchbench", "collect", "cat", category, "--host",
         f"127.0.0.1:{port}", *more],
        input="one\ntwo\n", capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_why_a_category_is_never_taken_is_said_once_to_whoever_runs_the_collector(
    tmp_path: Path,
) -> None:
    with collecting(tmp_path, store("known", "null")) as collector:
        client = collector.client()
        for category in ("unknown", "../evil", "", "unknown", "known", "../evil", "x" * 100_000):
            client.log(category, [b"x"])
        with thriftpy2_client(collector.port) as fb303:
            assert fb303.getOption("refusal:known") == ""
            why = fb303.getOption("refusal:unknown")
        assert why.startswith('no store takes category "unknown": ')
        reasons = [
            why,
            'category "../evil" cannot be the name of a file: it begins with a dot',
            'category "" cannot be the name of a file: it is empty',
            f'category "{"x" * 60}..." cannot be the name of a file: it is longer than 200 bytes',
        ]
        assert collector.said().splitlines() == [
            f"searchbench collect: {reason} (its clients get TRY_LATER)" for reason in reasons
        ]


@pytest.mark.parametrize(
    ("category", "why"),
    [
        ("unknown", 'no store takes category "unknown": give it one, or add one with '
         "category=default"),
        ("../evil", 'category "../evil" cannot be the name of a file: it begins with a dot'),
    ],
)  # fmt: skip
def test_cat_ends_at_once_with_the_reason_if_its_category_is_never_taken(
    tmp_path: Path, category: str, why: str
) -> None:
    with collecting(tmp_path, store("known", "null")) as collector:
        # Much more patience than the test has.
        done = cat(collector.port, category, "--patience", "9999")
        place = f"127.0.0.1:{collector.port}"
    assert done.returncode == 2
    assert done.stderr == f"searchbench: {place}: {why}; 0 messages were sent before\n"


def test_cat_says_what_try_later_may_mean_while_it_goes_on(tmp_path: Path) -> None:
    text = "max_queue_size=20\n" + store("default", "network", "service_list=127.0.0.1:9")
    with collecting(tmp_path, text) as collector:
        assert collector.client().log("web", [b"x" * 100]) == OK
        done = cat(collector.port, "web", "--patience", "4")
    assert done.returncode == 2
    meanwhile, end = done.stderr.splitlines()
    assert "answers TRY_LATER: a queue may be full, a store may fail" in meanwhile
    assert "it answers TRY_LATER, for 4 s; a collector's standard error, and /metrics" in end


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["collect"], r"needs a configuration: searchbench collect -c FILE .docs/COLLECT.md has"),
        (["collect", "-c", "x", "-p", "99999"], "-p: a port is a number from 1 to 65535, or 0 for "
         "any free one, not 99999"),
        (["collect", "-c", "x", "-p", "-1"], "or 0 for any free one, not -1"),
        (["collect", "cat", "x", "--host", "a:99999"], "from 1 to 65535, not 99999"),
        (["collect", "cat", "x", "--host", "a:0"], "from 1 to 65535, not 0"),
    ],
)  # fmt: skip
def test_what_is_missing_or_no_port_is_one_sentence(arguments: list[str], says: str) -> None:
    with pytest.raises(CollectError, match=says) as said:
        app(arguments)
    assert "\n" not in str(said.value)
