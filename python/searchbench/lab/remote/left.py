"""What is made on a host that is reached by ssh, as a ledger has it.

The supervisor there ends what it started and removes its folder by itself. This is for the case
that it and its guard were killed, or that the machine was.
"""

from __future__ import annotations

import io
import subprocess
import time
from typing import Any

from searchbench.lab.fleet.frames import NotOurs, Receiver
from searchbench.lab.place.things import PREFIX, Thing
from searchbench.lab.remote.link import command, source

_TIMEOUT_S = 40.0
_AGAIN_S = 30.0  # a host that did not answer is not asked again before
_silent: dict[str, tuple[float, str]] = {}
_gone: set[str] = set()  # folders that are known to be gone; none comes again under its name


class Remote(Thing, frozen=True, tag=True):
    """A folder of ours on a host, and whatever runs there that was started with it.

    ``ssh``: the command that reaches hosts; ``host``: its name as ssh knows it.
    """

    ssh: str
    host: str
    path: str

    def __str__(self) -> str:
        """As for a person."""
        return f"folder {self.path} on {self.host}, reached by ssh"

    def there(self) -> bool:
        """Is it there, or anything that was started with it? True where the host does not say."""
        if self.path in _gone:
            return False
        found, why = self._asked("there")
        there = bool(why or found["there"])
        if not there:
            _gone.add(self.path)
        return there

    def undo(self) -> str:
        """End what still runs, and remove the folder."""
        if not self.path.rpartition("/")[2].startswith(PREFIX):
            return f"{self} is left alone: it does not have our name"
        if self.path in _gone:
            return ""
        found, why = self._asked("clean")
        why = why or str(found["left"])
        if not why:
            _gone.add(self.path)
        return f"{self}: {why}" if why else ""

    def _asked(self, what: str) -> tuple[dict[str, Any], str]:
        """What the host says; why it says nothing."""
        at, why = _silent.get(self.host, (0.0, ""))
        if why and time.monotonic() - at < _AGAIN_S:
            return {}, why
        try:
            done = subprocess.run(
                command(self.ssh, self.host, what, self.path), input=source(),
                capture_output=True, timeout=_TIMEOUT_S, check=False, process_group=0,
            )  # fmt: skip
            words = " | ".join(done.stderr.decode(errors="replace").split("\n")).strip(" |")[-300:]
            why = f"ssh ended with exit code {done.returncode}: {words or 'it said nothing'}"
            receiver = Receiver(io.BytesIO(done.stdout))
            receiver.greeting()
            message = receiver.next()
        except OSError as error:
            why, message = f"ssh cannot be started: {error.strerror}", None
        except subprocess.TimeoutExpired:
            why, message = f"it did not answer within {_TIMEOUT_S:.0f} s", None
        except NotOurs:
            message = None
        if message is None:
            why += "; run `searchbench places clean` when that machine answers again"
            _silent[self.host] = (time.monotonic(), why)
            return {}, why
        _silent.pop(self.host, None)
        return dict(message.fields), ""
