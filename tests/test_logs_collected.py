"""What the collector receives, the reader reads: while it grows and rotates, by category and host.

Two hosts have a collector each, which write into one folder: a folder for each category, and in it
one for each host.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from collecting import OK, Client, collecting, eventually, store
from pages import ENV
from searchbench.cli import app
from searchbench.logs.collected import category, names
from searchbench.logs.counts import Options
from searchbench.logs.sources import find
from searchbench.logs.watch import Watch

HOSTS = ("web1", "web2")


def searchd(n: int) -> bytes:
    second = f"{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}"
    return (f"[Fri Nov 20 {second}.000 2026] 0.003 sec [any/0/rel {n % 5} (0,20)] [shop] red {n}"
            ).encode()  # fmt: skip


def front(n: int) -> bytes:
    return (f'1.2.3.4 - - [20/Nov/2026:11:{n // 60 % 60:02}:{n % 60:02} +0000] "GET /search?q=w{n} '
            'HTTP/1.1" 200 10 "-" "-" 0.004').encode()  # fmt: skip


LINES = {"searchd": searchd, "front": front}


class Hosts:
    """A connection to the collector of each host, and how many messages were acknowledged."""

    def __init__(self, clients: dict[str, Client]) -> None:
        self._clients = clients
        self.sent: dict[str, int] = {}

    def send(self, host: str, of: str, n: int) -> None:
        """So many messages in calls of ten."""
        name = f"{of}/{host}"
        for _ in range(n // 10):
            at = self.sent.get(name, 0)
            assert self._clients[host].log(of, [LINES[of](at + i) for i in range(10)]) == OK
            self.sent[name] = at + 10


@contextmanager
def hosts(place: Path, *keys: str) -> Iterator[Hosts]:
    """Two collectors that write into ``place``/logs; what they acknowledge is in a file."""

    def config(host: str) -> str:
        more = [f"file_path={place}/logs", "add_newlines=1", f"sub_directory={host}", *keys]
        return "fsync=yes\n" + store("default", "file", *more)

    one, other = (collecting(place / host, config(host)) for host in HOSTS)
    with one as first, other as second:
        yield Hosts({"web1": first.client(), "web2": second.client()})


def by_server(said: dict[str, Any]) -> dict[str, int]:
    return {row["name"]: row["n"] for row in said["by"]["server"]}


def test_what_two_hosts_sent_is_read_by_category_and_host(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with hosts(tmp_path, "max_size=1500") as of:
        for n, host in enumerate(HOSTS, 1):
            of.send(host, "searchd", 100 * n)
            of.send(host, "front", 50 * n)
        sent = of.sent
    files = list((tmp_path / "logs").rglob("*_0*"))
    assert len(files) > 20, "the files do not rotate"
    assert app(["logs", str(tmp_path / "logs"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert by_server(said) == sent
    assert said["all"]["n"] == 450
    assert len(said["sources"]) == len(files), "a link was read besides its file"
    # Of each, the newest may be empty.
    assert not any(s["unread"] or (s["refused"] and s["bytes"]) for s in said["sources"])


def test_live_follows_the_links_and_what_comes_later(tmp_path: Path) -> None:
    with hosts(tmp_path, "max_size=1500") as of:
        of.send("web1", "searchd", 100)  # before anybody looked: not counted
        argv = [sys.executable, "-m", "searchbench", "logs", "logs", "--live", "--json"]
        ready = tmp_path / "ready"
        script = (
            "import sys; from pathlib import Path; from searchbench.logs import watch; "
            "plain = watch.Watch.poll\n"
            "def poll(self, at_s):\n"
            f"    Path({str(ready)!r}).touch()\n"
            "    return plain(self, at_s)\n"
            "watch.Watch.poll = poll\n"
            "from searchbench.__main__ import main\n"
            "sys.exit(main())\n"
        )
        process = subprocess.Popen(
            [argv[0], "-c", script, *argv[3:]], cwd=tmp_path, env=ENV, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            eventually(ready.exists)
            before = dict(of.sent)
            for _ in range(5):
                of.send("web1", "searchd", 100)
                of.send("web2", "searchd", 60)  # of a folder that was not there
                of.send("web2", "front", 40)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0, err
    assert by_server(json.loads(out)) == {
        name: n - before.get(name, 0) for name, n in of.sent.items()
    }


def test_a_link_that_went_on_twice_between_two_looks_loses_nothing(tmp_path: Path) -> None:
    place = tmp_path / "logs"
    place.mkdir()

    def written(number: int, n: int) -> None:
        file = place / f"searchd_{number:05}"
        with file.open("ab") as out:
            out.writelines(searchd(number * 10 + i) + b"\n" for i in range(n))
        link = place / "new"
        link.symlink_to(file.name)
        link.rename(place / "searchd_current")

    def now() -> list[Any]:
        return find([place], growing=True)

    written(0, 5)
    assert [Path(source.path).name for source in now()] == ["searchd_current"]
    assert [Path(source.path).name for source in find([place])] == ["searchd_00000"]
    with Watch(now(), Options(), 0.0, now) as watch:
        written(0, 1)
        assert int(watch.poll(1.0).numbers("minutes", "n").sum()) == 1
        for number in (1, 2, 3):
            written(number, 2)
        found = [int(watch.poll(at).numbers("minutes", "n").sum()) for at in (2.0, 3.0, 4.0)]
        assert sum(found) == 6
        written(3, 1)
        written(4, 2)
        written(5, 2)
        last, whole = watch.end(5.0)
    assert int(last.numbers("minutes", "n").sum()) == 5
    assert int(whole.numbers("minutes", "n").sum()) == 12
    assert {source["server"] for source in whole.sources} == {"searchd"}


@pytest.mark.parametrize(
    ("paths", "called"),
    [
        (["/l/searchd/searchd_00000", "/l/front/front_00001"], ["searchd", "front"]),
        (["/l/searchd/a/x_00000", "/l/searchd/b/x_00000"], ["a", "b"]),
        (["/l/searchd/a/x_00000", "/l/front/a/y_00000"], ["searchd/a", "front/a"]),
        (["/a/searchd/x_00000", "/b/searchd/x_00000"], ["a/searchd", "b/searchd"]),
        (["/l/a/x_00000", "/l/a/y_current", "/l/b/x-2026-11-22_00003"], ["a/x", "a/y", "b"]),
        (["/l/a/access.log", "/l/a/slow.log", "/l/b/slow.log"], ["a", "a", "b"]),
    ],
)
def test_servers_are_called_by_what_tells_them_apart(paths: list[str], called: list[str]) -> None:
    assert list(names(paths).values()) == called


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("searchd_00000", "searchd"), ("searchd-2026-11-22_00012", "searchd"),
        ("searchd_current", "searchd"), ("my_app_00001", "my_app"), ("searchd.log", ""),
        ("access.log.1", ""), ("_00000", ""), ("scribe_stats", ""),
    ],
)  # fmt: skip
def test_a_file_of_the_collector_is_known_by_its_name(name: str, of: str) -> None:
    assert category(name) == of
