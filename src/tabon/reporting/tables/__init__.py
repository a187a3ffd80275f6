"""The paper's tables, made from results only; the one place where numbers are rounded."""

from tabon.evaluation.results import merge_results
from tabon.reporting.tables.build import (
    all_tables,
    delta_table,
    headline_table,
    per_run_table,
    statistics_table,
)
from tabon.reporting.tables.cohort import cohort_tables
from tabon.reporting.tables.comparison import comparison_table, delta_comparison, per_run_comparison
from tabon.reporting.tables.pairs import (
    margin_sentence,
    pair_sentence,
    pairs_table,
    planning_table,
    subgroups_table,
)
from tabon.reporting.tables.render import FORMS, Table, render

__all__ = [
    "FORMS",
    "Table",
    "all_tables",
    "cohort_tables",
    "comparison_table",
    "delta_comparison",
    "delta_table",
    "headline_table",
    "margin_sentence",
    "merge_results",
    "pair_sentence",
    "pairs_table",
    "per_run_comparison",
    "per_run_table",
    "planning_table",
    "render",
    "statistics_table",
    "subgroups_table",
]
