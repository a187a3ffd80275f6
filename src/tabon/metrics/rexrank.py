"""ReXrank's columns that need no judge model: BLEU-2, BERTScore, SembScore, RadGraph and RadCliQ-v1.

Settings and coefficients are those of the leaderboard's programs (docs/decisions/rexrank.md). RadCliQ-v1 is
a distance, less is better; its score here has the sign turned, so that higher is better as everywhere.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabon.errors import MetricUnavailableError
from tabon.metrics import chexbert
from tabon.metrics.bertscore import FILES as BERT_FILES
from tabon.metrics.bertscore import WEIGHTS, BertScore, Recipe
from tabon.metrics.models.bert import digest, find_folder
from tabon.metrics.models.dygie import FILES as RADGRAPH_FILES
from tabon.metrics.models.dygie import Graph, load_dygie
from tabon.metrics.protocol import Counts, Metric, Pair, Score, Statistics, Values, divided, mean_of
from tabon.metrics.radgraph import USUAL_FOLDER, RadGraph, entities, f1, relations

REPOSITORY = "distilbert/distilroberta-base"
REVISION = "fb53ab8802853c8e4fbdbcd0529f21fc6f459b2b"
BASELINE = (
    0.84732,
    0.84759504,
    0.8473319,
)  # bert-score 0.3.13: rescale_baseline/en/distilroberta-base.tsv, 5
RECIPE = Recipe(layer=5, baseline=BASELINE)
KIND = "radgraph"  # the model that RadCliQ was fitted with, not radgraph-xl
BERTSCORE, CHEXBERT, RADGRAPH = "distilroberta-base", "chexbert", KIND  # folders in a folder of one's own
EPSILON = 0.1  # matches that fast-bleu counts where no bigram matches

# RadCliQ-v1 of CXR-Report-Metric, as RadEval writes it out: a linear model of standardised columns
COLUMNS = ("radgraph", "bertscore", "semb", "bleu2")
MEANS = (0.53792312, 0.61757256, 0.76479421, 0.44738335)
SCALES = (0.30282584, 0.22430938, 0.25394391, 0.29892717)
WEIGHTS_V1 = (-3.77083683e-01, -3.70300100e-01, -2.52616218e-01, 4.31504841e-12)
INTERCEPT = 2.46655256e-10


def words(text: str) -> list[str]:
    """Return the words as ReXrank cuts them: lower case, at blanks alone, a full stop apart.

    >>> words("Lungs  clear. 2.5 cm (left)")
    ['lungs', 'clear', '.', '2', '.5', 'cm', '(left)']
    """
    return [word for word in text.lower().replace(".", " .").split(" ") if word]


def bleu2(reference: str, candidate: str) -> float:
    """Return BLEU of words and bigrams, equal weights, as fast-bleu does; 0 if no word is shared.

    >>> round(bleu2("the lungs are clear", "the lungs are dark"), 4)
    0.7071
    """
    theirs, ours = words(reference), words(candidate)
    (shared, total), (pairs, of_pairs) = (
        (sum((Counter(one) & Counter(other)).values()), max(1, len(one)))
        for one, other in ((ours, theirs), (list(pairwise(ours)), list(pairwise(theirs))))
    )
    if not shared:
        return 0.0
    brevity = min(1.0, float(np.exp(1 - len(theirs) / len(ours))))
    return brevity * float(np.sqrt(shared / total * (pairs or EPSILON) / of_pairs))


def radcliq(columns: NDArray[np.float64]) -> Values:
    """Return RadCliQ-v1, a distance, of rows (..., 4) in the order of COLUMNS.

    >>> radcliq(np.array([MEANS, (1, 1, 1, 1)])).round(4).tolist()  # an average draft, a perfect one
    [0.0, -1.4407]
    """
    standardised = (columns - np.array(MEANS)) / np.array(SCALES)
    distance: Values = (standardised * np.array(WEIGHTS_V1)).sum(axis=-1) + INTERCEPT
    return distance


def _radcliq_turned(sums: Statistics, counts: Counts) -> Values:
    """Return the mean of -RadCliQ-v1, which is that of the mean columns, since the model is linear."""
    return -radcliq(divided(sums[..., : len(COLUMNS)], np.asarray(counts)[..., None]))


class Bleu2:
    """BLEU-2 alone, which needs no model."""

    name = "rexrank-bleu2"
    signature = f"{name}|tokens:blanks|case:lower|smooth:{EPSILON}|like:fast-bleu-0.0.90"
    statistics = ("bleu2",)
    scores = (Score("rexrank-bleu2", mean_of(0)),)

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return the BLEU-2 of each pair, (pairs, 1)."""
        rows = [bleu2(pair.reference, pair.candidate) for pair in pairs]
        return np.array(rows, dtype=np.float64).reshape(-1, 1)


class Rexrank:
    """The columns that need models, and RadCliQ-v1 of all of them; each model reads a text once."""

    name = "rexrank"
    statistics = COLUMNS
    scores = (
        Score("rexrank-radgraph", mean_of(0)),
        Score("rexrank-bertscore", mean_of(1)),
        Score("rexrank-semb", mean_of(2)),
        Score("rexrank-minus-radcliq", _radcliq_turned),
    )

    def __init__(self, bertscore: BertScore, labeller: chexbert.CheXbert, radgraph: RadGraph) -> None:
        """Put the metric together from its loaded models."""
        self._bertscore, self._labeller, self._radgraph = bertscore, labeller, radgraph
        signatures = zip(COLUMNS, (m.signature for m in (radgraph, bertscore, labeller)), strict=False)
        parts = [f"{part}.{field}" for part, own in signatures for field in own.split("|")[1:]]
        self.signature = "|".join((self.name, "radcliq:v1", "sign:turned", *parts))

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return the columns of each pair, (pairs, 4)."""
        spaced = [
            Pair(reference=_single_blanks(pair.reference), candidate=_single_blanks(pair.candidate))
            for pair in pairs
        ]
        columns = (
            self._facts_shared(pairs),
            self._bertscore.measure(spaced)[:, 2],
            semb_score(self._labeller, pairs),
            Bleu2().measure(pairs)[:, 0],
        )
        return np.column_stack(columns)

    def _facts_shared(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the mean of entity F1 and relation F1 of each pair; each distinct text is read once."""
        texts = {text.lower() for pair in pairs for text in (pair.reference, pair.candidate)}
        graphs: Mapping[str, Graph] = {
            text: self._radgraph.model.graph(text) for text in sorted(texts) if text
        }
        couples = [[graphs.get(t.lower(), ()) for t in (pair.reference, pair.candidate)] for pair in pairs]
        return [
            (f1(entities(theirs), entities(ours)) + f1(relations(theirs), relations(ours))) / 2
            for theirs, ours in couples
        ]


def semb_score(labeller: chexbert.CheXbert, pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """Return the cosine of CheXbert's vectors of each pair's texts; each distinct text is read once."""
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.reference, pair.candidate)))
    vectors = labeller.embed(texts).astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    row = {text: place for place, text in enumerate(texts)}
    theirs, ours = [row[pair.reference] for pair in pairs], [row[pair.candidate] for pair in pairs]
    cosines: NDArray[np.float64] = (unit[theirs] * unit[ours]).sum(axis=1)
    return cosines


def _single_blanks(text: str) -> str:
    """Return a text as ReXrank hands it to BERTScore: runs of blanks are one."""
    return re.sub(" +", " ", text)


def load_bleu2(_model: Path | None = None) -> Metric:
    """Return BLEU-2; it needs no files."""
    return Bleu2()


def load(model: Path | None) -> Rexrank:
    """Load the three models from a folder that holds a folder for each, or from where each usually is.

    Raises:
        MetricUnavailableError: a file is missing, or RadGraph is not the one that RadCliQ was fitted with.
    """
    bert, (weights, backbone), graphs = find_files(model)
    bertscore = BertScore(bert, named=REPOSITORY, recipe=RECIPE)
    radgraph = RadGraph(model=load_dygie(graphs), weights=digest(graphs / RADGRAPH_FILES[0]))
    if radgraph.model.heads.kind != KIND:
        raise MetricUnavailableError(
            "rexrank",
            f"{graphs} holds {radgraph.model.heads.kind}, RadCliQ was fitted with {KIND}",
            f"put {KIND} there",
        )
    return Rexrank(bertscore, chexbert.CheXbert(weights, backbone), radgraph)


def find_files(model: Path | None) -> tuple[Path, tuple[Path, Path], Path]:
    """Return the folders of DistilRoBERTa and of RadGraph, between them CheXbert's weights and backbone."""
    inside: dict[str, Path | None] = {
        name: None if model is None else model / name for name in (BERTSCORE, CHEXBERT, RADGRAPH)
    }
    files = BERT_FILES if model is None else (WEIGHTS, "config.json")
    bert = find_folder("rexrank", REPOSITORY, files, revision=REVISION, model=inside[BERTSCORE])
    labeller = chexbert.find_files(inside[CHEXBERT], metric="rexrank")
    graphs = inside[RADGRAPH] or Path.home() / USUAL_FOLDER.parent / KIND
    if model is None and not graphs.is_dir():
        raise MetricUnavailableError(
            "rexrank",
            f"there is no {graphs}",
            f"fetch it with: hf download {chexbert.REPOSITORY} {KIND}.tar.gz, and unpack it there",
        )
    find_folder("rexrank", chexbert.REPOSITORY, RADGRAPH_FILES, revision=None, model=graphs)
    return bert, labeller, graphs
