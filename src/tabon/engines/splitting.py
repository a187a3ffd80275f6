"""Sentence splitting by an engine's workers."""

from collections.abc import Sequence
from itertools import chain

from tabon.engines.protocol import Engine
from tabon.sentences import split_sentences

SECTIONS_A_PIECE = 1024


def split_piece(texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Split some sections."""
    return [split_sentences(text) for text in texts]


def split_many(engine: Engine, texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Split many sections, in their order.

    >>> from tabon.engines.local import LocalEngine
    >>> split_many(LocalEngine(), ["Clear. No edema.", ""])
    [('Clear.', 'No edema.'), ()]
    """
    pieces = (texts[start : start + SECTIONS_A_PIECE] for start in range(0, len(texts), SECTIONS_A_PIECE))
    return list(chain.from_iterable(engine.map(split_piece, pieces)))
