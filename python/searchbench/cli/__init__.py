"""The command line: one verb, one door. A verb parses, calls one function, and prints.

What its exit codes mean stands at the end of ``searchbench --help``.

Everything heavy is imported inside the verbs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import NoReturn

from cyclopts import App

from searchbench.cli import collect, corpus, engines, logs, places, queries
from searchbench.cli.check import check
from searchbench.cli.compare import compare
from searchbench.cli.drnbench import drnbench
from searchbench.cli.flags import flowing
from searchbench.cli.load import load
from searchbench.cli.plan import plan
from searchbench.cli.report import report
from searchbench.cli.run import run
from searchbench.cli.verify import verify
from searchbench.cli.wire import wire
from searchbench.errors import NO_MEMORY, SearchbenchError
from searchbench.terminal import out
from searchbench.whole import is_full, not_written

_EXIT_CODES = """\
Exit codes:
  0    It was done. From `report`, 0 means no more than that. A sweep without
       a promise also exits with 0 if all of its steps are void; its answer
       says so.
  1    Bad news.
       run, load, drnbench: a trial or a step failed, or in one a server
       stopped answering or answered nothing well; a step of a sweep broke a
       promise, or every rate of a capacity search did; or a study of trials
       has no valid trial.
       verify: a query differs at the level that the study requires, or a
       system failed.
       compare: a loss is resolved and beyond the threshold, or something is
       lost altogether, by more than chance.
       engines install: an engine is still missing.
       queries extract: no term could be written.
       places clean: something could not be removed.
       wire: the server refused a statement of the method.
       logs: no search was found.
  2    A mistake in the input, something missing, or nothing to compare; or the
       disk or the memory is full.
  3    run, load, drnbench: no promise is broken, but it cannot be told whether
       one is kept (in a capacity search: at any rate that was driven).
       compare: no loss is resolved, but for something it cannot be told.
  130  Interrupted.
"""

_UNMAPPED = "failed to map segment"  # the loader's words for a library that has no room

app = App(
    name="searchbench",
    help="Which search system, in which configuration, serves my queries over my documents "
    "best, and how sure are we?",
    version=lambda: _version(),
    help_format="plaintext",
    result_action="return_value",
    help_epilogue=_EXIT_CODES,
)

for _verb in (check, plan, run, verify, load, drnbench, wire, report, compare):
    app.command(flowing(_verb), help_epilogue="")
for _verbs in (engines.app, places.app, corpus.app, queries.app, logs.app, collect.app):
    _verbs.help_epilogue = ""
    app.command(_verbs)


def main() -> None:
    """The entry of the ``searchbench`` command."""
    try:
        code = app()
        sys.stdout.flush()
    except SearchbenchError as error:
        sys.stderr.write(f"searchbench: {error}\n")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        out.drop_readers()
        sys.exit(0)
    except KeyboardInterrupt:
        sys.stderr.write("\nsearchbench: interrupted\n")
        sys.exit(130)
    except MemoryError:
        sys.stderr.write(f"searchbench: {NO_MEMORY}\n")
        sys.exit(2)
    except ImportError as error:
        if _UNMAPPED not in str(error):
            raise
        sys.stderr.write(f"searchbench: {NO_MEMORY}\n")
        sys.exit(2)
    except OSError as error:
        if not is_full(error):
            raise
        _out_of_room(error)
    sys.exit(code or 0)


def _out_of_room(error: OSError) -> NoReturn:
    """End where the disk is full, and no function said so that writes files: most likely what was
    printed went to a file."""
    with suppress(OSError):  # standard error may lie on the same disk
        if error.filename is not None:
            said = not_written(error.filename, error)
        else:
            said = not_written("standard output", error, "the rest of it", "send it elsewhere")
        sys.stderr.write(f"searchbench: {said}\n")
        sys.stderr.flush()
    out.drop_readers()
    sys.exit(2)


def _version() -> str:
    from searchbench import _core

    return f"searchbench {_core.version} ({_core.profile} build of the core)"
