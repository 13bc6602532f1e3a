"""Reads and writes of a system by file system, call and size, and requests to block devices.

bpftrace counts them in the kernel, through all phases of a trial that is not judged. The system is
what a trial starts: the child of ours that makes itself a process group (as ``deploy`` has it do),
with all that it starts. A phase begins where we say so by a call of prctl that does nothing else.

Seen: calls that read or write regular files, by the bytes that they returned. Not seen: what goes
through mapped memory, io_uring or the kernel's AIO (as that of zfs-fuse to its own file), or is
copied within the kernel. That shows in the requests to devices alone. Those are of the whole
machine, and the kernel makes them when it likes: also in a later phase.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from searchbench.errors import LabError
from searchbench.lab.place import things
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.mounts import holding, mounted
from searchbench.lab.place.storage import Made
from searchbench.lab.system.names import program
from searchbench.record.samples import IO

SIZED = (
    "read", "pread64", "readv", "preadv", "preadv2",
    "write", "pwrite64", "writev", "pwritev", "pwritev2",
)  # fmt: skip
CALLS = (*SIZED, "fsync", "fdatasync")
_REQUESTS = ("read", "write", "flush", "discard")
_PHASE = 0x53425048  # an option of prctl that no kernel knows: it fails, and the tracer sees it
_STARTS_S = 60.0
_ENDS_S = 120.0  # on a busy machine the kernel takes its time to let go of each probe
_KEYS = 16384  # of each of its maps; bpftrace says nothing where one is full, so we look
# Files of these lie nowhere.
_OF_THE_KERNEL = {"proc", "sysfs", "cgroup", "cgroup2", "securityfs", "debugfs", "tracefs", "bpf"}
_EVENTS = Path("/sys/kernel/tracing/events")
# A namespace of its own has a copy of every mount, which would keep the storages of others busy.
_IN_A_NAMESPACE = (
    "unshare", "--mount", "--propagation", "private", "sh", "-c",
    "mount -t tracefs tracefs /sys/kernel/tracing || exit; "
    "awk '$2 ~ /searchbench-/ { print $2 }' /proc/self/mounts | "
    'while read -r point; do umount -l "$point"; done; '
    'exec "$@"', "sh",
)  # fmt: skip
_libc = ctypes.CDLL(None, use_errno=True)


class Tracer:
    """``folder``: a private one, for its program and what that prints."""

    def __init__(self, ledger: Ledger, folder: Path) -> None:
        self._ledger = ledger
        self._script = folder / "io_sizes.bt"
        self._printed = folder / "io_sizes.json"
        self._complaints = folder / "io_sizes.err"
        self._child: subprocess.Popen[bytes] | None = None
        self._number = 0
        self._phases = [""]
        # By the kernel's number of a file system or device: storage, where, kind of file system.
        self._known: dict[int, tuple[str, str, str]] = {}

    def start(self) -> None:
        """Start to count. LabError (stage ``trace``) where it cannot."""
        found = program("bpftrace")
        if found is None:
            raise LabError("bpftrace is not installed; apt-get install bpftrace", "trace")
        self._script.parent.mkdir(parents=True, exist_ok=True)
        self._script.write_text(_script(os.getpid()))
        argv = [found, "-f", "json", str(self._script)]
        if not _EVENTS.is_dir():
            argv = [*_IN_A_NAMESPACE, *argv]
        self._number = self._ledger.note(things.Daemon("bpftrace", str(self._script)))
        with self._printed.open("wb") as out, self._complaints.open("wb") as errors:
            self._child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                env={**os.environ, "BPFTRACE_MAP_KEYS_MAX": str(_KEYS)},
                preexec_fn=things.dies_with_us,
            )  # fmt: skip
        self._wait_until_it_counts()

    def enters(self, phase: str, storages: Mapping[str, Made]) -> None:
        """From here on it is this phase. ``storages``: ours, as far as they are made."""
        if phase not in self._phases:
            self._phases.append(phase)
        self._look(storages)
        _libc.prctl(_PHASE, self._phases.index(phase), 0, 0, 0)

    def stop(self) -> pa.Table | None:
        """What it counted, in the columns of ``record.samples.IO``; None where it did not start.

        LabError (stage ``trace``) where it ended before, or does not end.
        """
        child, self._child = self._child, None
        if child is None:
            return None
        child.send_signal(signal.SIGINT)  # it prints what it has and ends
        try:
            code = child.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            self._ledger.undo(self._number)
            raise LabError(f"bpftrace did not end within {_ENDS_S:.0f} s", "trace") from None
        self._ledger.undo(self._number)
        if code:
            raise LabError(f"bpftrace ended early{self._said()}", "trace")
        rows = sorted(self._rows(), key=lambda row: self._phases.index(row["phase"]))
        return pa.Table.from_pylist(rows, schema=IO) if rows else IO.empty_table()

    def _wait_until_it_counts(self) -> None:
        """Until it has seen a call of ours, which is the last that it attaches to."""
        assert self._child is not None
        give_up = time.monotonic() + _STARTS_S
        while b"seen" not in self._printed.read_bytes():
            if self._child.poll() is not None or time.monotonic() > give_up:
                with suppress(LabError):
                    self.stop()
                raise LabError(f"bpftrace does not trace{self._said()}", "trace")
            _libc.prctl(_PHASE, 0, 0, 0, 0)
            time.sleep(0.02)

    def _said(self) -> str:
        """Its last complaint."""
        said = self._complaints.read_text(errors="replace").split("ERROR:")[-1]
        return f": {' '.join(said.split())}"

    def _look(self, storages: Mapping[str, Made]) -> None:
        """Note what is mounted now and which devices there are."""
        for mount in reversed(mounted()):  # of several mounts of one, the first is its own
            self._known[_number(mount.device)] = ("", mount.point, mount.kind)
        for row in Path("/sys/dev/block").iterdir():
            device = row.resolve().name
            self._known[-_number(row.name)] = ("", device, "")
            for name, made in storages.items():
                if made.device == row.name:
                    self._known[-_number(row.name)] = (name, device, "")
        for name, made in storages.items():
            if made.folder.exists():
                at = holding(made.folder)
                self._known[_number(at.device)] = (name, "", made.asked.kind)

    def _rows(self) -> Iterator[dict[str, Any]]:
        maps: dict[str, dict[str, Any]] = {}
        for line in self._printed.read_bytes().splitlines():
            if line.strip():
                found = orjson.loads(line)
                if found["type"] in ("map", "hist"):
                    maps |= found["data"]
        for sizes, sums, names, sign in (
            ("@sizes", "@bytes", CALLS, 1), ("@requests", "@volume", _REQUESTS, -1)
        ):  # fmt: skip
            counted = maps.get(sizes, {})
            if sum(b["count"] > 0 for each in counted.values() for b in each) >= _KEYS:
                raise LabError(
                    f"a table of bpftrace is full ({_KEYS:,} sizes), so calls are missing", "trace"
                )
            for key, buckets in counted.items():
                phase, call, device = (int(part) for part in key.split(","))
                known = self._known.get(sign * device, ("", "", "not mounted"))
                if known[2] in _OF_THE_KERNEL or not self._phases[phase]:
                    continue
                seen = [b for b in buckets if b["count"]]
                sized = names[call] in (*SIZED, *_REQUESTS[:2], "discard")
                yield {
                    "phase": self._phases[phase],
                    "source": "system" if sign > 0 else "device",
                    "storage": known[0],
                    "where": known[1],
                    "filesystem": known[2],
                    "call": names[call],
                    "count": sum(b["count"] for b in seen),
                    "bytes": maps[sums][key] if sized else None,
                    "sizes": [{"from": b["min"], "count": b["count"]} for b in seen]
                    if sized
                    else None,
                }


def _number(device: str) -> int:
    """The kernel's own number of "major:minor"."""
    major, minor = device.split(":")
    return int(major) << 20 | int(minor)


def _script(pid: int) -> str:
    """The tracer's program. ``pid``: ours. The prctl is last, for what is first attaches first."""
    calls = "".join(_traced(number, call) for number, call in enumerate(CALLS))
    return f"""
tracepoint:sched:sched_process_fork {{
  if (pid == {pid}) {{ @ours[args->child_pid] = 1; }}
  if (@who[pid]) {{ @who[args->child_pid] = 1; }}
}}
tracepoint:sched:sched_process_exit {{ delete(@ours[args->pid]); delete(@who[args->pid]); }}
tracepoint:syscalls:sys_enter_setpgid /@ours[pid] && args->pid == 0/ {{ @who[pid] = 1; }}
{calls}
tracepoint:block:block_rq_issue {{
  $op = 9;
  if (strncmp(args->rwbs, "R", 1) == 0 || strncmp(args->rwbs, "FR", 2) == 0) {{ $op = 0; }}
  if (strncmp(args->rwbs, "W", 1) == 0 || strncmp(args->rwbs, "FW", 2) == 0) {{ $op = 1; }}
  if (strncmp(args->rwbs, "FF", 2) == 0) {{ $op = 2; }}
  if (strncmp(args->rwbs, "D", 1) == 0) {{ $op = 3; }}
  if ($op != 9) {{
    @requests[@phase, $op, args->dev] = hist(args->bytes);
    @volume[@phase, $op, args->dev] = sum(args->bytes);
  }}
}}
tracepoint:syscalls:sys_enter_prctl /pid == {pid} && args->option == {_PHASE}/ {{
  @phase = args->arg2;
  if (@phase == 0) {{ printf("seen\\n"); }}
}}
END {{ clear(@ours); clear(@who); clear(@at); clear(@phase); }}
"""


def _traced(number: int, call: str) -> str:
    """A call on a regular file, by the device of its file system (plus 1) while it lasts."""
    return f"""
tracepoint:syscalls:sys_enter_{call} /@who[pid]/ {{
  $file = *(curtask->files->fdt->fd + args->fd);
  $inode = $file->f_inode;
  if (($inode->i_mode & 0xf000) == 0x8000) {{ @at[tid] = (uint64)$inode->i_sb->s_dev + 1; }}
}}
tracepoint:syscalls:sys_exit_{call} /@at[tid]/ {{
  if (args->ret >= 0) {{
    @sizes[@phase, {number}, @at[tid] - 1] = hist(args->ret);
    @bytes[@phase, {number}, @at[tid] - 1] = sum(args->ret);
  }}
  delete(@at[tid]);
}}"""
