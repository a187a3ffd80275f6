"""The studies that are looked at: values, and how they are made.

A `StudyLine` is what a list shows of a study, a `Study` is all of it. Lines are
made for the whole cohort, studies when they are asked for, or one batch after
another. One `Studies` does one thing at a time; it may be called from any thread.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Final

from tabon.encoders.sentence_store import CachingEncoder
from tabon.errors import BadInputError
from tabon.explain.explanation import DraftDistances, Explainer, Explanation, TrainingChange, explainer_of
from tabon.explain.flags import Flag, draft_flags
from tabon.method.bank import TransitionBank
from tabon.method.distances import DISTANCES
from tabon.method.selection import Neighbour, Selection
from tabon.selectors import Selector
from tabon.selectors.prepared import Batch
from tabon.selectors.selector import bank_encoder
from tabon.selectors.setup import AbstainingSelector, SelectionSettings, make_selector, may_abstain
from tabon.service.explorer.images import ImageFolder
from tabon.service.explorer.maps import Placed, Placer, SectionMap, section_map
from tabon.service.explorer.scores import DraftScore, Scores
from tabon.text.records import Query, reference_of
from tabon.text.reports import SECTIONS, Report, Section

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

    @property
    def gain(self) -> float | None:
        """Return the pick's score less the mean over all drafts, which a random pick would get."""
        if self.scores is None or self.selection.selected is None:
            return None
        return self.scores[self.selection.selected] - sum(self.scores) / len(self.scores)

    def listed(self) -> "StudyLine":
        """Return the line without what only the study shows: thousands of lines are kept."""
        return replace(self, selection=replace(self.selection, sections={}, total_distances=()))


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDraft:
    """One draft: where it stands, what it changes, and what a reader should look at."""

    number: int
    rank: int  # 0 is the nearest
    report: Report
    distances: DraftDistances | None  # None where nothing could be compared
    explanation: Explanation
    nearest: Mapping[Section, tuple[TrainingChange, ...]]
    flags: tuple[Flag, ...]
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Everything that is shown of one study."""

    line: StudyLine
    reference: Report | None
    drafts: tuple[StudyDraft, ...]
    places: Mapping[Section, Placed] = field(default_factory=dict)


class Studies:
    """The studies of one queries file under one selector."""

    def __init__(
        self,
        selector: Selector,
        queries: Iterable[Query],
        settings: ExplorerSettings | None = None,
        *,
        abstaining: AbstainingSelector | Selector | None = None,
    ) -> None:
        """Take a selector of its own, what chooses where that may abstain too, and the queries."""
        self.settings = ExplorerSettings() if settings is None else settings
        self.queries = tuple(queries)
        check_count(len(self.queries))
        self._selector, self._abstaining = selector, selector if abstaining is None else abstaining
        self._lock = RLock()
        self._maps: Mapping[Section, SectionMap] | None = None
        self._listed: tuple[StudyLine, ...] | None = None

    def __len__(self) -> int:
        """Count the studies."""
        return len(self.queries)

    @property
    def bank(self) -> TransitionBank:
        """Return the training transitions."""
        return self._selector.bank

    @property
    def signature(self) -> str:
        """Return what goes under every number."""
        return self._abstaining.signature

    @property
    def maps(self) -> Mapping[Section, SectionMap]:
        """Return the map of each section; none where the selector compares no transitions."""
        distance = _distance_of(self._selector)
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
                batches = map(self._lines, self._batches())
                self._listed = tuple(line.listed() for batch in batches for line in batch)
            return self._listed

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

    def _lines(self, numbers: range) -> list[StudyLine]:
        """Answer a batch of queries."""
        return self._answered(numbers, self._selector.batch(self.queries[numbers.start : numbers.stop]))

    def _answered(self, numbers: range, batch: Batch) -> list[StudyLine]:
        """Return the line of each study of a batch."""
        queries = self.queries[numbers.start : numbers.stop]
        score, images = self.settings.score, self.settings.images
        return [
            StudyLine(
                number=number,
                query=query,
                selection=selection,
                flags=() if selection.selected is None else _flags(query, selection.selected),
                scores=None if score is None else score.of(query),
                has_image=images is not None and images.path_of(query) is not None,
            )
            for number, query, selection in zip(numbers, queries, self._abstaining.choose(batch), strict=True)
        ]

    def _studies(self, numbers: range) -> list[Study]:
        """Answer a batch of queries and explain each of their drafts."""
        batch = self._selector.batch(self.queries[numbers.start : numbers.stop])
        lines = self._answered(numbers, batch)
        explainer = explainer_of(self._selector, batch, neighbours=0, bank_text=False)
        placer = Placer(self.bank, batch, _distance_of(self._selector), self.maps)
        return [
            Study(
                line=line,
                reference=reference_of(line.query),
                drafts=tuple(self._drafts(line, explainer, place)),
                places=placer.places(place, line.selection),
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
                nearest={
                    section: tuple(
                        self._change(one, section) for one in part.nearest[number][: self.settings.neighbours]
                    )
                    for section, part in line.selection.sections.items()
                },
                flags=_flags(line.query, number),
                score=None if line.scores is None else line.scores[number],
            )

    def _change(self, found: Neighbour, section: Section) -> TrainingChange:
        """Return a training transition with its sentences, where these may be shown."""
        if not self.settings.bank_text:
            return TrainingChange(found.id, found.distance)
        pairs, sentences = self.bank.pairs[section], self.bank.table.sentences
        prior, current = (
            tuple(sentences[text] for text in side.as_written(found.row))
            for side in (pairs.prior, pairs.current)
        )
        return TrainingChange(found.id, found.distance, prior, current)


def explorer_of(
    bank: TransitionBank,
    selection: SelectionSettings,
    queries: Iterable[Query],
    settings: ExplorerSettings | None = None,
) -> Studies:
    """Make the selector that the settings name, for these studies alone, and put them before it."""
    encoder = CachingEncoder(bank_encoder(bank, selection.encoder), REMEMBERED)
    selector = make_selector(bank, selection, encoder)
    return Studies(selector, queries, settings, abstaining=may_abstain(selector, selection))


def check_count(count: int) -> None:
    """Refuse an empty page, and one that no browser would show."""
    if count == 0:
        raise BadInputError("the file holds no queries; write one JSON object a line")
    if count > MOST_STUDIES:
        raise BadInputError(
            f"there are {count:,} queries; a page shows at most {MOST_STUDIES:,}, split the file"
        )


def _flags(query: Query, draft: int) -> tuple[Flag, ...]:
    """Return what a reader of a draft should look at."""
    has_prior = not query.prior.is_empty
    return draft_flags(query.prior, query.candidates[draft], query.candidates, has_prior=has_prior)


def _distance_of(selector: Selector) -> str:
    """Return the set distance whose transitions a selector compares; empty where it compares none."""
    name = getattr(selector.scorer, "distance", "")
    return name if name in DISTANCES else ""
