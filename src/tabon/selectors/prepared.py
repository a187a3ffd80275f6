"""Queries after one embedding pass: every selector works from this and from the bank."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from tabon.encoders import Encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.method.bank import TransitionBank
from tabon.method.sentence_sets import Ids, RaggedSets, SentenceTable, embed
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Section
from tabon.text.sentences import split_sentences

Sentences = tuple[str, ...]
Sections = Mapping[Section, Sentences]


@dataclass(frozen=True)
class Batch:
    """Many queries, their sentences and one table of embeddings.

    Drafts of all queries stand one after another; `owner` says whose each is.
    Where every prior counts, a query stands there once for each of them.
    """

    queries: tuple[Query, ...]
    places: tuple[range, ...]  # of each query that was asked, among `queries`; its newest prior is the last
    priors: tuple[Sections, ...]  # sentences of each query's newest prior; empty where there is none
    drafts: tuple[Sections, ...]  # sentences of every draft
    starts: Ids  # where the drafts of each of `queries` begin, and the end
    owner: Ids  # the query of each draft
    table: SentenceTable

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

    def comparable(self, section: Section) -> Ids:
        """Return the drafts that have the section and whose prior has it too."""
        return np.flatnonzero(self.has_draft(section) & self.has_prior(section))

    def draft_text(self, draft: int, section: Section) -> str:
        """Return a draft's section as its generator wrote it."""
        query = int(self.owner[draft])
        return self.queries[query].candidates[draft - int(self.starts[query])].section(section)

    def prior_text(self, query: int, section: Section) -> str:
        """Return the newest prior's section as it was written."""
        return self.queries[query].prior.section(section)


def make_batch(  # each is named
    queries: Sequence[Query],
    bank: TransitionBank | None,
    encoder: Encoder,
    store: SentenceStore | None = None,
    *,
    each_prior: bool = False,
    split: Callable[[str], Sentences] = split_sentences,
) -> Batch:
    """Split every report into sentences and embed each distinct one once.

    Args:
        queries: what is asked.
        bank: whose sentences are known already.
        encoder: the bank's.
        store: embeddings on disk.
        each_prior: ask each query once for each of its priors; else of the newest alone.
        split: what cuts a section.
    """
    counts = [max(1, len(query.priors)) if each_prior else 1 for query in queries]
    asked = [
        replace(query, priors=query.priors[prior : prior + 1]) if each_prior else query
        for query, count in zip(queries, counts, strict=True)
        for prior in range(count)
    ]
    reports = [query.prior for query in asked] + [draft for query in asked for draft in query.candidates]
    cut = [{name: split(report.section(name)) for name in SECTIONS} for report in reports]
    texts = {text for report in cut for section in report.values() for text in section}
    table = embed(texts, encoder, known=None if bank is None else bank.known_sentences, store=store)
    drafts = [len(query.candidates) for query in asked]
    ends = np.cumsum([0, *counts]).tolist()
    return Batch(
        queries=tuple(asked),
        places=tuple(range(*pair) for pair in pairwise(ends)),
        priors=tuple(cut[: len(asked)]),
        drafts=tuple(cut[len(asked) :]),
        starts=np.cumsum([0, *drafts], dtype=np.int64),
        owner=np.repeat(np.arange(len(asked), dtype=np.int64), drafts),
        table=table,
    )
