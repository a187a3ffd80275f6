"""Cards of banks and results, and reporting checklists, filled as far as files know; no report text."""

from tabon.reporting.cards.bank import bank_card
from tabon.reporting.cards.checklist import CHECKLISTS, read_checklist, write_checklist
from tabon.reporting.cards.facts import Facts, cohort_facts, journal_facts, results_facts
from tabon.reporting.cards.results import results_card

__all__ = [
    "CHECKLISTS",
    "Facts",
    "bank_card",
    "cohort_facts",
    "journal_facts",
    "read_checklist",
    "results_card",
    "results_facts",
    "write_checklist",
]
