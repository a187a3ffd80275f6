"""The rewards in the forms of other trainers: verl, OpenRLHF and verifiers.

Each function takes a reward of `tabon.integrations.rewards` and returns what the trainer calls. The
row of the data set (prior, patient) comes where that trainer keeps it. These trainers need a number for
every completion: what cannot be scored is an error, unless `missing` says what it gets.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

from tabon._internal.extras import require
from tabon.errors import BadInputError
from tabon.integrations.rewards import GroupReward, TransitionReward

Row = Mapping[str, object]
# what ends a response in the templates of known models; OpenRLHF decodes it with the rest
END_TOKENS = ("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<end_of_turn>", "</s>", "<eos>")


class _Numbers:
    """A reward that gives a number for every completion, one call at a time."""

    def __init__(self, reward: TransitionReward | GroupReward, missing: float | None) -> None:
        """Take the reward, and what a completion gets that it cannot score."""
        self._reward, self._missing, self._turn = reward, missing, Lock()  # trainers call from threads

    def __call__(self, completions: Sequence[object], rows: Sequence[Row]) -> list[float]:
        """Return the reward of each completion beside its own row."""
        names = [name for name in self._reward.columns if any(name in row for row in rows)]
        columns: dict[str, object] = {name: [row.get(name) for row in rows] for name in names}
        with self._turn:
            found = self._reward(completions, **columns)
        if self._missing is None and None in found:
            raise BadInputError(
                f"row {found.index(None)} of the batch has no reward: the prior is empty, the patient is in "
                "the bank, or the selector abstains; leave such rows out, or say missing=0.0"
            )
        return [float(self._missing or 0.0) if reward is None else reward for reward in found]


def verl_reward(
    reward: TransitionReward | GroupReward, *, missing: float | None = None
) -> Callable[..., float]:
    """Return verl's `compute_score` for one response; `extra_info` holds prior and patient."""
    numbers = _Numbers(reward, missing)

    def compute_score(
        data_source: str,  # noqa: ARG001  # verl gives it by name
        solution_str: str,
        ground_truth: object,  # noqa: ARG001
        extra_info: Row | None = None,
        **_: object,  # what verl adds of its own
    ) -> float:
        """Return the reward of one response."""
        return numbers([solution_str], [extra_info or {}])[0]

    return compute_score


def verl_batch_reward(
    reward: TransitionReward | GroupReward, *, missing: float | None = None
) -> Callable[..., list[float]]:
    """Return verl's `compute_score` for a batch, as its batch reward manager calls it."""
    numbers = _Numbers(reward, missing)

    def compute_score(
        data_sources: Sequence[str],  # noqa: ARG001
        solution_strs: Sequence[str],
        ground_truths: Sequence[object],  # noqa: ARG001
        extra_infos: Sequence[Row | None],
        **_: object,
    ) -> list[float]:
        """Return the reward of each response."""
        return numbers(list(solution_strs), [info or {} for info in extra_infos])

    return compute_score


def openrlhf_reward(
    reward: TransitionReward | GroupReward,
    *,
    missing: float | None = None,
    end_tokens: Sequence[str] = END_TOKENS,
) -> Callable[..., dict[str, Any]]:
    """Return OpenRLHF's `reward_func`; the label is JSON with prior and patient.

    A query is the prompt and the response, decoded with the special tokens: the prompt and what
    follows an end token are taken off.
    """
    numbers = _Numbers(reward, missing)

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[object]
    ) -> dict[str, Any]:
        """Return rewards, the scores of dynamic filtering, and what is logged."""
        responses = [
            response_of(query, prompt, end_tokens) for query, prompt in zip(queries, prompts, strict=True)
        ]
        found = numbers(responses, list(map(row_of_label, labels)))
        torch = require("torch", extra="torch", feature="a reward for OpenRLHF")
        values = torch.tensor(found, dtype=torch.float32)
        logs = {reward.__name__: values.mean().item()} if found else {}
        return {"rewards": values, "scores": values, "extra_logs": logs}

    return reward_func


def response_of(query: str, prompt: str, end_tokens: Sequence[str] = END_TOKENS) -> str:
    """Take the prompt off a query, and the first end token with all that follows.

    >>> response_of("<s>Write.Findings: Clear.</s></s>", "Write.")
    'Findings: Clear.'
    """
    _, found, response = query.partition(prompt)
    if not found:
        raise BadInputError(
            "a query does not hold its prompt: it was shortened or changed on its way through the tokenizer; "
            "leave room for the whole prompt"
        )
    ends = [response.find(one) for one in end_tokens if one in response]
    return response[: min(ends, default=len(response))]


def row_of_label(label: object) -> Row:
    """Read the label of a data set: an object, or its JSON.

    >>> row_of_label('{"prior": "Findings: Clear."}')
    {'prior': 'Findings: Clear.'}
    """
    if isinstance(label, str):
        try:
            label = json.loads(label)
        except ValueError:
            label = None
    if not isinstance(label, Mapping):
        raise BadInputError('a label is no JSON object; write {"prior": ..., "patient": ...} into the column')
    return label


def verifiers_reward(
    reward: TransitionReward | GroupReward, *, missing: float | None = None
) -> Callable[..., float]:
    """Return a reward function for a Rubric of verifiers; `info` holds prior and patient."""
    numbers = _Numbers(reward, missing)

    def score(completion: object, info: Row) -> float:
        """Return the reward of one completion."""
        return numbers([completion], [info])[0]

    score.__name__ = reward.__name__  # what the Rubric logs
    return score


def verifiers_group_reward(
    reward: TransitionReward | GroupReward, *, missing: float | None = None
) -> Callable[..., list[float]]:
    """Return a group reward function for a Rubric of verifiers: all completions of one prompt at once."""
    numbers = _Numbers(reward, missing)

    def score(prompts: Sequence[object], completions: Sequence[object], infos: Sequence[Row]) -> list[float]:
        """Return the reward of each completion."""
        rows = [{**info, "prompts": prompt} for prompt, info in zip(prompts, infos, strict=True)]
        return numbers(completions, rows)

    score.__name__ = reward.__name__
    return score
