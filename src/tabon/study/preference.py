"""Which selector is preferred: the strengths of Bradley and Terry behind all comparisons."""

import numpy as np

from tabon.evaluation.statistics import Array

STEPS = 50  # of Newton's method; some ten are enough
CLOSE = 1e-10


def strengths(wins: Array) -> Array:
    """Return the strengths behind tables of wins (..., n, n), row over column, as log odds with the mean 0.

    The chance that i is preferred to j is 1 / (1 + exp(s_j - s_i)); a tie is half a win of each. One more
    comparison of each two, half won by either, keeps the strengths finite where one has won all of them.

    >>> strengths(np.array([[0.0, 3.0], [1.0, 0.0]])).round(3).tolist()
    [0.424, -0.424]
    """
    number = wins.shape[-1]
    known = wins + (1 - np.eye(number)) / 2
    pairs = known + np.swapaxes(known, -1, -2)
    found = np.zeros(wins.shape[:-1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(found[..., None, :] - found[..., :, None]))
        slope = (known - pairs * chance).sum(axis=-1)
        weight = pairs * chance * (1 - chance)
        bend = np.eye(number) * weight.sum(axis=-1)[..., None] - weight + 1 / number  # the mean stays 0
        step = np.linalg.solve(bend, slope[..., None])[..., 0]
        found += step
        if np.abs(step).max(initial=0.0) < CLOSE:
            break
    return found
