"""What runs on a host that is reached by ssh: starts processes there, watches them, ends with ssh.

This file is sent through the pipe of ``ssh HOST python3 -c ..`` and imports nothing of ours, so
that nothing is installed there and its version is always the one that asks. Python 3.8, Linux.
That is also why it is longer than most files.

    guard       has no pipe. When the worker has ended, however that came, it kills whatever is left
                of what was started, removes the folder, and says so
    worker      its child: answers what is asked; ends with its stdin, with 30 s of silence, with a
                signal, and with the guard
    servers     children of the worker; the kernel kills them with it

Both adopt orphans, so that a process that has left its parent is still found. Messages are those of
``searchbench.lab.fleet.frames``: a length, a JSON object, and the byte strings that it names.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, BinaryIO

    Fields = dict[str, Any]
    Found = Fields | None | Callable[[], Fields]

PREFIX = "searchbench-"
MARKER = "SEARCHBENCH_SUPERVISED"
GREETING = b"\nsearchbench client machine\n"
SILENCE_S = 30.0
TICK_S = 0.1
TREE_S = 0.5
PIECE_BYTES = 1 << 20
PATIENCE_S = 10.0
DOOR_S = 10.0
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LISTEN = "0A"
LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # noqa: PTH110
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
libc = ctypes.CDLL(None, use_errno=True)


class Wrong(Exception):  # noqa: N818 -- a reply, not an error of ours
    """What was asked cannot be done; ``key``: of a host's table, if it is one that is wrong."""

    def __init__(self, words: str, key: str = "") -> None:
        super().__init__(words)
        self.key = key


# What is left of what was started, and the end of it.


def stat_of(pid: int) -> tuple[str, int, list[bytes]] | None:
    """(state, parent, fields from the third on) of a process; None where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields[0].decode(), int(fields[1]), fields


def children_of() -> dict[int, list[int]]:
    """The children of each process of this machine, by its id; none that have ended."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 -- names alone
        if name.isdigit():
            known = stat_of(int(name))
            if known is not None and known[0] != "Z":
                found.setdefault(known[1], []).append(int(name))
    return found


def below(root: int, children: Mapping[int, list[int]] | None = None) -> list[int]:
    """All descendants of a process that have not ended."""
    children = children_of() if children is None else children
    found: list[int] = []
    left = list(children.get(root, []))
    while left:
        pid = left.pop()
        found.append(pid)
        left += children.get(pid, [])
    return found


def family(root: int) -> set[int]:
    """A process and its descendants, by the kernel's own lists where it has them: these cost less.

    While it is read, a list may lack one that is there.
    """
    if not LISTS_CHILDREN:
        return {root, *below(root)}
    found: set[int] = set()
    left = [root]
    while left:
        pid = left.pop()
        found.add(pid)
        with contextlib.suppress(OSError):  # it has ended
            for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 -- names alone
                kids = read(f"/proc/{pid}/task/{task}/children").split()
                left += [int(kid) for kid in kids if int(kid) not in found]
    return found


def kill_all(find: Callable[[], list[int]]) -> int:
    """SIGKILL until ``find`` finds nothing more; the id of one that does not end, 0 if none."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        pids = find()
        if not pids:
            return 0
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if time.monotonic() > give_up:
            return pids[0]
        time.sleep(0.01)


def remove(folder: str) -> str:
    """Remove a folder of ours; why it is still there, "" if it is not."""
    if not folder or not Path(folder).name.startswith(PREFIX):
        return f"{folder} does not have our name"
    try:
        if Path(folder).is_symlink() or Path(folder).stat().st_uid != os.geteuid():
            return f"{folder} is not ours"
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return ""


def marked(folder: str) -> list[int]:
    """Processes that were started with a folder, or stand in it; not ourselves nor our parents."""
    own: set[int] = set()
    known = os.getpid()
    while known > 1:
        own.add(known)
        found = stat_of(known)
        known = 0 if found is None else found[1]
    mark = f"{MARKER}={folder}".encode()
    pids = []
    for name in os.listdir("/proc"):  # noqa: PTH208 -- names alone
        if not name.isdigit() or int(name) in own:
            continue
        with contextlib.suppress(OSError):
            state = stat_of(int(name))
            if state is None or state[0] == "Z":
                continue
            there = os.readlink(f"/proc/{name}/cwd")  # noqa: PTH115
            inside = there == folder or there.startswith(f"{folder}/")
            if inside or mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                pids.append(int(name))
    return pids


def clean(folder: str) -> str:
    """Undo what a supervisor that was killed with its guard has left; why not, "" if it is gone."""
    left = kill_all(lambda: marked(folder))
    return f"process {left} does not end" if left else remove(folder)


# Messages.


class Pipe:
    """Messages to and from the machine that asks; threads may share its sending end."""

    def __init__(self, source: BinaryIO | None, out: BinaryIO) -> None:
        self.source, self.out, self.lock = source, out, threading.Lock()
        self.heard = time.monotonic()

    def send(self, kind: str, fields: Mapping[str, Any], blob: bytes = b"") -> None:
        """Write a message with at most one byte string; OSError where nobody reads any more."""
        blobs = [["data", len(blob)]] if blob else []
        text = json.dumps({"kind": kind, "blobs": blobs, **fields}).encode()
        with self.lock:
            self.out.write(struct.pack("<I", len(text)) + text + blob)
            self.out.flush()

    def next(self) -> tuple[str, dict[str, Any], bytes] | None:
        """(kind, fields, byte string) of the next message; None at the end."""
        assert self.source is not None
        length = self.source.read(4)
        if len(length) < 4:
            return None
        text = self.source.read(struct.unpack("<I", length)[0])
        try:
            fields = json.loads(text)
        except ValueError:
            return None
        blob = b"".join(self.source.read(size) for _, size in fields.pop("blobs", []))
        self.heard = time.monotonic()
        return fields.pop("kind"), fields, blob


# What is known of this machine and of what runs here.


def read(path: str) -> str:
    """The text of a file of the kernel's; "" where there is none."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def machine() -> Fields:
    """What the record keeps of this machine; nothing of it is guessed."""
    lines = read("/proc/cpuinfo").splitlines()
    name = next((li.partition(":")[2].strip() for li in lines if li.startswith("model name")), "")
    return {
        "hostname": socket.gethostname(),
        "boot_id": read("/proc/sys/kernel/random/boot_id"),
        "cpu": name or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "user": os.geteuid(),
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    }


class Usage:
    """Sums over trees of processes, from /proc, as the probe has them of its own machine."""

    def __init__(self) -> None:
        self.ticks, self.page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
        self.tree: list[int] = []
        self.roots: list[int] = []
        self.looked = -TREE_S

    def sample(self, roots: list[int]) -> Fields:
        """One row; without the sums where a process of them has just ended."""
        now = time.monotonic()
        if now - self.looked >= TREE_S or roots != self.roots:
            # Who was there stays until it is seen to have ended.
            before = {pid for pid in self.tree if roots == self.roots and stat_of(pid) is not None}
            self.tree = sorted(before.union(*map(family, roots)))
            self.roots, self.looked = roots, now
        return {**self.of_machine(), **self.of_tree()}

    def of_tree(self) -> Fields:
        """Of the processes; what a child that has ended had used is on its parent's account."""
        ticks = pages = faults = count = read_bytes = write_bytes = 0
        known = True
        for pid in self.tree:
            seen = stat_of(pid)
            if seen is None:
                self.looked = -TREE_S
                return {}
            fields = seen[2]
            ticks += sum(map(int, fields[11:15]))
            faults += int(fields[9]) + int(fields[10])
            pages += int(fields[21])
            count += 1
            rows = dict(row.split(": ") for row in read(f"/proc/{pid}/io").splitlines())
            known = known and "read_bytes" in rows
            if known:
                read_bytes += int(rows["read_bytes"])
                write_bytes += int(rows["write_bytes"])
        if not count:
            return {}
        found: Fields = {"cpu_s": ticks / self.ticks, "rss_bytes": pages * self.page,
                 "major_faults": faults, "processes": count}  # fmt: skip
        return {**found, "read_bytes": read_bytes, "write_bytes": write_bytes} if known else found

    def of_machine(self) -> Fields:
        """CPU seconds of the whole machine: busy (without interrupts), and stolen from it."""
        words = read("/proc/stat").split("\n", 1)[0].split()[1:9]
        if len(words) < 8:
            return {}
        user, nice, system, _idle, _wait, _irq, _soft, steal = (int(w) / self.ticks for w in words)
        return {"busy_s": user + nice + system, "steal_s": steal}


def listeners(port: int, pid: int) -> set[str]:
    """The sockets that listen on a port of a process's network."""
    found: set[str] = set()
    for name in ("tcp", "tcp6"):
        for row in read(f"/proc/{pid}/net/{name}").splitlines()[1:]:
            fields = row.split()
            if fields[3] != LISTEN:
                break
            if int(fields[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{fields[9]}]")
    return found


def sockets(pid: int) -> set[str]:
    """What the descriptors of a process name."""
    found: set[str] = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 -- names alone
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))  # noqa: PTH115
    return found


# The worker.


class Worker:
    """Answers what is asked. The main thread starts processes, since they die with their thread."""

    def __init__(self, pipe: Pipe, folder: Path) -> None:
        self.pipe, self.folder = pipe, Path(folder)
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.told: set[str] = set()
        self.logs: dict[str, int] = {}
        self.writing: dict[str, BinaryIO] = {}
        self.failed: dict[str, str] = {}
        self.watched: Path | None = None
        self.usage, self.lock, self.reading = Usage(), threading.Lock(), threading.Lock()

    def serve(self) -> None:
        """Until the pipe ends, or ``bye``."""
        for work in (self.watch, self.mind_silence):
            threading.Thread(target=work, daemon=True).start()
        while True:
            message = self.pipe.next()
            if message is None or message[0] == "bye":
                return
            kind, fields, blob = message
            if kind == "alive":
                continue
            number = fields.pop("ask", 0)
            self.answer(number, getattr(self, f"on_{kind}"), fields, blob)

    def answer(self, number: int, what: Callable[..., Found], fields: Fields, blob: bytes) -> None:
        """Do it and reply; what takes long hands back a function, which a thread calls."""
        try:
            found = what(blob=blob, **fields) if blob else what(**fields)
        except (Wrong, OSError) as error:
            found = self.refusal(error)
        if callable(found):
            threading.Thread(target=self.later, args=(number, found), daemon=True).start()
        elif number:
            self.pipe.send("done", {"ask": number, **(found or {})})

    def later(self, number: int, work: Callable[[], Fields | None]) -> None:
        """In a thread of its own."""
        try:
            found = work()
        except (Wrong, OSError) as error:
            found = self.refusal(error)
        with contextlib.suppress(OSError):
            self.pipe.send("done", {"ask": number, **(found or {})})

    @staticmethod
    def refusal(error: Wrong | OSError) -> Fields:
        """An error as a reply has it."""
        if isinstance(error, Wrong):
            return {"wrong": str(error), "key": error.key}
        where = f"{error.filename}: " if error.filename else ""
        return {"wrong": f"{where}{error.strerror or error}", "key": ""}

    def inside(self, path: str | Path) -> Path:
        """A path below our folder, and nowhere else."""
        found = Path(os.path.normpath(self.folder / path))
        if self.folder != found and self.folder not in found.parents:
            raise Wrong(f"{path} is not below {self.folder}")
        return found

    # Programs and ports.

    @staticmethod
    def environment(path: Sequence[str], more: Mapping[str, str]) -> dict[str, str]:
        """Ours, with folders searched before and after those of PATH."""
        own = os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
        return {**os.environ, "PATH": ":".join([*path, own, SBIN]), **more}

    def on_programs(self, names: list[str], path: list[str]) -> Found:
        """Where each program is; None where it is not."""
        there = self.environment(path, {})["PATH"]
        return {"found": {name: shutil.which(name, path=there) for name in names}}

    def on_says(self, command: list[str], path: list[str]) -> Found:
        """The first line that a program prints."""

        def work() -> Fields:
            try:
                done = subprocess.run(
                    command, env=self.environment(path, {}), stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise Wrong(f"`{' '.join(command)}` does not end") from None
            lines = done.stdout.decode(errors="replace").splitlines()
            return {"line": next((line.strip() for line in lines if line.strip()), "")}

        return work

    def on_free(self, ports: list[int]) -> Found:
        """Which of these ports nobody uses at any address."""
        found = []
        for port in ports:
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.bind(("", port))
                found.append(port)
        return {"free": found}

    def on_door(self, address: str, word: str) -> Found:
        """Listen at an address for a while, and say a word to who comes: is there a way to us?"""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.bind((address, 0))
        except OSError as error:
            listener.close()
            raise Wrong(f"{address} is not one of its addresses ({error.strerror})",
                        "address") from None  # fmt: skip
        listener.listen(16)
        listener.settimeout(DOOR_S)

        def welcome() -> None:
            with listener, contextlib.suppress(OSError):
                while True:
                    came = listener.accept()[0]
                    with came:
                        came.sendall(word.encode())

        threading.Thread(target=welcome, daemon=True).start()
        return {"port": listener.getsockname()[1]}

    # Files.

    def on_list(self, path: str) -> Found:
        """Every file below a folder: size and time of change."""
        root = self.inside(path)
        found: dict[str, list[int]] = {}
        for place, _, names in os.walk(root):
            for name in names:
                file = Path(place, name)
                about = file.lstat()
                found[str(file.relative_to(root))] = [about.st_size, about.st_mtime_ns]
        return {"files": found}

    def on_drop(self, path: str, names: list[str]) -> Found:
        """Remove these files; or a folder with all that is in it."""
        for name in names:
            self.inside(Path(path, name)).unlink(missing_ok=True)
        if not names:
            shutil.rmtree(self.inside(path), ignore_errors=True)
        return None

    def on_put(
        self,
        path: str,
        at: int,
        last: bool,
        mtime_ns: int = 0,
        mode: int = 0o600,
        blob: bytes = b"",
    ) -> Found:
        """A piece of a file; pieces come in their order. What fails is said with the last."""
        file = self.inside(path)
        if not at:
            self.failed.pop(path, None)
        try:
            if not at:
                file.parent.mkdir(parents=True, exist_ok=True)
                self.writing[path] = file.open("wb")
            if path in self.writing:
                self.writing[path].write(blob)
            if last and path in self.writing:
                self.writing.pop(path).close()
                file.chmod(mode)
                os.utime(file, ns=(mtime_ns, mtime_ns)) if mtime_ns else None
        except OSError as error:
            self.failed[path] = error.strerror or str(error)
            with contextlib.suppress(OSError, KeyError):
                self.writing.pop(path).close()
        if last and path in self.failed:
            raise Wrong(f"{file} cannot be written: {self.failed[path]}", "folder")
        return None

    def on_get(self, path: str) -> Found:
        """A file in pieces."""
        file = self.inside(path)

        def work() -> Fields:
            about = file.stat()
            with file.open("rb") as source:
                while piece := source.read(PIECE_BYTES):
                    self.pipe.send("piece", {"path": path}, piece)
            return {"size": about.st_size, "mtime_ns": about.st_mtime_ns, "mode": about.st_mode}

        return work

    def on_fresh(self, path: str) -> Found:
        """An empty folder."""
        folder = self.inside(path)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return {"path": str(folder)}

    # Processes.

    def on_start(
        self, name: str, argv: list[str], env: dict[str, str], run: str, log: str, path: list[str]
    ) -> Found:
        """Start a server; its output goes to a file in ``run``, which is read back as it grows."""
        place = self.inside(run)
        child = self.popen(argv, env, place, place / log, path)
        with self.lock:
            self.children[name], self.watched = child, place
        return {"pid": child.pid}

    def on_run(
        self, argv: list[str], env: dict[str, str], run: str, log: str, path: list[str]
    ) -> Found:
        """Run a command to its end."""
        place = self.inside(run)
        child = self.popen(argv, env, place, place / log, path)
        self.watched = place
        return lambda: {"code": child.wait()}

    def popen(
        self, argv: list[str], env: dict[str, str], place: Path, log: Path, path: list[str]
    ) -> subprocess.Popen[bytes]:
        """A child that dies with us, in a group of its own."""

        def prepare() -> None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.setpgid(0, 0)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)

        more = {**env, MARKER: str(self.folder)}
        whole = self.environment(path, more)
        found = shutil.which(argv[0], path=whole["PATH"])
        if found is None:
            raise Wrong(f"there is no program {argv[0]!r}", "path")
        with log.open("ab") as file:
            return subprocess.Popen(
                [found, *argv[1:]], stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                env=whole, cwd=place, preexec_fn=prepare,
            )  # fmt: skip

    def on_listens(self, name: str, port: int) -> Found:
        """Does a process that we started as ``name`` listen on a port; does anybody?"""
        child = self.children[name]
        there = listeners(port, child.pid)
        family = [child.pid, *below(child.pid)]
        ours = bool(there) and any(there & sockets(pid) for pid in family)
        return {"ours": ours, "any": bool(there)}

    def on_processes(self) -> Found:
        """By name the processes of what was started that have not ended."""
        with self.lock:
            roots = {name: child.pid for name, child in self.children.items()}
        children = children_of()
        return {"pids": {
            name: [p for p in (pid, *below(pid, children)) if stat_of(p) is not None]
            for name, pid in roots.items()
        }}  # fmt: skip

    def on_stop(self, how: str, wait_s: float) -> Found:
        """Ask all to end, then kill them and whatever they started."""

        def work() -> Fields:
            with self.lock:
                children, self.children = self.children, {}
            for child in children.values():
                if child.poll() is None:
                    child.send_signal(signal.Signals[how])
            give_up = time.monotonic() + wait_s
            for child in children.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(max(0.0, give_up - time.monotonic()))
            for child in children.values():
                with contextlib.suppress(OSError):
                    os.killpg(child.pid, signal.SIGKILL)
                if child.poll() is None:
                    child.kill()
                    child.wait()
            # Commands that run to their end are no servers; but none runs while a system is ended.
            left = kill_all(lambda: below(os.getpid()))
            self.read_logs()
            with self.reading:
                self.watched, self.told, self.logs = None, set(), {}
            if left:
                raise Wrong(f"process {left} does not end")
            return {}

        return work

    # What is said without being asked.

    def mind_silence(self) -> None:
        """End with it. A thread of its own: in a network that is gone, others wait to write."""
        while time.monotonic() - self.pipe.heard < SILENCE_S:
            time.sleep(TICK_S)
        os._exit(3)

    def watch(self) -> None:
        """Ten times a second: what the processes used, what they printed, which have ended."""
        while True:
            time.sleep(TICK_S)
            try:
                self.look()
            except OSError:
                os._exit(4)  # nobody reads any more

    def look(self) -> None:
        """One look."""
        with self.lock:
            children = dict(self.children)
        codes = {name: child.poll() for name, child in children.items()}
        self.read_logs()  # the last words come before the end
        for name, code in codes.items():
            if code is not None and name not in self.told:
                self.told.add(name)
                self.pipe.send("ended", {"name": name, "code": code})
        roots = [child.pid for child in children.values() if child.returncode is None]
        if roots:
            self.pipe.send("sample", self.usage.sample(roots))

    def read_logs(self) -> None:
        """What was added to the logs of the running system."""
        with self.reading:
            self.read_new(self.watched)

    def read_new(self, place: Path | None) -> None:
        """Of the logs in a folder; one thread at a time."""
        if place is None:
            return
        for log in place.glob("*.log"):
            at = self.logs.get(log.name, 0)
            with contextlib.suppress(FileNotFoundError), log.open("rb") as file:
                file.seek(at)
                while piece := file.read(PIECE_BYTES):
                    at += len(piece)
                    self.pipe.send("log", {"file": log.name}, piece)
            self.logs[log.name] = at


def work(source: BinaryIO, out: BinaryIO, home: str, name: str) -> None:
    """The worker: make the folder, greet, and serve."""
    pipe = Pipe(source, out)
    with pipe.lock:
        out.write(GREETING)
        out.flush()
    folder = Path(home, name)
    about: Fields = {"machine": machine(), "pid": os.getpid(), "folder": str(folder)}
    try:
        folder.mkdir(mode=0o700)
        # Some file systems take a folder and no file.
        (folder / "try").write_bytes(b"x" * 4096)
        (folder / "try").unlink()
    except OSError as error:
        about["wrong"] = error.strerror or str(error)
    pipe.send("hello", about)
    if "wrong" not in about:
        with contextlib.suppress(OSError):
            Worker(pipe, folder).serve()


def guard(home: str, name: str) -> None:
    """Start the worker; once it has ended, end what it left and remove its folder."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    parent, worker = os.getpid(), os.fork()
    if not worker:
        for how in (signal.SIGTERM, signal.SIGINT):
            signal.signal(how, lambda *_: orphaned(parent, home, name))
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() == parent:
            work(sys.stdin.buffer, sys.stdout.buffer, home, name)
        os._exit(0)

    def end(*_: object) -> None:
        with contextlib.suppress(OSError):
            os.kill(worker, signal.SIGTERM)

    for how in (signal.SIGTERM, signal.SIGINT):
        signal.signal(how, end)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    while True:
        # Orphans that it has adopted end too; only the worker counts.
        pid, _ = os.waitpid(-1, 0)
        if pid == worker:
            break
    left = kill_all(lambda: below(os.getpid()))
    why = f"process {left} does not end" if left else remove(str(Path(home, name)))
    with contextlib.suppress(OSError):
        Pipe(None, sys.stdout.buffer).send("gone", {"left": why})
    os._exit(0 if not why else 5)


def orphaned(parent: int, home: str, name: str) -> None:
    """The worker's own end: if the guard is gone, it does the guard's work first."""
    if os.getppid() != parent:
        kill_all(lambda: below(os.getpid()))
        remove(str(Path(home, name)))
    os._exit(6)


def main(arguments: Sequence[str]) -> None:
    """``guard FOLDER NAME``: supervise; ``there FOLDER``, ``clean FOLDER``: what a killed one left.

    The last two say whether anything was there, and why it still is.
    """
    what, folder, *more = arguments
    if what == "guard":
        guard(folder, *more)
    there = Path(folder).exists() or bool(marked(folder))
    left = clean(folder) if what == "clean" else ""
    sys.stdout.buffer.write(GREETING)
    Pipe(None, sys.stdout.buffer).send("gone", {"there": there, "left": left})
