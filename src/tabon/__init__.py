"""Transition-aware best-of-N selection of chest X-ray reports.

Research use only; not a medical device. A name is loaded when it is first asked for.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from tabon._internal import core_packages as _core_packages  # noqa: F401  # refuses in one sentence

if TYPE_CHECKING:
    from tabon.data.in_memory import Cohort, read_visits, simulate
    from tabon.encoders import load_encoder
    from tabon.encoders.sentence_store import SentenceStore
    from tabon.errors import NoPatientsWarning, TabonError
    from tabon.explanation import explain
    from tabon.method.bank import TransitionBank
    from tabon.method.selection import Selection
    from tabon.metrics import load_metric
    from tabon.reporting.notebook import Evaluation, evaluate
    from tabon.selectors import Selector
    from tabon.text.records import Query, Transition
    from tabon.text.reports import Report, parse_report
    from tabon.text.sentences import split_sentences
    from tabon.text.sources import read_queries

    __version__: str

__all__ = [
    "Cohort",
    "Evaluation",
    "NoPatientsWarning",
    "Query",
    "Report",
    "Selection",
    "Selector",
    "SentenceStore",
    "TabonError",
    "Transition",
    "TransitionBank",
    "__version__",
    "evaluate",
    "explain",
    "load_encoder",
    "load_metric",
    "parse_report",
    "read_queries",
    "read_visits",
    "simulate",
    "split_sentences",
]
_MODULES = {  # of each name
    "Cohort": "tabon.data.in_memory",
    "Evaluation": "tabon.reporting.notebook",
    "NoPatientsWarning": "tabon.errors",
    "Query": "tabon.text.records",
    "Report": "tabon.text.reports",
    "Selection": "tabon.method.selection",
    "Selector": "tabon.selectors",
    "SentenceStore": "tabon.encoders.sentence_store",
    "TabonError": "tabon.errors",
    "Transition": "tabon.text.records",
    "TransitionBank": "tabon.method.bank",
    "evaluate": "tabon.reporting.notebook",
    "explain": "tabon.explanation",
    "load_encoder": "tabon.encoders",
    "load_metric": "tabon.metrics",
    "parse_report": "tabon.text.reports",
    "read_queries": "tabon.text.sources",
    "read_visits": "tabon.data.in_memory",
    "simulate": "tabon.data.in_memory",
    "split_sentences": "tabon.text.sentences",
}


if not TYPE_CHECKING:  # for a type checker a misspelt name is an error

    def __getattr__(name: str) -> Any:  # noqa: ANN401  # of any of the names
        """Load a public name."""
        if name == "__version__":
            value: Any = version("tabon")
        elif name in _MODULES:
            value = getattr(import_module(_MODULES[name]), name)
        else:
            raise AttributeError(f"module 'tabon' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
