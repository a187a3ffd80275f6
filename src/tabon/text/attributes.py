"""What a text says of each finding: how surely, on which side, where, how much, how large, what change.

    sentence ─▶ findings and the words between them ─▶ statements ─▶ signs put to what they stand for

A finding has the words before it up to the last cut ("and", "with", a comma), its own, and those after it
up to where the next finding's begin. What joins findings ("effusions and atelectasis are unchanged")
shares its change. The words are in `attributes.toml`.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple, get_args

from tabon.text.change_words import CHANGES, Change, SentenceChange, sentence_changes
from tabon.text.findings import SentenceFinding, lexicon, sentence_findings
from tabon.text.observations import Side
from tabon.text.sentences import split_sentences

ATTRIBUTES: Final = "attributes-1"
"""Any change in behaviour bumps the number."""

Certainty = Literal["denied", "doubtful", "stated"]
Zone = Literal["upper", "middle", "lower"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingStatement:
    """One finding as a text speaks of it; None is what the text leaves open."""

    name: str
    certainty: Certainty = "stated"
    side: Side | None = None
    zones: frozenset[Zone] = frozenset()
    grade: float | None = None  # 1 mild, 2 moderate, 3 severe
    size: float | None = None  # the largest, in mm
    change: Change | None = None


def statements(text: str) -> tuple[FindingStatement, ...]:
    """Find what a text says of each finding, in its order, the denied ones too.

    >>> for said in statements("Small left effusion, increased. No pneumothorax. 3 mm nodule."):
    ...     print(said.name, said.certainty, said.side, said.grade, said.size, said.change)
    Pleural Effusion stated left 1.0 None worse
    Pneumothorax denied None None None None
    Lung Lesion stated None None 3.0 None
    """
    found: list[FindingStatement] = []
    last = slice(0, 0)  # of the sentence before
    overall: Change | None = None
    for sentence in split_sentences(text):
        said = _in_sentence(sentence)
        if said:
            last = slice(len(found), len(found) + len(said))
            found += said
        elif change := _of_no_finding(sentence):
            if _words().pronoun.match(sentence.lower()):
                found[last] = [_with_change(one, change) for one in found[last]]
            elif _words().whole.search(sentence.lower()):
                overall = overall or change
    return tuple(_with_change(one, overall) for one in found)


def says_something(text: str) -> bool:
    """Whether a text speaks of a finding, or calls something normal.

    >>> says_something("No acute disease."), says_something("Here is the report:")
    (True, False)
    """
    return bool(statements(text)) or _words().normal.search(text.lower()) is not None


# --- the words --------------------------------------------------------------------------


class _Words(NamedTuple):
    midline: frozenset[str]
    signs: frozenset[str]
    described: frozenset[str]
    cut: re.Pattern[str]
    join: re.Pattern[str]
    link: re.Pattern[str]
    pronoun: re.Pattern[str]
    whole: re.Pattern[str]
    grades: tuple[tuple[float, re.Pattern[str]], ...]
    zones: tuple[tuple[Zone, re.Pattern[str]], ...]
    firm: re.Pattern[str]
    doubtful: re.Pattern[str]
    unlikely: re.Pattern[str]
    own_denials: re.Pattern[str]
    normal: re.Pattern[str]


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Compile a pattern for any of these words."""
    return re.compile(rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-])")


@cache
def _words() -> _Words:
    """Read and compile the words, once."""
    book: Mapping[str, Any] = tomllib.loads(
        files("tabon.text").joinpath("attributes.toml").read_text(encoding="utf-8")
    )
    cuts, certainty = book["cuts"], book["certainty"]
    return _Words(
        midline=frozenset(book["midline"]),
        signs=frozenset(book["signs"]),
        described=frozenset(book["described"]),
        cut=re.compile(rf"[;,:]|\b(?:{'|'.join(cuts['words'])})\b"),
        join=re.compile(r"[\s,/]*(?:(?:and|or|with)\b[\s,/]*)*\Z"),
        link=_any_of(cuts["links"]),
        pronoun=re.compile(rf"(?:{'|'.join(cuts['pronouns'])})\b"),
        whole=_any_of(cuts["whole"]),
        grades=tuple((float(grade), _any_of(words)) for grade, words in book["grades"].items()),
        zones=tuple((zone, _any_of(book["zones"][zone])) for zone in get_args(Zone)),
        firm=_any_of(certainty["firm"]),
        doubtful=_any_of(certainty["doubtful"]),
        unlikely=_any_of(certainty["unlikely"]),
        own_denials=_any_of(certainty["own_denials"]),
        normal=_any_of(book["normal"]["words"]),
    )


# --- one sentence -----------------------------------------------------------------------

_NUMBER = re.compile(r"\d{1,4}(?:\.\d{1,4})?")
_MORE = rf"(?: ?(?:x|by|-|to) ?{_NUMBER.pattern}){{0,2}}"
_SIZE = re.compile(rf"(?<![\d.]){_NUMBER.pattern}{_MORE} ?-?(?P<unit>mm|cm|millimet|centimet)")
_PREDICATE = re.compile(r"[\s,]*(?:(?:all|both) )?(?:(?P<many>are|have|remain|appear)|is|has)\b")
_ADVERB = re.compile(r"(?:\w+ly|somewhat|markedly) \Z")


class _Place(NamedTuple):
    """A finding with the words that are its own: text[start:end], and whether it goes on to the next one."""

    finding: SentenceFinding
    start: int
    end: int
    joined: bool


@lru_cache(maxsize=1 << 16)
def _in_sentence(sentence: str) -> tuple[FindingStatement, ...]:
    """Read one sentence; one that comes again is looked up."""
    text = sentence.lower()
    found = sorted(_once(sentence_findings(sentence)), key=lambda one: (one.start, one.end))
    if not found:
        return ()
    places = _places(text, found)
    changes = _changes(text, places, [word for word in sentence_changes(sentence) if word.change in CHANGES])
    said = [_statement(text, place, change) for place, change in zip(places, changes, strict=True)]
    return _signs_put(text, places, said)


def _once(found: Iterable[SentenceFinding]) -> list[SentenceFinding]:
    """Leave out what is said by the same words as an akin finding before it."""
    kept: list[SentenceFinding] = []
    for one in found:
        overlaps = (other for other in kept if other.end > one.start and other.start < one.end)
        if not any(one.name == other.name or one.name in lexicon().akin_to(other.name) for other in overlaps):
            kept.append(one)
    return kept


def _places(text: str, found: Sequence[SentenceFinding]) -> list[_Place]:
    """Share out the words between the findings."""
    starts, ends, joined = [0], [], []
    for one, other in pairwise(found):
        gap = text[one.end : max(one.end, other.start)]
        cuts = [*_words().cut.finditer(gap), *_words().link.finditer(gap)]
        cut = max((mark.end() for mark in cuts), default=0)
        ends.append(one.end + cut)
        starts.append(one.end + cut)
        joined.append(_words().join.match(gap) is not None)
    return [_Place(*parts) for parts in zip(found, starts, [*ends, len(text)], [*joined, False], strict=True)]


def _changes(text: str, places: Sequence[_Place], words: Sequence[SentenceChange]) -> list[Change | None]:
    """Find the change of each finding: its own, or one that it shares with those that it is joined to."""
    shared = [_strongest(_own_changes(place, words)) for place in places]
    for index in reversed(range(len(places) - 1)):
        one, other = places[index], places[index + 1]
        after = other.finding.end
        predicate = _PREDICATE.match(text, after, other.end)
        told = any(after <= word.start < other.end for word in words)
        if shared[index] is None and told and predicate and (one.joined or predicate["many"]):
            shared[index] = shared[index + 1]  # "effusion and edema are unchanged"
    for index in range(1, len(places)):
        if shared[index] is None and places[index - 1].joined:
            shared[index] = shared[index - 1]  # "stable effusion and edema"
    return shared


def _own_changes(place: _Place, words: Iterable[SentenceChange]) -> Iterator[SentenceChange]:
    """Yield the words of change among those of a finding; "increased markings" is none."""
    described = place.finding.name in _words().described
    yield from (
        word for word in words if place.start <= word.start < place.end and (word.told or not described)
    )


def _strongest(words: Iterable[SentenceChange]) -> Change | None:
    """Return the change that some words tell of: what is more than "stable", if anything is."""
    changes = [word.change for word in words]
    return next((change for change in changes if change != "stable"), changes[0] if changes else None)


def _statement(text: str, place: _Place, change: Change | None) -> FindingStatement:
    """Read the words of one finding."""
    one = place.finding
    own = text[place.start : place.end]
    midline = one.name in _words().midline
    nowhere = midline or one.name in lexicon().devices
    zones = (zone for zone, words in _words().zones if words.search(own))
    return FindingStatement(
        name=one.name,
        certainty=_certainty(text, place),
        side=None if midline else one.side,
        zones=frozenset() if nowhere else frozenset(zones),
        grade=_grade(text, place),
        size=_size(own),
        change=change,
    )


def _certainty(text: str, place: _Place) -> Certainty:
    """Tell a doubt from a figure of speech, and what is unlikely from what is not."""
    one = place.finding
    if one.polarity == "negative" or _words().unlikely.search(text, place.start, place.end):
        return "denied"
    if _words().own_denials.search(text, one.start, one.end):
        return "denied"
    if one.polarity == "positive":
        return "stated"
    around = text[max(0, place.start - _AROUND) : place.end]
    return "stated" if _words().firm.search(around) and not _words().doubtful.search(around) else "doubtful"


_AROUND: Final = 40  # characters before a finding's words that may hold its doubt


def _grade(text: str, place: _Place) -> float | None:
    """Return how much there is of a finding, by the words before it, in it, or after it, in this order."""
    one = place.finding
    for start, end in ((place.start, one.start), (one.start, one.end), (one.end, place.end)):
        part = _without_changes(text[start:end].replace("-to-", " to "))
        found = [grade for grade, words in _words().grades if words.search(part)]
        if found:
            return sum(found) / len(found)  # "small to moderate"
    return None


def grade_words(text: str) -> Iterator[tuple[int, int, float]]:
    """Yield where a text in small letters says how much there is of something, and which grade that is."""
    for grade, words in _words().grades:
        yield from ((found.start(), found.end(), grade) for found in words.finditer(text))


def _without_changes(part: str) -> str:
    """Take the words of change out, with the adverbs before them: "slightly increased" is no grade."""
    for word in reversed(sentence_changes(part)):
        adverb = _ADVERB.search(part[: word.start])
        part = part[: adverb.start() if adverb else word.start] + " " + part[word.end :]
    return part


def _size(text: str) -> float | None:
    """Return the largest length in some words, in mm.

    >>> _size("a 1.2 x 3 cm mass")
    30.0
    """
    lengths = [
        max(map(float, _NUMBER.findall(found[0]))) * (10.0 if found["unit"].startswith("c") else 1.0)
        for found in _SIZE.finditer(text)
    ]
    return max(lengths, default=None)


def _signs_put(
    text: str, places: Sequence[_Place], said: Sequence[FindingStatement]
) -> tuple[FindingStatement, ...]:
    """Make one finding of a sign and of what it is taken for: "opacity consistent with pneumonia".

    What was said of the sign is said of the finding. Where that is in doubt both stay.
    """
    kept: list[FindingStatement] = []
    for index, one in enumerate(said):
        gap = text[places[index - 1].finding.end : places[index].finding.start] if index else ""
        if kept and one.certainty == "stated" and _words().link.search(gap):
            signs = {one.name, *_words().signs, *lexicon().akin_to(one.name)}
            while kept and kept[-1].name in signs and kept[-1].certainty == "stated":
                one = merged(one, kept.pop())  # noqa: PLW2901
        kept.append(one)
    return tuple(kept)


def merged(one: FindingStatement, other: FindingStatement) -> FindingStatement:
    """Return what two statements about one finding say together; where both speak, the first one counts."""
    return replace(
        one,
        side=one.side or other.side,
        zones=one.zones or other.zones,
        grade=other.grade if one.grade is None else one.grade,
        size=other.size if one.size is None else one.size,
        change=one.change or other.change,
    )


# --- sentences without a finding --------------------------------------------------------


def _of_no_finding(sentence: str) -> Change | None:
    """Return the change that a sentence without a finding tells of."""
    return _strongest(word for word in sentence_changes(sentence) if word.change in CHANGES and word.told)


def _with_change(said: FindingStatement, change: Change | None) -> FindingStatement:
    """Return a statement that has a change of its own, or this one."""
    return said if said.change or said.certainty == "denied" else replace(said, change=change)
