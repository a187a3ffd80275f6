"""Why a draft was chosen: what changed, which training changes it resembles, what a reader should check."""

from tabon.explanation.explanation import Explanation, explain, explain_many
from tabon.explanation.text import explanation_text, explanations_text

__all__ = ["Explanation", "explain", "explain_many", "explanation_text", "explanations_text"]
