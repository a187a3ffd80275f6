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
from pathlib import Path
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import torch

from tabon.encoders.protocol import Placement
from tabon.encoders.torch_engine.encoder import SentenceTransformerEncoder
from tabon.method.bank import SectionBank
from tabon.method.nearest import ExactIndex
from tabon.method.scoring import AGGREGATES, aggregate_distances, bank_neighbours
from tabon.method.sentence_sets import embed
from tabon.method.transitions import Transitions
from tabon.search.cuda import TorchIndex
from timing import Line, faster

DRAFTS, K, DISTANCES = 5, 10, 4


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
    yield faster(what, ours, len(sentences) / 60_000, "60,000 sentences/s", "≥ 1")
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
    for number in range(DISTANCES):
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
        f"{2 * DISTANCES} methods, {count:,} drafts × {size:,} × {dimension}, picks and distances identical"
    )
    yield faster(what, ours, 3.0, "3 s", "≥ 1")
    yield faster(what, ours, theirs, "the processor of the same machine", "—")


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
        for line in (*scoring_lines(sizes, device), *encoding_lines(model, sentences, device)):
            print(line, flush=True)
    name = torch.cuda.get_device_name() if device == "cuda" else "no GPU"
    print(f"\n{name}, torch {torch.__version__}, numpy {np.__version__}")


if __name__ == "__main__":
    main()
