"""Options that several verbs have, and how help is set: to the width of the terminal."""

from __future__ import annotations

import inspect
import resource
from collections.abc import Callable
from typing import Annotated, TypeVar

from cyclopts import Parameter

from searchbench.errors import NO_MEMORY, SearchbenchError

Flag = Annotated[bool, Parameter(negative=())]
Json = Annotated[bool, Parameter(name="--json", negative=())]
Port = Annotated[int | None, Parameter(name="--prometheus")]
Sets = Annotated[list[str] | None, Parameter(name="--set", negative=())]
Only = Annotated[list[str] | None, Parameter(negative=())]
Texts = Annotated[list[str] | None, Parameter(negative=())]
Promises = Annotated[list[str] | None, Parameter(name=("--slo", "--promise"), negative=())]

_LEAST_ADDRESSES = 512 << 20
_PARAMETERS = "Parameters\n----------\n"
Verb = TypeVar("Verb", bound=Callable[..., int])


def flowing(verb: Verb) -> Verb:
    """The verb, with each paragraph of its docstring on one line: plain help keeps line breaks."""
    about, head, options = inspect.cleandoc(verb.__doc__ or "").partition(_PARAMETERS)
    verb.__doc__ = _joined(about, indented=False) + head + _joined(options, indented=True)
    return verb


def insist_on_memory() -> None:
    """Call before numpy is imported: where its library has no room, it tries again for ever."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY and most < _LEAST_ADDRESSES:
        raise SearchbenchError(NO_MEMORY)


def _joined(text: str, *, indented: bool) -> str:
    """Each line that is ``indented`` or not, as said, at the end of one like it above."""
    lines: list[str] = []
    for line in text.split("\n"):
        if lines and all(x.strip() and x.startswith(" ") == indented for x in (line, lines[-1])):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    return "\n".join(lines)
