"""Honest controls: what a selector is worth when one thing about it is changed."""

from tabon.controls.bench import DEFAULT_SCORES, DEFAULT_SELECTORS, ControlSettings, Doors
from tabon.controls.conditions import CONDITIONS
from tabon.controls.running import run_controls
from tabon.controls.table import controls_table, factorial_table

__all__ = [
    "CONDITIONS",
    "DEFAULT_SCORES",
    "DEFAULT_SELECTORS",
    "ControlSettings",
    "Doors",
    "controls_table",
    "factorial_table",
    "run_controls",
]
