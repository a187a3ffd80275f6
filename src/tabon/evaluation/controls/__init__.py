"""Honest controls: how a selector does when one thing about it is changed."""

from tabon.evaluation.controls.conditions import CONDITIONS
from tabon.evaluation.controls.runner import (
    DEFAULT_SCORES,
    DEFAULT_SELECTORS,
    ControlSettings,
    Dependencies,
    run_controls,
)

__all__ = [
    "CONDITIONS",
    "DEFAULT_SCORES",
    "DEFAULT_SELECTORS",
    "ControlSettings",
    "Dependencies",
    "run_controls",
]
