"""The titles of the documents that captured replies list, for whoever reads the report.

Looked up when all trials are on record, in one more reading of the documents: what is measured
has no part in it.
"""

from __future__ import annotations

from searchbench.corpora.titles import title_field, titles_of
from searchbench.lab.conduct.openings import Openings
from searchbench.record import Record, Writer

MOST_DOCUMENTS = 1_000_000
"""Documents of a corpus that is read once more; that takes half a minute at most."""
MOST_IDS = 100_000
"""Documents whose titles are kept, of a corpus."""


def keep_titles(openings: Openings, writer: Writer) -> None:
    """Put the titles on record that it lacks; nothing where documents have none."""
    record = writer.record
    settings = {t.id: t for t in record.plan.treatments}
    for digest, (treatment, ids) in _listed(record, record.plan.judging.agreement.k).items():
        ids -= record.titles(digest).keys()
        if not ids:
            continue
        corpus, about = openings.corpus(settings[treatment].corpus)
        if title_field(corpus.schema) is None or (about.documents or 0) > MOST_DOCUMENTS:
            continue
        openings.watch.opening("titles of hits")
        writer.titles(digest, record.titles(digest) | titles_of(corpus, ids))


def _listed(record: Record, k: int) -> dict[str, tuple[str, set[str]]]:
    """By the digest of a corpus: a treatment that has it, and the ids of the first ``k`` hits."""
    found: dict[str, tuple[str, set[str]]] = {}
    seen = set[tuple[str, str]]()
    for trial in record.trials:
        asked = (trial.treatment, trial.corpus.digest)
        if trial.status != "ok" or not trial.queries.digest or not trial.corpus.digest:
            continue
        if trial.operation is not None or asked in seen:
            continue
        seen.add(asked)
        _, ids = found.setdefault(trial.corpus.digest, (trial.treatment, set()))
        for row in record.replies(trial.trial).select(["phase", "ids"]).to_pylist():
            if row["phase"] == "captured" and len(ids) < MOST_IDS:
                ids.update((row["ids"] or ())[:k])
    return found
