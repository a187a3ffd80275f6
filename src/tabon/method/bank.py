"""The transition bank B^S (eq. 7): the training transitions themselves.

The vectors of every distance are a view of the sentence table and the ragged sets, made on first use.
So one bank serves all distances.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol
from warnings import warn

import numpy as np

from tabon.encoders import Encoder, SentenceEncoder, load_encoder
from tabon.encoders.protocol import Matrix
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError, NoPatientsWarning
from tabon.method.bank_arrays import (
    BANK_FORMAT,
    LETTER_FORMAT,
    Patients,
    Provenance,
    SetPairs,
    check_bank,
    check_provenance,
    side_from,
    table_from,
)
from tabon.method.bank_build import built_file, spools_beside
from tabon.method.bank_file import BankFile, read_bank_file, write_bank_file
from tabon.method.distances import get_distance
from tabon.method.nearest import EXACT, ExactIndex, SectionBank
from tabon.method.sentence_sets import Ids, Progress
from tabon.method.transitions import Transitions, transitions
from tabon.text.frames import Records
from tabon.text.records import Transition
from tabon.text.reports import SECTIONS, Section
from tabon.text.sources import transitions_of

ROWS_MOVED = 4096  # at once
NO_PATIENTS = (
    "the bank names no patients, so it cannot notice a query of one whose reports are in it; "
    "give each transition its patient"
)


class SectionSearch(Protocol):
    """A way to search a bank; the exact one, in memory, is the bank's own."""

    def section(self, bank: "TransitionBank", section: Section, distance: str) -> SectionBank:
        """Return one section's bank under one distance (eq. 7), ready to be searched."""


class TransitionBank:
    """Training transitions, searchable under every distance; `build` and `load` make one.

    Args:
        file: the parts of a bank file.
        search: another way to search it than in memory.

    >>> moves = [Transition(prior="Clear lungs.", current="New effusion.", patient="p1")]
    >>> TransitionBank.build(moves, encoder="hashing")
    TransitionBank(transitions=1, patients=1, encoder='hashing')
    """

    def __init__(self, file: BankFile, search: SectionSearch | None = None) -> None:
        """Put a bank together from its parts; `build` and `load` make these."""
        self._file = file
        self._sections: dict[tuple[str, str], SectionBank] = {}
        self._search = search
        self.in_memory = False  # whether its files, an index too, are to be held rather than mapped
        self.sha256 = file.sha256
        self.fingerprint: Mapping[str, Any] = file.facts["fingerprint"]
        self.zero_shares: Mapping[str, Mapping[str, float]] = file.facts["zero_shares"]
        self.provenance: Sequence[Mapping[str, Any]] = Provenance(
            file.arrays["provenance"], file.arrays["provenance.offsets"], file.place
        )
        folded = file.facts["format"] != LETTER_FORMAT
        self.patients = Patients(file.arrays["patients"] if folded else None, self.provenance)
        self.table = table_from(file)
        self.pairs: Mapping[Section, SetPairs] = {
            section: SetPairs(side_from(file, f"{section}.prior"), side_from(file, f"{section}.current"))
            for section in SECTIONS
        }
        if search is None and not self.patients:
            warn(NO_PATIENTS, NoPatientsWarning, stacklevel=3)

    @classmethod
    def build(
        cls,
        transitions: str | Path | Iterable[Transition] | Records,
        *,
        encoder: str | Path | SentenceEncoder | Encoder = "minilm",
        store: SentenceStore | None = None,
        progress: Progress | None = None,
    ) -> "TransitionBank":
        """Split, embed and keep training transitions; in memory, see `build_bank_file`.

        Args:
            transitions: values, the path of a JSON Lines file, a pandas or polars frame, or other rows,
                with the columns `prior`, `current`, `patient` and, if there are, `id` and more to keep.
            encoder: a name, a folder, `owner/model@revision` or an object with `encode`.
            store: embeddings on disk.
            progress: gets how many sentences are embedded, of how many.

        >>> rows = [{"prior": "Clear lungs.", "current": "New effusion.", "patient": 7}]
        >>> TransitionBank.build(rows, encoder="hashing").patients == {"7"}
        True
        """
        made = transitions_of(transitions)
        return cls(built_file(made, load_encoder(encoder), BytesIO, store=store, progress=progress))

    @classmethod
    def load(cls, path: str | Path, *, verify: bool = True, in_memory: bool = False) -> "TransitionBank":
        """Open a bank file, memory-mapped; a damaged one is refused.

        Args:
            path: the file.
            verify: check every byte and every vector first; the structure is checked in any case.
            in_memory: hold a copy, so that nobody who writes over the file can harm this process (a file
                over 2 GiB is mapped all the same).
        """
        file = read_bank_file(Path(path), verify=verify, in_memory=in_memory)
        found = file.facts.get("format")
        if found not in (BANK_FORMAT, LETTER_FORMAT):
            raise BadInputError(
                f"{path} has bank format {str(found)[:20]}, this tabon reads {LETTER_FORMAT} and "
                f"{BANK_FORMAT}; rebuild the bank"
            )
        check_bank(file, contents=verify)
        bank = cls(file)
        bank.in_memory = in_memory
        return bank

    def check_provenance(self) -> None:
        """Read every line of provenance and refuse what cannot be cited or guarded: the rest of verifying."""
        check_provenance(self._file)

    def save(self, path: str | Path) -> None:
        """Write the bank in one step; whatever was there stays until then.

        Args:
            path: the file.
        """
        write_bank_file(Path(path), self._file)

    def __repr__(self) -> str:
        """Give its size and what built it."""
        encoder = self.fingerprint["encoder"]
        return f"TransitionBank(transitions={len(self)}, patients={len(self.patients)}, encoder={encoder!r})"

    def __len__(self) -> int:
        """Count the transitions (the paper's N)."""
        return len(self.provenance)

    @cached_property
    def known_sentences(self) -> Mapping[str, Matrix]:
        """Return the vectors of the bank's own sentences, by text."""
        return dict(zip(self.table.sentences, self.table.vectors, strict=True))

    def info(self) -> dict[str, Any]:
        """Return counts, the fingerprint and the shares of zero transitions: no text."""
        return {
            "transitions": len(self),
            "patients": len(self.patients),
            "distinct_sentences": len(self.table.sentences),
            "section_transitions": {section: len(pairs.present()) for section, pairs in self.pairs.items()},
            "zero_shares": self.zero_shares,
            "fingerprint": self.fingerprint,
            "sha256": self.sha256,
        }

    def name_under(self, distance: str) -> str:
        """Return what a signature calls this bank: its sum, and how it is searched if that may matter."""
        searches = {self.section(section, distance).search for section in SECTIONS} - {EXACT}
        return "+".join([self.sha256[:12], *sorted(searches)])

    def with_search(self, search: SectionSearch) -> "TransitionBank":
        """Return the same bank, searched by another engine than the exact one in memory."""
        other = TransitionBank(self._file, search)
        other.in_memory = self.in_memory
        return other

    def section(self, section: Section, distance: str) -> SectionBank:
        """Return one section's bank under one distance (eq. 7); made once."""
        key = (section, distance)
        if key not in self._sections:
            made = section_bank if self._search is None else self._search.section
            self._sections[key] = made(self, section, distance)
        return self._sections[key]


def build_bank_file(
    transitions: Iterable[Transition],
    path: str | Path,
    *,
    encoder: str | Path | SentenceEncoder | Encoder = "minilm",
    store: SentenceStore | None = None,
    progress: Progress | None = None,
) -> TransitionBank:
    """Write the bank of many transitions; memory grows with distinct sentences, hardly with transitions.

    The bytes are those of `TransitionBank.build`. The file appears whole or not at all.
    """
    path = Path(path)
    loaded = load_encoder(encoder)
    with spools_beside(path) as open_spool:
        write_bank_file(path, built_file(transitions, loaded, open_spool, store=store, progress=progress))
    return TransitionBank.load(path, verify=False)


def section_bank(bank: TransitionBank, section: Section, distance: str) -> SectionBank:
    """Work out the transition vectors of a section and lay them out for search."""
    present = bank.pairs[section].present()
    found = bank_transitions(bank, section, distance, present)
    moving, still = np.flatnonzero(~found.zero), np.flatnonzero(found.zero)
    index = ExactIndex(moved_to_front(found.directions, moving)) if len(moving) else None
    return SectionBank(index, present[moving], present[still])


def moved_to_front(rows: Matrix, places: Ids) -> Matrix:
    """Return the rows of some ascending places, in the memory of all: a large bank's would be a second copy.

    >>> moved_to_front(np.arange(8.0).reshape(4, 2), np.array([1, 3])).tolist()
    [[2.0, 3.0], [6.0, 7.0]]
    """
    for start in range(0, len(places), ROWS_MOVED):
        block = places[start : start + ROWS_MOVED]
        rows[start : start + len(block)] = rows[block]
    return rows[: len(places)]


def bank_transitions(bank: TransitionBank, section: Section, distance: str, rows: Ids) -> Transitions:
    """Return the transitions of these rows, which have the section on both sides (eq. 6)."""
    pairs = bank.pairs[section]
    prior, current = pairs.prior.take(rows), pairs.current.take(rows)
    [found] = transitions([get_distance(distance)], bank.table.vectors, prior=prior, current=current)
    return found
