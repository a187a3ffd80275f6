"""The studies that are looked at, with their images and scores: values, and how they are made.

A `StudyLine` is what a list shows of a study, a `Study` is all of it. Lines are
made for the whole cohort, studies when they are asked for, or one batch after
another. One `Studies` does one thing at a time; it may be called from any thread.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from threading import RLock
from typing import Final

import numpy as np

from tabon.encoders.sentence_store import CachingEncoder
from tabon.errors import BadInputError, UnknownNameError
from tabon.evaluation.draft_scores import measure_section
from tabon.evaluation.inputs import Case
from tabon.explanation.explanation import (
    DraftDistances,
    Explainer,
    Explanation,
    TrainingChange,
    cited_by,
    explainer_of,
    parts_add_up,
    transition_distance,
)
from tabon.explanation.flags import Flag, query_flags
from tabon.generation.images import encode_image
from tabon.generation.protocol import EncodedImage
from tabon.method.bank import TransitionBank
from tabon.method.selection import Selection
from tabon.metrics import WEIGHTLESS, Metric, load_metrics
from tabon.selectors import Selector
from tabon.selectors.scorer import Batch
from tabon.selectors.selector import bank_encoder
from tabon.selectors.setup import AbstainingSelector, SelectionSettings, make_selector, may_abstain
from tabon.service.explorer.maps import Placed, Placer, SectionMap, section_map
from tabon.text.records import Query, reference_of
from tabon.text.reports import SECTIONS, Report, Section

MAX_SIDE: Final = 1024  # pixels of the longer side
LONGEST_NAME: Final = 1024
Note = Callable[[str], None]  # called with the reason why an image is not shown
DEFAULT_SCORE = "rouge-l-f"
Scores = tuple[float, ...]  # one per draft
MOST_STUDIES: Final = 20_000  # of one page
REMEMBERED = 20_000  # sentences
BATCH: Final = 64  # studies that are worked out at once
NEIGHBOURS: Final = 3  # training transitions that are shown of each draft


@dataclass(frozen=True, slots=True)
class ImageFolder:
    """The folder that the `image` of a query is relative to."""

    root: Path

    def path_of(self, query: Query) -> Path | None:
        """Return a study's image file; None if it names none, or none that lies in the folder.

        Links are followed only where they stay inside.
        """
        name = query.facts.get("image")
        if not isinstance(name, str) or not _is_plain(name):
            return None
        try:
            path = (self.root / name).resolve(strict=True)
            inside = path.is_relative_to(self.root.resolve(strict=True))
            return path if inside and path.is_file() else None
        except (OSError, RuntimeError, ValueError):  # not there, a circle of links
            return None

    def read(self, query: Query) -> EncodedImage | None:
        """Return a study's image as a browser can show it; None if there is none.

        Raises:
            BadInputError: the file is not a whole image.
        """
        path = self.path_of(query)
        return None if path is None else encode_image(path, max_side=MAX_SIDE)


def open_folder(root: Path) -> ImageFolder:
    """Return a folder of images that is there."""
    if not root.is_dir():
        raise BadInputError(f"{root} is not a folder; give --images the folder of the images")
    return ImageFolder(root)


def _is_plain(name: str) -> bool:
    """Whether a name is a relative path that goes down only.

    >>> [_is_plain(name) for name in ("a/b.png", "../b.png", "/b.png", "a/../../b", "C:/b.png", "")]
    [True, False, False, False, False, False]
    """
    places = PurePosixPath(name), PureWindowsPath(name)
    return (
        0 < len(name) <= LONGEST_NAME
        and "\0" not in name
        and not any(path.is_absolute() or path.drive or ".." in path.parts for path in places)
    )


@dataclass(frozen=True, slots=True)
class DraftScore:
    """A score of one metric, by its name."""

    name: str
    metric: Metric

    def of(self, query: Query) -> Scores | None:
        """Return the scores of a query's drafts; None if there is none, or no reference with a section.

        A draft's score is the mean over the sections that the reference has.
        """
        reference = reference_of(query)
        case = None if reference is None else Case(query, reference)
        sections = [section for section in SECTIONS if case is not None and case.has(section)]
        if case is None or not sections or not query.candidates:
            return None
        column = [score.name for score in self.metric.scores].index(self.name)
        rows = [
            measure_section(self.metric, [case], section).per_draft()[0, :, column] for section in sections
        ]
        return tuple(np.mean(rows, axis=0).tolist())


def score_named(name: str) -> DraftScore:
    """Find the metric, of those that need no weights, that has a score."""
    metrics, missing = load_metrics(WEIGHTLESS, {})
    found = {score.name: metric for metric in metrics for score in metric.scores}
    if name in found:
        return DraftScore(name, found[name])
    if missing:
        raise BadInputError(
            f"no score {name!r} is installed here: " + "; ".join(sorted(set(missing.values())))
        )
    raise UnknownNameError("score", name, found)


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
    distances: DraftDistances | None  # None if nothing could be compared
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
        self.bank = selector.bank
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
        return [
            StudyLine(
                number=number,
                query=query,
                selection=selection,
                flags=() if selection.selected is None else query_flags(query, selection.selected),
                scores=None if score is None else score.of(query),
                has_image=images is not None and images.path_of(query) is not None,
            )
            for number, query, selection in zip(numbers, queries, self._abstaining.choose(batch), strict=True)
        ]

    def _studies(self, numbers: range) -> list[Study]:
        """Answer a batch of queries and explain each of their drafts."""
        batch = self._batch(numbers)
        lines = self._answered(numbers, batch)
        explainer = explainer_of(self._selector, batch, neighbours=0, bank_text=self.settings.bank_text)
        placer = Placer(self.bank, batch, explainer.distance, self.maps)
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
