"""F1 of the 14 observations as tabon's own rules label them; needs no weights.

The rules are in `tabon.text.observations`, what they are worth in `docs/reference/labeller.md`.
Not a stand-in for CheXbert: compare numbers of this metric with each other only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tabon.metrics.label_f1 import STATISTICS, label_scores, label_statistics
from tabon.metrics.protocol import Metric, Pair, Statistics
from tabon.text.observations import LABELLER, OBSERVATIONS, label_text
from tabon.text.sentences import SPLITTER


@dataclass(frozen=True, slots=True)
class RuleLabels:
    """Labels by rules, uncertain ones counted as there; made by `load`."""

    name = "labels"
    statistics = STATISTICS
    scores = label_scores("labels")

    @property
    def signature(self) -> str:
        """Return the version of the rules, what uncertain counts as, and the splitter."""
        return f"labels|{LABELLER.replace('-', ':')}|uncertain:positive|empty:no-label|splitter:{SPLITTER}"

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return a row a pair: hits, false alarms and misses; each distinct text is labelled once."""
        every = (text for pair in pairs for text in (pair.reference, pair.candidate))
        texts = {text: row for row, text in enumerate(dict.fromkeys(every))}
        rows = [label_text(text).held() for text in texts]
        held = np.array(rows, dtype=np.bool_).reshape(len(texts), len(OBSERVATIONS))
        reference = held[[texts[pair.reference] for pair in pairs]]
        return label_statistics(reference, held[[texts[pair.candidate] for pair in pairs]])


def load(model: Path | None = None) -> Metric:
    """Return the labels; they need no files, so `model` is not looked at."""
    del model
    return RuleLabels()
