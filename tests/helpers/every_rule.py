"""The splitter without its shortcuts: each rule is asked about every text."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tabon.text import sentences


@contextmanager
def every_rule() -> Iterator[None]:
    """Let no cheap test spare a rule."""
    always = re.compile("")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_MAY_STRESS", "_MAY_RUN_ON", "_MAY_COUNT", "_MAY_NAME"):
            patch.setattr(sentences, name, always)
        patch.setattr(sentences, "_is_plain", lambda _: False)
        patch.setattr(sentences, "begins_with_a_word", lambda _: False)
        sentences.split_sentences.cache_clear()
        yield
    sentences.split_sentences.cache_clear()
