"""Flags about words of change: those that the prior belies, and those without a prior."""

from collections.abc import Iterator

from tabon.explain.flags.finding_rules import holds, place_of
from tabon.explain.flags.flag import Flag
from tabon.explain.flags.lexicon import lexicon
from tabon.explain.flags.statements import Reading, Statement
from tabon.text.change_words import CHANGES, Change
from tabon.text.reports import Section


def contradicted(prior: Reading, draft: Reading) -> Iterator[Flag]:
    """Yield the sentences whose word of change cannot be true of the prior.

    A sentence with words of two kinds is passed over: whose word each is stays open.
    """
    for section, index, told in _sentences(draft):
        changes = [change for change in told if change in CHANGES]
        if len(changes) != 1:
            continue
        said = draft.in_sentence(section, index)
        check = _known_before if changes[0] == "new" else _unknown_before
        yield from check(prior, said, changes[0])


def without_prior(draft: Reading) -> Iterator[Flag]:
    """Yield the sentences that look back though there is no prior."""
    for section, index, told in _sentences(draft):
        yield Flag(
            kind="change-without-prior",
            section=section,
            sentences=(index,),
            detail=f"tells of a prior that there is not ({', '.join(told)})",
        )


def _sentences(draft: Reading) -> Iterator[tuple[Section, int, tuple[Change, ...]]]:
    """Yield the sentences with words of change, and the words' kinds."""
    told: dict[tuple[Section, int], list[Change]] = {}
    for word in draft.changes:
        told.setdefault((word.section, word.sentence), []).append(word.change)
    return ((section, index, tuple(kinds)) for (section, index), kinds in told.items())


def _known_before(prior: Reading, said: tuple[Statement, ...], change: Change) -> Iterator[Flag]:
    """Flag what is called new though the prior holds all of it, on no other side."""
    there = [one for one in said if one.held]
    if not there or not all(_was_there(prior, one) for one in there):
        return
    section, sentences = place_of(prior.about(there[0].name))
    yield Flag(
        kind="contradicted-change",
        section=there[0].section,
        sentences=(there[0].sentence,),
        prior_section=section,
        prior_sentences=sentences,
        observation=there[0].name,
        detail=f"{there[0].name} is called {change}; the prior has it",
    )


def _was_there(prior: Reading, said: Statement) -> bool:
    """Whether the prior states the same finding, on the same side as far as sides are said."""
    if said.name in lexicon().umbrella:
        return False
    before = [one for one in prior.about(said.name) if one.polarity == "positive"]
    sides = {one.side for one in before}
    return bool(before) and (said.side is None or None in sides or said.side in sides)


def _unknown_before(prior: Reading, said: tuple[Statement, ...], change: Change) -> Iterator[Flag]:
    """Flag what is said to go on or to be over though the prior holds none of it."""
    told = [one for one in said if one.held or change == "resolved"]
    if not told or any(holds(prior, one.name) for one in told):
        return
    denied = sorted({one.sentence for one in prior.about(told[0].name) if one.section == told[0].section})
    yield Flag(
        kind="contradicted-change",
        section=told[0].section,
        sentences=(told[0].sentence,),
        prior_section=told[0].section if denied else None,
        prior_sentences=tuple(denied),
        observation=told[0].name,
        detail=f"{told[0].name} is called {change}; the prior {'denies it' if denied else 'has none'}",
    )
