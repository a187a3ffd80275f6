"""A bank of 10⁷ transitions on one machine: memory to build it, time to search it, recall of its cells.

Writing and splitting 10⁷ reports would take hours, so some ten thousand simulated
transitions are recombined: a true pair of states (before, after), each told by
another report of the same state. Some come out alike: 11.5 million transitions give
over 10⁷ distinct directions. The sentences are MiniLM's; the drafts that ask
are of patients whom the bank has not seen.
"""

import json
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tabon import TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.method.bank import build_bank_file
from tabon.method.bank_arrays import ROWS_AT_ONCE
from tabon.method.distances import get_distance
from tabon.method.nearest import Neighbours
from tabon.method.sentence_sets import RaggedSets, embed
from tabon.method.transitions import transitions
from tabon.search.half_index import Copies, HalfIndex
from tabon.search.index_build import Block, write_index
from tabon.search.index_files import index_from, read_index
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.sentences import split_sentences
from timing import Line, best_of, faster, share

SECTION, DISTANCE, K = "findings", "novelty", 10
BOUND_MB = 1500  # of memory that is no file's: the float16 matrix alone takes 7,680
DRAFTS, REPETITIONS, TIMED = 5, 3, 20
# patients, transitions, queries; what makes an index was chosen on earlier queries
QUICK, FULL = (600, 20_000, slice(20)), (38_000, 11_500_000, slice(140, 240))


def settings(patients: int) -> SimulationSettings:
    """The cohort; its test patients ask."""
    return SimulationSettings(patients=patients, num_candidates=DRAFTS)


def small_bank(folder: Path, patients: int, encoder: str) -> TransitionBank:
    """The bank of the simulated transitions, with the states of each row; made once in a folder."""
    path, store = folder / "small.tabon", SentenceStore(folder / "sentences.sqlite")
    if not path.exists():
        records = simulate_transitions(settings(patients), "train")
        build_bank_file(map(transition_from_record, records), path, encoder=encoder, store=store)
    return TransitionBank.load(path)


class Recombined:
    """Pairs of states from the bank, each side told by any report of its state."""

    def __init__(self, bank: TransitionBank) -> None:
        """Sort the wordings of a section by state."""
        pairs, self._vectors = bank.pairs[SECTION], bank.table.vectors
        self._sets = _joined(pairs.prior, pairs.current)
        states = [row["state"] for row in bank.provenance]
        keys = [json.dumps(state[side], sort_keys=True) for side in ("prior", "current") for state in states]
        number: dict[str, int] = {}
        group = np.array([number.setdefault(key, len(number)) for key in keys])
        told = self._once(group)
        self._reports = told[np.argsort(group[told], kind="stable")]
        self._starts = np.searchsorted(group[self._reports], np.arange(len(number) + 1))
        states_of = group.reshape(2, -1)[:, pairs.present()]
        self._states, self._counts = np.unique(states_of, axis=1, return_counts=True)

    def _once(self, group: np.ndarray) -> np.ndarray:
        """Reports with the section, each wording of a state once."""
        seen: dict[tuple[int, bytes], int] = {}
        for report in np.flatnonzero(self._sets.lengths > 0).tolist():
            seen.setdefault((int(group[report]), self._sets[report].tobytes()), report)
        return np.array(list(seen.values()))

    def blocks(self, count: int) -> Iterator[Block]:
        """Yield so many transitions, drawn with one seed."""
        rng = np.random.default_rng(0)
        upto = np.cumsum(self._weights(count))
        for start in range(0, count, ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, count))
            states = self._states[:, np.searchsorted(upto, rng.random(len(rows)) * upto[-1], side="right")]
            prior, current = (self._sets.take(self._drawn(rng, side)) for side in states)
            [moves] = transitions([get_distance(DISTANCE)], self._vectors, prior=prior, current=current)
            yield Block(rows, moves)

    def _weights(self, count: int) -> np.ndarray:
        """How often each pair of states is drawn: as often as it occurs, but a rare one not over and over.

        A pair can be told in so many ways; it is drawn a quarter as often at most.
        """
        ways = np.prod(np.diff(self._starts)[self._states], axis=0) / 4
        low, high = 0.0, float(count)
        for _ in range(60):
            middle = (low + high) / 2
            enough = np.minimum(middle * self._counts, ways).sum() >= count
            low, high = (low, middle) if enough else (middle, high)
        return np.minimum(high * self._counts, ways)

    def _drawn(self, rng: np.random.Generator, states: np.ndarray) -> np.ndarray:
        """One report of each state."""
        sizes = self._starts[states + 1] - self._starts[states]
        return self._reports[self._starts[states] + rng.integers(sizes)]


def _joined(prior: RaggedSets, current: RaggedSets) -> RaggedSets:
    """All prior reports, and then all current ones."""
    ids = np.concatenate([prior.ids, current.ids])
    return RaggedSets(ids, np.concatenate([prior.offsets, prior.offsets[-1] + current.offsets[1:]]))


def build(folder: Path, count: int, ivf_from: float) -> None:
    """Write the index of so many transitions, and print the most memory that was no file's, in MB."""
    bank = TransitionBank.load(folder / "small.tabon")
    before, stop, peak = anonymous_mb(), threading.Event(), [0.0]

    def watch() -> None:
        while not stop.wait(0.05):
            peak[0] = max(peak[0], anonymous_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        facts = {"bank": bank.sha256, "section": SECTION, "distance": DISTANCE}
        blocks, dimension = Recombined(bank).blocks(count), bank.table.vectors.shape[1]
        write_index(folder / "large.tabonix", blocks, dimension=dimension, facts=facts, ivf_from=ivf_from)
    finally:
        stop.set()
        watcher.join()
    print(json.dumps({"peak": max(peak[0], before), "before": before, "rss": _max_rss_mb()}))


def anonymous_mb() -> float:
    """Memory of this process that is not a file's pages, in MB."""
    [line] = [
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon")
    ]
    return int(line.split()[1]) / 1e3


def _max_rss_mb() -> float:
    """The most resident memory so far, mapped files included, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def unseen_drafts(
    bank: TransitionBank, folder: Path, patients: int, asked: slice, encoder: str
) -> list[np.ndarray]:
    """The directions of the drafts of some test queries, one array a query."""
    records = (query_from_record(record) for record in simulate_queries(settings(patients), "test"))
    found: list[np.ndarray] = []
    loaded, store = load_encoder(encoder), SentenceStore(folder / "sentences.sqlite")
    for query in records:
        prior = split_sentences(query.prior.section(SECTION))
        drafts = [split_sentences(draft.section(SECTION)) for draft in query.candidates]
        if not prior or not all(drafts):
            continue
        table = embed(
            {*prior, *(one for draft in drafts for one in draft)},
            loaded,
            known=bank.known_sentences,
            store=store,
        )
        sides = {"prior": table.rows_of([prior] * len(drafts)), "current": table.rows_of(drafts)}
        [moves] = transitions([get_distance(DISTANCE)], table.vectors, **sides)
        if not moves.zero.any():
            found.append(moves.directions)
        if len(found) == asked.stop:
            break
    return found[asked]


def copied(piece: np.ndarray, target: np.ndarray) -> None:
    """Copy an array with two threads."""
    half = len(piece) // 2
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(np.copyto, [target[:half], target[half:]], [piece[:half], piece[half:]]))


def recall_at_k(found: Neighbours, exact: Neighbours) -> float:
    """The share of the k nearest that were found; a row as near as the k-th counts."""
    return float((found.distances <= exact.distances[:, -1:]).mean())


def large_bank_lines(*, quick: bool, folder: Path | None = None) -> Iterator[Line]:
    """Memory, exact time and indexed time of a bank of 10⁷ transitions; needs 16 GB of disk."""
    if folder is None:
        with TemporaryDirectory() as scratch:
            yield from large_bank_lines(quick=quick, folder=Path(scratch))
        return
    patients, count, asked = QUICK if quick else FULL
    encoder = "hashing" if quick else "minilm"
    bank = small_bank(folder, patients, encoder)
    command = [sys.executable, __file__, folder, str(count), "0" if quick else "1000000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    drafts = unseen_drafts(bank, folder, patients, asked, encoder)
    yield from search_lines(folder / "large.tabonix", drafts)
    measured = json.loads(done.stdout)
    what = f"build of {count} transitions: memory that is no file's, MB"
    yield share(what, measured["peak"], BOUND_MB, f"{BOUND_MB} MB", "≤ 1")


def search_lines(path: Path, drafts: list[np.ndarray]) -> Iterator[Line]:
    """Exact search against copying the matrix once, and indexed search against exact search."""
    file = read_index(path, verify=False)
    exact, indexed = (index_from(file, use_cells=use_cells) for use_cells in (False, True))
    rows = file.arrays["directions"]
    piece = np.array(rows[: min(len(rows), 1_000_000)])
    target = np.ones_like(piece)
    many = np.concatenate(drafts)
    recall = recall_at_k(indexed.search(many, K), exact.search(many, K))
    plain = HalfIndex(rows, Copies(file.arrays["copies"], file.arrays["starts"]))
    some = drafts[:TIMED]
    times = best_of(
        REPETITIONS,
        lambda: [exact.search(one, K) for one in some],
        lambda: [plain.search(one, K) for one in some],
        lambda: [indexed.search(one, K) for one in some],
        lambda: copied(piece, target),
    )
    ours, whole, by_cells = (time / len(some) for time in times[:3])
    copy = times[3] * len(rows) / len(piece)
    size = f"{len(rows)} × {rows.shape[1]} float16"
    what = f"top-{K} of {DRAFTS} drafts, {size}"
    speed = f"copying it once, {rows.nbytes / copy / 1e9:.1f} GB/s with 2 threads"
    yield share(f"{what}, exact", ours, copy, speed, "≤ 2")
    ivf = file.facts["ivf"]
    told = f"recall@{K} {recall:.4f} on {len(many)} unseen drafts (goal ≥ 0.99)"
    looked = np.mean([len(cells) for cells in indexed.cells.nearest(many, K)])
    cells = f"{looked:.0f} of {ivf['cells']} cells in the mean, {told}"
    yield faster(f"{what}, {cells}", by_cells, ours, "the exact search", "≥ 20")
    yield faster(f"{what}, {cells}", by_cells, whole, "FAISS over all float16 rows", "≥ 20")


if __name__ == "__main__":
    build(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
