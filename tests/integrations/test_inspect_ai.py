"""inspect_ai's own `eval` with its mock model: picks of `tabon select`, scores of the library, by name."""

import asyncio
import gc

import numpy as np
import pytest

from tabon import Selector, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.integrations.rewards import TransitionReward
from tabon.metrics.load import load_scores
from tabon.metrics.protocol import Pair
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import SECTIONS, parse_report, report_from_record

pytest.importorskip("inspect_ai", reason="the solver needs tabon[inspect]")

SETTINGS = SimulationSettings(patients=60, splits=(0.8, 0.0, 0.2))
RECORDS = {record["id"]: record for record in simulate_queries(SETTINGS, "test")}
FEW = list(RECORDS)[:8]


def written(report):
    """Write a report as a model would."""
    return f"Findings: {report.findings}\nImpression: {report.impression}"


def texts(record):
    """Return the drafts of a simulated query as text."""
    return [written(report_from_record(draft)) for draft in record["candidates"]]


@pytest.fixture
def streams_collected():
    """Collect the streams that inspect_ai leaves open here, where that is no error, not in a later test."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """Write the bank of the cohort."""
    path = tmp_path_factory.mktemp("bank") / "bank.tabon"
    moves = map(transition_from_record, simulate_transitions(SETTINGS, "train"))
    TransitionBank.build(moves, encoder="hashing").save(path)
    return str(path)


def evaluated(folder, solver, scorers, records):
    """Run inspect_ai's `eval`; its mock model writes the draft whose number is the seed."""
    from inspect_ai import Task, eval  # noqa: A004
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def write(messages, _tools, _choice, config):
        answer = ModelOutput.from_content("mockllm", texts(RECORDS[messages[-1].text])[config.seed])
        answer.usage = ModelUsage(input_tokens=1, output_tokens=1)  # else it fetches a vocabulary to count
        return answer

    samples = [
        Sample(
            id=record["id"],
            input=record["id"],
            target=written(report_from_record(record["reference"])),
            metadata={"prior": record["prior"], "patient": record["patient"]},
        )
        for record in records
    ]
    task = Task(dataset=MemoryDataset(samples), solver=solver, scorer=scorers)
    [log] = eval(
        task, model=get_model("mockllm/model", custom_outputs=write), log_dir=str(folder), display="none"
    )
    assert log.status == "success", log.error
    return log


def named(kind, name, **options):
    """Make a solver or scorer as inspect_ai does for `--solver tabon/NAME`."""
    from inspect_ai.util import registry_create

    return registry_create(kind, f"tabon/{name}", **options)


@pytest.mark.filterwarnings("ignore")  # inspect_ai's own
@pytest.mark.usefixtures("streams_collected")
@pytest.mark.parametrize("selector", ["paper", "fused"])
def test_eval_gives_the_picks_and_the_scores_of_the_library(bank, tmp_path, selector):
    """Solver and scorers are found by name; picks are those of `tabon select`, scores the library's."""
    scorers = [
        named("scorer", "transition_reward", bank=bank),
        named("scorer", "report_score", metric="rouge-l-f"),
        named("scorer", "abstention"),
    ]
    records = [RECORDS[name] for name in FEW]
    solver = named("solver", "best_of_n", bank=bank, selector=selector, seed=0)
    log = evaluated(tmp_path, solver, scorers, records)
    loaded = TransitionBank.load(bank)
    chooser, reward = Selector(loaded, selector), TransitionReward(loaded)
    metric, score = load_scores(["rouge-l-f"])["rouge-l-f"]
    assert len(log.samples) == len(records)
    for sample in log.samples:
        record = RECORDS[sample.id]
        query = query_from_record({**record, "candidates": texts(record)})
        [wanted] = chooser.select_many([query])
        assert sample.output.completion == texts(record)[wanted.selected]
        assert sample.messages[-1].text == sample.output.completion
        assert sample.store["tabon"] == wanted.as_record(record["id"])
        assert (
            sample.scores["transition_reward"].value
            == reward([sample.output.completion], prior=[record["prior"]], patient=[record["patient"]])[0]
        )
        draft, target = parse_report(sample.output.completion), report_from_record(record["reference"])
        pairs = [
            Pair(reference=target.section(name), candidate=draft.section(name))
            for name in SECTIONS
            if target.section(name)
        ]
        values = score.value(metric.measure(pairs), np.ones(len(pairs)))
        assert sample.scores["report_score"].value == pytest.approx(float(np.mean(values)))
        assert sample.scores["abstention"].value == 0
    means = {one.name: one.metrics["mean"].value for one in log.results.scores}
    every = [sample.scores["report_score"].value for sample in log.samples]
    assert means["report_score"] == pytest.approx(np.mean(every))


@pytest.mark.filterwarnings("ignore")  # inspect_ai's own
@pytest.mark.usefixtures("streams_collected")
def test_an_abstention_is_counted_and_not_scored(bank, tmp_path):
    """Without a prior the first draft is the answer, the record says why, and no reward is made up."""
    records = [{**RECORDS[FEW[0]], "prior": None}, RECORDS[FEW[1]]]
    scorers = [named("scorer", "transition_reward", bank=bank), named("scorer", "abstention")]
    log = evaluated(tmp_path, named("solver", "best_of_n", bank=bank, seed=0), scorers, records)
    orphan, good = sorted(log.samples, key=lambda sample: FEW.index(sample.id))
    assert orphan.output.completion == texts(RECORDS[FEW[0]])[0]
    assert orphan.scores["abstention"].value == 1
    assert orphan.scores["abstention"].explanation == "empty-prior"
    assert np.isnan(orphan.scores["transition_reward"].value)
    means = {one.name: one.metrics["mean"].value for one in log.results.scores}
    assert means == {"abstention": 0.5, "transition_reward": good.scores["transition_reward"].value}


def test_a_sample_says_what_its_prior_is(bank):
    """Metadata without the key is an error that names it, not an abstention."""
    from tabon.errors import BadInputError
    from tabon.integrations.inspect_ai import best_of_n, facts_of

    with pytest.raises(BadInputError, match="has no 'prior'"):
        facts_of(type("State", (), {"metadata": {"Prior": "Findings: A."}})())
    with pytest.raises(BadInputError, match="give 1 or more"):
        best_of_n(bank, drafts=0)
    assert asyncio.iscoroutinefunction(best_of_n(bank))
