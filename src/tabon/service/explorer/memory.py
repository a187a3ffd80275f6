"""Answers that are known already, so that explaining N drafts does not make them N times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tabon.encoders import Encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.method.bank import TransitionBank
from tabon.method.selection import Selection
from tabon.selectors.scorer import AnySelector
from tabon.text.records import Query


@dataclass(frozen=True, slots=True)
class AnsweredSelector:
    """A selector that repeats answers it has given, for `explain_many`."""

    selector: AnySelector
    answers: Mapping[str, Selection]  # by query

    @property
    def signature(self) -> str:
        """Return what went into its numbers."""
        return self.selector.signature

    @property
    def bank(self) -> TransitionBank | None:
        """Return its bank."""
        return getattr(self.selector, "bank", None)

    @property
    def encoder(self) -> Encoder | None:
        """Return its encoder."""
        return getattr(self.selector, "encoder", None)

    @property
    def store(self) -> SentenceStore | None:
        """Return its embeddings on disk."""
        return getattr(self.selector, "store", None)

    @property
    def scorer(self) -> Any:  # noqa: ANN401  # whatever the selector has
        """Return its scorer."""
        return getattr(self.selector, "scorer", None)

    def select_many(self, queries: Sequence[Query]) -> list[Selection]:
        """Repeat the answers."""
        return [self.answers[query.id] for query in queries]
