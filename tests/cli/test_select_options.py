"""Every selector with every option of `tabon select`: it works, or one sentence says why it cannot."""

import json
import re

import pytest

from commands import tabon
from tabon import TransitionBank
from tabon.cli.select import select
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.evaluation import read_cases
from tabon.evaluation.fit import read_lesson
from tabon.metrics import load_metric
from tabon.selectors import SELECTORS
from tabon.selectors.weights import write_weights
from tabon.text.records import transition_from_record

SETTINGS = SimulationSettings(patients=80, num_candidates=3)
VARIANTS = {  # of each selector, one with a distance of sets and one with a metric where it has both
    "transition": ["", ":novelty/min", ":cost-ot/knn"],
    "two-sided": ["", ":knn"],
    "report-space": ["", ":hausdorff/knn"],
    "consensus": ["", ":rouge-l-f"],
    "nearest-prior": ["", ":rouge-l-f"],
    "next-visit": ["", ":rouge-l-f"],
    "random": ["", ":3"],
    "learnt": [":{folder}/learnt.json"],
    "fused": ["", ":{folder}/fused.json"],
}
NAMES = ["paper", *(f"{name}{end}" for name in SELECTORS for end in VARIANTS.get(name, [""]))]
OPTIONS = {
    "--distance": "mean-shift",
    "--aggregate": "knn",
    "-k": "3",
    "--zero": "match",
    "--history": "0.5",
    "--allow-bank-patients": None,
    "--abstain": "0.1",
    "--calibration": "{folder}/calibration.json",
    "--search": "index:{folder}/index",
}
OTHERS = {"--bank", "--selector", "--out", "--engine", "--encoder", "--store", "--no-store"}
TARGET = {"rouge-l-f": load_metric("rouge")}
METHOD = {"paper", "transition"}
NEIGHBOURS = METHOD | {"two-sided", "report-space"}
LOOK_AT_THE_PRIOR = METHOD | {"two-sided", "nearest-prior", "next-visit", "fused", "learnt"}


def refusal(selector, option):
    """Return what the sentence says where a combination cannot mean anything; None where it works."""
    kind, _, variant = selector.partition(":")
    named = {"--distance", "--aggregate"} if kind in METHOD else {"--aggregate"}
    if variant and option in named and kind in NEIGHBOURS:
        return "which names it"
    means = {
        "--distance": METHOD,
        "--aggregate": NEIGHBOURS,
        "-k": NEIGHBOURS,
        "--zero": METHOD | {"two-sided"},
        "--history": LOOK_AT_THE_PRIOR,
        "--search": METHOD,
        "--abstain": METHOD,
    }
    if kind in means.get(option, {kind}):
        return None
    return {
        "--history": "which looks at no prior",
        "--search": "which does not search",
        "--abstain": "only the paper's method without --history calibrates on the bank",
    }.get(option, "does not count")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A bank with its index, queries with two priors, and weights for this bank."""
    place = tmp_path_factory.mktemp("options")
    records = map(transition_from_record, simulate_transitions(SETTINGS, "train"))
    bank = TransitionBank.build(records, encoder="hashing")
    bank.save(place / "bank.tabon")
    asked = list(simulate_queries(SETTINGS, "test"))[:3]
    for query in asked:
        query["prior"] = [asked[0]["reference"], query["prior"]]
        query["candidates"] = [{**draft, "logprob": -1.0} for draft in query["candidates"]]
    (place / "queries.jsonl").write_text(
        "".join(json.dumps(query) + "\n" for query in asked), encoding="utf-8"
    )
    valid = [json.dumps(query).encode() for query in simulate_queries(SETTINGS, "valid")]
    for name in ("fused", "learnt"):
        fitted = read_lesson(name, bank, read_cases(valid, name="valid").cases, TARGET).fit()
        write_weights(place / f"{name}.json", fitted)
    made = ["--search", f"index:{place}/index", "--distance", "novelty", "--distance", "cost-ot"]
    assert tabon("bank", "index", place / "bank.tabon", *made).exit_code == 0
    return place


def test_every_option_of_the_method_is_in_the_table():
    """A new option of `tabon select` is put into the table on purpose."""
    known = {name for param in select.params for name in param.opts if name.startswith("-")}
    assert {"-k" if name == "--neighbours" else name for name in known} - OTHERS == set(OPTIONS)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("selector", NAMES)
def test_every_selector_with_every_option(folder, selector, option):
    """The combination gives one record a query, or is refused before any, in one sentence that says why."""
    shared = [folder / "queries.jsonl", "--bank", folder / "bank.tabon", "--no-store"]
    shared += ["--selector", selector.format(folder=folder)]
    if option == "--calibration":
        calibrated = tabon("calibrate", *shared, "--out", folder / "calibration.json")
        assert calibrated.exit_code == 0, calibrated.output
    value = OPTIONS[option]
    run = tabon("select", *shared, option, *([] if value is None else [value.format(folder=folder)]))
    expected = refusal(selector, option)
    if expected is None:
        assert run.exit_code == 0, run.output
        assert len(run.stdout.splitlines()) == 3
    else:
        assert (run.exit_code, run.stdout) == (1, ""), run.output
        assert re.fullmatch(r"Error: [^\n]+\n", run.stderr), run.stderr
        assert expected in run.stderr
