"""The reference of study files, written from the keys as they are declared and checked.

``python -m searchbench.study.reference > docs/STUDY.md``; a test holds the file to the code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from searchbench import corpora
from searchbench.engines import ENGINES
from searchbench.engines.engine import Parameter
from searchbench.spec import SpecKey, show
from searchbench.study.read import (
    AGREEMENT_KEYS,
    CONTROL_KEYS,
    INGEST_KEYS,
    SYSTEM_KEYS,
    TOP_KEYS,
    VERDICT_KEYS,
)
from searchbench.workload import loads
from searchbench.workload.queries import registry

_HEAD = """\
# Study files

A study is a question with everything needed to answer it, as TOML. `searchbench check STUDY` names
every mistake in one, with its place. The smallest has a question, documents, queries and a system:

```toml
question = "Which of tantivy and SQLite FTS5 serves my product search faster?"
[corpus]
files = "products.csv"
[queries]
file = "queries.txt"
[systems.tantivy]
[systems.sqlite]
```

File names are relative to the study file. This page is written from the keys that the program
checks (`python -m searchbench.study.reference`).

## Factors

```toml
[factors]
"load.clients" = [1, 2, 4]              # any key of [corpus], [queries] or [load]
"systems.tantivy.parts" = [1, 2, 4]     # a parameter of one system: crossed within it
"systems.*.cache_mb" = [16, 64]         # of all systems, where all have it
```

All levels of all factors are crossed; the systems are a factor by themselves. `exclude` leaves
crossings out:

```toml
exclude = [{ when = { "load.clients" = 4, "system" = "sqlite" }, reason = "one writer" }]
```

`[held]` says in words, or as a table, what is held constant; it reaches the report.
"""


_SYSTEMS = """\
The other keys are the engine's parameters. Those marked ● change the index: a new level, a new
ingest.

An attached system keeps its own settings: where they are not the study's, the report says so. If
it holds as many documents as the corpus has they are taken to be the corpus's; if none, the corpus
is put in; if any other number, the trial fails. User, password and database are read from
SEARCHBENCH_NAME_USER, SEARCHBENCH_NAME_PASSWORD and SEARCHBENCH_NAME_DATABASE (NAME in capitals,
`-` as `_`).
"""


def reference() -> str:
    """The whole page."""
    parts = [
        _HEAD,
        _section("Beside the tables", "", TOP_KEYS),
        _section("[corpus]", "Where documents come from.", corpora.SPEC_KEYS),
        _section("[queries]", "What is asked.", registry.SPEC_KEYS),
        _section("[load]", "When it is asked.", loads.SPEC_KEYS),
        _section("[ingest]", "", INGEST_KEYS),
        _section("[control]", "", CONTROL_KEYS),
        _section("[agreement]", "", AGREEMENT_KEYS),
        _section("[verdict]", "", VERDICT_KEYS),
        _section("[systems.NAME]", _SYSTEMS, SYSTEM_KEYS),
        *(_engine(name) for name in ENGINES),
    ]
    return "".join(parts)


def _section(title: str, intro: str, keys: Iterable[SpecKey]) -> str:
    lines = [f"\n## {title}\n", f"\n{intro}\n" if intro else "", "\n| key | values | default | |\n"]
    lines.append("|---|---|---|---|\n")
    for key in keys:
        if getattr(key, "given", False):
            continue
        families = getattr(key, "families", ())
        only = f" ({', '.join(families)})" if 0 < len(families) < len(corpora.FAMILIES) else ""
        default = "" if key.default in (None, (), "") else f"`{show(key.default)}`"
        cells = (f"`{key.name}`", _cell(key.expected()), default, _cell(key.doc + only))
        lines.append(f"| {' | '.join(cells)} |\n")
    return "".join(lines)


def _engine(name: str) -> str:
    engine = ENGINES[name]
    lines = [f"\n### {name}\n\n| parameter | values | default | |\n|---|---|---|---|\n"]
    for lever in engine.parameters:
        mark = " ●" if lever.index else ""
        lines.append(
            f"| `{lever.name}` | {_values(lever)} | `{show(lever.default)}` | "
            f"{_cell(lever.doc)}{mark} |\n"
        )
    return "".join(lines)


def _values(lever: Parameter) -> str:
    if lever.choices:
        return ", ".join(f"`{show(choice)}`" for choice in lever.choices)
    if lever.minimum is not None and lever.maximum is not None:
        return f"{lever.minimum:.12g} to {lever.maximum:.12g}"
    return "`true` or `false`" if lever.kind is bool else lever.kind.__name__


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    sys.stdout.write(reference())
