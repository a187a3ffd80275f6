"""A made-up evaluation for tests of what is made from results: no number in it was measured.

Three runs, two sections and the whole report, the paper's eight methods and a rival. RadGraph is missing,
one cell was measured on no study, two methods tie, one run is short of drafts, one method abstained.
"""

from dataclasses import replace

from tabon.evaluation.results import MEAN_RUN, ORACLE, RANDOM, RANDOM_SEEDS, Cell, Results, Run

COLUMNS = {"BLEU-1": "bleu-1", "BERTSc": "bertscore-f1", "RadGraph": "radgraph-average"}
METHODS = (
    "mean-shift/min",
    "mean-shift/knn",
    "novelty/min",
    "novelty/knn",
    "dir-hausdorff/min",
    "dir-hausdorff/knn",
    "cost-ot/min",
    "cost-ot/knn",
    "longest_report",
)
RUNS = ("Gemini-2.5-FL P1", "Gemini-2.5-FL P2", "Other & Sons P1")
BASE = {"bleu-1": 0.2, "bertscore-f1": 0.1, "comparisons-f1": 0.4}
SECTIONS = {"bleu-1": ("findings", "impression"), "bertscore-f1": ("findings", "impression")}
STUDIES = (40, 40, 36)


def random_value(run, section, score):
    """The made-up worth of a random pick."""
    return BASE[score] + 0.03 * run - (0.05 if section == "impression" else 0.0)


def gain(method, run):
    """The made-up gain of a method, negative for some; two methods are equal."""
    place = min(METHODS.index(method), 7) if method in METHODS else 12
    return (place - 2) * 0.0031 - 0.002 * run


def cell(run, section, method, score):
    """One made-up cell of a run, with every field where it has one."""
    base, n = random_value(run, section, score), STUDIES[run]
    plain = Cell(run=RUNS[run], section=section, method=method, score=score, value=base, n=n)
    if method == RANDOM:
        return replace(plain, low=base - 0.01, high=base + 0.01)
    delta = 0.0004 if method == RANDOM_SEEDS else gain(method, run)
    changed = replace(plain, value=base + delta, delta=delta, relative=delta / base)
    if method in (RANDOM_SEEDS, ORACLE):
        return changed
    return replace(
        changed,
        low=base + delta - 0.01,
        high=base + delta + 0.01,
        delta_low=delta - 0.004,
        delta_high=delta + 0.004,
        gap=delta / 0.03,
        gap_low=delta / 0.03 - 0.1,
        gap_high=delta / 0.03 + 0.1,
        p=0.0004 if delta > 0.01 else 0.2,
        holm=0.004 if delta > 0.01 else 1.0,
        bh=0.0008 if delta > 0.01 else 0.25,
        wins=n // 2,
        ties=n // 4,
        losses=n - n // 2 - n // 4,
    )


def mean_cell(cells):
    """The mean over runs of the cells of one place; its change is against the mean of random."""
    names = ("value", "low", "high", "delta", "delta_low", "delta_high", "gap", "gap_low", "gap_high")
    numbers = {name: [getattr(each, name) for each in cells] for name in names}
    means = {name: None if None in found else sum(found) / len(found) for name, found in numbers.items()}
    if means["delta"] is not None:
        means["relative"] = means["delta"] / (means["value"] - means["delta"])
    return replace(cells[0], run=MEAN_RUN, n=sum(each.n for each in cells), **means)


def made_up(*, methods=METHODS, runs=(0, 1, 2)):
    """The evaluation, or one of fewer methods or runs; the holes stand where the module says."""
    cells = []
    for score, sections in SECTIONS.items():
        for section in sections:
            for method in (*methods, RANDOM, RANDOM_SEEDS, ORACLE):
                of_runs = [cell(run, section, method, score) for run in runs]
                cells += of_runs + ([mean_cell(of_runs)] if len(runs) > 1 else [])
    cells.append(cell(runs[0], "report", methods[0], "comparisons-f1"))
    hollow = (RUNS[0], "impression", "novelty/min", "bertscore-f1")
    return Results(
        cells=tuple(
            Cell(run=c.run, section=c.section, method=c.method, score=c.score, value=None, n=0)
            if (c.run, c.section, c.method, c.score) == hollow
            else c
            for c in cells
        ),
        runs=tuple(_run(run, methods) for run in runs),
        scores={
            "bleu-1": "bleu|tokenizer:13a|v:1",
            "bertscore-f1": "bertscore|model:roberta-large|v:1",
            "comparisons-f1": "temporal|v:1",
        },
        missing={"radgraph": "the weights are not here; fetch them with `tabon doctor`."},
        methods={method: f"distance:{method}|bank:0123456789ab" for method in methods},
        headline=tuple(COLUMNS.values()),
        settings={"seed": 0, "resamples": 100, "versions": {"tabon": "0.1.0"}},
        facts={"curves": [], "report": {"title": "Made up"}},
    )


def with_values(values, score="bleu-1", random=0.0):
    """The made-up results with given values of the methods, and of random, in the mean of Findings."""
    results = made_up()
    cells = tuple(
        replace(cell, value=values[cell.method], delta=values[cell.method] and values[cell.method] - random)
        if (cell.run, cell.section, cell.score) == (MEAN_RUN, "findings", score) and cell.method in values
        else cell
        for cell in results.cells
    )
    return replace(results, cells=cells)


def _run(run, methods):
    """One made-up run; the last is short, in the first Novelty / min abstained."""
    model, _, prompt = RUNS[run].rpartition(" ")
    return Run(
        name=RUNS[run],
        model=model,
        prompt=prompt,
        queries=f"{run}" * 64,
        studies=STUDIES[run],
        patients=STUDIES[run] // 2,
        drafts=5 * STUDIES[run],
        short=3 if run == 2 else 0,
        abstained={"novelty/min": 2} if run == 0 and "novelty/min" in methods else {},
    )
