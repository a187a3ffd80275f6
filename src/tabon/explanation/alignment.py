"""Which sentence of a draft takes the place of which sentence of the prior.

    = same        equal up to case, spaces and the final stop
    ~ reworded    near enough to one prior sentence, and the best partner for it
    + new         no prior sentence is its partner
    - dropped     a prior sentence without a partner

Partners are one to one: equal texts first, then mutual nearest pairs of an optimal assignment nearer
than `REWORDED`. Near is not equal in meaning ("no pneumothorax", "new pneumothorax"), so a pair also
names the observations that one side affirms and the other denies.
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tabon.encoders.protocol import Matrix
from tabon.method.distances import Stack, cosine_cost
from tabon.text.observations import Polarity, sentence_mentions

Kind = Literal["same", "reworded", "new", "dropped"]

REWORDED = 0.25
"""The largest cosine distance ½(1 - a·b) of a reworded sentence: a cosine of ½.

On simulated visits, where the topic of each sentence is known, 98 % of the pairs made with
MiniLM speak of one topic, and 77 % of the pairs that could be made are made (docs/guide/explain.md).
A looser bound finds more, but a new finding that is taken for an old one is the worse mistake.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """One sentence with its partner, as places in the two lists of sentences."""

    kind: Kind
    prior: int | None = None
    current: int | None = None
    distance: float | None = None  # to the partner; without one, to the nearest sentence of the other side
    turned: tuple[str, ...] = ()  # observations that one of the two affirms and the other denies


def align(
    prior: Sequence[str], current: Sequence[str], *, prior_vectors: Matrix, current_vectors: Matrix
) -> tuple[Aligned, ...]:
    """Return the current sentences in their order, then the prior ones that were dropped.

    The vectors are the unit embeddings of the sentences, (len(prior), d) and (len(current), d).

    >>> import numpy as np
    >>> clear, big = np.eye(2)
    >>> pairs = align(["Clear."], ["clear", "Big."], prior_vectors=[clear], current_vectors=[clear, big])
    >>> [pair.kind for pair in pairs]
    ['same', 'new']
    """
    cost = cosine_cost(
        prior=np.asarray(prior_vectors, np.float64), current=np.asarray(current_vectors, np.float64)
    )
    same = _same_texts(prior, current)
    reworded = _reworded(cost, same)
    found = []
    for j, sentence in enumerate(current):
        if j in same:
            i = same[j]
            found.append(Aligned(kind="same", prior=i, current=j, distance=float(cost[i, j])))
        elif j in reworded:
            i, far = reworded[j], float(cost[reworded[j], j])
            apart = turned(prior[i], sentence)
            found.append(Aligned(kind="reworded", prior=i, current=j, distance=far, turned=apart))
        else:
            found.append(Aligned(kind="new", current=j, distance=_least(cost[:, j])))
    left = sorted({*range(len(prior))} - {*same.values(), *reworded.values()})
    return (*found, *(Aligned(kind="dropped", prior=i, distance=_least(cost[i])) for i in left))


def same_text(sentence: str) -> str:
    """Return what two sentences share when they differ in case, spaces and the final stop only.

    >>> same_text("The  Lungs are clear.") == same_text("the lungs are clear")
    True
    """
    return " ".join(sentence.casefold().rstrip(" .").split())


def turned(prior: str, current: str) -> tuple[str, ...]:
    """Return the observations that one sentence affirms, or suspects, and the other denies.

    >>> turned("There is no pneumothorax.", "New left pneumothorax.")
    ('Pneumothorax',)
    """
    before, after = _said(prior), _said(current)
    denied = {"negative"}
    return tuple(
        name for name in before if name in after and (before[name] == denied) != (after[name] == denied)
    )


def _said(sentence: str) -> Mapping[str, set[Polarity]]:
    """Return what a sentence says of each observation that it mentions."""
    said: defaultdict[str, set[Polarity]] = defaultdict(set)
    for mention in sentence_mentions(sentence):
        said[mention.observation].add(mention.polarity)
    return said


def _same_texts(prior: Sequence[str], current: Sequence[str]) -> dict[int, int]:
    """Return the prior partner of each current sentence that is there word for word."""
    places: defaultdict[str, deque[int]] = defaultdict(deque)
    for i, sentence in enumerate(prior):
        places[same_text(sentence)].append(i)
    waiting = ((j, places.get(same_text(sentence))) for j, sentence in enumerate(current))
    return {j: found.popleft() for j, found in waiting if found}


def _reworded(cost: Stack, same: Mapping[int, int]) -> dict[int, int]:
    """Return the prior partner of each reworded sentence, among those that have none yet.

    Beyond the bound all pairs cost the same, so that a far pair cannot part a near one.
    """
    before = [i for i in range(cost.shape[0]) if i not in set(same.values())]
    after = [j for j in range(cost.shape[1]) if j not in same]
    left = cost[np.ix_(before, after)]
    from scipy.optimize import linear_sum_assignment  # slow to import

    pairs = np.stack(linear_sum_assignment(np.minimum(left, REWORDED)), axis=1).tolist()
    return {
        after[j]: before[i]
        for i, j in pairs
        if left[i, j] <= min(REWORDED, left[i].min(), left[:, j].min())  # near, and nearest to each other
    }


def _least(costs: Stack) -> float | None:
    """Return the smallest distance, or None if there is nothing to be near."""
    return float(costs.min()) if costs.size else None
