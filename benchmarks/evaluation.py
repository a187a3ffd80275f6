"""Evaluating many selectors from one table of statistics against doing it selector by selector."""

import json
from collections.abc import Iterator, Sequence
from time import perf_counter

import sacrebleu
from rouge_score.rouge_scorer import RougeScorer

from tabon.data.simulate import SimulationSettings, simulate_queries
from tabon.evaluation import Cases, EvaluationSettings, Picks, RunInput, evaluate, read_cases
from tabon.evaluation.evaluate import seeded_picks
from tabon.metrics import Metric, load_metric
from timing import Line, best_of, faster, share

SELECTORS = 9
SECTIONS = ("findings", "impression")
ROUGE = ("rouge1", "rouge2", "rougeL")


def evaluation_lines(*, quick: bool) -> Iterator[Line]:
    """Nine selectors against one, against the libraries selector by selector, and the bootstrap."""
    patients, resamples = (200, 50) if quick else (20_000, 10_000)
    cases = studies(patients)
    picks = [uniform(cases, seed) for seed in range(SELECTORS)]
    metrics = [load_metric("bleu"), load_metric("rouge")]
    few = EvaluationSettings(resamples=10)
    evaluate([run_of(cases, picks[:1])], metrics, few)  # warm
    one, nine, apart = best_of(
        1,
        lambda: evaluate([run_of(cases, picks[:1])], metrics, few),
        lambda: evaluate([run_of(cases, picks)], metrics, few),
        lambda: selector_by_selector(cases, picks),
    )
    n = len(cases.cases)
    what = f"BLEU and ROUGE of {SELECTORS} selectors, {n} studies × {cases.num_candidates} drafts"
    yield share(what, nine, one, "evaluating one selector", "≤ 1.3")
    named = f"each selector's picks by sacrebleu {sacrebleu.__version__} and rouge-score, 9 and 5 random"
    yield faster(what, nine, apart, named, "≥ 5")
    yield share(*bootstrap(cases, picks[:8], metrics, resamples), "30 s", "≤ 1")


def studies(patients: int) -> Cases:
    """Simulate studies."""
    settings = SimulationSettings(patients=patients)
    lines = [json.dumps(record).encode() for record in simulate_queries(settings)]
    return read_cases(lines, name="simulated")


def uniform(cases: Cases, seed: int) -> Picks:
    """Pick by chance: what is picked does not change the cost."""
    rows = seeded_picks(cases.cases, seed).tolist()
    chosen = {case.query.id: row for case, row in zip(cases.cases, rows, strict=True)}
    return Picks(method=f"m{seed}", signature=f"selector:m{seed}", chosen=chosen, distances={})


def run_of(cases: Cases, picks: Sequence[Picks]) -> RunInput:
    """Return one run."""
    return RunInput(name="run", cases=cases, picks=tuple(picks))


def selector_by_selector(cases: Cases, picks: Sequence[Picks]) -> None:
    """Score each selector's picks, and the five random ones, with the reference libraries."""
    scorer = RougeScorer(list(ROUGE))
    bleus = [sacrebleu.BLEU(max_ngram_order=order, effective_order=True) for order in (1, 2, 3, 4)]
    corpora = [sacrebleu.BLEU(max_ngram_order=order) for order in (1, 2, 3, 4)]
    for selector in [*picks, *(uniform(cases, seed) for seed in range(5))]:
        for section in SECTIONS:
            pairs = [
                (
                    case.query.candidates[selector.chosen[case.query.id]].section(section),
                    case.reference.section(section),
                )
                for case in cases.cases
                if case.reference.section(section)
            ]
            for candidate, reference in pairs:
                scorer.score(reference, candidate)
                for bleu in bleus:
                    bleu.sentence_score(candidate, [reference])
            for bleu in corpora:
                bleu.corpus_score([pair[0] for pair in pairs], [[pair[1] for pair in pairs]])


def bootstrap(
    cases: Cases, picks: Sequence[Picks], metrics: Sequence[Metric], resamples: int
) -> tuple[str, float, float]:
    """Time all intervals and tests of eight methods: 17 scores in two sections, more than 112 cells."""
    run, few = run_of(cases, picks), EvaluationSettings(resamples=1)
    many = EvaluationSettings(resamples=resamples)
    start = perf_counter()
    results = evaluate([run], metrics, few)
    middle = perf_counter()
    evaluate([run], metrics, many)
    seconds = max(perf_counter() - middle - (middle - start), 0.0)
    cells = sum(cell.p is not None for cell in results.cells)
    return f"{resamples:,} resamples and swaps × {cells} cells, {len(cases.cases)} studies", seconds, 30.0
