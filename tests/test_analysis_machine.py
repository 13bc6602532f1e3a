"""What else happened on the machine: each finding at its threshold, and what is not known."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import records
from records import Study, constant
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Finding
from searchbench.analysis.trial.machine import disturbances, steal_share, taken
from searchbench.analysis.trial.measured import read_trace
from searchbench.lab.conduct.watch import Silence
from searchbench.lab.place.host import placement
from searchbench.measure.run import run as measure
from searchbench.record import Record, open_record
from searchbench.record.trial import Trial
from searchbench.terminal.answer import show

WINDOW_S = 5.0
# The server has core 0 and used 2.5 s of its 5; the generator has core 1 and used 1.5 s.
SERVER_S, CLIENT_S = 2.5, 1.5


def core(cpu: int, busy_s: float, **more: Any) -> dict[str, Any]:
    idle_s = WINDOW_S - busy_s - sum(more.get(name, 0.0) for name in ("interrupts_s", "steal_s"))
    return {"cpu": cpu, "busy_s": busy_s, "interrupts_s": 0, "steal_s": 0, "idle_s": idle_s} | more


def machine(*cores: dict[str, Any], server: dict[str, Any] | None = None, **host: Any) -> Any:
    """What a trial has on record: its cores, 0 and 1 if none are given, the server's and ours."""
    by_core = list(cores) or [core(0, SERVER_S), core(1, CLIENT_S)]
    return {
        "service": {"cpus": [0]},
        "server": {"cpu_s": SERVER_S, **(server or {})},
        "host_window": {"client_cpu_s": CLIENT_S, "by_core": by_core, **host},
    }


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,000 requests in a window of 5 s."""
    study = Study(blocks=1, control=None, trial_noise=0, block_noise=0)
    study.add("t", server=constant(0.02), seconds=6.0, warmup_s=1.0)
    return study.write(tmp_path_factory.mktemp("plain") / "record")


def audited(plain: Path, told: Any, **more: Any) -> dict[str, Finding]:
    record = open_record(plain)
    trial = records._with(record.trials[0], {**told, **more})
    assert isinstance(trial, Trial)
    rows = disturbances(trial, read_trace(record, trial))
    found = (Finding(row[0], row[1], trial.trial, *row[2:]) for row in rows)
    return {f.kind: f for f in found}


def test_a_machine_that_nobody_else_uses_has_no_findings(plain: Path) -> None:
    assert audited(plain, machine()) == {}


@pytest.mark.parametrize(
    ("foreign_s", "severity"),
    [(0.2, None), (0.27, "warning"), (0.98, "warning"), (1.0, "invalid"), (2.5, "invalid")],
)
def test_the_time_of_others_on_the_servers_core_is_found(
    plain: Path, foreign_s: float, severity: str | None
) -> None:
    told = machine(core(0, SERVER_S + foreign_s), core(1, CLIENT_S))
    found = audited(plain, told).get("foreign CPU")
    assert (found.severity if found else None) == severity
    if found is not None:
        assert found.number.endswith(f" % of the server's core 0, {foreign_s:.2f} CPU seconds")


def test_the_busiest_others_and_the_remedy_are_named(plain: Path) -> None:
    others = {"cc1": 4.25, "[kernel]": 0.31, "sshd": 0.2, "cron": 0.1}
    told = machine(core(0, SERVER_S + 2.5), core(1, CLIENT_S), others=others)
    found = audited(plain, told)["foreign CPU"]
    assert found.severity == "invalid"
    assert found.number == (
        "50 % of the server's core 0, 2.50 CPU seconds (busiest others on any core in the whole "
        "drive: cc1 4.2 s, [kernel] 0.3 s, sshd 0.2 s)"
    )
    assert "SEARCHBENCH_SHARED_MACHINE=1" in found.remedy


def test_on_a_machine_said_to_be_shared_foreign_load_is_only_remarked_on(plain: Path) -> None:
    told = machine(core(0, SERVER_S + 2.5), core(1, CLIENT_S), shared=True)
    found = audited(plain, told)
    assert {k: f.severity for k, f in found.items()} == {
        "shared machine": "note",
        "foreign CPU": "warning",
    }
    assert set(audited(plain, machine(shared=True))) == {"shared machine"}, "said without any too"


def test_what_the_kernels_threads_did_may_have_been_for_the_trial(plain: Path) -> None:
    told = machine(core(0, SERVER_S + 2.5), core(1, CLIENT_S), others={"[kernel]": 2.2})
    assert audited(plain, told)["foreign CPU"].severity == "warning"
    told = machine(core(0, SERVER_S + 2.5), core(1, CLIENT_S), others={"[kernel]": 1.4})
    assert audited(plain, told)["foreign CPU"].severity == "invalid"


def test_many_cores_of_the_server_do_not_dilute_what_the_generator_lost(plain: Path) -> None:
    cores = [core(0, SERVER_S), core(1, CLIENT_S + 1.5), *(core(n, 0.0) for n in range(2, 32))]
    told = machine(*cores) | {"service": {"cpus": [0, *range(2, 32)]}}
    assert audited(plain, told)["foreign CPU"].number.startswith("30 % of the generator's core 1")


def test_who_uses_cores_that_the_trial_does_not_use_is_left_alone(plain: Path) -> None:
    told = machine(core(0, SERVER_S), core(1, CLIENT_S), core(2, 5.0), core(3, 5.0))
    assert audited(plain, told) == {}


def test_where_the_cores_are_not_apart_all_are_judged_together(plain: Path) -> None:
    told = machine(core(0, SERVER_S), core(1, CLIENT_S + 1.0)) | {"service": {"cpus": []}}
    assert audited(plain, told)["foreign CPU"].number.startswith("10 % of all cores, 1.00 ")


def test_threads_of_ours_on_the_servers_core_are_nobody_elses(plain: Path) -> None:
    told = machine(core(0, SERVER_S + 0.5), core(1, CLIENT_S - 0.5))
    assert audited(plain, told) == {}


def test_of_two_counts_of_busy_time_the_smaller_is_believed(plain: Path) -> None:
    sampled = machine(core(0, SERVER_S + 1.0, idle_s=WINDOW_S - SERVER_S), core(1, CLIENT_S))
    assert audited(plain, sampled) == {}
    lost = machine(core(0, SERVER_S, idle_s=0.0), core(1, CLIENT_S))
    assert audited(plain, lost) == {}


def test_an_attached_system_may_have_processes_that_are_not_seen(plain: Path) -> None:
    told = machine(core(0, 5.0), core(1, CLIENT_S)) | {"service": {"cpus": []}}
    found = audited(plain, told, attached="http://127.0.0.1:1")["foreign CPU"]
    assert found.severity == "warning"
    assert "unless those processes belong to the attached system" in found.meaning


def test_interrupts_may_be_those_of_our_own_requests(plain: Path) -> None:
    told = machine(core(0, SERVER_S, interrupts_s=1.0), core(1, CLIENT_S))
    found = audited(plain, told)
    assert set(found) == {"interrupts"}
    assert found["interrupts"].severity == "note"
    assert found["interrupts"].number.startswith("20 % ")


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"host_window": {"by_core": [], "cores": 8}}, "does not have the CPU time of each core"),
        ({"server": {"cpu_s": None}}, "the server's processes are not seen from here"),
        ({"host_window": {"client_cpu_s": None}}, "does not have the generator's CPU time"),
        ({"drive": {"machines": [{"host": "a"}]}}, "the load came from other machines"),
    ],
)
def test_what_is_not_on_record_is_unknown_and_not_fine(
    plain: Path, told: dict[str, Any], why: str
) -> None:
    base = machine()
    found = audited(plain, {**base, **{k: {**base.get(k, {}), **v} for k, v in told.items()}})
    assert set(found) == {"foreign CPU unknown"}
    assert why in found["foreign CPU unknown"].number


def test_a_record_of_the_whole_machine_shows_at_least_what_it_has(plain: Path) -> None:
    """A trial with half of all core-seconds taken by others was valid."""
    whole = {"by_core": [], "cores": 2, "steal_s": 0.0}
    taken = machine(**whole, busy_s=9.0, idle_s=1.0, iowait_s=0.0)
    found = audited(plain, taken)
    assert found["foreign CPU"].severity == "invalid"
    assert found["foreign CPU"].number == "50 % of all cores, 5.00 CPU seconds"
    calm = machine(**whole, busy_s=4.0, idle_s=6.0, iowait_s=0.0)
    assert set(audited(plain, calm)) == {"foreign CPU unknown"}, "nice was not counted then"


@pytest.mark.parametrize(
    ("steal_s", "severity"),
    [(0.04, None), (0.2, "warning"), (0.255, "warning"), (0.265, "invalid"), (0.4, "invalid")],
)
def test_steal_is_judged_on_the_cores_that_are_used(
    plain: Path, steal_s: float, severity: str | None
) -> None:
    idle = [core(n, 0.0) for n in range(2, 32)]
    told = machine(core(0, SERVER_S, steal_s=steal_s), core(1, CLIENT_S), *idle)
    found = audited(plain, told).get("steal")
    assert (found.severity if found else None) == severity
    elsewhere = machine(core(0, SERVER_S), core(1, CLIENT_S), core(2, 0.0, steal_s=5.0))
    assert audited(plain, elsewhere) == {}
    shared = audited(plain, told | {"host_window": told["host_window"] | {"shared": True}})
    assert ("steal" in shared) is (found is not None)
    if found is not None:
        assert shared["steal"].severity == "warning", "others share the machine below this one"
        assert ("SHARED_MACHINE" in found.remedy) is (severity == "invalid")


def test_steal_of_a_record_without_single_cores_is_that_of_the_machine(plain: Path) -> None:
    told = machine(by_core=[], cores=2, steal_s=1.0)
    trial = records._with(open_record(plain).trials[0], told)
    assert steal_share(trial, WINDOW_S) == pytest.approx(0.1)
    assert audited(plain, told)["steal"].severity == "invalid"


def test_what_others_took_counts_as_that_of_one_core(plain: Path) -> None:
    def of(*cores: dict[str, Any], **more: Any) -> float:
        trial = records._with(open_record(plain).trials[0], machine(*cores, **more))
        return taken(trial, WINDOW_S)

    assert of(core(0, SERVER_S), core(1, CLIENT_S)) == 0
    assert of(core(0, SERVER_S, steal_s=0.04), core(1, CLIENT_S)) == pytest.approx(0.008)
    assert of(core(0, SERVER_S, steal_s=0.4), core(1, CLIENT_S)) == pytest.approx(0.08)
    assert of(core(0, SERVER_S), core(1, CLIENT_S + 0.5, steal_s=0.4)) == pytest.approx(0.18)
    busy = (core(0, SERVER_S + 2.5), core(1, CLIENT_S))
    assert of(*busy) == pytest.approx(0.5)
    assert of(*busy, others={"[kernel]": 3.0}) == 0, "it may have been for the trial"
    two = (core(0, SERVER_S, steal_s=1.0), core(2, 0.0, steal_s=1.0), core(1, CLIENT_S))
    wide = machine(*two) | {"service": {"cpus": [0, 2]}}
    trial = records._with(open_record(plain).trials[0], wide)
    assert taken(trial, WINDOW_S) == pytest.approx(0.4), "it may all have been on one core"


def test_a_saturated_client_is_invalid_only_where_it_blocks_when_idle(plain: Path) -> None:
    busy = {"drive": {"threads": [{"cpu": 1, "user_ns": 2 * 10**9, "system_ns": 38 * 10**8}]}}
    assert "client saturated" not in audited(plain, machine(), **busy)
    found = audited(plain, machine(), **busy, load={"idle": "block"})
    assert found["client saturated"].severity == "invalid"
    waits = {"drive": {"threads": [{"cpu": 1, "run_wait_ns": 6 * 10**8}]}}
    assert audited(plain, machine(), **waits)["client starved"].severity == "warning"


@pytest.mark.parametrize(
    ("host", "kind", "severity"),
    [
        ({"stalled_io_s": 0.2}, None, None),
        ({"stalled_io_s": 0.3}, "pressure on disk", "warning"),
        ({"stalled_memory_s": 0.04}, None, None),
        ({"stalled_memory_s": 0.06}, "pressure on memory", "warning"),
        ({"stalled_cpu_s": 1.2}, None, None),
        ({"stalled_cpu_s": 1.3}, "pressure on cores", "note"),
        ({"throttled": 0.0}, None, None),
        ({"throttled": 1.0}, "CPU limit", "warning"),
    ],
)
def test_stalls_and_limits_of_the_machine(
    plain: Path, host: dict[str, Any], kind: str | None, severity: str | None
) -> None:
    found = audited(plain, machine(**host))
    assert {k: f.severity for k, f in found.items()} == ({kind: severity} if kind else {})


@pytest.mark.parametrize(
    ("server", "kind"),
    [
        ({"read_bytes": (1 << 20) - 1}, None),
        ({"read_bytes": 1 << 20}, "reads from disk"),
        ({"major_faults": 9.0}, None),
        ({"major_faults": 11.0}, "major faults"),
    ],
)
def test_a_server_that_waits_for_disks_is_remarked(
    plain: Path, server: dict[str, Any], kind: str | None
) -> None:
    found = audited(plain, machine(server=server))
    assert {k: f.severity for k, f in found.items()} == ({kind: "warning"} if kind else {})


def test_an_index_larger_than_the_memory_has_to_be_read(plain: Path) -> None:
    told = machine(server={"read_bytes": 10**9}, memory_bytes=10**10)
    assert audited(plain, told)["reads from disk"].severity == "warning"
    found = audited(plain, told, ingest={"index_bytes": 10**11})["reads from disk"]
    assert found.severity == "note"
    assert "the index is larger than the memory" in found.meaning


@pytest.mark.parametrize(
    ("told", "kind", "lever", "other"),
    [
        ({"server": {"read_bytes": 1 << 20}}, "reads from disk", "memory", "cores"),
        ({"server": {"read_bytes": 1 << 20}}, "reads from disk", "cold", "cpu_share"),
        ({"server": {"major_faults": 11.0}}, "major faults", "memory", "cpu_share"),
        ({"stalled_io_s": 0.3}, "pressure on disk", "read_iops", "compression"),
        ({"stalled_memory_s": 0.06}, "pressure on memory", "memory", "read_iops"),
        ({"throttled": 1.0}, "CPU limit", "cpu_share", "memory"),
    ],
)
def test_what_the_place_leads_to_is_a_note_that_names_the_lever(
    plain: Path, told: dict[str, Any], kind: str, lever: str, other: str
) -> None:
    def placed(last: str, problem: str = "") -> Finding:
        levers = [{"name": f"places.small.{last}", "asked": "so much", "problem": problem}]
        return audited(plain, machine(**told), place=levers)[kind]

    found = placed(lever)
    assert found.severity == "note"
    assert f"places.small.{lever} = so much" in found.meaning
    assert f"change places.small.{lever}" in found.remedy
    assert placed(other).severity == "warning", "another lever does not lead to it"
    assert placed(lever, "it was evaded").severity == "warning"


def test_a_core_that_slows_down_is_named(plain: Path) -> None:
    steady = {"mhz_least": 2800.0, "mhz_most": 3000.0}
    slowed = {"mhz_least": 1200.0, "mhz_most": 3000.0}
    told = machine(core(0, SERVER_S, **steady), core(1, CLIENT_S, **steady), core(2, 0.0, **slowed))
    assert audited(plain, told) == {}, "core 2 was not used"
    found = audited(plain, machine(core(0, SERVER_S, **slowed), core(1, CLIENT_S)))
    assert found["CPU frequency"].number == "core 0 between 1,200 and 3,000 MHz"


@pytest.mark.parametrize(
    ("mhz", "busy_s", "slow"),
    [(1200.0, SERVER_S, True), (2900.0, SERVER_S, False), (1200.0, 0.1, False)],
)
def test_a_core_that_is_slow_through_a_whole_trial_is_found_beside_others(
    tmp_path: Path, mhz: float, busy_s: float, slow: bool
) -> None:
    run = Study(blocks=2, control=None)
    for name, own_mhz, own_s in (("a", 3000.0, SERVER_S), ("b", mhz, busy_s)):
        told = machine(core(0, own_s, mhz_least=own_mhz, mhz_most=own_mhz), core(1, CLIENT_S))
        run.add(name, system=name, server=constant(0.02), seconds=6.0, warmup_s=1.0, extra=told)
    found = [f for f in judge(open_record(run.write(tmp_path / "r"))).findings
             if f.kind == "CPU frequency"]  # fmt: skip
    assert len(found) == slow
    if slow:
        (one,) = found
        said = "core 0 reached at most 1,200 MHz, and 3,000 MHz in another trial; "
        assert one.number.startswith(said)
        assert one.number.endswith("trials with a slow core: 001-b0-b and 003-b1-b")
        assert not one.trial


@pytest.mark.parametrize(
    ("mhz", "gain", "verdict"),
    [
        ((3000.0, 3000.0), False, "slower"),
        ((3000.0, 2900.0), False, "slower"),
        ((3000.0, 1200.0), False, "differs"),
        ((1200.0, 3000.0), False, "slower"),  # a slower clock makes the other side no slower
        ((1200.0, 3000.0), True, "differs"),
        ((3000.0, 1200.0), True, "faster"),
    ],
)
def test_what_a_slower_clock_may_have_made_is_no_loss_and_no_gain(
    tmp_path: Path, mhz: tuple[float, float], gain: bool, verdict: str
) -> None:
    sides: list[list[Record]] = []
    times = (0.03, 0.02) if gain else (0.02, 0.03)
    for side, (own, service_s) in enumerate(zip(mhz, times, strict=True)):
        sides.append([])
        for n in range(3):
            run = Study(seed=10 * side + n, blocks=2, control=None)
            told = machine(core(0, SERVER_S, mhz_least=own, mhz_most=own), core(1, CLIENT_S))
            run.add("a", system="a", server=constant(service_s), seconds=6.0, warmup_s=1.0,
                    extra=told)  # fmt: skip
            sides[-1].append(open_record(run.write(tmp_path / f"{side}{n}")))
    (a, *same), (b, *same_b) = sides
    found = compare_records(a, b, same=same, same_b=same_b)
    (line,) = [one for one in found.comparisons if one.metric == "throughput"]
    assert line.verdict == verdict, line.reason
    apart = min(mhz) < 2000
    regressed = True if verdict == "slower" else None if apart else False
    assert found.regressed is regressed
    clocks = [f for f in found.findings if f.kind == "CPU frequency"]
    assert [f.number for f in clocks] == (
        [
            f"core 0 reached at most {mhz[0]:,.0f} MHz in the first and {mhz[1]:,.0f} MHz in the "
            "second"
        ]
        if apart
        else []
    )
    assert any("The CPU frequency" in f for f in found.would_change) is apart
    said = "The two were run at two CPU frequencies, and differ by more than "
    assert (said in found.decision) is (verdict == "differs" and not gain), found.decision


def test_each_finding_has_its_number_its_meaning_and_its_remedy(plain: Path) -> None:
    told = machine(
        core(0, 5.0, mhz_least=1.0, mhz_most=2.0),
        core(1, CLIENT_S, steal_s=1.0),
        server={"read_bytes": 10**9, "major_faults": 10**4},
        stalled_io_s=1.0,
        stalled_memory_s=1.0,
        stalled_cpu_s=5.0,
        throttled=3.0,
    )
    found = audited(plain, told)
    assert len(found) == 9
    assert all(f.number and f.meaning.endswith(".") and f.remedy for f in found.values())


def test_how_often_each_query_was_asked_is_a_figure_of_the_trial(plain: Path) -> None:
    ((trial,),) = (t.trials for t in judge(open_record(plain)).treatments)
    figure = trial.figures["requests_per_query"]
    assert figure.value == pytest.approx(trial.outcomes["ok"] / 40)
    assert figure.n == trial.outcomes["ok"]


def test_the_terminal_says_each_warning_once_and_of_how_many_trials(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = records.two_systems(tmp_path / "r", blocks=3)
    for n, trial in enumerate(sorted((path / "trials").glob("*/trial.json"))[:3]):
        about = json.loads(trial.read_text())
        about["host_window"]["throttled"] = n + 1.0
        trial.write_text(json.dumps(about))
    show(judge(open_record(path)))
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("? CPU limit") == 1
    assert "? CPU limit (3 of 9 trials: 000-b0-sqlite, " in said
    assert "e.g. throttled 1 time in the window." in said
    assert "or measure without it." in said


@pytest.mark.parametrize("levels", [(4,), (4, 8)])
def test_the_terminal_says_who_else_used_the_machine_of_a_void_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], levels: tuple[int, ...]
) -> None:
    """Whether or not another step is of use."""
    study = Study(blocks=1, control=None, judging={"measure": "sweep"})
    for n in levels:
        busy = [{"kind": "busy machine", "number": "2.00 of 2 cores busy", "meaning": "others"}]
        lag = {"lag_ns": 3_000_000, "extra": {"notes": busy}} if n == 4 else {}
        study.add(f"c{n}", system="s", levels={"clients": n}, clients=n, **lag)
    show(judge(open_record(study.write(tmp_path / "r"))))
    said = " ".join(capsys.readouterr().out.split())
    assert "! generator lag (1 of " in said
    assert f"? busy machine (1 of {len(levels)} trials): 2.00 of 2 cores busy" in said
    assert "stop what else uses the machine" in said


@pytest.fixture
def burner() -> Iterator[None]:
    """Somebody else's processes on the server's cores: three, so that the server has a quarter."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        for process in processes:
            psutil.Process(process.pid).cpu_affinity(list(placement().server_cpus))
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


class Told(Silence):
    """What a person is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def told(self, text: str) -> None:
        self.texts.append(text)


@pytest.mark.usefixtures("burner")
@pytest.mark.parametrize("shared", [False, True])
def test_a_process_that_burns_the_servers_core_makes_the_trial_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    monkeypatch.setenv("SEARCHBENCH_SHARED_MACHINE", "1" if shared else "0")
    (tmp_path / "documents.jsonl").write_text('{"id": "1", "text": "red fox"}\n')
    (tmp_path / "queries.txt").write_text("red\n")
    study = tmp_path / "study.toml"
    study.write_text(
        'question = "Who else was there?"\nreplicates = 1\n[control]\naa = false\n'
        '[corpus]\nfiles = "documents.jsonl"\nfields = { text = "text" }\n'
        '[queries]\nfile = "queries.txt"\n[load]\nseconds = 1.2\nwarmup_s = 0.2\n[systems.null]\n'
    )
    watch = Told()
    record = measure(study, tmp_path / "record", watch=watch)
    busy = [text for text in watch.texts if "busy before the trial began (most by python" in text]
    assert len(busy) == (0 if shared else 1), watch.texts
    host = record.trials[0].host_window
    assert host.shared is shared
    assert any(name.startswith("python") and cpu_s > 0.2 for name, cpu_s in host.others.items())
    ((result,),) = (t.trials for t in judge(record).treatments)
    found = {f.kind: f for f in result.findings}
    assert found["foreign CPU"].severity == ("warning" if shared else "invalid"), (found, host)
    assert "core" in found["foreign CPU"].number
    assert "python" in found["foreign CPU"].number
    # Shared or not, what the burner does to the generator may make the trial invalid by itself.
    assert shared or result.status == "invalid"
