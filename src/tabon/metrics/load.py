"""Metrics by name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

from tabon._internal.registry import lookup, names_of
from tabon.errors import MetricUnavailableError, MissingExtraError, UnknownNameError
from tabon.metrics.protocol import Metric, Score

GROUP = "tabon.metrics"  # the entry points of other packages' metrics
# name: a function (model: Path | None) -> Metric; `model` is the folder that holds what must be fetched
METRICS: Mapping[str, str] = MappingProxyType(
    {
        "bleu": "tabon.metrics.overlap:load_bleu",
        "rouge": "tabon.metrics.overlap:load_rouge",
        "meteor": "tabon.metrics.meteor:load",
        "nltk_bleu": "tabon.metrics.nltk_bleu:load",
        "stemmed_rouge": "tabon.metrics.overlap:load_stemmed_rouge",
        "split_meteor": "tabon.metrics.meteor:load_split",
        "chrf": "tabon.metrics.overlap:load_chrf",
        "bertscore": "tabon.metrics.bertscore:load",
        "comet": "tabon.metrics.comet:load",
        "radgraph": "tabon.metrics.radgraph:load",
        "chexbert": "tabon.metrics.chexbert:load",
        "labels": "tabon.metrics.labels:load",
        "temporal": "tabon.metrics.temporal:load",
        "clinical": "tabon.metrics.clinical:load",
        "rexrank-bleu2": "tabon.metrics.rexrank:load_bleu2",
        "rexrank": "tabon.metrics.rexrank:load",
    }
)
DEFAULT_METRICS = ("bleu", "rouge", "meteor", "chrf", "labels", "temporal")
# these need no file beside the installed packages
WEIGHTLESS = (
    *("bleu", "rouge", "chrf", "labels", "temporal", "clinical"),
    "rexrank-bleu2",
)
USUAL_SCORES = ("rouge-l-f", "rouge-1-f", "bleu-4", "chrf++", "labels-14-samples", "bertscore-f1")


def load_metric(name: str, *, model: Path | None = None) -> Metric:
    """Load a metric.

    Args:
        name: such as `rouge`, `labels`, `radgraph`, or that of another package's metric.
        model: a local folder with its files, for those that have weights.

    Raises:
        UnknownNameError: no metric has this name.
        MetricUnavailableError: it cannot be measured here; the message says what to fetch or install.

    >>> load_metric("chrf").scores[0].name
    'chrf++'
    """
    metric: Metric = lookup("metric", METRICS, name, group=GROUP)(model)
    return metric


def load_metrics(names: Iterable[str], models: Mapping[str, Path]) -> tuple[list[Metric], dict[str, str]]:
    """Load the metrics that can be measured here; say why the others cannot, and a hint."""
    loaded, missing = [], {}
    for name in names:
        try:
            loaded.append(load_metric(name, model=models.get(name)))
        except MetricUnavailableError as error:
            missing[name] = f"{error.reason}; {error.remedy}"
        except MissingExtraError as error:
            missing[name] = str(error)
    return loaded, missing


def load_scores(
    names: Iterable[str], *, kind: str = "score", also: Sequence[str] = ()
) -> dict[str, tuple[Metric, Score]]:
    """Return some scores with their metrics, each metric loaded once.

    A score's name begins with its metric's, behind `corpus-` if it is of all texts together.

    Args:
        names: of scores.
        kind: what a message calls them.
        also: what else a name may be, for the message.

    Raises:
        UnknownNameError: no metric has such a score.
        MetricUnavailableError: its metric cannot be measured here.

    >>> metric, score = load_scores(["corpus-bleu-4"])["corpus-bleu-4"]
    >>> metric.name, score.name
    ('bleu', 'corpus-bleu-4')
    """
    load = cache(load_metric)
    return {name: _with_score(name, load, kind, also) for name in names}


def _with_score(
    name: str, load: Callable[[str], Metric], kind: str, also: Sequence[str]
) -> tuple[Metric, Score]:
    """Return a score and its metric: a built-in one before those of packages, the longest name first."""
    begin = [each for each in names_of(METRICS, GROUP) if name.removeprefix("corpus-").startswith(each)]
    seen: list[str] = []
    for metric in map(load, sorted(begin, key=lambda each: (each in METRICS, len(each)), reverse=True)):
        for score in metric.scores:
            if score.name == name:
                return metric, score
            seen.append(score.name)
    raise UnknownNameError(kind, name, seen or [*also, *USUAL_SCORES])
