"""Processes of ours: started with their cores and their end tied to ours, stopped for sure."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from searchbench.errors import LabError
from searchbench.lab.system.names import program

_PR_SET_PDEATHSIG = 1
_COMMAND_TIMEOUT_S = 3600.0
_KILLED_S = 5.0  # what SIGKILL may take to free ports and files
# An ordinary user in a user namespace: the files below, which are root's, are its own there.
_ORDINARY = ("unshare", "--user", "--map-user=65534", "--map-group=65534", "--")
_libc = ctypes.CDLL(None, use_errno=True)


def command_line(argv: Sequence[str], *, refuses_root: bool) -> list[str]:
    """``argv`` with its program found, as an ordinary user where it must not be root.

    LabError (stage ``deploy``) where there is no such program.
    """
    found = program(argv[0])
    if found is None:
        raise LabError(f"there is no program {argv[0]!r}; see `searchbench engines`", "deploy")
    whole = [found, *argv[1:]]
    return [*_ORDINARY, *whole] if refuses_root and os.geteuid() == 0 else whole


def start(
    argv: Sequence[str], *, env: Mapping[str, str], run: Path, log: str, cpus: Sequence[int]
) -> subprocess.Popen[bytes]:
    """Start a server in ``run``; what it prints goes to the file ``log`` there."""
    with (run / log).open("ab") as file:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **env},
            cwd=run,
            preexec_fn=_in_child(cpus, os.getpid()),
        )


def complete(argv: Sequence[str], *, run: Path, log: str, stage: str) -> None:
    """Run a command to its end; LabError (``stage``) with the end of what it printed if it fails.

    Whatever ends the wait (Ctrl-C too) ends the command.
    """
    child = start(argv, env={}, run=run, log=log, cpus=())
    try:
        code = child.wait(_COMMAND_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise LabError(f"`{argv[0]}` did not end in {_COMMAND_TIMEOUT_S:.0f} s", stage) from None
    finally:
        if child.poll() is None:
            stop([child], signal.SIGKILL, 1.0)
    if code:
        words = tail(run / log) or "it printed nothing"
        raise LabError(f"`{' '.join(argv[:3])}` ended with exit code {code}: {words}", stage)


def stop(children: Sequence[subprocess.Popen[bytes]], how: signal.Signals, wait_s: float) -> None:
    """``how``, then SIGKILL, for these and for what they started; ends nothing else."""
    family: list[psutil.Process] = []
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            family += psutil.Process(child.pid).children(recursive=True)
        family += _orphans(child.pid)
        if child.poll() is None:
            child.send_signal(how)
    give_up = time.monotonic() + wait_s
    for child in children:
        try:
            child.wait(max(0.0, give_up - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    for orphan in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            orphan.kill()
    give_up = time.monotonic() + _KILLED_S
    while any(map(_serves, family)) and time.monotonic() < give_up:
        time.sleep(0.005)


def _serves(process: psutil.Process) -> bool:
    """Is it more than an entry that its parent has not read yet?"""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _orphans(group: int) -> list[psutil.Process]:
    """What is left of the process group of a child of ours that may have died before its own.

    The workers of a master that was killed go on, and nothing but their group says whose they are.
    """
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError):
            ours = os.getsid(process.pid) == os.getsid(0)
            if ours and process.pid != group and os.getpgid(process.pid) == group:
                found.append(process)
    return found


def tail(log: Path, lines: int = 5) -> str:
    """The end of a log in one line, for an error message; empty where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return " | ".join(line.strip() for line in text.strip().splitlines()[-lines:])


def _in_child(cpus: Sequence[int], parent: int) -> Callable[[], None]:
    """Between fork and exec: the server dies with us, even if we are killed; it has its cores."""

    def prepare() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        os.setpgid(0, 0)  # so that Ctrl-C reaches us and not the server
        if cpus:
            os.sched_setaffinity(0, cpus)

    return prepare
