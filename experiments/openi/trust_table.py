"""Learn the table of trust of `fused` from development seeds: TABLE in tabon.selectors.fused.trust.

    python experiments/openi/trust_table.py parts ARCHIVE --seeds 100-103
    python experiments/openi/trust_table.py parts ARCHIVE --cohorts 20,21 --queries 200
    python experiments/openi/trust_table.py learn

`parts` measures what every draft is worth, its parts and its query's signs, and stores
them as arrays, one file for each setting and seed; what is stored is not measured again.
`learn` fits the table to all that is stored and prints it. No reserved report is read.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import simulated
from build import build, seed_folder
from kinds import RIVALS, Judged, Table, measure
from plan import Plan, numbers, read_plan
from selecting import SeedRun, Tools

from run import tell
from tabon._internal.atomic_files import replacing
from tabon.errors import BadInputError, TabonError
from tabon.evaluation.draft_scores import state_f1
from tabon.selectors import make_batch
from tabon.selectors.fused.agreement import pools
from tabon.selectors.fused.samples import apart
from tabon.selectors.fused.scorer import Evidence, Fused
from tabon.selectors.fused.trust import EVERY, PARTS, SIGNS, TABLE, UNUSUAL, Row
from tabon.selectors.scorer import Batch
from tabon.selectors.similarity import load_distance
from tabon.text.reports import SECTIONS, Section

if TYPE_CHECKING:
    from torch import Tensor

OPENI, SIMULATED = "openi", "simulated"
COUNTS = {OPENI: 1.0, SIMULATED: 0.8}  # of a setting, among all
MANY = 16  # drafts of a query from which half of the queries will do
NOWHERE = 99.0  # the distance of a draft without the section

AIMS = (0.3, 0.3, 0.09)  # Impressions, Findings, labels: the order of `measure`
BEHIND, MARGIN = 4.0, 1.0  # what a point costs that is not ahead of the best rival by the margin
ASKED = {"codes": (47.0, 27.0, 0.0)}  # kinds of Open-i drafts of which more is asked than of rivals
RATE, DECAY = 0.02, 0.02  # of AdamW
BOUNDS = (-10.0, 7.0)  # of the logarithm of a weight
STEP = 0.05  # slopes are rounded to this


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """One setting, all its seeds together."""

    counts: float
    parts: Table  # (queries, sections, drafts, parts), above the mean of the query's drafts
    signs: Table  # (queries, signs); NaN where a query has none
    worth: Table  # (scores, queries, drafts)
    rivals: Table  # (scores,): the share of the gap that the best of them closes, in percent


def store_parts(asked: argparse.Namespace, plan: Plan) -> None:
    """Measure and store every setting of the seeds and cohorts that were asked for."""
    tools = Tools(plan.selection, asked.out / "sentences.sqlite", tell)
    for source, name, seed, folder in made(asked, plan):
        path = asked.out / "arrays" / source / name / f"{seed}.npz"
        if path.exists():
            continue
        tell(f"{path}: measuring")
        many = int(name.rpartition("-")[2]) >= MANY
        arrays = measure_parts(SeedRun(folder, seed, tools), asked.queries // 2 if many else asked.queries)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as written:
            np.savez_compressed(written, **arrays)


def made(asked: argparse.Namespace, plan: Plan) -> Iterator[tuple[str, str, int, Path]]:
    """Write the queries of every setting and seed; yield its source, its name, its seed and where it is."""
    seeds, cohorts = (numbers(text) if text else () for text in (asked.seeds, asked.cohorts))
    names = [name for name in plan.kind_settings if name in (asked.settings or [name])]
    build(asked.archive, asked.out / OPENI, plan, names, seeds, "dev")
    for seed in seeds:
        for name in names:
            yield OPENI, name, seed, seed_folder(asked.out / OPENI, name, seed, stage="dev")
    names = [name for name in simulated.settings(plan) if name in (asked.settings or [name])]
    simulated.build(asked.out / SIMULATED, plan, names, cohorts, asked.queries)
    for seed in cohorts:
        for name in names:
            yield SIMULATED, name, seed, seed_folder(asked.out / SIMULATED, name, seed)


def measure_parts(run: SeedRun, count: int) -> dict[str, Table]:
    """Measure the first queries of a seed: all that a table is learnt from."""
    cases = replace(run.cases, cases=run.cases.cases[:count])
    batch = make_batch([case.query for case in cases.cases], run.bank, run.tools.encoder, run.tools.store)
    fused, words = Fused(run.bank), load_distance("rouge-l-f")
    evidence = fused.evidence(batch)
    parts = np.array([[evidence.parts[section][part] for part in PARTS] for section in SECTIONS])
    parts = parts.reshape(*parts.shape[:2], len(cases.cases), -1).transpose(2, 0, 3, 1)
    size = np.array([apart(run.bank, words, section).std for section in SECTIONS])[:, None]
    picks = [
        np.nan_to_num(parts[..., PARTS.index(rival.selector)] * size, nan=NOWHERE).sum(axis=1).argmin(axis=1)
        for rival in RIVALS
    ]
    return {
        "parts": parts,
        "signs": np.array(list(read_signs(fused, batch, evidence))),
        "worth": with_states(measure(cases), run.folder / "test.jsonl"),
        "picks": np.array(picks),
    }


def with_states(worth: Table, queries: Path) -> Table:
    """Put the F1 of the states in the place of that of the labels, where the simulator says what they are."""
    records = [json.loads(line) for line in queries.read_bytes().splitlines()[: worth.shape[1]]]
    if all("state" in draft for record in records for draft in record["candidates"]):
        worth[-1] = [
            [state_f1(draft["state"], record["state"]) for draft in record["candidates"]]
            for record in records
        ]
    return worth


def read_signs(fused: Fused, batch: Batch, evidence: Evidence) -> Iterator[list[float]]:
    """Yield the signs of each query in the order of SIGNS; NaN where it has none."""
    words = load_distance("rouge-l-f")
    drafts = [pools(batch, section, words) for section in SECTIONS]
    for each in zip(*drafts, strict=True):
        pool = dict(zip(SECTIONS, each, strict=True))
        own = {
            section: {part: evidence.parts[section][part][pool[section].rows] for part in PARTS}
            for section in SECTIONS
        }
        signs = fused._signs(pool, own)  # noqa: SLF001  what the selector itself reads
        yield [signs.get(name, np.nan) for name in SIGNS]


def read_lessons(folder: Path) -> list[Lesson]:
    """Read all arrays; the seeds of a setting are one lesson."""
    found = []
    for source, counts in COUNTS.items():
        for setting in sorted((folder / source).glob("*")):
            seeds = [dict(np.load(path)) for path in sorted(setting.glob("*.npz"))]
            parts, signs = (np.concatenate([seed[name] for seed in seeds]) for name in ("parts", "signs"))
            worth, picks = (
                np.concatenate([seed[name] for seed in seeds], axis=1) for name in ("worth", "picks")
            )
            there = ~np.isnan(parts)
            middle = np.nansum(parts, axis=2) / np.maximum(there.sum(axis=2), 1)
            judged = Judged(setting.name, worth, dict(zip(RIVALS, picks, strict=True)), np.zeros(0))
            centred = np.nan_to_num(parts - middle[:, :, None])
            asked = ASKED.get(setting.name.partition("-")[0]) if source == OPENI else None
            rivals = judged.best(RIVALS) if asked is None else np.maximum(judged.best(RIVALS), asked)
            found.append(Lesson(counts, centred, signs, worth, rivals))
    if not found:
        raise BadInputError(f"{folder}: no arrays; store them with `parts` first")
    return found


def fit(lessons: Sequence[Lesson], steps: int) -> dict[Section, dict[str, Row]]:
    """Learn each row by AdamW, full batch, under a soft choice that gets harder."""
    import torch

    def tensor(values: object) -> "Tensor":
        return torch.tensor(np.array(values), dtype=torch.float32)

    middles, sizes = np.array(list(SIGNS.values())).T
    shown = [
        (
            tensor(lesson.parts.transpose(0, 2, 1, 3).reshape(*lesson.worth.shape[1:], -1)),
            tensor(np.nan_to_num((lesson.signs - middles) / sizes).clip(-UNUSUAL, UNUSUAL)),
            tensor(lesson.worth),
        )
        for lesson in lessons
    ]
    rivals, counts = tensor([lesson.rivals for lesson in lessons]), tensor([each.counts for each in lessons])
    share = (counts / counts.mean())[:, None]
    weigh = torch.nn.Linear(len(SIGNS), len(EVERY))  # logarithms of weights
    for start in weigh.parameters():
        torch.nn.init.zeros_(start)

    def closed(parts: "Tensor", unusual: "Tensor", worth: "Tensor", heat: float) -> "Tensor":
        weights = torch.exp(weigh(unusual).clamp(*BOUNDS))
        choice = torch.softmax(-(parts * weights[:, None]).sum(dim=2) / heat, dim=1)
        chance, best = worth.mean(dim=(1, 2)), worth.amax(dim=2).mean(dim=1)
        return 100 * ((worth * choice).sum(dim=2).mean(dim=1) - chance) / (best - chance)

    optimiser = torch.optim.AdamW(weigh.parameters(), lr=RATE, weight_decay=DECAY)
    for step in range(steps):
        left = 1 - step / steps
        optimiser.param_groups[0]["lr"] = RATE * min(1.0, 3 * left + 0.02)
        heat = 1 + 2 * max(0.0, 2 * left - 1)
        found = torch.stack([closed(*each, heat) for each in shown])
        behind = torch.nn.functional.softplus(rivals + MARGIN - found)
        loss = (share * (BEHIND * behind - tensor(AIMS) * found)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return rounded(weigh.bias.detach().double().numpy(), weigh.weight.detach().double().numpy())


def rounded(bases: Table, slopes: Table) -> dict[Section, dict[str, Row]]:
    """Return rows with bases of two digits, 1 in the mean, and rounded slopes."""
    found: dict[Section, dict[str, Row]] = {section: {} for section in SECTIONS}
    weights, kept = np.exp(bases) / np.exp(bases).mean(), np.round(slopes / STEP) * STEP
    for (section, part), weight, own in zip(EVERY, weights, kept, strict=True):
        found[section][part] = Row(
            float(f"{weight:.2g}"), tuple(round(float(slope), 2) + 0.0 for slope in own)
        )
    return found


def lines(table: Mapping[Section, Mapping[str, Row]]) -> Iterator[str]:
    """Yield TABLE as it is written down, and how far it is from the one in use."""
    for section, rows in table.items():
        yield f'"{section}":'
        for part, row in rows.items():
            yield f'    "{part}": Row({row.base:g}, ({", ".join(f"{slope:g}" for slope in row.slopes)})),'
    pairs = [(table[section][part], TABLE[section][part]) for section, part in EVERY]
    bases = [abs(np.log(new.base / old.base)) for new, old in pairs]
    slopes = np.abs([np.subtract(new.slopes, old.slopes) for new, old in pairs])
    yield (
        f"# from the one in use: bases differ by × {np.exp(max(bases)):.2f} at most, slopes by "
        f"{slopes.max():.2f} (in the mean × {np.exp(np.mean(bases)):.2f} and {slopes.mean():.2f})"
    )


def arguments() -> argparse.ArgumentParser:
    """Return the options of both steps."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step", required=True)
    parts, learn = steps.add_parser("parts"), steps.add_parser("learn")
    for each in (parts, learn):
        each.add_argument("--out", type=Path, default=Path(__file__).with_name("output") / "trust")
    parts.add_argument("archive", type=Path, help="NLMCXR_reports.tgz")
    parts.add_argument("--seeds", default="", help="of Open-i, stage dev, such as 100-103")
    parts.add_argument("--cohorts", default="", help="seeds of simulated cohorts, such as 20,21")
    parts.add_argument("--settings", nargs="+", help="such as codes-low-5; default: all")
    parts.add_argument("--queries", type=int, default=500, help="of a seed; half where drafts are 16")
    learn.add_argument("--steps", type=int, default=400, help="of AdamW")
    return parser


def main() -> int:
    """Do the step that was asked for; say why where that cannot be done."""
    asked = arguments().parse_args()
    try:
        if asked.step == "parts":
            store_parts(asked, read_plan())
        else:
            print("\n".join(lines(fit(read_lessons(asked.out / "arrays"), asked.steps))))
    except TabonError as error:
        tell(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
