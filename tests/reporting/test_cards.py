"""Cards and checklists say what the files know, name what they do not know, and hold no report text."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from commands import assert_refused, bank_file, tabon
from draft_records import KEY
from made_up_results import made_up
from tabon.data.cohort.build import write_simulated
from tabon.data.simulate import SimulationSettings, simulate_transitions
from tabon.evaluation.analysis_plan import PlanRecord
from tabon.evaluation.results import PairedDifference, Subgroup, write_results
from tabon.generation.journal import DraftKey, draft_line
from tabon.generation.protocol import Answer, Parameters
from tabon.method.bank import TransitionBank
from tabon.reporting.cards import (
    CHECKLISTS,
    bank_card,
    cohort_facts,
    journal_facts,
    read_checklist,
    results_card,
    results_facts,
    write_checklist,
)
from tabon.reporting.cards.facts import LONGEST_NAME, SOURCES, plain

TRIPOD_LLM = """
1 2 3a 3b 4 5a 5b 5c 5d 5e 6a 6b 6c 6d 6e 7a 7b 7c 7d 7e 8a 8b 8c 9a 9b 10 11 12 13 14a 14b 14c 14d 14e 14f 15
16a 16b 16c 16d 17 18 19a 19b 19c 19d 19e 19f 19g
"""
PUBLISHED = {  # the numbers of each checklist's items
    "mi-clear-llm": [str(n) for n in range(1, 9)],
    "tripod-llm": TRIPOD_LLM.split(),
    "claim": [str(n) for n in range(1, 45)],
}
CANARY = "Zqxwv"
SETTINGS = SimulationSettings(patients=60)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with results, a journal and a cohort."""
    folder = tmp_path_factory.mktemp("cards")
    write_results(folder / "results.json", made_up())
    write_simulated(folder / "cohort", SETTINGS)
    lines = []
    for sample in range(3):
        key = DraftKey(
            study=f"s{sample % 2}",
            model="openai:m-1",
            source="https://models.test/v1",
            prompt="P2",
            prompt_sha256="b" * 64,
            image_sha256="c" * 64 if sample else None,
            parameters=Parameters(temperature=0.7),
            sample=sample,
            seed=sample,
        )
        answer = Answer(
            outcome="ok", text=CANARY, model_version="m-1-0613", input_tokens=100, output_tokens=20
        )
        lines.append(draft_line(key, answer, cost=0.25, time=f"2026-01-0{sample + 1}T10:00:00Z"))
    (folder / "drafts.jsonl").write_bytes(b"".join(lines))
    return folder


def all_facts(place):
    """Return the facts of all three sources."""
    return {
        **results_facts(made_up()),
        **journal_facts(place / "drafts.jsonl"),
        **cohort_facts(place / "cohort"),
    }


def test_the_journal_s_facts_are_those_of_its_lines(place):
    """Model and version, dates, parameters, prompts, samples, images, outcomes, cost; no text."""
    facts = journal_facts(place / "drafts.jsonl")
    assert facts == {
        "models": ("openai:m-1 by https://models.test/v1 (answered as: m-1-0613): 3 responses",),
        "queried": ("first response 2026-01-01, last 2026-01-03",),
        "parameters": ('"max_tokens": 512, "temperature": 0.7, "top_p": 1.0: 3 responses',),
        "prompts": ("P2: 3 responses",),
        "repeats": ("up to 3 samples per study, model and prompt, each with a seed of its own",),
        "images": ("with an image: 2 responses", "without an image: 1 responses"),
        "outcomes": ("ok: 3 responses",),
        "cost": ("360 tokens, 0.75 dollars as far as prices were given",),
    }


def test_the_cohort_s_facts_are_those_of_its_audit(place):
    """Splits, exclusions, rules and where text may go."""
    facts, audit = cohort_facts(place / "cohort"), json.loads((place / "cohort/audit.json").read_text())
    train = audit["splits"]["train"]
    expected = (
        f"{train['patients']:,} patients, {train['visits']:,} visits, {train['transitions']:,} transitions"
    )
    assert facts["splits"][0] == f"train: {expected}"
    assert facts["data"][0] == "data set: simulated"
    assert facts["egress"] == ("text may be sent to: any",)


def test_every_source_gives_the_facts_that_it_is_said_to_give(place):
    """What a template may name is what the readers return."""
    assert tuple(results_facts(made_up())) == SOURCES["results"]
    assert set(journal_facts(place / "drafts.jsonl")) == set(SOURCES["journal"])
    assert set(cohort_facts(place / "cohort")) == set(SOURCES["cohort"])


@pytest.mark.parametrize("name", CHECKLISTS)
def test_items_are_numbered_as_published(name):
    """Each published item is there once, in order, names known facts only, and can be answered."""
    checklist = read_checklist(name)
    assert [item.number for item in checklist.items] == PUBLISHED[name]
    known = {fact for facts in SOURCES.values() for fact in facts}
    assert all(set(item.facts) <= known for item in checklist.items)
    assert all(item.facts or item.author for item in checklist.items)
    assert "doi:" in checklist.source


@pytest.mark.parametrize("name", CHECKLISTS)
def test_the_guide_counts_the_items(name):
    """How many items there are, and how many files alone answer, is what the templates have."""
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "reporting.md").read_text(encoding="utf-8")
    items = read_checklist(name).items
    alone = sum(not item.author for item in items)
    assert re.search(rf"^\| `{name}` \| .* \| {len(items)} \| {alone} \|$", guide, flags=re.MULTILINE)


@pytest.mark.parametrize("name", CHECKLISTS)
def test_each_item_is_answered_or_left_to_the_author(place, name):
    """With all sources no fact is lacking; the end names exactly the items with a point for the author."""
    checklist = read_checklist(name)
    text = write_checklist(checklist, all_facts(place))
    assert "or give --" not in text
    blocks = dict(re.findall(r"^\*\*(\w+)\*\* .*\n\n((?:- .*\n)+)", text, flags=re.MULTILINE))
    assert list(blocks) == PUBLISHED[name]
    left = [number for number, block in blocks.items() if "**author**" in block]
    assert left == [item.number for item in checklist.items if item.author]
    assert text.endswith(f"({len(left)} of {len(blocks)} items): {', '.join(left)}.\n")


@pytest.mark.parametrize("name", CHECKLISTS)
def test_what_a_source_would_say_is_named(name):
    """Without journal and cohort the item says what is lacking and which option has it."""
    checklist = read_checklist(name)
    text = write_checklist(checklist, results_facts(made_up()))
    assert re.search(r"- \*\*author\*\*: .*models.*; or give --journal", text)
    assert re.search(r"- \*\*author\*\*: .*splits.*; or give --cohort", text)


def test_performance_is_that_of_the_cells():
    """Each method's value, interval and share of the gap, a random pick and the best draft behind them."""
    results = made_up()
    lines = results_facts(results)["performance"]
    run, score = results.main_run(), results.headline[0]
    section = results.sections()[0]
    cell = results.cell(run=run, section=section, method="cost-ot/knn", score=score)
    assert cell is not None
    assert f"Cost-OT / knn {cell.value:.3f} (" in lines[0]
    random = results.cell(run=run, section=section, method="random", score=score)
    assert f"random {random.value:.3f}" in lines[0]


def test_the_card_of_results(place):
    """Studies, selectors, scores, what is not measured, a table, and the author's part."""
    result = tabon(
        "card", place / "results.json", "--cohort", place / "cohort", "--journal", place / "drafts.jsonl"
    )
    assert result.exit_code == 0
    for heading in (
        "Studies and drafts",
        "Splits",
        "Models",
        "Selectors",
        "Scores",
        "Not measured",
        "Statistics",
    ):
        assert f"\n## {heading}\n" in result.stdout
    assert "| Method |" in result.stdout
    assert result.stdout.count("- [ ] ") == 5
    assert CANARY not in result.stdout


def test_what_was_asked_for_beside_the_headline_is_among_the_statistics():
    """Pairs, groups, a margin and the analysis plan; the author is not asked for a plan that is there."""
    group = {"section": "findings", "score": "rouge-l-f", "method": "a", "other": "b", "n": 3}
    asked = replace(
        made_up(),
        pairs=(PairedDifference(**group),),
        subgroups=(Subgroup(by="view", group="AP", **group),),
        settings={**made_up().settings, "margin": 0.05},
        plan=PlanRecord(sha256="c" * 64),
    )
    said = set(results_facts(asked)["statistics"]) - set(results_facts(made_up())["statistics"])
    assert said == {
        "selectors against each other by the same test; Holm over pairs, headline scores and sections",
        "groups of studies by view, with a test of interaction",
        "non-inferiority at a margin of 5.0% of the gap",
        f"Analysis plan {'c' * 12}, written before anything was scored, was followed.",
    }
    assert [results_card(each, {}).count("planned before") for each in (made_up(), asked)] == [1, 0]


def test_the_checklist_s_command(place):
    """The same text as the function gives."""
    result = tabon("card", place / "results.json", "--checklist", "claim")
    assert result.stdout == write_checklist(read_checklist("claim"), results_facts(made_up()))
    assert tabon("card", place / "results.json", "--checklist", "stard").exit_code == 2


@pytest.fixture(scope="module")
def bank_path(tmp_path_factory):
    """A bank of a simulated cohort with a canary in each text."""
    records = [
        {
            **record,
            **{key: {"findings": f"{CANARY} clear.", "impression": CANARY} for key in ("prior", "current")},
        }
        for record in simulate_transitions(SETTINGS, "train")
    ]
    return bank_file(tmp_path_factory.mktemp("bank"), records)


def test_the_card_of_a_bank(bank_path):
    """Counts, dates, encoder and splits, the author's part, and no text."""
    bank = TransitionBank.load(bank_path)
    result = tabon("bank", "info", bank_path, "--card")
    assert result.stdout == bank_card(bank)
    dates = sorted(row[name] for row in bank.provenance for name in ("prior_date", "current_date"))
    for line in (
        f"- {len(bank):,} transitions of {len(bank.patients):,} patients",
        f"- split: train {len(bank):,}",
        f"- dates: {dates[0]} to {dates[-1]} as the data set gives them",
        "- encoder: hashing",
        f"- sha256 `{bank.sha256}`",
    ):
        assert f"{line}\n" in result.stdout
    assert "licence" in result.stdout
    assert CANARY not in result.stdout


def test_names_of_others_stay_on_their_line():
    """What another program named can break neither line nor table."""
    assert plain("a\nb | <c>") == "a b / (c)"
    assert len(plain("x" * 999)) == LONGEST_NAME


def test_files_that_are_not_whole_are_refused(tmp_path, place):
    """One sentence with the way to mend it, nothing printed."""
    results = place / "results.json"
    assert_refused(tabon("card", results, "--cohort", tmp_path), "name a cohort folder")
    for name in ("cohort.json", "audit.json"):
        (tmp_path / name).write_text("{}")
    assert_refused(tabon("card", results, "--cohort", tmp_path), "no whole cohort; make it again")
    (tmp_path / "audit.json").write_text("[")
    assert_refused(tabon("card", results, "--cohort", tmp_path), "no JSON object")
    assert_refused(tabon("card", results, "--journal", tmp_path / "none"), "there is no journal")
    assert_refused(tabon("card", tmp_path / "audit.json"), "not a whole results file")


def test_a_journal_of_nothing_and_odd_values(tmp_path):
    """An unknown cost counts as none; no time, no dates."""
    key = replace(KEY, study="s", model="m\n# x", source=None, seed=0)
    lines = draft_line(key, Answer(outcome="empty"), cost=None, time="") + draft_line(
        replace(key, sample=1), Answer(outcome="empty"), cost=-3.0, time=""
    )
    (tmp_path / "drafts.jsonl").write_bytes(lines)
    facts = journal_facts(tmp_path / "drafts.jsonl")
    assert facts["queried"] == ()
    assert facts["models"] == ("m # x (answered as: no version given): 2 responses",)
    assert facts["cost"] == ("0 tokens, 0.00 dollars as far as prices were given",)
