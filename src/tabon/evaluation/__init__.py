"""What selections are worth: measured once, compared honestly."""

from tabon.evaluation.cases import Case, Cases, read_cases
from tabon.evaluation.evaluate import EvaluationSettings, RunInput, evaluate
from tabon.evaluation.picks import Picks, read_picks

__all__ = ["Case", "Cases", "EvaluationSettings", "Picks", "RunInput", "evaluate", "read_cases", "read_picks"]
