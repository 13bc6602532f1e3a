"""What the phases that open a session have to remark."""

from __future__ import annotations

from searchbench.record.trial import Note

UNCHECKED = Note(
    kind="certificate not checked",
    number="insecure",
    meaning="any certificate was accepted, so it is unknown who answered, and passwords and "
    "headers may have gone to somebody else",
    remedy="give the certificate of its authority (--ca FILE; in a study: ca), and leave out "
    "insecure",
)
SHARED_CORE = Note(
    kind="shared core",
    meaning="the place gives the system a core of the load generator, or another hyper-thread of "
    "that core, so that each slows the other",
    remedy="leave the load generator a core of its own: fewer `cores`, or others",
)
NOT_COMPARED = Note(
    kind="answers not compared",
    severity="note",
    number="unknown engine",
    meaning="no known engine answers, so replies are not read, and it is unknown whether the "
    "answers under load are the same as alone",
    remedy="name its engine if it is one that is known (--engine)",
)
