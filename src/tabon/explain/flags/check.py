"""All flags of a draft.

prior, draft, sister drafts ─▶ what each says (`reading`) ─▶ one rule a kind ─▶ flags with their sentences
"""

from collections.abc import Iterator, Sequence

from tabon.explain.flags.change_rules import contradicted, without_prior
from tabon.explain.flags.finding_rules import denied, disputed, dropped, flipped, unsupported
from tabon.explain.flags.flag import Flag
from tabon.explain.flags.manner_rules import chatty, copied
from tabon.explain.flags.statements import read
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences


def query_flags(query: Query, draft: int) -> tuple[Flag, ...]:
    """Find what a reader of one draft of a query should look at."""
    has_prior = not query.prior.is_empty
    return draft_flags(query.prior, query.candidates[draft], query.candidates, has_prior=has_prior)


def draft_flags(
    prior: Report, draft: Report, drafts: Sequence[Report], *, has_prior: bool
) -> tuple[Flag, ...]:
    """Find what a reader of this draft should look at, in the order of `FLAG_KINDS`.

    Args:
        prior: the report of the visit before; not looked at without `has_prior`.
        draft: the draft to judge.
        drafts: all drafts of the visit; this one may be among them.
        has_prior: whether there was a visit before.

    Returns:
        The flags. Of an empty draft nothing is said but that, and that it chats.

    >>> prior = Report("Right pleural effusion. Scoliosis.")
    >>> flags = draft_flags(prior, Report("Left pleural effusion."), [], has_prior=True)
    >>> [(flag.kind, flag.observation, flag.sentences, flag.prior_sentences) for flag in flags]
    [('dropped-finding', 'scoliosis', (), (1,)), ('side-flip', 'Pleural Effusion', (0,), (0,))]
    """
    if not any(split_sentences(draft.section(section)) for section in SECTIONS):
        return (Flag(kind="empty-draft", detail="neither section has a sentence"), *chatty(draft))
    known = prior if has_prior else Report()
    return (
        *_about_findings(known, draft, drafts, has_prior=has_prior),
        *copied(known, draft),
        *chatty(draft),
    )


def _about_findings(
    prior: Report, draft: Report, drafts: Sequence[Report], *, has_prior: bool
) -> Iterator[Flag]:
    """Yield the flags that need to know what the reports say."""
    before, now = read(prior), read(draft)
    others = [read(other) for other in drafts]
    if draft in drafts:
        others.remove(now)  # a twin of this draft stays
    yield from dropped(before, now, others)
    yield from denied(before, now)
    yield from unsupported(before, now, others)
    if has_prior and not prior.is_empty:  # a prior without a text belies nothing
        yield from contradicted(before, now)
    if not has_prior:
        yield from without_prior(now)
    yield from flipped(before, now)
    yield from disputed(before, now, others)
