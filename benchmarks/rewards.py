"""What scoring a batch of roll-outs costs with the batched reward, against one selection a draft."""

from collections.abc import Iterator
from dataclasses import dataclass

from tabon import Report, Selector, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.integrations.rewards import TransitionReward
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import parse_report
from timing import Line, best_of, faster

GROUP = 8  # completions a prompt


@dataclass(frozen=True)
class Rollouts:
    """A trainer's batch: each completion beside its prior."""

    completions: list[str]
    priors: list[Report]


def rewards_lines(*, quick: bool) -> Iterator[Line]:
    """Time a batch of completions at once and draft by draft, hashing encoder, sentences embedded anew."""
    patients, prompts = (150, 2) if quick else (1500, 32)
    encoder = load_encoder("hashing")
    training = simulate_transitions(SimulationSettings(patients=patients), "train")
    bank = TransitionBank.build(map(transition_from_record, training), encoder=encoder)
    batch = rollouts(prompts)
    for distance, aggregate in (("novelty", "min"), ("cost-ot", "knn")):
        selector = Selector(bank, distance=distance, aggregate=aggregate, zero="neutral", encoder=encoder)
        reward = TransitionReward(bank, distance=distance, aggregate=aggregate, encoder=encoder)
        if one_by_one(selector, batch) != reward(batch.completions, prior=batch.priors):
            raise AssertionError("the batched rewards differ from one selection a draft")
        ours, other = best_of(
            1 if quick else 5,
            lambda reward=reward: reward(batch.completions, prior=batch.priors),
            lambda selector=selector: one_by_one(selector, batch),
        )
        count = len(batch.completions)
        yield faster(
            f"{count} rewards, {distance}/{aggregate}, bank of {len(bank)}, {count / ours:.0f} drafts/s",
            ours,
            other,
            f"a loop of Selector.select, {count / other:.0f} drafts/s",
            "≥ 5",
        )


def rollouts(prompts: int) -> Rollouts:
    """Return simulated drafts as text, so many to a prompt."""
    records = simulate_queries(SimulationSettings(patients=2000, num_candidates=GROUP), "test")
    queries = [query_from_record(record) for record, _ in zip(records, range(prompts), strict=False)]
    pairs = [
        (query.prior, draft)
        for query in queries
        for draft in query.candidates
        if draft.findings and draft.impression  # alone, a draft is not judged by a section that it lacks
    ]
    texts = [f"FINDINGS: {draft.findings}\n\nIMPRESSION: {draft.impression}" for _, draft in pairs]
    return Rollouts(texts, [prior for prior, _ in pairs])


def one_by_one(selector: Selector, batch: Rollouts) -> list[float]:
    """Return the same rewards, each draft selected alone."""
    chosen = (
        selector.select(prior, [parse_report(text)])
        for prior, text in zip(batch.priors, batch.completions, strict=True)
    )
    return [1.0 - one.total_distances[0] / len(one.sections) for one in chosen]
