"""What speaks for a draft's section, beside the numbers: other drafts, expected things, the prior.

Each selector has the evidence of its parts: agreement for `consensus`, what is expected and kept for `fused`.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tabon.explanation.alignment import Aligned, align
from tabon.explanation.decision import kind_of
from tabon.method.sentence_sets import Ids, SentenceTable
from tabon.selectors.fused.expectation import Expectation, Expectations
from tabon.selectors.scorer import SELECTORS, Batch, Scorer
from tabon.text.reports import Section

LIKELY = 0.5  # the probability of an observation that is expected
CITED: Mapping[str, str] = {  # kind of selector or part: what the training transitions beside a draft are
    "transition": "Nearest changes in training reports",
    "two-sided": "Nearest changes in training reports",
    "report-space": "Nearest training reports",
    "next-visit": "What came next for similar priors",
}
CITED_OTHERWISE = "Training transitions that the selector names"


@dataclass(frozen=True, slots=True)
class Agreed:
    """A sentence of the draft, by its place, and the other drafts that say it too: the same or reworded."""

    sentence: int
    drafts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """How many sentences of the prior stay word for word, are reworded, and are dropped."""

    same: int
    reworded: int
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known for and against one section of a draft; empty for what the selector does not look at."""

    others: int = 0  # other drafts that have the section
    agreement: tuple[Agreed, ...] = ()
    observations: Expectations = ()  # those that are expected or there
    words: Expectations = ()  # a few that are expected, the rarest first
    kept: Kept | None = None


def evidence_of(
    batch: Batch,
    section: Section,
    row: int,
    *,
    kinds: AbstractSet[str],
    scorer: Scorer | None,
    alignment: Sequence[Aligned],
) -> Evidence:
    """Collect the evidence of a draft's section, which it has, that parts of these kinds rest on."""
    others, agreement = _agreement(batch, section, row) if "consensus" in kinds else (0, ())
    expected = getattr(scorer, "expected", None)
    observations, words = ((), ()) if expected is None else expected(batch, section, row)
    return Evidence(
        others=others,
        agreement=agreement,
        observations=tuple(each for each in observations if each.held or each.probability >= LIKELY),
        words=words,
        kept=_kept(alignment) if "nearest-prior" in kinds else None,
    )


def evidence_lines(found: Evidence, current: Sequence[str]) -> Iterator[str]:
    """Say evidence in plain sentences; `current` are the sentences of the draft's section.

    >>> found = Evidence(others=2, agreement=(Agreed(0, (1,)),), kept=Kept(2, 1, 1))
    >>> print(*evidence_lines(found, ["Clear."]), sep="|")
    1 of 2 other drafts says this too: "Clear."|It keeps 3 of 4 sentences of the prior, 1 of them reworded.
    """
    for each in found.agreement:
        count, text = len(each.drafts), current[each.sentence]
        says = "say" if count > 1 else "says"
        yield (
            f'{count} of {found.others} other drafts {says} this too: "{text}"'
            if count
            else f'No other draft says this: "{text}"'
        )
    likely = [each for each in found.observations if each.probability >= LIKELY]
    there, missing = ([each for each in likely if each.held is held] for held in (True, False))
    unlikely = [each for each in found.observations if each.probability < LIKELY]
    for words, named in (
        ("Expected and there", there),
        ("Expected and not there", missing),
        ("There and not expected", unlikely),
    ):
        if named:
            yield f"{words}: {', '.join(map(_chance, named))}."
    for words, held in (("has", True), ("lacks", False)):
        if named := [each for each in found.words if each.held is held]:
            yield f"Words that are expected and that it {words}: {', '.join(map(_chance, named))}."
    if found.kept is not None:
        kept, reworded = found.kept.same + found.kept.reworded, found.kept.reworded
        rest = f", {reworded} of them reworded" if reworded else ""
        yield f"It keeps {kept} of {kept + found.kept.dropped} sentences of the prior{rest}."


def cited_by(scorer: Scorer | None) -> str:
    """Say what the training transitions beside a scorer's drafts are; empty if there are none."""
    if scorer is None:
        return ""
    kind = "next-visit" if hasattr(scorer, "next_visits") else kind_of(scorer.name)
    return CITED.get(kind, "" if kind in SELECTORS else CITED_OTHERWISE)


def align_rows(table: SentenceTable, prior: Ids, current: Ids) -> tuple[Aligned, ...]:
    """Align two lists of rows of one table."""
    texts = ([table.sentences[row] for row in side] for side in (prior, current))
    return align(*texts, prior_vectors=table.vectors[prior], current_vectors=table.vectors[current])


def _agreement(batch: Batch, section: Section, row: int) -> tuple[int, tuple[Agreed, ...]]:
    """Count the other drafts that have the section, and those that say each sentence of this one.

    A reworded sentence that says otherwise of an observation does not agree.
    """
    rows, sets = batch.rows(int(batch.owner[row])), batch.draft_sets[section]
    own = sets.as_written(row)
    says: list[list[int]] = [[] for _ in own]
    others = [number for number, each in enumerate(rows) if each != row and batch.drafts[each][section]]
    for number in others:
        for pair in align_rows(batch.table, sets.as_written(rows[number]), own):
            if pair.current is not None and pair.prior is not None and not pair.turned:
                says[pair.current].append(number)
    agreed = (Agreed(place, tuple(drafts)) for place, drafts in enumerate(says))
    return len(others), tuple(agreed) if others else ()


def _kept(alignment: Sequence[Aligned]) -> Kept | None:
    """Count what became of the prior's sentences; None if it has none."""
    kinds = [pair.kind for pair in alignment]
    found = Kept(kinds.count("same"), kinds.count("reworded"), kinds.count("dropped"))
    return found if found != Kept(0, 0, 0) else None


def _chance(each: Expectation) -> str:
    """Return a thing with its probability."""
    return f"{each.name} ({round(100 * each.probability)} %)"
