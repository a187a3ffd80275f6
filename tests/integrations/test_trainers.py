"""verl, OpenRLHF and verifiers call the one reward in their own forms and get its bits."""

import asyncio
import inspect
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tabon import Selector, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.errors import BadInputError
from tabon.integrations.rewards import GroupReward, TransitionReward
from tabon.integrations.trainers import (
    END_TOKENS,
    openrlhf_reward,
    response_of,
    row_of_label,
    verifiers_group_reward,
    verifiers_reward,
    verl_batch_reward,
    verl_reward,
)
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import report_from_record

SETTINGS = SimulationSettings(patients=60, splits=(0.8, 0.0, 0.2))
BANK = TransitionBank.build(
    map(transition_from_record, simulate_transitions(SETTINGS, "train")), encoder="hashing"
)
RECORDS = list(simulate_queries(SETTINGS, "test"))[:6]
REWARD, GROUP = TransitionReward(BANK), GroupReward(BANK, selector="consensus:chamfer", group="study")
ENDS = ("transition_reward", "consensus:chamfer_reward")


def texts(record):
    """Write the drafts of a simulated query as a model would."""
    reports = map(report_from_record, record["candidates"])
    return [f"Findings: {report.findings}\nImpression: {report.impression}" for report in reports]


def row(record):
    """Return what a data set keeps beside a prompt."""
    return {"prior": record["prior"], "patient": record["patient"], "study": record["id"], "index": 3}


def wanted(record, reward=REWARD):
    """Return the rewards of a query's drafts as the reward itself gives them."""
    columns = {name: [value] * 5 for name, value in row(record).items()}
    return reward(texts(record), **columns)


def picks(rewards):
    """Return the place of the highest reward of each query."""
    return [int(np.argmax(one)) for one in rewards]


def verl(record):
    """Call as verl's naive reward manager does: by name, one response at a time."""
    score = verl_reward(REWARD)
    extra = {**row(record), "num_turns": None, "rollout_reward_scores": {}}
    shared = {"data_source": "cxr", "ground_truth": "", "extra_info": extra}
    return [score(**shared, solution_str=text) for text in texts(record)]


def verl_batch(record):
    """Call as verl's batch reward manager does: by name, with arrays of objects."""
    extras = np.array([row(record)] * 5, dtype=object)
    sources = np.array(["cxr"] * 5, dtype=object)
    return verl_batch_reward(REWARD)(
        data_sources=sources, solution_strs=texts(record), ground_truths=[None] * 5, extra_infos=extras
    )


def openrlhf(record):
    """Call as OpenRLHF does: by place, one query at a time, prompt and end token in the query."""
    pytest.importorskip("torch", reason="OpenRLHF takes tensors of torch")
    reward_func, prompt = (
        openrlhf_reward(REWARD),
        "<|im_start|>user\nWrite.<|im_end|>\n<|im_start|>assistant\n",
    )
    found = []
    for text in texts(record):
        answer = reward_func([f"{prompt}{text}<|im_end|>\n"], [prompt], [json.dumps(row(record))])
        assert set(answer) == {"rewards", "scores", "extra_logs"}
        assert answer["rewards"].shape == (1,)
        found.append(answer["rewards"].item())
    return found


def verifiers(record):
    """Call as the Rubric does: the arguments that the function names, out of all that there are."""
    score, found = verifiers_reward(REWARD), []
    for text in texts(record):
        every = {
            "prompt": [{"role": "user", "content": "Write."}],
            "completion": [{"role": "assistant", "content": text}],
            "answer": "", "state": {}, "task": "cxr", "info": row(record), "parser": None,
        }  # fmt: skip
        found.append(score(**{name: every[name] for name in inspect.signature(score).parameters}))
    return found


@pytest.mark.parametrize("call", [verl, verl_batch, openrlhf, verifiers])
def test_the_form_of_a_trainer_gives_the_rewards_and_the_picks_of_the_library(call):
    """Every draft's number is the reward's, and the highest of a query is what `tabon select` picks."""
    found = [call(record) for record in RECORDS]
    exact = call is not openrlhf  # single precision there
    np.testing.assert_allclose(found, list(map(wanted, RECORDS)), atol=0 if exact else 1e-7)
    queries = [query_from_record({**record, "candidates": texts(record)}) for record in RECORDS]
    chosen = Selector(BANK, zero="neutral").select_many(queries)
    assert picks(found) == [one.selected for one in chosen]


def test_groups_reach_a_group_reward():
    """Verl's batch form groups by a column, the group function of verifiers by the prompt."""
    rows = [row(record) for record in RECORDS[:2] for _ in range(5)]
    drafts = [text for record in RECORDS[:2] for text in texts(record)]
    expected = [value for record in RECORDS[:2] for value in wanted(record, GROUP)]
    blank = [None] * 10
    batch = verl_batch_reward(GROUP)
    assert batch(data_sources=blank, solution_strs=drafts, ground_truths=blank, extra_infos=rows) == expected
    group = verifiers_group_reward(GroupReward(BANK, selector="consensus:chamfer"))
    for record in RECORDS[:2]:
        prompts = [f"prompt {record['id']}"] * 5
        assert group(prompts=prompts, completions=texts(record), infos=[row(record)] * 5) == wanted(
            record, GROUP
        )


def test_the_signatures_are_those_that_the_trainers_document():
    """Verl 0.9.1, OpenRLHF 0.11.2 and verifiers 0.1.10 call by these names."""
    for function, names in (
        (verl_reward(REWARD), ["data_source", "solution_str", "ground_truth", "extra_info", "_"]),
        (verl_batch_reward(REWARD), ["data_sources", "solution_strs", "ground_truths", "extra_infos", "_"]),
        (openrlhf_reward(REWARD), ["queries", "prompts", "labels"]),
        (verifiers_reward(REWARD), ["completion", "info"]),
        (verifiers_group_reward(GROUP), ["prompts", "completions", "infos"]),
    ):
        assert list(inspect.signature(function).parameters) == names
        assert not inspect.iscoroutinefunction(function)  # verl would await it
    assert (verifiers_reward(REWARD).__name__, verifiers_group_reward(GROUP).__name__) == ENDS


def test_what_cannot_be_scored_is_an_error_or_a_number_of_your_own():
    """No prior, a patient of the bank: these trainers know no None."""
    patient = next(iter(BANK.patients))
    for extra in ({"prior": None}, {"prior": ""}, {**row(RECORDS[0]), "patient": patient}):
        asked = {"data_source": "", "solution_str": "Findings: A.", "ground_truth": "", "extra_info": extra}
        with pytest.raises(BadInputError, match="row 0 of the batch has no reward"):
            verl_reward(REWARD)(**asked)
        assert verl_reward(REWARD, missing=0.25)(**asked) == 0.25
    with pytest.raises(BadInputError, match="without the column 'prior'"):
        verl_reward(REWARD)("", "Findings: A.", "")


def test_calls_from_many_threads_are_each_their_own():
    """Verl and OpenRLHF call from threads; nobody gets another's number."""
    score = verl_reward(GroupReward(BANK, selector="fused", group="study"))
    asked = [(text, row(record)) for record in RECORDS for text in texts(record)]
    alone = [score("", text, "", extra) for text, extra in asked]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda one: score("", one[0], "", one[1]), asked)) == alone


def test_prompts_and_end_tokens_are_taken_off():
    """The response is what stands between the prompt and the first end token, whatever comes before."""
    for end in END_TOKENS:
        assert response_of(f"<s>Prompt.Findings: Clear.{end}{end}</s>", "Prompt.") == "Findings: Clear."
    assert response_of("Prompt.Findings: Prompt.", "Prompt.") == "Findings: Prompt."
    assert response_of("Prompt.A|B", "Prompt.", ("|",)) == "A"
    with pytest.raises(BadInputError, match="does not hold its prompt") as caught:
        response_of("mpt.Findings: secret.", "Prompt.")
    assert "secret" not in str(caught.value)


def test_labels_hold_a_row():
    """A label is JSON or an object; anything else is an error without its text."""
    assert row_of_label({"prior": 1}) == row_of_label('{"prior": 1}') == {"prior": 1}
    for bad in ("Findings: secret.", "[1]", None, 3, ""):
        with pytest.raises(BadInputError, match="a label is no JSON object") as caught:
            row_of_label(bad)
        assert "secret" not in str(caught.value)


def test_the_program_of_the_page_works(tmp_path, monkeypatch):
    """The lines of docs/guide/frameworks.md make the three functions from a bank's file."""
    page = Path(__file__).parents[2] / "docs/guide/frameworks.md"
    [program] = re.findall(r"^```python\n(from tabon.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    BANK.save(tmp_path / "bank.tabon")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(program, names)  # noqa: S102
    found = names["compute_score"]("", texts(RECORDS[0])[0], "", row(RECORDS[0]))
    assert found == wanted(RECORDS[0], names["reward"])[0]


def test_a_real_rubric_gives_our_numbers():
    """The Rubric of verifiers scores rollouts and groups with the functions as they are."""
    vf = pytest.importorskip("verifiers", reason="verifiers does not install beside the pins")
    rubric = vf.Rubric(funcs=[verifiers_reward(REWARD)])
    group = vf.Rubric(funcs=[verifiers_group_reward(GroupReward(BANK, selector="consensus:chamfer"))])

    def states(record):
        shared = {"prompt": "Write.", "answer": "", "task": "cxr", "info": row(record), "trajectory": []}
        return [
            {**shared, "completion": text, "timing": {"scoring_ms": 0, "total_ms": 0}}
            for text in texts(record)
        ]

    for record in RECORDS[:3]:
        for one, reward in ((rubric, REWARD), (group, GROUP)):
            made = states(record)
            asyncio.run(one.score_group(made))
            assert [state["reward"] for state in made] == wanted(record, reward)
