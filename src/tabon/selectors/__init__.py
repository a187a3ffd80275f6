"""Rivals of the paper's method, behind one protocol: a distance for every draft, with its parts."""

from tabon.selectors.batch import Batch, make_batch
from tabon.selectors.loading import SELECTORS, load_scorer
from tabon.selectors.pool import PoolSelector
from tabon.selectors.protocol import Scorer, Scores

__all__ = ["SELECTORS", "Batch", "PoolSelector", "Scorer", "Scores", "load_scorer", "make_batch"]
