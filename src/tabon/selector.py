"""The selector: a bank, a distance and an aggregation, asked for the best draft."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabon._registry import check_name
from tabon.bank import TransitionBank
from tabon.distances import DISTANCES, get_distance
from tabon.encoders import ENCODERS, Encoder, SentenceEncoder, load_built_in, load_encoder
from tabon.errors import BadInputError, EncoderError
from tabon.records import Query
from tabon.reports import SECTIONS, Report, Section, report_from_record
from tabon.scoring import (
    AGGREGATES,
    ZERO_POLICIES,
    Aggregate,
    BankNeighbours,
    ZeroPolicy,
    aggregate_distances,
    bank_neighbours,
)
from tabon.selection import EMPTY_POLICY, WORST, Neighbour, SectionDistances, Selection, select
from tabon.sentence_sets import SentenceTable, embed
from tabon.sentence_store import SentenceStore
from tabon.sentences import split_sentences
from tabon.signature import Fingerprint, Signature
from tabon.transitions import Transitions, transitions
from tabon.transport import SOLVER

LONG_SECTION = 20_000  # characters; longer than any real section
LONGEST_NAME = 100  # characters of an encoder's name that a message repeats
Sentences = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Split:
    """A query's reports as sentences, by section."""

    prior: Mapping[Section, Sentences]
    drafts: tuple[Mapping[Section, Sentences], ...]

    def pairs(self, section: Section) -> list[int]:
        """Return the drafts that can be compared with the prior in this section."""
        if not self.prior[section]:
            return []
        return [number for number, draft in enumerate(self.drafts) if draft[section]]


class Selector:
    """Picks the draft whose change from the prior is nearest to changes in the bank."""

    def __init__(  # noqa: PLR0913  # each is a named setting of the method
        self,
        bank: TransitionBank,
        *,
        distance: str = "novelty",
        aggregate: Aggregate = "min",
        num_neighbours: int = 10,
        zero: ZeroPolicy = "neutral",
        encoder: str | Path | SentenceEncoder | Encoder | None = None,
        store: SentenceStore | None = None,
        allow_bank_patients: bool = False,
    ) -> None:
        """Refuse settings that do not fit the bank; load the encoder that built it."""
        self.distance = check_name("distance", tuple(DISTANCES), distance)
        self.aggregate: Aggregate = check_name("aggregation", AGGREGATES, aggregate)  # type: ignore[assignment]
        self.zero: ZeroPolicy = check_name("zero policy", ZERO_POLICIES, zero)  # type: ignore[assignment]
        self.bank, self.num_neighbours = bank, num_neighbours
        self._neighbours = {section: self._neighbours_in(section) for section in SECTIONS}
        self.encoder = bank_encoder(bank, encoder)
        Fingerprint.of(self.encoder).check(bank.fingerprint)
        self.store, self._allow_bank_patients = store, allow_bank_patients

    def select(
        self, prior: Report | str, candidates: Sequence[Report | str], *, patient: str | None = None
    ) -> Selection:
        """Choose among drafts of one visit, given the patient's prior report."""
        if isinstance(candidates, str | Mapping):
            raise BadInputError("candidates is one draft; give a list of drafts")
        drafts = tuple(map(_report, candidates))
        query = Query(id="", priors=(_report(prior),), candidates=drafts, patient=patient)
        return self.select_many([query])[0]

    def select_many(self, queries: Sequence[Query]) -> list[Selection]:
        """Choose for many queries at once; each result is as if it had been asked alone."""
        split = [_split(query) for query in queries]
        sentences = {text for one in split for text in _texts(one)}
        table = embed(sentences, self.encoder, known=self.bank.known_sentences, store=self.store)
        scored = {section: self._score(split, table, section) for section in SECTIONS}
        return [
            self._choose(query, one, {section: scored[section][number] for section in SECTIONS})
            for number, (query, one) in enumerate(zip(queries, split, strict=True))
        ]

    @cached_property
    def signature(self) -> str:
        """Return the line that goes under every number this selector gives."""
        fingerprint = self.bank.fingerprint
        return str(
            Signature(
                distance=self.distance,
                aggregate="min" if self.aggregate == "min" else f"knn{self.num_neighbours}",
                encoder=f"{fingerprint['encoder']}@{fingerprint['weights'][:12]}",
                splitter=fingerprint["splitter"],
                parser=fingerprint["parser"],
                sets=fingerprint["sets"],
                zero=self.zero,
                empty=EMPTY_POLICY,
                solver=SOLVER if self.distance == "cost-ot" else "none",
                bank=self.bank.name_under(self.distance),
            )
        )

    def _neighbours_in(self, section: Section) -> int:
        """Return k in this section's bank; 0 where that bank is empty."""
        if self.num_neighbours < 1:
            raise BadInputError(f"k = {self.num_neighbours} neighbours were asked for; give 1 or more")
        size = len(self.bank.section(section, self.distance))
        if self.aggregate == "knn" and 0 < size < self.num_neighbours:
            raise BadInputError(
                f"k = {self.num_neighbours} neighbours were asked for, the bank has {size} {section} "
                "transitions; lower -k or build a larger bank"
            )
        return min(self.num_neighbours, size)

    def _score(self, split: list[_Split], table: SentenceTable, section: Section) -> list["_Scored | None"]:
        """Return each query's scored drafts in one section (eq. 8-10)."""
        if self._neighbours[section] == 0:
            return [None] * len(split)
        drafts = [(one, one.drafts[number]) for one in split for number in one.pairs(section)]
        prior = table.rows_of(one.prior[section] for one, _ in drafts)
        current = table.rows_of(draft[section] for _, draft in drafts)
        [moves] = transitions([get_distance(self.distance)], table.vectors, prior=prior, current=current)
        bank = self.bank.section(section, self.distance)
        found = bank_neighbours(moves, bank, self._neighbours[section], self.zero)
        scored = _Scored(moves, found, aggregate_distances(found.distances, self.aggregate))
        ends = np.cumsum([len(one.pairs(section)) for one in split])
        return [
            scored.part(slice(end - len(pairs), end)) if (pairs := one.pairs(section)) else None
            for one, end in zip(split, ends, strict=True)
        ]

    def _choose(self, query: Query, split: _Split, scored: Mapping[Section, "_Scored | None"]) -> Selection:
        """Put one query's sections together (eq. 11-12), or say why nothing is chosen."""
        flags = tuple(_flags(query, split, scored))
        reason = self._reason_to_abstain(query, split)
        if reason is not None:
            return Selection(selected=None, flags=flags, abstained=reason, signature=self.signature)
        sections = {
            section: self._section_distances(split.pairs(section), part, len(split.drafts))
            for section, part in scored.items()
            if part is not None
        }
        return select(sections, flags=flags, signature=self.signature)

    def _reason_to_abstain(self, query: Query, split: _Split) -> str | None:
        """Return why a query cannot be answered, before any distance is looked at."""
        if query.patient in self.bank.patients and not self._allow_bank_patients:
            return "patient-in-bank"
        if not split.drafts:
            return "no-drafts"
        if not any(split.prior.values()):
            return "empty-prior"
        return None if any(any(draft.values()) for draft in split.drafts) else "all-drafts-empty"

    def _section_distances(self, pairs: list[int], part: "_Scored", count: int) -> SectionDistances:
        """Spread scored drafts over all drafts; those that lack the section get the worst distance."""
        distances, nearest = [WORST] * count, [()] * count  # type: tuple[list[float], list[tuple[Neighbour, ...]]]
        for position, number in enumerate(pairs):
            distances[number] = float(part.distances[position])
            nearest[number] = tuple(
                Neighbour(str(self.bank.provenance[row]["id"]), float(distance))
                for row, distance in zip(
                    part.neighbours.rows[position], part.neighbours.distances[position], strict=True
                )
            )
        return SectionDistances(distances=tuple(distances), nearest=tuple(nearest))


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """Drafts of one section with their transitions, neighbours and bank distances."""

    moves: Transitions
    neighbours: BankNeighbours
    distances: NDArray[np.float64]

    def part(self, rows: slice) -> "_Scored":
        """Return some of the drafts."""
        moves = Transitions(self.moves.directions[rows], self.moves.zero[rows])
        found = BankNeighbours(self.neighbours.distances[rows], self.neighbours.rows[rows])
        return _Scored(moves, found, self.distances[rows])


def _report(value: Report | str) -> Report:
    """Take a report as it is, or read it from text or a record."""
    return value if isinstance(value, Report) else report_from_record(value)


def _split(query: Query) -> _Split:
    """Split the prior and every draft into sentences."""
    return _Split(_sections(query.prior), tuple(map(_sections, query.candidates)))


def _sections(report: Report) -> dict[Section, Sentences]:
    """Split both sections of a report."""
    return {section: split_sentences(report.section(section)) for section in SECTIONS}


def _texts(split: _Split) -> Iterator[str]:
    """Yield every sentence of a query."""
    for report in (split.prior, *split.drafts):
        for sentences in report.values():
            yield from sentences


def _flags(query: Query, split: _Split, scored: Mapping[Section, _Scored | None]) -> Iterator[str]:
    """Yield what a reader should know, as kind:section or kind:section:draft."""
    for section, part in scored.items():
        if not split.prior[section]:
            yield f"prior-lacks:{section}"
        elif part is None and split.pairs(section):
            yield f"bank-lacks:{section}"
        if len(query.prior.section(section)) > LONG_SECTION:
            yield f"long-section:{section}"
        yield from _draft_flags(query, split, section)
        if part is not None:
            yield from _no_change(section, split.pairs(section), part)


def _draft_flags(query: Query, split: _Split, section: Section) -> Iterator[str]:
    """Yield what is to be known of each draft's section, scored or not."""
    for number, draft in enumerate(query.candidates):
        if not split.drafts[number][section]:
            yield f"draft-lacks:{section}:{number}"
        if len(draft.section(section)) > LONG_SECTION:
            yield f"long-section:{section}:{number}"


def _no_change(section: Section, pairs: list[int], part: _Scored) -> Iterator[str]:
    """Yield a flag for each draft whose transition is zero."""
    return (f"no-change:{section}:{pairs[position]}" for position in np.flatnonzero(part.moves.zero))


def bank_encoder(
    bank: TransitionBank, encoder: str | Path | SentenceEncoder | Encoder | None = None
) -> Encoder:
    """Load the encoder that the user names, else the built-in one that the bank names.

    A bank may come from anyone, so its text alone loads no folder and fetches nothing.
    """
    return load_built_in(encoder_of(bank)) if encoder is None else load_encoder(encoder)


def encoder_of(bank: TransitionBank) -> str:
    """Return the name of the built-in encoder that built the bank, and where it ran."""
    name, revision = (str(bank.fingerprint[field])[:LONGEST_NAME] for field in ("encoder", "revision"))
    if name not in ENCODERS:
        raise EncoderError(
            f"the bank was built with the encoder {name!r} (revision {revision!r}), which is not built in; "
            "pass that encoder yourself: --encoder FOLDER or --encoder owner/model@revision"
        )
    precision = str(bank.fingerprint["precision"]).partition(" ")[0]
    device = "&device=cuda" if "cuda" in str(bank.fingerprint.get("batching")) else ""
    return name if precision == "float32" else f"{name}?precision={precision}{device}"
