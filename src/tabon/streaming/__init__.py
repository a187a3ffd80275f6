"""Selecting while drafts are still being written (docs/guide/streaming.md)."""

from tabon.streaming.calibrating import calibrated_margin
from tabon.streaming.replay import Replayed, replay, saved
from tabon.streaming.rules import Halving, Margin, Rule
from tabon.streaming.session import StreamingSelector, StreamingSession

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
