"""Report-space search over a bank against a plain loop over the set distances."""

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import ot
from scipy.optimize import linear_sum_assignment

from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.method.sentence_sets import RaggedSets
from tabon.selectors.set_distances.nearest_sets import SetIndex
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.sentences import split_sentences
from timing import Line, best_of, faster, share
from top_k import unit

K = 10


@dataclass(frozen=True)
class Case:
    """Training reports, drafts and the vectors of their sentences."""

    vectors: np.ndarray
    bank: RaggedSets
    drafts: RaggedSets


def report_space_lines(*, quick: bool) -> Iterator[Line]:
    """Time ten nearest reports of a few drafts, findings, in a simulated bank of the paper's size."""
    patients, reports, drafts, sample = (400, 400, 5, 400) if quick else (23_500, 22_745, 15, 2000)
    found = case(patients, reports, drafts, quick=quick)
    for name, measure in LOOPS.items():
        index = SetIndex(name, found.vectors, found.bank)
        if quick:
            check(index, measure, found)
        ours, loop = best_of(
            1 if quick else 3,
            lambda: index.search(found.vectors, found.drafts, K),  # noqa: B023
            lambda: plain_loop(measure, found, sample),  # noqa: B023
        )
        whole = loop * len(found.bank) / min(sample, len(found.bank))
        what = f"{name}: {K} nearest of {len(found.bank)} reports for {len(found.drafts)} drafts"
        yield faster(what, ours, whole, f"plain loop, timed on {sample} reports and scaled", "≥ 20")
    yield share(f"{what}: extra memory, MB", peak_memory(index, found), 300, "300 MB", "≤ 1")


def case(patients: int, reports: int, drafts: int, *, quick: bool) -> Case:
    """Simulate; hashed sentences where it is quick, else random unit vectors: little to prune by."""
    settings = SimulationSettings(patients=patients)
    train = map(transition_from_record, simulate_transitions(settings, "train"))
    queries = map(query_from_record, simulate_queries(settings))
    written = [split_sentences(made.current.findings) for made in train]
    generated = [split_sentences(draft.findings) for query in queries for draft in query.candidates]
    bank = [sentences for sentences in written if sentences][:reports]
    asked = [sentences for sentences in generated if sentences][:drafts]
    texts = sorted({text for sentences in (*bank, *asked) for text in sentences})
    rows = {text: row for row, text in enumerate(texts)}
    vectors = (
        load_encoder("hashing").encode(texts) if quick else unit(np.random.default_rng(0), len(texts), 384)
    )
    sets = (RaggedSets.of([[rows[text] for text in one] for one in many]) for many in (bank, asked))
    return Case(vectors, *sets)


def chamfer(cost: np.ndarray) -> float:
    """As one would write it."""
    return 0.5 * (cost.min(axis=1).mean() + cost.min(axis=0).mean())


def transport(cost: np.ndarray) -> float:
    """By POT's front door."""
    n, m = cost.shape
    return ot.emd2(np.full(n, 1 / n), np.full(m, 1 / m), cost)


def hungarian(cost: np.ndarray) -> float:
    """By scipy; half for each sentence left over."""
    n, m = cost.shape
    return (cost[linear_sum_assignment(cost)].sum() + 0.5 * abs(n - m)) / max(n, m)


LOOPS = {"chamfer": chamfer, "transport": transport, "hungarian": hungarian}


def plain_loop(measure: Callable[[np.ndarray], float], found: Case, reports: int) -> np.ndarray:
    """Measure each draft against each of the first reports, one by one, and sort."""
    count = min(reports, len(found.bank))
    distances = np.empty((len(found.drafts), count))
    for i in range(len(found.drafts)):
        draft = found.vectors[found.drafts[i]].astype(float)
        for j in range(count):
            distances[i, j] = measure(0.5 * (1.0 - draft @ found.vectors[found.bank[j]].T))
    return np.sort(distances, axis=1)[:, :K]


def check(index: SetIndex, measure: Callable[[np.ndarray], float], found: Case) -> None:
    """Both ways must give the same distances."""
    expected = plain_loop(measure, found, len(found.bank))
    np.testing.assert_allclose(index.search(found.vectors, found.drafts, K).distances, expected, atol=1e-6)


def peak_memory(index: SetIndex, found: Case) -> float:
    """The most memory that a search holds at once, results included."""
    tracemalloc.start()
    try:
        index.search(found.vectors, found.drafts, K)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
