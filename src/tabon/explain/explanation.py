r"""Why this draft: what it changes, what that change is made of, and where the bank knows it from.

The transition of a section is a weighted sum of sentence vectors (see `distances`),
:math:`g = \sum_i w_i x_i`, with w = β for the draft's sentences and -α for the prior's.
The share of a sentence is :math:`w_i\, x_i \cdot g / |g|^2`: shares have a sign, and those of a
section add up to 1.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tabon.encoders import Encoder, load_encoder
from tabon.errors import BadInputError
from tabon.explain.alignment import Aligned, align
from tabon.explain.flags import Flag, query_flags
from tabon.method.bank import TransitionBank
from tabon.method.distances import DISTANCES, Distance, Rows, cosine_cost, get_distance
from tabon.method.selection import Neighbour, Note, Selection
from tabon.method.sentence_sets import Ids, SentenceTable, embed
from tabon.method.transitions import NORM_FLOOR
from tabon.selectors.scorer import AnySelector
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Section
from tabon.text.sentences import split_sentences

NEIGHBOURS = 3  # training transitions that are shown
PLAIN_ENCODER = "hashing"  # aligns sentences for a selector that has no encoder of its own

Sentences = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of each sentence in a transition; all of them add up to 1."""

    prior: tuple[float, ...]
    current: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TrainingChange:
    """A training transition that is near: what stood in the prior and what in the next report."""

    id: str
    distance: float
    prior: Sentences = ()  # empty where the bank's text may not be shown
    current: Sentences = ()
    alignment: tuple[Aligned, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionExplanation:
    """One section of the explained draft beside the prior."""

    prior: Sentences
    current: Sentences
    alignment: tuple[Aligned, ...]
    shares: Shares | None = None  # None: no transition: the selector has none, a side is empty, or it is zero
    distance: float | None = None  # to the bank; None where the section was not compared
    nearest: tuple[TrainingChange, ...] = ()

    def share_of(self, pair: Aligned) -> float | None:
        """Return what a line of the alignment adds to the transition, both sides together."""
        if self.shares is None:
            return None
        left = 0.0 if pair.prior is None else self.shares.prior[pair.prior]
        return left + (0.0 if pair.current is None else self.shares.current[pair.current])


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftDistances:
    """One draft's distances, in total and by section; lower is better."""

    draft: int
    total: float
    sections: Mapping[Section, float]
    lacks: tuple[Section, ...] = ()  # sections that count and that it does not have
    parts: Mapping[Section, Mapping[str, float | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a draft was chosen, or not."""

    id: str
    draft: int | None  # the one that is explained; None where none was chosen or asked for
    selected: int | None
    num_candidates: int
    runner_up: int | None = None  # the second best
    margin: float | None = None  # of the chosen draft to the second best
    behind: float | None = None  # the explained draft's total less the chosen one's
    tied: bool = False
    abstained: str | None = None
    flags: tuple[Note | Flag, ...] = ()
    drafts: tuple[DraftDistances, ...] = ()  # nearest first
    sections: Mapping[Section, SectionExplanation] = field(default_factory=dict)
    distance: str = ""  # whose transitions are shared out; empty where the selector has none
    signature: str = ""
    aligned_by: str = ""  # the encoder whose distances align the sentences

    def as_record(self) -> dict[str, Any]:
        """Return everything as what JSON can hold."""
        return {**asdict(self), "flags": list(map(str, self.flags))}


def explain(
    selector: AnySelector,
    query: Query,
    *,
    draft: int | None = None,
    neighbours: int = NEIGHBOURS,
    bank_text: bool = True,
) -> Explanation:
    """Explain the pick of one query, or another draft of it.

    Args:
        selector: what chooses.
        query: the prior and the drafts.
        draft: the draft to explain; the chosen one where it is left out.
        neighbours: training transitions to show, at most as many as the selector looks at.
        bank_text: show their sentences; False shows ids only, where a licence asks for that.

    Raises:
        BadInputError: the query has no such draft.
    """
    [found] = explain_many(selector, [query], draft=draft, neighbours=neighbours, bank_text=bank_text)
    return found


def explain_many(
    selector: AnySelector,
    queries: Sequence[Query],
    *,
    draft: int | None = None,
    neighbours: int = NEIGHBOURS,
    bank_text: bool = True,
) -> list[Explanation]:
    """Explain many queries at once; each as if it had been asked alone."""
    if neighbours < 0:
        raise BadInputError(f"{neighbours} neighbours were asked for; give 0 or more")
    for query in queries:
        _check_draft(query, draft)
    basis = _basis(selector, queries, neighbours, bank_text=bank_text)
    answers = zip(queries, selector.select_many(queries), strict=True)
    return [
        _explanation(query, answer, answer.selected if draft is None else draft, basis)
        for query, answer in answers
    ]


def shares(distance: Distance, *, prior: Rows, current: Rows) -> Shares | None:
    """Return the share of each row in T(A, B); None where the transition is zero.

    Rows are in canonical order, as everywhere (see `sentence_sets`).

    >>> from tabon.method.distances import mean_shift
    >>> shares(mean_shift, prior=np.array([[1.0, 0.0]]), current=np.array([[0.0, 1.0]]))
    Shares(prior=(0.5,), current=(0.5,))
    """
    weights = distance(cosine_cost(prior=prior[None], current=current[None]))
    signed = np.concatenate([-weights.prior[0], weights.current[0]])
    terms = signed[:, None] * np.concatenate([prior, current])
    change = terms.sum(axis=0)
    if np.linalg.norm(change) < NORM_FLOOR:
        return None
    parts = (terms @ change / (change @ change)).tolist()
    return Shares(tuple(parts[: len(prior)]), tuple(parts[len(prior) :]))


@dataclass(frozen=True)
class _Basis:
    """What all explanations of one call rest on."""

    table: SentenceTable
    aligned_by: str
    distance: str  # empty: the selector has no transition of its own
    bank: TransitionBank | None
    neighbours: int
    bank_text: bool

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Return the row of each sentence in the table."""
        return {sentence: number for number, sentence in enumerate(self.table.sentences)}

    def ids(self, sentences: Sentences) -> Ids:
        """Return the rows of sentences, in the order of the report."""
        return np.array([self.rows[text] for text in sentences], dtype=np.int64)


def _basis(selector: AnySelector, queries: Sequence[Query], neighbours: int, *, bank_text: bool) -> _Basis:
    """Embed every sentence of the queries with the selector's own encoder, where it has one."""
    bank: TransitionBank | None = getattr(selector, "bank", None)
    own: Encoder | None = getattr(selector, "encoder", None)
    encoder = load_encoder(PLAIN_ENCODER) if own is None else own
    known = None if bank is None or own is None else bank.known_sentences
    table = embed(_texts(queries), encoder, known=known, store=getattr(selector, "store", None))
    distance = _distance_of(selector)
    return _Basis(table, encoder.fingerprint.encoder, distance, bank, neighbours, bank_text)


def _distance_of(selector: AnySelector) -> str:
    """Return the set distance whose transitions a selector compares; empty where it compares none."""
    name = getattr(getattr(selector, "scorer", None), "distance", "")
    return name if name in DISTANCES else ""


def _check_draft(query: Query, draft: int | None) -> None:
    """Refuse a draft that a query does not have."""
    count = len(query.candidates)
    if draft is not None and not 0 <= draft < count:
        has = f"drafts 0 to {count - 1}" if count else "no drafts"
        raise BadInputError(f"draft {draft} of query {query.id!r} was asked for; it has {has}")


def _texts(queries: Sequence[Query]) -> Iterator[str]:
    """Yield every sentence of the queries."""
    for query in queries:
        for report in (query.prior, *query.candidates):
            for section in SECTIONS:
                yield from split_sentences(report.section(section))


def _explanation(query: Query, selection: Selection, draft: int | None, basis: _Basis) -> Explanation:
    """Put together what is known of one query."""
    ranked, best, totals = _ranked(selection), selection.selected, selection.total_distances
    others = [number for number in ranked if number != best and not _empty(selection, number)]
    warnings = () if draft is None else query_flags(query, draft)
    return Explanation(
        id=query.id,
        draft=draft,
        selected=best,
        num_candidates=len(query.candidates),
        runner_up=others[0] if others and best is not None else None,
        margin=selection.margin,
        behind=None if draft is None or best is None else totals[draft] - totals[best],
        tied=selection.tied,
        abstained=selection.abstained,
        flags=(*selection.flags, *warnings),
        drafts=tuple(_draft_distances(selection, number) for number in ranked),
        sections={} if draft is None else dict(_sections(query, selection, draft, basis)),
        distance=basis.distance,
        signature=selection.signature,
        aligned_by=basis.aligned_by,
    )


def _empty(selection: Selection, draft: int) -> bool:
    """Say whether a draft has none of the sections that count: such a draft cannot be chosen."""
    return not any(part.has(draft) for part in selection.sections.values())


def _ranked(selection: Selection) -> list[int]:
    """Return all drafts, nearest first, in the order in which they would be chosen."""
    totals = selection.total_distances
    return sorted(range(len(totals)), key=lambda number: (_empty(selection, number), totals[number]))


def _draft_distances(selection: Selection, draft: int) -> DraftDistances:
    """Return one draft's distances."""
    sections = selection.sections
    return DraftDistances(
        draft=draft,
        total=selection.total_distances[draft],
        sections={name: part.distances[draft] for name, part in sections.items()},
        lacks=tuple(name for name, part in sections.items() if not part.has(draft)),
        parts={
            name: {part: values[draft] for part, values in found.parts.items()}
            for name, found in sections.items()
            if found.parts
        },
    )


def _sections(
    query: Query, selection: Selection, draft: int, basis: _Basis
) -> Iterator[tuple[Section, SectionExplanation]]:
    """Yield each section that the prior or the draft has."""
    for name in SECTIONS:
        prior = split_sentences(query.prior.section(name))
        current = split_sentences(query.candidates[draft].section(name))
        part = selection.sections.get(name)
        compared = part if part is not None and part.has(draft) else None
        near = () if compared is None else compared.nearest[draft][: basis.neighbours]
        if prior or current:
            yield (
                name,
                SectionExplanation(
                    prior=prior,
                    current=current,
                    alignment=_aligned(basis.table, basis.ids(prior), basis.ids(current)),
                    shares=_shares(prior, current, basis),
                    distance=None if compared is None else compared.distances[draft],
                    nearest=tuple(_training_change(found, name, basis) for found in near),
                ),
            )


def _aligned(table: SentenceTable, prior: Ids, current: Ids) -> tuple[Aligned, ...]:
    """Align two lists of rows of one table."""
    texts = ([table.sentences[row] for row in side] for side in (prior, current))
    return align(*texts, prior_vectors=table.vectors[prior], current_vectors=table.vectors[current])


def _shares(prior: Sentences, current: Sentences, basis: _Basis) -> Shares | None:
    """Share a transition out, in the order of the reports; it is worked out in canonical order."""
    if not (basis.distance and prior and current):
        return None
    sides = basis.ids(prior), basis.ids(current)
    orders = [np.argsort(side, kind="stable") for side in sides]
    before, after = (basis.table.vectors[side[order]] for side, order in zip(sides, orders, strict=True))
    found = shares(get_distance(basis.distance), prior=before, current=after)
    if found is None:
        return None
    return Shares(_put_back(found.prior, orders[0]), _put_back(found.current, orders[1]))


def _put_back(values: tuple[float, ...], order: Ids) -> tuple[float, ...]:
    """Undo a sorting."""
    back = np.empty(len(values))
    back[order] = values
    return tuple(back.tolist())


def _training_change(found: Neighbour, section: Section, basis: _Basis) -> TrainingChange:
    """Return a training transition with its sentences, where these are known and may be shown."""
    if not basis.bank_text or basis.bank is None:
        return TrainingChange(found.id, found.distance)
    table, pairs = basis.bank.table, basis.bank.pairs[section]
    prior, current = pairs.prior.as_written(found.row), pairs.current.as_written(found.row)
    before, after = (tuple(table.sentences[number] for number in side) for side in (prior, current))
    return TrainingChange(found.id, found.distance, before, after, _aligned(table, prior, current))
