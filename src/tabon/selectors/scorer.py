"""What a scorer is, what it works on, and what it is called.

A scorer gives every draft a distance, with its parts; lower is better. A draft that cannot be
compared in a section (it lacks the section, or the prior does and the scorer needs one) has NaN there.
Every scorer works from a `Batch`, queries after one embedding pass, and from the bank.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from tabon._internal.registry import lookup
from tabon.encoders import Encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank
from tabon.method.distances import get_distance
from tabon.method.selection import Neighbour, Selection
from tabon.method.sentence_sets import Ids, RaggedSets, SentenceTable, embed
from tabon.method.transitions import Transitions, transitions
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Section
from tabon.text.sentences import split_sentences

Distances = NDArray[np.float64]  # (drafts of a batch,)
Sentences = tuple[str, ...]
PAPER = "paper"  # another name of `transition`
GROUP = "tabon.selectors"  # the entry points of other packages' selectors
# name: a function (bank, variant) -> Scorer; `variant` is what follows the colon, or ""
SELECTORS: Mapping[str, str] = MappingProxyType(
    {
        "transition": "tabon.selectors.transition:load",  # DISTANCE/AGGREGATE, such as novelty/min
        "two-sided": "tabon.selectors.transition:two_sided",  # min or knn
        "report-space": "tabon.selectors.report_space:load",  # SETDISTANCE/AGGREGATE
        "consensus": "tabon.selectors.text_scorers:consensus",  # SETDISTANCE, or a metric's score
        "modex": "tabon.selectors.modex:load",
        "nearest-prior": "tabon.selectors.text_scorers:nearest_prior",  # SETDISTANCE, or a metric's score
        "next-visit": "tabon.selectors.text_scorers:next_visit",  # SETDISTANCE, or a metric's score
        "longest": "tabon.selectors.baselines:longest",
        "shortest": "tabon.selectors.baselines:shortest",
        "first": "tabon.selectors.baselines:first",
        "random": "tabon.selectors.baselines:random",  # SEED
        "log-probability": "tabon.selectors.baselines:log_probability",
        "fused": "tabon.selectors.fused.scorer:load",  # a file of fitted weights, or nothing
        "learnt": "tabon.selectors.learnt:load",  # a file of fitted weights
    }
)
# other names that people know selectors by
ALIASES: Mapping[str, str] = MappingProxyType({"mbr": "consensus", "sdr": "report-space"})
# settings of a scorer as the command line calls them
OPTIONS = {"distance": "--distance", "aggregate": "--aggregate", "num_neighbours": "-k", "zero": "--zero"}


@dataclass(frozen=True)
class Batch:
    """Many queries, their sentences and one table of embeddings.

    Drafts of all queries follow one another; `owner` says whose each is.
    If every prior counts, a query occurs once for each of them.
    """

    queries: tuple[Query, ...]
    places: tuple[range, ...]  # of each query that was asked, among `queries`; its newest prior is the last
    priors: tuple[Mapping[Section, Sentences], ...]  # of each query's newest prior; empty if there is none
    drafts: tuple[Mapping[Section, Sentences], ...]  # sentences of every draft
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

    def has_draft(self, section: Section) -> NDArray[np.bool_]:
        """Say which drafts have a sentence in the section, (drafts,)."""
        return self.draft_sets[section].lengths > 0

    def has_prior(self, section: Section) -> NDArray[np.bool_]:
        """Say which drafts' priors have a sentence in the section, (drafts,)."""
        return (self.prior_sets[section].lengths > 0)[self.owner]

    def comparable(self, section: Section) -> Ids:
        """Return the drafts that have the section and whose prior has it too."""
        return np.flatnonzero(self.has_draft(section) & self.has_prior(section))

    def transitions(self, section: Section, drafts: Ids, distance: str) -> Transitions:
        """Return T(prior, draft) of these drafts, which have the section on both sides (eq. 6)."""
        prior, current = (
            self.prior_sets[section].take(self.owner[drafts]),
            self.draft_sets[section].take(drafts),
        )
        [found] = transitions([get_distance(distance)], self.table.vectors, prior=prior, current=current)
        return found

    def draft_text(self, draft: int, section: Section) -> str:
        """Return a draft's section as its generator wrote it."""
        query = int(self.owner[draft])
        return self.queries[query].candidates[draft - int(self.starts[query])].section(section)


def make_batch(
    queries: Sequence[Query],
    bank: TransitionBank | None,
    encoder: Encoder,
    store: SentenceStore | None = None,
    *,
    each_prior: bool = False,
    split: Callable[[str], Sentences] = split_sentences,
) -> Batch:
    """Split every report into sentences and embed each distinct one that the bank does not know.

    With `each_prior` a query is asked once for each of its priors, else of the newest alone.
    """
    counts = [1 + len(query.earlier) if each_prior else 1 for query in queries]
    asked = [
        replace(query, prior=prior, earlier=()) if each_prior else query
        for query in queries
        for prior in ((*query.earlier, query.prior) if each_prior else (query.prior,))
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


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """One section of every draft of a batch."""

    distances: Distances
    parts: Mapping[str, Distances] = field(default_factory=dict)  # what the distance is made of
    nearest: tuple[tuple[Neighbour, ...], ...] = ()  # of each draft; () where the selector has none
    worst: float | None = None  # the distance of a draft without the section; None: behind all others
    unchanged: frozenset[int] = frozenset()  # drafts whose transition is zero
    bank_is_empty: bool = False  # the bank has nothing to compare the section with


class AnySelector(Protocol):
    """What answers queries: a `Selector`, one that abstains, or one of your own."""

    @property
    def signature(self) -> str:
        """Return all that changes its numbers, in one line."""

    def select_many(self, queries: Sequence[Query], /) -> list[Selection]:
        """Choose for many queries."""


class Scorer(Protocol):
    """Gives every draft a distance; made by `tabon.selectors.load_scorer`."""

    @property
    def name(self) -> str:
        """Return what `--selector` calls it."""

    @property
    def needs_prior(self) -> bool:
        """Say whether a section without a prior cannot be scored."""

    @property
    def uses_prior(self) -> bool:
        """Say whether the prior has any say."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Return what changes its distances, for the signature."""

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return one section's distances; those of a query do not depend on the other queries."""


def full_name(selector: str) -> str:
    """Return a selector's own name, which records and tables have, for one that people know it by.

    >>> full_name("mbr:rouge-l-f"), full_name("fused")
    ('consensus:rouge-l-f', 'fused')
    """
    kind, colon, variant = selector.partition(":")
    return f"{ALIASES.get(kind, kind)}{colon}{variant}"


def load_scorer(scorer: str | Scorer, bank: TransitionBank, **options: Any) -> Scorer:  # noqa: ANN401
    """Return the scorer of a name such as `consensus:chamfer`, with these settings.

    Raises:
        BadInputError: a setting does not count for this scorer.
    """
    name = full_name(scorer) if isinstance(scorer, str) else scorer.name
    kind, _, variant = name.partition(":")
    if isinstance(scorer, str):
        built_in = {**SELECTORS, PAPER: SELECTORS["transition"]}
        make = lookup("selector", built_in, kind, group=GROUP)
        scorer = cast("Scorer", make(bank, variant))
        for option in {"distance", "aggregate"} & options.keys() if variant else ():
            raise BadInputError(
                f"{OPTIONS[option]} does not count beside {name}, which names it; leave one out"
            )
    known: set[str] = {field.name for field in fields(scorer)} if is_dataclass(scorer) else set()
    for option in options.keys() - (known & OPTIONS.keys()):
        raise BadInputError(
            f"{OPTIONS[option]} does not count for the selector {name}; leave one of them out"
        )
    return replace(scorer, **options) if options else scorer  # type: ignore[type-var]
