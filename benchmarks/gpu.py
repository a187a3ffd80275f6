"""What a GPU does: `python benchmarks/gpu.py --model FOLDER [--sentences FILE] [--quick]`.

FOLDER holds the paper's encoder, with or without its weights; without them they
are drawn at random (seed 0), which measures speed, never quality. FILE holds one
sentence a line, as often as they occur; the distinct ones that are measured have
their lengths and their words, drawn at random. Without a GPU everything runs on the processor,
small, to show that it agrees.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import torch

from tabon.encoders.protocol import Placement
from tabon.encoders.torch_engine.encoder import SentenceTransformerEncoder
from tabon.method.bank import TransitionBank
from tabon.method.distances import DISTANCES
from tabon.method.nearest import AGGREGATES, ExactIndex, SectionBank, aggregate_distances, bank_neighbours
from tabon.method.sentence_sets import embed
from tabon.method.transitions import Transitions
from tabon.search import open_search
from tabon.search.cuda import TorchIndex
from tabon.selectors import Selector
from tabon.text.records import Query, Transition
from tabon.text.reports import SECTIONS, Report
from timing import Line, faster

DRAFTS, K = 5, 10


def with_weights(folder: Path, out: Path) -> Path:
    """Return a model folder that has weights: random ones, seed 0, where it had none."""
    if list(folder.rglob("*.safetensors")):
        return folder
    from transformers import MPNetConfig, MPNetModel

    shutil.copytree(folder, out)
    torch.manual_seed(0)
    MPNetModel(MPNetConfig.from_pretrained(out)).save_pretrained(out)
    return out


def distinct_sentences(file: Path | None, count: int) -> list[str]:
    """Return so many distinct sentences with the lengths and the words of real ones."""
    if file is None:
        from openi_text import sentence_lists

        real = [sentence for sentences in sentence_lists() for sentence in sentences]
    else:
        real = file.read_text(encoding="utf-8").splitlines()
    rng, found = random.Random(0), dict.fromkeys(real)  # noqa: S311
    words = [word for sentence in real for word in sentence.split()]
    while len(found) < count:
        found.setdefault(" ".join(rng.choices(words, k=len(rng.choice(real).split()))))
    return list(found)[:count]


def encoding_lines(model: Path, sentences: list[str], device: str) -> Iterator[Line]:
    """Sentences a second, from text to rows in memory, against sentence-transformers as it comes."""
    precision = "float16" if device == "cuda" else "float32"
    encoder = SentenceTransformerEncoder(
        model, name="mpnet", revision="", placement=Placement(device, precision)
    )
    library = encoder._model  # noqa: SLF001  # the very same model, asked the usual way
    embed(sentences[:: max(1, len(sentences) // 20_000)], encoder)  # warm
    ours = min(_seconds(lambda: embed(sentences, encoder)) for _ in range(3))
    some = sentences[:20_000]
    library.to(device)
    library.encode(some[:2000], show_progress_bar=False)
    theirs = _seconds(lambda: library.encode(some, show_progress_bar=False)) * len(sentences) / len(some)
    both = np.einsum("nd,nd->n", encoder.encode(some), library.encode(some, normalize_embeddings=True))
    lengths = [len(ids) for ids in library.tokenizer(some)["input_ids"]]
    print(f"{np.mean(lengths):.1f} tokens a sentence")
    print(f"worst cosine to float32 {both.min():.6f}; {encoder.fingerprint.precision}")
    print(f"{len(sentences) / ours:,.0f} sentences/s; sentence-transformers {len(sentences) / theirs:,.0f}/s")
    what = f"{len(sentences):,} distinct sentences, MPNet, {precision}, from text"
    yield faster(what, ours, len(sentences) / 100_000, "100,000 sentences/s", "≥ 1")
    yield faster(what, ours, theirs, "sentence-transformers' encode, float32, same device", "—")


def clustered(rng: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    """Unit rows around some hundreds of directions, a few of them equal."""
    centres = rng.standard_normal((400, dimension)).astype(np.float32)
    rows = centres[rng.integers(0, 400, count)]
    rows += 0.7 * rng.standard_normal((count, dimension), dtype=np.float32)
    rows[: count // 50] = rows[-(count // 50) :]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def scored(queries: np.ndarray, bank: SectionBank) -> dict[str, np.ndarray]:
    """Distances of all drafts to a bank, both aggregations from one search."""
    moves = Transitions(queries, np.zeros(len(queries), dtype=bool))
    found = bank_neighbours(moves, bank, K, "neutral")
    return {name: aggregate_distances(found.distances, name) for name in AGGREGATES}


def scoring_lines(sizes: tuple[int, int, int], device: str) -> Iterator[Line]:
    """Paper-scale scoring, all eight methods, and the picks beside the processor's."""
    count, size, dimension = sizes
    rng = np.random.default_rng(0)
    ours = theirs = 0.0
    for number in range(len(DISTANCES)):
        queries, rows = clustered(rng, count, dimension), clustered(rng, size, dimension)
        every, none = np.arange(size), np.arange(0)
        fast = SectionBank(TorchIndex(rows, device), every, none)
        slow = SectionBank(ExactIndex(rows), every, none)
        if number == 0:
            scored(queries[:2000], fast)  # warm
        start = perf_counter()
        found = scored(queries, fast)
        ours += perf_counter() - start
        start = perf_counter()
        wanted = scored(queries, slow)
        theirs += perf_counter() - start
        for name in AGGREGATES:
            np.testing.assert_array_equal(found[name], wanted[name])
            picks = [each[name].reshape(-1, DRAFTS).argmin(axis=1) for each in (found, wanted)]
            np.testing.assert_array_equal(*picks)
    what = (
        f"{2 * len(DISTANCES)} methods, {count:,} drafts × {size:,} × {dimension}, same picks and distances"
    )
    yield faster(what, ours, 0.8, "0.8 s", "≥ 1")
    yield faster(what, ours, theirs, "the processor of the same machine", "—")


def written_reports(sentences: list[str], count: int, *, new: float = 0.5) -> list[Report]:
    """Return reports of these sentences as often as they occur, and of new ones of the same words."""
    rng = random.Random(0)  # noqa: S311
    words = [word for sentence in sentences for word in sentence.split()]

    def section(most: int) -> str:
        drawn = rng.choices(sentences, k=rng.randint(1, most))
        made = (
            " ".join(rng.choices(words, k=len(one.split()))) + "." if rng.random() < new else one
            for one in drawn
        )
        return " ".join(made)

    return [Report(findings=section(10), impression=section(4)) for _ in range(count)]


def paper_lines(model: Path, sentences: list[str], device: str, *, quick: bool) -> Iterator[Line]:
    """The whole paper from text: the bank, the drafts, four distances, both sections, eight methods."""
    transitions, queries, drafts = (60, 3, 4) if quick else (22_745, 1_727, 90)
    written = iter(written_reports(sentences, 2 * transitions + queries * (1 + drafts)))
    moves = [
        Transition(prior=next(written), current=next(written), patient=f"t{n}") for n in range(transitions)
    ]
    asked = [
        Query(prior=next(written), candidates=[next(written) for _ in range(drafts)], patient=f"q{n}")
        for n in range(queries)
    ]
    placement = Placement(device, "float16" if device == "cuda" else "float32")
    encoder = SentenceTransformerEncoder(model, name="mpnet", revision="", placement=placement)
    encoder.encode(sentences[:2000])  # warm
    start = [perf_counter()]
    bank = TransitionBank.build(moves, encoder=encoder)
    if device == "cuda":
        bank = bank.with_search(open_search("cuda"))
    start.append(perf_counter())
    batch = Selector(bank, encoder=encoder).batch(asked)
    start.append(perf_counter())
    pairs = [(section, name) for section in SECTIONS for name in DISTANCES]
    found = {pair: batch.transitions(pair[0], batch.comparable(pair[0]), pair[1]) for pair in pairs}
    start.append(perf_counter())
    ready = {pair: bank.section(*pair) for pair in pairs}
    start.append(perf_counter())
    for pair in pairs:
        near = bank_neighbours(found[pair], ready[pair], K, "match")
        for name in AGGREGATES:
            aggregate_distances(near.distances, name)
    start.append(perf_counter())
    names = ("bank from text", "drafts from text", "drafts' transitions", "bank's transitions", "scoring")
    print(
        ", ".join(
            f"{name} {after - before:.2f} s"
            for name, (before, after) in zip(names, pairwise(start), strict=True)
        )
    )
    distinct = len(bank.table.sentences) + len(set(batch.table.sentences) - set(bank.table.sentences))
    what = (
        f"the whole paper from text: {transitions:,} transitions, {queries * drafts:,} drafts, "
        f"{distinct:,} distinct sentences, both sections, eight methods"
    )
    yield faster(what, start[-1] - start[0], 60.0, "a minute", "—")


def _seconds(work: object) -> float:
    """Time one run."""
    start = perf_counter()
    work()  # type: ignore[operator]
    return perf_counter() - start


def main() -> None:
    """Measure encoding and scoring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--sentences", type=Path)
    parser.add_argument("--count", type=int, default=400_000)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        model = with_weights(arguments.model, Path(folder) / "model")
        sentences = distinct_sentences(arguments.sentences, 200 if arguments.quick else arguments.count)
        print("| what | ours | other | against | ratio | goal |\n|---|---|---|---|---|---|")
        sizes = (500, 1000, 64) if arguments.quick else (155_430, 22_745, 768)
        drawn = (
            sentences if arguments.sentences is None else arguments.sentences.read_text("utf-8").splitlines()
        )
        for line in chain(
            scoring_lines(sizes, device),
            encoding_lines(model, sentences, device),
            paper_lines(model, drawn, device, quick=arguments.quick),
        ):
            print(line, flush=True)
    name = torch.cuda.get_device_name() if device == "cuda" else "no GPU"
    print(f"\n{name}, torch {torch.__version__}, numpy {np.__version__}")


if __name__ == "__main__":
    main()
