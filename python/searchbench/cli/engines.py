"""``searchbench engines``: what is here, in which version, and getting the others."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

app = App(
    name="engines",
    help="What is here, in which version, how to get the others.",
    help_format="plaintext",
)


@app.command
def install(name: str) -> int:
    """Get an engine: Debian's packages, by apt-get, as root.

    Parameters
    ----------
    name
        The engine, as `searchbench engines` lists it.
    """
    from searchbench.cli import out
    from searchbench.engines import engine
    from searchbench.lab import install as getting

    found = engine(name)
    getting.install(found, out.say)
    here = getting.presence(found)
    out.say(f"{found.can.title} {here.version or 'is not here: ' + here.how_to_get}")
    return 0 if here.present else 1


@app.default
def engines(
    *,
    levers: bool = False,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """List the engines: what is here, in which version, what each cannot do.

    Parameters
    ----------
    levers
        Also list every parameter; any of them may be a factor of a study.
    as_json
        Print JSON.
    """
    from searchbench.cli import out
    from searchbench.engines import ENGINES
    from searchbench.lab.install import presence

    found = {name: presence(engine) for name, engine in ENGINES.items()}
    if as_json:
        out.as_json(
            [
                {
                    "name": name,
                    "title": engine.can.title,
                    "present": found[name].present,
                    "version": found[name].version,
                    "how_to_get": found[name].how_to_get,
                    "cannot": dict(engine.can.cannot),
                    "deviations": dict(engine.can.deviations),
                    "parameters": [
                        {
                            "name": p.name,
                            "kind": p.kind.__name__,
                            "default": p.default,
                            "choices": list(p.choices),
                            "minimum": p.minimum,
                            "maximum": p.maximum,
                            "index": p.index,
                            "doc": p.doc,
                        }
                        for p in engine.parameters
                    ],
                }
                for name, engine in ENGINES.items()
            ]
        )
        return 0
    rows = [
        (
            name,
            found[name].version or "not here",
            ", ".join(engine.can.cannot) or "–",
            found[name].how_to_get,
        )
        for name, engine in ENGINES.items()
    ]
    out.table(("engine", "version", "cannot", "how to get it"), rows)
    if levers:
        for engine in ENGINES.values():
            out.say(f"\n{engine.name}")
            out.table(
                ("  parameter", "default", "values", "meaning"),
                [(f"  {p.name}", p.default, _values(p), p.doc) for p in engine.parameters],
            )
    return 0


def _values(parameter: object) -> str:
    from searchbench.engines.engine import Parameter as Lever

    assert isinstance(parameter, Lever)
    if parameter.choices:
        return " ".join(str(c) for c in parameter.choices)
    if parameter.minimum is not None and parameter.maximum is not None:
        return f"{parameter.minimum:g}..{parameter.maximum:g}"
    return parameter.kind.__name__
