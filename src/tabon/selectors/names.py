"""Selectors by name: `name` or `name:variant`."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any, cast

from tabon._internal.registry import lookup
from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank
from tabon.selectors.scorer import Scorer

PAPER = "paper"  # another name of `transition`
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
        "longest": "tabon.selectors.baselines:longest",
        "shortest": "tabon.selectors.baselines:shortest",
        "first": "tabon.selectors.baselines:first",
        "random": "tabon.selectors.baselines:random",  # SEED
        "log-probability": "tabon.selectors.baselines:log_probability",
        "fused": "tabon.selectors.fused.scorer:load",  # a file of fitted weights, or nothing
        "learnt": "tabon.selectors.learnt:load",  # a file of fitted weights
    }
)
OPTIONS: Mapping[str, str] = MappingProxyType(  # settings of a scorer as the command line calls them
    {"distance": "--distance", "aggregate": "--aggregate", "num_neighbours": "-k", "zero": "--zero"}
)


def load_scorer(scorer: str | Scorer, bank: TransitionBank, **options: Any) -> Scorer:  # noqa: ANN401
    """Return the scorer that a name such as `consensus:chamfer` stands for, with these settings.

    Raises:
        UnknownNameError: there is no such selector or variant.
        BadInputError: a setting does not count for this scorer.
    """
    name = scorer if isinstance(scorer, str) else scorer.name
    kind, _, variant = name.partition(":")
    if isinstance(scorer, str):
        make = lookup("selector", {**SELECTORS, PAPER: SELECTORS["transition"]}, kind)
        scorer = cast("Scorer", make(bank, variant))
        for option in {"distance", "aggregate"} & options.keys() if variant else ():
            raise BadInputError(
                f"{OPTIONS[option]} does not count beside {name}, which names it; leave one out"
            )
    known: set[str] = {field.name for field in fields(scorer)} if is_dataclass(scorer) else set()
    for option in options.keys() - (known & OPTIONS.keys()):
        raise BadInputError(
            f"{OPTIONS[option]} does not count for the selector {name}; leave one of them out"
        )
    return replace(scorer, **options) if options else scorer  # type: ignore[type-var]
