"""Which of the 14 CheXpert observations a report holds, by rules.

    text ─▶ sentences ─▶ nouns, statements ─▶ scopes ─▶ mentions ─▶ a polarity for each observation

A noun ("effusion") takes its polarity from the words before it ("no", "possible", until "but" ends
that scope) and after it ("is not seen", "cannot be excluded"). A statement ("the heart is
enlarged") says it itself. The words are in `observations.toml`; `docs/reference/labeller.md` has
its accuracy and its errors.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from tabon.text.sentences import split_sentences

LABELLER: Final = "rules-1"
"""Any change in behaviour bumps the number."""

Polarity = Literal["positive", "negative", "uncertain", "absent"]
Side = Literal["left", "right", "bilateral"]

OBSERVATIONS: Final = (
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Opacity",
    "Lung Lesion",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
    "No Finding",
)
NO_FINDING: Final = "No Finding"
LONGEST: Final = 1000  # characters of a sentence whose mentions are remembered
NOT_A_FINDING: Final = ("Support Devices", NO_FINDING)  # their presence leaves "No Finding" standing
_STRENGTH: Final[tuple[Polarity, ...]] = ("absent", "negative", "uncertain", "positive")


@dataclass(frozen=True, slots=True)
class Mention:
    """One observation as one sentence speaks of it."""

    observation: str
    polarity: Polarity  # never "absent"
    sentence: int  # its index in split_sentences(text)
    side: Side | None


@dataclass(frozen=True, slots=True)
class Labels:
    """What a report says of each observation, in the order of `OBSERVATIONS`."""

    polarities: tuple[Polarity, ...]

    def __getitem__(self, observation: str) -> Polarity:
        """Return the polarity of one observation."""
        return self.polarities[OBSERVATIONS.index(observation)]

    def held(self) -> tuple[bool, ...]:
        """Say which observations are there; uncertain ones count as there."""
        return tuple(polarity in ("positive", "uncertain") for polarity in self.polarities)


def label_text(text: str) -> Labels:
    """Label a report or a section of it.

    Where sentences differ, positive outweighs uncertain and uncertain outweighs
    negative. "No Finding" is positive when no observation but Support Devices
    is positive or uncertain, as in CheXpert; a text without a sentence has no
    label at all, not even that one.

    >>> labels = label_text("Small left pleural effusion. No pneumothorax. Possible pneumonia.")
    >>> labels["Pleural Effusion"], labels["Pneumothorax"], labels["Pneumonia"], labels["Fracture"]
    ('positive', 'negative', 'uncertain', 'absent')
    """
    sentences = split_sentences(text)
    strongest = dict.fromkeys(OBSERVATIONS, 0)
    for sentence in sentences:
        for found in sentence_mentions(sentence):
            strength = _STRENGTH.index(found.polarity)
            strongest[found.observation] = max(strongest[found.observation], strength)
    sick = any(strongest[name] > 1 for name in OBSERVATIONS if name not in NOT_A_FINDING)
    strongest[NO_FINDING] = 3 if sentences and not sick else 0
    return Labels(tuple(_STRENGTH[strongest[name]] for name in OBSERVATIONS))


def mentions(text: str) -> tuple[Mention, ...]:
    """Find every mention, in the order of the text; "No Finding" is never among them.

    >>> [(found.observation, found.side) for found in mentions("Right effusion with left chest tube.")]
    [('Pleural Effusion', 'right'), ('Support Devices', 'left')]
    """
    return tuple(
        Mention(found.observation, found.polarity, index, found.side)
        for index, sentence in enumerate(split_sentences(text))
        for found in sentence_mentions(sentence)
    )


# --- the lexicon ------------------------------------------------------------------------

_GAP = r"(?:(?!\b(?:no|not|without|normal|unremarkable|but|however)\b)[^;]){0,60}?\b"


class _Statement(NamedTuple):
    pattern: re.Pattern[str]
    observations: tuple[str, ...]
    says: Polarity


class _Lexicon(NamedTuple):
    nouns: re.Pattern[str]  # group n<i> is row i
    noun_rows: tuple[tuple[str, ...], ...]
    statements: tuple[_Statement, ...]
    before: re.Pattern[str]  # its groups are the polarities, "ignore" and "stop"
    after: re.Pattern[str]


def _any_of(words: Iterable[str]) -> str:
    """Join patterns to one that matches any of them."""
    return "(?:" + "|".join(words) + ")"


def _groups(rows: Mapping[str, list[str]], *names: str) -> str:
    """Join rows to one pattern with a named group a row."""
    return _any_of(f"(?P<{name}>{_any_of(rows[name])})" for name in names)


@cache
def _lexicon() -> _Lexicon:
    """Read and compile the lexicon, once."""
    book = tomllib.loads(files("tabon.text").joinpath("observations.toml").read_text(encoding="utf-8"))
    nouns = {f"n{index}": row["words"] for index, row in enumerate(book["nouns"])}
    before, after = book["before"], book["after"]
    cues = _groups(before, "ignore", "stop", "turn", "uncertain", "negative")
    starts = r"(?:(?<=[\s(/,:-])|\A|(?=[;?]))"
    return _Lexicon(
        nouns=re.compile(r"\b" + _groups(nouns, *nouns)),
        noun_rows=tuple(tuple(row["of"]) for row in book["nouns"]),
        statements=tuple(
            _Statement(
                re.compile(r"\b" + _any_of(row["words"]).replace("{gap}", _GAP)),
                tuple(row["of"]),
                row["says"],
            )
            for row in book["statements"]
        ),
        before=re.compile(r"(?:\b|(?=[,;?-]))" + cues),
        after=re.compile(
            rf"(?:(?!{starts}{_any_of(after['between'])})[\s\S])*?"
            rf"{starts}{_groups(after, 'negative', 'uncertain')}"
        ),
    )


# --- one sentence -----------------------------------------------------------------------

_CHOICE = re.compile(r"\b(?:or|versus|vs)\b")
_NEAR = 40  # characters between two nouns that "or" joins
_JOINS = re.compile(r"[\s,/]*(?:(?:and|or|with)\b[\s,/]*)*\Z")
_LEFT = re.compile(r"\b(?:left|lt|lingula\w*|lll|lul)\b(?! (?:atri|ventric|heart)\w*)")
_RIGHT = re.compile(r"\b(?:right|rt|rll|rul|rml)\b(?! (?:atri|ventric|heart)\w*)")
_BOTH = re.compile(r"\b(?:bilateral\w*|both|bibasilar|bibasal|biapical)\b")


class _Span(NamedTuple):
    start: int
    end: int
    observations: tuple[str, ...]
    polarity: Polarity


class SentenceMention(NamedTuple):
    """One observation as the sentence speaks of it."""

    observation: str
    polarity: Polarity
    side: Side | None
    start: int  # of its words in the sentence
    end: int


def sentence_mentions(sentence: str) -> tuple[SentenceMention, ...]:
    """Find the mentions of one sentence, in their order; a short one that comes again is looked up."""
    return _looked_up(sentence) if len(sentence) <= LONGEST else _read(sentence)


def _read(sentence: str) -> tuple[SentenceMention, ...]:
    """Find the mentions of one sentence."""
    text = sentence.lower()
    statements = (
        _Span(found.start(), found.end(), statement.observations, statement.says)
        for statement in _lexicon().statements
        for found in statement.pattern.finditer(text)
    )
    spans = sorted([*_nouns(text), *statements], key=lambda span: (span.start, span.end))
    sides = _sides(text, spans)
    return tuple(
        SentenceMention(observation, span.polarity, side, span.start, span.end)
        for span, side in zip(spans, sides, strict=True)
        for observation in span.observations
    )


_looked_up = lru_cache(maxsize=1 << 16)(_read)


def _nouns(text: str) -> list[_Span]:
    """Find the nouns of a sentence with the polarity that their scopes give."""
    book = _lexicon()
    spans = [
        _Span(found.start(), found.end(), row, polarity_at(text, found.start(), found.end()))
        for found in book.nouns.finditer(text)
        if (row := book.noun_rows[int((found.lastgroup or "n0")[1:])])
    ]
    doubtful = {
        index + step
        for index, (one, other) in enumerate(pairwise(spans))
        for step in (0, 1)
        if one.polarity == other.polarity == "positive"
        and other.start - one.end <= _NEAR
        and _CHOICE.search(text[one.end : other.start])
    }
    return [
        span._replace(polarity="uncertain") if index in doubtful else span for index, span in enumerate(spans)
    ]


def polarity_at(text: str, start: int, end: int) -> Polarity:
    """Read the scopes around a noun: what is said before it, then after it."""
    state: Polarity = "positive"
    for cue in _lexicon().before.finditer(text, 0, start):
        if cue.lastgroup == "stop" or (cue.lastgroup == "turn" and state == "negative"):
            state = "positive"
        elif cue.lastgroup == "negative" or (cue.lastgroup == "uncertain" and state == "positive"):
            state = "negative" if cue.lastgroup == "negative" else "uncertain"
    if state == "negative":
        return state
    later = _lexicon().after.match(text, end)
    if later is None:
        return state
    return "negative" if later.lastgroup == "negative" else "uncertain"


# --- sides ------------------------------------------------------------------------------


def side_of(text: str) -> Side | None:
    """Return the side that a piece of text speaks of."""
    left, right = _LEFT.search(text) is not None, _RIGHT.search(text) is not None
    if _BOTH.search(text) or (left and right):
        return "bilateral"
    return "left" if left else "right" if right else None


def side_words(text: str) -> Iterator[tuple[int, int, Side]]:
    """Yield where a text in small letters names a side, and which."""
    patterns: tuple[tuple[re.Pattern[str], Side], ...] = (
        (_LEFT, "left"),
        (_RIGHT, "right"),
        (_BOTH, "bilateral"),
    )
    for pattern, side in patterns:
        yield from ((found.start(), found.end(), side) for found in pattern.finditer(text))


def _sides(text: str, spans: list[_Span]) -> list[Side | None]:
    """Return the side of each span: what is before its group of joined spans, else after it.

    Spans with nothing but "and", "or" and commas between them are one group.
    """
    sides: list[Side | None] = []
    group_start = 0
    ends = [0, *(span.end for span in spans)]
    for index, span in enumerate(spans):
        following = spans[index + 1].start if index + 1 < len(spans) else len(text)
        if index + 1 < len(spans) and _JOINS.match(text[span.end : following]):
            continue
        first, before = spans[group_start].start, ends[group_start]
        side = side_of(text[before : max(first, before)]) or side_of(text[span.start : following])
        sides += [side] * (index + 1 - group_start)
        group_start = index + 1
    return sides
