"""``searchbench collect``: a Scribe server that loses nothing, and its client."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from searchbench.cli.flags import Flag, Json, flowing

app = App(
    name="collect",
    help="Collect messages by category over Scribe's protocol, into files and to other servers.",
    help_format="plaintext",
)


@app.default
@flowing
def collect(
    *,
    config: Annotated[Path | None, Parameter(name=("--config", "-c"))] = None,
    port: Annotated[int | None, Parameter(name=("--port", "-p"))] = None,
    host: Annotated[str | None, Parameter(name="--host")] = None,
) -> int:
    """Serve Scribe's protocol by a configuration in Scribe's own format.

    Ends with SIGTERM, with Ctrl-C, or when a client calls `shutdown`; what it holds is written
    before. SIGHUP, or a client's `reinitialize`, reads the configuration again; one with a mistake
    changes nothing. Counters are those of fb303, and at http://HOST:PORT/metrics.

    Parameters
    ----------
    config
        The configuration (required). docs/COLLECT.md has its keys, and one to start with.
    port
        The port to listen at, instead of the configuration's; 0: any free one.
    host
        The address to listen at, instead of the configuration's. If neither names one, it is
        127.0.0.1: this machine only.
    """
    import signal

    from searchbench import _core
    from searchbench.errors import CollectError

    if config is None:
        raise CollectError(
            "a collector needs a configuration: searchbench collect -c FILE (docs/COLLECT.md has "
            "one to start with)"
        )
    if port is not None:
        _insist_on_port(port, "-p", least=0)
    # The collector has a handler of its own, and Ctrl-C is an end like any other.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        _core.collect_serve(str(config), host, port)
    except (ValueError, OSError) as error:
        raise CollectError(str(error)) from None
    return 0


@app.command
@flowing
def check(config: Path, *, as_json: Json = False) -> int:
    """Find every mistake in a configuration, with its line, its key and what to write instead.

    Also names keys that have no effect here, or another effect than one might expect. These are not
    mistakes, and do not affect the exit code.

    Parameters
    ----------
    config
        The configuration.
    as_json
        Print JSON.
    """
    from searchbench import _core
    from searchbench.errors import CollectError
    from searchbench.terminal import out

    try:
        found = _core.collect_check(str(config))
    except OSError as error:
        raise CollectError(str(error)) from None
    wrong = any(fatal for *_, fatal in found)
    if as_json:
        names = ("line", "key", "message", "hint", "fatal")
        mistakes = [dict(zip(names, mistake, strict=True)) for mistake in found]
        out.as_json({"ok": not wrong, "mistakes": mistakes})
        return 2 if wrong else 0
    lines = [
        f"{config}:{line}: {'' if fatal else 'note: '}{message} ({hint})"
        for line, _key, message, hint, fatal in found
    ]
    if wrong:
        raise CollectError("\n".join(lines))
    for line in lines:
        out.say(line)
    out.say(f"{config}: right")
    return 0


@app.command
@flowing
def cat(
    category: str,
    *,
    host: Annotated[str, Parameter(name="--host")] = "localhost:1463",
    whole: Flag = False,
    patience: float = 60.0,
) -> int:
    """Send standard input to a category: each line, with its newline, is a message.

    If the server answers TRY_LATER, the same lines are sent again. If it says that it will never
    take this category, sending ends at once.

    Parameters
    ----------
    category
        The category.
    host
        HOST or HOST:PORT of the server.
    whole
        Send all of the input as one message, as scribe_cat does.
    patience
        Give up if the server has answered TRY_LATER to the same lines for this many seconds.
    """
    from searchbench import _core
    from searchbench.errors import CollectError

    name, _, port = host.partition(":")
    if port and not port.isdigit():
        raise CollectError(f"{port!r} is not a port: write --host HOST:PORT")
    if port:
        _insist_on_port(int(port), "--host HOST:PORT", least=1)
    try:
        _core.collect_cat(name, int(port or 1463), category, whole, patience)
    except (ValueError, OSError) as error:
        raise CollectError(str(error)) from None
    return 0


def _insist_on_port(port: int, option: str, *, least: int) -> None:
    from searchbench.errors import CollectError

    if not least <= port <= 65535:
        free = ", or 0 for any free one" if least == 0 else ""
        raise CollectError(f"{option}: a port is a number from 1 to 65535{free}, not {port}")
