"""The simulated cohort: patients with known states, their reports, and drafts with known errors.

The embedded default of demos, tests and docs; see `docs/reference/simulated-cohort.md`
for what it is and is not.
"""

from tabon.data.simulate.drafts import ERRORS
from tabon.data.simulate.records import CohortSummary, simulate_queries, simulate_transitions, summarise
from tabon.data.simulate.settings import PROMPTS, SPLITS, Prompt, SimulationSettings, Split

__all__ = [
    "ERRORS",
    "PROMPTS",
    "SPLITS",
    "CohortSummary",
    "Prompt",
    "SimulationSettings",
    "Split",
    "simulate_queries",
    "simulate_transitions",
    "summarise",
]
