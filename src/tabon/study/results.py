"""What a reader study found, as one value: agreement, preference, ratings, errors and time."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from tabon.study.answers import Given
from tabon.study.comparison import (
    Agreement,
    Preference,
    Resampling,
    SelectorNumber,
    agreements,
    mean_errors,
    mean_ratings,
    preferences,
    selector_strengths,
    self_agreements,
)
from tabon.study.design import Design, Key, PairCount, Study
from tabon.study.judged import Comment, DraftMean, ReaderSummary, comments_of, draft_scores, judge, summarise

RESULTS_FORMAT: Final = "tabon-study-results/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResults:
    """All numbers of one study."""

    study: str
    title: str
    design: Design
    question: str
    cases: int
    selectors: Mapping[str, str]  # with their signatures
    pairs: tuple[PairCount, ...]
    readers: tuple[ReaderSummary, ...]
    agreement: tuple[Agreement, ...]
    preferences: tuple[Preference, ...]
    numbers: tuple[SelectorNumber, ...]
    scores: tuple[DraftMean, ...]
    comments: tuple[Comment, ...]
    chance: Resampling

    def as_json(self) -> str:
        """Return the text of results.json; comments and scores have files of their own."""
        record = asdict(self)
        del record["comments"], record["scores"]
        return json.dumps({"format": RESULTS_FORMAT, **record}, indent=1) + "\n"


def study_results(study: Study, key: Key, given: Given, chance: Resampling | None = None) -> StudyResults:
    """Work out what the answers that are there say; a repeated case counts once outside self-agreement."""
    chance = Resampling() if chance is None else chance
    judged = judge(key, given)
    first = [one for one in judged if one.key.repeats is None]
    selectors = tuple(key.selectors)
    return StudyResults(
        study=study.study,
        title=study.title,
        design=study.design,
        question=study.question,
        cases=study.cases,
        selectors=key.selectors,
        pairs=key.pairs,
        readers=tuple(summarise(study, judged, given)),
        agreement=(
            *agreements(study.design, first, chance),
            *self_agreements(study.design, judged, chance),
        ),
        preferences=tuple(preferences(study.design, first, selectors, chance)),
        numbers=(
            *selector_strengths(study.design, first, selectors, chance),
            *mean_ratings(study.design, first, selectors, chance),
            *mean_errors(first, selectors, chance),
        ),
        scores=tuple(draft_scores(study.design, first)),
        comments=tuple(comments_of(judged)),
        chance=chance,
    )
