"""Words of change since the visit before, and what they mean.

    "no significant change" ─▶ stable     "has decreased" ─▶ improved     "no longer seen" ─▶ resolved

A word is read with the negation right before it: "not improved" is stable, and
"no new effusion" is no change at all, only a look at the prior.
Words are not tied to findings: whose improvement it is stays open.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from tabon.text.sentences import split_sentences

WORDS: Final = "change-words-1"
"""Any change in behaviour bumps the number."""

Change = Literal["new", "stable", "improved", "worse", "resolved", "moved", "compared"]
CHANGES: Final[tuple[Change, ...]] = ("new", "stable", "improved", "worse", "resolved", "moved")
"""What may be said to have changed; "compared" only says that there is a prior."""

_SEEN = r"(?:seen|identified|visuali[sz]ed|present|evident|appreciated|noted|demonstrated|in place|visible)"
_PRIOR = r"(?:prior|previous|earlier|preceding|last|comparison)"
_ROOM = r"(?:aeration|lung volumes?|inspiration|inspiratory effort|inflation|expansion)"
_SOME = r"(?:(?:significant|substantial|appreciable|definite|interval|further|acute|marked)(?:ly)? ){0,3}"
_NO = rf"(?:no|not|without|nor|neither)(?: (?:evidence of|been|any|yet))? {_SOME}"
_MUCH = r"(?:prominent|conspicuous|extensive|dense|pronounced)"
_LESS = rf"(?:decreas|diminish|reduc|lessen|shrink|shrunk)\w*|smaller\b|less {_MUCH}"
_MORE = (
    r"(?:increas|progress|enlarging|growing)\w*|(?:larger|bigger|greater)\b(?! than (?:the )?(?:left|right))"
    rf"|more {_MUCH}"
)
_LOOKED = r"(?:assess|evaluat|see|visuali|characteri|appreciat|demonstrat|delineat|defin)"
# in this order at each place: the first row that fits wins
_ROWS: Final[tuple[tuple[Change, str], ...]] = (
    ("compared", rf"{_NO}new\b"),
    ("compared", r"(?:increased|greater) (?:ap|retrosternal|anteroposterior)\b"),
    ("new", rf"(?:which |that )?(?:was |were )?not (?:previously {_SEEN}|{_SEEN} (?:previously|before))"),
    ("new", rf"not {_SEEN} on (?:the )?{_PRIOR}"),
    ("stable", rf"{_NO}(?:chang|alter|differen|increas|decreas|improv|wors|progress|resol|cleared)\w*"),
    ("stable", r"(?:unchanged|unaltered|stable|stably|stability|constant|persist\w*|redemonstrat\w*)\b"),
    ("stable", r"(?:similar|again|as before|continu(?:es|ed|ing))\b"),
    ("stable", r"remain(?:s|ed|ing)?\b(?! (?:clear|normal|within|unremarkable|well|free))"),
    ("improved", rf"(?:increas\w*|improv\w*|better|greater) (?:in )?(?:\w+ )?{_ROOM}"),
    ("worse", rf"(?:decreas\w*|lower|reduc\w*|diminish\w*) (?:in )?(?:\w+ )?{_ROOM}"),
    ("improved", r"(?:partial\w*|near(?:ly)?|almost) (?:complete(?:ly)? )?(?:resol|clear)\w*"),
    ("resolved", rf"no longer(?: \w+)? ?{_SEEN}?|resol(?:ved|ution)\b|has cleared|have cleared|clearing of"),
    ("resolved", r"(?:been )?(?:removed|extubated|disappeared)\b|removal\b"),
    ("improved", rf"improv\w*|better\b(?! {_LOOKED})|resolving\b|clearing\b|regress\w*|{_LESS}"),
    ("worse", rf"wors\w*|deteriorat\w*|{_MORE}"),
    ("new", r"new(?:ly)?\b|(?:has|have) developed|developing\b|development of"),
    ("new", r"interval (?:placement|appearance)|(?:has|have) been placed|placement of"),
    (
        "moved",
        r"(?:reposition|readjust|retract|exchang)\w*|been advanced|adjust(?:ed|ment)\b|changed in position",
    ),
    ("compared", rf"interval\b|previously\b|(?:since|from|to|with|than) (?:the |a )?{_PRIOR}\b"),
    ("compared", rf"{_PRIOR} (?:exam|stud|radiograph|film|imag|report)\w*"),
)
_GROUPS = [f"(?P<r{index}>{row})" for index, (_, row) in enumerate(_ROWS)]
_PATTERN: Final = re.compile(rf"\b(?:{'|'.join(_GROUPS)})")
_MEANING: Final[Mapping[str, Change]] = MappingProxyType({f"r{i}": kind for i, (kind, _) in enumerate(_ROWS)})
_RECOMMENDS: Final = re.compile(
    r"\b(?:recommend|advis|follow-? ?up (?:to|until)|to (?:document|ensure|confirm))"
)
_DESCRIBES: Final = re.compile(
    r"(?:increas|decreas|reduc|diminish)(?!ing)|more |less |greater|larger|smaller|bigger|better"
)
_ADVICE: Final = re.compile(r"continued (?:\w+ )?(?:follow|surveillance|attention|monitor|observation)")
_LOOKS_BACK: Final = re.compile(r"interval|previous|prior|earlier|preceding|last|comparison")
_COMPARES_SIDES: Final = re.compile(r"\w+ (?:than|on|in|at) (?:the )?(?:left|right)\b")
_NOTHING_THERE: Final = re.compile(r"\b(?:no|without|none|not)\b[\w\s]*\Z")
_HAPPENED: Final = re.compile(
    r"\b(?:has|have|had|been|interval|now|since|further|slightly|some)\W*(?:\w+ly\W+)?\Z"
)


@dataclass(frozen=True, slots=True)
class ChangeWord:
    """One word or phrase of change, as a sentence has it."""

    change: Change
    text: str  # in small letters
    sentence: int  # its index in split_sentences(text)
    start: int  # where it begins in the sentence


def change_words(text: str) -> tuple[ChangeWord, ...]:
    """Find the words of change, in the order of the text.

    What follows a recommendation ("follow-up to resolution") is not read.

    >>> [(word.change, word.text) for word in change_words("Effusion has decreased. No change in edema.")]
    [('improved', 'decreased'), ('stable', 'no change')]
    """
    return tuple(
        ChangeWord(change, word, index, start)
        for index, sentence in enumerate(split_sentences(text))
        for change, word, start in _in_sentence(sentence)
    )


def changes(text: str) -> frozenset[Change]:
    """Return the kinds of change in a text; a mere look at the prior is none.

    >>> sorted(changes("New PICC. Compared with the prior study, effusion is unchanged."))
    ['new', 'stable']
    """
    return frozenset(word.change for word in change_words(text) if word.change in CHANGES)


class SentenceChange(NamedTuple):
    """One word or phrase that may look back at the prior."""

    change: Change
    start: int  # of its words in the sentence
    end: int
    told: bool  # "has increased" and "increasing" tell of change, "increased markings" may only describe


def sentence_changes(sentence: str) -> tuple[SentenceChange, ...]:
    """Find the words of one sentence that are about the time since the prior.

    "No prior studies" is no look at one, and "continued follow-up" looks ahead.

    >>> [(word.change, word.told) for word in sentence_changes("Increased markings, new effusion.")]
    [('worse', False), ('new', True)]
    """
    text = sentence.lower()
    return tuple(
        SentenceChange(change, start, start + len(word), _tells_of_time(word, start, text))
        for change, word, start in _in_sentence(sentence)
        if (_looks_back(word, start, text) if change not in CHANGES else not _looks_elsewhere(start, text))
    )


def _looks_back(word: str, start: int, text: str) -> bool:
    """Whether a mention of the time before is a look at the prior."""
    return _LOOKS_BACK.search(word) is not None and _NOTHING_THERE.search(text[:start]) is None


def _looks_elsewhere(start: int, text: str) -> bool:
    """Whether a word of change is about what is to come, or about the other side: "worse on the right"."""
    return any(other.match(text, start) for other in (_ADVICE, _COMPARES_SIDES))


def _tells_of_time(word: str, start: int, text: str) -> bool:
    """Whether a word tells of change, and does not only describe."""
    return _DESCRIBES.match(word) is None or _HAPPENED.search(text[:start]) is not None


@lru_cache(maxsize=1 << 16)
def _in_sentence(sentence: str) -> tuple[tuple[Change, str, int], ...]:
    """Find the words of one sentence and where they begin; a sentence that comes again is looked up."""
    text = sentence.lower()
    advice = _RECOMMENDS.search(text)
    end = advice.start() if advice else len(text)
    return tuple(
        (_MEANING[found.lastgroup or ""], found[0].strip(), found.start())
        for found in _PATTERN.finditer(text, 0, end)
    )
