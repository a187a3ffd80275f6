"""All flags of a draft, those about its manners among them: copying the prior, talking to its user.

prior, draft, sister drafts ─▶ what each says (`statements`) ─▶ one rule per kind ─▶ flags
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from tabon.explanation.flags.rules import (
    Flag,
    Place,
    contradicted,
    denied,
    disputed,
    dropped,
    flipped,
    unsupported,
    without_prior,
)
from tabon.explanation.flags.statements import read
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences

_TALK: Final = (
    r"as an? (?:ai|artificial intelligence|(?:large )?language model)",
    r"i(?: am|['\u2019]m) (?:an? (?:ai|language)|sorry|unable|not able|not a (?:doctor|radiologist))",
    r"i (?:can ?not|can['\u2019]?t|do not have|don['\u2019]t have|am unable|apologi[sz]e)",
    r"i(?: have|['\u2019]ve)? (?:reviewed|analy[sz]ed|prepared|generated|written|created)",
    r"i (?:hope|understand|would be happy|will (?:now |try to )?(?:write|provide|generate))",
    r"(?:\A|(?<=[.!] ))(?:sure|certainly|of course|absolutely|okay|great)(?: thing)?\s*[!,.:]",
    r"here(?: is|['\u2019]s| are) (?:the|a|an|my|your|some)\b",
    r"below is (?:the|a|an|my|your)\b",
    r"based on the (?:provided|given|attached|uploaded|supplied)\b",
    r"(?:the|your) (?:provided|uploaded|attached|requested) (?:image|x-?ray|radiograph|report)",
    r"please (?:note that (?:this|i|my)\b|let me know|consult|provide|upload|remember|be aware)",
    r"let me know\b",
    r"(?:would|do|can|could) you (?:like|want|need|please|provide|share|upload|tell)\b",
    r"(?:this|the) (?:report|analysis|response) (?:was|is|has been) (?:\w+ )?(?:generated|for informational)",
    r"(?:not|no) (?:a )?(?:substitute for|medical advice)",
    r"disclaimer\b",
    r"feel free to\b",
    r"```",
)
_PATTERN: Final = re.compile("|".join(rf"(?:(?<!\w){talk})" for talk in _TALK), re.IGNORECASE)
COPIED_SENTENCES, COPIED_WORDS = 2, 12  # a repeated section with less of both is stock, not a copy


@lru_cache(maxsize=1 << 16)
def is_chatty(sentence: str) -> bool:
    """Whether a sentence speaks to a user.

    >>> is_chatty("Certainly! Here is the report:"), is_chatty("Please correlate clinically.")
    (True, False)
    """
    return _PATTERN.search(sentence) is not None


def copied(prior: Report, draft: Report) -> Iterator[Flag]:
    """Yield the sections whose sentences are the prior's, word for word and all of them."""
    for section in SECTIONS:
        old, new = (split_sentences(report.section(section)) for report in (prior, draft))
        words = [sorted(sentence.casefold().split() for sentence in side) for side in (old, new)]
        if words[0] != words[1]:
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
    places: tuple[Place, ...] = ("findings", "impression", "other")
    for place in places:
        text = getattr(draft, place)
        talk = tuple(index for index, one in enumerate(split_sentences(text)) if is_chatty(one))
        if talk or "```" in text:
            yield Flag(kind="chatty-draft", section=place, sentences=talk, detail="talk around the report")


def query_flags(query: Query, draft: int) -> tuple[Flag, ...]:
    """Find what a reader of one draft of a query should look at."""
    has_prior = not query.prior.is_empty
    return draft_flags(query.prior, query.candidates[draft], query.candidates, has_prior=has_prior)


def draft_flags(
    prior: Report, draft: Report, drafts: Sequence[Report], *, has_prior: bool
) -> tuple[Flag, ...]:
    """Find what a reader of this draft should look at, in the order of `FLAG_KINDS`.

    `drafts` are all drafts of the visit; this one may be among them. Without `has_prior` (there was no
    visit before) the prior is not looked at. Of an empty draft only that is said, and that it chats.

    >>> prior = Report("Right pleural effusion. Scoliosis.")
    >>> flags = draft_flags(prior, Report("Left pleural effusion."), [], has_prior=True)
    >>> [(flag.kind, flag.observation, flag.sentences, flag.prior_sentences) for flag in flags]
    [('dropped-finding', 'scoliosis', (), (1,)), ('side-flip', 'Pleural Effusion', (0,), (0,))]
    """
    if not any(split_sentences(draft.section(section)) for section in SECTIONS):
        return (Flag(kind="empty-draft", detail="neither section has a sentence"), *chatty(draft))
    known = prior if has_prior else Report()
    before, now = read(known), read(draft)
    others = [read(other) for other in drafts]
    if draft in drafts:
        others.remove(now)  # a twin of this draft stays
    flags = [*dropped(before, now, others), *denied(before, now), *unsupported(before, now, others)]
    if not has_prior:
        flags += without_prior(now)
    elif not prior.is_empty:  # a prior without a text belies nothing
        flags += contradicted(before, now)
    flags += [*flipped(before, now), *disputed(before, now, others), *copied(known, draft), *chatty(draft)]
    return tuple(flags)
