"""Several client machines: real sshds between network namespaces.

Longer than most files: the namespaces are made once, for all of it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from namespaces import CLIENTS, TARGET, World, client_running, world
from searchbench import _core
from searchbench.engines.engine import Request
from searchbench.errors import LabError
from searchbench.lab.fleet.fleet import Fleet, FleetEndpoint
from searchbench.lab.fleet.parts import FleetError
from searchbench.lab.wire.exchange import Arena, Endpoint, lay_out
from searchbench.lab.wire.order import Manner, Order
from searchbench.lab.wire.trace import Gathered
from searchbench.record import Record, open_record

DTYPE = np.dtype(_core.SAMPLE_DTYPE)
HTTP = (TARGET, 10041)
SELECT = b"GET /d/select?table=Few HTTP/1.1\r\nHost: target\r\n\r\n"
NOTHING_HERE = (TARGET, 9)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("machines")
    with world(folder) as made:
        yield made


@pytest.fixture(scope="module")
def groonga(machines: World) -> Iterator[World]:
    """A groonga on the target, which counts what it was asked."""
    if shutil.which("groonga") is None:
        pytest.skip("no groonga here: searchbench engines install groonga")
    argv = [
        "groonga", "--protocol", "http", "-s", "--bind-address", HTTP[0], "-p", str(HTTP[1]),
        "--log-path", str(machines.folder / "groonga.log"), "-n", str(machines.folder / "db"),
    ]  # fmt: skip
    with machines.running("target", argv, machines.folder / "groonga.out"):
        machines.answers("target", HTTP)
        command(machines, "table_create?name=Few&flags=TABLE_NO_KEY")
        yield machines


@pytest.fixture(scope="module")
def fleet(machines: World) -> Iterator[Fleet]:
    with Fleet(list(CLIENTS), machines.ssh, machines.command, lead_s=0.3) as both:
        yield both


def asked() -> Arena:
    return lay_out([Request((SELECT,))])


def machine_of(gathered: Gathered) -> np.ndarray[Any, np.dtype[np.intp]]:
    """For each sample the index of its machine in the accounting's ``machines``."""
    ends = np.array([c["connections"][1] for c in gathered.about["machines"]])
    return np.searchsorted(ends, gathered.samples["connection"], side="right")


def command(machines: World, words: str) -> Any:
    """What groonga answers to a command, asked beside the load."""

    def ask() -> bytes:
        with socket.create_connection(HTTP, timeout=5.0) as client:
            client.sendall(f"GET /d/{words} HTTP/1.0\r\n\r\n".encode())
            return b"".join(iter(lambda: client.recv(65536), b""))

    return json.loads(machines.within("target", ask).partition(b"\r\n\r\n")[2])[1]


def selects(machines: World) -> int:
    """How many selects groonga says that it was asked."""
    return int(command(machines, "status")["n_queries"])


def test_an_open_loop_from_two_machines_is_the_schedule_that_was_asked_for(
    groonga: World, fleet: Fleet
) -> None:
    due = np.cumsum(np.random.default_rng(3).exponential(1e6, 800)).astype(np.int64)
    before = selects(groonga)
    told: list[tuple[int, int]] = []
    order = Order(np.zeros(len(due), np.uint32), None, due, 7, repeat=False)
    manner = Manner(
        capture_every=101,
        on_tick=lambda completed, elapsed_ns, _recent: told.append((completed, elapsed_ns)),
    )
    endpoint = Endpoint(HTTP, "http", remote=True)
    gathered = FleetEndpoint(fleet, endpoint).send([Request((SELECT,))], order, manner)
    samples = gathered.samples
    assert selects(groonga) - before == len(due), "as many as the server says"
    assert {_core.OUTCOMES[o] for o in np.unique(samples["outcome"])} == {"ok"}
    client = machine_of(gathered)
    assert np.bincount(client).tolist() == [400, 400]
    assert set(samples["connection"][client == 0]) <= {0, 1, 2, 3}
    assert set(samples["connection"][client == 1]) <= {4, 5, 6}
    about = json.loads(gathered.accounting())
    # Each machine's zero is known to so much; the schedule is the one asked for but for that.
    late = [c["zero_after_common_ns"] for c in about["machines"]]
    assert min(late) == 0
    for number in (0, 1):
        ours = np.sort(samples["due"][client == number])
        assert np.array_equal(ours - late[number], due[number::2])
    assert (samples["due"] <= samples["sent"]).all()
    assert (samples["sent"] < samples["done"]).all()
    assert max(completed for completed, _ in told) <= len(due)
    for at, reply in gathered.replies():
        assert len(reply) == samples["bytes"][at]
        assert b'"_id"' in reply
    assert len(gathered.replies()) >= 6


def test_what_is_known_of_each_machine_and_its_clock_is_in_the_accounting(
    groonga: World, fleet: Fleet
) -> None:
    gathered = drive_closed(fleet, clients=3, stop_after=30, remote=True)
    about = json.loads(gathered.accounting())
    assert [c["connections"] for c in about["machines"]] == [[0, 2], [2, 3]]
    assert [c["samples"] for c in about["machines"]] == [20, 10]
    assert {t["host"] for t in about["threads"]} == set(CLIENTS)
    # Both are this machine: their clock is ours, and the estimate must say so.
    for client in about["machines"]:
        assert abs(client["offset_ns"]) <= client["offset_uncertainty_ns"]
        assert abs(client["offset_after_ns"]) <= client["offset_after_uncertainty_ns"]
        assert 0 < client["round_trip_ns"] <= 2 * client["offset_uncertainty_ns"]
        assert client["accounting"]["connects"] >= 1
    assert about["connects"] == sum(c["accounting"]["connects"] for c in about["machines"])
    (one,) = [n for n in fleet.notes() if n.kind == "client machines are one"]
    assert one.number == "north and south"


AHEAD_NS = 3_700_000_000
# A client machine whose clock is ahead of ours, as far as it and the core can tell.
AHEAD = f"""
import json, sys, time, types
from searchbench import _core; from searchbench.lab.fleet import client as client_machine
from searchbench.lab.fleet.frames import Sender
ours = time.time_ns
time.time_ns = lambda: ours() + {AHEAD_NS}
def drive(*args, start_unix_ns, **order):
    return _core.drive(*args, start_unix_ns=start_unix_ns - {AHEAD_NS}, **order)
def send(self, kind, fields=None, *more, plain=Sender.send, **further):
    if kind == "ended":
        about = json.loads(fields["accounting"])
        about["started_unix_ns"] += {AHEAD_NS}
        fields = {{**fields, "accounting": json.dumps(about)}}
    return plain(self, kind, fields, *more, **further)
Sender.send = send
names = {{name: getattr(_core, name) for name in dir(_core)}}
client_machine._core = types.SimpleNamespace(**{{**names, "drive": drive}})
sys.exit(client_machine.main())
"""


def test_a_machine_whose_clock_is_ahead_begins_when_the_others_do(groonga: World) -> None:
    by_host = only_south(groonga, AHEAD)
    due = np.arange(200, dtype=np.int64) * 2_000_000
    with Fleet(list(CLIENTS), groonga.ssh, by_host, lead_s=0.3) as both:
        gathered = both.drive(
            HTTP, "http", asked(), sequence=np.zeros(200, np.uint32), due_ns=due, connections=4,
            idle="block", remote=True,
        )  # fmt: skip
    north, south = gathered.about["machines"]
    assert abs(north["offset_ns"]) <= north["offset_uncertainty_ns"]
    assert abs(south["offset_ns"] - AHEAD_NS) <= south["offset_uncertainty_ns"]
    truly = south["accounting"]["started_unix_ns"] - AHEAD_NS
    apart = abs(truly - north["accounting"]["started_unix_ns"])
    # Not to the microsecond: a core that is taken from us between two readings of a clock is
    # late by so much, and says so.
    assert apart < AHEAD_NS / 10
    late = np.array([c["zero_after_common_ns"] for c in gathered.about["machines"]])
    assert (
        abs(late.max() - apart) <= north["offset_uncertainty_ns"] + south["offset_uncertainty_ns"]
    )
    asked_for = gathered.samples["due"] - late[machine_of(gathered)]
    assert np.array_equal(np.sort(asked_for), due)
    assert gathered.about["started_unix_ns"] < time.time_ns(), "by our clock, not by theirs"


def test_one_client_over_two_machines_is_one_client(groonga: World, fleet: Fleet) -> None:
    gathered = drive_closed(fleet, clients=1, stop_after=5, remote=True)
    assert set(gathered.samples["connection"]) == {0}
    assert [c["samples"] for c in gathered.about["machines"]] == [5, 0]


def test_requests_to_several_targets_with_timeouts_of_their_own_cross_to_every_machine(
    groonga: World, fleet: Fleet
) -> None:
    gathered = fleet.drive(
        [HTTP, NOTHING_HERE], "http", lay_out([Request((SELECT,)), Request((SELECT,))]),
        sequence=np.tile(np.array([0, 1], np.uint32), 4), connections=4, idle="block",
        client_starts=np.arange(0, 9, 2, dtype=np.uint32), remote=True,
        request_targets=np.array([0, 1], np.uint16),
        request_timeouts_ns=np.array([5 * 10**9, 4 * 10**9], np.int64),
    )  # fmt: skip
    assert np.bincount(machine_of(gathered)).tolist() == [4, 4]
    # Each of four clients has a connection to each of two targets.
    assert [c["connections"] for c in gathered.about["machines"]] == [[0, 4], [4, 8]]
    assert [c["share"] for c in gathered.about["machines"]] == [2, 2]
    assert len(np.unique(gathered.samples["connection"])) == 8
    ended = {(int(s["request"]), _core.OUTCOMES[s["outcome"]]) for s in gathered.samples}
    assert ended == {(0, "ok"), (1, "refused")}


def test_a_drive_that_a_machine_refuses_names_it_and_the_fleet_goes_on(
    groonga: World, fleet: Fleet
) -> None:
    with pytest.raises(FleetError, match=r"client machine .*idle is .never"):
        drive_closed(fleet, clients=2, stop_after=2, remote=True, idle="never")
    assert len(drive_closed(fleet, clients=2, stop_after=6, remote=True)) == 6


def test_what_is_not_loopback_is_refused_there_as_here(machines: World, fleet: Fleet) -> None:
    with pytest.raises(FleetError, match=r"client machine .*loopback"):
        drive_closed(fleet, clients=2, stop_after=2)


def test_a_login_and_what_is_sent_stand_on_no_command_line(machines: World, fleet: Fleet) -> None:
    shown = []

    def look(*_: object) -> None:
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                shown.append(process.read_bytes())
            except OSError:
                continue

    statement = b"SELECT 'a statement of ours'"
    packet = len(statement).to_bytes(3, "little")
    gathered = fleet.drive(
        NOTHING_HERE, "mysql", lay_out([Request((packet + b"\0" + statement,))]),
        login=("somebody", "a-secret-word", ""), sequence=np.zeros(2, np.uint32),
        client_starts=np.array([0, 1, 2], np.uint32), connections=2, repeat=True,
        stop_ns=400_000_000, idle="block", remote=True, on_tick=look,
    )  # fmt: skip
    assert {_core.OUTCOMES[o] for o in np.unique(gathered.samples["outcome"])} == {"refused"}
    assert any(b"searchbench.lab.fleet.client" in line for line in shown), "they were looked at"
    assert not [line for line in shown if b"a-secret-word" in line or b"statement of ours" in line]
    assert "a-secret-word" not in gathered.accounting()


def drive_closed(fleet: Fleet, *, clients: int, **order: Any) -> Any:
    order = {"idle": "block", "repeat": True, **order}
    return fleet.drive(
        HTTP, "http", asked(), sequence=np.zeros(clients, np.uint32),
        client_starts=np.arange(clients + 1, dtype=np.uint32), connections=clients, **order,
    )  # fmt: skip


def test_a_machine_that_dies_in_mid_run_is_named_and_what_the_other_measured_is_kept(
    groonga: World,
) -> None:
    with Fleet(list(CLIENTS), groonga.ssh, groonga.command, lead_s=0.3) as both:
        south = next(m for m in both.machines if m.host == "south")
        left = {m.host: m.process.pid for m in both.machines}

        def kill(completed: int, *_: object) -> None:
            if completed:
                with suppress(ProcessLookupError):
                    os.kill(south.hello["pid"], signal.SIGKILL)

        with pytest.raises(FleetError) as caught:
            drive_closed(both, clients=4, stop_ns=60 * 10**9, remote=True, on_tick=kill)
        assert caught.value.host == "south"
        assert "client machine south: it was lost: " in str(caught.value)
        kept = caught.value.gathered
        assert kept is not None
        assert set(kept.samples["connection"]) == {0, 1}
        assert (kept.samples["done"] > 0).any()
        assert [c["samples"] > 0 for c in kept.about["machines"]] == [True, False]
        with pytest.raises(FleetError, match="client machine south"):
            drive_closed(both, clients=2, stop_after=2, remote=True)
    assert not [host for host, pid in left.items() if Path(f"/proc/{pid}").exists()]


def test_a_drive_is_cut_short_on_all_machines_and_what_they_measured_is_one_trace(
    groonga: World, fleet: Fleet
) -> None:
    gathered = drive_closed(
        fleet, clients=3, stop_ns=60 * 10**9, remote=True,
        on_tick=lambda completed, *_: completed == 0,
    )  # fmt: skip
    assert gathered.about["cut_short"]
    assert gathered.about["elapsed_ns"] < 30e9
    assert set(gathered.samples["connection"]) == {0, 1, 2}
    outcomes = {_core.OUTCOMES[o] for o in np.unique(gathered.samples["outcome"])}
    assert "ok" in outcomes
    assert outcomes <= {"ok", "unfinished"}


def load_from_both(world: World, place: Path, command: str, seconds: str) -> tuple[Record, str]:
    """``searchbench load`` on the controlling machine, three clients; what it printed."""
    (place / "paths.txt").write_text("/d/select?table=Few\n/d/select?table=Few&limit=1\n")
    argv = [
        "ip", "netns", "exec", world.names["hub"], sys.executable, "-c",
        "from searchbench.cli import main; main()", "load", "http://{}:{}".format(*HTTP),
        "--requests", str(place / "paths.txt"), "--clients", "3", "--seconds", seconds,
        "--warmup", "0.1", "--idle", "block", "--remote", "--machines", ",".join(CLIENTS),
        "--ssh", f"ssh -F {world.config}", "--client-command", command,
        "--record", str(place / "record"), "--no-report", "--json",
    ]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (place / "record").exists(), done.stderr
    return open_record(place / "record"), done.stdout


def only_south(world: World, script: str) -> str:
    """A command for both machines: on south this script, on north our client."""
    place = world.folder / f"{zlib.crc32(script.encode())}.py"
    place.write_text(script)
    other = client_running(f'exec(open("{place}").read())')
    mine = f"*{CLIENTS['south']}/*"
    return f"case $(ip -o -4 addr show eth0) in {mine}) {other};; *) {world.command};; esac"


def test_load_from_two_machines_is_a_record_like_any_other(groonga: World, tmp_path: Path) -> None:
    record, printed = load_from_both(groonga, tmp_path, groonga.command, "0.4")
    (trial,) = record.trials
    assert trial.status == "ok", trial
    assert [m["share"] for m in trial.drive.machines] == [2, 1]
    samples = record.samples(trial.trial)
    assert set(samples["connection"].to_pylist()) == {0, 1, 2}
    assert set(samples["outcome"].to_pylist()) == {_core.OUTCOMES.index("ok")}
    assert "client machines are one" in [n.kind for n in trial.notes]
    assert [step["clients"] for step in json.loads(printed)] == [3]


DIES = """
import os, sys, threading, types
from searchbench import _core; from searchbench.lab.fleet import client as client_machine
def drive(*args, **order):
    def on_tick(completed, *recent):
        return plain(completed, *recent) if completed < 50 else os._exit(9)
    plain = order.pop("on_tick")
    return _core.drive(*args, on_tick=on_tick, **order)
names = {name: getattr(_core, name) for name in dir(_core)}
client_machine._core = types.SimpleNamespace(**{**names, "drive": drive})
sys.exit(client_machine.main())
"""


def test_a_trial_in_which_a_machine_dies_is_a_failed_one_that_keeps_what_the_other_measured(
    groonga: World, tmp_path: Path
) -> None:
    record, _ = load_from_both(groonga, tmp_path, only_south(groonga, DIES), "60")
    (trial,) = record.trials
    assert trial.status == "failed"
    assert trial.reason.startswith("client machine south: it was lost: ")
    assert trial.drive.cut_short
    samples = record.samples(trial.trial)
    assert set(samples["connection"].to_pylist()) == {0, 1}, "north's"


def test_localhost_is_this_machine_and_needs_no_ssh() -> None:
    with Fleet(["localhost"], ["no-such-ssh"], lead_s=0.1) as here:
        gathered = here.drive(
            ("127.0.0.1", 9), "http", asked(), sequence=np.zeros(6, np.uint32),
            client_starts=np.array([0, 6], np.uint32), connections=1, idle="block",
        )  # fmt: skip
    assert len(gathered) == 6
    assert gathered.about["machines"][0]["host"] == "localhost"


def test_what_memory_does_not_hold_is_gathered_in_a_file_and_reads_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("searchbench.lab.fleet.parts._IN_MEMORY_BYTES", 4096)
    with Fleet(["localhost"], lead_s=0.1) as here:
        gathered = here.drive(
            ("127.0.0.1", 9), "http", asked(), sequence=np.arange(1000, dtype=np.uint32) % 1,
            due_ns=np.arange(1000, dtype=np.int64) * 100_000, connections=2, idle="block",
            spill=str(tmp_path),
        )  # fmt: skip
    assert isinstance(gathered.samples, np.memmap)
    assert not list(tmp_path.iterdir()), "it goes when it is no longer used"
    before = gathered.samples["due"].copy()
    gathered.give_back(len(gathered))
    assert np.array_equal(gathered.samples["due"], before)
    assert np.array_equal(np.sort(before), np.arange(1000) * 100_000)


def test_ctrl_c_ends_every_machine(groonga: World) -> None:
    with Fleet(list(CLIENTS), groonga.ssh, groonga.command, lead_s=0.3) as both:
        pids = [m.hello["pid"] for m in both.machines]

        def interrupt(completed: int, *_: object) -> None:
            if completed:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            drive_closed(both, clients=2, stop_ns=60 * 10**9, remote=True, on_tick=interrupt)
    give_up = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < give_up:
        time.sleep(0.01)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_a_machine_with_another_version_is_refused_with_the_remedy(machines: World) -> None:
    other = (
        'from searchbench import _core; _core.version = "0.0.9"; '
        "from searchbench.lab.fleet import client; sys.exit(client.main())"
    )
    with (
        pytest.raises(FleetError, match=r"0\.0\.9, and this machine .*pip install searchbench=="),
        Fleet(["north"], machines.ssh, client_running(other)),
    ):
        pass


def test_a_login_that_fails_is_told_in_sshs_own_words(machines: World) -> None:
    stranger = [str(machines.folder / "other-key") if w == "-F" else w for w in machines.ssh]
    at = stranger.index(str(machines.config))
    config = machines.folder / "stranger_config"
    config.write_text(machines.config.read_text().replace("/key\n", "/other-key\n"))
    ssh = [*machines.ssh[: at - 1], "-F", str(config)]
    with (
        pytest.raises(FleetError, match=r"client machine north: ssh failed: .*Permission denied"),
        Fleet(["north"], ssh, machines.command),
    ):
        pass


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("no-such-command", "there is no `no-such-command`: .*--client-command"),
        ("echo Welcome", "ended with exit code 0: Welcome"),
        ("echo Full >&2; exit 3", "ended with exit code 3: Full"),
    ],
)
def test_what_is_not_our_client_is_told_with_what_it_says(
    machines: World, command: str, words: str
) -> None:
    with (
        pytest.raises(FleetError, match=f"client machine south: .*{words}"),
        Fleet(["south"], machines.ssh, command),
    ):
        pass


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        ([], "at least one"),
        (["a", "b", "a"], "a is named twice"),
        (["-oProxyCommand=x"], "not the name of a client machine"),
    ],
)
def test_hosts_that_will_not_do_are_named(hosts: list[str], words: str) -> None:
    with pytest.raises(LabError, match=words), Fleet(hosts):
        pass


def test_without_an_ssh_it_says_how_to_get_one() -> None:
    with pytest.raises(LabError, match="openssh-client"), Fleet(["a"], ["no-such-ssh"]):
        pass
