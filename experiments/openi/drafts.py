"""Made-up drafts: real reports of the pool that are like the reference, found with noise.

A draft is a report that somebody wrote, so its text is plausible; how far it is
from the reference depends on the noise, which differs from draft to draft.
"""

import numpy as np
from likeness import Square
from linking import Corpus, Rows, Visits, noisy_ranking
from plan import Setting

from tabon.errors import BadInputError


def retrieve(corpus: Corpus, visits: Visits, pool: Rows, setting: Setting, rng: np.random.Generator) -> Rows:
    """Return the drafts of each visit, (visits, K)."""
    rows = []
    for prior, reference in zip(visits.prior, visits.current, strict=True):
        value = corpus.likeness[reference, pool]
        if setting.text_weight:
            value = value + setting.text_weight * corpus.text_likeness[reference, pool]
        used = {corpus.texts[reference], corpus.texts[prior]}
        rows.append([_draft(corpus, pool, value, used, setting.noise, rng) for _ in range(setting.drafts)])
    return np.array(rows, dtype=np.intp).reshape(len(rows), setting.drafts)


def _draft(  # what is searched, where, and how
    corpus: Corpus, pool: Rows, value: Square, used: set[np.intp], noise: float, rng: np.random.Generator
) -> np.intp:
    """Return the best report of the pool under fresh noise whose text is not used yet, and use it."""
    scale = 2 * noise * rng.random()
    for report in pool[noisy_ranking(value, scale, rng)]:
        if corpus.texts[report] not in used:
            used.add(corpus.texts[report])
            return report
    raise BadInputError("the draft pool has too few different texts; lower `drafts` or the other sizes")
