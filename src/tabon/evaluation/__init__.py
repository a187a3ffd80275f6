"""How well selections do: measured once, compared honestly."""

from tabon.evaluation.evaluate import EvaluationSettings, RunInput, evaluate
from tabon.evaluation.inputs import Case, Cases, Picks, read_cases, read_picks

__all__ = ["Case", "Cases", "EvaluationSettings", "Picks", "RunInput", "evaluate", "read_cases", "read_picks"]
