"""Words in the reports of studies: the sentences that hold all of them.

A sentence counts, not a report: "left effusion" is not found in "Left PICC. Right effusion." Case does not
count.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from tabon.text.records import Query, reference_of
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences

Within = Literal["any", "pick", "drafts", "prior", "reference"]
WITHIN: Final[tuple[Within, ...]] = get_args(Within)
LONGEST: Final = 200  # characters that are searched for


@dataclass(frozen=True, slots=True, repr=False)
class Hit:
    """The first sentence of a study that holds all words."""

    number: int  # of the study
    where: Literal["prior", "reference"] | int  # or the draft
    sentence: str


def find_words(
    queries: Sequence[Query], picks: Sequence[int | None], asked: str, within: Within
) -> Iterator[Hit]:
    """Yield the studies with a sentence that holds all words, in their order.

    >>> from tabon.text.records import Query
    >>> query = Query(prior="Clear.", candidates=["Right effusion. Left PICC.", "Left effusion."], id="q")
    >>> [(hit.where, hit.sentence) for hit in find_words([query], [0], "EFFUSION left", "any")]
    [(1, 'Left effusion.')]
    """
    words = asked.lower().split()
    for number, (query, pick) in enumerate(zip(queries, picks, strict=True)):
        for where, report in _reports(query, pick, within):
            sentence = _sentence_with(report, words)
            if sentence is not None:
                yield Hit(number, where, sentence)
                break


def _reports(
    query: Query, pick: int | None, within: Within
) -> Iterator[tuple[Literal["prior", "reference"] | int, Report]]:
    """Yield the reports that are searched: the pick, the other drafts, the prior, the reference."""
    if pick is not None and within in ("any", "pick", "drafts"):
        yield pick, query.candidates[pick]
    if within in ("any", "drafts"):
        yield from ((number, draft) for number, draft in enumerate(query.candidates) if number != pick)
    if within in ("any", "prior"):
        yield "prior", query.prior
    if within in ("any", "reference"):
        reference = reference_of(query)
        if reference is not None:
            yield "reference", reference


def _sentence_with(report: Report, words: Sequence[str]) -> str | None:
    """Return the first sentence that holds all words; a report is split only if it holds them."""
    for section in SECTIONS:
        text = report.section(section)
        if words and all(word in text.lower() for word in words):
            for sentence in split_sentences(text):
                if all(word in sentence.lower() for word in words):
                    return sentence
    return None
