"""The keys of [operations.NAME] and [operations.NAME.methods.NAME]."""

from __future__ import annotations

from searchbench.spec import SpecKey
from searchbench.workload.operations.draw import ORDERS

OPERATION_KEYS: tuple[SpecKey, ...] = (
    SpecKey("key", "texts", None, "the columns of the corpus by whose values an operation asks for "
            'rows, as in key = "id"; without it the operation asks for no rows'),
    SpecKey("rows", "integer", 1, "how many different rows one operation asks for", minimum=1,
            maximum=10_000_000),
    SpecKey("order", "text", "random", "in which order it names them. ascending: as in the corpus; "
            "random; clustered: rows that follow each other in the corpus", ORDERS),
    SpecKey("draws", "integer", 10, "how many different sets of rows are drawn; operations use "
            "them in turn", minimum=1, maximum=100_000),
    SpecKey("answer", "text", "set", "how the rows that two methods return are compared. set: "
            "without regard to order, but equal rows are counted; order: in their order; count: "
            "only their number, if the question does not determine which rows come",
            ("set", "order", "count")),
    SpecKey("statement_times", "boolean", False, "keep when each statement was sent and answered, "
            "and say where the time of an operation goes"),
    SpecKey("while_inserting", "text", None, "what must hold of the answer while a role inserts. "
            "counts: the last column of each row is a count that only rises, and no row "
            "disappears; rows: rows are added, and none disappears; number: the number of rows "
            "only rises; any: nothing. Default: what the text of the method shows "
            "(docs/OPERATIONS.md)", ("counts", "rows", "number", "any")),
)  # fmt: skip
METHOD_KEYS: tuple[SpecKey, ...] = (
    SpecKey("sql", "text", None, "statements of SQL, with marks and placeholders "
            "(docs/OPERATIONS.md)"),
    SpecKey("bql", "text", None, "the same in SenseiDB's BQL"),
    SpecKey("http", "text", None, "the same as HTTP requests: method, path and body, or only a "
            "body of JSON"),
    SpecKey("query", "text", None, "a query of the algebra as one object of JSON, with "
            "placeholders: every system is asked it in its own language"),
    SpecKey("file", "path", None, "a file of the statements or requests; its ending `.bql`, "
            "`.http` or `.json` (a query) says the language, any other means SQL"),
    SpecKey("rows_at", "texts", None, "where the rows lie in a reply of JSON, or in the answer to "
            "a query: \"facets.color: value, count\"; rows of several paths follow one another. "
            "Default: where the system's own answers have them; of a query the ids of the hits"),
    SpecKey("systems", "texts", None, "the systems that can run this method; default: all that "
            "understand its language"),
)  # fmt: skip
