"""``searchbench drnbench``: the options and the CSV of drnbench-request-response.

A thin door: the same option names and files, the same columns in the same order; behind it is
``searchbench load``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from searchbench.cli.flags import Flag

_USUAL_WAIT_S = 0.01
_HTTP = "http"


def drnbench(
    *,
    duration: float = 30.0,
    wait: float = _USUAL_WAIT_S,
    interval: float = 10.0,
    start_n_clients: int = 0,
    end_n_clients: int = 1,
    step: int = 1,
    n_slow_requests: int = 5,
    n_fast_requests: int = 5,
    mode: str = _HTTP,
    request_patterns_file: Path | None = None,
    default_hosts: str = "localhost",
    default_host: str | None = None,
    default_port: int = 80,
    default_path: str = "/",
    default_method: str | None = None,
    default_timeout: float = 5.0,
    output_path: Path = Path("drnbench-result.csv"),
    warmup: float = 0.0,
    name: str | None = None,
    remote: Flag = False,
    record: Path | None = None,
    report: bool = True,
    seed: int | None = None,
) -> int:
    """Do what drnbench-request-response does, with its options, its files and its CSV.

    Parameters
    ----------
    duration
        Seconds of each step.
    wait
        Seconds between an answer and the client's next request; 0: no wait. drnbench's 0.01 keeps
        every client below 100 requests a second.
    interval
        Seconds of silence between steps.
    start_n_clients
        Clients of the first step (0 means 1, as in drnbench).
    end_n_clients
        Clients of the last step.
    step
        How many clients each step adds.
    n_slow_requests
        How many of the slowest requests are listed.
    n_fast_requests
        How many of the fastest requests are listed.
    mode
        Only http is supported.
    request_patterns_file
        Paths, or JSON in any of drnbench's forms.
    default_hosts
        Hosts of one system, separated by commas. Each client keeps to one host, in turn.
    default_host
        The same, for one host.
    default_port
        Their port.
    default_path
        The one path to send, if there is no file of patterns.
    default_method
        The method of patterns that name none; GET by default.
    default_timeout
        Seconds after which a request without an answer counts as a timeout.
    output_path
        Where the CSV is written.
    warmup
        Seconds of warm-up before each step, not measured; drnbench has none.
    name
        The system's name on the page.
    remote
        Allow hosts that are not this machine.
    record
        The folder of the record; records/load-TIME by default.
    report
        Write the page with the two graphs.
    seed
        Seed of everything that is random. By default each run draws its own order of requests and
        their arrivals, so that the differences between runs include those between draws. To repeat
        a draw, give its seed.
    """
    from searchbench.errors import SearchbenchError
    from searchbench.measure.load import Asked
    from searchbench.report.drnbench import listed, write_csv
    from searchbench.terminal.answer import carry_out

    if mode != _HTTP:
        raise SearchbenchError(
            f"--mode {mode}: only http is spoken here; drnbench's other modes are its own messages "
            "to a Droonga engine: load its HTTP server"
        )
    hosts = (default_host or default_hosts).split(",")
    urls = ",".join(f"http://{host}:{default_port}" for host in hosts)
    if request_patterns_file is None:
        urls += default_path
    if wait == _USUAL_WAIT_S:
        sys.stderr.write(
            "each client waits 0.01 s after every answer, as drnbench's do; --wait 0 for none\n"
        )

    def finish(found: Any, judgement: Any) -> None:
        write_csv(output_path, found, judgement)
        sys.stdout.write(listed(found, n_slow_requests, n_fast_requests))
        sys.stdout.write(f"\n{output_path} has the steps, as drnbench writes them\n")

    return carry_out(
        Asked(
            targets=[f"{name}={urls}" if name else urls],
            requests=request_patterns_file,
            clients=",".join(map(str, counts(start_n_clients, end_n_clients, step))),
            seconds=duration,
            warmup=warmup,
            pause=interval,
            think=wait,
            order="shuffled",
            timeout=default_timeout,
            method=default_method,
            remote=remote,
            seed=seed,
            command=tuple(sys.argv[1:]),
        ),
        record,
        report=report,
        finish=finish,
    )


def counts(start: int, end: int, step: int) -> list[int]:
    """The clients of each step as drnbench has them: 0, 2, 4 ... 20 begins with 1 for the 0."""
    from searchbench.errors import SearchbenchError

    if step < 1 or end < start:
        raise SearchbenchError(
            f"from {start} clients to {end} by {step}: the step must be 1 or more, and the end "
            "not below the start"
        )
    return list(dict.fromkeys(max(1, n) for n in range(start, end + 1, step)))
