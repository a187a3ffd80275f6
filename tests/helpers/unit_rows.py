"""Random unit rows, and the slow way to find their neighbours."""

import numpy as np


def unit(rng, shape):
    """Random unit float32 rows."""
    rows = rng.standard_normal(shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def slow_top_k(queries, rows, k):
    """Distances in float64, sorted by (distance, row)."""
    distances = np.clip(0.5 * (1.0 - queries.astype(float) @ rows.astype(float).T), 0.0, 1.0)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, order, axis=1), order
