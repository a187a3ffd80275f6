"""How much the fuzzers and kill tests try, and from which seed.

`make test` tries little with a fixed seed; `make test-all` (TABON_HEAVY=1) tries
much. TABON_SEED=n draws other cases; the seed is printed at the end of a run.
"""

import os
import random

import numpy as np

SEED = int(os.environ.get("TABON_SEED", "20261116"))


def budget(small, large):
    """Return how many cases to try in this run."""
    return large if os.environ.get("TABON_HEAVY") else small


def seeded(name):
    """Return the random numbers of one test; two tests share none."""
    return random.Random(f"{SEED} {name}")


def seeded_array(name):
    """Return numpy's random numbers of one test."""
    return np.random.default_rng(seeded(name).getrandbits(64))
