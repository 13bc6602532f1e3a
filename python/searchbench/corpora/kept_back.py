"""A corpus without some of its documents, which are kept back to be written later."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cached_property

from searchbench.corpora.corpus import Corpus, Document, Intake, Schema, intake_of


class KeptBack:
    """What is left of ``whole``, which has ``total`` documents, once ``count`` are kept back.

    Which ones is drawn with the seed; the rest stay in their order.
    """

    def __init__(self, whole: Corpus, total: int, count: int, seed: int) -> None:
        self._whole, self._total, self._seed = whole, total, seed
        self.count = min(count, total)

    @property
    def name(self) -> str:
        """That of the whole."""
        return self._whole.name

    @property
    def schema(self) -> Schema:
        """That of the whole."""
        return self._whole.schema

    @property
    def intake(self) -> Intake | None:
        """What became of the rows of the whole."""
        return intake_of(self._whole)

    def documents(self) -> Iterator[Document]:
        """Those that were not kept back."""
        kept = self._kept
        return (d for at, d in enumerate(self._whole.documents()) if at not in kept)

    def kept(self) -> Iterator[Document]:
        """Those that were, in the order of the corpus."""
        kept = self._kept
        return (d for at, d in enumerate(self._whole.documents()) if at in kept)

    @cached_property
    def _kept(self) -> frozenset[int]:
        """Their numbers in the corpus, from 0."""
        draw = random.Random(f"searchbench kept back {self._seed}")
        return frozenset(draw.sample(range(self._total), self.count))
