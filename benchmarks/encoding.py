"""Embedding a corpus: each distinct sentence once, against encoding sentences as they come."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from openi_text import reports, sentence_lists
from tabon.encoders import Encoder, load_encoder
from tabon.errors import EncoderError
from tabon.method.sentence_sets import SentenceTable, embed
from timing import Line, best_of, faster


def encoding_lines(*, quick: bool) -> Iterator[Line]:
    """MiniLM on all sentences of the corpus, no store, and the worst cosine to the library's rows."""
    sentences = [sentence for sentences in sentence_lists() for sentence in sentences]
    sentences = sentences[:200] if quick else sentences
    encoders = [load_encoder("minilm"), *had("minilm?precision=bfloat16")]
    library = encoders[0]._model  # noqa: SLF001  # the very same model, asked the usual way
    for encoder in encoders:
        embed(sentences[:50], encoder)
    *ours, theirs = best_of(
        1 if quick else 5,
        *(partial(embed, sentences, encoder) for encoder in encoders),
        lambda: library.encode(sentences, show_progress_bar=False),
    )
    what = f"{len(sentences)} sentences of {reports()[0]}, {len(set(sentences))} distinct, MiniLM"
    for encoder, seconds in zip(encoders, ours, strict=True):
        cosine = worst_cosine(embed(sentences, encoder), library)
        assert cosine >= 0.9999, cosine  # noqa: S101
        name = encoder.fingerprint.precision.partition(" (")[0]
        against = "sentence-transformers' encode, as they come"
        yield faster(f"{what}, {name}, cosine ≥ {cosine:.6f}", seconds, theirs, against, "≥ 4")


def had(spec: str) -> Iterator[Encoder]:
    """Load an encoder, unless this processor lacks its precision."""
    with suppress(EncoderError):
        yield load_encoder(spec)


def worst_cosine(table: SentenceTable, library: object) -> float:
    """Return the least cosine between our rows and the library's, which are in float32."""
    theirs = library.encode(list(table.sentences), normalize_embeddings=True, show_progress_bar=False)
    return float(np.einsum("nd,nd->n", table.vectors, theirs).min())
