"""What a person calls a document: the field that serves as its title, and the titles of some.

An id alone ("48213") tells nobody which document was found, so results that are shown to a person
have the title beside it, where the corpus has a field that serves as one.
"""

from __future__ import annotations

from collections.abc import Set

from searchbench.corpora.corpus import Corpus, FieldType, Schema

NAMES = ("title", "name", "headline", "subject", "heading", "label", "caption")
"""A field of one of these names serves as title, the first that there is; else one that ends so."""
LONGEST = 80
"""Characters of a title that are kept."""
_TYPES = (FieldType.TEXT, FieldType.KEYWORD)


def title_field(schema: Schema) -> str | None:
    """The field that serves as title; None where there is none.

    "product_name" and "Title" do where there is no "name" and no "title".
    """
    fields = {field.name.lower(): field.name for field in schema.of_type(*_TYPES)}
    for name in NAMES:
        if name in fields:
            return fields[name]
    for name in NAMES:
        for lower, own in fields.items():
            if lower.endswith(f"_{name}"):
                return own
    return None


def titles_of(corpus: Corpus, ids: Set[str]) -> dict[str, str]:
    """The titles of these documents, by id; reads the documents until all are found.

    A document without a title is left out.
    """
    field, left, found = title_field(corpus.schema), set(ids), dict[str, str]()
    if field is None or not left:
        return found
    for document in corpus.documents():
        if document.id not in left:
            continue
        left.discard(document.id)
        if title := " ".join(str(document.values.get(field, "")).split()):
            found[document.id] = f"{title[: LONGEST - 1]}…" if len(title) > LONGEST else title
        if not left:
            break
    return found
