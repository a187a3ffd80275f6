"""Transition-aware best-of-N selection of chest X-ray reports.

Research use only; not a medical device.
"""

from importlib.metadata import version

from tabon.encoders import load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import TabonError
from tabon.method.bank import TransitionBank
from tabon.method.selection import Selection
from tabon.metrics import load_metric
from tabon.selectors import Selector
from tabon.text.records import Query, Transition, read_queries
from tabon.text.reports import Report, parse_report
from tabon.text.sentences import split_sentences

__version__ = version("tabon")

__all__ = [
    "Query",
    "Report",
    "Selection",
    "Selector",
    "SentenceStore",
    "TabonError",
    "Transition",
    "TransitionBank",
    "__version__",
    "load_encoder",
    "load_metric",
    "parse_report",
    "read_queries",
    "split_sentences",
]
