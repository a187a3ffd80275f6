"""What a reader study is made of: the public part, the key, and an answer.

A case is a query. A reading is a case as one reader sees it once; a repeated case is a second reading.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from tabon._internal.registry import check_name
from tabon._internal.typed_values import MAX_NUMBER
from tabon.errors import BadInputError
from tabon.text.reports import Report

Design = Literal["pairwise", "rating", "ranking"]
ErrorKind = Literal["invented", "missed", "side", "severity", "change", "other"]
DESIGNS: tuple[Design, ...] = get_args(Design)
ERROR_KINDS: Mapping[ErrorKind, str] = MappingProxyType(
    {
        "invented": "finding invented",
        "missed": "finding missed",
        "side": "wrong side or place",
        "severity": "wrong severity",
        "change": "wrong change since the prior",
        "other": "other error",
    }
)
QUESTIONS: Mapping[Design, str] = MappingProxyType(
    {
        "pairwise": "Which draft would you rather start from?",
        "rating": "How much of this draft could you use as it is?",
        "ranking": "Which drafts would you rather start from? 1 is the best.",
    }
)
RATINGS = (1, 2, 3, 4, 5)  # 5 is the best
MOST_RANKED = 8  # drafts side by side
MOST_REPEATED = 0.5  # of the cases: a case and its repetition are then half of the cases apart
MOST_CASES = 2_000
LONGEST_COMMENT = 4_000  # characters
LONGEST_SECONDS = 1e6
KEY = re.compile(r"[0-9a-f]{32}")
_READER = re.compile(r"[A-Za-z0-9][\w.-]{0,39}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """What `tabon study init` is asked for."""

    design: Design
    readers: tuple[str, ...]
    cases: int
    repeat: float = 0.1  # share of the readings that are shown twice
    seed: int = 0
    reference: bool = False  # whether readers see what was really written
    title: str = "Reader study"
    question: str = ""  # as in QUESTIONS, if it is empty

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        check_name("design", DESIGNS, self.design)
        for reader in self.readers:
            if not _READER.fullmatch(reader):
                raise BadInputError(
                    f"{reader!r} is no name of a reader; use at most 40 letters, digits, '.', '-' and '_'"
                )
        if not self.readers or len(set(self.readers)) < len(self.readers):
            raise BadInputError("--readers names nobody, or someone twice; give each reader once: a,b,c")
        if not 1 <= self.cases <= MOST_CASES:
            raise BadInputError(f"--cases is {self.cases}; give 1 to {MOST_CASES:,}")
        if not 0 <= self.repeat <= MOST_REPEATED:
            raise BadInputError(f"--repeat is {self.repeat:.0%}; give a share from 0% to {MOST_REPEATED:.0%}")
        if not 0 <= self.seed < MAX_NUMBER:
            raise BadInputError(f"--seed is {self.seed}; give a whole number from 0 to 10¹⁵")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One case as one reader sees it: nothing in it says which query, draft or selector it is."""

    id: str
    priors: tuple[Report, ...]  # oldest first
    drafts: tuple[Report, ...]  # in the order shown
    reference: Report | None = None
    image: str | None = None  # a file in the study's `images`


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderFile:
    """All that one reader is shown."""

    study: str
    reader: str
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader, with what proves the token and the readings."""

    name: str
    token_sha256: str
    readings: int
    sha256: str  # of the reader's file


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """The public part of a study."""

    study: str  # its id
    title: str
    design: Design
    question: str
    cases: int
    readers: tuple[Reader, ...]

    def reader(self, name: str) -> Reader:
        """Return a reader; one that the study does not have is refused by name."""
        check_name("reader", tuple(reader.name for reader in self.readers), name)
        return next(reader for reader in self.readers if reader.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What one place on the screen holds."""

    drafts: tuple[int, ...]  # of the query; several if their text is the same
    selectors: tuple[str, ...]  # that picked it; of a pairwise study the one that is compared


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyReading:
    """What a reading is of."""

    id: str
    query: str
    whose: str  # the patient, or the query of a patient without a name: what is resampled
    shown: tuple[Shown, ...]
    repeats: str | None = None  # the earlier reading of the same case


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCount:
    """How often two selectors pick differently."""

    selector: str
    other: str
    both: int  # queries in which both pick
    differ: int  # of these, with two texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What the readers must not know; the service never opens its file."""

    study: str
    seed: int
    selectors: Mapping[str, str]  # with their signatures
    queries_sha256: str
    pairs: tuple[PairCount, ...]
    readings: Mapping[str, tuple[KeyReading, ...]]  # by reader


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMark:
    """An error that a reader ticked."""

    draft: int  # its place on the screen, from 0
    kind: ErrorKind
    significant: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a reader says of one reading; a later one with `after` takes its place."""

    key: str  # drawn by the page: the same answer sent twice has the same key
    reading: str
    after: str | None  # the key of the answer that this one amends
    values: tuple[int, ...]  # for each draft: the rating (5 is the best) or the rank (1 is the best)
    errors: tuple[ErrorMark, ...] = ()
    comment: str = ""
    seconds: float  # that the case was looked at, breaks left out


def check_answer(answer: Answer, design: Design, reading: Reading) -> None:
    """Refuse an answer that does not fit what was shown; a message repeats nothing of it."""
    drafts = len(reading.drafts)
    if not KEY.fullmatch(answer.key):
        raise BadInputError("the key of an answer is not 32 hexadecimal digits; draw one at random")
    if len(answer.values) != drafts:
        raise BadInputError(f"the answer has {len(answer.values)} values for {drafts} drafts; give each one")
    known = set(answer.values)
    if not known <= set(RATINGS) if design == "rating" else known != set(range(1, len(known) + 1)):
        raise BadInputError("the values are no ratings of 1 to 5, or ranks that leave one out; count from 1")
    marks = [(mark.draft, mark.kind) for mark in answer.errors]
    if len(set(marks)) < len(marks) or not all(0 <= draft < drafts for draft, _ in marks):
        raise BadInputError("an error is of no draft that was shown, or is there twice; tick each once")
    if len(answer.comment) > LONGEST_COMMENT or not 0 <= answer.seconds <= LONGEST_SECONDS:
        raise BadInputError(
            f"the comment is longer than {LONGEST_COMMENT:,} characters, or the time is out of range"
        )
