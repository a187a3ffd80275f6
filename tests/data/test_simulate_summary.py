"""The simulated reports read like real ones, as far as counting can tell."""

import tarfile
import xml.etree.ElementTree as ET  # the archive lies beside the project
from dataclasses import asdict
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import pytest

from tabon.data.simulate import (
    PROMPTS,
    SimulationSettings,
    simulate_queries,
    simulate_transitions,
    summarise,
)
from tabon.data.simulate.records import sentences
from tabon.evaluation.draft_scores import state_f1

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "simulated-cohort.md"
OPENI = ROOT.parent / "shared" / "data" / "openi" / "NLMCXR_reports.tgz"


@cache
def transitions():
    """As many reports as Open-i has."""
    cohort = SimulationSettings(patients=1575, splits=(1.0, 0.0, 0.0))
    return tuple(simulate_transitions(cohort, "train"))


def simulated_reports():
    """Every visit's report once."""
    for _, visits in groupby(transitions(), key=lambda record: record["patient"]):
        for number, record in enumerate(visits):
            if number == 0:
                yield record["prior"]
            yield record["current"]


def openi_reports():
    """The findings and impressions of Open-i."""
    with tarfile.open(OPENI) as archive:
        for member in archive:
            if member.name.endswith(".xml"):
                tree = ET.parse(archive.extractfile(member))  # noqa: S314
                texts = {part.get("Label"): (part.text or "").strip() for part in tree.iter("AbstractText")}
                yield {name: texts.get(name.upper(), "") for name in ("findings", "impression")}


@cache
def figures(source):
    """The summary of one source of reports, or a skip where it is not there."""
    if source == "openi" and not OPENI.exists():
        pytest.skip("the Open-i reports do not lie beside the project")
    return asdict(summarise(simulated_reports() if source == "simulated" else openi_reports()))


def page_table(heading):
    """The rows of the table under a heading of the page, as cells."""
    lines = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return rows[2:]


def test_reports_repeat_as_in_life():
    """About 18 % of the reports repeat an earlier one word for word."""
    assert 0.14 < figures("simulated")["repeated_reports"] < 0.22


def test_sections_are_as_long_as_in_life():
    """Findings have four to five sentences, impressions one to two, most of each near that."""
    assert 4.0 < figures("simulated")["findings_sentences"] < 5.0
    assert 1.2 < figures("simulated")["impression_sentences"] < 1.8
    for section, low, high in (("findings", 3, 8), ("impression", 1, 3)):
        counts = [len(sentences(report[section])) for report in simulated_reports()]
        assert np.percentile(counts, 5) >= low - 1
        assert np.percentile(counts, 95) <= high


def test_some_consecutive_reports_are_identical():
    """A small share of patients has the same report twice running."""
    share = np.mean([record["prior"] == record["current"] for record in transitions()])
    assert 0.01 < share < 0.1


def test_sentences_are_varied_and_common_ones_common():
    """Most text is stock phrases, yet there are thousands of distinct sentences."""
    assert 0.15 < figures("simulated")["distinct_sentences"] < 0.4
    assert figures("simulated")["top_sentences"] > 0.3


def test_sentences_are_well_formed():
    """A sentence begins with a capital or a number, ends with a stop and repeats no word at once."""
    for text in {text for report in simulated_reports() for text in report.values()}:
        for sentence in sentences(text):
            assert sentence[0].isupper() or sentence[0].isdigit()
            assert sentence.endswith(".")
            words = sentence.lower().rstrip(".").split()
            assert all(one != other for one, other in pairwise(words))


def test_the_page_shows_the_simulated_figures():
    """Every figure of the simulated column is what the code measures now."""
    for name, shown, _ in page_table("Beside Open-i"):
        assert f"{figures('simulated')[name.strip('`')]:.4g}" == shown, name


@pytest.mark.openi
def test_the_page_shows_the_figures_of_openi():
    """Every figure of the Open-i column is what the archive gives."""
    for name, _, shown in page_table("Beside Open-i"):
        assert f"{figures('openi')[name.strip('`')]:.4g}" == shown, name


def test_the_page_shows_what_a_selector_can_gain():
    """The F1 of the worst, a random and the best of five drafts is what the code measures now."""
    rows = page_table("What a selector can gain")
    assert [row[0].strip("`") for row in rows] == list(PROMPTS)
    for prompt, *shown in rows:
        cohort = SimulationSettings(patients=500, splits=(0.0, 0.0, 1.0), prompt=prompt.strip("`"))
        scores = np.array(
            [
                [state_f1(draft["state"], query["state"]) for draft in query["candidates"]]
                for query in simulate_queries(cohort)
            ]
        )
        measured = scores.min(axis=1).mean(), scores.mean(), scores.max(axis=1).mean()
        assert [f"{value:.3f}" for value in measured] == shown
