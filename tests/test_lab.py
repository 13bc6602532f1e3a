"""The lab on real servers: studies from end to end, and everything that can go wrong in one.

Longer than most files: what goes wrong is held against the one study that goes right.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow.compute as pc
import pytest

from searchbench.analysis.judge import judge
from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Service
from searchbench.engines.null import Null
from searchbench.errors import LabError, RecordError, StudyError
from searchbench.lab.conduct import studies
from searchbench.lab.conduct.watch import Silence
from searchbench.lab.probe import kernel
from searchbench.lab.system import deploy
from searchbench.lab.system.deploy import Deployment
from searchbench.measure.run import run as measure
from searchbench.record import Record, open_record
from searchbench.record.trial import Trial as Kept
from searchbench.record.trial import Window
from searchbench.study.plan import Trial


def study(folder: Path, systems: str, load: str, more: str = "", queries: str = "") -> Path:
    """A small study over twenty documents, on disk."""
    words = ("red fox", "blue dog", "red dog", "green fox jumps")
    lines = [json.dumps({"id": str(n), "text": words[n % 4], "n": n}) for n in range(20)]
    (folder / "documents.jsonl").write_text("\n".join(lines))
    (folder / "queries.txt").write_text("red\nfox\nblue dog\nred\njumps\n")
    path = folder / "study.toml"
    path.write_text(
        textwrap.dedent(
            f"""
            question = "Which?"
            replicates = 1
            {more}
            [corpus]
            files = "documents.jsonl"
            fields = {{ text = "text", n = "integer" }}
            [queries]
            {queries or 'file = "queries.txt"'}
            match = "any"
            [load]
            {load}
            """
        )
        + systems
    )
    return path


TWO = "[systems.tantivy]\n[systems.sqlite]\n"
SHORT = "seconds = 0.4\nwarmup_s = 0.1"


class Watch(Silence):
    """Remembers what it was told, and may interfere."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.ended: list[Kept] = []
        self.begun: list[str] = []

    def begins(self, trial: Trial, label: str, done: int, of: int) -> None:
        self.begun.append(trial.id)

    def stage(self, name: str) -> None:
        self.stages.append(name)

    def ends(self, trial: Trial, about: Kept, invalid: str) -> None:
        self.ended.append(about)


def outcomes(record: Record, trial: str) -> dict[str, int]:
    names = next(t for t in record.trials if t.trial == trial).outcomes
    counts = pc.value_counts(record.samples(trial)["outcome"]).to_pylist()
    return {names[c["values"]]: c["counts"] for c in counts}


def servers() -> list[psutil.Process]:
    """Library hosts that are children of this process."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() != psutil.STATUS_ZOMBIE:
                found.append((child, child.cmdline()))
    return [child for child, command in found if "searchbench.library_host" in " ".join(command)]


def test_a_study_gives_a_whole_record(tmp_path: Path) -> None:
    watch = Watch()
    record = measure(study(tmp_path, TWO, SHORT), tmp_path / "record", watch=watch)
    assert [t.status for t in record.trials] == ["ok"] * 3
    for trial in record.trials:
        assert trial.version[0].isdigit()
        assert trial.ingest.documents == 20
        assert trial.unsupported == []
        assert trial.answers_under_load.changed == 0
        assert trial.server.peak_rss_bytes > 1_000_000
        samples = record.samples(trial.trial)
        assert outcomes(record, trial.trial) == {"ok": samples.num_rows}
        assert samples.num_rows > 20
        for earlier, later in (("due", "sent"), ("free", "sent"), ("sent", "first_byte")):
            assert pc.all(pc.less_equal(samples[earlier], samples[later])).as_py()
        assert pc.all(pc.less_equal(samples["first_byte"], samples["done"])).as_py()
        # The host's own time is within the service time that was seen from outside.
        spent = pc.subtract(samples["done"], samples["sent"])
        assert pc.all(pc.less(samples["host"], spent)).as_py()
        captured = record.replies(trial.trial).filter(pc.field("phase") == "captured")
        assert captured["total"].to_pylist() == [10, 10, 10, 5]
        assert record.probe(trial.trial).num_rows >= 2
        assert [q["text"] for q in record.queries(trial.queries.digest)]
    assert servers() == []
    first = watch.stages[: watch.stages.index("totals") + 1]
    assert first == [
        "host", "compile", "prepare", "deploy", "ingest", "stop", "ingest", "deploy", "identify",
        "capture", "stop", "deploy", "identify", "drive", "totals",
    ]  # fmt: skip


def test_captures_may_come_after_the_drive_so_that_it_meets_first_asks(tmp_path: Path) -> None:
    watch = Watch()
    more = '[control]\naa = false\n[agreement]\ncapture = "after"\n'
    record = measure(
        study(tmp_path, "[systems.tantivy]\n", SHORT, more), tmp_path / "record", watch=watch
    )
    (trial,) = record.trials
    assert trial.status == "ok"
    assert watch.stages.index("drive") < watch.stages.index("capture"), "no query was asked before"
    assert watch.stages.count("capture") == 1
    captured = record.replies(trial.trial).filter(pc.field("phase") == "captured")
    assert captured["total"].to_pylist() == [10, 10, 10, 5]
    assert trial.answers_under_load is not None
    assert trial.answers_under_load.compared > 0
    assert trial.answers_under_load.changed == 0


class Impatient(Watch):
    """Ends the run in the trial behind the first that has ended."""

    def tick(self, completed: int, elapsed_ns: int, recent: bytes) -> None:
        if self.ended:
            raise KeyboardInterrupt


def test_the_same_command_continues_where_it_stopped(tmp_path: Path) -> None:
    path, place = study(tmp_path, TWO, SHORT), tmp_path / "record"

    with pytest.raises(KeyboardInterrupt):
        measure(path, place, watch=Impatient())
    assert servers() == []
    kept = open_record(place).trials
    assert [t.status for t in kept] == ["ok"]
    again = Watch()
    record = measure(path, place, watch=again)
    assert [t.status for t in record.trials] == ["ok"] * 3
    assert kept[0].trial not in again.begun
    finished = Watch()
    measure(path, place, watch=finished)
    assert finished.begun == []


def test_another_study_does_not_continue_it(tmp_path: Path) -> None:
    place = tmp_path / "record"
    measure(study(tmp_path, "[systems.null]\n", SHORT), place)
    with pytest.raises(RecordError, match="another study"):
        measure(study(tmp_path, "[systems.null]\ndelay_us = 5\n", SHORT), place)


def test_other_queries_do_not_continue_a_treatment(tmp_path: Path) -> None:
    path, place = study(tmp_path, "[systems.null]\n", SHORT, "replicates = 2"), tmp_path / "record"
    text = path.read_text().replace("replicates = 1\n", "", 1)
    path.write_text(text)

    with pytest.raises(KeyboardInterrupt):
        measure(path, place, watch=Impatient())
    asked = (tmp_path / "queries.txt").read_text()
    (tmp_path / "queries.txt").write_text("jumps\n")
    with pytest.raises(RecordError, match=r"asked other queries \(4 distinct ones\) than"):
        measure(path, place)
    (tmp_path / "queries.txt").write_text(asked)
    assert [t.status for t in measure(path, place).trials] == ["ok"] * len(
        open_record(place).plan.trials
    )


def test_other_documents_do_not_continue_a_treatment(tmp_path: Path) -> None:
    path, place = study(tmp_path, "[systems.null]\n", SHORT), tmp_path / "record"
    path.write_text(path.read_text().replace("replicates = 1\n", "replicates = 2\n", 1))
    with pytest.raises(KeyboardInterrupt):
        measure(path, place, watch=Impatient())
    given = (tmp_path / "documents.jsonl").read_text()
    (tmp_path / "documents.jsonl").write_text(given.splitlines()[0] + "\n")
    with pytest.raises(RecordError, match=r"had other documents \(\d+\) than \[corpus\] gives now"):
        measure(path, place)
    (tmp_path / "documents.jsonl").write_text(given)
    trials = measure(path, place).trials
    assert [t.status for t in trials] == ["ok"] * len(open_record(place).plan.trials)

    about = place / "trials" / trials[-1].trial / "trial.json"
    kept = json.loads(about.read_text())
    about.write_text(json.dumps(kept | {"corpus": kept["corpus"] | {"digest": "0" * 32}}))
    with pytest.raises(RecordError, match=r"had other documents .* move the folders"):
        judge(place)
    about.write_text(json.dumps(kept | {"levels": {"load.clients": 99}}))
    with pytest.raises(RecordError, match=r"has levels .*99.* plan\.json has .* for this trial"):
        judge(place)


def test_a_server_that_dies_is_an_outcome_per_request_and_a_note(tmp_path: Path) -> None:
    class Killer(Watch):
        def tick(self, completed: int, elapsed_ns: int, recent: bytes) -> None:
            if elapsed_ns > 300_000_000:
                for server in servers():
                    server.kill()

    path = study(
        tmp_path, "[systems.tantivy]\n", "seconds = 1\nwarmup_s = 0", "[control]\naa = false"
    )
    record = measure(path, tmp_path / "record", watch=Killer())
    (trial,) = record.trials
    assert trial.status == "ok"
    seen = outcomes(record, trial.trial)
    assert seen["ok"] > 0
    assert seen["refused"] > 0
    assert any(note.kind == "server ended" for note in trial.notes)


def test_a_server_that_hangs_is_a_timeout_per_request(tmp_path: Path) -> None:
    path = study(
        tmp_path,
        "[systems.null]\nstall_every_ms = 400\nstall_ms = 350\n",
        "seconds = 1.5\nwarmup_s = 0\ntimeout_s = 0.1",
        "[control]\naa = false",
    )
    record = measure(path, tmp_path / "record")
    (trial,) = record.trials
    assert outcomes(record, trial.trial)["timed_out"] >= 2


def test_queries_an_engine_cannot_express_are_kept_apart_with_the_reason(tmp_path: Path) -> None:
    lines = [{"text": "red", "match": "any"}, {"text": "fix", "match": "fuzzy"}]
    (tmp_path / "mixed.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    path = study(tmp_path, TWO, SHORT, queries='file = "mixed.jsonl"')
    record = measure(path, tmp_path / "record")
    by_system = {t.system: t for t in record.trials}
    assert by_system["tantivy"].unsupported == []
    (refused,) = by_system["sqlite"].unsupported
    assert refused.query == 1
    assert "fuzzy" in refused.reason
    driven = record.samples(by_system["sqlite"].trial)["query"]
    assert set(driven.to_pylist()) == {0}


def test_an_open_loop_sends_what_is_due_when_it_is_due(tmp_path: Path) -> None:
    load = 'rate_per_s = 200\narrivals = "constant"\nseconds = 1\nwarmup_s = 0.2\nconnections = 8'
    path = study(tmp_path, "[systems.null]\n", load, "[control]\naa = false")
    record = measure(path, tmp_path / "record")
    (trial,) = record.trials
    samples = record.samples(trial.trial)
    assert samples.num_rows == 240
    assert sorted(samples["due"].to_pylist())[:3] == [0, 5_000_000, 10_000_000]
    assert trial.window == Window(200_000_000, 1_200_000_000)


def test_a_window_may_be_counted_in_requests(tmp_path: Path) -> None:
    path = study(tmp_path, "[systems.null]\n", "requests = 300\nwarmup_requests = 50\nclients = 3")
    record = measure(path, tmp_path / "record")
    for trial in record.trials:
        samples = record.samples(trial.trial)
        assert samples.num_rows == 350
        window = trial.window
        due = samples["due"]
        inside = pc.and_(pc.greater_equal(due, window.start), pc.less(due, window.end))
        assert 295 <= pc.sum(inside).as_py() <= 300


def test_verify_asks_everything_once_and_times_nothing(tmp_path: Path) -> None:
    more = '[factors]\n"load.clients" = [1, 2]\n'
    record = studies.verify(study(tmp_path, TWO + more, SHORT), tmp_path / "record")
    assert sorted(t.system for t in record.trials) == ["sqlite", "tantivy"]
    for trial in record.trials:
        assert trial.status == "ok"
        assert record.samples(trial.trial).num_rows == 0
        assert record.replies(trial.trial)["total"].to_pylist() == [10, 10, 10, 5]


def test_a_missing_file_is_said_before_anything_is_started(tmp_path: Path) -> None:
    path = study(tmp_path, TWO, SHORT)
    (tmp_path / "queries.txt").unlink()
    with pytest.raises(StudyError, match=r"queries\.txt"):
        measure(path, tmp_path / "record")
    assert not (tmp_path / "record").exists()


def test_an_index_is_shared_within_a_block_and_built_anew_for_the_next(tmp_path: Path) -> None:
    more = '[factors]\n"load.clients" = [1, 2]\n'
    path = study(tmp_path, "[systems.tantivy]\n" + more, SHORT, "replicates = 2")
    text = path.read_text().replace("replicates = 1\n", "")
    path.write_text(text)
    record = measure(path, tmp_path / "record")
    built = [t.trial for t in record.trials if t.ingest.reused is None]
    assert [b[:3] for b in built] == ["b01", "b02"]
    for trial in record.trials:
        reused = trial.ingest.reused
        assert reused is None or reused[:3] == trial.trial[:3]


def test_a_stranger_on_our_port_is_recognised_and_gets_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(
            """
            import socket
            s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); s.settimeout(3)
            print(s.getsockname()[1], flush=True)
            try:
                c, _ = s.accept(); print("bytes", c.recv(10))
            except TimeoutError:
                print("silence")
            """
        )],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert stranger.stdout is not None
    port = int(stranger.stdout.readline())
    monkeypatch.setattr(deploy, "free_port", lambda: port)
    engine = ENGINES["null"]
    with (
        pytest.raises(LabError, match=r"taken by another program|address already in use|in use"),
        Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "run"),
    ):
        pass
    assert stranger.communicate(timeout=10)[0].strip() == "silence"


class Stubborn(Null):
    """A service that ignores SIGTERM, starts slowly, or never answers, as told."""

    def __init__(self, code: str, ready_timeout_s: float = 5.0) -> None:
        self.code = textwrap.dedent(code)
        self.ready_timeout_s = ready_timeout_s

    def service(self, params: Any, schema: Any) -> Service:
        usual = super().service(params, schema)
        return Service(
            argv=("{python}", "-c", self.code, "{port}", "{data}"),
            wire="frames",
            ready=usual.ready,
            ready_timeout_s=self.ready_timeout_s,
        )


SERVE = (
    "import sys; from searchbench._core import serve_library_host as s; "
    's(["null", "--port", sys.argv[1], "--data", sys.argv[2]])'
)


def test_a_server_that_starts_slowly_is_waited_for(tmp_path: Path) -> None:
    engine = Stubborn(f"import time; time.sleep(1.0)\n{SERVE}")
    with Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "run") as running:
        assert running.facts.version


def test_a_server_that_accepts_and_never_answers_is_given_up_with_a_sentence(
    tmp_path: Path,
) -> None:
    engine = Stubborn(
        """
        import socket, sys, time
        s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
        print("I am up, allegedly", flush=True)
        time.sleep(60)
        """,
        ready_timeout_s=3.0,
    )
    with (
        pytest.raises(LabError, match=r"not ready after 3 s .*timed_out.*allegedly"),
        Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "run"),
    ):
        pass
    assert servers() == []


def test_a_server_that_ignores_sigterm_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deploy, "_STOP_TIMEOUT_S", 0.5)
    code = (
        """
    import os, signal, sys, threading
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        import time; time.sleep(60)
    """
        + SERVE
    )
    engine = Stubborn(textwrap.dedent(code).replace("    " + SERVE, SERVE))
    with Deployment(engine, defaults(engine), tmp_path / "data", tmp_path / "run") as running:
        family = [running.process, *running.process.children(recursive=True)]
        assert len(family) == 2
    _gone, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []


def test_servers_die_with_us_even_if_we_are_killed(tmp_path: Path) -> None:
    code = f"""
    from pathlib import Path
    from searchbench.engines import ENGINES, defaults
    from searchbench.lab.system.deploy import Deployment
    import time
    e = ENGINES["null"]
    with Deployment(e, defaults(e), Path("{tmp_path}/data"), Path("{tmp_path}/run")) as d:
        print(d.process.pid, flush=True)
        time.sleep(60)
    """
    ours = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert ours.stdout is not None
    server = psutil.Process(int(ours.stdout.readline()))
    os.kill(ours.pid, signal.SIGKILL)
    ours.communicate()
    deadline = time.monotonic() + 5
    while server.is_running() and server.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the server outlived us"
        time.sleep(0.02)


def test_a_port_of_a_server_is_none_that_connections_are_given() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = {deploy.free_port() for _ in range(50)}
    assert len(found) > 40
    if first >= 20_000:
        assert max(found) < first


def test_a_port_that_was_free_is_free() -> None:
    with socket.create_server(("127.0.0.1", deploy.free_port())):
        pass


def test_a_trial_whose_probe_ended_early_has_failed_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = kernel.sample, [True]

    def once() -> dict[str, Any]:
        if broken and threading.current_thread().name == "probe":
            broken.clear()
            raise RuntimeError("dictionary changed size during iteration")
        return whole()

    monkeypatch.setattr(kernel, "sample", once)
    path = study(tmp_path, "[systems.tantivy]\n[systems.sqlite]\n", SHORT)
    trials = measure(path, tmp_path / "record").trials
    first = next(trial for trial in trials if trial.status != "ok")
    assert (first.stage, first.status) == ("probe", "failed")
    assert "what the machine did is unknown: RuntimeError: dictionary changed" in first.reason
    assert [t.status for t in trials if t is not first] == ["ok"] * (len(trials) - 1)


def test_other_queries_do_not_continue_a_sweep_at_its_other_loads(tmp_path: Path) -> None:
    """No load was asked twice, but one table would have answers to two files."""
    load = 'seconds = 0.4\nwarmup_s = 0.1\n[factors]\n"load.clients" = [1, 2, 3]'
    path = study(tmp_path, "[systems.null]\n", load, "[control]\naa = false")
    place = tmp_path / "record"

    with pytest.raises(KeyboardInterrupt):
        measure(path, place, watch=Impatient())
    (tmp_path / "queries.txt").write_text("jumps\n")
    with pytest.raises(RecordError, match="were asked other queries"):
        measure(path, place)
