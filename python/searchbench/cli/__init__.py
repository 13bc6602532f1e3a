"""The command line: one verb, one door. A verb parses, calls one function, and prints.

Exit codes: 0 done as asked; 1 bad news (a regression, results that differ, a trial that failed, a
server that stopped answering, a study without a valid trial, a broken promise); 2 a mistake in what
was given, or something is missing; 3 it cannot be told whether a promise is kept; 130 interrupted.

Everything heavy is imported inside the verbs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys

from cyclopts import App

from searchbench.cli import corpus, engines, places, queries
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
from searchbench.errors import SearchbenchError

app = App(
    name="searchbench",
    help="Which search system, in which configuration, serves my queries over my documents "
    "best, and how sure are we?",
    version=lambda: _version(),
    help_format="plaintext",
    result_action="return_value",
)

for _verb in (check, plan, run, verify, load, drnbench, wire, report, compare):
    app.command(flowing(_verb))
for _verbs in (engines.app, places.app, corpus.app, queries.app):
    app.command(_verbs)


def main() -> None:
    """The entry of the ``searchbench`` command."""
    try:
        code = app()
    except SearchbenchError as error:
        sys.stderr.write(f"searchbench: {error}\n")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        sys.stderr.write("\nsearchbench: interrupted\n")
        sys.exit(130)
    sys.exit(code or 0)


def _version() -> str:
    from searchbench import _core

    return f"searchbench {_core.version} ({_core.profile} build of the core)"
