"""Selecting while drafts are still being written (docs/guide/streaming.md)."""

from tabon.selectors.streaming.calibration import calibrated_margin
from tabon.selectors.streaming.replay import Replayed, replay, saved
from tabon.selectors.streaming.rules import Halving, Margin, Rule
from tabon.selectors.streaming.session import StreamingSelector, StreamingSession

__all__ = [
    "Halving",
    "Margin",
    "Replayed",
    "Rule",
    "StreamingSelector",
    "StreamingSession",
    "calibrated_margin",
    "replay",
    "saved",
]
