"""The paper's method and its rivals, behind one protocol: a distance for every draft, with its parts."""

from tabon.selectors.scorer import SELECTORS, Batch, Scorer, Scores, load_scorer, make_batch
from tabon.selectors.selector import Selector

__all__ = ["SELECTORS", "Batch", "Scorer", "Scores", "Selector", "load_scorer", "make_batch"]
