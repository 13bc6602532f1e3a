"""``searchbench load``: what load does a running system sustain?"""

from __future__ import annotations

import sys
from pathlib import Path

from searchbench.cli.flags import Flag, Json, Port, Promises, Texts


def load(
    *targets: str,
    requests: Path | None = None,
    form: str = "auto",
    classes: str | None = None,
    clients: str | None = None,
    rate: str | None = None,
    replay: float | None = None,
    find_capacity: Flag = False,
    slo: Promises = None,
    abort: Flag = False,
    effort: float = 1.0,
    seconds: float | None = None,
    warmup: float | None = None,
    pause: float = 0.0,
    repeat: int = 1,
    think: float = 0.0,
    arrivals: str = "poisson",
    connections: int | None = None,
    order: str | None = None,
    spread: str = "keep",
    timeout: float = 10.0,
    cache_hit: float | None = None,
    cache_entries: int | None = None,
    cache_law: str = "uniform",
    engine: str | None = None,
    study: Path | None = None,
    system: str | None = None,
    captures: int = 200,
    machines: str | None = None,
    ssh: str = "ssh",
    client_command: str = "searchbench-client",
    idle: str = "hybrid",
    realtime: Flag = False,
    cpus: str | None = None,
    seed: int | None = None,
    remote: Flag = False,
    prometheus: Port = None,
    ca: Path | None = None,
    insecure: Flag = False,
    cert: Path | None = None,
    key: Path | None = None,
    server_name: str | None = None,
    header: Texts = None,
    compressed: Flag = False,
    record: Path | None = None,
    report: bool = True,
    as_json: Json = False,
) -> int:
    """Measure what load running systems sustain, and write the report.

    What is on record is not measured again. To measure it again, name another --record.

    Exits with 1 if a step could not be driven, if a server stopped answering or answered no request
    of a step well, or if a promise of --slo is broken (with --find-capacity: at every rate driven);
    otherwise with 3 if it cannot be told whether a promise is kept (with --find-capacity: at any
    rate). Void steps do not affect the status otherwise.

    Parameters
    ----------
    targets
        Where to send the load: http://127.0.0.1:10041, https://, mysql://, postgres://,
        sphinxql://, sphinx://; over TLS mysql+tls:// and so on. Separate several systems by spaces,
        and several addresses of one system by commas. Put a name before it with =, as in
        new=http://...
    requests
        What to send: a file of paths, of JSON (drnbench's forms too), of SQL statements, or a
        production log.
    form
        The form of the file, if its name and content do not show it: paths, json, jsonl, sql,
        access, groonga, sphinxql, mysql.
    classes
        Class the requests, and give every figure for each class: path, shape (as searchbench logs
        classes them), words, or parameter:NAME. Requests may also name their class themselves (the
        key class of JSON lines, named groups of drnbench). With --study: as of [queries].
    clients
        A closed loop with this many clients; 1 by default, if no other load is given. For several
        steps: 1,2,4,8, or 1:20:2 (from, to, by; the last number is always driven).
    rate
        An open loop of this many requests a second; several steps as with --clients.
    replay
        Replay the log at this multiple of its own speed: 1 sends requests at the log's own times.
    find_capacity
        Search for the greatest rate that keeps the promise of --slo.
    slo
        A promise, such as 'p99 < 50ms, errors < 0.1%'. Each step is held to it; with
        --find-capacity, the greatest rate that keeps it is searched for. Of classes:
        'autocomplete: p99 < 50ms; search: p99 < 200ms; errors < 0.1%'. May be given several times.
    abort
        End the run as soon as a step has surely broken a promise.
    effort
        With --find-capacity: multiplies the length of the trials. Below 0.3 the answer is rough:
        its interval contains the truth in fewer than 95 % of cases, and it does not claim 95 %.
        Below 1, so is that of a server whose response times vary much.
    seconds
        Length of the measured window of each step; 10 by default. A replay lasts as long as its
        log.
    warmup
        Seconds of warm-up before the window; 1 by default. A replay has none.
    pause
        Seconds of silence between steps.
    repeat
        Drive every step this many times, to see how much the machine itself varies.
    think
        Closed loop: seconds between an answer and the next request.
    arrivals
        Open loop: poisson (independent users) or constant (a metronome).
    connections
        Open loop: the number of connections; 256 by default. A request that finds none free waits,
        and the wait is shown as backlog.
    order
        The order of the requests: stretches (10 lines in a row, then 10 from elsewhere in the log;
        the default), logged (in the log's order, from a line that the seed draws; the default of a
        replay), shuffled, or drawn (at random).
    spread
        Several addresses of a system: keep (each client keeps to one) or round (requests go round
        all of them).
    timeout
        Seconds after which a request without an answer counts as a timeout.
    cache_hit
        Draw the requests so that the server's cache answers this share of them (0 to 1).
    cache_entries
        How many answers that cache holds, if the server does not report it.
    cache_law
        The popularity of the requests: uniform, zipf, or zipf:0.8 for an exponent other than 1.
    engine
        The system's engine, if it is not recognised; none: do not decode its replies.
    study
        Take the queries of this study, compiled for one of its systems.
    system
        Which system of the study.
    captures
        How many distinct requests to send once beforehand, so that answers under load can be
        compared with answers alone.
    machines
        Send the load from these machines, reached over ssh: HOST,HOST (localhost is this one).
    ssh
        How these machines are reached, as in 'ssh -p 2222 -i key'.
    client_command
        The command that starts the client on these machines, if it is not on the path of their
        shell.
    idle
        How the measuring loop waits: block (sleeps), spin (keeps its core busy), or hybrid (sleeps,
        and spins shortly before something is due).
    realtime
        Ask the kernel to let the measuring loop run first (real-time priority).
    cpus
        Processors for the measuring loop, such as 2,3.
    seed
        Seed of everything that is random. By default each run draws its own order of requests and
        their arrivals, so that the differences between runs include those between draws. To repeat
        a draw, give its seed.
    remote
        Allow addresses of other machines. Make sure that you may put load on them.
    prometheus
        Serve rate, outcomes, times and lateness for Prometheus at this port of loopback while it
        runs; 0 for any port.
    ca
        TLS: certificates (PEM) to trust instead of the system's authorities.
    insecure
        TLS: accept any certificate; the report says so.
    cert
        TLS: our own certificate (PEM), for servers that ask for one.
    key
        TLS: its private key (PEM).
    server_name
        TLS: the name that the server's certificate is for, if it is not the host of the address.
    header
        A header of every request, 'Name: value'; may be given several times. '${NAME}' takes a
        value from the environment. The record keeps the header's name, and its value only if it is
        known not to be secret.
    compressed
        Ask for replies in gzip; bytes then counts the compressed bytes.
    record
        The folder of the record; records/load-TIME by default.
    report
        Write the report at the end.
    as_json
        Print one object for each step.
    """
    given = dict(locals())  # the fields of Asked, and what is done with the record
    from searchbench.measure.load import Asked
    from searchbench.terminal.answer import carry_out

    done = {option: given.pop(option) for option in ("prometheus", "record", "report", "as_json")}
    return carry_out(Asked(**given, command=tuple(sys.argv[1:])), **done)
