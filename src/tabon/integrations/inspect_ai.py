"""For inspect_ai, by its entry point: a solver that picks the best of N drafts, and scorers.

`tabon/best_of_n` asks the model for N drafts and goes on with the pick of a selector. A sample's metadata
holds the `prior` (null where there is none) and perhaps the `patient`; its target is the reference report.
"""

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tabon._internal.extras import require
from tabon.errors import BadInputError
from tabon.integrations.rewards import TransitionReward
from tabon.method.bank import TransitionBank
from tabon.method.distances import DistanceName
from tabon.method.nearest import Aggregate, ZeroPolicy
from tabon.metrics.load import load_scores
from tabon.metrics.protocol import Pair
from tabon.selectors.scorer import PAPER
from tabon.selectors.setup import SelectionSettings, make_selector
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Report, parse_report, report_from_record

require("inspect_ai", extra="inspect", feature="the solver and the scorers for inspect_ai")

from anyio import to_thread  # noqa: E402
from inspect_ai.model import GenerateConfig, get_model  # noqa: E402
from inspect_ai.scorer import Score, mean, scorer, stderr  # noqa: E402
from inspect_ai.solver import solver  # noqa: E402
from inspect_ai.util import collect  # noqa: E402

if TYPE_CHECKING:
    from inspect_ai.scorer import Scorer, Target
    from inspect_ai.solver import Generate, Solver, TaskState

KEY: Final = "tabon"  # in the sample's store: the record of `tabon select`


@solver
def best_of_n(
    bank: str,
    drafts: int = 5,
    selector: str = PAPER,
    encoder: str | None = None,
    seed: int | None = None,
    allow_bank_patients: bool = False,  # noqa: FBT001, FBT002  # inspect_ai passes names
) -> "Solver":
    """Ask the model for several drafts and answer with the one that a selector picks.

    Args:
        bank: the path of a bank.
        drafts: how many the model is asked for; give it a temperature, or they are all the same.
        selector: as `tabon select --selector` has it.
        encoder: the one that built the bank; found by name where it is left out.
        seed: the first draft's, raised by one for each further one; none is sent where it is left out.
        allow_bank_patients: pick for patients who are in the bank.
    """
    if drafts < 1:
        raise BadInputError(f"{drafts} drafts are asked for; give 1 or more")
    settings = SelectionSettings(selector=selector, encoder=encoder, allow_bank_patients=allow_bank_patients)
    chooser, turn = make_selector(TransitionBank.load(Path(bank)), settings), Lock()

    async def solve(state: "TaskState", generate: "Generate") -> "TaskState":  # noqa: ARG001  # one draft alone
        configs = [GenerateConfig(seed=None if seed is None else seed + place) for place in range(drafts)]
        model, facts = get_model(), facts_of(state)
        outputs = await collect(*(model.generate(state.messages, config=config) for config in configs))
        texts = [parse_report(output.completion) for output in outputs]
        query = Query(
            id=str(state.sample_id), prior=facts["prior"], candidates=texts, patient=facts.get("patient")
        )

        def choose() -> Any:  # noqa: ANN401
            with turn:
                return chooser.select_many([query])[0]

        found = await to_thread.run_sync(choose)
        state.output = outputs[found.selected or 0]  # on abstention the first: the record says so
        state.messages.append(state.output.message)
        state.store.set(KEY, found.as_record(query.id))
        return state

    return solve


@scorer(metrics=[mean(), stderr()])
def transition_reward(
    bank: str,
    distance: DistanceName = "novelty",
    aggregate: Aggregate = "min",
    zero: ZeroPolicy = "neutral",
    encoder: str | None = None,
    allow_bank_patients: bool = False,  # noqa: FBT001, FBT002
) -> "Scorer":
    """Score how much the answer's change from the prior looks like changes in the bank, in [0, 1]."""
    reward, turn = (
        TransitionReward(
            Path(bank),
            distance=distance,
            aggregate=aggregate,
            zero=zero,
            encoder=encoder,
            allow_bank_patients=allow_bank_patients,
        ),
        Lock(),
    )

    async def score(state: "TaskState", target: "Target") -> Score:  # noqa: ARG001
        facts = facts_of(state)

        def rewarded() -> float | None:
            with turn:
                return reward(
                    [state.output.completion], prior=[facts["prior"]], patient=[facts.get("patient")]
                )[0]

        value = await to_thread.run_sync(rewarded)
        if value is None:
            return Score.unscored(reason="no-prior-or-patient-in-bank")
        return Score(value=value, metadata={"signature": reward.signature})

    return score


@scorer(metrics=[mean(), stderr()])
def report_score(metric: str = "rouge-l-f") -> "Scorer":
    """Score the answer against the target by one of tabon's scores: the mean over the target's sections."""
    family, measured = load_scores([metric])[metric]

    async def score(state: "TaskState", target: "Target") -> Score:
        wanted, draft = parse_report(target.text), parse_report(state.output.completion)
        prior = newest(facts_of(state)["prior"])
        pairs = [
            Pair(
                reference=wanted.section(section),
                candidate=draft.section(section),
                prior=prior.section(section),
            )
            for section in SECTIONS
            if wanted.section(section)
        ]
        if not pairs:
            return Score.unscored(reason="no-reference")
        values = measured.value(family.measure(pairs), np.ones(len(pairs)))
        return Score(value=float(np.mean(values)), metadata={"signature": family.signature})

    return score


@scorer(metrics=[mean(), stderr()])
def abstention() -> "Scorer":
    """Score 1 where `tabon/best_of_n` abstained and its answer is the first draft; 0 where it picked."""

    async def score(state: "TaskState", target: "Target") -> Score:  # noqa: ARG001
        record = state.store.get(KEY)
        if record is None:
            return Score.unscored(reason="not-solved-by-best-of-n")
        reason = record["abstained"]
        return Score(
            value=float(reason is not None), explanation=reason, metadata={"margin": record["margin"]}
        )

    return score


def facts_of(state: "TaskState") -> Mapping[str, Any]:
    """Return a sample's metadata, which says what the prior is."""
    if "prior" not in state.metadata:
        raise BadInputError("a sample's metadata has no 'prior'; add it, or null where there is none")
    return state.metadata


def newest(prior: object) -> Report:
    """Return the newest of the priors; an empty report where there is none."""
    cells = prior if isinstance(prior, list | tuple) else [prior]
    return report_from_record(cells[-1]) if cells and cells[-1] else Report()
