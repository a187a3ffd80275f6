"""What results, a journal and a cohort know of a study: sentences by the name of the fact, no report text."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tabon.errors import BadInputError
from tabon.evaluation.results import ORACLE, RANDOM, Cell, Results
from tabon.generation.journal import MOST_DOLLARS, read_journal
from tabon.reporting.tables.places import DASH, method_name, number, plan_notes, score_name, section_name

Facts = Mapping[str, tuple[str, ...]]  # sentences by the name of the fact; none where nothing is known

LONGEST_NAME = 120  # characters of what another program named
SOURCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {  # what each source may know
        "results": ("runs", "methods", "scores", "missing", "statistics", "performance", "versions"),
        "journal": ("models", "queried", "parameters", "prompts", "repeats", "images", "outcomes", "cost"),
        "cohort": ("data", "rules", "splits", "excluded", "intervals", "overlap", "egress"),
    }
)


def results_facts(results: Results) -> Facts:
    """Return what a results file knows."""
    settings = results.settings
    versions = settings.get("versions")
    return {
        "runs": tuple(
            f"{run.name}: {run.studies:,} studies of {run.patients:,} patients, {run.drafts:,} drafts"
            + (f", {run.short:,} studies with fewer than asked for" if run.short else "")
            + "".join(f", {method_name(m)} abstained on {n:,}" for m, n in run.abstained.items() if n)
            for run in results.runs
        ),
        "methods": tuple(f"{method_name(name)}: `{what}`" for name, what in results.methods.items()),
        "scores": tuple(_by_signature(results.scores)),
        "missing": tuple(f"{name} was not measured: {reason}" for name, reason in results.missing.items()),
        "statistics": (
            f"95 % intervals from {settings.get('resamples', DASH)} resamples of patients",
            "p from paired randomisation against a random pick; Holm within the headline family",
            f"seed {settings.get('seed', DASH)}",
            *_further_statistics(results),
        ),
        "performance": tuple(_performance(results)),
        "versions": tuple(f"{name} {one}" for name, one in versions.items())
        if isinstance(versions, Mapping)
        else (),
    }


def _further_statistics(results: Results) -> Iterator[str]:
    """Yield what was asked for beside the headline: pairs, groups, a margin, a plan."""
    if results.pairs:
        yield "selectors against each other by the same test; Holm over pairs, headline scores and sections"
    if groups := dict.fromkeys(row.by for row in results.subgroups):
        yield f"groups of studies by {', '.join(map(plain, groups))}, with a test of interaction"
    if (margin := results.settings.get("margin")) is not None:
        yield f"non-inferiority at a margin of {margin:.1%} of the gap"
    yield from plan_notes(results)


def _by_signature(scores: Mapping[str, str]) -> Iterator[str]:
    """Yield each signature after the names of its scores."""
    for signature in dict.fromkeys(scores.values()):
        names = [score_name(score) for score, its in scores.items() if its == signature]
        yield f"{', '.join(names)}: `{signature}`"


def _performance(results: Results) -> Iterator[str]:
    """Yield each method by each score of the headline, beside a random pick and the best one."""
    run = results.main_run()
    for section in results.sections():
        for score in results.headline:
            cells = {
                cell.method: cell
                for cell in results.cells
                if (cell.run, cell.section, cell.score) == (run, section, score) and cell.value is not None
            }
            lines = [_ahead(method, cells[method]) for method in results.methods if method in cells]
            if lines:
                ends = (f"{name} {number(cells[name].value)}" for name in (RANDOM, ORACLE) if name in cells)
                yield f"{score_name(score)}, {section_name(section)}: {'; '.join([*lines, *ends])}"


def _ahead(method: str, cell: Cell) -> str:
    """Write a method's score with its interval, and the share of the gap that it closes."""
    value = f"{method_name(method)} {number(cell.value)} ({number(cell.low)} to {number(cell.high)})"
    return value if cell.gap is None else f"{value}, {cell.gap:.0%} of the gap closed"


def journal_facts(path: Path) -> Facts:
    """Return what a journal of drafts knows of the models and how they were asked."""
    counted: dict[str, Counter[str]] = {name: Counter() for name in SOURCES["journal"]}
    times: list[str] = []
    tokens, cost, samples = 0, 0.0, 0
    for record in read_journal(path):
        served = record["model_version"] or "no version given"
        by = f" by {plain(record['source'])}" if record.get("source") else ""
        counted["models"][f"{plain(record['model'])}{by} (answered as: {plain(served)})"] += 1
        counted["parameters"][plain(json.dumps(record["parameters"], sort_keys=True).strip("{}"))] += 1
        counted["prompts"][plain(record["prompt"])] += 1
        counted["images"]["with an image" if record["image_sha256"] else "without an image"] += 1
        counted["outcomes"][plain(record["outcome"])] += 1
        times.append(plain(record.get("time") or "")[:10])
        samples = max(samples, record["sample"] + 1)
        tokens += sum(n for n in (record["input_tokens"], record["output_tokens"]) if isinstance(n, int))
        paid = record["cost"]
        cost += paid if isinstance(paid, int | float) and 0 <= paid <= MOST_DOLLARS else 0.0
    facts = {
        name: tuple(f"{what}: {n:,} responses" for what, n in sorted(c.items()))
        for name, c in counted.items()
    }
    days = sorted(filter(None, times))
    facts["queried"] = (f"first response {days[0]}, last {days[-1]}",) if days else ()
    if times:
        facts["repeats"] = (
            f"up to {samples} samples per study, model and prompt, each with a seed of its own",
        )
        facts["cost"] = (f"{tokens:,} tokens, {cost:.2f} dollars as far as prices were given",)
    return facts


def cohort_facts(folder: Path) -> Facts:
    """Return what a cohort folder knows of where its data came from and what was left out."""
    cohort, audit = (_object(folder / name) for name in ("cohort.json", "audit.json"))
    try:
        overlap = audit["test_references_also_in_the_bank"]
        splits = audit["splits"].items()
        return {
            "data": (f"data set: {plain(cohort['dataset'])}", *_sentence(cohort.get("note"))),
            "rules": tuple(f"{plain(name)}: {plain(rule)}" for name, rule in cohort["rules"].items()),
            "splits": tuple(
                f"{name}: {counts['patients']:,} patients, {counts['visits']:,} visits, "
                f"{counts['transitions']:,} transitions"
                for name, counts in splits
            ),
            "excluded": tuple(f"{plain(why)}: {count:,} rows" for why, count in audit["excluded"].items()),
            "intervals": tuple(
                f"{name}: days between visits, {', '.join(f'{rank} {day:,}' for rank, day in days.items())}"
                for name, days in ((name, counts["days_between_visits"]) for name, counts in splits)
                if days
            ),
            "overlap": (
                f"{overlap['count']:,} of {overlap['of']:,} test reports are also in the training split",
                "splits share no patient",
            ),
            "egress": (f"text may be sent to: {plain(cohort['egress'])}",),
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadInputError(f"{folder} is no whole cohort; make it again with `tabon cohort`") from None


def _object(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}); name a cohort folder") from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadInputError(f"{path} is no JSON object; make the cohort again with `tabon cohort`")
    return found


def _sentence(note: object) -> Iterable[str]:
    """Return a note as a sentence if there is one."""
    return [plain(note)] if note else []


def plain(value: object) -> str:
    r"""Write what another program named on one line, not too long, and without Markdown.

    >>> plain("a\n# [b](c) | <d>")
    'a # (b)(c) / (d)'
    """
    text = " ".join(str(value).split()).translate(str.maketrans("[]<>|`*", "()()/''"))
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def source_of(fact: str) -> str:
    """Return which source knows a fact."""
    return next(source for source, names in SOURCES.items() if fact in names)
