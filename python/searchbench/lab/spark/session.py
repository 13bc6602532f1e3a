"""A context of Spark for one call. What Spark and its JVM say goes to a file, not to our output."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from searchbench.errors import LabError, NotInstalled, SearchbenchError

_MASTERS = re.compile(
    r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|(spark|k8s)://\S+|yarn"
)
_ATTEMPTS = 4  # at a task, as Spark has it by default on a cluster


@contextmanager
def session(master: str) -> Iterator[Any]:
    """A SparkContext at ``master``, which ends with the block.

    Settings of Spark come from where it looks for them itself (SPARK_CONF_DIR, SPARK_HOME,
    PYSPARK_SUBMIT_ARGS). NotInstalled where pyspark or Java is missing; LabError where Spark does
    not start, or a job fails: its sentence names the file in which Spark says more.
    """
    insist_possible(master)
    local = master.startswith("local")
    if local:
        # Workers have this Python, and listen on this machine only.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    handle, name = tempfile.mkstemp(prefix="searchbench-spark-", suffix=".log")
    os.close(handle)
    said = Path(name)
    doing, failed = "did not start", True
    interrupt = signal.getsignal(signal.SIGINT)
    context = None
    try:
        with _said_to(said):
            context = _context(master, local)
        doing = "could not read the logs"
        yield context
        failed = False
    except SearchbenchError:
        failed = False  # a sentence of ours, to which Spark's words add nothing
        raise
    except Exception as error:
        raise LabError(f"Spark at {master} {doing}: {_reason(error)}. What it said is in "
                       f"{said}") from error  # fmt: skip
    except KeyboardInterrupt:
        failed = False
        raise
    finally:
        with _said_to(said), suppress(Exception):
            if context is not None:
                context.stop()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)  # Spark has put its own there
        if not failed:
            said.unlink(missing_ok=True)


def insist_possible(master: str) -> None:
    """SearchbenchError where this is no master; NotInstalled where something is missing here."""
    if not _MASTERS.fullmatch(master):
        raise SearchbenchError(
            f"--spark {master} is no master of Spark; write local[2] for two cores of this "
            "machine, spark://HOST:7077, yarn or k8s://.."
        )
    if find_spec("pyspark") is None:
        raise NotInstalled("--spark needs pyspark: pip install 'searchbench[spark]'")
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else None
    if not (java.is_file() if java else shutil.which("java")):
        raise NotInstalled(
            f"--spark needs Java 17 or later, and there is no {java or 'java'}: install it "
            "(Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
        )


def _context(master: str, local: bool) -> Any:
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setMaster(_tried_again(master)).setAppName("searchbench logs")
    conf.set("spark.ui.enabled", "false").set("spark.ui.showConsoleProgress", "false")
    if local:
        conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
    return SparkContext(conf=conf)


def _tried_again(master: str) -> str:
    """In local mode Spark tries a task once, unless the master says how often."""
    found = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    return f"local[{found[1] or 1},{_ATTEMPTS}]" if found else master


@contextmanager
def _said_to(path: Path) -> Iterator[None]:
    """What this process and those that it starts write to 1 and 2 goes to the end of a file.

    A JVM that is started meanwhile keeps it: it has inherited it.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    kept = [os.dup(1), os.dup(2)]
    try:
        with path.open("ab") as file:
            for number in (1, 2):
                os.dup2(file.fileno(), number)
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number, own in zip((1, 2), kept, strict=True):
            os.dup2(own, number)
            os.close(own)


def _reason(error: BaseException) -> str:
    """The one line of an error of Spark that says why."""
    text = str(getattr(error, "java_exception", None) or error)
    if "stopped SparkContext" in text:
        return "no master answered there, or it ended the application"
    if of_python := re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception): .*$", text, re.M):
        # The traceback of a Python worker ends with it.
        inner = [line for line in of_python if not line.startswith(("org.", "java."))]
        if inner:
            return _short(inner[-1])
    found = re.search(r"most recent failure: (.*)", text)
    first = found[1] if found else text.strip().split("\n", 1)[0]
    return _short(re.sub(r"^(?:\w+\.)+\w+: ", "", first))


def _short(text: str) -> str:
    return text.strip().rstrip(".")[:300] or "it gave no reason"
