"""Before money is spent: everything that a run of an experiment needs, and what it takes.

Nothing is asked of a provider, fetched or written.
"""

import shutil
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from time import perf_counter

from tabon.cli.generate import NO_KEY, estimate, model_options_of, what_lacks
from tabon.data.simulate import simulate_transitions
from tabon.encoders import Encoder, load_encoder
from tabon.encoders.load import ENCODERS, load_built_in
from tabon.errors import TabonError
from tabon.generation.prompts import get_prompt
from tabon.generation.protocol import Parameters
from tabon.generation.providers.names import make_generator
from tabon.generation.runner import read_price
from tabon.generation.tasks import Asking, count_studies, read_split, tasks
from tabon.method.distances import DISTANCES
from tabon.reporting.experiment import Experiment
from tabon.reporting.experiment.plan import RunPlan
from tabon.reporting.experiment.runner import JOURNAL, step_count
from tabon.text.reports import SECTIONS

SECONDS_PER_DRAFT, AT_ONCE = 3.0, 8  # taken for a model over a network, and how many drafts are in flight
SENTENCES_PER_REPORT = 6
BYTES_PER_DRAFT = 6_000  # in the journal with its raw body, in the queries and in the measurements
TRIED = tuple(f"The {word} is unchanged and clear on view {number}." for number in range(32) for word in "ab")
HOUR, MINUTE = 3600, 60
LOCAL = ("hf", "command", "smollm2", "replay")


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a run takes, and what it lacks."""

    lines: tuple[str, ...]
    lacking: tuple[str, ...]


def preflight(plan: Experiment, out: Path, missing: dict[str, str], *, limit: int | None = None) -> Preflight:
    """Look at cohort, images, models, keys, prices, encoder, weights, cap and disk of an experiment."""
    lacking = [f"metric {name}: {reason}" for name, reason in missing.items()]
    encoder = _encoder(plan.selection.encoder, lacking)
    studies, drafts, cost, spent = _drafts(plan, out, lacking, limit)
    training = _training(plan, lacking)
    reports = 2 * training + studies * (2 + plan.drafts.samples * len(plan.runs))
    sentences = reports * SENTENCES_PER_REPORT
    dimension = encoder.fingerprint.dimension if encoder is not None else 768
    asked = drafts if any(run.model.partition(":")[0] not in LOCAL for run in plan.runs) else 0
    lines = [
        f"steps     {step_count(plan)}: {len(plan.runs)} runs, metrics {', '.join(plan.evaluation.metrics)}",
        f"drafts    {drafts:,} to write, for {studies:,} studies",
        f"cost      {'not known' if cost is None else f'${cost:,.2f}'} at most",
        (
            f"time      {_hours(asked * SECONDS_PER_DRAFT / AT_ONCE)} for drafts "
            f"({SECONDS_PER_DRAFT:g} s each, {AT_ONCE} at once), "
            f"{_embedding_time(encoder, sentences)}; metrics: see with --limit 20"
        ),
    ]
    rows = training * len(SECTIONS) * (len(DISTANCES) + SENTENCES_PER_REPORT)
    needed = rows * dimension * 4 + sentences * dimension * 4 + drafts * BYTES_PER_DRAFT
    free = shutil.disk_usage(next(each for each in (out, *out.absolute().parents) if each.exists())).free
    lines.append(f"disk      about {needed / 1e9:.1f} GB of {free / 1e9:.1f} GB free, in {out}")
    if needed > free:
        lacking.append(f"disk: {out} has {free / 1e9:.1f} GB free, about {needed / 1e9:.1f} GB are needed")
    if plan.drafts.cap and cost is not None and spent + cost > plan.drafts.cap:
        beside = f" beside the ${spent:,.2f} that the journal has cost" if spent else ""
        wanted = f"cap: it may cost ${cost:,.2f}{beside}, and `cap` is {plan.drafts.cap:g}"
        lacking.append(f"{wanted}; raise it or use --limit")
    return Preflight(tuple(lines), tuple(dict.fromkeys(lacking)))


def _encoder(spec: str, lacking: list[str]) -> Encoder | None:
    """Load the encoder from this machine alone."""
    try:
        name = spec.partition("?")[0]
        if name in ENCODERS:
            return load_built_in(spec)
        if "/" not in name or Path(name).is_dir():
            return load_encoder(spec)
    except TabonError as error:
        lacking.append(f"encoder: {error}")
        return None
    lacking.append(f"encoder: there is no folder {spec!r} here; it would have to be fetched")
    return None


def _training(plan: Experiment, lacking: list[str]) -> int:
    """Count the training transitions."""
    if plan.cohort.patients:
        return sum(1 for _ in simulate_transitions(plan.cohort.simulation(), "train"))
    try:
        return sum(1 for _ in read_split(plan.root / plan.cohort.folder, "train"))
    except TabonError as error:
        lacking.append(f"cohort: {error}")
        return 0


def _drafts(
    plan: Experiment, out: Path, lacking: list[str], limit: int | None
) -> tuple[int, int, float | None, float]:
    """Count studies and the drafts that the journal lacks, what these may cost, and what others have cost."""
    if plan.cohort.patients:
        visits = simulate_transitions(plan.cohort.simulation(), plan.cohort.split)  # type: ignore[arg-type]
        return sum(1 for _ in islice(visits, limit)), 0, 0.0, 0.0
    studies, drafts, cost, spent = 0, 0, 0.0, 0.0
    known = True
    for run in plan.runs:
        try:
            studies, found, price, spent = _of_run(plan, run, out, lacking, limit)
        except TabonError as error:
            lacking.append(f"drafts: {error}")
            known = False
            continue
        drafts, known = drafts + found, known and price is not None
        cost += price or 0.0
    return studies, drafts, cost if known else None, spent


def _of_run(
    plan: Experiment, run: RunPlan, out: Path, lacking: list[str], limit: int | None
) -> tuple[int, int, float | None, float]:
    """Count the same of one run; the journal is that of all."""
    cohort, asked = plan.root / plan.cohort.folder, plan.drafts
    options = model_options_of(run.model, run.base_url or None, run.command or None)
    generator = make_generator(run.model, replace(options, api_key=options.api_key or NO_KEY))
    lacking += what_lacks(cohort, run.model, options, generator, run.price or None)
    asking = Asking(
        prompts=(get_prompt(run.prompt),),
        samples=asked.samples,
        parameters=Parameters(temperature=asked.temperature, max_tokens=asked.max_tokens),
        seed=asked.seed,
        images=plan.root / asked.images if asked.images else None,
        limit=limit,
    )
    studies = count_studies(cohort, plan.cohort.split, asking)
    left_out: list[str] = []
    wanted = tasks(cohort, plan.cohort.split, generator, asking, left_out)
    price = read_price(run.price) if run.price else None
    found = estimate(wanted, out / JOURNAL, price, generator)
    if left_out:
        lacking.append(
            f"images: {len(left_out)} studies would get no drafts, the first because {left_out[0]}"
        )
    return studies, found["drafts"], found["most_it_may_cost"], found["spent_so_far"]


def _embedding_time(encoder: Encoder | None, sentences: int) -> str:
    """Say how long the sentences take to embed, by a trial on this machine."""
    if encoder is None:
        return "embedding not tried"
    begin = perf_counter()
    encoder.encode(list(TRIED))
    each = (perf_counter() - begin) / len(TRIED)
    return f"{_hours(each * sentences)} to embed about {sentences:,} sentences here"


def _hours(seconds: float) -> str:
    """Write a time as people say it."""
    return f"{seconds / HOUR:.1f} h" if seconds >= HOUR else f"{seconds / MINUTE:.0f} min"
