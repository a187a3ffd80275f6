"""Every distinct pair is measured once: in this call, and on this machine."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from tabon._internal.blob_store import BlobStore
from tabon.metrics.protocol import Metric, Pair, Statistics

BATCH = 512  # pairs that are measured and kept in one step
Progress = Callable[[int, int], None]


class MeasurementStore:
    """Statistics on disk, found by metric signature and texts."""

    def __init__(self, path: Path) -> None:
        """Open or create the store."""
        self._blobs = BlobStore(path, table="statistics", what="measurement store", option="--measurements")

    def read(self, metric: Metric, pairs: Sequence[Pair]) -> dict[Pair, Statistics]:
        """Return the rows that are there, by pair."""
        keys = {pair_key(metric.signature, pair): pair for pair in pairs}
        size = 8 * len(metric.statistics)
        return {
            keys[key]: np.frombuffer(blob, dtype="<f8")
            for key, blob in self._blobs.read(list(keys)).items()
            if len(blob) == size
        }

    def write(self, metric: Metric, pairs: Sequence[Pair], rows: Statistics) -> None:
        """Add rows; when this returns they are on disk."""
        self._blobs.write(
            (pair_key(metric.signature, pair), row.astype("<f8").tobytes())
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
    progress: Progress | None = None,
) -> Statistics:
    """Return a row a pair, (pairs, statistics); what the store has is not measured again."""
    distinct = list(dict.fromkeys(pairs))
    rows = store.read(metric, distinct) if store else {}
    missing = [pair for pair in distinct if pair not in rows]
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]
        measured = metric.measure(batch)
        if store:
            store.write(metric, batch, measured)
        rows.update(zip(batch, measured, strict=True))
        if progress:
            progress(min(start + BATCH, len(missing)), len(missing))
    return np.array([rows[pair] for pair in pairs]).reshape(len(pairs), len(metric.statistics))
