"""The measuring core through Python: the seam, and drives against real servers on loopback.

Longer than most files: every promise of the stub is held here.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from searchbench import _core

STUB = Path(_core.__file__).with_name("_core.pyi")
DTYPE = np.dtype(_core.SAMPLE_DTYPE)
GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
FRAME = struct.pack("<IB3x", 2, 5) + b"{}"
OK = _core.OUTCOMES.index("ok")


def test_the_module_has_every_name_of_the_stub_with_its_signature() -> None:
    tree = ast.parse(STUB.read_text())
    checked = 0
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            assert described(getattr(_core, node.name)) == declared(node), node.name
            checked += 1
        elif isinstance(node, ast.ClassDef):
            cls = getattr(_core, node.name)
            for method in node.body:
                if not isinstance(method, ast.FunctionDef):
                    continue
                if method.name == "__new__":
                    assert described(cls) == declared(method)[1:], node.name
                elif method.name != "__buffer__":  # a method from Python 3.12 on
                    assert described(getattr(cls, method.name)) == declared(method), method.name
                checked += 1
    assert checked >= 9
    stubbed = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    stubbed |= {
        n.target.id
        for n in tree.body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    stubbed.discard("_Column")  # a name for type checkers only
    assert {name for name in dir(_core) if not name.startswith("_")} == stubbed


def declared(node: ast.FunctionDef) -> list[tuple[str, str, str]]:
    """Name, kind and default of each parameter as the stub has it."""
    spec = node.args
    positional = [("positional", a) for a in spec.posonlyargs + spec.args]
    gaps: list[ast.expr | None] = [None] * (len(positional) - len(spec.defaults))
    found = [
        (a.arg, kind, ast.unparse(d) if d else "")
        for (kind, a), d in zip(positional, gaps + list(spec.defaults), strict=True)
    ]
    found += [
        (a.arg, "keyword", ast.unparse(d) if d else "")
        for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
    ]
    return found


def described(thing: Callable[..., Any]) -> list[tuple[str, str, str]]:
    """The same of the module's own."""
    found = []
    for parameter in inspect.signature(thing).parameters.values():
        kind = "keyword" if parameter.kind is parameter.KEYWORD_ONLY else "positional"
        bare = parameter.default is parameter.empty
        found.append((parameter.name, kind, "" if bare else repr(parameter.default)))
    return found


def test_the_module_says_what_it_is() -> None:
    assert _core.profile == "release"
    assert re.fullmatch(r"\d+\.\d+\.\d+", _core.version)
    assert DTYPE.itemsize == 64
    assert DTYPE.names is not None
    assert DTYPE.names[:6] == ("due", "free", "connect", "sent", "first_byte", "done")
    assert _core.OUTCOMES[0] == "ok"
    assert len(set(_core.OUTCOMES)) == 11


# ---- servers


@contextmanager
def serving(answer: Callable[[int, socket.socket], bool]) -> Iterator[tuple[str, int]]:
    """A server whose ``answer(number, socket)`` replies to a request and says whether to stay."""
    numbers = iter(range(1 << 40))

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while self.request.recv(65536):
                try:
                    if not answer(next(numbers), self.request):
                        return
                except OSError:
                    return

    class Server(socketserver.ThreadingTCPServer):
        request_queue_size = 128
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[0], server.server_address[1]  # type: ignore[misc]
        finally:
            server.shutdown()
            thread.join()


def hello(_number: int, client: socket.socket) -> bool:
    client.sendall(HELLO)
    return True


def requests_of(*requests: bytes) -> _core.Requests:
    ends = np.cumsum([len(r) for r in requests], dtype=np.uint64)
    return _core.Requests(
        b"".join(requests), ends, np.arange(1, len(requests) + 1, dtype=np.uint32)
    )


def closed(target: tuple[str, int], clients: int, each: int, **options: Any) -> _core.Trace:
    options = {"wire": "http", "requests": requests_of(GET), **options}
    return _core.drive(
        target,
        sequence=np.zeros(clients * each, np.uint32),
        client_starts=np.arange(clients + 1, dtype=np.uint32) * np.uint32(each),
        connections=clients,
        **options,
    )


def opened(
    target: tuple[str, int], count: int, every_ns: int, connections: int, **options: Any
) -> _core.Trace:
    return _core.drive(
        target,
        "http",
        requests_of(GET),
        sequence=np.zeros(count, np.uint32),
        due_ns=np.arange(count, dtype=np.int64) * every_ns,
        connections=connections,
        **options,
    )


def samples(trace: _core.Trace) -> np.ndarray[Any, np.dtype[np.void]]:
    return np.frombuffer(memoryview(trace), DTYPE)


# ---- closed loops


def test_a_closed_loop_sends_every_request_exactly_once() -> None:
    with serving(hello) as target:
        trace = closed(target, 4, 50)
    raw = samples(trace)
    assert len(trace) == len(raw) == 200
    assert (raw["outcome"] == OK).all()
    assert np.bincount(raw["connection"]).tolist() == [50] * 4
    assert (raw["bytes"] == len(HELLO)).all()
    for earlier, later in (("due", "sent"), ("free", "sent"), ("sent", "first_byte")):
        assert (raw[earlier] <= raw[later]).all()
    account = json.loads(trace.accounting())
    assert account["connects"] == 4
    assert account["reconnects"] == account["unsent"] == account["pauses"] == 0
    assert account["clock"] in ("tsc", "monotonic")
    assert abs(account["clock_drift_ppm"]) < 500
    assert abs(account["started_unix_ns"] / 1e9 - time.time()) < 60


@pytest.mark.timed
def test_littles_law_holds() -> None:
    def slowly(_number: int, client: socket.socket) -> bool:
        time.sleep(0.005)
        client.sendall(HELLO)
        return True

    clients, think_ns = 8, 3_000_000
    with serving(slowly) as target:
        trace = closed(target, clients, 60, think_ns=think_ns)
    raw = samples(trace)
    cycle = raw["done"] - raw["due"] + think_ns
    for client in range(clients):
        mine = raw["connection"] == client
        # Exactly, client by client: responses and thinking fill its time from start to end.
        assert cycle[mine].sum() == raw["done"][mine].max() + think_ns
    throughput = len(raw) / (raw["done"].max() + think_ns)
    assert throughput * cycle.mean() == pytest.approx(clients, rel=0.1)


def test_a_repeated_load_ends_after_exactly_as_many_as_asked() -> None:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    with serving(hello) as target:
        trace = closed(target, 3, 2, repeat=True, stop_after=101, cpus=cpus)
    assert len(trace) == 101
    assert [t["cpu"] for t in json.loads(trace.accounting())["threads"]] == cpus


def test_frames_are_spoken_too_and_the_hosts_time_comes_with_them() -> None:
    def framed(_number: int, client: socket.socket) -> bool:
        client.sendall(struct.pack("<IB3xQ", 2, 3, 5_000_000_000) + b"{}")
        return True

    with serving(framed) as target:
        trace = closed(target, 1, 3, wire="frames", requests=requests_of(FRAME), capture_every=1)
    raw = samples(trace)
    assert [_core.OUTCOMES[o] for o in raw["outcome"]] == ["partial"] * 3
    host = raw["host_high"].astype(np.int64) << 32 | raw["host_low"]
    assert host.tolist() == [5_000_000_000] * 3
    assert [(i, r[16:]) for i, r in trace.replies()] == [(0, b"{}"), (1, b"{}"), (2, b"{}")]


def test_requests_are_read_from_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "arena"
    path.write_bytes(GET * 2)
    ends = np.array([len(GET), 2 * len(GET)], np.uint64)
    requests = _core.Requests(str(path), ends, np.array([1, 2], np.uint32))
    assert len(requests) == 2
    with serving(hello) as target:
        assert (samples(closed(target, 1, 3, requests=requests))["outcome"] == OK).all()


# ---- open loops


@pytest.mark.timed
def test_a_stalled_server_shows_in_response_time_and_not_in_service_time() -> None:
    def stalling(number: int, client: socket.socket) -> bool:
        time.sleep(0.3 if number == 20 else 0)
        client.sendall(HELLO)
        return True

    with serving(stalling) as target:
        trace = opened(target, 100, 5_000_000, connections=1)
    raw = samples(trace)
    assert (raw["outcome"] == OK).all()
    assert (raw["due"] == np.arange(100) * 5_000_000).all()
    service, response = raw["done"] - raw["sent"], raw["done"] - raw["due"]
    assert np.percentile(response, 90) > 100_000_000
    assert np.median(service) < np.percentile(response, 90) / 2
    backlog = np.maximum(0, raw["free"] - raw["due"])
    lag = raw["sent"] - np.maximum(raw["due"], raw["free"])
    assert (lag >= 0).all()
    # The truth by arithmetic: all but the generator's own lag is backlog and service.
    assert (response == backlog + lag + service).all()


def test_slots_due_at_or_after_the_stop_are_left_out() -> None:
    with serving(hello) as target:
        assert len(opened(target, 100, 1_000_000, 4, stop_ns=30_000_000)) == 30


# ---- several targets


def test_each_request_is_sent_to_its_own_target_by_its_own_timeout() -> None:
    def never(_number: int, _client: socket.socket) -> bool:
        return True

    with serving(hello) as one, serving(never) as other:
        trace = _core.drive(
            [one, other],
            "http",
            requests_of(GET, GET),
            request_targets=np.array([0, 1], np.uint16),
            request_timeouts_ns=np.array([60_000_000_000, 200_000_000], np.int64),
            sequence=np.array([0, 1, 0, 0, 0], np.uint32),
            client_starts=np.array([0, 3, 5], np.uint32),
            connections=2,
            timeout_ns=60_000_000_000,
        )
    raw = samples(trace)
    timed_out = _core.OUTCOMES.index("timed_out")
    assert (raw["outcome"][raw["request"] == 0] == OK).all()
    assert raw["outcome"][raw["request"] == 1].tolist() == [timed_out]
    assert sorted(raw["connection"].tolist()) == [0, 0, 1, 2, 2]
    account = json.loads(trace.accounting())
    assert account["clients"] == 2
    assert [t["address"] for t in account["targets"]] == [f"{h}:{p}" for h, p in (one, other)]
    assert [t["connects"] for t in account["targets"]] == [2, 1]


def test_names_of_this_machine_are_loopback_too() -> None:
    with serving(hello) as (_, port):
        assert (samples(closed(("localhost", port), 1, 2))["outcome"] == OK).all()


# ---- failures are outcomes


def test_a_dead_server_is_an_outcome_not_an_exception() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = listener.getsockname()
    for trace in (closed(target, 2, 4), opened(target, 50, 1_000_000, 4)):
        assert {_core.OUTCOMES[o] for o in samples(trace)["outcome"]} == {"refused"}
        assert (samples(trace)["sent"] == -1).all()
        assert json.loads(trace.accounting())["pauses"] > 0


def test_each_way_to_fail_has_its_own_outcome() -> None:
    answers = {
        1: (b"", False),
        3: (HELLO[:-2], False),
        5: (b"what?", True),
        7: (b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", True),
        9: (b"", True),
    }

    def failing(number: int, client: socket.socket) -> bool:
        reply, stay = answers.get(number, (HELLO, True))
        client.sendall(reply)
        return stay

    with serving(failing) as target:
        trace = closed(target, 1, 11, timeout_ns=700_000_000)
    outcomes = [_core.OUTCOMES[o] for o in samples(trace)["outcome"]]
    assert outcomes[1::2] == ["reset", "truncated", "malformed", "http_error", "timed_out"]
    assert outcomes[::2] == ["ok"] * 6
    assert json.loads(trace.accounting())["reconnects"] == 4


def test_a_success_that_lacks_a_mark_of_a_whole_answer_is_partial() -> None:
    def answer(number: int, client: socket.socket) -> bool:
        body = b'{"failed":%d}' % number
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        client.sendall(body)
        return True

    with serving(answer) as target:
        marked = closed(target, 1, 3, whole=[b'"failed":0}', b"{"])
        plain = closed(target, 1, 2, whole=[])
    assert [_core.OUTCOMES[o] for o in samples(marked)["outcome"]] == ["ok", "partial", "partial"]
    assert (samples(plain)["outcome"] == OK).all()


def exactly(client: socket.socket, count: int) -> bytes:
    """``count`` bytes; what there is where the other side ends before."""
    got = b""
    while len(got) < count:
        piece = client.recv(count - len(got))
        if not piece:
            break
        got += piece
    return got


def test_the_native_api_of_sphinx_is_asked_to_stay_and_its_statuses_are_outcomes() -> None:
    def reply(status: int, body: bytes) -> bytes:
        return struct.pack(">HHI", status, 0x11F, len(body)) + body

    message = struct.pack(">I", 4) + b"gone"
    replies = [
        reply(0, struct.pack(">I", 0)),
        reply(0, struct.pack(">I", 3) + message),
        reply(0, struct.pack(">I", 1) + message),
        reply(1, message),
        reply(0, struct.pack(">I", 0)),
    ]
    heard: list[bytes] = []
    search = struct.pack(">HHI", 0, 0x11E, 8) + struct.pack(">II", 0, 1)

    class Searchd(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(struct.pack(">I", 1))
            heard.append(exactly(self.request, 16))
            while exactly(self.request, len(search)) == search:
                self.request.sendall(replies.pop(0))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Searchd) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        target = ("127.0.0.1", server.server_address[1])
        try:
            trace = closed(target, 1, 5, wire="sphinx", requests=requests_of(search))
        finally:
            server.shutdown()
            thread.join()
    outcomes = [_core.OUTCOMES[o] for o in samples(trace)["outcome"]]
    assert outcomes == ["ok", "partial", "engine_error", "engine_error", "ok"]
    # An error for the whole reply costs the connection.
    assert heard == [struct.pack(">IHHII", 1, 4, 0, 4, 1)] * 2


# ---- interruption


def names_of_threads() -> dict[int, str]:
    """The name of each thread of this process by its id; one that ends meanwhile is left out."""
    names = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            names[int(task.name)] = (task / "comm").read_text().strip()
    return names


def test_control_c_stops_the_threads_at_once() -> None:
    def interrupting(number: int, _client: socket.socket) -> bool:
        """Answers nobody; once both clients wait, somebody presses Ctrl-C."""
        if number == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return True

    before, timeout_s = threading.active_count(), 60
    with serving(interrupting) as target:
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            closed(target, 2, 10, timeout_ns=timeout_s * 1_000_000_000)
        assert time.monotonic() - began < timeout_s / 2, "no request was waited for"
    assert [name for name in names_of_threads().values() if name.startswith("drive-")] == []
    assert threading.active_count() <= before + 2


def test_the_caller_is_told_of_progress_and_its_error_ends_the_drive() -> None:
    seen: list[tuple[int, int]] = []
    lately: list[np.ndarray[Any, np.dtype[np.void]]] = []

    def tick(completed: int, elapsed_ns: int, recent: bytes) -> None:
        seen.append((completed, elapsed_ns))
        lately.append(np.frombuffer(recent, DTYPE))
        if len(seen) == 3:
            raise RuntimeError("enough")

    with serving(hello) as target, pytest.raises(RuntimeError, match="enough"):
        opened(target, 100_000, 1_000_000, 4, on_tick=tick)
    assert [c for c, _ in seen] == sorted(c for c, _ in seen)
    assert seen[0][1] < seen[1][1] < seen[2][1] < 2_000_000_000
    for (completed, elapsed_ns), recent in zip(seen, lately, strict=True):
        assert min(completed, 1) <= len(recent) <= 4_096
        assert (recent["outcome"] == OK).all()
        assert (np.diff(recent["done"]) >= 0).all(), "one thread's, in its order"
        assert (recent["due"] < elapsed_ns + 1_000_000_000).all()


def test_false_from_the_tick_cuts_a_drive_short_and_keeps_its_trace() -> None:
    with serving(hello) as target:
        trace = opened(target, 100_000, 1_000_000, 4, on_tick=lambda done, *_: done < 50)
    assert json.loads(trace.accounting())["cut_short"] is True
    samples = np.frombuffer(memoryview(trace), DTYPE)
    assert 50 <= len(samples) < 100_000
    assert np.array_equal(np.sort(samples["due"]), np.arange(len(samples)) * 1_000_000)


# ---- what does not fit together


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"target": ("192.0.2.1", 80)}, "loopback.* give remote"),
        ({"target": [("127.0.0.1", 9), ("192.0.2.1", 80)]}, "loopback"),
        ({"target": ("no-such-host.invalid", 80), "remote": True}, "does not resolve"),
        ({"target": ("127.0.0.1", 70_000)}, "ports of 0 to 65535"),
        ({"target": []}, "no target"),
        ({"request_targets": np.zeros(3, np.uint16)}, "request_targets has 3 entries"),
        ({"request_targets": np.zeros(1, np.int64)}, "request_targets must be a column of u16"),
        ({"request_targets": np.ones(1, np.uint16)}, "only 1 targets"),
        ({"request_timeouts_ns": np.zeros(1, np.int64)}, "request_timeouts_ns.0. is 0"),
        ({"wire": "gopher"}, "gopher"),
        ({"idle": "nap"}, "nap"),
        ({"start_unix_ns": 1}, "start_unix_ns"),
        ({"connections": 0}, "connections"),
        ({"client_starts": None}, "client_starts"),
        ({"due_ns": np.zeros(2, np.int64)}, "not both"),
        ({"client_starts": None, "due_ns": np.zeros(3, np.int64)}, "due_ns has 3"),
        ({"client_starts": None, "due_ns": np.zeros(2, np.int64), "think_ns": 1}, "closed loop"),
        ({"client_starts": None, "due_ns": np.array([1, 0], np.int64)}, "decreases"),
        ({"sequence": np.array([0, 7], np.uint32)}, "request 7"),
        ({"sequence": np.zeros(2, np.int64)}, "sequence must be a column of u32"),
        ({"repeat": True}, "never ends"),
        ({"timeout_ns": 0}, "timeout_ns"),
        ({"login": ("me", "pw", "db")}, "wire 'http' has none"),
        ({"wire": "sphinx", "login": ("me", "pw", "db")}, "wire 'sphinx' has none"),
        ({"wire": "postgres"}, "needs a login"),
        ({"wire": "mysql", "login": ("me", "p\0w", "db")}, "password of login has a NUL"),
        ({"wire": "frames", "whole": [b"ok"]}, "whole is given, and wire .frames. has no bodies"),
        ({"wire": "sphinxql", "whole": [b"ok"]}, "whole is given"),
        ({"whole": [b"ok", b""]}, r"whole\[1\] has 0 bytes"),
        ({"whole": [b"x" * 513]}, r"whole\[0\] has 513 bytes"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_a_sentence(
    changes: dict[str, Any], said: str
) -> None:
    arguments: dict[str, Any] = {
        "target": ("127.0.0.1", 9),
        "wire": "http",
        "requests": requests_of(GET),
        "sequence": np.zeros(2, np.uint32),
        "client_starts": np.array([0, 2], np.uint32),
        "connections": 1,
    }
    with pytest.raises(ValueError, match=said):
        _core.drive(**(arguments | changes))


def test_offsets_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="beyond the arena"):
        _core.Requests(b"abc", np.array([4], np.uint64), np.array([1], np.uint32))
    with pytest.raises(ValueError, match="must increase"):
        _core.Requests(b"abc", np.array([2, 1], np.uint64), np.array([1, 2], np.uint32))
    with pytest.raises(OSError, match="no-such-file"):
        _core.Requests("/no-such-file", np.array([4], np.uint64), np.array([1], np.uint32))


def test_a_cpu_that_is_not_there_is_named() -> None:
    with pytest.raises(OSError, match="cpu 1000"):
        closed(("127.0.0.1", 9), 1, 1, cpus=[1000])


def test_a_login_reaches_the_server_and_its_refusal_the_accounting() -> None:
    heard: list[bytes] = []
    refusal = b'SFATAL\0C28P01\0Mno "me" here\0\0'

    class Refuses(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            heard.append(self.request.recv(4096))
            self.request.sendall(b"E" + struct.pack(">I", len(refusal) + 4) + refusal)

    with socketserver.TCPServer(("127.0.0.1", 0), Refuses) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        target = ("127.0.0.1", server.server_address[1])
        try:
            trace = closed(target, 1, 2, wire="postgres", login=("me", "s3cret", "db"))
        finally:
            server.shutdown()
            thread.join()
    refused = _core.OUTCOMES.index("engine_error")
    assert samples(trace)["outcome"].tolist() == [refused, refused]
    assert b"user\0me\0database\0db\0" in heard[0]
    assert json.loads(trace.accounting())["greeting_failed"] == '28P01: no "me" here'
    assert "s3cret" not in trace.accounting()


# ---- places in TOML


def test_every_key_of_a_toml_text_has_its_place() -> None:
    text = (
        'name = "é"\n[load]\nclients = [1, 2]\n  [load.extra]\n  x.y = { z = true }\n'
        "[[rows]]\na=1\n"
    )
    places = {row[0]: row[1:] for row in _core.toml_spans(text)}
    assert places[("name",)] == (1, 1, 1, 8)
    assert places[("load", "clients")] == (3, 1, 3, 11)
    assert places[("load", "clients", "1")] == (3, 15, 3, 15)
    assert places[("load", "extra", "x", "y")][:2] == (5, 5)
    assert places[("load", "extra", "x", "y", "z")] == (5, 11, 5, 15)
    assert places[("rows", "0", "a")] == (7, 1, 7, 3)


def test_columns_are_counted_in_characters() -> None:
    places = {row[0]: row[1:] for row in _core.toml_spans('a = ["éé", 5]\n')}
    assert places[("a", "1")] == (1, 12, 1, 12)


def test_what_is_not_toml_is_refused_with_its_place() -> None:
    with pytest.raises(ValueError, match=r"^2:5: "):
        _core.toml_spans("a = 1\nb = \n")


def test_a_library_host_that_is_asked_nonsense_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    assert _core.serve_library_host(["null", "--no-such-option", "1"]) == 2
    assert "no-such-option" in capfd.readouterr().err


def test_only_the_measuring_threads_have_the_priority_that_was_asked_for(tmp_path: Path) -> None:
    seen: dict[str, tuple[int, int]] = {}

    def tick(_completed: int, _elapsed_ns: int, _recent: bytes) -> None:
        for tid, name in names_of_threads().items():
            with suppress(ProcessLookupError):
                seen[name] = os.sched_getscheduler(tid), os.getpriority(os.PRIO_PROCESS, tid)

    with serving(hello) as target:
        trace = opened(target, 300, 1_000_000, 2, realtime=True, spill=str(tmp_path), on_tick=tick)
    [thread] = json.loads(trace.accounting())["threads"]
    got_it = thread["priority"] == "fifo 10"
    assert got_it or "refused" in thread["priority"]
    assert seen.pop("drive-0")[0] == (os.SCHED_FIFO if got_it else os.SCHED_OTHER)
    assert seen["spill"] == (os.SCHED_OTHER, 5), "it gives way to all others"
    assert {policy for policy, _ in seen.values()} == {os.SCHED_OTHER}


# ---- many samples

SPILLING = """
import json, socket, sys, threading
import numpy as np
from searchbench import _core

def kib(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

count, folder, after = int(sys.argv[1]), sys.argv[2] or None, int(sys.argv[3])
dead = socket.create_server(("127.0.0.1", 0))
address = dead.getsockname()
dead.close()
sequence = np.arange(count, dtype=np.uint32) % np.uint32(7)
due = np.arange(count, dtype=np.int64) * 1_000
requests = _core.Requests(b"1234567", np.arange(1, 8, dtype=np.uint64),
                          np.arange(1, 8, dtype=np.uint32))
open("/proc/self/clear_refs", "w").write("5")
before = kib("VmHWM")
trace = _core.drive(address, "frames", requests, sequence=sequence, due_ns=due, connections=1,
                    spill=folder, spill_after_bytes=after, idle="block")
grown = kib("VmHWM") - before
raw = np.frombuffer(memoryview(trace), np.dtype(_core.SAMPLE_DTYPE))
assert len(raw) == count
step = 100_000
for start in range(0, count, step):
    piece = raw[start : start + step]
    assert np.array_equal(piece["due"], due[start : start + step])
    assert np.array_equal(piece["request"], sequence[start : start + step])
    trace.give_back(start + step)
read = kib("VmHWM") - before
account = json.loads(trace.accounting())
print(json.dumps([grown * 1024, read * 1024, account["spilled_bytes"], account["spill_failed"]]))
"""


KEEPING = """
import socket, sys, threading, time
import numpy as np
from searchbench import _core

def kib(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

def serve(listener, body):
    socket, _ = listener.accept()
    for number in range(count):
        socket.recv(1000)
        socket.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % (8 << 20))
        socket.sendall(b"%08d" % number)
        socket.sendall(body[8:])
        time.sleep(0.05)

count, folder = int(sys.argv[1]), sys.argv[2] or None
listener = socket.create_server(("127.0.0.1", 0))
body = bytes(range(256)) * (8 << 12)
thread = threading.Thread(target=serve, args=(listener, body), daemon=True)
thread.start()
get = b"GET / HTTP/1.1\\r\\nHost: here\\r\\n\\r\\n"
requests = _core.Requests(get, np.array([len(get)], np.uint64), np.array([1], np.uint32))
open("/proc/self/clear_refs", "w").write("5")
before = kib("VmHWM")
trace = _core.drive(listener.getsockname(), "http", requests, sequence=np.zeros(count, np.uint32),
                    client_starts=np.array([0, count], np.uint32), connections=1, stop_after=count,
                    capture_every=1, spill=folder, idle="block", timeout_ns=60_000_000_000)
kept = trace.kept()
assert [sample for sample, _ in kept] == list(range(count)), kept
for reply, (sample, pieces) in enumerate(kept):
    assert pieces > 1
    at = 0
    for piece in range(pieces):
        got = trace.piece(reply, piece)
        if piece == 0:
            head, _, got = got.partition(b"\\r\\n\\r\\n")
            assert got[:8] == b"%08d" % sample, got[:20]
            at, got = 8, got[8:]
        assert got == body[at : at + len(got)], (reply, piece)
        at += len(got)
    assert at == len(body)
for wrong in ((count, 0), (0, kept[0][1])):
    try:
        trace.piece(*wrong)
    except IndexError:
        continue
    raise AssertionError(wrong)
print((kib("VmHWM") - before) * 1024)
"""


def test_kept_replies_that_were_spilled_read_the_same_and_take_no_memory(tmp_path: Path) -> None:
    grown = []
    for folder in (str(tmp_path), ""):
        command = [sys.executable, "-c", KEEPING, "40", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        grown.append(int(done.stdout))
    spilled, held = grown
    assert held > 40 * (8 << 20)
    assert spilled < held / 2
    assert list(tmp_path.iterdir()) == []


def test_samples_that_were_spilled_read_the_same_and_take_no_memory(tmp_path: Path) -> None:
    count = 1_000_000  # refused, every one of them: recorded as fast as can be
    command = [sys.executable, "-c", SPILLING, str(count), str(tmp_path), str(8 << 20)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    grown, read, spilled, failed = json.loads(done.stdout)
    assert failed is None
    assert 0 < spilled <= count * DTYPE.itemsize
    # A busy machine may have kept more of them in memory than a quiet one does.
    assert grown < count * (DTYPE.itemsize + 12) + (64 << 20)
    assert read - grown < 32 << 20
    assert list(tmp_path.iterdir()) == []
