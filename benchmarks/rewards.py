"""What scoring a training step's completions costs with the batched reward, against one selection a draft."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import process_time

import numpy as np

from tabon import Report, Selector, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.integrations.rewards import TransitionReward
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import parse_report
from tabon.text.sentences import split_sentences
from timing import Line, best_of, faster

STEPS = 2  # in the first nothing is known, in the second the same prompts come again
SPARE = 8  # drafts of a prompt that may lack a section: alone, a draft is not judged by what it lacks


@dataclass(frozen=True)
class Rollouts:
    """A trainer's batch: each completion beside its prior."""

    completions: list[str]
    priors: list[Report]


def rewards_lines(*, quick: bool) -> Iterator[Line]:
    """Time two steps at the smallest and the largest usual batch, hashing encoder."""
    encoder = load_encoder("hashing")
    training = simulate_transitions(SimulationSettings(patients=150 if quick else 1500), "train")
    bank = TransitionBank.build(map(transition_from_record, training), encoder=encoder)
    for prompts, group in ((2, 2),) if quick else ((8, 8), (16, 16)):
        steps = rollouts(prompts, group)
        for distance, aggregate in (("novelty", "min"), ("cost-ot", "knn")):
            method = {"distance": distance, "aggregate": aggregate, "zero": "neutral", "encoder": encoder}
            selector = Selector(bank, **method)
            least = np.min(
                [
                    seconds_of(steps, TransitionReward(bank, **method), selector)
                    for _ in range(1 if quick else 9)
                ],
                axis=0,
            )
            for step, (ours, other) in enumerate(least.tolist(), start=1):
                count = len(steps[0].completions)
                what = f"{count} rewards, {prompts} prompts × {group}, step {step}, {distance}/{aggregate}"
                yield faster(
                    f"{what}, bank of {len(bank)}, CPU seconds, {count / ours:.0f}/s",
                    ours,
                    other,
                    f"a loop of Selector.select, {count / other:.0f}/s",
                    "≥ 10",
                )


def seconds_of(steps: list[Rollouts], reward: TransitionReward, selector: Selector) -> list[list[float]]:
    """Return the CPU seconds of each step with a reward that is new, and with the loop."""
    columns = []
    for work in (
        lambda step: reward(step.completions, prior=step.priors),
        lambda step: one_by_one(selector, step),
    ):
        split_sentences.cache_clear()
        columns.append([best_of(1, lambda: work(step), clock=process_time)[0] for step in steps])  # noqa: B023
    for step in steps:
        if one_by_one(selector, step) != reward(step.completions, prior=step.priors):
            raise AssertionError("the batched rewards differ from one selection a draft")
    return list(map(list, zip(*columns, strict=True)))


def rollouts(prompts: int, group: int) -> list[Rollouts]:
    """Return the completions of each step: simulated drafts with both sections, as text."""
    settings = SimulationSettings(patients=2000, num_candidates=STEPS * group + SPARE)
    records = simulate_queries(settings, "test")
    steps = [Rollouts([], []) for _ in range(STEPS)]
    for record, _ in zip(records, range(prompts), strict=False):
        query = query_from_record(record)
        whole = (draft for draft in query.candidates if draft.findings and draft.impression)
        for step in steps:
            for _, draft in zip(range(group), whole, strict=False):
                step.completions.append(f"FINDINGS: {draft.findings}\n\nIMPRESSION: {draft.impression}")
                step.priors.append(query.prior)
    return steps


def one_by_one(selector: Selector, step: Rollouts) -> list[float]:
    """Return the same rewards, each draft selected alone."""
    chosen = (
        selector.select(prior, [parse_report(text)])
        for prior, text in zip(step.priors, step.completions, strict=True)
    )
    return [1.0 - one.total_distances[0] / len(one.sections) for one in chosen]
