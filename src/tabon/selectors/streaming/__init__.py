"""Selecting while drafts are still being written (docs/guide/streaming.md)."""

from tabon.selectors.streaming.rules import Halving, Margin, Rule
from tabon.selectors.streaming.session import (
    Replayed,
    StreamingSelector,
    StreamingSession,
    calibrated_margin,
    replay,
    saved,
)

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
