"""Flags, and the rules that raise those about findings and about words of change."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from tabon.explanation.flags.statements import Reading, Statement
from tabon.text.change_words import CHANGES, Change
from tabon.text.findings import lexicon
from tabon.text.observations import Side
from tabon.text.reports import Section

FlagKind = Literal[
    "dropped-finding",
    "denied-finding",
    "unsupported-finding",
    "contradicted-change",
    "change-without-prior",
    "side-flip",
    "copy-forward",
    "empty-draft",
    "chatty-draft",
]
FLAG_KINDS: Final[tuple[FlagKind, ...]] = get_args(FlagKind)
Place = Literal["findings", "impression", "other"]
ENOUGH_DRAFTS = 3  # this one and two others: with fewer, nothing is outvoted
OUTVOTED = 2  # drafts that give another side
_MOVES: Final[tuple[Change, ...]] = ("new", "resolved", "moved")  # then the side may well be the other one
_SHRINKS: Final[tuple[Change, ...]] = (*_MOVES, "improved")  # then one of two sides may be left


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One thing to look at, with the sentences concerned; it holds no report text."""

    kind: FlagKind
    section: Place | None = None  # of the draft
    sentences: tuple[int, ...] = ()  # indices in split_sentences of that section
    prior_section: Section | None = None
    prior_sentences: tuple[int, ...] = ()  # the same in the prior
    observation: str | None = None
    detail: str

    def __str__(self) -> str:
        """Say it in one line, with the sentences concerned, counted from 1."""
        places = [
            f"{whose} {section}, sentence {', '.join(str(number + 1) for number in numbers)}"
            for whose, section, numbers in (
                ("draft's", self.section, self.sentences),
                ("prior's", self.prior_section, self.prior_sentences),
            )
            if numbers
        ]
        return f"{self.kind}: {self.detail}" + (f" ({'; '.join(places)})" if places else "")


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
        detail = f"{said.name} of the prior is not mentioned"
        flag = _flag("dropped-finding", said.name, detail, (), _held(prior, said.name))
        yield replace(flag, section=flag.prior_section)


def denied(prior: Reading, draft: Reading) -> Iterator[Flag]:
    """Yield what lasts and was in the prior, and is denied without a word of change."""
    for name in dict.fromkeys(said.name for said in prior.statements if said.polarity == "positive"):
        if name not in lexicon().lasting or name in draft.held or not draft.about(name):
            continue
        if _tells(draft, name, _SHRINKS):
            continue
        said = [one for one in draft.about(name) if one.polarity == "negative"]
        detail = f"{name} of the prior is denied without a word of change"
        yield _flag("denied-finding", name, detail, said, _held(prior, name))


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
        detail = f"{said.name} is not of the prior; held by {support[said.name]} of {len(others)} others"
        yield _flag("unsupported-finding", said.name, detail, _held(draft, said.name))


def flipped(prior: Reading, draft: Reading) -> Iterator[Flag]:
    """Yield the findings that have changed their side, or lost one, without a word of change."""
    names = dict.fromkeys(said.name for said in draft.statements if said.held)
    for name in names:
        here, there = _side(draft.about(name)), _side(prior.about(name))
        if here in (None, there, "bilateral") or there is None or name in lexicon().umbrella:
            continue
        if _tells(draft, name, _MOVES if there != "bilateral" else _SHRINKS):
            continue
        said, before = ([one for one in _held(side, name) if one.side] for side in (draft, prior))
        yield _flag("side-flip", name, f"{name} is {here} here and {there} in the prior", said, before)


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
            detail = f"{name} is {here} here and not in the {len(sides)} other drafts that give a side"
            yield _flag("side-flip", name, detail, [one for one in _held(draft, name) if one.side])


def speaks_of(draft: Reading, name: str) -> bool:
    """Whether a finding is named, whatever is said of it, or an akin one is named for it.

    What lasts is not settled by denying its kin: clear lungs may hold a scar.
    """
    kin_said = draft.held if name in lexicon().lasting else draft.named
    return name in draft.named or not lexicon().akin_to(name).isdisjoint(kin_said)


def holds(reading: Reading, name: str) -> bool:
    """Whether a report holds a finding, under this name or an akin one."""
    return name in reading.held or not lexicon().akin_to(name).isdisjoint(reading.held)


def _held(reading: Reading, name: str) -> list[Statement]:
    """Return the statements that hold a finding."""
    return [said for said in reading.about(name) if said.held]


def _flag(
    kind: FlagKind, name: str, detail: str, draft: Sequence[Statement], prior: Sequence[Statement] = ()
) -> Flag:
    """Return a flag at these statements: of each side the first section, and the sentences there."""
    section, prior_section = (side[0].section if side else None for side in (draft, prior))
    return Flag(
        kind=kind,
        section=section,
        sentences=tuple(sorted({said.sentence for said in draft if said.section == section})),
        prior_section=prior_section,
        prior_sentences=tuple(sorted({said.sentence for said in prior if said.section == prior_section})),
        observation=name,
        detail=detail,
    )


def _one_each(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield positive statements, one for a name; akin names in one sentence are one finding."""
    seen: list[Statement] = []
    for said in statements:
        if said.polarity != "positive":
            continue
        place, akin = (said.section, said.sentence), lexicon().akin_to(said.name)
        if not any(
            said.name == other.name or (place == (other.section, other.sentence) and other.name in akin)
            for other in seen
        ):
            yield said
        seen.append(said)


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


def contradicted(prior: Reading, draft: Reading) -> Iterator[Flag]:
    """Yield the sentences whose word of change cannot be true of the prior.

    A sentence with words of two kinds is passed over: whose word each is stays open.
    """
    for section, index, kinds in _sentences(draft):
        changes = [change for change in kinds if change in CHANGES]
        if len(changes) != 1:
            continue
        said = [one for one in draft.statements if (one.section, one.sentence) == (section, index)]
        yield from (_known_before if changes[0] == "new" else _unknown_before)(prior, said, changes[0])


def without_prior(draft: Reading) -> Iterator[Flag]:
    """Yield the sentences that look back though there is no prior."""
    for section, index, kinds in _sentences(draft):
        detail = f"tells of a prior that there is not ({', '.join(kinds)})"
        yield Flag(kind="change-without-prior", section=section, sentences=(index,), detail=detail)


def _sentences(draft: Reading) -> Iterator[tuple[Section, int, tuple[Change, ...]]]:
    """Yield the sentences with words of change, and the words' kinds."""
    kinds: dict[tuple[Section, int], list[Change]] = {}
    for word in draft.changes:
        kinds.setdefault((word.section, word.sentence), []).append(word.change)
    return ((*place, tuple(found)) for place, found in kinds.items())


def _known_before(prior: Reading, said: Sequence[Statement], change: Change) -> Iterator[Flag]:
    """Flag what is called new though the prior holds all of it, on no other side."""
    there = [one for one in said if one.held]
    if there and all(_was_there(prior, one) for one in there):
        name = there[0].name
        detail = f"{name} is called {change}; the prior has it"
        yield _flag("contradicted-change", name, detail, there[:1], _held(prior, name))


def _was_there(prior: Reading, said: Statement) -> bool:
    """Whether the prior states the same finding, on the same side as far as sides are said."""
    if said.name in lexicon().umbrella:
        return False
    before = [one for one in prior.about(said.name) if one.polarity == "positive"]
    sides = {one.side for one in before}
    return bool(before) and (said.side is None or None in sides or said.side in sides)


def _unknown_before(prior: Reading, said: Sequence[Statement], change: Change) -> Iterator[Flag]:
    """Flag what is said to go on or to be over though the prior holds none of it."""
    changed = [one for one in said if one.held or change == "resolved"]
    if changed and not any(holds(prior, one.name) for one in changed):
        first = changed[0]
        before = [one for one in prior.about(first.name) if one.section == first.section]
        detail = f"{first.name} is called {change}; the prior {'denies it' if before else 'has none'}"
        yield _flag("contradicted-change", first.name, detail, changed[:1], before)
