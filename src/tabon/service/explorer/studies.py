"""The studies that are looked at, with their images and scores: values, and how they are made.

A `StudyLine` is what a list shows of a study, a `Study` is all of it. Lines are
made for the whole cohort, studies when they are asked for, or one batch after
another. One `Studies` does one thing at a time; it may be called from any thread.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Final

from tabon.encoders.sentence_store import CachingEncoder
from tabon.errors import BadInputError
from tabon.explanation.evidence import cited_by
from tabon.explanation.explanation import (
    DraftDistances,
    Explainer,
    Explanation,
    TrainingChange,
    explainer_of,
    parts_add_up,
    transition_distance,
)
from tabon.explanation.flags import Flag, query_flags
from tabon.method.bank import TransitionBank
from tabon.method.selection import Selection
from tabon.selectors import Selector
from tabon.selectors.scorer import Batch
from tabon.selectors.selector import bank_encoder
from tabon.selectors.setup import AbstainingSelector, SelectionSettings, make_selector, may_abstain
from tabon.service.explorer.films import ImageFolder
from tabon.service.explorer.maps import Placed, Placer, SectionMap, section_map
from tabon.service.explorer.references import AlignedReference, Sentences, aligned_references
from tabon.service.explorer.scores import DraftScore, Scores
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Report, Section

Note = Callable[[str], None]  # called with the reason why an image is not shown
MOST_STUDIES: Final = 20_000  # of one page
REMEMBERED = 20_000  # sentences
BATCH: Final = 64  # studies that are worked out at once
NEIGHBOURS: Final = 3  # training transitions that are shown of each draft


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorerSettings:
    """How studies are shown."""

    title: str = "tabon"
    neighbours: int = NEIGHBOURS
    bank_text: bool = True  # False shows ids of training transitions only
    score: DraftScore | None = None  # what gain is measured in
    images: ImageFolder | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLine:
    """What a list shows of a study."""

    number: int
    query: Query
    selection: Selection
    flags: tuple[Flag, ...]  # of the picked draft
    scores: Scores | None
    has_image: bool
    beside: Selection | None = None  # what the second selector chose

    def score(self, selection: Selection) -> float | None:
        """Return the score of what a selector chose."""
        if self.scores is None or selection.selected is None:
            return None
        return self.scores[selection.selected]

    def gain(self, selection: Selection) -> float | None:
        """Return the pick's score less the mean over all drafts, which a random pick would get."""
        score = self.score(selection)
        return None if score is None or self.scores is None else score - sum(self.scores) / len(self.scores)

    def listed(self) -> "StudyLine":
        """Return the line without what only the study shows: thousands of lines are kept."""
        return replace(self, selection=_listed(self.selection), beside=self.beside and _listed(self.beside))


def _listed(selection: Selection) -> Selection:
    """Return a selection without its distances."""
    return replace(selection, sections={}, total_distances=())


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDraft:
    """One draft: where it stands, what it changes, and what a reader should look at."""

    number: int
    rank: int  # 0 is the nearest
    report: Report
    distances: DraftDistances | None  # None if nothing could be compared
    explanation: Explanation
    sentences: Sentences
    nearest: Mapping[Section, tuple[TrainingChange, ...]]
    flags: tuple[Flag, ...]
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Everything that is shown of one study."""

    line: StudyLine
    prior_sentences: Sentences
    reference: AlignedReference | None
    drafts: tuple[StudyDraft, ...]
    places: Mapping[Section, Placed] = field(default_factory=dict)
    why: str | None = None  # what was chosen and what decided most, drafts counted from 1; None: nothing was
    beside_why: str | None = None  # the same of the second selector


class Studies:
    """The studies of one queries file under one selector."""

    def __init__(
        self,
        selector: Selector,
        queries: Iterable[Query],
        settings: ExplorerSettings | None = None,
        *,
        abstaining: AbstainingSelector | Selector | None = None,
        beside: Selector | None = None,
    ) -> None:
        """Take a selector of its own, what chooses if that may abstain too, queries, a second selector."""
        self.settings = ExplorerSettings() if settings is None else settings
        self.queries = tuple(queries)
        check_count(len(self.queries))
        self._selector, self._abstaining = selector, selector if abstaining is None else abstaining
        self.beside, self.bank = beside, selector.bank
        self._lock = RLock()
        self._maps: Mapping[Section, SectionMap] | None = None
        self._listed: tuple[StudyLine, ...] | None = None

    def __len__(self) -> int:
        """Count the studies."""
        return len(self.queries)

    @property
    def signature(self) -> str:
        """Return what goes under every number."""
        return self._abstaining.signature

    @property
    def selector_name(self) -> str:
        """Return what `--selector` calls the method."""
        return self._selector.scorer.name

    @property
    def cited(self) -> str:
        """Say what the training transitions beside a draft are; empty if there are none."""
        return cited_by(self._selector.scorer)

    @property
    def parts_add_up(self) -> bool:
        """Say whether the parts of a distance add up to it."""
        return parts_add_up(self._selector.scorer)

    @property
    def maps(self) -> Mapping[Section, SectionMap]:
        """Return the map of each section; none if the selector compares no transitions."""
        distance = transition_distance(self._selector)
        with self._lock:  # and not a cached property, whose own lock could be taken in another order
            if self._maps is None:
                made = {name: section_map(self.bank, name, distance) for name in SECTIONS if distance}
                self._maps = {name: found for name, found in made.items() if found is not None}
            return self._maps

    @property
    def lines(self) -> tuple[StudyLine, ...]:
        """Return a line for each study; the first call answers every query."""
        with self._lock:
            if self._listed is None:
                answered = (self._answered(numbers, self._batch(numbers)) for numbers in self._batches())
                self._listed = tuple(line.listed() for lines in answered for line in lines)
            return self._listed

    def prepare(self) -> int:
        """Work out all that the list shows, and return how many studies it has."""
        _, lines = self.maps, self.lines
        return len(lines)

    def study(self, number: int) -> Study:
        """Return one study, by its place in the file from 0.

        Raises:
            IndexError: there is no such study.
        """
        if not 0 <= number < len(self):
            raise IndexError(number)
        with self._lock:
            [study] = self._studies(range(number, number + 1))
        return study

    def all(self) -> Iterator[Study]:
        """Yield every study, some at a time: memory does not grow with their number."""
        for numbers in self._batches():
            with self._lock:
                batch = self._studies(numbers)
            yield from batch

    def _batches(self) -> Iterator[range]:
        """Cut the studies into batches."""
        return (range(start, min(start + BATCH, len(self))) for start in range(0, len(self), BATCH))

    def _batch(self, numbers: range) -> Batch:
        """Split and embed the reports of some studies."""
        return self._selector.batch(self.queries[numbers.start : numbers.stop])

    def _answered(self, numbers: range, batch: Batch) -> list[StudyLine]:
        """Return the line of each study of a batch."""
        queries = self.queries[numbers.start : numbers.stop]
        score, images = self.settings.score, self.settings.images
        beside = [None] * len(queries) if self.beside is None else self.beside.choose(batch)
        return [
            StudyLine(
                number=number,
                query=query,
                selection=selection,
                flags=() if selection.selected is None else query_flags(query, selection.selected),
                scores=None if score is None else score.of(query),
                has_image=images is not None and images.has_any(query),
                beside=other,
            )
            for number, query, selection, other in zip(
                numbers, queries, self._abstaining.choose(batch), beside, strict=True
            )
        ]

    def _studies(self, numbers: range) -> list[Study]:
        """Answer a batch of queries and explain each of their drafts."""
        batch = self._batch(numbers)
        lines = self._answered(numbers, batch)
        explainer = explainer_of(self._selector, batch, neighbours=0, bank_text=self.settings.bank_text)
        second = None if self.beside is None else explainer_of(self.beside, batch, neighbours=0)
        placer = Placer(self.bank, batch, explainer.distance, self.maps)
        references = aligned_references(self._selector, batch)
        return [
            Study(
                line=line,
                prior_sentences=batch.priors[batch.places[place][-1]],
                reference=references[place],
                drafts=tuple(self._drafts(line, explainer, place)),
                places=placer.places(place, line.selection),
                why=_why(explainer, place, line.selection),
                beside_why=None
                if second is None or line.beside is None
                else _why(second, place, line.beside),
            )
            for place, line in enumerate(lines)
        ]

    def _drafts(self, line: StudyLine, explainer: Explainer, place: int) -> Iterator[StudyDraft]:
        """Yield the drafts of one study in their order; texts of the bank are looked up here."""
        for number in range(len(line.query.candidates)):
            explanation = explainer.explain(place, line.selection, number)
            ranked = {one.draft: rank for rank, one in enumerate(explanation.drafts)}
            rank = ranked.get(number)
            yield StudyDraft(
                number=number,
                rank=number if rank is None else rank,
                report=line.query.candidates[number],
                distances=None if rank is None else explanation.drafts[rank],
                explanation=explanation,
                sentences=explainer.batch.drafts[
                    explainer.batch.rows(explainer.batch.places[place][-1])[number]
                ],
                nearest={
                    section: tuple(
                        explainer.training_change(one, section, aligned=False)
                        for one in explainer.near(place, line.selection, section, number)[
                            : self.settings.neighbours
                        ]
                    )
                    for section in line.selection.sections
                },
                flags=tuple(flag for flag in explanation.flags if isinstance(flag, Flag)),
                score=None if line.scores is None else line.scores[number],
            )


def _why(explainer: Explainer, place: int, selection: Selection) -> str | None:
    """Say in one sentence what was chosen and what decided most; nothing if nothing was chosen."""
    if selection.selected is None:
        return None
    return explainer.explain(place, selection, None).verdict_from(1, numbers=False)


def explorer_of(
    bank: TransitionBank,
    selection: SelectionSettings,
    queries: Iterable[Query],
    settings: ExplorerSettings | None = None,
    *,
    beside: str | None = None,
) -> Studies:
    """Make the selector that the settings name, for these studies alone, and put them before it.

    `beside` names a second selector, which has its own distances and abstains only for a rule of its own.
    """
    encoder = CachingEncoder(bank_encoder(bank, selection.encoder), REMEMBERED)
    selector = make_selector(bank, selection, encoder)
    second = None if beside is None else make_selector(bank, _second(selection, beside), encoder)
    return Studies(selector, queries, settings, abstaining=may_abstain(selector, selection), beside=second)


def _second(selection: SelectionSettings, name: str) -> SelectionSettings:
    """Return the settings of a second selector: what belongs to the first one's method is left out."""
    return SelectionSettings(
        selector=name,
        history=selection.history,
        allow_bank_patients=selection.allow_bank_patients,
        store=selection.store,
    )


def check_count(count: int) -> None:
    """Refuse an empty page, and one that no browser would show."""
    if count == 0:
        raise BadInputError("the file holds no queries; write one JSON object a line")
    if count > MOST_STUDIES:
        raise BadInputError(
            f"there are {count:,} queries; a page shows at most {MOST_STUDIES:,}, split the file"
        )
