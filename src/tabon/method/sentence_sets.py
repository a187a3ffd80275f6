"""Sentence sets E^S(r) (eq. 1): every distinct sentence is embedded once.

A `SentenceTable` maps distinct sentences to the rows of one matrix, in the order of the text. Many
sections are one ragged (ids, offsets) pair, and the ids of a set ascend: equal text gives the same row,
so "no change" is exactly zero, and ties cannot depend on the order of sentences in the report.
A `Fingerprint` names all that turned text into these rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.encoders import Encoder, EncoderFingerprint, checked_rows
from tabon.encoders.protocol import Matrix
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BankMismatchError
from tabon.text.reports import PARSER
from tabon.text.sentences import SPLITTER

Ids = NDArray[np.int64]
Progress = Callable[[int, int], None]  # done, total
ENCODE_AT_ONCE = 2048  # unless the encoder knows better
SET_MODE = "multiset"  # repeated sentences count as often as they stand there


@dataclass(frozen=True, slots=True, eq=False)
class RaggedSets:
    """Many sentence sets, one after another.

    >>> RaggedSets.of([[3, 1], [], [1, 1]]).lengths.tolist()
    [2, 0, 2]
    """

    ids: Ids  # row numbers of a sentence table, ascending inside each set
    offsets: Ids  # set i is ids[offsets[i] : offsets[i + 1]]
    written: Ids | None = None  # the same rows in the order of the report, if that is known

    @classmethod
    def of(cls, sets: Sequence[Sequence[int]]) -> "RaggedSets":
        """Lay sets of row numbers one after another, each in canonical order."""
        flat = [number for row in sets for number in sorted(row)]
        written = [number for row in sets for number in row]
        offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        return cls(np.asarray(flat, dtype=np.int64), offsets, np.asarray(written, dtype=np.int64))

    def __len__(self) -> int:
        """Count the sets."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ids:
        """Return the number of sentences in each set."""
        return self.offsets[1:] - self.offsets[:-1]

    def stack(self, rows: Ids, length: int) -> Ids:
        """Return the ids of these sets, all of one length, as (len(rows), length)."""
        places: Ids = self.offsets[rows][:, None] + np.arange(length)
        return self.ids[places]

    def take(self, rows: Ids) -> "RaggedSets":
        """Return these sets, in this order."""
        lengths = self.lengths[rows]
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        places = np.repeat(self.offsets[rows], lengths) + within
        written = None if self.written is None else self.written[places]
        return RaggedSets(self.ids[places], offsets, written)

    def as_written(self, index: int) -> Ids:
        """Return the ids of one set in the order of the report; in canonical order if it is not known."""
        ids = self.ids if self.written is None else self.written
        return ids[self.offsets[index] : self.offsets[index + 1]]

    def __getitem__(self, index: int) -> Ids:
        """Return the ids of one set."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]


@dataclass(frozen=True, slots=True, eq=False)
class SentenceTable:
    """Distinct sentences and their unit vectors, in the order of the text."""

    sentences: tuple[str, ...]
    vectors: Matrix  # (len(sentences), d)

    def rows_of(self, sets: Iterable[Sequence[str]]) -> RaggedSets:
        """Return the sentence sets of many report sections as row numbers (eq. 1)."""
        row = {sentence: number for number, sentence in enumerate(self.sentences)}
        return RaggedSets.of([[row[sentence] for sentence in sentences] for sentences in sets])


def sentence_set(sentences: Sequence[str], encoder: Encoder) -> Matrix:
    """Return E^S(r) of one section as unit rows in canonical order (eq. 1).

    >>> from tabon.encoders import load_encoder
    >>> sentence_set(["No edema.", "Clear lungs."], load_encoder("hashing")).shape
    (2, 256)
    """
    table = embed(set(sentences), encoder)
    return table.vectors[table.rows_of([sentences]).ids]


def embed(
    sentences: Iterable[str],
    encoder: Encoder,
    *,
    known: Mapping[str, Matrix] | None = None,
    store: SentenceStore | None = None,
    progress: Progress | None = None,
) -> SentenceTable:
    """Embed each distinct sentence once: from what is known, the store, or the encoder.

    The encoder gets some thousands at a time, and each chunk is kept before the next. Several
    chunks are of like length each, which lets an encoder fill its batches.
    """
    texts, fingerprint = tuple(sorted(set(sentences))), encoder.fingerprint
    table = SentenceTable(texts, np.empty((len(texts), fingerprint.dimension), dtype=np.float32))
    missing = _fill(table, range(len(texts)), known or {})
    if store is not None and missing:
        missing = _fill(table, missing, store.read(fingerprint, [texts[row] for row in missing]))
    size = int(getattr(encoder, "chunk", ENCODE_AT_ONCE))
    if len(missing) > size:
        missing = sorted(missing, key=lambda row: len(texts[row]))
    if progress is not None:
        progress(0, len(missing))
    for start in range(0, len(missing), size):
        rows = missing[start : start + size]
        chunk = [texts[row] for row in rows]
        vectors = checked_rows(encoder.encode(chunk), len(chunk), fingerprint.dimension)
        if store is not None:
            store.write(fingerprint, chunk, vectors)
        if len(chunk) == len(texts):  # all at once: no copy
            table = SentenceTable(texts, vectors)
        else:
            table.vectors[rows] = vectors
        if progress is not None:
            progress(start + len(chunk), len(missing))
    return table


def _fill(table: SentenceTable, rows: Iterable[int], known: Mapping[str, Matrix]) -> list[int]:
    """Fill in the rows that are known and return the others."""
    if not known:
        return list(rows)
    missing = []
    for row in rows:
        vector = known.get(table.sentences[row])
        if vector is None:
            missing.append(row)
        else:
            table.vectors[row] = vector
    return missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint(EncoderFingerprint):
    """All that went into a bank's vectors; a bank made with other values is refused."""

    splitter: str
    parser: str
    sets: str

    @classmethod
    def of(cls, encoder: Encoder) -> "Fingerprint":
        """Return the fingerprint that a bank built here and now would have."""
        return cls(**asdict(encoder.fingerprint), splitter=SPLITTER, parser=PARSER, sets=SET_MODE)

    def check(self, bank: Mapping[str, Any]) -> None:
        """Refuse a bank by the name of the first field that differs.

        Other batches change last bits alone, so a bank made on a GPU serves a processor.
        """
        here = asdict(self)
        for field in [*here, *(bank.keys() - here.keys())]:
            if field != "batching" and bank.get(field) != here.get(field):
                raise BankMismatchError(field, bank=bank.get(field), here=here.get(field))
