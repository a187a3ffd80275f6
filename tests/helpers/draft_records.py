"""A draft's key and its line in a journal."""

from tabon.generation.journal import DraftKey, draft_line
from tabon.generation.protocol import Answer, Parameters

KEY = DraftKey(
    study="s1",
    model="openai:m",
    source="http://127.0.0.1:8000/v1",
    prompt="P1",
    prompt_sha256="a" * 64,
    image_sha256=None,
    parameters=Parameters(),
    sample=0,
    seed=7,
)


def line(key=KEY, text="Findings: Clear.", **changes):
    """One line of a journal."""
    answer = Answer(outcome="ok", text=text, raw={"body": text}, **changes)
    return draft_line(key, answer, cost=0.25, time="2026-01-01T00:00:00+00:00")
