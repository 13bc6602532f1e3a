"""Jobs: what an engine does once, such as an import or a backup. Declared, never done here.

``lab`` does the work of a job, times it, and looks at what it left; see ``lab/conduct/jobs.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from searchbench.corpora.corpus import Corpus

if TYPE_CHECKING:
    from searchbench.engines.engine import Parameter, Request


@dataclass(frozen=True, slots=True)
class Job:
    """One job that an engine has, with its levers; any of them may be a factor of a study.

    ``fills``: it puts the documents in, so it comes first and in place of the ingest. ``after``:
    jobs one of which must come before it. ``families``: of corpora that it can use; empty: all.
    ``leaves``: kinds of files of which there must be more after it than before.
    """

    name: str
    doc: str
    parameters: tuple[Parameter, ...] = ()
    fills: bool = False
    after: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()


OPENING = Job("opening", "start the server on the existing index; timed until it answers")
"""What every engine has that keeps its index."""
MERGE = Job("merge", "merge all segments of each part (or shard) into one")
"""A forced merge, of engines whose index has segments."""


@dataclass(frozen=True, slots=True)
class Same:
    """What must be answered the same by the original and by what a job made of it."""

    what: str
    original: Request
    made: Request


@dataclass(frozen=True, slots=True)
class Proof:
    """What a job has to have made of the engine: ``Engine.left`` of the reply is ``wanted``."""

    what: str
    request: Request
    wanted: object


@dataclass(frozen=True, slots=True)
class Work:
    """What is sent or started for a job.

    ``before``: requests that are not timed. Then, timed, what is not empty: ``stream``, the
    documents of a corpus as requests with how many each has, made beforehand and sent over
    ``connections`` at once; ``requests``; ``commands``: programs of the engine's own that are run
    to their end, in which the names of ``Service`` are replaced; ``opens``: the server is started
    until it answers.
    ``counted``: asked afterwards how many documents there are (None: the engine's facts say it); as
    many must be there as the job was given. ``same``, ``proven``: asked afterwards.
    ``durable``: in a sentence, what a kill may take of what the job was told is done.
    """

    before: Iterable[Request] = ()
    stream: Callable[[Corpus], Iterator[tuple[Request, int]]] | None = None
    connections: int = 1
    requests: tuple[Request, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    opens: bool = False
    counted: Request | None = None
    same: tuple[Same, ...] = ()
    proven: tuple[Proof, ...] = ()
    durable: str = ""
