"""RadGraph F1: do draft and reference name the same entities, and relate them in the same way.

A reward is the F1 of two sets drawn from the graphs of two lower-cased reports: three sets of the
package `radgraph` 0.1.18, two of RadEval's `radgraph_radcliq` (docs/decisions/radgraph.md).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from tabon.errors import MetricUnavailableError
from tabon.metrics.models.bert import digest, find_folder
from tabon.metrics.models.dygie import FILES, KINDS, Dygie, Entity, Graph, load_dygie
from tabon.metrics.protocol import Pair, Score, Statistics, mean_of

RULES = "radgraph-0.1.18"  # the package whose words, decoding and rewards these are
REPOSITORY, REVISION = "StanfordAIMI/RRG_scorers", "6646433b3ad83a10f6e141db76d0ece44312b236"
ARCHIVE = f"{KINDS[0]}.tar.gz"
ARCHIVE_SHA256 = (
    "fadb5a3454e8996714b609e3105a07e447fa61aa88fffe966b650959475117b6"  # its files have no known sum
)
USUAL_FOLDER = Path(".cache", "radgraph", "0.1.18", KINDS[0])  # where `radgraph` unpacks its default model
STATISTICS = ("entity", "entity-relation", "bar", "averaged", "averaged-radcliq")

Facts = AbstractSet[tuple[str | bool, ...]]


@dataclass(frozen=True, slots=True)
class RadGraph:
    """The metric over a loaded model."""

    model: Dygie
    weights: str  # the first digits of the sha256 of weights.th
    name: str = "radgraph"
    statistics: tuple[str, ...] = STATISTICS

    @property
    def signature(self) -> str:
        """Return the model, the rules, and the versions that compute it."""
        parts = {
            "model": self.model.heads.kind,
            "rules": RULES,
            "case": "lower",
            "empty": "0",
            "weights": self.weights,
            "backbone": Path(self.model.heads.settings.backbone).name,
            "transformers": version("transformers"),
            "torch": version("torch"),
        }
        return "|".join([self.name, *(f"{part}:{value}" for part, value in parts.items())])

    @property
    def scores(self) -> tuple[Score, ...]:
        """Return the five F1s, each a mean over drafts."""
        return tuple(Score(f"radgraph-{name}", mean_of(i)) for i, name in enumerate(self.statistics))

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return the F1s of each pair; a text of several pairs is read once."""
        texts = {text.lower() for pair in pairs for text in (pair.reference, pair.candidate)}
        graphs: Mapping[str, Graph] = {text: self.model.graph(text) for text in sorted(texts) if text}
        rows = [
            pair_f1(graphs.get(pair.reference.lower(), ()), graphs.get(pair.candidate.lower(), ()))
            for pair in pairs
        ]
        return np.array(rows, dtype=np.float64).reshape(len(pairs), len(STATISTICS))


def load(model: Path | None) -> RadGraph:
    """Load a model folder; without one, radgraph-xl where the package `radgraph` unpacks it.

    Raises:
        MetricUnavailableError: a file of the model is missing.
        BadInputError: a file of the model is damaged.
    """
    folder = find_model(model)
    return RadGraph(model=load_dygie(folder), weights=digest(folder / "weights.th"))


def find_model(model: Path | None) -> Path:
    """Return the folder with the model's files, without reading them."""
    usual = Path.home() / USUAL_FOLDER
    if model is None and not usual.is_dir():
        raise MetricUnavailableError(
            "radgraph",
            f"no model was named and there is no {usual}",
            f"fetch {KINDS[0]} with: hf download {REPOSITORY} {ARCHIVE} --revision {REVISION}, check that "
            f"its sha256 is {ARCHIVE_SHA256}, unpack it and name the folder: --metric-files radgraph=FOLDER",
        )
    return find_folder("radgraph", REPOSITORY, FILES, revision=None, model=model or usual)


def pair_f1(reference: Graph, candidate: Graph) -> tuple[float, ...]:
    """Return the F1s of two graphs in the order of `STATISTICS`.

    >>> lungs, clear = Entity("lungs", "ANAT-DP", 0, 0), Entity("clear", "OBS-DP", 1, 1)
    >>> [round(value, 3) for value in pair_f1((lungs, clear), (lungs,))]
    [0.667, 0.667, 0.667, 0.667, 0.333]
    """
    entity = f1(entities(reference), entities(candidate))
    flagged = f1(entities_with_flag(reference), entities_with_flag(candidate))
    complete = f1(entities_or_relations(reference), entities_or_relations(candidate))
    relation = f1(relations(reference), relations(candidate))
    averaged = (entity + flagged + complete) / 3
    return entity, flagged, complete, averaged, (entity + relation) / 2


def f1(reference: Facts, candidate: Facts) -> float:
    """Return the harmonic mean of precision and recall of two sets; 0 if they share nothing.

    >>> f1({("lungs",), ("heart",)}, {("lungs",), ("rib",)}), f1(set(), set())
    (0.5, 0.0)
    """
    shared = len(reference & candidate)
    return 2 * shared / (len(reference) + len(candidate)) if shared else 0.0


def entities(graph: Graph) -> Facts:
    """Return the set of (tokens, label)."""
    return {_fact(entity) for entity in graph}


def entities_with_flag(graph: Graph) -> Facts:
    """Return the set of (tokens, label), with a mark on those that a relation leaves."""
    return {(*_fact(entity), True) if entity.relations else _fact(entity) for entity in graph}


def entities_or_relations(graph: Graph) -> Facts:
    """Return (tokens, label) of entities that no relation leaves, and each relation with its target."""
    alone = {_fact(entity) for entity in graph if not entity.relations}
    related = {
        (*_fact(entity), relation.label, graph[relation.target].tokens.lower())
        for entity in graph
        for relation in entity.relations
    }
    return alone | related


def relations(graph: Graph) -> Facts:
    """Return the set of (tokens, label, relation, tokens of the target, label of the target)."""
    return {
        (*_fact(entity), relation.label, *_fact(graph[relation.target]))
        for entity in graph
        for relation in entity.relations
    }


def _fact(entity: Entity) -> tuple[str, str]:
    """Return what two reports must share for an entity to count."""
    return entity.tokens.lower(), entity.label
