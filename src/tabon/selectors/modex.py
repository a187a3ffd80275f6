"""ModeX: the draft at the heart of the largest cluster of drafts (Choi and Li, 2026).

Drafts are nodes of a graph; an edge weighs the Jaccard similarities of the word
sets of 1, 2 and 3 words, summed. The graph is split by the sign of its Fiedler
vector, the larger half again, until a cut's conductance is over 0.8. The draft
with the largest similarity to its cluster is the mode. Our own additions: a
distance for the other drafts, and what happens at ties and with short texts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from tabon.method.bank import TransitionBank
from tabon.method.sentence_sets import Ids
from tabon.selectors.baselines import without_variants
from tabon.selectors.scorer import Batch, Distances, Scores
from tabon.text.reports import Section

ORDERS = (1, 2, 3)
HIGHEST_CONDUCTANCE = 0.8  # a cut above it divides nothing
SMALLEST_SPLIT = 3  # two drafts are one cluster
NOISE = 1e-9  # an entry of the Fiedler vector below this has no sign

Grams = tuple[frozenset[tuple[str, ...]], ...]
Graph = NDArray[np.float64]  # (n, n), symmetric, 0 on the diagonal


@dataclass(frozen=True, slots=True)
class ModeX:
    """Prefers the draft that is most like the mode of the drafts; made by `load`."""

    name = "modex"
    needs_prior = False
    uses_prior = False

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the n-grams and where splitting ends."""
        return {"grams": "lower-words-1-2-3", "conductance": f"{HIGHEST_CONDUCTANCE:g}"}

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return 1 - similarity to the mode, as a share of 3; 0 for the mode itself.

        The part `in-mode` is 1 for drafts of the last cluster, 0 for the others.
        """
        distances, inside = np.full((2, len(batch.drafts)), np.nan)
        there = batch.has_draft(section)
        for query in range(len(batch.queries)):
            rows = [row for row in batch.rows(query) if there[row]]
            distances[rows], inside[rows] = mode_distances([batch.draft_text(row, section) for row in rows])
        return Scores(distances, {"in-mode": inside})


def load(_: TransitionBank, variant: str) -> ModeX:
    """Return ModeX; it has no variants and looks at no bank."""
    without_variants(ModeX.name, variant)
    return ModeX()


def mode_distances(texts: list[str]) -> tuple[Distances, Distances]:
    """Return each text's distance to the mode, and whether it is in the last cluster.

    Texts are first put in order, so what comes out goes with the text and not
    with its place. Where several are equally central, the nearest of them counts.

    >>> mode_distances(["No edema.", "No edema.", "New mass."])[0].tolist()
    [0.0, 0.0, 1.0]
    """
    words = [tuple(re.findall(r"\w+", text.lower())) for text in texts]
    order = sorted(range(len(texts)), key=words.__getitem__)
    graph = similarity_graph([grams(words[place]) for place in order])
    cluster = dominant_cluster(graph, np.arange(len(texts)))
    own = len(ORDERS) * np.eye(len(graph))  # each text is wholly like itself
    to_centres = 1.0 - (graph + own)[:, _centres(graph, cluster)] / len(ORDERS)
    distances, inside = np.empty((2, len(texts)))
    distances[order] = to_centres.min(axis=1, initial=1.0)
    members = {words[order[place]] for place in cluster}
    inside[:] = [text in members for text in words]
    return distances, inside


def grams(words: tuple[str, ...]) -> Grams:
    """Return the sets of 1, 2 and 3 words in a row; a text shorter than that is one piece."""
    return tuple(
        frozenset(words[start : start + order] for start in range(max(1, len(words) - order + 1)))
        for order in ORDERS
    )


def similarity_graph(texts: list[Grams]) -> Graph:
    """A_ij: Jaccard similarities of the three sets of pieces, summed; between 0 and 3."""
    graph = np.zeros((len(texts), len(texts)))
    for number in range(len(ORDERS)):
        graph += jaccard([text[number] for text in texts])
    np.fill_diagonal(graph, 0.0)
    return graph


def jaccard(sets: list[frozenset[tuple[str, ...]]]) -> Graph:
    """Return how much of each two sets is in both, (sets, sets); none may be empty.

    >>> jaccard([frozenset({("no",), ("edema",)}), frozenset({("edema",)})]).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    column = {piece: place for place, piece in enumerate(dict.fromkeys(chain(*sets)))}
    has = np.zeros((len(sets), len(column)))
    for row, pieces in enumerate(sets):
        has[row, [column[piece] for piece in pieces]] = 1.0
    both = has @ has.T  # whole numbers, so exact in any order
    sizes = has.sum(axis=1)
    shares: Graph = both / (sizes[:, None] + sizes - both)
    return shares


def dominant_cluster(graph: Graph, members: Ids) -> Ids:
    """Split the members again and again, keeping the larger half, until no cut is good enough."""
    if len(members) < SMALLEST_SPLIT:
        return members
    inner = graph[np.ix_(members, members)]
    positive = fiedler_vector(inner) >= 0.0
    if conductance(inner, positive) > HIGHEST_CONDUCTANCE:
        return members
    halves = [members[positive], members[~positive]]
    larger = max(halves, key=lambda half: (len(half), float(graph[np.ix_(half, half)].sum())))
    return dominant_cluster(graph, larger)


def fiedler_vector(graph: Graph) -> NDArray[np.float64]:
    """Return the Laplacian's least eigenvector at a right angle to the constant one.

    The constant is lifted above all others, so a graph in pieces is parted along
    them. The largest entry is positive, and noise is 0.
    """
    laplacian = np.diag(graph.sum(axis=1)) - graph
    lifted = laplacian + (1.0 + np.trace(laplacian)) / len(graph)
    vector = np.linalg.eigh(lifted).eigenvectors[:, 0]
    vector = np.where(np.abs(vector) < NOISE, 0.0, vector)
    largest = int(np.flatnonzero(np.abs(vector) >= np.abs(vector).max() - NOISE)[0])
    signed: NDArray[np.float64] = vector if vector[largest] > 0 else -vector
    return signed


def conductance(graph: Graph, side: NDArray[np.bool_]) -> float:
    """Return the weight across a cut over the smaller of the volumes; 0 if that is 0.

    >>> conductance(np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([True, False]))
    1.0
    """
    volumes = graph[side].sum(), graph[~side].sum()
    across = graph[side][:, ~side].sum()
    return float(across / min(volumes)) if min(volumes) > 0 else 0.0


def _centres(graph: Graph, cluster: Ids) -> Ids:
    """Return the members with the largest similarity to the cluster, added from least to most."""
    degrees = np.sort(graph[np.ix_(cluster, cluster)], axis=1).sum(axis=1)
    centres: Ids = cluster[degrees == degrees.max(initial=0.0)]
    return centres
