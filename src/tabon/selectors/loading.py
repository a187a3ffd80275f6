"""Selectors by name: `name` or `name:variant`."""

from collections.abc import Mapping
from types import MappingProxyType

from tabon._registry import lookup
from tabon.bank import TransitionBank
from tabon.selectors.protocol import Scorer

# name: a function (bank, variant) -> Scorer; `variant` is what stands after the colon, "" where nothing does
SELECTORS: Mapping[str, str] = MappingProxyType(
    {
        "transition": "tabon.selectors.transition:load",  # DISTANCE/AGGREGATE, such as novelty/min
        "two-sided": "tabon.selectors.two_sided:load",  # min or knn
        "report-space": "tabon.selectors.report_space:load",  # SETDISTANCE/AGGREGATE
        "consensus": "tabon.selectors.consensus:load",  # SETDISTANCE, or a metric's score
        "modex": "tabon.selectors.modex:load",
        "nearest-prior": "tabon.selectors.nearest_prior:load",  # SETDISTANCE, or a metric's score
        "next-visit": "tabon.selectors.next_visit:load",  # SETDISTANCE, or a metric's score
        "longest": "tabon.selectors.plain:longest",
        "shortest": "tabon.selectors.plain:shortest",
        "first": "tabon.selectors.plain:first",
        "random": "tabon.selectors.plain:random",  # SEED
        "log-probability": "tabon.selectors.plain:log_probability",
        "fused": "tabon.selectors.fused:load",  # a file of fitted weights, or nothing
        "learnt": "tabon.selectors.learnt:load",  # a file of fitted weights
    }
)


def load_scorer(name: str, bank: TransitionBank) -> Scorer:
    """Return the selector that a name such as `consensus:chamfer` stands for.

    Raises:
        UnknownNameError: there is no such selector or variant.
    """
    kind, _, variant = name.partition(":")
    scorer: Scorer = lookup("selector", SELECTORS, kind)(bank, variant)
    return scorer
