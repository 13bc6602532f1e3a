"""The keys of [operations.NAME] and [operations.NAME.methods.NAME]."""

from __future__ import annotations

from searchbench.spec import SpecKey
from searchbench.workload.operations.draw import ORDERS

OPERATION_KEYS: tuple[SpecKey, ...] = (
    SpecKey("key", "texts", None, "the columns of the corpus whose values an operation asks for, "
            'as in key = "id"; without it the operation asks for no rows'),
    SpecKey("rows", "integer", 1, "how many different rows one operation asks for", minimum=1,
            maximum=10_000_000),
    SpecKey("order", "text", "random", "in which order it names them: ascending as in the corpus, "
            "random, or clustered (rows that follow each other in the corpus)", ORDERS),
    SpecKey("draws", "integer", 10, "how many different draws of rows there are; they are asked in "
            "turn", minimum=1, maximum=100_000),
    SpecKey("answer", "text", "set", "how the rows of two methods are compared: as a set (with "
            "their numbers), in their order, or only counted, where the question does not decide "
            "which rows come", ("set", "order", "count")),
)  # fmt: skip
METHOD_KEYS: tuple[SpecKey, ...] = (
    SpecKey("sql", "text", None, "statements of SQL, with their marks (docs/OPERATIONS.md)"),
    SpecKey("bql", "text", None, "statements of SenseiDB's BQL, the same way"),
    SpecKey("http", "text", None, "requests of HTTP with their marks: method, path and body, or a "
            "body of JSON alone"),
    SpecKey("file", "path", None, "a file with them; `.bql` and `.http` say the language, all else "
            "is SQL"),
    SpecKey("rows_at", "texts", None, "where the rows lie in a reply of JSON: "
            "\"facets.color: value, count\"; several follow one another. Default: where the "
            "system's own answers have them"),
    SpecKey("systems", "texts", None, "the systems that it is for; default: all that are asked in "
            "its language"),
)  # fmt: skip
