"""What a condition changes: the bank, the priors, or how reports are cut into pieces.

Banks made from a bank are in memory only. All start from the sentences that the bank
keeps, never from text that would have to be split again.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from tabon.encoders import Encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError
from tabon.evaluation.inputs import whose
from tabon.method.bank import TransitionBank
from tabon.method.bank_arrays import BANK_FORMAT, SetPairs, bank_arrays
from tabon.method.bank_file import bank_file
from tabon.method.selection import Selection
from tabon.method.sentence_sets import Fingerprint, RaggedSets, SentenceTable, embed
from tabon.selectors import Batch, Scorer, Selector
from tabon.selectors.scorer import Sentences, make_batch
from tabon.text.records import Query
from tabon.text.reports import Section

Split = Callable[[str], Sentences]  # a section's text to its pieces
Recut = Callable[[Sentences], Sentences]  # the sentences of a section to other pieces of it

SHARES = tuple(2.0**-power for power in range(6, -1, -1))  # 1/64 … 1
QUERIES_AT_ONCE = 256
_CLAUSE = re.compile(r"\s*[,;]\s+|\s+and\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class SizedBank:
    """A bank of some of the patients."""

    share: float
    patients: int
    bank: TransitionBank


def assembled(
    table: SentenceTable,
    pairs: Mapping[Section, SetPairs],
    provenance: Sequence[Mapping[str, Any]],
    *,
    fingerprint: Mapping[str, Any],
    zero_shares: Mapping[str, Any] | None = None,
) -> TransitionBank:
    """Return the bank of these parts; zero shares are left out where they are not given."""
    facts = {
        "format": BANK_FORMAT,
        "fingerprint": dict(fingerprint),
        "zero_shares": dict(zero_shares or {section: {} for section in pairs}),
    }
    return TransitionBank(bank_file(facts, dict(bank_arrays(table, pairs, provenance))))


def other_sections(bank: TransitionBank) -> TransitionBank:
    """Return the bank with the impressions' transitions where the findings' were, and the other way round."""
    pairs = {"findings": bank.pairs["impression"], "impression": bank.pairs["findings"]}
    return assembled(bank.table, pairs, bank.provenance, fingerprint=bank.fingerprint)  # type: ignore[arg-type]


def encoded_anew(
    bank: TransitionBank, encoder: Encoder, store: SentenceStore | None = None
) -> TransitionBank:
    """Return the bank with its sentences embedded by another encoder."""
    table = embed(bank.table.sentences, encoder, store=store)
    return assembled(table, bank.pairs, bank.provenance, fingerprint=asdict(Fingerprint.of(encoder)))


def recut(
    bank: TransitionBank, cut: Recut, encoder: Encoder, store: SentenceStore | None = None
) -> TransitionBank:
    """Return the bank with every section's sentences cut in another way.

    The fingerprint stays: these pieces come from the splitter's sentences.
    """

    def pieces_of(sets: RaggedSets) -> list[Sentences]:
        rows = (sets.as_written(number) for number in range(len(sets)))
        return [cut(tuple(bank.table.sentences[row] for row in written)) for written in rows]

    sets = {
        (section, side): pieces_of(getattr(pairs, side))
        for section, pairs in bank.pairs.items()
        for side in ("prior", "current")
    }
    pieces = (piece for sections in sets.values() for section in sections for piece in section)
    table = embed(pieces, encoder, store=store)
    pairs = {
        section: SetPairs(*(table.rows_of(sets[section, side]) for side in ("prior", "current")))
        for section in bank.pairs
    }
    return assembled(table, pairs, bank.provenance, fingerprint=bank.fingerprint)


def nested_banks(bank: TransitionBank, seed: int, shares: tuple[float, ...] = SHARES) -> Iterator[SizedBank]:
    """Yield banks of growing shares of the patients, each within the next; none twice.

    A transition without a patient is one of a patient of its own.
    """
    owners = [
        f"transition:{row['id']}" if row.get("patient") is None else f"patient:{row['patient']}"
        for row in bank.provenance
    ]
    patients = sorted(set(owners))
    order = np.random.default_rng(seed).permutation(len(patients))
    rank = {patients[patient]: place for place, patient in enumerate(order.tolist())}
    ranks = np.array([rank[owner] for owner in owners])
    before = 0
    for share in shares:
        count = ceil(share * len(patients))
        if count > before:
            rows = np.flatnonzero(ranks < count)
            pairs = {
                section: SetPairs(both.prior.take(rows), both.current.take(rows))
                for section, both in bank.pairs.items()
            }
            provenance = [bank.provenance[row] for row in rows.tolist()]
            smaller = assembled(bank.table, pairs, provenance, fingerprint=bank.fingerprint)
            yield SizedBank(share, count, smaller)
        before = count


def whole_section(sentences: Sentences) -> Sentences:
    """Return a section as one piece, its sentences in the order of the report.

    >>> whole_section(("No edema.", "Clear."))
    ('No edema. Clear.',)
    """
    return (" ".join(sentences),) if sentences else ()


def clauses(sentences: Sentences) -> Sentences:
    """Cut sentences at commas, semicolons and "and".

    >>> clauses(("Heart and mediastinum are normal; no effusion, 1,000 ml.",))
    ('Heart', 'mediastinum are normal', 'no effusion', '1,000 ml.')
    """
    pieces = (piece.strip() for sentence in sentences for piece in _CLAUSE.split(sentence))
    return tuple(piece for piece in pieces if any(letter.isalnum() for letter in piece))


def other_priors(queries: Sequence[Query], seed: int) -> list[Query]:
    """Return the queries with the priors of other patients; each prior is used once.

    Priors move among the queries that have one; those without stay without. The
    draw depends on ids and patients, not on the order of the file or the drafts.

    Raises:
        BadInputError: one patient has more than half of the priors, so there is no such exchange.

    >>> from tabon.text.reports import Report
    >>> two = [Query(id=name, prior=Report(name), candidates=()) for name in ("Clear.", "Mass.")]
    >>> [query.prior.findings for query in other_priors(two, seed=0)]
    ['Mass.', 'Clear.']
    """
    having = [row for row, query in enumerate(queries) if any(not prior.is_empty for prior in query.priors)]
    counts = Counter(whose(queries[row]) for row in having)
    largest = max(counts.values(), default=0)
    if 2 * largest > len(having):
        raise BadInputError(
            f"one patient has {largest} of {len(having)} priors, so not everyone can get another patient's; "
            "give queries of more patients"
        )
    if not having:
        return list(queries)
    rng = np.random.default_rng(seed)  # patients are put in a ring, and all look past the largest group
    patients = sorted(counts)
    place = dict(zip(patients, rng.permutation(len(patients)).tolist(), strict=True))
    within = dict(zip(sorted(having, key=lambda row: queries[row].id), rng.random(len(having)), strict=True))
    ring = sorted(having, key=lambda row: (place[whose(queries[row])], within[row]))
    step = int(rng.integers(largest, len(having) - largest + 1))
    shuffled = list(queries)
    for at, taker in enumerate(ring):
        giver = queries[ring[(at + step) % len(ring)]]
        shuffled[taker] = replace(queries[taker], prior=giver.prior, earlier=giver.earlier)
    return shuffled


class ControlSelector(Selector):
    """A selector that cuts texts in its own way; `bank` must be cut the same way."""

    def __init__(self, bank: TransitionBank, scorer: Scorer, *, split: Split, **settings: Any) -> None:  # noqa: ANN401
        """Keep how texts are cut; the other settings are a selector's."""
        super().__init__(bank, scorer, **settings)
        self._split = split

    def batch(self, queries: Sequence[Query]) -> Batch:
        """Cut and embed every report."""
        each_prior = self.history > 0
        return make_batch(
            queries, self.bank, self.encoder, self.store, each_prior=each_prior, split=self._split
        )


def select_in_batches(selector: Selector, queries: Sequence[Query]) -> list[Selection]:
    """Choose for many queries, some hundred at a time."""
    starts = range(0, len(queries), QUERIES_AT_ONCE)
    return [one for start in starts for one in selector.select_many(queries[start : start + QUERIES_AT_ONCE])]
