"""``searchbench-client``: drive a part of a load from this machine, as told over stdin.

``searchbench load --machines HOST`` starts it by ssh on each client machine. It takes no options:
what to send, where to, and with which login comes through the pipe, so that no list of processes
shows it. It ends when its stdin does, whatever it is doing: no load goes on that nobody watches.

    hello → (pings) → job → ready → go → ticks → ended → (pings) → give → trace
"""

from __future__ import annotations

import base64
import os
import queue
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from msgspec import to_builtins

from searchbench import _core
from searchbench.lab.fleet.frames import Message, NotOurs, Receiver, Sender, versions
from searchbench.lab.place import host

# Ticks are for a person to look at: they are not to cost what is measured.
_TICK_S = 0.25
_TICK_SAMPLES = 512
# The controlling machine says something every second while we drive.
_SILENCE_S = 30.0


def main() -> int:
    """Serve the controlling machine at stdin and stdout; 0 once it is done with us."""
    if len(sys.argv) > 1:
        sys.stderr.write(f"{__doc__}")
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    # A shell that is not interactive may have it ignored, and the end of stdin comes as one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Nothing that anybody else prints may get between our messages.
    out, source = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    code = _served(source, out)
    if code:
        # The pipe is closed at its other end: leave without flushing what nobody reads.
        sys.stderr.flush()
        os._exit(code)
    return 0


def _served(source: BinaryIO, out: BinaryIO) -> int:
    try:
        Client(source, out).serve()
    except KeyboardInterrupt:
        sys.stderr.write("the controlling machine is gone: ended\n")
        return 130
    except BrokenPipeError:
        return 130
    except NotOurs as error:
        sys.stderr.write(f"this is not the protocol of searchbench: {str(error)!r}\n")
        return 2
    return 0


class Client:
    """The client machine's side of the pipe: a thread listens, the main thread drives."""

    def __init__(self, source: BinaryIO, out: BinaryIO) -> None:
        self._receiver = Receiver(source)
        self._sender = Sender(out)
        self._told: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._driving = False
        self._enough = False
        self._wrong: NotOurs | None = None

    def serve(self) -> None:
        """Until stdin ends. KeyboardInterrupt where it ends in the middle of a drive."""
        self._sender.greet()
        # What must be the same on all machines, and what machine this is.
        cpus = sorted(os.sched_getaffinity(0))
        about = {"pid": os.getpid(), "cpus": cpus, "host": host.fingerprint()}
        self._sender.send("hello", {**versions(), **about})
        threading.Thread(target=self._listen, daemon=True).start()
        while (message := self._told.get()) is not None:
            if message.kind == "job":
                self._job(message)
        if self._wrong:
            raise self._wrong

    def _listen(self) -> None:
        try:
            while (message := self._receiver.next()) is not None:
                if message.kind == "ping":
                    self._sender.send("pong", {"came": message.received_unix_ns}, stamp="left")
                elif message.kind == "stop":
                    self._enough = True
                elif message.kind != "alive":
                    self._told.put(message)
        except NotOurs as error:
            self._wrong = error
        except OSError:
            pass
        self._told.put(None)
        main = threading.main_thread().ident
        if self._driving and main is not None:
            signal.pthread_kill(main, signal.SIGINT)

    def _next(self, kind: str) -> Message | None:
        """The next message if it is of this kind; what else came is left to ``serve``."""
        message = self._told.get()
        if message is not None and message.kind == kind:
            return message
        self._told.put(message)
        return None

    def _job(self, job: Message) -> None:
        """Prepare, wait for the start, drive, and give what came of it."""
        number = job.fields["job"]
        with tempfile.TemporaryDirectory(prefix="searchbench-client-") as folder:
            try:
                order = _order(job, folder)
                requests = _core.Requests(
                    job.blobs.get("arena", memoryview(b"")),
                    np.frombuffer(job.blobs.get("exchange_ends", b""), np.uint64),
                    np.frombuffer(job.blobs.get("request_ends", b""), np.uint32),
                )
                self._enough = False
                notes = [to_builtins(note) for note in host.notes()]
                self._sender.send("ready", {"job": number, "notes": notes})
                go = self._next("go")
                if go is None:
                    return
                trace = self._drive(job.fields, requests, order, int(go.fields["start_unix_ns"]))
            except (ValueError, OSError, MemoryError, OverflowError, TypeError) as error:
                if isinstance(error, BrokenPipeError):
                    raise
                words = str(error) or type(error).__name__
                self._sender.send("failed", {"job": number, "words": words})
                return
            self._give(trace, number)

    def _drive(
        self,
        fields: Mapping[str, Any],
        requests: _core.Requests,
        order: dict[str, Any],
        start_unix_ns: int,
    ) -> _core.Trace:
        told_at = 0.0

        def on_tick(completed: int, elapsed_ns: int, recent: bytes = b"") -> bool:
            nonlocal told_at
            now = time.monotonic()
            if now - self._receiver.heard > _SILENCE_S:
                raise KeyboardInterrupt
            if now - told_at >= _TICK_S:
                told_at = now
                progress = {"job": fields["job"], "completed": completed, "elapsed_ns": elapsed_ns}
                self._sender.send("tick", progress, {"recent": _some(recent)})
            return not self._enough

        self._driving = True
        try:
            return _core.drive(
                _target(fields["target"]),
                fields["wire"],
                requests,
                start_unix_ns=start_unix_ns,
                on_tick=on_tick,
                **order,
            )
        finally:
            self._driving = False

    def _give(self, trace: _core.Trace, job: int) -> None:
        replies = trace.replies()
        sizes = [len(reply) for _, reply in replies]
        counts = {"job": job, "samples": len(trace), "replies": len(replies)}
        self._sender.send("ended", {"accounting": trace.accounting(), **counts})
        if self._next("give") is None:
            return
        blobs = {
            "samples": memoryview(trace),
            "reply_samples": np.array([at for at, _ in replies], np.uint64).data,
            "reply_ends": np.cumsum(sizes, dtype=np.uint64).data,
            "replies": memoryview(b"".join(reply for _, reply in replies)),
        }
        self._sender.send("trace", counts, blobs)


def _order(job: Message, folder: str) -> dict[str, Any]:
    """What ``_core.drive`` takes by name. No ``cpus``: all but the first, which is left to ssh, to
    the kernel's interrupts and to us; never more than there are connections.
    """
    order = dict(job.fields["order"])
    cpus = order.get("cpus") or sorted(os.sched_getaffinity(0))[1:]
    order["cpus"] = cpus[: order["connections"]]
    if order.pop("spill", False):
        order["spill"] = folder
    for name, dtype in job.fields["columns"].items():
        order[name] = np.frombuffer(job.blobs.get(name, b""), dtype)
    login = job.fields["login"]
    order["login"] = None if login is None else tuple(login)
    order["tls"] = None
    if job.fields["tls"] is not None:
        names, ca, identity, insecure = job.fields["tls"]
        order["tls"] = names, ca, identity and tuple(identity), insecure
    order["whole"] = [base64.b64decode(mark) for mark in job.fields["whole"]]
    return order


def _target(told: Any) -> Any:
    """(host, port), or several of them: JSON has no tuples."""
    if isinstance(told[0], str):
        return (told[0], int(told[1]))
    return [_target(one) for one in told]


def _some(recent: bytes) -> memoryview:
    """Of the recent samples as many as are worth sending, evenly."""
    samples = np.frombuffer(recent, np.dtype(_core.SAMPLE_DTYPE))
    step = max(1, len(samples) // _TICK_SAMPLES)
    return memoryview(np.ascontiguousarray(samples[::step]).tobytes())


if __name__ == "__main__":
    sys.exit(main())
