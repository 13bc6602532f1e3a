"""``searchbench load`` against servers that run: whole, broken, and not there at all.

Longer than most files: one small server, which misbehaves in a dozen ways, serves every test.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from requesting import driven
from searchbench import _core
from searchbench.analysis.judge import judge
from searchbench.cli import app
from searchbench.errors import LabError, SearchbenchError
from searchbench.lab.conduct.watch import Silence
from searchbench.lab.drive.workload import encode
from searchbench.lab.system.address import Target, named, target_of
from searchbench.measure.load import Asked, load, study_of
from searchbench.record import Record, open_record
from searchbench.workload.verbatim.model import Ask, RequestSet


def target(text: str, **how: Any) -> Target:
    """What a word of the command line means."""
    return target_of(*named(text), **how)


HELLO = b"HTTP/1.1 200 OK\r\nServer: test/1\r\nContent-Length: 5\r\n\r\nhello"


@contextmanager
def serving(
    answer: Callable[[socket.socket, bytes, int], bool], *, accepts_in_s: float = 0.0
) -> Iterator[int]:
    """A server on loopback: ``answer(socket, request, how many so far)``, False: close.

    ``accepts_in_s``: if given, one connection waits to be accepted, and that takes so long.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=1 if accepts_in_s else None)
    listener.settimeout(0.1)
    over = threading.Event()
    seen = [0]
    lock = threading.Lock()
    threads: list[threading.Thread] = []

    def talk(peer: socket.socket) -> None:
        peer.settimeout(0.1)
        waiting = b""
        with peer:
            while not over.is_set():
                try:
                    got = peer.recv(65536)
                except TimeoutError:
                    continue
                except OSError:
                    return
                if not got:
                    return
                waiting += got
                while b"\r\n\r\n" in waiting:
                    head, _, waiting = waiting.partition(b"\r\n\r\n")
                    with lock:
                        seen[0] += 1
                        number = seen[0]
                    try:
                        if not answer(peer, head, number):
                            return
                    except OSError:
                        return

    def accept() -> None:
        while not over.is_set():
            try:
                time.sleep(accepts_in_s)
                peer, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            threads.append(threading.Thread(target=talk, args=(peer,), daemon=True))
            threads[-1].start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        acceptor.join()
        listener.close()
        for thread in threads:
            thread.join()


def always(peer: socket.socket, _head: bytes, _number: int) -> bool:
    peer.sendall(HELLO)
    return True


def run_at(
    port: int, place: Path, load: dict[str, Any], asks: tuple[Ask, ...] = (Ask("/"),), **how: Any
) -> Record:
    table = {"seconds": 0.4, "warmup_s": 0.0, "timeout_s": 5.0, "idle": "block", **load}
    urls = how.pop("urls", [f"http://127.0.0.1:{port}"])
    return driven(place, {"it": urls}, asks, table, **how)


def outcomes(record: Record) -> Counter[str]:
    (trial,) = record.trials
    codes = record.samples(trial.trial).column("outcome").to_pylist()
    return Counter(_core.OUTCOMES[code] for code in codes)


def test_a_closed_loop_has_as_many_clients_as_were_asked_for(tmp_path: Path) -> None:
    with serving(always) as port:
        record = run_at(port, tmp_path, {"clients": 3})
    (trial,) = record.trials
    samples = record.samples(trial.trial)
    assert len(set(samples.column("connection").to_pylist())) == 3
    assert set(outcomes(record)) == {"ok"}
    assert trial.version == "test/1"
    assert trial.drive.statuses == {"200": samples.num_rows}


def test_an_open_loop_sends_every_request_that_was_due(tmp_path: Path) -> None:
    with serving(always) as port:
        record = run_at(port, tmp_path, {"rate_per_s": 200.0, "arrivals": "constant"})
    due = record.samples(record.trials[0].trial).column("due").to_numpy()
    assert sorted(due) == [n * 5_000_000 for n in range(80)]


class Watch(Silence):
    """What a person is told, and the stages."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.stages: list[str] = []

    def told(self, text: str) -> None:
        self.texts.append(text)

    def stage(self, name: str) -> None:
        self.stages.append(name)


@pytest.mark.parametrize("accepts_in_s", [0.0, 0.03])
def test_that_connections_take_long_to_be_opened_is_said_while_and_after(
    tmp_path: Path, accepts_in_s: float
) -> None:
    watch = Watch()
    load = {"rate_per_s": 20, "connections": 50}
    with serving(always, accepts_in_s=accepts_in_s) as port:
        record = run_at(port, tmp_path, load, watch=watch)
    assert record.trials[0].status == "ok"
    slow = bool(accepts_in_s)
    at = watch.stages.index("drive")
    assert (watch.stages[at + 1 : at + 3] == ["opening 50 connections", "drive"]) is slow
    took = [text for text in watch.texts if "s to open 50 connections, before the load" in text]
    assert len(took) == slow, watch.texts


def faulty(number: int, what: Callable[[socket.socket], bool]) -> Any:
    """Well behaved but for every ``number``-th request."""

    def answer(peer: socket.socket, _head: bytes, count: int) -> bool:
        return what(peer) if count % number == 0 else always(peer, _head, count)

    return answer


def reset(peer: socket.socket) -> bool:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    return False


def hang(_peer: socket.socket) -> bool:
    return True


def close_early(_peer: socket.socket) -> bool:
    return False


def short_body(peer: socket.socket) -> bool:
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nonly this")
    return False


def other_protocol(peer: socket.socket) -> bool:
    peer.sendall(b"SSH-2.0-OpenSSH_9\r\n")
    return True


def busy(peer: socket.socket) -> bool:
    peer.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
    return True


def endless_headers(peer: socket.socket) -> bool:
    peer.sendall(b"HTTP/1.1 200 OK\r\n")
    for _ in range(100):
        peer.sendall(b"X-More: " + b"x" * 8000 + b"\r\n")
    return True


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (reset, {"reset"}),
        (close_early, {"reset"}),
        (hang, {"timed_out"}),
        (short_body, {"truncated"}),
        (other_protocol, {"malformed"}),
        (busy, {"http_error"}),
        (endless_headers, {"malformed", "timed_out"}),
    ],
)
def test_each_fault_is_its_own_outcome_and_the_run_ends(
    fault: Any, outcome: set[str], tmp_path: Path
) -> None:
    # Only a server that never ends its answer may let a request time out, however slow we are.
    timeout_s = 0.3 if "timed_out" in outcome else 5.0
    with serving(faulty(7, fault)) as port:
        record = run_at(port, tmp_path, {"clients": 2, "timeout_s": timeout_s})
    found = outcomes(record)
    assert found["ok"] > 0
    assert set(found) - {"ok", "unfinished"} <= outcome
    assert sum(found[o] for o in outcome) > 0
    clients = record.samples(record.trials[0].trial).column("connection").to_numpy()
    assert set(clients) == {0, 1}, "a client whose connection died goes on with another"


def test_no_request_is_sent_twice_in_silence(tmp_path: Path) -> None:
    heads: Counter[bytes] = Counter()

    def once(peer: socket.socket, head: bytes, count: int) -> bool:
        heads[head.split(b" ")[1]] += 1
        return reset(peer) if count % 3 == 0 else always(peer, head, count)

    asks = tuple(Ask(f"/{n}") for n in range(40))
    with serving(once) as port:
        record = run_at(port, tmp_path, {"rate_per_s": 100.0, "arrivals": "constant"}, asks)
    samples = record.samples(record.trials[0].trial)
    sent = samples.filter(samples.column("sent").is_valid()).num_rows
    # One more: the request by which the server was identified, and its Server header read.
    assert sum(heads.values()) - 2 == sent
    assert max(count for path, count in heads.items() if path != b"/0") == 1


def test_nothing_listening_is_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(LabError, match=f"nothing listens at 127.0.0.1:{port}"):
        run_at(port, tmp_path, {"clients": 1})
    assert not (tmp_path / "record").exists(), "nothing was measured, so nothing is kept"


def test_one_endpoint_that_is_down_is_named_before_the_others_are_driven(tmp_path: Path) -> None:
    with serving(always) as port, pytest.raises(LabError, match=r"at 127\.0\.0\.1:9;"):
        load(f"http://127.0.0.1:{port}/,http://127.0.0.1:9/", record=tmp_path / "record")
    assert not (tmp_path / "record").exists()


def test_a_server_that_never_answers_is_a_sentence(tmp_path: Path) -> None:
    with serving(lambda *_: True) as port, pytest.raises(LabError, match="never answered"):
        run_at(port, tmp_path, {"clients": 1})


@pytest.mark.parametrize("scheme", ["mysql", "postgres", "sphinxql", "frames"])
def test_a_protocol_that_is_not_what_was_said_is_a_sentence(scheme: str, tmp_path: Path) -> None:
    load, asks = {"clients": 1, "timeout_s": 0.5}, (Ask("select 1"),)
    with (
        serving(lambda peer, *_: other_protocol(peer)) as port,
        pytest.raises(LabError, match=rf"127\.0\.0\.1:{port}"),
    ):
        run_at(port, tmp_path, load, asks, urls=[f"{scheme}://127.0.0.1:{port}"])


def test_only_loopback_is_loaded_unless_said_otherwise() -> None:
    with pytest.raises(LabError, match="--remote"):
        target("http://192.0.2.7/")
    assert target("http://192.0.2.7/", remote=True).resolved == (("192.0.2.7", 80),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("127.0.0.1:80", "give the protocol and the address"),
        ("sphinx+tls://127.0.0.1/", "not spoken; these are: .*postgres.*over TLS .*postgres\\+tls"),
        ("a=http://127.0.0.1,https://127.0.0.1", "some are asked over TLS and some are not"),
        ("ftp://127.0.0.1/", "not spoken"),
        ("http://no-such-host.invalid/", "not known here"),
        ("http://me:secret@127.0.0.1/", "SEARCHBENCH_PASSWORD"),
        ("http://127.0.0.1:99999/", "port"),
        ("http:///x", "host is missing"),
        ("a=http://127.0.0.1,mysql://127.0.0.1", "one protocol"),
        ("frames://127.0.0.1", "needs a port"),
        ("=http://127.0.0.1", "a name"),
    ],
)
def test_a_target_that_is_none_is_told_why(text: str, said: str) -> None:
    with pytest.raises(SearchbenchError, match=said) as raised:
        study_of(Asked(targets=(text,)))
    assert "\n" not in str(raised.value)
    assert "secret@" not in str(raised.value)


def test_credentials_come_from_the_environment_and_stay_out_of_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SEARCHBENCH_USER", "u")
    http = target("http://127.0.0.1")
    (sent,) = http.endpoint().dressed([encode(Ask("/"), http)])
    assert b"Authorization: Basic dTo=\r\n" in sent.exchanges[0]
    monkeypatch.setenv("SEARCHBENCH_OLD_1_PASSWORD", "p")
    monkeypatch.setenv("SEARCHBENCH_PASSWORD", "q")
    old = target("old-1=mysql://127.0.0.1:3306/db")
    new = target("new=mysql://me@127.0.0.1")
    assert (old.login, new.login) == (("u", "p", "db"), ("me", "q", ""))
    assert "'p'" not in repr(old)


def test_requests_are_bytes_with_their_own_method_body_and_headers() -> None:
    there = target("http://127.0.0.1:10041")
    (sent,) = encode(
        Ask("/search", "POST", b'{"q": 1}', (("X-Own", "yes"), ("host", "other"))), there
    ).exchanges
    head, _, body = sent.partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"POST /search HTTP/1.1", b"Content-Type: application/json", b"Content-Length: 8",
        b"X-Own: yes", b"host: other",
    ]  # fmt: skip
    assert body == b'{"q": 1}'


def test_paths_do_not_go_to_databases_nor_statements_over_http() -> None:
    with pytest.raises(LabError, match="is a path"):
        encode(Ask("/d/select"), target("mysql://127.0.0.1"))
    with pytest.raises(LabError, match="is not a path"):
        encode(Ask("select 1"), target("http://127.0.0.1"))


def test_an_interrupted_run_is_continued_and_finished_steps_are_left_alone(tmp_path: Path) -> None:
    with serving(always) as port:
        first = run_at(port, tmp_path, {"clients": 1})
        started = first.trials[0].started
        again = run_at(port, tmp_path, {"clients": 1})
    assert again.trials[0].started == started


def test_the_command_prints_an_answer_and_keeps_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paths.txt").write_text("/a\n/b\n")
    with serving(always) as port:
        code = app(
            ["load", f"mine=http://127.0.0.1:{port}", "--requests", "paths.txt", "--clients",
             "1:3:2", "--seconds", "0.4", "--warmup", "0", "--record", "here", "--engine", "none"]
        )  # fmt: skip
    assert code in (0, 1), "1: on a busy machine no trial may be valid"
    said = capsys.readouterr()
    assert "a sweep of 2 steps" in said.err
    record = open_record(tmp_path / "here")
    assert [t.load.clients for t in record.trials] == [1, 3]
    assert (tmp_path / "here/report/report.html").exists()
    texts = [q["text"] for q in record.queries(record.trials[0].queries.digest)]
    assert texts == ["/a", "/b"]


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_the_same_command_again_measures_nothing_and_says_so(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    more: list[str],
) -> None:
    place = str(tmp_path / "here")
    with serving(always) as port:
        command = ["load", f"mine=http://127.0.0.1:{port}/", "--clients", "1,2", "--seconds",
                   "0.2", "--warmup", "0", "--record", place, "--engine", "none",
                   "--no-report"]  # fmt: skip
        monkeypatch.setattr("sys.argv", ["searchbench", *command])
        app(command)
        capsys.readouterr()
    monkeypatch.setattr("sys.argv", ["searchbench", *command, *more])
    app([*command, *more])  # the server is gone, and is not missed
    out, said = capsys.readouterr()
    assert said.startswith(f"All 2 trials are on record in {place} since 20")
    assert "nothing was measured now. To measure again, name another --record." in said
    assert "sweep" not in said
    assert not more or len(json.loads(out)) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "name what to load"),
        (["http://127.0.0.1:1"], "nothing to send"),
        (
            ["old=http://127.0.0.1:1/x", "new=http://127.0.0.1:2/y"],
            "old names the path /x, and new names /y: all targets are asked the same",
        ),
        (["http://127.0.0.1:1/", "--clients", "1", "--rate", "5"], "one kind of load"),
        (["http://127.0.0.1:1/", "--clients", "1:x"], "nor a range"),
        (["http://127.0.0.1:1/", "--clients", "1.5"], "whole numbers"),
        (["http://127.0.0.1:1/", "--clients", "0"], "above 0"),
        (["http://127.0.0.1:1/", "--find-capacity"], "needs a promise"),
        (["http://127.0.0.1:1/", "--connections", "5"], "give --clients"),
        (["http://127.0.0.1:1/", "--spread", "x"], "keep or round"),
        (["http://127.0.0.1:1/", "--rate", "5", "--arrivals", "x"], 'one of "poisson"'),
        (["http://127.0.0.1:1/", "--order", "x"], 'one of "stretches"'),
        (["http://127.0.0.1:1/", "--idle", "x"], 'one of "hybrid"'),
        (["http://127.0.0.1:1/", "--seconds", "0"], "`seconds` must be"),
        (["http://127.0.0.1:1/", "--timeout", "-1"], "`timeout_s` must be"),
        (["http://127.0.0.1:1/", "--clients", "70000"], "`clients` must be"),
        (["http://127.0.0.1:1/", "--pause", "-1"], "0 seconds or more"),
        (["http://127.0.0.1:1/", "--replay", "1"], "has no times"),
        (["http://127.0.0.1:1/", "--cpus", "one"], "numbers of processors"),
        (["http://127.0.0.1:1/", "--find-capacity", "--slo", "fast"], "is not a promise"),
        (["http://127.0.0.1:1/", "--slo", "p99 < 5"], "is not a promise"),
        (["http://127.0.0.1:1/", "--abort"], "give one with --slo"),
        (["http://127.0.0.1:1/", "--find-capacity", "--slo", "p99 < 5ms", "--abort"], "goes on"),
        (["http://127.0.0.1:1/", "--repeat", "0"], "at least once"),
        (
            ["http://127.0.0.1:1/", "--find-capacity", "--slo", "p99 < 1s", "--seconds", "5"],
            "--seconds is for steps; a search chooses its windows",
        ),
        (
            ["http://127.0.0.1:1/", "--find-capacity", "--slo", "p99 < 1s", "--warmup", "5"],
            "--warmup is for steps; a search chooses its windows",
        ),
        (["http://127.0.0.1:1/", "http://127.0.0.1:1/"], "two systems are called"),
    ],
)
def test_options_that_do_not_fit_are_told_why(options: list[str], said: str) -> None:
    with pytest.raises(SearchbenchError, match=said):
        app(["load", *options])


def test_the_door_for_drnbench_writes_its_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "patterns.json").write_text(json.dumps(["/a", {"path": "/b"}]))
    with serving(faulty(5, busy)) as port:
        app(
            ["drnbench", "--duration", "0.4", "--interval", "0", "--wait", "0.001",
             "--start-n-clients", "0", "--end-n-clients", "4", "--step", "2",
             "--request-patterns-file", "patterns.json", "--default-hosts", "127.0.0.1",
             "--default-port", str(port), "--output-path", "out.csv", "--no-report"]
        )  # fmt: skip
    head, *rows = (tmp_path / "out.csv").read_text().splitlines()
    assert head.startswith(
        "n_clients,total_n_requests,queries_per_second,min_elapsed_time,max_elapsed_time,"
        "average_elapsed_time,200,503"
    )
    assert [row.split(",")[0] for row in rows] == ["1", "2", "4"]
    for row in rows:
        clients, total = (int(v) for v in row.split(",")[:2])
        shares = [float(v) for v in row.split(",")[6:8]]
        assert sum(shares) == pytest.approx(100)
        # Every fifth, but for those that the end of the window left out.
        assert abs(shares[1] / 100 * total - total / 5) <= 1 + clients
    assert "slowest requests" in capsys.readouterr().out


def test_several_endpoints_are_each_asked_by_their_own_clients(tmp_path: Path) -> None:
    with serving(always) as one, serving(always) as two:
        both = [f"http://127.0.0.1:{one}", f"http://127.0.0.1:{two}"]
        record = run_at(0, tmp_path, {"clients": 4}, urls=both)
    (trial,) = record.trials
    assert trial.endpoints == [f"127.0.0.1:{one}", f"127.0.0.1:{two}"]
    per_place = trial.drive.targets
    assert [p["connects"] for p in per_place] == [2, 2]


def test_a_request_goes_to_the_host_that_it_names(tmp_path: Path) -> None:
    paths: dict[int, set[bytes]] = {1: set(), 2: set()}

    def noting(which: int) -> Any:
        def answer(peer: socket.socket, head: bytes, count: int) -> bool:
            paths[which].add(head.split(b" ")[1])
            return always(peer, head, count)

        return answer

    with serving(noting(1)) as one, serving(noting(2)) as two:
        # Twice, so that each of the two clients asks both.
        asks = (Ask("/mine"), Ask("/theirs", port=two)) * 2
        record = run_at(one, tmp_path, {"clients": 2}, asks)
    assert paths == {1: {b"/mine"}, 2: {b"/theirs"}}
    assert [step.clients for step in judge(record).steps] == [2], "clients, not their connections"
    assert set(outcomes(record)) == {"ok"}


def test_a_refusal_is_said_in_the_servers_words_kept_or_asked_for_once_more(
    tmp_path: Path,
) -> None:
    body = b'{"error": {"type": "parse", "reason": "Cannot parse [b"}}'
    bad = b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    def refusing(peer: socket.socket, head: bytes, count: int) -> bool:
        if not head.startswith(b"GET /b"):
            return always(peer, head, count)
        peer.sendall(bad)
        return True

    rare = (*(Ask(f"/{n}") for n in range(500)), Ask("/b"))
    for number, asks in enumerate([(Ask("/b"),), (Ask("/a"), Ask("/b")), rare, (Ask("/a"),)]):
        with serving(refusing) as port:
            record = run_at(port, tmp_path / str(number), {"clients": 1}, asks)
        (trial,) = record.trials
        findings = {f.kind: f.meaning for f in judge(record).steps[0].findings}
        kind = ("no answers", "errors", "errors", "")[number]
        if not kind:
            assert (trial.said, findings.get("errors")) == ({}, None)
            continue
        assert trial.said == {"http_error": "HTTP 400: Cannot parse [b"}, number
        assert findings[kind].endswith("The server said: HTTP 400: Cannot parse [b")


def test_a_request_has_the_timeout_that_it_names(tmp_path: Path) -> None:
    def slow_b(peer: socket.socket, head: bytes, count: int) -> bool:
        return True if head.startswith(b"GET /b") else always(peer, head, count)

    asks = (Ask("/a"), Ask("/b", timeout_s=0.05))
    with serving(slow_b) as port:
        record = run_at(port, tmp_path, {"clients": 1, "timeout_s": 10.0}, asks)
    samples = record.samples(record.trials[0].trial)
    timed_out = np.array(samples.column("outcome")) == _core.OUTCOMES.index("timed_out")
    assert timed_out.sum() >= 3, "each was given up after its own 50 ms, not after 10 s"


def test_a_set_without_groups_is_asked_in_its_order(tmp_path: Path) -> None:
    requests = RequestSet("p", (Ask("/a"), Ask("/b")), np.array([0, 1, 1], np.uint32))
    with serving(always) as port:
        asks = tuple(requests.asks[i] for i in requests.log)
        record = run_at(port, tmp_path, {"clients": 1}, asks)
    queries = record.samples(record.trials[0].trial).column("query").to_pylist()
    assert queries[:6] == [0, 1, 1, 0, 1, 1]


def test_a_server_behind_a_login_is_asked_and_driven_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = b"Authorization: Basic dTpw"  # u:p
    refused: list[bytes] = []

    def guarded(peer: socket.socket, head: bytes, _number: int) -> bool:
        if word not in head:
            refused.append(head)
            peer.sendall(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")
            return True
        return always(peer, head, _number)

    monkeypatch.setenv("SEARCHBENCH_USER", "u")
    monkeypatch.setenv("SEARCHBENCH_PASSWORD", "p")
    with serving(guarded) as port:
        record = run_at(port, tmp_path, {"clients": 1}, (Ask("/d/status"),), engine=None)
    (trial,) = record.trials
    assert refused == [], "no question was asked without it"
    assert trial.version == "test/1"
    assert set(outcomes(record)) == {"ok"}
    kept = [path.read_bytes() for path in record.path.rglob("*") if path.is_file()]
    assert not any(b"dTpw" in content for content in kept), "the login is nowhere on record"
