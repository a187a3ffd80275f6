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

from tabon.encoders import load_encoder
from tabon.errors import BadInputError
from tabon.explanation.alignment import Aligned
from tabon.explanation.decision import PartShare, because, decision, kind_of, main_reason
from tabon.explanation.evidence import Evidence, align_rows, cited_by, evidence_of
from tabon.explanation.flags import Flag, query_flags
from tabon.method.bank import TransitionBank
from tabon.method.distances import DISTANCES, Distance, Rows, cosine_cost, get_distance
from tabon.method.selection import ABSTENTIONS, Neighbour, Note, Selection
from tabon.method.sentence_sets import Ids
from tabon.method.transitions import NORM_FLOOR
from tabon.selectors import Selector, make_batch
from tabon.selectors.scorer import AnySelector, Batch, Scorer
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Section

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
    """A training transition that is named: what stood in the prior and what in the next report."""

    id: str
    distance: float
    prior: Sentences = ()  # empty if the bank's text may not be shown
    current: Sentences = ()
    alignment: tuple[Aligned, ...] = ()
    prior_distance: float | None = None  # of its prior to the query's, if it was looked up by that


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionExplanation:
    """One section of the explained draft beside the prior."""

    prior: Sentences
    current: Sentences
    alignment: tuple[Aligned, ...]
    shares: Shares | None = None  # None: no transition: the selector has none, a side is empty, or it is zero
    distance: float | None = None  # to the bank; None if the section was not compared
    nearest: tuple[TrainingChange, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)

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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation:
    """Why a draft was chosen, or not."""

    id: str
    draft: int | None  # the one that is explained; None if none was chosen or asked for
    selected: int | None
    num_candidates: int
    runner_up: int | None = None  # the second best
    margin: float | None = None  # of the chosen draft to the second best
    behind: float | None = None  # the explained draft's total less the chosen one's
    against: int | None = None  # what the pick is weighed against: the explained draft, else the second best
    decision: tuple[PartShare, ...] = ()  # each part's share of the pick's lead over that draft
    tied: bool = False
    abstained: str | None = None
    flags: tuple[Note | Flag, ...] = ()
    drafts: tuple[DraftDistances, ...] = ()  # nearest first
    sections: Mapping[Section, SectionExplanation] = field(default_factory=dict)
    distance: str = ""  # whose transitions are shared out; empty if the selector has none
    parts_add_up: bool = False  # whether the parts of a draft's distance add up to it
    cited: str = ""  # what the training transitions of each section are; empty if there are none
    signature: str = ""
    aligned_by: str = ""  # the encoder whose distances align the sentences

    def __repr__(self) -> str:
        """Name the query and the drafts, without their text."""
        return f"Explanation(id={self.id!r}, draft={self.draft}, selected={self.selected})"

    @property
    def verdict(self) -> str:
        """Say in one sentence which draft was chosen and what decided, or why none was."""
        return self.verdict_from(0)

    def verdict_from(self, first: int, *, numbers: bool = True) -> str:
        """Say the verdict with drafts counted from `first`; without numbers, only what decided most."""
        if self.selected is None:
            why = f": {ABSTENTIONS.get(self.abstained, self.abstained)}" if self.abstained else ""
            return f"no draft was chosen{why}"
        chosen = f"draft {self.selected + first} of {self.num_candidates} was chosen"
        if self.against is None:
            return f"{chosen}; there was no other to choose"
        other = f"draft {self.against + first}"
        totals = {each.draft: each.total for each in self.drafts}
        lead = totals[self.against] - totals[self.selected]
        if lead <= 0 or not self.decision:
            return f"{chosen}; {other} is as near, and the first of equals is taken"
        reason = because(self.decision, lead) if numbers else main_reason(self.decision)
        return f"{chosen} over {other} {reason}"

    def as_record(self) -> dict[str, Any]:
        """Return everything as what JSON can hold."""
        return {"verdict": self.verdict, **asdict(self), "flags": list(map(str, self.flags))}


def explain(
    selector: Selector | AnySelector,
    query: Query,
    *,
    draft: int | None = None,
    neighbours: int = NEIGHBOURS,
    bank_text: bool = True,
) -> Explanation:
    """Explain the pick of one query, or another draft of it; `explanation_text` writes it out.

    Args:
        selector: what picks.
        query: what it picks for.
        draft: the draft to explain; the chosen one if it is left out.
        neighbours: how many training transitions are shown, if the selector looks at so many.
        bank_text: whether their sentences are shown, or their ids only, as some licences ask.

    Raises:
        BadInputError: the query has no such draft.

    >>> bank = TransitionBank.build([{"prior": "A", "current": "B", "patient": 7}], encoder="hashing")
    >>> explain(Selector(bank), Query(prior="Clear.", candidates=["Effusion."], id="q"))
    Explanation(id='q', draft=0, selected=0)
    """
    [found] = explain_many(selector, [query], draft=draft, neighbours=neighbours, bank_text=bank_text)
    return found


def explain_many(
    selector: Selector | AnySelector,
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
        count = len(query.candidates)
        if draft is not None and not 0 <= draft < count:
            has = f"drafts 0 to {count - 1}" if count else "no drafts"
            raise BadInputError(f"draft {draft} of query {query.id!r} was asked for; it has {has}")
    if isinstance(selector, Selector):
        explainer = explainer_of(
            selector, selector.batch(queries), neighbours=neighbours, bank_text=bank_text
        )
        answers = selector.choose(explainer.batch)
    else:
        encoder = load_encoder(PLAIN_ENCODER)
        explainer = Explainer(make_batch(queries, None, encoder), encoder.fingerprint.encoder)
        answers = selector.select_many(queries)
    return [
        explainer.explain(number, answer, answer.selected if draft is None else draft)
        for number, answer in enumerate(answers)
    ]


def shares(distance: Distance, *, prior: Rows, current: Rows) -> Shares | None:
    """Return the share of each row in T(A, B); None if the transition is zero.

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
class Explainer:
    """What the explanations of a batch of queries rest on; made by `explainer_of`."""

    batch: Batch
    aligned_by: str  # the encoder of the batch
    distance: str = ""  # empty: the selector has no transition of its own
    bank: TransitionBank | None = None
    neighbours: int = NEIGHBOURS
    bank_text: bool = True
    scorer: Scorer | None = None  # None: nothing is known but the distances

    def explain(self, number: int, selection: Selection, draft: int | None) -> Explanation:
        """Put together what is known of one query of the batch, and of one of its drafts."""
        place = self.batch.places[number][-1]
        query, totals, best = self.batch.queries[place], selection.total_distances, selection.selected
        lacks = [
            not any(part.compared[j] for part in selection.sections.values()) for j in range(len(totals))
        ]
        ranked = sorted(range(len(totals)), key=lambda j: (lacks[j], totals[j]))  # as they would be chosen
        others = [j for j in ranked if j != best and not lacks[j]]
        warnings = () if draft is None else query_flags(query, draft)
        against = draft if draft not in (None, best) else next(iter(others), None)
        against = None if best is None else against
        return Explanation(
            id=query.id,
            draft=draft,
            selected=best,
            num_candidates=len(query.candidates),
            runner_up=others[0] if others and best is not None else None,
            margin=selection.margin,
            behind=None if draft is None or best is None else totals[draft] - totals[best],
            against=against,
            decision=() if against is None else self._decision(selection, against),
            tied=selection.tied,
            abstained=selection.abstained,
            flags=(*selection.flags, *warnings),
            drafts=tuple(_draft_distances(selection, j) for j in ranked),
            sections={} if draft is None else dict(self._sections(number, selection, draft)),
            distance=self.distance,
            parts_add_up=parts_add_up(self.scorer),
            cited=cited_by(self.scorer),
            signature=selection.signature,
            aligned_by=self.aligned_by,
        )

    def _sections(
        self, number: int, selection: Selection, draft: int
    ) -> Iterator[tuple[Section, SectionExplanation]]:
        """Yield each section that the prior or the draft has."""
        place = self.batch.places[number][-1]
        row = self.batch.rows(place)[draft]
        kinds = self.kinds(selection)
        for name in SECTIONS:
            prior = self.batch.prior_sets[name].as_written(place)
            current = self.batch.draft_sets[name].as_written(row)
            part = selection.sections.get(name)
            compared = part if part is not None and part.compared[draft] else None
            near = () if compared is None else self.near(number, selection, name, draft)[: self.neighbours]
            alignment = align_rows(self.batch.table, prior, current)
            if len(prior) or len(current):
                yield (
                    name,
                    SectionExplanation(
                        prior=self.batch.priors[place][name],
                        current=self.batch.drafts[row][name],
                        alignment=alignment,
                        shares=self._shares(prior, current),
                        distance=None if compared is None else compared.distances[draft],
                        nearest=tuple(self.training_change(found, name) for found in near),
                        evidence=Evidence()
                        if compared is None
                        else evidence_of(
                            self.batch, name, row, kinds=kinds, scorer=self.scorer, alignment=alignment
                        ),
                    ),
                )

    def near(self, number: int, selection: Selection, section: Section, draft: int) -> tuple[Neighbour, ...]:
        """Return the training transitions that a draft of one query is explained by."""
        if not self._next_visits:
            return selection.sections[section].nearest[draft]
        return self._next_visits[section][self.batch.rows(self.batch.places[number][-1])[draft]]

    def kinds(self, selection: Selection) -> frozenset[str]:
        """Return what the distances of a selection are made of."""
        if self.scorer is None:
            return frozenset()
        parts = (part for own in selection.sections.values() for part in own.parts)
        return frozenset(map(kind_of, parts if parts_add_up(self.scorer) else [self.scorer.name]))

    @cached_property
    def _next_visits(self) -> Mapping[Section, tuple[tuple[Neighbour, ...], ...]]:
        """Return what came next for similar priors, where the scorer weighs it among other things."""
        looked_up = getattr(self.scorer, "next_visits", None)
        return {} if looked_up is None else {name: looked_up(self.batch, name) for name in SECTIONS}

    def _decision(self, selection: Selection, against: int) -> tuple[PartShare, ...]:
        """Share out the pick's lead over a draft."""
        name = "distance" if self.scorer is None else self.scorer.name
        return decision(selection, against, name, parts_add_up=parts_add_up(self.scorer))

    def _shares(self, prior: Ids, current: Ids) -> Shares | None:
        """Share a transition out, in the order of the reports; it is worked out in canonical order."""
        if not (self.distance and len(prior) and len(current)):
            return None
        orders = [np.argsort(side, kind="stable") for side in (prior, current)]
        before, after = (
            self.batch.table.vectors[side[order]]
            for side, order in zip((prior, current), orders, strict=True)
        )
        found = shares(get_distance(self.distance), prior=before, current=after)
        if found is None:
            return None
        written = (
            tuple(np.array(values)[np.argsort(order)].tolist())
            for values, order in zip((found.prior, found.current), orders, strict=True)
        )
        return Shares(*written)

    def training_change(self, found: Neighbour, section: Section, *, aligned: bool = True) -> TrainingChange:
        """Return a training transition with its sentences, if these are known and may be shown."""
        if not self.bank_text or self.bank is None:
            return TrainingChange(found.id, found.distance, prior_distance=found.prior_distance)
        table, pairs = self.bank.table, self.bank.pairs[section]
        prior, current = pairs.prior.as_written(found.row), pairs.current.as_written(found.row)
        before, after = (tuple(table.sentences[number] for number in side) for side in (prior, current))
        alignment = align_rows(table, prior, current) if aligned else ()
        return TrainingChange(found.id, found.distance, before, after, alignment, found.prior_distance)


def explainer_of(
    selector: Selector, batch: Batch, *, neighbours: int = NEIGHBOURS, bank_text: bool = True
) -> Explainer:
    """Return what explains the queries of a batch that this selector made."""
    return Explainer(
        batch,
        selector.encoder.fingerprint.encoder,
        transition_distance(selector),
        selector.bank,
        neighbours,
        bank_text,
        selector.scorer,
    )


def transition_distance(selector: Selector) -> str:
    """Return the set distance whose transitions a selector compares; empty if it compares none."""
    name = getattr(selector.scorer, "distance", "")
    return name if name in DISTANCES else ""


def parts_add_up(scorer: Scorer | None) -> bool:
    """Say whether a scorer's distance is the sum of its parts."""
    return getattr(scorer, "parts_add_up", False)


def _draft_distances(selection: Selection, draft: int) -> DraftDistances:
    """Return one draft's distances."""
    sections = selection.sections
    return DraftDistances(
        draft=draft,
        total=selection.total_distances[draft],
        sections={name: part.distances[draft] for name, part in sections.items()},
        lacks=tuple(name for name, part in sections.items() if not part.compared[draft]),
        parts={
            name: {part: values[draft] for part, values in found.parts.items()}
            for name, found in sections.items()
            if found.parts
        },
    )
