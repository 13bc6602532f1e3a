"""``python -m searchbench.sphinx_source --port P ..``: what Sphinx's delta index is made from.

Sphinx's recipe of main and delta needs somebody who keeps what changed, and who runs ``indexer``.
In production that is a database and a cron job; here it is this process. It speaks as much of the
protocol of MySQL as its one client needs, so that changes are sent, timed and acknowledged as
everywhere. Statements:

    PUT\\nROW\\nROW..    rows of TSV, as indexer reads them: documents that are new or changed
    DROP 1,2,3          the numbers of documents that are gone
    PUBLISH             make the delta of all that changed since main was made, and rotate it
    PING                nothing

A change is acknowledged once it is in the journal, a file beside the index: it outlives the
process, not the machine. PUBLISH is acknowledged once searchd has taken the new delta. Whether the
documents are found then is for others to ask.

The numbers of all that changed are the kill list, as in Sphinx's own manual: what main has under
them is hidden. Only the standard library is imported, so that it starts before searchd does.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from io import BufferedIOBase
from pathlib import Path

_OK = b"\x00\x00\x00\x02\x00\x00\x00"
# Protocol 4.1 and a nonce of two halves, which nobody uses: everybody is let in, as by searchd.
_GREETING = b"".join(
    (b"\x0asearchbench\0", bytes(4), b"\x01" * 8, b"\0", (0x8200).to_bytes(2, "little"),
     b"\x21\x02\0", bytes(2), b"\x15", bytes(10), b"\x02" * 12, b"\0")
)  # fmt: skip
_QUIT, _QUERY, _PING = 1, 3, 14
_MOST = 0xFF_FFFF  # bytes of a packet; one that is full is continued in the next
_ROTATE_S = 60.0
_LOOK_S = 0.002
_INDEXER_S = 3600.0


class Wrong(Exception):  # noqa: N818 -- what was asked cannot be done, in words for who asked
    """A statement that is refused; its text is the answer."""


class Source:
    """All that changed since main was made. ``run``: where indexer reads it, and its log.

    ``data``: where the journal and the indexes ``main`` and ``delta`` lie. ``merge_every``: after
    so many times that the delta was made it is merged into main; 0: never. ``config``: of indexer;
    ``without_rows``: the same for a delta that is a kill list alone.
    """

    def __init__(
        self, data: Path, run: Path, config: Path, without_rows: Path, merge_every: int = 0
    ) -> None:
        self.data, self.run, self.merge_every = data, run, merge_every
        self.config, self.without_rows = config, without_rows
        self.rows: dict[int, bytes] = {}
        self.gone: set[int] = set()
        self.changes = self.shown = self.made = 0
        self._lock, self._publishing = threading.Lock(), threading.Lock()
        self._path = data / "changes"
        self._read()
        self._journal = self._path.open("ab", buffering=0)

    def do(self, statement: bytes) -> None:
        """Do what is asked; Wrong if it cannot be done."""
        verb, _, rest = statement.partition(b"\n")
        if verb == b"PUT":
            rows = [row for row in rest.split(b"\n") if row]
            self._change(b"".join(b"+%s\n" % row for row in rows), [(_number(r), r) for r in rows])
        elif verb.startswith(b"DROP "):
            numbers = [_number(each) for each in verb[5:].split(b",")]
            self._change(b"".join(b"-%d\n" % n for n in numbers), [(n, b"") for n in numbers])
        elif verb == b"PUBLISH":
            self.publish()
        elif verb != b"PING":
            raise Wrong(f"there is no statement {verb[:20].decode(errors='replace')!r}")

    def publish(self) -> None:
        """Make the delta and have searchd take it; then merge it into main if it is time."""
        with self._publishing:
            with self._lock:
                seen, rows, gone = self.changes, dict(self.rows), set(self.gone)
            self._make_delta(rows, gone)
            self.shown, self.made = seen, self.made + 1
            if self.merge_every and self.made % self.merge_every == 0 and (rows or gone):
                self._merge(rows, gone)

    def refresh(self, every_s: float) -> None:
        """Publish at each multiple of ``every_s`` at which something changed; never returns."""
        due = time.monotonic()
        while True:
            due = max(due + every_s, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
            if self.changes == self.shown:
                continue
            try:
                self.publish()
            except Wrong as error:
                _log(str(error))

    def _change(self, lines: bytes, each: Iterable[tuple[int, bytes]]) -> None:
        with self._lock:
            before = os.fstat(self._journal.fileno()).st_size
            if self._journal.write(lines) != len(lines):
                os.truncate(self._path, before)
                raise Wrong("the journal of changes has no room")
            self._apply(each)
            self.changes += 1

    def _apply(self, each: Iterable[tuple[int, bytes]]) -> None:
        for number, row in each:
            if row:
                self.rows[number] = row
                self.gone.discard(number)
            else:
                self.rows.pop(number, None)
                self.gone.add(number)

    def _read(self) -> None:
        """What the journal has; the line that a crash cut off was never acknowledged."""
        if not self._path.exists():
            return
        whole = self._path.read_bytes()
        kept = whole[: whole.rfind(b"\n") + 1]
        if kept != whole:
            os.truncate(self._path, len(kept))
        lines = (line for line in kept.split(b"\n") if line)
        self._apply((_number(s[1:]), s[1:] if s[:1] == b"+" else b"") for s in lines)
        self.changes = bool(kept)

    def _make_delta(self, rows: dict[int, bytes], gone: set[int]) -> None:
        with (self.run / "delta.tsv").open("wb") as file:
            file.writelines(b"%s\n" % row for row in rows.values())
        killed = sorted({*rows, *gone})
        ids = "".join(f"<id>{n}</id>\n" for n in killed)
        (self.run / "delta.xml").write_text(
            '<?xml version="1.0" encoding="utf-8"?>\n<sphinx:docset>\n<sphinx:killlist>\n'
            f"{ids}</sphinx:killlist>\n</sphinx:docset>\n"
        )
        self._index("delta", self.config if rows else self.without_rows, "--rotate", "delta")

    def _merge(self, rows: dict[int, bytes], gone: set[int]) -> None:
        """The published delta into main; then a delta of what has come since.

        Until searchd has taken the latter, the old delta hides in main what it has itself.
        """
        self._index("main", self.config, "--merge", "main", "delta", "--rotate")
        with self._lock:
            for number, row in rows.items():
                if self.rows.get(number) is row:
                    del self.rows[number]
            self.gone -= gone
            part = self._path.with_suffix(".part")
            part.write_bytes(
                b"".join(b"+%s\n" % row for row in self.rows.values())
                + b"".join(b"-%d\n" % n for n in self.gone)
            )
            self._journal.close()
            part.rename(self._path)
            self._journal = self._path.open("ab", buffering=0)
            seen, left, lost = self.changes, dict(self.rows), set(self.gone)
        self._make_delta(left, lost)
        self.shown = seen

    def _index(self, name: str, config: Path, *how: str) -> None:
        """Run indexer, and wait until searchd has taken the index of this name.

        searchd renames the new files while nobody can search the index, and lets searches in when
        it has exchanged it. So whoever asks once these are gone asks the new one.
        """
        command = ("indexer", "--quiet", "--config", str(config), *how)
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=_INDEXER_S, check=False,
        )  # fmt: skip
        said = done.stdout.decode(errors="replace").strip()
        if said:
            _log(said)
        words = " | ".join(said.splitlines()[-3:]) or "it printed nothing"
        if done.returncode:
            raise Wrong(f"indexer ended with exit code {done.returncode}: {words}")
        if "NOT rotated" in said:
            raise Wrong(f"indexer could not tell searchd of the new index {name}: {words}")
        new, give_up = self.data / f"{name}.new.sph", time.monotonic() + _ROTATE_S
        while new.exists():
            if time.monotonic() > give_up:
                raise Wrong(
                    f"searchd did not take the new index {name} within {_ROTATE_S:.0f} s; its log "
                    "may say why"
                )
            time.sleep(_LOOK_S)


def _log(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _number(row: bytes) -> int:
    """The number that a row begins with."""
    first = row.partition(b"\t")[0]
    if not first.isdigit():
        raise Wrong("a document is known by its number, and there is none: "
                    f"{first[:20].decode(errors='replace')!r}")  # fmt: skip
    return int(first)


def _taken(file: BufferedIOBase) -> tuple[int, bytes] | None:
    """The number of the last packet and the whole payload; None where the client has gone."""
    whole, length, number = [], _MOST, 0
    while length == _MOST:
        head = file.read(4)
        if len(head) < 4:
            return None
        length, number = int.from_bytes(head[:3], "little"), head[3]
        part = file.read(length)
        if len(part) < length:
            return None
        whole.append(part)
    return number, b"".join(whole)


def _packet(number: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes((number & 0xFF,)) + payload


def _refused(why: str) -> bytes:
    return b"\xff" + (1064).to_bytes(2, "little") + b"#HY000" + why.encode()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], source: Source) -> None:
        super().__init__(address, _Connection)
        self.source = source


class _Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # whoever has gone needs no answer
            self._converse()

    def _converse(self) -> None:
        self.wfile.write(_packet(0, _GREETING))
        login = _taken(self.rfile)
        if login is None:
            return
        self.wfile.write(_packet(login[0] + 1, _OK))
        while (got := _taken(self.rfile)) is not None and got[1][:1] != bytes((_QUIT,)):
            self.wfile.write(_packet(got[0] + 1, self._answer(got[1])))

    def _answer(self, payload: bytes) -> bytes:
        assert isinstance(self.server, _Server)
        try:
            if payload[:1] == bytes((_QUERY,)):
                self.server.source.do(payload[1:])
            elif payload[:1] != bytes((_PING,)):
                return _refused("only statements as text are taken here")
        except Wrong as error:
            return _refused(str(error))
        except (OSError, subprocess.TimeoutExpired) as error:
            return _refused(f"{type(error).__name__}: {error}")
        return _OK


def main(argv: list[str] | None = None) -> int:
    """Serve until told to stop by a signal."""
    words = argparse.ArgumentParser(prog="searchbench.sphinx_source")
    words.add_argument("--address", default="127.0.0.1")
    words.add_argument("--port", type=int, required=True)
    for name in ("data", "run", "config", "without-rows"):
        words.add_argument(f"--{name}", type=Path, required=True)
    words.add_argument("--merge-every", type=int, default=0)
    words.add_argument("--refresh-ms", type=int, default=0)
    given = words.parse_args(argv)
    source = Source(given.data, given.run, given.config, given.without_rows, given.merge_every)
    if given.refresh_ms:
        every_s = given.refresh_ms / 1000
        threading.Thread(target=source.refresh, args=(every_s,), daemon=True).start()
    with _Server((given.address, given.port), source) as server:
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
