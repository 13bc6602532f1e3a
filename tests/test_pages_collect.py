"""docs/COLLECT.md is followed from an old scribe.conf to the counters of a running collector.

The collector, its client and curl are real; only ports and folders are others than on the page.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from collecting import eventually
from pages import ENV, blocks, code, section, sessions, tables
from searchbench import _core
from searchbench.lab.system.names import free_port

PAGE = "docs/COLLECT.md"
MESSAGES = 1200  # as the counter on the page has it


@contextlib.contextmanager
def shell(command: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A command line in bash, which is ended with all that it started."""
    with (folder / "stderr").open("w") as errors:
        started = subprocess.Popen(
            ["bash", "-c", command], cwd=folder, env=ENV, stdout=subprocess.PIPE, stderr=errors,
            text=True, start_new_session=True,
        )  # fmt: skip
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait(30)
        if started.stdout:
            started.stdout.close()


def session(part: str) -> tuple[str, str]:
    """The command of the page with this in it, and what the page shows below."""
    (found,) = [one for one in sessions(PAGE) if part in one[0]]
    return found


def test_every_command_of_the_page_is_run_by_these_tests() -> None:
    parts = ("collect check", "collect -c", "collect cat", "curl")
    assert [command for command, _ in sessions(PAGE)] == [session(part)[0] for part in parts]


def test_a_file_with_mistakes_is_checked_as_the_page_shows_it(tmp_path: Path) -> None:
    command, shown = session("collect check")
    lines = ["# a remark"] * 20
    at = {int(n): text for n, text in re.findall(r"scribe\.conf:(\d+): (.*)", shown)}
    assert len(at) == 2
    rotated, sized = sorted(at)
    wrong = re.search(r"no key (\w+)", at[rotated])
    value = re.match(r"\w+=\w+", at[sized])
    assert wrong
    assert value
    lines[0] = "port=1463"
    lines[rotated - 3 : rotated] = ["category=default", "type=file", f"{wrong[1]}=daily"]
    lines[rotated - 4] = "<store>"
    lines[sized - 1] = value[0]
    lines[sized] = "</store>"
    (tmp_path / "scribe.conf").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", shown)


def test_the_buffer_of_the_page_is_right(tmp_path: Path) -> None:
    _, config = blocks(PAGE, "")
    (tmp_path / "scribe.conf").write_text(config)
    command = f"{sys.executable} -m searchbench collect check scribe.conf"
    done = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "scribe.conf: right\n"


def test_the_collector_of_the_page_takes_what_the_page_sends_and_counts_it(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl here")
    port = free_port()
    config, _ = blocks(PAGE, "")
    folder = re.search(r"^file_path=(.*)$", config, re.MULTILINE)
    assert folder
    text = config.replace(folder[1], str(tmp_path / "out")).replace("1463", str(port))
    (tmp_path / "scribe.conf").write_text(text)
    messages = [f"message {n}\n" for n in range(MESSAGES)]
    (tmp_path / "query.log").write_text(messages[0])

    def here(text: str) -> str:
        return text.replace("1463", str(port))

    command, shown = session("collect -c")
    with shell(f"exec {command}", tmp_path) as collector:
        assert collector.stdout is not None
        assert collector.stdout.readline() == here(shown), (tmp_path / "stderr").read_text()
        sending, _ = session("collect cat")
        asking, counted = session("curl")

        def says() -> str:
            ask = ["bash", "-c", here(asking)]
            return subprocess.run(ask, cwd=tmp_path, capture_output=True, text=True).stdout

        with shell(here(sending), tmp_path):
            # The first line is there already; the others come while the log is followed.
            eventually(lambda: says() == counted.replace(str(MESSAGES), "1"))
            with (tmp_path / "query.log").open("a") as log:
                log.writelines(messages[1:])
            eventually(lambda: says() == counted)
        collector.send_signal(signal.SIGTERM)
        assert collector.wait(30) == 0
    (file,) = (tmp_path / "out" / "searchd").glob("searchd-*_00000")
    assert file.read_text() == "".join(messages)


# A value that fits, where it is not a number.
VALUES = {
    "yes": ("new_thread_per_category", "must_succeed", "fsync", "use_hostname_sub_directory",
            "rotate_on_reopen", "write_category", "write_meta", "write_stats", "create_symlink"),
    "std": ("fs_type",),
    "daily": ("rotate_period",),
    "127.0.0.1": ("host",),
}  # fmt: skip


def mistakes(folder: Path, lines: list[str]) -> list[str]:
    path = folder / "keys.conf"
    path.write_text("\n".join(lines) + "\n")
    return [message for *_, message, _, fatal in _core.collect_check(str(path)) if fatal]


def test_every_key_of_the_tables_is_known_where_the_page_says_it_stands(tmp_path: Path) -> None:
    value = {key: value for value, keys in VALUES.items() for key in keys}
    found = [
        [f"{key}={value.get(key, '1')}" for row in table for key in code(row[0])]
        for table in tables(section(PAGE, "Keys"))[:3]
    ]
    assert [len(keys) for keys in found] > [9, 6, 14]
    top, of_every, of_files = found
    named = ("category=", "categories=", "type=")
    own = [line for line in of_every if not line.startswith(named)]
    store = ["<store>", "category=a", "type=thriftfile", *own, *of_files, "</store>"]
    assert mistakes(tmp_path, [*top, *store]) == []
    (said,) = mistakes(tmp_path, [*top, "prot=1", *store])
    assert "there is no key prot" in said
