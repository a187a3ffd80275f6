"""The simulated cohort: patients with known states, their reports, and drafts with known errors.

The embedded default of demos, tests and docs; see `docs/reference/simulated-cohort.md`
for what it is and is not.
"""

from tabon.simulate.drafts import ERRORS
from tabon.simulate.records import simulate_queries, simulate_transitions
from tabon.simulate.settings import PROMPTS, SPLITS, Prompt, SimulationSettings, Split
from tabon.simulate.state import state_f1
from tabon.simulate.summary import CohortSummary, summarise

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
    "state_f1",
    "summarise",
]
