"""The seam between Python and the measuring core: its specification.

Only bytes, integers and columns cross it. A test checks this stub against the module.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, final

from numpy.typing import NDArray
from typing_extensions import Buffer

# numpy declares its arrays as buffers to type checkers only from Python 3.12 on.
_Column: TypeAlias = Buffer | NDArray[Any]

version: str
profile: Literal["release", "debug"]

# The outcome of a request is an index into this: ok, http_error (status 400 and above),
# engine_error (the engine's own protocol said error), unsupported, partial, timed_out, refused,
# reset, truncated, malformed, unfinished (in flight when the drive ended).
OUTCOMES: tuple[str, ...]

# numpy dtype description of one sample, 64 bytes, little-endian, in this order:
# due, free, connect, sent, first_byte, done: i8, nanoseconds since the start, -1 where it never
# happened;
# request: u4 (index into the prepared requests); bytes: u4 (received); host_low: u4;
# connection: u2; outcome: u1; host_high: u1.
# host_high << 32 | host_low is the engine's own processing time in nanoseconds (40 bits, all
# ones where the wire does not carry one).
# connect: when opening the connection began over which this request was sent, if the request is
# the first over it, else -1; -1 too where the connection was opened before the start, which is no
# part of the drive. free of that request is when the connection was open (greeting included), so
# the connect time is free - connect. In an open loop it may lie before due. Of a request that was
# never sent because its connection did not open: when that attempt began (free is -1).
SAMPLE_DTYPE: list[tuple[str, str]]

# numpy dtype description of one exchange of a request, 32 bytes, little-endian: sent, first_byte,
# done: i8, as those of a sample; sample: u4 (index of the request's); exchange: u4 (number within
# what is timed of it, from 0).
EXCHANGE_DTYPE: list[tuple[str, str]]

# The formats of query logs that are read, and what a column of a log can be.
LOG_FORMATS: tuple[str, ...]
LOG_ROLES: tuple[str, ...]
# Files are cut into blocks of so many bytes.
LOG_BLOCK_BYTES: int
# Notes on a log: how many of its lines are very long, and were cut because they were too long.
LOG_LONG_LINES: str
LOG_CUT_LINES: str
# That a packed file is damaged, and was read up to there; that bytes of it were changed, so it is
# not known from where on.
LOG_DAMAGED: str
LOG_CORRUPT: str
# Notes on hours in which clocks are set: no zone is known and the clock went back as if it were set
# back; entries of the first passing of an hour that passed twice, and of the second. And of times
# whose zone is letters that several zones share.
LOG_HOUR_BACK: str
LOG_LETTERS: str
# That Solr wrote a request because it was slow, beside its line of every request.
LOG_SLOW_REQUEST: str
# That entries are left out because of when they were, or because they have no time.
LOG_OUTSIDE: str
LOG_TIMELESS: str
LOG_TWICE: str
LOG_SECOND: str

@final
class Log:
    """What was counted of query logs: tables of columns that add up (named in ``logs/counts.py``).

    ``distinct``: queries that are counted exactly; above, those asked least are dropped, and the
    table ``dropped`` says by how much a count may be too low.
    """

    def __new__(cls, distinct: int = 10000000) -> Log: ...
    # ``sources``: path ("-": standard input), what its server is called, its format ("": told by
    # its content), bytes to pass over (unpacked). ``zone``: (from which instant in seconds UTC,
    # seconds east), ascending; empty: local times stay as written; ``zones``: those of single
    # servers. ``unit_ns``: what a whole number that is a duration in an access log counts; 0:
    # microseconds, and noted. ``parameters``: of a path, that hold words. ``columns``: (name, role,
    # unit or ""). ``line``: a format string, for the format "line". ``within``: (first nanosecond,
    # that after the last) of entries that are counted; others are noted. ``threads``: 0 is one a
    # core.
    # ``keep_tail``: a last line without an end is not read, nor is an entry that may go on.
    # ``opens``: for each source what the last one left open: (state of its reader, lines of the
    # file before that were not read, lines that were not read, time of its last entry, second of
    # its last stamp); the lines are read again. ``follows``: for each source whether it goes on
    # where the one before it ended: 0 no, 1 with a line of its own, 2 perhaps within a line or an
    # entry. ``parts``: for each source None, or (the length that the file had, number of its first
    # block, number of the block after the last): only these are read. Blocks count from the bytes
    # passed over; a file whose lines join is read whole. ``on_tick(bytes)`` is called about ten
    # times a second; what it raises ends the reading. For each source a dict: path, server,
    # format, refused (why it was not read, or ""), bytes, skipped_bytes, lines, entries, unread,
    # examples [(line, why, beginning)], other_formats [(format, how many of the lines that were not
    # read look like it, the first of them)], notes {what: how often}, longest_line, back (entries
    # more than a minute before the one above), clock (time of the last entry, second of the last
    # stamp), which an ``open`` of the next reading may have; with ``parts`` also span_ns (the first
    # time and the last one, None where there is none), with ``keep_tail`` also open.
    # ValueError with a sentence where no source is a log, or one breaks off: nothing is counted.
    def read(
        self,
        sources: Sequence[tuple[str, str, str, int]],
        *,
        zone: Sequence[tuple[int, int]] = (),
        zones: Sequence[tuple[str, Sequence[tuple[int, int]]]] = (),
        unit_ns: int = 0,
        parameters: Sequence[str] = (),
        columns: Sequence[tuple[str, str, str]] = (),
        line: str = "",
        within: tuple[int, int] | None = None,
        threads: int = 0,
        keep_tail: bool = False,
        parts: Sequence[tuple[int, int, int] | None] = (),
        opens: Sequence[tuple[bytes, bytes, bytes, int | None, int | None]] = (),
        follows: Sequence[int] = (),
        on_tick: Callable[[int], object] | None = None,
    ) -> list[dict[str, Any]]: ...
    # What readings left open of sources (server, format), counted as if nothing more came. For each
    # a dict, as of ``read``, without what stands before lines.
    def read_open(
        self,
        sources: Sequence[tuple[str, str]],
        opens: Sequence[tuple[bytes, bytes, bytes, int | None, int | None]],
        *,
        zone: Sequence[tuple[int, int]] = (),
        zones: Sequence[tuple[str, Sequence[tuple[int, int]]]] = (),
        unit_ns: int = 0,
        parameters: Sequence[str] = (),
        columns: Sequence[tuple[str, str, str]] = (),
        line: str = "",
        within: tuple[int, int] | None = None,
    ) -> list[dict[str, Any]]: ...
    # By table, by column: bytes of u64, or (bytes, bytes of u64: where each value ends). The log is
    # empty afterwards: its memory becomes that of the tables.
    def tables(self) -> dict[str, dict[str, bytes | tuple[bytes, bytes]]]: ...
    # Tables as ``tables`` gives them, added as if what they count were read again. ValueError names
    # what is wrong in them.
    def add(self, given: dict[str, dict[str, Any]], /) -> None: ...

def class_of_request(method: str, text: str, dialect: str = "mysql") -> str:
    """The class that a request has in a log: a path with the names of its parameters (``method``
    before it), or a statement of SQL without its values. ``dialect``: "mysql", "postgresql" or
    "sphinxql", else ValueError."""

# The entries of logs in the order of the sources and of their lines; arguments as of ``Log.read``.
# Columns as bytes, little-endian: at_ns i64 (least i64: unknown), ns u64 (greatest: unknown),
# resolution_ns u32, words u32 (greatest: unknown), kind u8 (0 a search, 1 a part of one, 2 another
# entry; + 4: failed; + 8: answered in part), asked u32 (number of what was asked), source u32. Of
# what was asked ``parts`` names five texts (format, index, class, text, around), which stand in
# ``bytes`` one after another, ``ends`` (u64) says where each ends. Then what became of each source,
# as ``Log.read`` has it. ValueError where no source is a log, or one breaks off.
def log_entries(
    sources: Sequence[tuple[str, str, str, int]],
    *,
    zone: Sequence[tuple[int, int]] = (),
    zones: Sequence[tuple[str, Sequence[tuple[int, int]]]] = (),
    unit_ns: int = 0,
    parameters: Sequence[str] = (),
    columns: Sequence[tuple[str, str, str]] = (),
    line: str = "",
    within: tuple[int, int] | None = None,
    follows: Sequence[int] = (),
    on_tick: Callable[[int], object] | None = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]: ...
def log_went_back(from_ns: int, to_ns: int) -> bool | None:
    """Whether the clock went back between two entries that follow each other: None if not, else
    whether it did as clocks are set back."""

def look_at_ends_of_log(
    path: str,
    *,
    server: str = "",
    named: str = "",
    before: bytes = b"",
    zone: Sequence[tuple[int, int]] = (),
    zones: Sequence[tuple[str, Sequence[tuple[int, int]]]] = (),
    unit_ns: int = 0,
    parameters: Sequence[str] = (),
    columns: Sequence[tuple[str, str, str]] = (),
    line: str = "",
    within: tuple[int, int] | None = None,
) -> tuple[str, bool, int | None, bool, bool, bool]:
    """The ends of a file, which may go on with a line that was cut (``before``: as far as it is
    there): its format ("": none), whether its lines must come in order, the time of
    its first entry, whether its first line begins an entry, whether its first stamp is in an hour
    that passed twice, whether a line at its end waits for another."""

def look_at_log(
    path: str, *, named: str = "", keep_tail: bool = False
) -> tuple[str, str, int | None, bool]:
    """What a file is before it is read: its format ("": none; ``named``: as the user says), why it
    cannot be read, how many of its bytes there are to read (None: packed, or no plain file), and
    whether its lines must come in order."""

def generate_log(
    path: str,
    *,
    lines: int,
    server: int,
    indexes: int,
    distinct: int,
    seed: int,
    start_s: int,
    per_s: float,
) -> None:
    """Write a plain log of Sphinx with the marginals that were published for 453 million queries.

    ``path``: "-" is standard output. ``server``: its number, which draws other lines.
    """

def generated_indexes(indexes: int) -> list[tuple[str, int]]:
    """Of each index of a generated log its name and its bytes."""

def query_hashes(indexes: list[bytes], texts: list[bytes]) -> bytes:
    """Of each text, for each index, the hash that this query of this index has in a table of
    counts (u64, one index after another).
    """

@final
class Requests:
    """Prepared requests: one arena of bytes and where each exchange ends.

    ``arena``: the bytes of all exchanges one after another, or the path of a file that holds
    them (mapped, never read whole). ``exchange_ends``: u64, end offset of each exchange.
    ``request_ends``: u32, for each request the index after its last exchange.
    ``untimed``: they are operations: of each request how many of its exchanges come first as
    set-up, and how many last as clean-up (u32, u32). Its ``sent`` and ``done`` are of what is
    between, as are ``bytes`` and the kept reply; what of it fails ends it, but for the clean-up. In
    a closed loop it is due when it is set up. Without it a request goes on whatever its exchanges
    come to.
    ValueError where an offset is out of order or out of range.
    """

    def __new__(
        cls,
        arena: Buffer | str,
        exchange_ends: _Column,
        request_ends: _Column,
        untimed: tuple[_Column, _Column] | None = None,
    ) -> Requests: ...
    def __len__(self) -> int: ...

@final
class Trace:
    """What happened: raw samples, replies that were kept, and the loop's own accounting."""

    # Bytes of len(self) samples of SAMPLE_DTYPE, ordered by thread and then by completion;
    # supports the buffer protocol (numpy.frombuffer(trace, SAMPLE_DTYPE)).
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    # (index of the sample, reply bytes as received) for each kept reply. Of a request with
    # several exchanges, the replies follow each other in the bytes.
    def replies(self) -> list[tuple[int, bytes]]: ...
    # (index of the sample, number of pieces) of each kept reply, in the same order; and one piece
    # of the n-th of them. The memory of what comes before it is given back, where that was spilled.
    def kept(self) -> list[tuple[int, int]]: ...
    def piece(self, reply: int, piece: int) -> bytes: ...
    # Bytes of EXCHANGE_DTYPE, in the order of the samples, where ``exchange_times`` was given: all
    # exchanges that were sent of what is timed. One that was not answered has no ``done``.
    def exchanges(self) -> bytes: ...
    # The first ``samples`` samples were read for now: of those that were spilled the memory is
    # given back. They can be read again at any time.
    def give_back(self, samples: int) -> None: ...
    # JSON: started_unix_ns (the zero of the clock), elapsed_ns, cut_short (was it ended by
    # ``on_tick``?), clock ("tsc" | "monotonic"), clock_drift_ppm, threads: [{cpu, user_ns,
    # system_ns, run_wait_ns, voluntary_switches, involuntary_switches, minor_faults, priority}],
    # connects, reconnects, refused_connects, handshakes (of TLS) and how many of them were resumed,
    # tls (version and cipher of the first, or null), partial_sends, unsent (slots due before the
    # end that never got a connection), unsolicited (bytes that no request asked for), pauses and
    # pause_ns (waits before trying again after a connection that nothing came of), greeting_failed
    # (why the first login or handshake of TLS that failed did, or null), spilled_bytes (samples
    # written to ``spill`` during the drive), spill_failed (why no more of them, or of the replies,
    # were, or null), statuses
    # ({status: how many whole replies had it}, where the protocol has one, over the whole drive),
    # clients (closed loop: how many began at least one request), targets: [{address, connects,
    # reconnects, refused_connects, handshakes, resumed}] in the order given, which add up to those
    # of the whole.
    def accounting(self) -> str: ...

def drive(
    target: tuple[str, int] | Sequence[tuple[str, int]],
    wire: Literal["frames", "http", "mysql", "sphinxql", "sphinx", "postgres"],
    requests: Requests,
    *,
    login: tuple[str, str, str] | None = None,
    whole: Sequence[bytes] = (),
    prelude: Sequence[bytes] = (),
    tls: tuple[Sequence[str], str | None, tuple[str, str] | None, bool] | None = None,
    sequence: _Column,
    client_starts: _Column | None = None,
    due_ns: _Column | None = None,
    connections: int,
    think_ns: int = 0,
    repeat: bool = False,
    stop_ns: int | None = None,
    stop_after: int | None = None,
    timeout_ns: int = 10_000_000_000,
    request_targets: _Column | None = None,
    request_timeouts_ns: _Column | None = None,
    remote: bool = False,
    capture_every: int = 0,
    exchange_times: bool = False,
    cpus: Sequence[int] = (),
    idle: Literal["block", "hybrid", "spin"] = "hybrid",
    realtime: bool = False,
    start_unix_ns: int | None = None,
    spill: str | None = None,
    spill_after_bytes: int = 268435456,
    on_tick: Callable[[int, int, bytes], object] | None = None,
) -> Trace:
    """Drive prepared requests at a target and record every one of them.

    ``target``: host and port, or several of them. Names are resolved once, before the start; an
    IPv6 address may be in square brackets. ``remote``: addresses that are not loopback are refused
    unless it is True. ``request_targets``: u16, for each prepared request which of the targets it
    is sent to (None: all to the first). ``sequence``: u32, request indices in the order to be sent.

    ``wire``: what the exchanges are, and how their replies are framed. "frames": frames of
    FORMATS.md; "http": HTTP/1.1 requests; "mysql": COM_QUERY or COM_STMT_EXECUTE packets with their
    headers (MariaDB, MySQL, Manticore; the result sets of several statements are one reply, and so
    are the replies to several commands of one packet each in one exchange); "sphinxql": the same of
    searchd, where a reply that counts warnings (an agent that did not answer, a query that was
    changed) is ``partial``; "sphinx": commands of Sphinx's native API (the handshake and PERSIST
    are the core's; a warning of the reply or of its first query is ``partial``, an error of either
    ``engine_error``, and of a batch the later queries are not looked at); "postgres": Query
    messages, each with the CopyData and CopyDone that its ``COPY .. FROM STDIN`` asks for, or those
    of the extended protocol with a Sync, whose reply goes to the last ReadyForQuery. Rows are
    passed over, never read.
    ``whole``, for "http": byte strings (1 to 512 bytes) that each stand in the first 512 bytes of
    the body of a whole answer, without the framing of chunks; a reply of status 2xx that lacks one
    is ``partial``.
    ``prelude``, for "mysql" and "postgres": exchanges that are sent once on each connection after
    its login, each after the reply to the one before (settings, prepared statements); where one is
    refused the connection failed as in a login. In "mysql" an exchange may be a COM_STMT_PREPARE;
    the server must number statements of a connection from 1 (else unsupported).
    ``login``: user, password and database, for "mysql" and "sphinxql" (by default all empty) and
    "postgres" (needs a user); "" is none. mysql_native_password and the short way of
    caching_sha2_password; cleartext, MD5 and SCRAM-SHA-256. A login that is refused is the outcome
    of each request (engine_error; unsupported where the server asks for what is not spoken), with
    the server's words in the accounting.
    ``tls``: for "http", "mysql", "sphinxql" and "postgres": for each target the name that its
    certificate must be for (and that it is asked by, SNI); authorities to trust, PEM (None: the
    system's); our certificate and its key, PEM; and whether any certificate will do. TLS 1.2 and
    1.3. Handshakes are part of connect time, sessions are resumed where the server lets us. What
    fails is the outcome of each request (refused; malformed where the other side speaks no TLS;
    unsupported where its protocol has TLS and it does not), with a sentence in the accounting.
    ``bytes`` of a sample are those of the protocol, without what TLS adds; the long way of
    caching_sha2_password works over TLS.

    Closed loop (``due_ns`` is None): ``client_starts``, u32 of length connections + 1, gives each
    client its run ``sequence[starts[c]:starts[c+1]]``; after a reply and ``think_ns`` it sends its
    next; at the end of its run it begins again if ``repeat``, else it is done. ``due`` of a request
    is the end of the think time. ``connections`` is the number of clients: each holds one
    connection to each target that its own run asks, and none to others, so that with one target
    (and no empty run) the server sees exactly that many. A sample's ``connection`` is the client
    where there is one target; with several, the connections are numbered client by client, each
    client's by target.

    Open loop (``due_ns`` given, i64, as long as ``sequence``, never decreasing): each request
    is sent at its due time on any free connection to its target; if none is free it queues, first
    in first out for that target and without holding up requests to others, and is never dropped.
    ``connections`` is the size of the pool of each target that is asked at all; a sample's
    ``connection`` is target * connections + the place in the pool. A slot's thread is slot modulo
    threads, fixed beforehand.

    A connection that ends or fails is opened again for its next request (open loop: before it is
    due, if there is time), and counted; no request is ever sent twice. One that cannot be used
    again after a whole reply, and that the server has not ended yet, is reset rather than ended,
    so that no local port waits for a minute: servers without keep-alive can be driven for as long
    as one likes. Redirects are replies like others and are not followed.

    ``stop_ns``: nothing is begun after it (open loop: slots due at or after it are left out);
    ``stop_after``: nothing is begun after that many were (closed loop, over all clients).
    What is in flight is waited for, at most ``timeout_ns``, then recorded as unfinished or
    timed_out. ``request_timeouts_ns``: i64, for each prepared request its own in place of
    ``timeout_ns`` (at most 63 different ones); both count from ``sent``, and before that from when
    opening the connection began. ``capture_every`` n keeps the reply of every n-th request (1: of
    all).
    ``cpus``: one pinned thread each; empty: one thread, not pinned.
    ``start_unix_ns``: the zero of the clock at this absolute time (CLOCK_REALTIME, nanoseconds
    since 1970), at most an hour ahead, so that several machines begin together; connections are
    opened at once and wait for it. None: as soon as all are open. ValueError where it has passed
    when they are open.
    ``spill``: a folder. Once the samples held in memory exceed ``spill_after_bytes`` (all threads
    together), those that are finished go to a nameless file there while the drive runs; the trace
    reads the same. Where the disk is full they stay in memory (``spill_failed``).
    ``on_tick(completed, elapsed_ns, recent)`` is called about ten times a second in the calling
    thread; ``recent`` are the samples that each thread finished last (SAMPLE_DTYPE, at most 4,096
    a thread, each thread's in order), some of which the call before may have had too. False from it
    ends the drive at once and keeps its trace: what is in flight is unfinished, and slots that were
    not yet due are left out (``cut_short``). Before the start it does nothing.

    Raises ValueError for arguments that do not fit together, OSError where the machine refuses
    (naming the limit), KeyboardInterrupt as soon as the threads have stopped. A target that
    refuses is no exception: it is the outcome of each request.
    """

def collect_serve(path: str, host: str | None, port: int | None) -> None:
    """Be a Scribe server by the configuration in ``path`` until SIGTERM, SIGINT or ``shutdown``.

    ``host`` and ``port`` come before those of the file; port 0 is any free one. Once it serves it
    prints ``listening on HOST:PORT``. ValueError with a line for each mistake of the file, OSError
    where the machine refuses, or where messages could be neither kept nor saved at the end.
    """

def collect_check(path: str) -> list[tuple[int, str, str, str, bool]]:
    """The mistakes of a configuration: line (from 1; 0: the whole file), key, what is wrong, what
    to do, and whether it prevents a start. OSError where the file cannot be read.
    """

def collect_cat(host: str, port: int, category: str, whole: bool, patience_s: float) -> int:
    """Send standard input to a category, each line with its newline as a message, or all as one.

    Waits while the server says TRY_LATER, up to ``patience_s`` for one call. How many messages
    were sent. OSError where the server is not there or does not take them.
    """

def serve_library_host(argv: Sequence[str]) -> int:
    """Be a library host until told to stop; ``argv`` as FORMATS.md says. Returns the exit code."""

def toml_spans(text: str) -> list[tuple[tuple[str, ...], int, int, int, int]]:
    """Place of every key of a TOML text: (path, key line, key column, value line, value column).

    Lines and columns count from 1, columns in characters. Array elements have their index as a
    path part. ValueError with ``line:column: message`` where the text is not TOML.
    """

def toml_set(text: str, path: Sequence[str], value: str) -> str:
    """A TOML text with one value set; comments and all else stay as they are.

    ``path`` as in ``toml_spans``. Tables that are missing are made; what is put into an array goes
    to its end. ``value``: one TOML value. ValueError where either text is not TOML, and where the
    path leads through what is no table.
    """
