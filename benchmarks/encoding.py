"""Embedding a corpus: each distinct sentence once, against encoding sentences as they come."""

from collections.abc import Iterator

import numpy as np

from openi_text import reports, sentence_lists
from tabon.encoders import load_encoder
from tabon.sentence_sets import SentenceTable, embed
from timing import Line, best_of, faster


def encoding_lines(*, quick: bool) -> Iterator[Line]:
    """MiniLM on all sentences of the corpus, no store, and the worst cosine to the library's rows."""
    sentences = [sentence for sentences in sentence_lists() for sentence in sentences]
    sentences = sentences[:200] if quick else sentences
    encoder = load_encoder("minilm")
    library = encoder._model  # noqa: SLF001  # the very same model, asked the usual way
    embed(sentences[:50], encoder)
    ours, theirs = best_of(
        1 if quick else 5,
        lambda: embed(sentences, encoder),
        lambda: library.encode(sentences, show_progress_bar=False),
    )
    what = f"{len(sentences)} sentences of {reports()[0]}, {len(set(sentences))} distinct, MiniLM"
    cosine = worst_cosine(embed(sentences[:4000], encoder), library)
    assert cosine >= 0.9999, cosine  # noqa: S101
    yield faster(
        f"{what}, cosine ≥ {cosine:.6f}", ours, theirs, "sentence-transformers' encode, as they come", "≥ 4"
    )


def worst_cosine(table: SentenceTable, library: object) -> float:
    """Return the least cosine between our rows and the library's, both in float32."""
    theirs = library.encode(list(table.sentences), normalize_embeddings=True, show_progress_bar=False)
    return float(np.einsum("nd,nd->n", table.vectors, theirs).min())
