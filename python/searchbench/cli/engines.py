"""``searchbench engines``: what is here, in which version, and getting the others."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from searchbench.cli.flags import Flag, Json, flowing
from searchbench.spec import show

if TYPE_CHECKING:
    from searchbench.engines.engine import Engine
    from searchbench.engines.engine import Parameter as Lever
    from searchbench.lab.get.install import Presence

# What is said of a lever, in this order.
_LEVER = ("name", "kind", "default", "choices", "minimum", "maximum", "index", "doc")

app = App(
    name="engines",
    help="List the engines: which are installed, in which version, and how to get the others.",
    help_format="plaintext",
)


@app.command
@flowing
def install(
    *names: str,
    all: Flag = False,  # noqa: A002
    for_tests: Annotated[bool, Parameter(negative=(), show=False)] = False,
) -> int:
    """Install engines: Debian's packages with apt-get, as root; archives of Maven Central with mvn.

    Parameters
    ----------
    names
        The engines, as `searchbench engines` lists them.
    all
        Install every engine that a registry has and that is not installed yet.
    for_tests
        Say what could not be got and go on: the tests say what they miss.
    """
    from searchbench.engines import ENGINES, engine
    from searchbench.errors import SearchbenchError
    from searchbench.lab.get import install as getting
    from searchbench.terminal import out

    wanted = [engine(name) for name in names]
    if all:
        known = [e for e in ENGINES.values() if e.can.packages or e.can.artifacts]
        wanted += [e for e in known if e not in wanted and getting.missing(e)]
    elif not names:
        raise SearchbenchError("name the engines to install, or give --all")
    if for_tests:
        try:
            getting.install_for_tests(out.say)
        except SearchbenchError as error:
            out.say(f"NOT RUN HERE: several client machines: {error}")
        for part in ([e for e in wanted if e.can.packages], [e for e in wanted if e.can.artifacts]):
            try:
                getting.install(part, out.say)
            except SearchbenchError as error:
                out.say(f"NOT RUN HERE: {', '.join(e.name for e in part)}: {error}")
        return 0
    getting.install(wanted, out.say)
    there = True
    for found in wanted:
        here = getting.presence(found)
        there = there and here.present
        out.say(f"{found.can.title} {here.version or 'is not here: ' + here.how_to_get}")
    return 0 if there else 1


@app.default
@flowing
def engines(*names: str, start: Flag = False, levers: bool = False, as_json: Json = False) -> int:
    """List the engines: what is here, and how to get the others.

    Of those that are named, also say what each cannot do and why, and where its answers differ from
    the declared analysis. --json has that for all.

    Parameters
    ----------
    names
        Describe these engines in full; by default, list every engine on one line.
    start
        Start each engine in turn and ask for its version. One that does not start counts as not
        installed.
    levers
        Also list every parameter. Any of them may be a factor of a study.
    as_json
        Print JSON.
    """
    from searchbench.engines import ENGINES, engine
    from searchbench.lab.get.install import look, presence
    from searchbench.terminal import out

    listed = {name: engine(name) for name in names or ENGINES}
    found = {name: presence(one) if start else look(one) for name, one in listed.items()}
    if as_json:
        out.as_json(
            [
                {
                    "name": name,
                    "title": one.can.title,
                    **asdict(found[name]),
                    "cannot": dict(one.can.cannot),
                    "deviations": dict(one.can.deviations),
                    "parameters": [
                        {about: getattr(p, about) for about in _LEVER} | {"kind": p.kind.__name__}
                        for p in one.parameters
                    ],
                }
                for name, one in listed.items()
            ]
        )
        return 0
    if not names:
        rows = [
            (name, _here(found[name]), ", ".join(one.can.cannot) or "–", _how(one, found[name]))
            for name, one in listed.items()
        ]
        header = ("engine", "version" if start else "here", "cannot", "how to get it")
        out.table(header, rows, less=("cannot",))
        out.say("\n`searchbench engines NAME` says all about one.")
    for name, one in listed.items():
        if names:
            _describe(one, found[name])
        if levers:
            out.say(f"\nparameters of {name}, with defaults and values:")
            told = [f"{p.name} = {show(p.default)} ({_values(p)}): {p.doc}" for p in one.parameters]
            out.points(told)
    return 0


def _here(found: Presence) -> str:
    return found.version or ("yes" if found.present else "no")


def _how(engine: Engine, found: Presence) -> str:
    """How to get it, in few words; ``Presence`` has all of them."""
    from searchbench.lab.get.install import make_java, needs

    if engine.can.unavailable:
        return "attach to one that runs"
    if engine.can.packages or engine.can.artifacts:
        origin = "Debian" if engine.can.packages else "Maven Central"
        return origin if found.present else f"engines install {engine.name}"
    return make_java() if needs(engine) else "comes with searchbench"


def _describe(engine: Engine, found: Presence) -> None:
    """All that is declared of an engine, in paragraphs."""
    from searchbench.terminal import out

    version = f", version {found.version}" if found.version else ""
    here = f"is here{version} ({found.how_to_get})" if found.present else "is not here"
    out.say(f"\n{engine.name}: {engine.can.title} {here}")
    if not found.present:
        out.say(f"how to get it: {found.how_to_get}")
    for what, declared in (("cannot", engine.can.cannot), ("deviates", engine.can.deviations)):
        if declared:
            out.say(f"{what}:")
            out.points([f"{name}: {why}" for name, why in declared.items()])


def _values(parameter: Lever) -> str:
    if parameter.choices:
        return ", ".join(show(c) for c in parameter.choices)
    if parameter.kind is bool:
        return "true or false"
    if parameter.minimum is not None and parameter.maximum is not None:
        return f"{parameter.minimum:.12g}..{parameter.maximum:.12g}"
    return parameter.kind.__name__
