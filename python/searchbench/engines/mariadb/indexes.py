"""The indexes of MariaDB that can be made after the documents, and the job that makes them anew."""

from __future__ import annotations

import re
from collections.abc import Sequence

from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import Parameter, Parameters
from searchbench.engines.job import Job, Work
from searchbench.engines.mariadb import table
from searchbench.engines.mysql_form import request
from searchbench.errors import Unsupported

JOB = Job(
    "index",
    "make the text indexes, and those that a table declares, anew",
    (
        Parameter(
            "of", str, "", "make only the index on these columns, such as color or a,b; empty: all "
            "indexes"
        ),
    ),
)  # fmt: skip


def work(of: str, schema: Schema, params: Parameters) -> Work:
    """Drop the indexes, or the one of the columns ``of``, and then, timed, make them."""
    wanted = of.replace(" ", "")
    made = {
        name: added
        for name, added in made_after(schema, params).items()
        if not wanted or _columns_of(added) == wanted
    }
    if not made:
        which = f" of {wanted}" if wanted else ""
        raise Unsupported(f"this corpus has no index{which} to make")
    dropped = [f"DROP KEY {name}" for name in made]
    return Work(
        before=[request(f"ALTER TABLE {table.table_of(schema)} {', '.join(dropped)}")],
        requests=(request(*altered([*made.values()], schema, params)),),
    )


def made_after(schema: Schema, params: Parameters) -> dict[str, str]:
    """The indexes that can be made after the documents: by name, what adds them."""
    text = {key.partition(" ")[0]: f"FULLTEXT KEY {key}" for key in table.text_keys(schema, params)}
    return {n: f"ADD {sql}" for n, sql in {**table.secondary(schema, params), **text}.items()}


def altered(steps: Sequence[str], schema: Schema, params: Parameters) -> list[str]:
    """InnoDB makes an index at a time, in place; the others copy the table, so all at once."""
    if params["storage"] != "innodb" and steps:
        steps = [", ".join(steps)]
    return [f"ALTER TABLE {table.table_of(schema)} {step}" for step in steps]


def _columns_of(added: str) -> str:
    """The columns of an index as a study names them: without quotes, lengths, and ``w0_``."""
    inner = re.sub(r"[` ]|\(\d+\)", "", added[added.index("(") + 1 : -1])
    return ",".join(re.sub(r"^[fw]\d+_", "", name) for name in inner.split(","))
