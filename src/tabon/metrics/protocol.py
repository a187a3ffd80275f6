"""What a metric is: statistics of one draft, and scores that are functions of their sums.

A metric looks at a draft once and returns a row of statistics. Any score of any
set of picks is then a function of the summed rows: a mean over drafts, corpus
BLEU, micro F1. So a selector is an index, a bootstrap resample a weighted sum.
Every distinct pair is measured once: in a call, and with a store on this machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tabon._internal.blob_store import BlobStore

Statistics = NDArray[np.float64]  # (..., statistics) of one metric
Counts = NDArray[np.float64]  # (...) how many drafts are in a sum
Values = NDArray[np.float64]

BATCH = 512  # pairs that are measured and kept in one step
KEPT_TEXTS = 256  # texts that are kept as a metric reads them; drafts of one study come together
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One section of a draft beside what the radiologist wrote; "" where it has none."""

    reference: str
    candidate: str
    prior: str = ""  # the same section of the prior report


@dataclass(frozen=True, slots=True)
class Score:
    """A named number in [0, 1] or so, higher is better, made from sums of statistics.

    `value(sums, counts)` takes sums of shape (..., statistics) over any number
    of drafts and how many drafts those were, and returns shape (...). It must
    work for one draft (counts = 1) and may not warn for counts = 0 (NaN there).
    """

    name: str  # its own in the whole suite: "bleu-1", "corpus-bleu-4", "rouge-l-f"
    value: Callable[[Statistics, Counts], Values]


class Metric(Protocol):
    """Measures drafts; loaded by `tabon.metrics.load_metric`."""

    @property
    def name(self) -> str:
        """Return the family's name: "bleu"."""

    @property
    def signature(self) -> str:
        """Return all that changes its numbers: "bleu|tokenizer:13a|…", joined by bars."""

    @property
    def statistics(self) -> tuple[str, ...]:
        """Name the columns of `measure`."""

    @property
    def scores(self) -> tuple[Score, ...]:
        """Return the scores made from these statistics."""

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return one row per pair, float64; the same row for the same pair whatever else is in the batch."""


def divided(sums: Statistics, counts: Counts) -> Values:
    """Divide, NaN where there is nothing to divide by."""
    nothing = np.full(np.broadcast_shapes(sums.shape, counts.shape), np.nan)
    values: Values = np.divide(sums, counts, out=nothing, where=counts != 0)
    return values


def mean_of(column: int) -> Callable[[Statistics, Counts], Values]:
    """Return the score that is the mean of one statistic over drafts.

    >>> mean_of(0)(np.array([[3.0, 9.0]]), np.array([2.0])).tolist()
    [1.5]
    """

    def mean(sums: Statistics, counts: Counts) -> Values:
        return divided(sums[..., column], counts)

    return mean


def measure_texts(
    pairs: Sequence[Pair],
    read: Callable[[str], Read],
    row: Callable[[Read, Read], Sequence[float]],
    width: int,
) -> Statistics:
    """Return `row(reference, candidate)` of each pair, (pairs, width), each text as `read` gives it."""
    kept = lru_cache(maxsize=KEPT_TEXTS)(read)
    rows = [row(kept(pair.reference), kept(pair.candidate)) for pair in pairs]
    return np.array(rows, dtype=np.float64).reshape(len(pairs), width)


class MeasurementStore:
    """Statistics on disk, found by metric signature and texts."""

    def __init__(self, path: Path) -> None:
        """Open or create the store."""
        self._blobs = BlobStore(path, table="statistics", what="measurement store", option="--measurements")

    def read(self, metric: Metric, pairs: Sequence[Pair]) -> dict[Pair, Statistics]:
        """Return the rows that are there, by pair."""
        signature = metric.signature  # once: it looks up the versions of packages
        keys = {pair_key(signature, pair): pair for pair in pairs}
        size = 8 * len(metric.statistics)
        return {
            keys[key]: np.frombuffer(blob, dtype="<f8")
            for key, blob in self._blobs.read(list(keys)).items()
            if len(blob) == size
        }

    def write(self, metric: Metric, pairs: Sequence[Pair], rows: Statistics) -> None:
        """Add rows; when this returns they are on disk."""
        signature = metric.signature
        self._blobs.write(
            (pair_key(signature, pair), row.astype("<f8").tobytes())
            for pair, row in zip(pairs, rows, strict=True)
        )


def pair_key(signature: str, pair: Pair) -> bytes:
    """Return the key of one pair under one metric."""
    parts = (signature, pair.reference, pair.candidate, pair.prior)
    digest = sha256()
    for part in parts:
        text = part.encode("utf-8", "surrogatepass")
        digest.update(len(text).to_bytes(8, "big") + text)
    return digest.digest()


def measure_pairs(
    metric: Metric,
    pairs: Sequence[Pair],
    *,
    store: MeasurementStore | None = None,
) -> Statistics:
    """Return one row per pair, (pairs, statistics); what the store has is not measured again."""
    distinct = list(dict.fromkeys(pairs))
    rows = store.read(metric, distinct) if store else {}
    missing = [pair for pair in distinct if pair not in rows]
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]
        measured = metric.measure(batch)
        if store:
            store.write(metric, batch, measured)
        rows.update(zip(batch, measured, strict=True))
    return np.array([rows[pair] for pair in pairs]).reshape(len(pairs), len(metric.statistics))
