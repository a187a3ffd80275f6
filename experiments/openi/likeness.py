"""How alike two reports are: by their MeSH facts, and by their words."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Square = NDArray[np.float32]  # of all pairs of a corpus
WORD = re.compile(r"\b\w\w+\b")


def fact_f1(facts: Sequence[frozenset[str]]) -> Square:
    """Return 2 |A ∩ B| / (|A| + |B|) of all pairs; 1 where both are empty.

    >>> fact_f1([frozenset({"a", "b"}), frozenset({"a"})])[0, 1].round(3)
    np.float32(0.667)
    """
    column = {fact: place for place, fact in enumerate(sorted(frozenset().union(*facts)))}
    table = np.zeros((len(facts), len(column)), dtype=np.float32)
    for row, found in enumerate(facts):
        table[row, [column[fact] for fact in found]] = 1
    sizes = table.sum(axis=1)
    total = sizes[:, None] + sizes[None, :]
    return np.where(total > 0, 2 * (table @ table.T) / np.maximum(total, 1), 1).astype(np.float32)


def text_cosine(texts: Sequence[str]) -> Square:
    """Return the cosine of tf-idf vectors of all pairs.

    Words of two letters or more, term weight 1 + ln tf, smooth idf: scikit-learn's `sublinear_tf`.
    """
    counts = [Counter(WORD.findall(text.lower())) for text in texts]
    column = {word: place for place, word in enumerate(sorted(set().union(*counts)))}
    ends = np.cumsum([0, *map(len, counts)])
    columns = np.array([column[word] for found in counts for word in found], dtype=np.int64)
    often = np.array([count for found in counts for count in found.values()], dtype=np.float64)
    rarity = np.log((1 + len(texts)) / (1 + np.bincount(columns, minlength=len(column)))) + 1
    weights = (1 + np.log(often)) * rarity[columns]
    norms = np.sqrt(np.add.reduceat(weights**2, ends[:-1]))
    table = csr_array((weights / np.repeat(norms, np.diff(ends)), columns, ends), (len(texts), len(column)))
    return (table @ table.T).toarray().astype(np.float32)
