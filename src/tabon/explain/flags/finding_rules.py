"""Flags about findings: dropped ones, those that no sister draft holds, those on the other side."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tabon.explain.flags.flag import Flag
from tabon.explain.flags.lexicon import lexicon
from tabon.explain.flags.statements import HELD, Reading, Statement
from tabon.text.change_words import Change
from tabon.text.observations import Polarity, Side
from tabon.text.reports import Section

ENOUGH_DRAFTS = 3  # this one and two others: with fewer, nothing is outvoted
OUTVOTED = 2  # drafts that give another side
_MOVES: Final[tuple[Change, ...]] = ("new", "resolved", "moved")  # then the side may well be the other one
_SHRINKS: Final[tuple[Change, ...]] = (*_MOVES, "improved")  # then one of two sides may be left


def dropped(prior: Reading, draft: Reading, others: Sequence[Reading]) -> Iterator[Flag]:
    """Yield the prior's findings on which the draft is silent.

    Minor ones count only where another draft speaks of them, if there are enough to ask.
    """
    quiet = lexicon().minor if len(others) + 1 >= ENOUGH_DRAFTS else frozenset()
    silent = (
        said
        for said in prior.statements
        if not speaks_of(draft, said.name)
        and (said.name not in quiet or any(speaks_of(other, said.name) for other in others))
    )
    for said in _one_each(silent):
        section, sentences = place_of(prior.about(said.name))
        yield Flag(
            kind="dropped-finding",
            section=section,
            prior_section=section,
            prior_sentences=sentences,
            observation=said.name,
            detail=f"{said.name} of the prior is not mentioned",
        )


def denied(prior: Reading, draft: Reading) -> Iterator[Flag]:
    """Yield what lasts and stood in the prior, and is denied without a word of change."""
    for name in dict.fromkeys(said.name for said in prior.statements if said.polarity == "positive"):
        if name not in lexicon().lasting or name in draft.held or not draft.about(name):
            continue
        if _tells(draft, name, _SHRINKS):
            continue
        section, sentences = place_of(draft.about(name), "negative")
        prior_section, prior_sentences = place_of(prior.about(name))
        yield Flag(
            kind="denied-finding",
            section=section,
            sentences=sentences,
            prior_section=prior_section,
            prior_sentences=prior_sentences,
            observation=name,
            detail=f"{name} of the prior is denied without a word of change",
        )


def unsupported(prior: Reading, draft: Reading, others: Sequence[Reading]) -> Iterator[Flag]:
    """Yield the findings that the prior lacks and that fewer than half of the other drafts hold."""
    if len(others) + 1 < ENOUGH_DRAFTS:
        return
    support = {said.name: sum(holds(other, said.name) for other in others) for said in draft.statements}
    alone = (
        said
        for said in draft.statements
        if 2 * support[said.name] < len(others) and not holds(prior, said.name)
    )
    for said in _one_each(alone):
        section, sentences = place_of(draft.about(said.name))
        yield Flag(
            kind="unsupported-finding",
            section=section,
            sentences=sentences,
            observation=said.name,
            detail=f"{said.name} is not of the prior; held by {support[said.name]} of {len(others)} others",
        )


def flipped(prior: Reading, draft: Reading) -> Iterator[Flag]:
    """Yield the findings that have changed their side, or lost one, without a word of change."""
    names = dict.fromkeys(said.name for said in draft.statements if said.held)
    for name in names:
        here, there = _side(draft.about(name)), _side(prior.about(name))
        if here in (None, there, "bilateral") or there is None or name in lexicon().umbrella:
            continue
        if _tells(draft, name, _MOVES if there != "bilateral" else _SHRINKS):
            continue
        section, sentences = place_of(said for said in draft.about(name) if said.side)
        prior_section, prior_sentences = place_of(said for said in prior.about(name) if said.side)
        yield Flag(
            kind="side-flip",
            section=section,
            sentences=sentences,
            prior_section=prior_section,
            prior_sentences=prior_sentences,
            observation=name,
            detail=f"{name} is {here} here and {there} in the prior",
        )


def disputed(prior: Reading, draft: Reading, others: Sequence[Reading]) -> Iterator[Flag]:
    """Yield the findings whose side the prior does not give, no other draft shares and two or more deny."""
    if len(others) + 1 < ENOUGH_DRAFTS:
        return
    for name in dict.fromkeys(said.name for said in draft.statements if said.held and said.side):
        if name in lexicon().umbrella or _side(prior.about(name)):
            continue
        here = _side(draft.about(name))
        sides = [side for other in others if (side := _side(other.about(name)))]
        if here not in sides and len(sides) >= OUTVOTED:
            section, sentences = place_of(said for said in draft.about(name) if said.side)
            yield Flag(
                kind="side-flip",
                section=section,
                sentences=sentences,
                observation=name,
                detail=f"{name} is {here} here and not in the {len(sides)} other drafts that give a side",
            )


def speaks_of(draft: Reading, name: str) -> bool:
    """Whether a finding is named, whatever is said of it, or an akin one stands for it.

    What lasts is not settled by denying its kin: clear lungs may hold a scar.
    """
    kin_said = draft.held if name in lexicon().lasting else draft.named
    return name in draft.named or not lexicon().akin_to(name).isdisjoint(kin_said)


def holds(reading: Reading, name: str) -> bool:
    """Whether a report holds a finding, under this name or an akin one."""
    return name in reading.held or not lexicon().akin_to(name).isdisjoint(reading.held)


def place_of(statements: Iterable[Statement], *polarities: Polarity) -> tuple[Section, tuple[int, ...]]:
    """Return the first section where this is said of a finding (else: it is held), and the sentences."""
    wanted = [said for said in statements if said.polarity in (polarities or HELD)]
    section = wanted[0].section
    return section, tuple(sorted({said.sentence for said in wanted if said.section == section}))


def _one_each(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield positive statements, one for a name; akin names in one sentence are one finding."""
    seen: list[Statement] = []
    for said in statements:
        if said.polarity != "positive":
            continue
        if not any(_is_same(said, other) for other in seen):
            yield said
        seen.append(said)


def _is_same(said: Statement, other: Statement) -> bool:
    """Whether two statements are about one finding."""
    together = (said.section, said.sentence) == (other.section, other.sentence)
    return said.name == other.name or (together and other.name in lexicon().akin_to(said.name))


def _side(statements: Iterable[Statement]) -> Side | None:
    """Return the side on which a finding is held; both where sentences differ."""
    sides = {said.side for said in statements if said.held and said.side}
    if len(sides) > 1:
        return "bilateral"
    return sides.pop() if sides else None


def _tells(draft: Reading, name: str, changes: tuple[Change, ...]) -> bool:
    """Whether a sentence about the finding tells of one of these changes."""
    places = {(said.section, said.sentence) for said in draft.about(name)}
    return any(word.change in changes and (word.section, word.sentence) in places for word in draft.changes)
