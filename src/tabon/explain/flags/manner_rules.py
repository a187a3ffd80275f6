"""Flags about manners: a draft that copies the prior, and one that talks to its user."""

from collections.abc import Iterator

from tabon.explain.flags.chat import is_chatty
from tabon.explain.flags.flag import Flag, Place
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences

COPIED_SENTENCES, COPIED_WORDS = 2, 12  # a repeated section with less of both is stock, not a copy


def copied(prior: Report, draft: Report) -> Iterator[Flag]:
    """Yield the sections whose sentences are the prior's, word for word and all of them."""
    for section in SECTIONS:
        old, new = split_sentences(prior.section(section)), split_sentences(draft.section(section))
        if _words(old) != _words(new):
            continue
        if len(new) >= COPIED_SENTENCES or len(draft.section(section).split()) >= COPIED_WORDS:
            everything = tuple(range(len(new)))
            yield Flag(
                kind="copy-forward",
                section=section,
                sentences=everything,
                prior_section=section,
                prior_sentences=everything,
                detail="every sentence is the prior's, word for word",
            )


def chatty(draft: Report) -> Iterator[Flag]:
    """Yield the places where the draft talks to its user."""
    texts: dict[Place, str] = {
        "findings": draft.findings,
        "impression": draft.impression,
        "other": draft.other,
    }
    for place, text in texts.items():
        talk = [index for index, sentence in enumerate(split_sentences(text)) if is_chatty(sentence)]
        if talk or "```" in text:
            yield Flag(
                kind="chatty-draft", section=place, sentences=tuple(talk), detail="talk around the report"
            )


def _words(sentences: tuple[str, ...]) -> list[list[str]]:
    """Return the words of each sentence, the sentences in no order that matters."""
    return sorted(sentence.casefold().split() for sentence in sentences)
