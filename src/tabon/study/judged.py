"""The answers beside the key: what each reader said of which drafts, and how long it took."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from tabon.study.answers import AnswerRecord, Given
from tabon.study.design import Design, Key, KeyReading, Study

RATING, RANK, SIGNIFICANT = "reader-rating", "reader-rank", "reader-significant-errors"
HIGHER, LOWER = "higher", "lower"
Thing = tuple[str, ...]  # what is judged: a query with one draft, or with two
FIRST, EQUAL, SECOND = range(3)  # which of two drafts is preferred
PREFERENCES: Final = 3


@dataclass(frozen=True, slots=True)
class Judged:
    """One reading with its answer."""

    reader: str
    key: KeyReading
    answer: AnswerRecord

    def place_of(self, selector: str) -> int | None:
        """Return where a selector's pick was shown; None if it was not."""
        places = (place for place, one in enumerate(self.key.shown) if selector in one.selectors)
        return next(places, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSummary:
    """What one reader did."""

    reader: str
    readings: int
    answered: int
    amended: int  # answers that were given anew
    comments: int
    hours: float
    seconds: float | None = None  # median of a reading, and its quartiles
    seconds_low: float | None = None
    seconds_high: float | None = None
    left: float | None = None  # the share of the left draft in the preferences of a pairwise study


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftMean:
    """What readers say of one draft: their mean, as `tabon evaluate --scores` reads it."""

    id: str
    draft: int
    name: str
    value: float
    direction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """What a reader wrote of one reading."""

    reader: str
    id: str
    drafts: tuple[int, ...]  # as shown, the first of each text
    text: str


def judge(key: Key, given: Given) -> list[Judged]:
    """Put the last answer to each reading beside what the key says of it."""
    return [
        Judged(reader, reading, answers[reading.id])
        for reader, readings in key.readings.items()
        for answers in [given.last(reader)]
        for reading in readings
        if reading.id in answers
    ]


def said(design: Design, one: Judged) -> Iterator[tuple[Thing, int]]:
    """Yield what an answer says: the category of a rating, or which of each two drafts is preferred."""
    names = [str(shown.drafts[0]) for shown in one.key.shown]
    if design == "rating":
        yield (one.key.query, *names), one.answer.values[0] - 1
        return
    placed = sorted(zip(map(int, names), one.answer.values, strict=True))
    for (draft, rank), (other, other_rank) in combinations(placed, 2):
        yield (one.key.query, str(draft), str(other)), preference(rank, other_rank)


def preference(rank: int, other: int) -> int:
    """Say which of two ranks is preferred.

    >>> preference(1, 2), preference(1, 1), preference(3, 2)
    (0, 1, 2)
    """
    return FIRST if rank < other else SECOND if rank > other else EQUAL


def summarise(study: Study, judged: Sequence[Judged], given: Given) -> Iterator[ReaderSummary]:
    """Yield how far each reader is, and how long the readings took."""
    for reader in study.readers:
        mine = [one for one in judged if one.reader == reader.name]
        seconds = [one.answer.seconds for one in mine]
        quartiles = np.quantile(seconds, [0.25, 0.5, 0.75]).tolist() if seconds else [None] * 3
        once = [one.answer.values for one in mine if one.key.repeats is None]
        chosen = [values for values in once if len(set(values)) > 1]
        yield ReaderSummary(
            reader=reader.name,
            readings=reader.readings,
            answered=len(mine),
            amended=given.amended[reader.name],
            comments=sum(bool(one.answer.comment) for one in mine),
            hours=sum(seconds) / 3600,
            seconds_low=quartiles[0],
            seconds=quartiles[1],
            seconds_high=quartiles[2],
            left=(
                sum(values[0] < values[1] for values in chosen) / len(chosen)
                if chosen and study.design == "pairwise"
                else None
            ),
        )


def draft_scores(design: Design, first: Sequence[Judged]) -> Iterator[DraftMean]:
    """Yield the mean of what readers say of each draft that was rated or ranked; pairs rank no whole set."""
    if design == "pairwise":
        return
    name, direction = (RATING, HIGHER) if design == "rating" else (RANK, LOWER)
    values: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for one in first:
        for place, shown in enumerate(one.key.shown):
            errors = sum(mark.draft == place and mark.significant for mark in one.answer.errors)
            for draft in shown.drafts:
                values.setdefault((one.key.query, draft), []).append((one.answer.values[place], errors))
    for (query, draft), found in sorted(values.items()):
        mean, errors = np.mean(found, axis=0).tolist()
        yield DraftMean(id=query, draft=draft, name=name, value=mean, direction=direction)
        yield DraftMean(id=query, draft=draft, name=SIGNIFICANT, value=errors, direction=LOWER)


def comments_of(judged: Sequence[Judged]) -> Iterator[Comment]:
    """Yield what readers wrote."""
    for one in judged:
        if one.answer.comment:
            drafts = tuple(shown.drafts[0] for shown in one.key.shown)
            yield Comment(reader=one.reader, id=one.key.query, drafts=drafts, text=one.answer.comment)
