"""What DyGIE++ does after BERT: word vectors in, labelled spans and their relations out.

Only what inference of RadGraph needs: no coreference, no events, one sentence a
report. The arithmetic is numpy's; the weights keep the names of the checkpoint.

    word vectors ─▶ spans ─▶ an entity label or none ─▶ the spans that may relate ─▶ a relation or none
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]  # (words or spans, features)
Indices = NDArray[np.int64]
Weights = Mapping[str, Vectors]

WIDTHS = "_endpoint_span_extractor._span_width_embedding.weight"
ENTITY = "_ner._ner_scorers.{}__ner_labels"
MENTION = "_relation._mention_pruners.{}__relation_labels._scorer"
PAIR = "_relation._relation_feedforwards.{}__relation_labels"
RELATION = "_relation._relation_scorers.{}__relation_labels"


@dataclass(frozen=True, slots=True)
class Relation:
    """A labelled arrow to the entity at place `target` of the same graph."""

    label: str
    target: int


@dataclass(frozen=True, slots=True)
class Entity:
    """A run of words, first to last, that the model gave a label."""

    tokens: str
    label: str
    first: int
    last: int
    relations: tuple[Relation, ...] = ()


Graph = tuple[Entity, ...]  # in the order of the text


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """The weights after BERT and the settings that go with them."""

    kind: str  # "radgraph-xl": the data set whose scorers are used
    weights: Weights
    entity_labels: tuple[str, ...]  # the first is "", no entity
    relation_labels: tuple[str, ...]
    max_span_width: int
    spans_per_word: float


def needed_weights(kind: str) -> list[str]:
    """Name the weights without which no graph can be made."""
    hidden = [f"{ENTITY}.0._module", f"{MENTION}.0._module", PAIR]
    last = [f"{ENTITY}.1._module", f"{MENTION}.1._module", RELATION]
    layers = [f"{prefix}._linear_layers.0" for prefix in hidden] + last
    return [WIDTHS, *(f"{layer.format(kind)}.{part}" for layer in layers for part in ("weight", "bias"))]


def read_graph(words: Sequence[str], vectors: Vectors, heads: Heads) -> Graph:
    """Return the entities and relations of one report from a vector a word."""
    spans = enumerate_spans(len(words), heads.max_span_width)
    features = span_features(vectors, spans, heads.weights[WIDTHS])
    labels = entity_labels(features, heads)
    found = np.flatnonzero(labels)
    mentions = mention_scores(features, heads)
    kept = np.intersect1d(found, best_mentions(mentions, len(words), heads.spans_per_word))
    related = relation_labels(features[kept], mentions[kept], heads)
    place = {span: i for i, span in enumerate(found.tolist())}
    return tuple(
        Entity(
            tokens=" ".join(words[spans[span, 0] : spans[span, 1] + 1]),
            label=heads.entity_labels[labels[span]],
            first=int(spans[span, 0]),
            last=int(spans[span, 1]),
            relations=tuple(_relations_of(span, kept, related, place, heads.relation_labels)),
        )
        for span in found.tolist()
    )


def _relations_of(
    span: int, kept: Indices, related: Indices, place: Mapping[int, int], names: Sequence[str]
) -> Iterator[Relation]:
    """Yield the relations that leave one span, in the order of their targets."""
    for row in np.flatnonzero(kept == span):
        for column in np.flatnonzero(related[row]):
            yield Relation(names[related[row, column] - 1], place[int(kept[column])])


def enumerate_spans(num_words: int, max_width: int) -> Indices:
    """Return the first and last word of every span, by first word, then by width.

    >>> enumerate_spans(3, 2).tolist()
    [[0, 0], [0, 1], [1, 1], [1, 2], [2, 2]]
    """
    spans = [(i, j) for i in range(num_words) for j in range(i, min(i + max_width, num_words))]
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def word_vectors(pieces: Vectors, counts: Sequence[int]) -> Vectors:
    """Average the pieces of each word; a word without pieces is the zero vector.

    >>> word_vectors(np.array([[2.0], [4.0], [5.0]], dtype=np.float32), [2, 0, 1]).tolist()
    [[3.0], [0.0], [5.0]]
    """
    vectors = np.zeros((len(counts), pieces.shape[1]), dtype=np.float32)
    ends = np.cumsum(counts)
    for i, (count, end) in enumerate(zip(counts, ends, strict=True)):
        if count:
            vectors[i] = pieces[end - count : end].mean(axis=0)
    return vectors


def span_features(vectors: Vectors, spans: Indices, widths: Vectors) -> Vectors:
    """Put the vectors of a span's first word, of its last word and of its width side by side."""
    first, last = spans[:, 0], spans[:, 1]
    return np.concatenate([vectors[first], vectors[last], widths[last - first]], axis=1)


def entity_labels(features: Vectors, heads: Heads) -> Indices:
    """Return the best label of each span; 0 is none and scores 0."""
    prefix = ENTITY.format(heads.kind)
    hidden = _hidden(features, heads.weights, f"{prefix}.0._module")
    return _best_or_none(_linear(hidden, heads.weights, f"{prefix}.1._module"))


def mention_scores(features: Vectors, heads: Heads) -> Vectors:
    """Return how much each span looks like the end of a relation."""
    prefix = MENTION.format(heads.kind)
    hidden = _hidden(features, heads.weights, f"{prefix}.0._module")
    return _linear(hidden, heads.weights, f"{prefix}.1._module")[:, 0]


def best_mentions(scores: Vectors, num_words: int, spans_per_word: float) -> Indices:
    """Return the spans that are kept as ends of relations: so many a word, at least one.

    >>> best_mentions(np.array([0.1, 0.9, 0.5], dtype=np.float32), 4, 0.5).tolist()
    [1, 2]
    """
    keep = max(int(np.ceil(np.float32(num_words) * np.float32(spans_per_word))), 1)
    return np.sort(np.argsort(-scores, kind="stable")[:keep])


def relation_labels(features: Vectors, mentions: Vectors, heads: Heads) -> Indices:
    """Return the best relation from each span (row) to each span (column); 0 is none and scores 0.

    A pair is scored by itself, so pairs with a span that is no entity need not
    be asked for: their relations are dropped in any case.
    """
    rows = [_relations_from(i, features, mentions, heads) for i in range(len(features))]
    return np.array(rows, dtype=np.int64).reshape(len(features), len(features))


def _relations_from(source: int, features: Vectors, mentions: Vectors, heads: Heads) -> Indices:
    """Return the best relation from one span to each span."""
    sources = np.broadcast_to(features[source], features.shape)
    pairs = np.concatenate([sources, features, sources * features], axis=1)
    hidden = _hidden(pairs, heads.weights, PAIR.format(heads.kind))
    scores = _linear(hidden, heads.weights, RELATION.format(heads.kind))
    return _best_or_none(scores + (mentions[source] + mentions)[:, None])


def _best_or_none(scores: Vectors) -> Indices:
    """Return 1 + the best column, or 0 where no column is above zero."""
    best = scores.argmax(axis=1)
    return np.where(scores.max(axis=1) > 0, best + 1, 0)


def _hidden(inputs: Vectors, weights: Weights, prefix: str) -> Vectors:
    """Run the hidden layers under a name: linear, then what is below zero set to zero."""
    layer = 0
    while f"{prefix}._linear_layers.{layer}.weight" in weights:
        inputs = np.maximum(_linear(inputs, weights, f"{prefix}._linear_layers.{layer}"), 0)
        layer += 1
    return inputs


def _linear(inputs: Vectors, weights: Weights, name: str) -> Vectors:
    """Run one linear layer."""
    outputs: Vectors = inputs @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return outputs
