"""Where the systems ran, and whether each lever of their places took."""

from __future__ import annotations

from searchbench.report.document.blocks import Details, Section, Text
from searchbench.report.document.content import LONG, Content
from searchbench.report.tables import places as tables

_TEXT = (
    "What the study asks of the places in which the systems ran, what the operating system says "
    "of it when asked, and what was seen once the system had loaded or had been driven. A trial "
    "in which a lever did not take effect has failed."
)


def section(content: Content) -> Section | None:
    """The levers of every place; None where all systems ran on the machine as it is."""
    planned = {t.treatment for t in content.judgement.treatments}
    trials = [t for t in content.record.trials if t.treatment in planned]
    found = tables.levers(trials, content.labels)
    if found is None:
        return None
    shown = found if len(found.rows) <= LONG else Details("Every lever", (found,))
    return Section("places", "Places", (Text(_TEXT, "quiet"), shown))
