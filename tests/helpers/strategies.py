"""Sentence sets for property tests: generic ones, and ones full of duplicates and ties."""

import numpy as np
from hypothesis import strategies as st

DIMENSION = 8


def unit_rows(rng, count, dimension=DIMENSION):
    """Random unit rows, rounded to float32 as an encoder's are."""
    rows = rng.standard_normal((count, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32).astype(np.float64)


@st.composite
def generic_sets(draw, max_size=7):
    """A set of distinct rows in general position."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return unit_rows(rng, draw(st.integers(1, max_size)))


@st.composite
def tied_sets(draw, max_size=7):
    """A set from a small alphabet whose dot products are exact: duplicates and ties abound."""
    alphabet = [*np.eye(4), *(np.array(row) / 2 for row in ([1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1]))]
    picks = draw(st.lists(st.integers(0, len(alphabet) - 1), min_size=1, max_size=max_size))
    return np.array([alphabet[i] for i in sorted(picks)])
