"""The transition bank B^S (eq. 7): the training transitions themselves.

It holds one table of distinct sentences, the ragged prior and current sets of
each section, and the provenance of each row. The vectors of every distance are
a view of that, made on first use. So one bank serves all distances.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tabon.bank_files import BankFile, bank_file, read_bank_file, write_bank_file
from tabon.distances import DISTANCES, get_distance
from tabon.encoders import Encoder, SentenceEncoder, load_encoder
from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError
from tabon.nearest import ExactIndex, Index
from tabon.records import Transition
from tabon.reports import SECTIONS, Section
from tabon.sentence_sets import Ids, Progress, RaggedSets, SentenceTable, embed
from tabon.sentence_store import SentenceStore
from tabon.sentences import split_sentences
from tabon.signature import Fingerprint
from tabon.transitions import Transitions, transitions

BANK_FORMAT = 2


@dataclass(frozen=True, slots=True, eq=False)
class SetPairs:
    """The prior and current sentence sets of one section; empty where a report lacks it."""

    prior: RaggedSets
    current: RaggedSets

    def present(self) -> Ids:
        """Return the rows that have the section on both sides."""
        return np.flatnonzero((self.prior.lengths > 0) & (self.current.lengths > 0))


@dataclass(frozen=True, slots=True, eq=False)
class SectionBank:
    """One section's bank under one distance, ready to be searched."""

    index: Index | None  # over the rows that have a direction; None where none has
    rows: Ids  # bank row of each index row
    zero_rows: Ids  # bank rows whose transition is zero

    def __len__(self) -> int:
        """Count the transitions."""
        return len(self.rows) + len(self.zero_rows)


class SectionSearch(Protocol):
    """A way to search a bank; the exact one, in memory, is the bank's own."""

    def section(self, bank: "TransitionBank", section: Section, distance: str) -> SectionBank:
        """Return one section's bank under one distance (eq. 7), ready to be searched."""


class TransitionBank:
    """Training transitions, searchable under every distance."""

    def __init__(self, file: BankFile) -> None:
        """Put a bank together from its parts; `build` and `load` make these."""
        self._file = file
        self._sections: dict[tuple[str, str], SectionBank] = {}
        self._search: SectionSearch | None = None
        self.sha256 = file.sha256
        self.fingerprint: Mapping[str, Any] = file.facts["fingerprint"]
        self.zero_shares: Mapping[str, Mapping[str, float]] = file.facts["zero_shares"]
        self.provenance: tuple[Mapping[str, Any], ...] = tuple(_from_bytes(file.arrays["provenance"]))
        self.table = SentenceTable(tuple(_from_bytes(file.arrays["sentences"])), file.arrays["vectors"])
        self.pairs = {section: _pairs_from(file, section) for section in SECTIONS}

    @classmethod
    def build(
        cls,
        transitions: Iterable[Transition],
        *,
        encoder: str | Path | SentenceEncoder | Encoder = "minilm",
        store: SentenceStore | None = None,
        progress: Progress | None = None,
    ) -> "TransitionBank":
        """Split, embed and keep training transitions."""
        loaded = load_encoder(encoder)
        kept = _with_distinct_ids(transitions)
        split = {section: [_sides(transition, section) for transition in kept] for section in SECTIONS}
        sentences = (text for sides in split.values() for side in sides for part in side for text in part)
        table = embed(sentences, loaded, store=store, progress=progress)
        pairs = {
            section: SetPairs(*(table.rows_of(side) for side in zip(*sides, strict=True)))
            for section, sides in split.items()
        }
        if not any(len(both.present()) for both in pairs.values()):
            raise BadInputError(
                "no transition has findings, or impression, in both of its reports; check the sections"
            )
        facts = {
            "format": BANK_FORMAT,
            "fingerprint": asdict(Fingerprint.of(loaded)),
            "zero_shares": _zero_shares(table, pairs),
        }
        provenance = [transition.provenance() for transition in kept]
        return cls(bank_file(facts, dict(bank_arrays(table, pairs, provenance))))

    @classmethod
    def load(cls, path: str | Path, *, verify: bool = True) -> "TransitionBank":
        """Open a bank file, memory-mapped; a damaged one is refused."""
        file = read_bank_file(Path(path), verify=verify)
        found = file.facts["format"]
        if found != BANK_FORMAT:
            raise BadInputError(
                f"{path} has bank format {found}, this tabon reads {BANK_FORMAT}; rebuild the bank"
            )
        return cls(file)

    def save(self, path: str | Path) -> None:
        """Write the bank in one step; whatever was there stays until then."""
        write_bank_file(Path(path), self._file)

    def __len__(self) -> int:
        """Count the transitions (the paper's N)."""
        return len(self.provenance)

    @cached_property
    def patients(self) -> frozenset[str]:
        """Return the patients whose transitions fill the bank."""
        return frozenset(str(row["patient"]) for row in self.provenance if row.get("patient") is not None)

    @cached_property
    def known_sentences(self) -> Mapping[str, Matrix]:
        """Return the vectors of the bank's own sentences, by text."""
        return dict(zip(self.table.sentences, self.table.vectors, strict=True))

    def search_with(self, search: SectionSearch | None) -> None:
        """Let another engine search this bank from now on; None is the exact search in memory."""
        self._search = search
        self._sections.clear()

    def section(self, section: Section, distance: str) -> SectionBank:
        """Return one section's bank under one distance (eq. 7); made once."""
        key = (section, distance)
        if key not in self._sections:
            made = section_bank if self._search is None else self._search.section
            self._sections[key] = made(self, section, distance)
        return self._sections[key]


def section_bank(bank: TransitionBank, section: Section, distance: str) -> SectionBank:
    """Work out the transition vectors of a section and lay them out for search."""
    present = bank.pairs[section].present()
    found = bank_transitions(bank, section, distance, present)
    index = None if found.zero.all() else ExactIndex(found.directions[~found.zero])
    return SectionBank(index, present[~found.zero], present[found.zero])


def bank_transitions(bank: TransitionBank, section: Section, distance: str, rows: Ids) -> Transitions:
    """Return the transitions of these rows, which have the section on both sides (eq. 6)."""
    pairs = bank.pairs[section]
    prior, current = pairs.prior.take(rows), pairs.current.take(rows)
    [found] = transitions([get_distance(distance)], bank.table.vectors, prior=prior, current=current)
    return found


def _zero_shares(table: SentenceTable, pairs: Mapping[Section, SetPairs]) -> dict[str, dict[str, float]]:
    """Return the share of transitions without a direction, by section and distance."""
    shares: dict[str, dict[str, float]] = {}
    for section, both in pairs.items():
        present = both.present()
        prior, current = both.prior.take(present), both.current.take(present)
        found = transitions(
            [get_distance(name) for name in DISTANCES], table.vectors, prior=prior, current=current
        )
        shares[section] = {
            name: float(part.zero.mean()) if len(present) else 0.0
            for name, part in zip(DISTANCES, found, strict=True)
        }
    return shares


def _sides(transition: Transition, section: Section) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the prior and the current sentences of one section."""
    prior, current = transition.prior.section(section), transition.current.section(section)
    return split_sentences(prior), split_sentences(current)


def _with_distinct_ids(transitions: Iterable[Transition]) -> list[Transition]:
    """Each row of a bank is cited by its id, so there are some and ids differ."""
    kept = list(transitions)
    if not kept:
        raise BadInputError("a bank needs at least one transition; give it the training split")
    identity, count = Counter(transition.id for transition in kept).most_common(1)[0]
    if count > 1:
        raise BadInputError(
            f"transition id {identity!r} occurs {count} times; give each transition its own id"
        )
    return kept


def bank_arrays(
    table: SentenceTable, pairs: Mapping[Section, SetPairs], provenance: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a bank file."""
    yield "vectors", table.vectors.astype("<f4")
    yield "sentences", _to_bytes(list(table.sentences))
    yield "provenance", _to_bytes(list(provenance))
    for section, sides in pairs.items():
        for side, sets in (("prior", sides.prior), ("current", sides.current)):
            yield f"{section}.{side}.ids", sets.ids.astype("<i8")
            yield f"{section}.{side}.offsets", sets.offsets.astype("<i8")
            written = sets.ids if sets.written is None else sets.written
            yield f"{section}.{side}.written", written.astype("<i8")


def _pairs_from(file: BankFile, section: Section) -> SetPairs:
    """Read the two ragged sides of a section."""
    sides = (
        RaggedSets(*(file.arrays[f"{section}.{side}.{part}"] for part in ("ids", "offsets", "written")))
        for side in ("prior", "current")
    )
    return SetPairs(*sides)


def _to_bytes(value: object) -> NDArray[np.uint8]:
    """Return JSON as an array of bytes."""
    return np.frombuffer(json.dumps(value, sort_keys=True).encode(), dtype=np.uint8)


def _from_bytes(data: NDArray[np.uint8]) -> Any:  # noqa: ANN401
    """Read JSON from an array of bytes."""
    return json.loads(bytes(data))
