"""Options that several verbs have."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

Flag = Annotated[bool, Parameter(negative=())]
Json = Annotated[bool, Parameter(name="--json", negative=())]
Port = Annotated[int | None, Parameter(name="--prometheus")]
Sets = Annotated[list[str] | None, Parameter(name="--set", negative=())]
Only = Annotated[list[str] | None, Parameter(negative=())]
