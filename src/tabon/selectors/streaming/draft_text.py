"""The beginning of a draft that is still being written, measured in words or in sentences.

It makes no difference in what portions the text arrived. A word counts when it has ended. A
sentence counts when more text would not change it, so the last one is held back. Text without a header
may be small talk before the report: it is left out until it is longer than `PREAMBLE` sentences or finished.
"""

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from tabon.text.reports import SECTIONS, Piece, Report, Section, is_placeholder, parse_report, pieces
from tabon.text.sentences import split_sentences

Unit = Literal["words", "sentences"]
UNITS: tuple[Unit, ...] = ("words", "sentences")
PREAMBLE = 3  # sentences without a header that may still be small talk
LONGEST = 20_000  # characters that are searched for ends of sentences; longer than any real draft

_WORD = re.compile(r"(?<!\S)\S++(?=\s)")  # a word that has ended; linear in text without blanks too
PlacedSentence = tuple[Literal["findings", "impression", "both"], str]  # a sentence and where it stands


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of a draft, and how many words it took to be sure of it."""

    sentences: tuple[PlacedSentence, ...]
    words: int
    whole: bool = False  # there is no more

    def has(self, section: Section) -> bool:
        """Whether a sentence of the section is there."""
        return any(name in {section, "both"} for name, _ in self.sentences)

    def report(self, sections: tuple[Section, ...] = SECTIONS) -> Report:
        """Return these sections of it, a paragraph for each sentence."""
        texts = {
            section: "\n\n".join(sentence for name, sentence in self.sentences if name in {section, "both"})
            for section in sections
        }
        return Report(**texts)


@dataclass(slots=True)
class DraftText:
    """One draft as it arrives."""

    unit: Unit
    most: int  # of the unit that somebody asks about; what comes later is not looked at
    text: str = ""
    finished: bool = False
    _end: int = 0  # of the last word that was looked at
    _words: int = 0  # up to there
    _found: dict[int, Prefix] = field(default_factory=dict)  # by their length in the unit

    def feed(self, delta: str) -> None:
        """Take more text."""
        self.text += delta
        if self.unit == "sentences":
            self._find_sentences()

    def finish(self) -> None:
        """Take what there is as the whole draft."""
        self.finished = True

    def report(self) -> Report:
        """Return what has arrived as a report."""
        return parse_report(self.text)

    def prefix(self, count: int) -> Prefix | None:
        """Return the first `count` words or sentences, or all of a shorter draft; None if more must come."""
        if count not in self._found:
            words = tuple(islice(_WORD.finditer(self.text), count)) if self.unit == "words" else ()
            if len(words) == count:  # with the sentence that they break off in
                self._found[count] = Prefix(begun(self.text[: words[-1].end() + 1]), count)
            elif self.finished:  # not longer than was asked for
                sentences = sentences_in(self.text)
                kept = sentences if self.unit == "words" else sentences[:count]
                length = len(self.text.split())
                self._found[count] = Prefix(kept, length, whole=len(kept) == len(sentences))
        return self._found.get(count)

    def _find_sentences(self) -> None:
        """Keep the beginnings that have become certain."""
        for word in _WORD.finditer(self.text, self._end):
            if len(self._found) >= self.most or word.end() > LONGEST:
                return
            border = self.text[max(0, self._end - 1) : word.start()]
            self._end, self._words = word.end(), self._words + 1
            if "\n" in border or not border[:1].isalnum():
                sentences = certain(self.text[: word.end() + 1])
                for count in range(len(self._found) + 1, min(len(sentences), self.most) + 1):
                    self._found[count] = Prefix(sentences[:count], self._words)


def sentences_in(text: str) -> tuple[PlacedSentence, ...]:
    """Return the sentences of a draft's two sections, as they follow each other in the text.

    >>> sentences_in("Findings: Clear lungs. No effusion. Impression: Normal.")
    (('findings', 'Clear lungs.'), ('findings', 'No effusion.'), ('impression', 'Normal.'))
    """
    found = tuple(pieces(text))
    if len(found) == 1:
        found = (Piece("", "findings", text),)
    return tuple(
        (piece.name, sentence)
        for piece in found
        if piece.name != "other" and not is_placeholder(piece.body)
        for sentence in split_sentences(piece.body)
    )


def begun(text: str) -> tuple[PlacedSentence, ...]:
    """Return the sentences of an unfinished draft, the last of them as far as it goes.

    >>> begun("Findings: Clear lungs. No ")
    (('findings', 'Clear lungs.'), ('findings', 'No'))
    >>> begun("Here is the report. It is short. ")
    ()
    """
    sentences = sentences_in(text)
    has_header = len(tuple(islice(pieces(text), 2))) > 1
    return sentences if has_header or len(sentences) > PREAMBLE else ()


def certain(text: str) -> tuple[PlacedSentence, ...]:
    """Return the sentences of an unfinished draft that more text would not change.

    >>> certain("Findings: Clear lungs. No effusion. ")
    (('findings', 'Clear lungs.'),)
    """
    *_, last = pieces(text)
    closed = last.header and last.name == "other" and last.body.strip()
    return begun(text) if closed else begun(text)[:-1]
