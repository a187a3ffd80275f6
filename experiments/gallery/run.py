"""What each metric and each selector does to each kind of error.

    python experiments/gallery/run.py

Two drafts of a simulated visit differ in one planted error. A metric should score the wrong one less; a
selector should prefer the right one among five. The page is README.md beside this file.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tabon._internal.atomic_files import replacing
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.data.simulate.planted import PLANTED, PlantedError, planted_errors
from tabon.encoders import load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import TabonError
from tabon.method.bank import TransitionBank
from tabon.method.distances import DISTANCES
from tabon.method.nearest import AGGREGATES
from tabon.metrics import Pair, load_metric
from tabon.selectors import Selector
from tabon.text.records import Query, query_from_record, transition_from_record

SEED, PATIENTS = 11, 300
SPLITS = (0.7, 0.0, 0.3)
CASES = 150  # of each kind at most
SCORES = {  # the score that stands for a metric
    "bleu": "bleu-4", "nltk_bleu": "nltk_bleu-4", "rexrank-bleu2": "rexrank-bleu2", "rouge": "rouge-l-f",
    "stemmed_rouge": "stemmed_rouge-l-f", "chrf": "chrf++", "labels": "labels-14-micro",
    "temporal": "temporal-f1-empty-1", "clinical": "clinical",
}  # fmt: skip
SELECTORS = (
    *(f"transition:{distance}/{aggregate}" for distance in DISTANCES for aggregate in AGGREGATES),
    "two-sided:knn", "report-space:chamfer/knn", "consensus:chamfer", "consensus:rouge-l-f",
    "consensus:labels-14-samples", "consensus:clinical", "modex", "nearest-prior:chamfer",
    "next-visit:chamfer", "next-visit:rouge-l-f", "longest", "shortest", "fused",
)  # fmt: skip
Table = Mapping[str, Mapping[str, str]]  # row, error, cell

HEAD = """
# Gallery of errors

Two drafts of a simulated visit say the same in other words than the reference; one of them has one planted
error (`tabon.data.simulate.planted:planted_errors`). What does each metric and each selector make of it?
Phrases come from one book, so this shows what a method *can* see, not how good it is on real drafts. The
weights of `clinical` are on [its page](../../docs/reference/clinical.md).
"""
FALLS = """
How far the score of the Findings falls, and in how many cases it falls at all. METEOR and the metrics with
models are not here: their files are not in tabon's packages.
"""
WINS = """
How often the right draft is nearer than the wrong one, among five: these two and three of the simulated
generator with the prior in sight. 50 % is chance. No selector sees the reference. The planted finding is one
that the prior and the other three drafts rarely know: what trusts agreement or the usual next visit
(`consensus`, `fused`, `next-visit`) rejects it, whether it is invented or true.
"""


def cases(settings: SimulationSettings, most: int) -> dict[str, list[PlantedError]]:
    """Return the first cases of each kind."""
    found: defaultdict[str, list[PlantedError]] = defaultdict(list)
    for case in planted_errors(settings):
        if len(found[case.kind]) < most:
            found[case.kind].append(case)
    return {kind: found[kind] for kind in PLANTED}


def metric_rows(name: str, score: str, planted: Mapping[str, Sequence[PlantedError]]) -> dict[str, str]:
    """Return of each error how far the score of the Findings falls, and how often."""
    metric = load_metric(name)
    [value] = [one.value for one in metric.scores if one.name == score]
    cells = {}
    for kind, those in planted.items():
        drafts = [draft["findings"] for case in those for draft in (case.right, case.wrong)]
        references = [case.reference["findings"] for case in those for _ in range(2)]
        pairs = [Pair(reference=one, candidate=other) for one, other in zip(references, drafts, strict=True)]
        scores = value(metric.measure(pairs), np.ones(len(pairs)))
        falls = scores[0::2] - scores[1::2]
        cells[kind] = f"{falls.mean():.3f} / {100 * np.mean(falls > 0):.0f} %"
    return cells


def query(case: PlantedError, others: Sequence[Any]) -> Query:
    """Return the right draft, the wrong one and some of the simulated generator as one query."""
    drafts = [dict(case.right), dict(case.wrong), *others]
    record = {"id": case.id, "patient": case.patient, "prior": dict(case.prior), "candidates": drafts}
    return query_from_record(record)


def selector_rows(
    selector: Selector, planted: Mapping[str, Sequence[PlantedError]], drafts: Mapping[str, Any]
) -> dict[str, str]:
    """Return of each error how often the right draft is nearer than the wrong one; equal ones count half."""
    cells = {}
    for kind, those in planted.items():
        queries = [query(case, drafts[case.id.removesuffix(f"-{kind.replace(' ', '-')}")]) for case in those]
        totals = [chosen.total_distances[:2] for chosen in selector.select_many(queries)]
        wins = [0.5 * (1 + np.sign(wrong - right)) for right, wrong in totals]
        cells[kind] = f"{100 * np.mean(wins):.0f} %"
    return cells


def all_selector_rows(
    cohort: SimulationSettings, planted: Mapping[str, Sequence[PlantedError]], encoder_name: str
) -> dict[str, dict[str, str]]:
    """Return the rows of all selectors; each sentence is embedded once."""
    encoder = load_encoder(encoder_name)
    generator = replace(cohort, prompt="p3", num_candidates=3)
    drafts = {str(one["id"]): one["candidates"] for one in simulate_queries(generator)}
    with tempfile.TemporaryDirectory() as folder:
        store = SentenceStore(Path(folder) / "sentences")
        visits = map(transition_from_record, simulate_transitions(cohort, "train"))
        bank = TransitionBank.build(visits, encoder=encoder, store=store)
        return {
            name: selector_rows(Selector(bank, name, encoder=encoder, store=store), planted, drafts)
            for name in SELECTORS
        }


def table(first: str, rows: Table) -> Iterator[str]:
    """Yield a table in Markdown."""
    yield f"| {first} | {' | '.join(PLANTED)} |"
    yield "|---" * (len(PLANTED) + 1) + "|"
    for name, cells in rows.items():
        yield f"| `{name}` | {' | '.join(cells[kind] for kind in PLANTED)} |"


def examples(planted: Mapping[str, Sequence[PlantedError]]) -> Iterator[str]:
    """Yield one case of each kind, the sentences that differ."""
    for kind, those in planted.items():
        case = those[0]
        right, wrong = (draft["findings"].split(". ") for draft in (case.right, case.wrong))
        yield f"| {kind} | {_only(right, wrong)} | {_only(wrong, right)} |"


def _only(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """Return the sentences that only one of two drafts has."""
    return ". ".join(one.rstrip(".") for one in ours if one not in theirs) or "–"


def page(
    planted: Mapping[str, Sequence[PlantedError]], metrics: Table, selectors: Table, command: str
) -> str:
    """Return the page."""
    count = ", ".join(f"{len(those)} × {kind}" for kind, those in planted.items())
    sections = (
        (HEAD.strip(), "", "```console", f"$ {command}", "```", "", f"Cases: {count}.", ""),
        ("## An example of each", "", "| error | right | wrong |", "|---|---|---|", *examples(planted), ""),
        ("## Metrics", "", FALLS.strip(), "", *table("metric", metrics), ""),
        ("## Selectors", "", WINS.strip(), "", *table("selector", selectors), ""),
    )
    return "\n".join(line for section in sections for line in section)


def main() -> int:
    """Measure and write the page; say why where that cannot be done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--encoder", default="minilm", help="of the bank")
    parser.add_argument("--patients", type=int, default=PATIENTS)
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("README.md"))
    asked = parser.parse_args()
    cohort = SimulationSettings(patients=asked.patients, seed=SEED, splits=SPLITS)
    try:
        planted = cases(cohort, CASES)
        metrics = {score: metric_rows(name, score, planted) for name, score in SCORES.items()}
        selectors = all_selector_rows(cohort, planted, asked.encoder)
    except TabonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    options = "" if asked.patients == PATIENTS else f" --patients {asked.patients}"
    command = f"python experiments/gallery/run.py{options}"
    with replacing(asked.page) as unfinished:
        unfinished.write(page(planted, metrics, selectors, command).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
