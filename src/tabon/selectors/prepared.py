"""Queries after one embedding pass: every selector works from this and from the bank."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tabon.encoders import Encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.method.bank import TransitionBank
from tabon.method.sentence_sets import Ids, RaggedSets, SentenceTable, embed
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Report, Section
from tabon.text.sentences import split_sentences

Sentences = tuple[str, ...]
Sections = Mapping[Section, Sentences]


@dataclass(frozen=True)
class Batch:
    """Many queries, their sentences and one table of embeddings.

    Drafts of all queries stand one after another; `owner` says whose each is.
    """

    queries: tuple[Query, ...]
    priors: tuple[Sections, ...]  # sentences of each query's newest prior; empty where there is none
    drafts: tuple[Sections, ...]  # sentences of every draft
    owner: Ids  # the query of each draft
    table: SentenceTable

    @cached_property
    def starts(self) -> Ids:
        """Return where each query's drafts begin, and the end."""
        counts = [len(query.candidates) for query in self.queries]
        return np.cumsum([0, *counts], dtype=np.int64)

    @cached_property
    def prior_sets(self) -> dict[Section, RaggedSets]:
        """Return the prior sentence set of each query, by section."""
        return {name: self.table.rows_of(prior[name] for prior in self.priors) for name in SECTIONS}

    @cached_property
    def draft_sets(self) -> dict[Section, RaggedSets]:
        """Return the sentence set of each draft, by section."""
        return {name: self.table.rows_of(draft[name] for draft in self.drafts) for name in SECTIONS}

    def rows(self, query: int) -> range:
        """Return the places of one query's drafts."""
        return range(int(self.starts[query]), int(self.starts[query + 1]))

    def has_draft(self, section: Section) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Say which drafts have a sentence in the section, (drafts,)."""
        return self.draft_sets[section].lengths > 0

    def has_prior(self, section: Section) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Say which drafts' priors have a sentence in the section, (drafts,)."""
        return (self.prior_sets[section].lengths > 0)[self.owner]

    def draft_text(self, draft: int, section: Section) -> str:
        """Return a draft's section as its generator wrote it."""
        query = int(self.owner[draft])
        return self.queries[query].candidates[draft - int(self.starts[query])].section(section)

    def prior_text(self, query: int, section: Section) -> str:
        """Return the newest prior's section as it was written."""
        return self.queries[query].prior.section(section)


def make_batch(
    queries: Sequence[Query],
    bank: TransitionBank,
    encoder: Encoder,
    store: SentenceStore | None = None,
    *,
    split: Callable[[str], Sentences] = split_sentences,
) -> Batch:
    """Split every report into sentences and embed each distinct one once."""

    def sections(report: Report) -> dict[Section, Sentences]:
        return {section: split(report.section(section)) for section in SECTIONS}

    priors = tuple(sections(query.prior) for query in queries)
    drafts = tuple(sections(draft) for query in queries for draft in query.candidates)
    texts = {text for report in (*priors, *drafts) for section in report.values() for text in section}
    table = embed(texts, encoder, known=bank.known_sentences, store=store)
    owner = np.repeat(np.arange(len(queries)), [len(query.candidates) for query in queries])
    return Batch(tuple(queries), priors, drafts, owner.astype(np.int64), table)


def one_prior_each(queries: Sequence[Query]) -> Iterator[Query]:
    """Yield each query once for each of its priors, newest last; once where it has none."""
    for query in queries:
        if len(query.priors) <= 1:
            yield query
        else:
            for prior in query.priors:
                yield replace(query, priors=(prior,))
