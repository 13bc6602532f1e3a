"""The collector beside a Scribe server of others, Apache Flume: the same frames get the same
answers, the same messages are kept, and nothing is lost on the way from the one to the other.

Flume differs in three things, which the frames here leave out: it always answers with the old
head, it keeps messages as text (bytes that are not UTF-8 are replaced), and any category is good
enough for it."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from collecting import (
    OK,
    Client,
    block,
    collecting,
    eventually,
    framed,
    lines,
    log_frame,
    store,
)
from conftest import QUICK_START

LIBRARIES = Path(__file__).parent.parent / "java/flume/target/lib"

pytestmark = [
    pytest.mark.skipif(
        not list(LIBRARIES.glob("flume-scribe-source-*.jar")),
        reason="Flume is not here: `make java` gets it",
    ),
    pytest.mark.skipif(
        shutil.which("java") is None,
        reason="Flume needs Java 17 (Debian: openjdk-17-jre-headless)",
    ),
]


class Flume:
    """An agent of Flume: its Scribe source, a channel on disk, and a sink that writes files."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.kept_in = place / "kept"
        self.kept_in.mkdir(parents=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        (place / "agent.conf").write_text(f"""
a.sources = scribe
a.channels = disk
a.sinks = files
a.sources.scribe.type = org.apache.flume.source.scribe.ScribeSource
a.sources.scribe.port = {self.port}
a.sources.scribe.channels = disk
a.channels.disk.type = file
a.channels.disk.checkpointDir = {place}/checkpoint
a.channels.disk.dataDirs = {place}/data
a.channels.disk.capacity = 100000
a.channels.disk.minimumRequiredSpace = 1048576
a.sinks.files.type = file_roll
a.sinks.files.channel = disk
a.sinks.files.sink.directory = {self.kept_in}
a.sinks.files.sink.rollInterval = 0
a.sinks.files.sink.serializer = header_and_text
""")
        self.start()

    def start(self) -> None:
        """On the same port each time, with what the channel holds."""
        with (self.place / "said").open("ab") as said:
            self.process = subprocess.Popen(
                ["java", "-Xmx128m", "-XX:+UseSerialGC", *QUICK_START, "-cp", f"{LIBRARIES}/*",
                 "org.apache.flume.node.Application", "-n", "a", "-f",
                 str(self.place / "agent.conf"), "--no-reload-conf"],
                stdout=said, stderr=said,
            )  # fmt: skip
        eventually(self.listens, within=60)

    def listens(self) -> bool:
        assert self.process.poll() is None, (self.place / "said").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def end(self, how: int = signal.SIGKILL) -> None:
        self.process.send_signal(how)
        self.process.wait(30)

    def kept(self) -> list[tuple[str, str]]:
        """Category and message of all that its sink has written so far."""
        text = "".join(
            file.read_text() for file in sorted(self.kept_in.iterdir(), key=lambda f: f.name)
        )
        found = []
        for line in text.splitlines():
            head, _, message = line.partition("} ")
            found.append((head.removeprefix("{category="), message))
        return found


@contextmanager
def flume(place: Path) -> Iterator[Flume]:
    agent = Flume(place)
    try:
        yield agent
    finally:
        agent.end()


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flume]:
    with flume(tmp_path_factory.mktemp("flume")) as agent:
        yield agent


def said_to(port: int, frames: list[bytes]) -> list[tuple[int, bytes]]:
    """What a server says to these frames, all sent at once: number of the call, and the rest."""
    client = Client(port)
    with closing(client.socket):
        client.send(b"".join(frames))
        said = []
        for _ in frames:
            frame = client.frame()
            head = 8 if frame[0] & 0x80 else 4
            length = int.from_bytes(frame[head - 4 : head])
            at = head + length + (0 if frame[0] & 0x80 else 1)
            said.append((int.from_bytes(frame[at : at + 4]), frame[at + 4 :]))
        return said


def logged_with_facebooks_client(port: int, category: str) -> int:
    from scribe import scribe
    from thrift.protocol import TBinaryProtocol
    from thrift.transport import TSocket, TTransport

    transport = TTransport.TFramedTransport(TSocket.TSocket("127.0.0.1", port))
    client = scribe.Client(TBinaryProtocol.TBinaryProtocol(transport, False, False))
    transport.open()
    with closing(transport):
        entries = [scribe.LogEntry(category=category, message=f"facebook {n}") for n in range(300)]
        return int(client.Log(messages=entries))


def test_the_same_frames_get_the_same_answers_and_the_same_messages_are_kept(
    agent: Flume, tmp_path: Path
) -> None:
    frames = [
        log_frame([("web", b"one"), ("shop", b"two"), ("web", b"three")], number=1),
        log_frame([("web", b"of the old head")], strict=False, number=-2),
        log_frame([], number=3),
        log_frame([("web", "é ‰ 𝄞".encode()), ("web", b""), ("web", b"x" * 100_000)], number=4),
        log_frame([(f"category {n % 7}", b"%d" % n) for n in range(1000)], number=2**31 - 1),
    ]
    text = store("default", "file", f"file_path={tmp_path}/kept", "add_newlines=1")
    with collecting(tmp_path / "ours", text) as ours:
        answers = said_to(ours.port, frames)
        assert answers == said_to(agent.port, frames)
        assert [number for number, _ in answers] == [1, 2**32 - 2, 3, 4, 2**31 - 1]
        for port in (ours.port, agent.port):
            assert logged_with_facebooks_client(port, "facebook") == OK
        expected = 3 + 1 + 3 + 1000 + 300
        eventually(lambda: len(agent.kept()) == expected)
        theirs = agent.kept()
        assert ours.end() == 0
        folders = sorted((tmp_path / "kept").iterdir())
        assert [folder.name for folder in folders] == sorted({name for name, _ in theirs})
        for folder in folders:
            wanted = [message.encode() for name, message in theirs if name == folder.name]
            assert lines(folder, folder.name) == wanted


def test_a_method_that_flume_does_not_have_is_refused_as_ours_refuses_one(
    agent: Flume, tmp_path: Path
) -> None:
    call = framed(b"nothingOfTheKind", b"\x00", strict=False, number=9)
    with collecting(tmp_path, store("default", "null")) as ours:
        replies = []
        for port in (ours.port, agent.port):
            client = Client(port)
            with closing(client.socket):
                client.send(call)
                reply = client.frame()
                # Name, EXCEPTION, number; the kind of the exception, which stands at its end.
                replies.append((reply[:25], reply[-8:]))
                # The connection goes on.
                assert client.log("web", [b"after it"]) == OK
        assert replies[0] == replies[1]


def test_flume_that_is_killed_and_brought_back_has_all_that_our_upstream_store_was_sent(
    tmp_path: Path,
) -> None:
    with flume(tmp_path / "flume") as agent:
        text = store(
            "default", "buffer", "retry_interval=1", "retry_interval_range=0",
            "buffer_send_rate=50",
            inner=[
                block("primary", "network", "remote_host=127.0.0.1", f"remote_port={agent.port}"),
                block("secondary", "file", f"file_path={tmp_path}/buffered", "max_size=20000"),
            ],
        )  # fmt: skip
        with collecting(tmp_path / "near", "fsync=yes\n" + text) as near:
            client, sent = near.client(), []

            def send(count: int) -> None:
                for _ in range(count):
                    batch = [f"{len(sent) + n}" for n in range(50)]
                    assert client.log("web", [message.encode() for message in batch]) == OK
                    sent.extend(batch)

            send(10)
            eventually(lambda: near.counted("sent", "web") >= 400)
            agent.end(signal.SIGKILL)
            send(40)
            assert near.counted("retries", "web") >= 1
            assert list((tmp_path / "buffered/web").glob("web_0*"))
            agent.start()
            send(10)
            eventually(lambda: not list((tmp_path / "buffered/web").glob("web_0*")))
            eventually(lambda: set(sent) <= {message for _, message in agent.kept()})
        # What was on its way when Flume was killed may be there twice; the first of each came in
        # the order in which it was sent.
        firsts = list(dict.fromkeys(message for _, message in agent.kept()))
        assert firsts == sent
