"""Banks made from a bank: other sections, fewer patients, another encoder, other sentences.

They live in memory only. All start from the sentences that the bank keeps, never
from text that would have to be split again.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.encoders import Encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.method.bank import TransitionBank
from tabon.method.bank_arrays import BANK_FORMAT, SetPairs, bank_arrays
from tabon.method.bank_file import bank_file
from tabon.method.sentence_sets import Fingerprint, RaggedSets, SentenceTable, embed
from tabon.selectors.scorer import Sentences
from tabon.text.reports import Section

Recut = Callable[[Sentences], Sentences]  # the sentences of a section to other pieces of it

SHARES = tuple(2.0**-power for power in range(6, -1, -1))  # 1/64 … 1
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

    A transition without a patient stands for a patient of its own.
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


def _json(value: object) -> NDArray[np.uint8]:
    """Return JSON as an array of bytes, as bank files have it."""
    return np.frombuffer(json.dumps(value, sort_keys=True).encode(), dtype=np.uint8)
