"""From a journal's drafts and a cohort's transitions to queries.

One query per transition, in the cohort's order, for one model and one prompt. A
draft that cannot be used is left out and counted; the query says how many are
missing, so that a shortfall shows in every later table.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from tabon.errors import BadInputError
from tabon.text.reports import Report, parse_report

USABLE = ("ok", "truncated")  # the outcomes whose text is a candidate
CARRIED = ("image", "prior_image", "view", "prior_date", "current_date")  # of a transition, where it has them
FOUND = ("both", "findings-only", "impression-only", "neither")

Draft = Mapping[str, Any]  # study, model, prompt, sample, outcome, text


@dataclass(slots=True)
class JoinCounts:
    """What was joined, counted while queries are written."""

    studies: int = 0
    drafts: int = 0  # with a sample below the expected number
    surplus: int = 0  # with a sample beyond it; left out
    outcomes: dict[str, int] = field(default_factory=dict)
    sections: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FOUND, 0))  # of usable drafts
    with_shortfall: int = 0  # studies with fewer usable drafts than expected
    without_drafts: int = 0  # studies with none in the journal

    def add(self, drafts: Sequence[Draft], *, surplus: int) -> None:
        """Count one study and its drafts."""
        self.studies += 1
        self.drafts += len(drafts)
        self.surplus += surplus
        self.without_drafts += not drafts
        for draft in drafts:
            outcome = str(draft["outcome"])
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
            if is_usable(draft):
                self.sections[sections_found(parse_report(draft["text"]))] += 1

    def record(self) -> dict[str, Any]:
        """Return the counts as JSON, outcomes in the order of their names."""
        return {**asdict(self), "outcomes": dict(sorted(self.outcomes.items()))}


def queries_from(
    transitions: Iterable[Mapping[str, Any]],
    drafts_of: Callable[[str], Sequence[Draft]],
    *,
    expected: int,
    counts: JoinCounts | None = None,
    model: str | None = None,
    prompt: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield a query for each transition, as in docs/reference/file-formats.md.

    Args:
        transitions: objects of a cohort's `transitions.jsonl`.
        drafts_of: the journaled drafts of a transition; of several models or prompts they are refused.
        expected: how many drafts each should have, K; samples are 0 to K - 1.
        counts: counted into while queries are taken.
        model: what the drafts must be by; otherwise what they say.
        prompt: what the drafts must be made with; otherwise what they say.
    """
    if expected < 1:
        raise BadInputError(f"expected is {expected}; give the number of drafts of each study")
    counts = JoinCounts() if counts is None else counts
    for transition in transitions:
        study = str(transition["id"])
        drafts = _in_order(study, drafts_of(study))
        asked = [draft for draft in drafts if draft["sample"] < expected]
        counts.add(asked, surplus=len(drafts) - len(asked))
        shown = ("text", "sample", "outcome")
        candidates = [{name: draft[name] for name in shown} for draft in asked if is_usable(draft)]
        counts.with_shortfall += len(candidates) < expected
        yield {
            "id": study,
            "patient": transition.get("patient"),
            "prior": transition["prior"],
            "candidates": candidates,
            "reference": transition["current"],
            "model": _the_one(study, "model", drafts, model),
            "prompt": _the_one(study, "prompt", drafts, prompt),
            "expected": expected,
            **{key: transition[key] for key in CARRIED if transition.get(key)},
            **({"shortfall": expected - len(candidates)} if len(candidates) < expected else {}),
        }


def is_usable(draft: Draft) -> bool:
    """Whether a draft has text to choose.

    >>> [is_usable({"outcome": outcome, "text": "Clear."}) for outcome in ("ok", "truncated", "blocked")]
    [True, True, False]
    """
    text = draft.get("text")
    return draft["outcome"] in USABLE and isinstance(text, str) and bool(text.strip())


def sections_found(report: Report) -> str:
    """Name the sections that a draft has.

    >>> sections_found(Report(impression="Normal."))
    'impression-only'
    """
    if report.is_empty:
        return "neither"
    if report.findings and report.impression:
        return "both"
    return "findings-only" if report.findings else "impression-only"


def _in_order(study: str, drafts: Sequence[Draft]) -> list[Draft]:
    """Sort a study's drafts by sample; each sample is there once at most."""
    ordered = sorted(drafts, key=lambda draft: int(draft["sample"]))
    for before, after in pairwise(ordered):
        if before["sample"] == after["sample"]:
            raise BadInputError(
                f"study {study!r} has two drafts with sample {after['sample']}; "
                "keep each server, seed and set of parameters in a journal of its own"
            )
    return ordered


def _the_one(study: str, key: str, drafts: Sequence[Draft], wanted: str | None) -> str | None:
    """Return the model or prompt of a study's drafts; None if there are no drafts."""
    names = {str(draft[key]) for draft in drafts} | ({wanted} if wanted is not None else set())
    if len(names) > 1:
        several = ", ".join(sorted(names))
        raise BadInputError(f"study {study!r} has drafts of several {key}s ({several}); join one at a time")
    return next(iter(names), None)
