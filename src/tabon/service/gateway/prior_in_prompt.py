"""The prior report out of a P3-like prompt, found by the marks of our prompts (docs/reference/prompts.md)."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from tabon.generation.prompts import PROMPTS, get_prompt
from tabon.text.reports import Report, parse_report


class Marks(NamedTuple):
    """The lines before and after a prior report."""

    before: str
    after: str


def prior_in_messages(messages: Sequence[Mapping[str, Any]]) -> Report | None:
    """Return the prior that the last message of a user shows; None where it shows none."""
    asked = [message for message in messages if message.get("role") == "user"]
    return prior_in(text_of(asked[-1].get("content"))) if asked else None


def prior_in(prompt: str) -> Report | None:
    r"""Return the prior report that a prompt shows between the marks of P3 or of its hardened form.

    It reaches from the first mark to the last one, so that a mark inside a report does not cut it.

    >>> prior_in("<<<PRIOR\nFindings: Clear.\nImpression: Normal.\nPRIOR>>>")
    Report(findings='Clear.', impression='Normal.', other='')
    >>> prior_in("Findings: Clear.") is None
    True
    """
    lines = prompt.replace("\r\n", "\n").split("\n")
    bare = [line.strip() for line in lines]
    for marks in known_marks():
        if marks.before in bare and marks.after in bare:
            first, last = bare.index(marks.before), len(bare) - 1 - bare[::-1].index(marks.after)
            if first < last:
                return _shown("\n".join(lines[first + 1 : last]).strip())
    return None


@cache
def known_marks() -> tuple[Marks, ...]:
    """Return the marks of the prompts that show a prior, the fenced one first.

    >>> known_marks()[0]
    Marks(before='<<<PRIOR', after='PRIOR>>>')
    """
    prompts = [get_prompt(name) for name in PROMPTS]
    guarded_first = sorted((prompt for prompt in prompts if prompt.needs_prior), key=lambda one: one.profile)
    return tuple(_marks_of(prompt.text) for prompt in guarded_first)


def text_of(content: Any) -> str:  # noqa: ANN401  # any JSON
    """Return the text of a message: a string, or the text parts of a list."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _marks_of(template: str) -> Marks:
    """Return the lines around the placeholders."""
    before, _, rest = template.partition("Findings: {prior_findings}")
    after = rest.partition("{prior_impression}")[2]
    return Marks(before.strip().rpartition("\n")[2], after.strip().partition("\n")[0])


def _shown(text: str) -> Report:
    """Read what stands between the marks: the two fields as tabon writes them, or any report."""
    findings, between, impression = text.partition("\nImpression:")
    if between and findings.startswith("Findings:"):
        return Report(findings.removeprefix("Findings:"), impression)
    return parse_report(text)
