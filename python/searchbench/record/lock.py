"""One command at a time measures into a record: an advisory lock on a file in its folder.

The kernel releases it when its process ends, however it ends. The file says who holds it, and goes
with the holder.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from searchbench.errors import RecordError

LOCK = ".lock"


@contextmanager
def alone(record: Path) -> Iterator[None]:
    """While this lasts, nobody else measures into the record; RecordError if somebody does.

    Makes the folder if need be, and removes it again if nothing was put into it. Where files cannot
    be locked or the folder cannot be made, there is no lock: who writes then says what is wrong.
    """
    made = [folder for folder in (record, *record.parents) if not folder.exists()]
    held = _taken(record / LOCK)
    try:
        yield
    finally:
        if held is not None:
            with suppress(OSError):
                (record / LOCK).unlink()
            os.close(held)
        for folder in made:
            with suppress(OSError):  # there is something in it now
                folder.rmdir()


def _taken(path: Path) -> int | None:
    """The locked file; None where there is no locking."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:  # a holder that put nothing into the folder removed it meanwhile
            continue
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its holder may have removed the file since we opened it; then that lock is of nothing.
            if os.path.samestat(os.fstat(file), path.stat()):
                os.truncate(file, 0)
                now = datetime.now(UTC).isoformat(timespec="seconds")
                os.write(file, f"{os.getpid()} {socket.gethostname()} {now}\n".encode())
                return file
        except BlockingIOError:
            holder = os.read(file, 1000).decode(errors="replace")
            os.close(file)
            raise RecordError(
                f"{path.parent}: another command measures into this record: {_named(holder)}; wait "
                "for it, or name another --record"
            ) from None
        except FileNotFoundError:
            pass
        except OSError:  # a file system without locks, or a full disk
            return file
        os.close(file)


def _named(holder: str) -> str:
    """Who it is and since when, from what it wrote; it may not have come to that yet."""
    try:
        process, host, began = holder.split()
        since = datetime.fromisoformat(began).astimezone()
    except ValueError:
        return "a process that has not said its number yet"
    today = since.date() == datetime.now().astimezone().date()
    where = "" if host == socket.gethostname() else f" on {host}"
    return f"process {process}{where} since {since:{'%H:%M' if today else '%Y-%m-%d %H:%M'}}"
