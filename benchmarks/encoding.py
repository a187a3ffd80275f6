"""Embedding a corpus: each distinct sentence once, against encoding sentences as they come."""

from collections.abc import Iterator

import numpy as np

from openi_text import reports, sentence_lists
from tabon.encoders import load_encoder
from tabon.sentence_sets import embed
from timing import Line, best_of, faster


def encoding_lines(*, quick: bool) -> Iterator[Line]:
    """MiniLM on all sentences of the corpus, no store."""
    sentences = [sentence for sentences in sentence_lists() for sentence in sentences]
    sentences = sentences[:200] if quick else sentences
    encoder = load_encoder("minilm")
    library = encoder._model  # noqa: SLF001  # the very same model, asked the usual way
    embed(sentences[:50], encoder)
    ours, theirs = best_of(
        1, lambda: embed(sentences, encoder), lambda: library.encode(sentences, show_progress_bar=False)
    )
    check(sentences[:200], encoder, library)
    what = f"{len(sentences)} sentences of {reports()[0]}, {len(set(sentences))} distinct, MiniLM"
    yield faster(what, ours, theirs, "sentence-transformers' encode, as they come", "≥ 2.5")


def check(sentences: list[str], encoder: object, library: object) -> None:
    """Both ways must give the same vectors."""
    table = embed(sentences, encoder)
    np.testing.assert_allclose(
        table.vectors, library.encode(list(table.sentences), normalize_embeddings=True), atol=1e-5
    )
