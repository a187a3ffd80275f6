"""From transitions to a bank, in memory that does not grow with their number (docs/decisions/large-banks.md).

Transitions stream by once. Numbers and one line of provenance are kept of each, in spools that grow in
memory or in unnamed files. In memory stay the distinct sentences, the splits of some reports, and a block.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tabon.encoders import Encoder
from tabon.encoders.protocol import Matrix
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError
from tabon.method.bank_arrays import (
    BANK_FORMAT,
    ROWS_AT_ONCE,
    Provenance,
    SetPairs,
    bank_arrays,
    name_hash,
    patient_hash,
    provenance_line,
)
from tabon.method.bank_file import BankFile, bank_file
from tabon.method.distances import DISTANCES, get_distance
from tabon.method.sentence_sets import Fingerprint, Progress, RaggedSets, embed
from tabon.method.transitions import transitions as transition_vectors
from tabon.text.records import Transition
from tabon.text.reports import SECTIONS, Section
from tabon.text.sentences import split_sentences

SPLITS_KEPT = 4096  # reports whose sentences are remembered: a current report is often the next prior
OpenSpool = Callable[[], IO[bytes]]


@contextmanager
def spools_beside(path: Path) -> Iterator[OpenSpool]:
    """Give what opens unnamed files in the folder of `path`; a killed process leaves none behind.

    They are closed at the end of the block; arrays that map them stay.
    """
    with ExitStack() as stack:

        def open_spool() -> IO[bytes]:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                return stack.enter_context(TemporaryFile(dir=path.parent))
            except OSError as error:
                raise BadInputError(
                    f"cannot write {path} ({error.strerror}); make room or choose another place"
                ) from error

        yield open_spool


class Spool:
    """A column of numbers that grows at its end."""

    def __init__(self, file: IO[bytes], dtype: str) -> None:
        """Begin an empty column."""
        self._file, self._dtype = file, np.dtype(dtype)

    def write(self, data: bytes | memoryview) -> None:
        """Add numbers, given as bytes."""
        try:
            self._file.write(data)
        except OSError as error:
            raise BadInputError(
                f"cannot keep what is being built ({error.strerror}); make room or choose another place"
            ) from error

    def extend(self, values: NDArray[Any]) -> None:
        """Add numbers."""
        self.write(np.ascontiguousarray(values, dtype=self._dtype).reshape(-1).view(np.uint8).data)

    def array(self) -> NDArray[Any]:
        """Return all numbers; on disk they are mapped, not read."""
        if isinstance(self._file, BytesIO):
            return np.frombuffer(self._file.getbuffer(), dtype=self._dtype)
        self._file.flush()
        if self._file.tell() == 0:
            return np.zeros(0, dtype=self._dtype)
        return np.memmap(self._file, dtype=self._dtype, mode="r")


class _Kept:
    """What is kept of transitions as they stream by."""

    def __init__(self, open_spool: OpenSpool) -> None:
        """Begin with nothing."""
        self._open, self.count = open_spool, 0
        self.numbers: dict[str, int] = {}
        self._numbered: Callable[[str], bytes] = lru_cache(SPLITS_KEPT)(self._number)
        self._sides = {  # of each side: numbers as written, and how many each report has
            (section, side): (Spool(open_spool(), "<i4"), Spool(open_spool(), "<i4"))
            for section in SECTIONS
            for side in ("prior", "current")
        }
        self._lines, self._ends = Spool(open_spool(), "|u1"), Spool(open_spool(), "<i8")
        self._ids, self.patients = Spool(open_spool(), "<u8"), Spool(open_spool(), "<u8")
        self._length = 0
        self._ends.write(bytes(8))

    def add(self, transition: Transition) -> None:
        """Keep one transition."""
        for (section, side), (numbers, lengths) in self._sides.items():
            report = transition.prior if side == "prior" else transition.current
            written = self._numbered(report.section(section))
            numbers.write(written)
            lengths.write((len(written) // 4).to_bytes(4, "little"))
        name = transition.id or str(self.count + 1)
        line = provenance_line({**transition.provenance(), "id": name})
        self._length += len(line)
        self._lines.write(line)
        self._ends.write(self._length.to_bytes(8, "little"))
        self._ids.write(name_hash(name).to_bytes(8, "little"))
        if transition.patient is not None:
            self.patients.write(patient_hash(transition.patient).to_bytes(8, "little"))
        self.count += 1

    def _number(self, text: str) -> bytes:
        """Return the numbers of a section's sentences, in the order of the report, as bytes of `<i4`."""
        numbers = (self.numbers.setdefault(one, len(self.numbers)) for one in split_sentences(text))
        return np.fromiter(numbers, dtype="<i4").tobytes()

    def provenance(self) -> Provenance:
        """Return the provenance of all rows."""
        return Provenance(self._lines.array(), self._ends.array())

    def check(self) -> None:
        """Each row of a bank is cited by its id, so there are some and ids differ."""
        if not self.count:
            raise BadInputError("a bank needs at least one transition; give it the training split")
        hashes = self._ids.array()
        ordered = np.sort(hashes)
        repeated = np.flatnonzero(np.isin(hashes, ordered[1:][ordered[1:] == ordered[:-1]]))
        provenance = self.provenance()
        ids = Counter(str(provenance[row]["id"]) for row in repeated.tolist())  # hashes may meet, ids decide
        for identity, count in ids.most_common(1):
            if count > 1:
                raise BadInputError(
                    f"transition id {identity!r} occurs {count} times; give each transition its own id"
                )

    def pairs(self, rank: NDArray[np.int32]) -> dict[Section, SetPairs]:
        """Return the sets with sentences numbered in the order of the text."""
        sides = {place: self._ranked(*spools, rank) for place, spools in self._sides.items()}
        return {section: SetPairs(sides[section, "prior"], sides[section, "current"]) for section in SECTIONS}

    def _ranked(self, numbers: Spool, lengths: Spool, rank: NDArray[np.int32]) -> RaggedSets:
        """Renumber the sets of one side, block by block."""
        ids, written, offsets = (Spool(self._open(), dtype) for dtype in ("<i4", "<i4", "<i8"))
        offsets.write(bytes(8))
        given, counts, end = numbers.array(), lengths.array(), 0
        for start in range(0, self.count, ROWS_AT_ONCE):
            sizes = counts[start : start + ROWS_AT_ONCE].astype(np.int64)
            ends = end + np.cumsum(sizes)
            block = rank[given[end : ends[-1]]]
            written.extend(block)
            ids.extend(block[np.lexsort((block, np.repeat(np.arange(len(sizes)), sizes)))])
            offsets.extend(ends)
            end = int(ends[-1])
        return RaggedSets(ids.array(), offsets.array(), written.array())


def built_file(
    transitions: Iterable[Transition],
    encoder: Encoder,
    open_spool: OpenSpool,
    *,
    store: SentenceStore | None = None,
    progress: Progress | None = None,
) -> BankFile:
    """Split, embed and keep training transitions; the bytes do not depend on where the spools are."""
    kept = _Kept(open_spool)
    for transition in transitions:
        kept.add(transition)
    kept.check()
    table = embed(kept.numbers, encoder, store=store, progress=progress)
    rank = np.empty(len(table.sentences), dtype=np.int32)
    rank[[kept.numbers[sentence] for sentence in table.sentences]] = np.arange(len(rank))
    pairs = kept.pairs(rank)
    facts = {
        "format": BANK_FORMAT,
        "fingerprint": asdict(Fingerprint.of(encoder)),
        "zero_shares": zero_shares(table.vectors, pairs),
    }
    patients = np.unique(kept.patients.array())
    return bank_file(facts, dict(bank_arrays(table, pairs, kept.provenance(), patients)))


def zero_shares(vectors: Matrix, pairs: Mapping[Section, SetPairs]) -> dict[str, dict[str, float]]:
    """Return the share of transitions without a direction, by section and distance."""
    shares: dict[str, dict[str, float]] = {}
    counts = dict.fromkeys(pairs, 0)
    distances = [get_distance(name) for name in DISTANCES]
    for section, both in pairs.items():
        zeros = np.zeros(len(distances), dtype=np.int64)
        for rows, part in both.blocks():
            found = transition_vectors(distances, vectors, prior=part.prior, current=part.current)
            zeros += [int(one.zero.sum()) for one in found]
            counts[section] += len(rows)
        values = zeros / max(counts[section], 1)
        shares[section] = dict(zip(DISTANCES, values.tolist(), strict=True))
    if not any(counts.values()):
        raise BadInputError(
            "no transition has findings, or impression, in both of its reports; check the sections"
        )
    return shares
