"""Metrics by name."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from tabon._internal.registry import lookup
from tabon.errors import MetricUnavailableError, MissingExtraError
from tabon.metrics.protocol import Metric

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
    metric: Metric = lookup("metric", METRICS, name, group="tabon.metrics")(model)
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
