"""Judge the zero policies under the paper's eight methods on every data set, and write one page.

    python experiments/openi/zero.py ARCHIVE --seeds 5000,5001 --cohorts 50,51

The data sets of kinds.py and simulated.py, and the cohort of `tabon demo`. What was picked from the
same inputs before is not picked again. The page is ZERO.md beside this file.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import simulated
from build import arguments, build, seed_folder
from kinds import measure, write_page
from numpy.typing import NDArray
from plan import Plan, numbers, read_plan
from policies import ARMS, METHODS, POLICIES, Arm, Policy, Rows, Table, picks, repeats_impression
from selecting import SeedRun, Tools, code_digest

from run import tell
from tabon._internal.atomic_files import replacing
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.errors import TabonError
from tabon.evaluation.statistics import bootstrap_weights, patient_rows, sum_by_patient
from tabon.reporting.experiment.runner import Steps, file_digest, write_lines

RESAMPLES = 2000
INSIDE = (0.025, 0.975)  # the percentiles of a 95 % interval
SCORES = ("Impressions ROUGE-L", "Findings ROUGE-L", "labels of the report")  # as `measure` gives them
METHOD_NAMES = tuple(f"{distance}/{aggregate}" for distance, aggregate in METHODS)
PICKING = Path(__file__).with_name("policies.py")
RIVALS: tuple[Policy, ...] = ("neutral", "match")  # what could be the default
DEMO = "demo"
DEMO_COHORT = SimulationSettings(seed=0, patients=2500)  # as `tabon demo` has it
HEAD = """
# The zero policy

A draft that repeats the prior has no transition, and eq. 9 is 0/0. The paper does not say what then. This
page measures what each [policy](../../docs/decisions/zero-transitions.md) does to its eight methods. `usual`
is a fourth policy that is not in tabon: no change is as far as the distance that a share p of the bank's own
changes exceed, p being the share of the bank's transitions without change. So no change beats as many real
changes as there are real reports without change.

Figures are shares of the random → oracle gap closed, in %, one draft for both sections, with 95 % intervals
over patients: all queries of a patient together, 2,000 resamples; a mean over data sets is resampled as one.
The data sets are those of [KINDS](KINDS.md) and [SIMULATED](SIMULATED.md), and the cohort of `tabon demo`.
Policies were tried on Open-i's seeds 100 and 101 of stage `dev` and on simulated cohort 20; for them
the seeds of this page were scored once. The default is the policy with the largest mean over everything
(*all*), if the interval of its lead over `neutral`, the default before, leaves out 0.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One data set: whose each query is, what every draft is worth, and which one each arm takes."""

    name: str
    patients: tuple[str, ...]
    worth: Table  # (scores, queries, drafts)
    repeats: NDArray[np.bool_]  # (queries, 1 + drafts): who has the prior's Impression; reference first
    picks: Rows  # (arms, queries)

    def gains(self) -> Table:
        """Return what each arm gains over a random pick, (queries, arms, scores)."""
        taken = self.worth[:, np.arange(len(self.patients)), self.picks]
        gained: Table = (taken - self.worth.mean(axis=2)[:, None]).transpose(2, 1, 0)
        return gained

    def gaps(self) -> Table:
        """Return how much better than a random pick the best draft is, (queries, scores)."""
        gaps: Table = (self.worth.max(axis=2) - self.worth.mean(axis=2)).T
        return gaps

    def repeated(self) -> list[float]:
        """Return the shares of references and of drafts with the prior's Impression, and the picks."""
        reference, drafts = self.repeats[:, 0], self.repeats[:, 1:]
        mixed = np.flatnonzero(drafts.any(axis=1) & ~drafts.all(axis=1))
        picked = drafts[mixed, self.picks[:, mixed]].sum(axis=1)  # of each arm
        taken = [np.mean([picked[ARMS.index(arm)] for arm in arms_of(policy)]) for policy in POLICIES]
        return [reference.mean(), drafts.mean(), len(mixed), drafts[mixed].mean(axis=1).sum(), *taken]


@dataclass(frozen=True, eq=False)
class Family:
    """Data sets that share their patients."""

    name: str
    sets: Sequence[Judged]

    @cached_property
    def closed(self) -> Table:
        """Return the share of the gap closed, (sets, 1 + resamples, arms, scores); row 0 is the data."""
        rows = patient_rows([patient for one in self.sets for patient in one.patients])
        count = int(rows.max()) + 1
        drawn = bootstrap_weights(count, RESAMPLES, np.random.default_rng(0))
        weights, found, end = np.vstack([np.ones(count), drawn]), [], 0
        for one in self.sets:
            start, end = end, end + len(one.patients)
            gains, gaps = (sum_by_patient(part, rows[start:end], count) for part in (one.gains(), one.gaps()))
            gained = (weights @ gains.reshape(count, -1)).reshape(-1, *gains.shape[1:])
            whole = np.broadcast_to((weights @ gaps)[:, None], gained.shape)
            found.append(100 * np.divide(gained, whole, out=np.full_like(gained, np.nan), where=whole > 0))
        return np.stack(found)

    def share(self, policy: Policy, *, other_prior: bool = False) -> Table:
        """Return the mean over the eight methods, (sets, 1 + resamples, scores)."""
        mean: Table = np.mean([self.of(arm) for arm in arms_of(policy, other_prior=other_prior)], axis=0)
        return mean

    def of(self, arm: Arm) -> Table:
        """Return the share of one arm, (sets, 1 + resamples, scores)."""
        share: Table = self.closed[:, :, ARMS.index(arm)]
        return share


def judge(run: SeedRun, name: str, cohort: str = "") -> Judged:
    """Pick with every arm on one seed of a data set, and measure every draft once."""
    path = run.folder / "zero.npz"
    inputs = [run.cases.sha256, run.bank.sha256, code_digest(), file_digest(PICKING)]

    def work() -> None:
        tell(f"{run.folder}: picking")
        taken = picks(run)
        with replacing(path) as file:
            np.savez(file, worth=measure(run.cases), picks=np.stack([taken[arm] for arm in ARMS]))

    Steps(run.folder).make(path, inputs, work)
    reports = [(case.query.prior, case.reference, *case.query.candidates) for case in run.cases.cases]
    repeats = [[repeats_impression(report, prior) for report in others] for prior, *others in reports]
    with np.load(path) as arrays:
        return Judged(
            name,
            tuple(f"{cohort}{case.patient}" for case in run.cases.cases),
            arrays["worth"],
            np.array(repeats),
            arrays["picks"],
        )


def together(parts: Sequence[Judged]) -> Judged:
    """Return all seeds of a data set as one."""
    return Judged(
        parts[0].name,
        tuple(patient for part in parts for patient in part.patients),
        np.concatenate([part.worth for part in parts], axis=1),
        np.concatenate([part.repeats for part in parts]),
        np.concatenate([part.picks for part in parts], axis=1),
    )


def openi(out: Path, plan: Plan, seeds: tuple[int, ...], stage: str) -> Family:
    """Judge every kind of drafts of real reports; a patient is the same in every seed."""
    tools = Tools(plan.selection, out / "sentences.sqlite", tell)
    return Family(
        "Open-i",
        [
            together(
                [
                    judge(SeedRun(seed_folder(out, name, seed, stage=stage), seed, tools), name)
                    for seed in seeds
                ]
            )
            for name in plan.kind_settings
        ],
    )


def simulation(out: Path, plan: Plan, cohorts: tuple[int, ...]) -> Family:
    """Judge every kind of drafts of simulated reports, and the demo's own."""
    tools = Tools(plan.selection, out / "sentences.sqlite", tell)
    asked = {**dict.fromkeys(simulated.settings(plan), cohorts), DEMO: (DEMO_COHORT.seed,)}
    return Family(
        "simulated",
        [
            together(
                [
                    judge(SeedRun(seed_folder(out, name, seed), seed, tools), name, f"{name == DEMO}:{seed}:")
                    for seed in seeds
                ]
            )
            for name, seeds in asked.items()
        ],
    )


def build_demo(out: Path) -> None:
    """Write the bank's transitions and the queries of `tabon demo`."""
    folder = seed_folder(out, DEMO, DEMO_COHORT.seed)
    write_lines(folder / "train.jsonl", simulate_transitions(DEMO_COHORT, "train"))
    write_lines(folder / "test.jsonl", simulate_queries(DEMO_COHORT, "test"))


def estimate(values: Table) -> str:
    """Write a figure, the first of the values, with the interval of the others.

    >>> estimate(np.array([3.0, 1.0, 1.0, 5.0]))
    '3 [1, 5]'
    """
    low, high = np.quantile(values[1:], INSIDE)  # a dash where a resample has no gap to close
    return f"{_whole(values[0])} [{_whole(low)}, {_whole(high)}]"


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table and a line behind it."""
    yield f"| {' | '.join(names)} |"
    yield "|---" * len(names) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def page(families: Sequence[Family]) -> Iterator[str]:
    """Yield everything that is under the head."""
    yield from means(families)
    for family in families:
        yield from copies(family)
    for family in families:
        yield from controls(family)
    for family in families:
        yield from details(family)


def means(families: Sequence[Family]) -> Iterator[str]:
    """Yield the means over data sets, by policy and by method."""
    yield "## In the mean\n"
    yield "Over the eight methods and all data sets; *all*: the mean of both families and the three scores.\n"
    shares = {policy: [family.share(policy).mean(axis=0) for family in families] for policy in POLICIES}

    def row(name: str, values: Sequence[Table]) -> list[str]:
        each = [estimate(family[:, score]) for family in values for score in range(len(SCORES))]
        return [name, *each, estimate(np.mean(values, axis=(0, 2)))]

    rows = [row(f"`{policy}`", values) for policy, values in shares.items()]
    for policy in POLICIES[1:]:
        leads = [ours - other for ours, other in zip(shares[policy], shares[POLICIES[0]], strict=True)]
        rows.append(row(f"`{policy}` less `{POLICIES[0]}`", leads))
    columns = [f"{family.name}, {score}" for family in families for score in SCORES]
    yield from table(["policy", *columns, "all"], rows)
    for family in families:
        for place, score in enumerate(SCORES):
            yield f"**{family.name}, {score}**, by method:\n"
            yield from table(
                ["policy", *METHOD_NAMES],
                [
                    [
                        f"`{policy}`",
                        *(estimate(family.of(arm).mean(axis=0)[:, place]) for arm in arms_of(policy)),
                    ]
                    for policy in POLICIES
                ],
            )


def copies(family: Family) -> Iterator[str]:
    """Yield how often a draft with the prior's Impression is taken where some have it and some do not."""
    yield f"## Drafts that repeat the prior's Impression: {family.name}\n"
    yield "*Reports* and *drafts*: the share of the references, and of the drafts, that repeat it. *Queries*:"
    yield "those in which some drafts repeat it and some do not. *Chance*: in how many of them a random pick"
    yield "repeats it; the last columns: in how many the methods' pick does, in the mean of the eight.\n"
    counts = np.array([one.repeated() for one in family.sets])
    names = ["drafts", "reports", "drafts", "queries", "chance", *(f"`{policy}`" for policy in POLICIES)]
    rows = zip([one.name for one in family.sets], counts, strict=True)
    whole = np.concatenate([counts[:, :2].mean(axis=0), counts[:, 2:].sum(axis=0)])
    yield from table(
        names,
        [
            [name, *(f"{share:.1%}" for share in count[:2]), *map(_whole, count[2:])]
            for name, count in [*rows, ("all", whole)]
        ],
    )


def controls(family: Family) -> Iterator[str]:
    """Yield what the right prior is worth against another patient's."""
    yield f"## The right prior less another patient's: {family.name}\n"
    yield "Points of the gap closed, in the mean of the eight methods. Below 0 the other prior does better.\n"
    lost = {policy: family.share(policy) - family.share(policy, other_prior=True) for policy in RIVALS}
    columns = [(score, policy) for score in range(len(SCORES)) for policy in RIVALS]
    sets = [
        (one.name, {policy: lost[policy][place] for policy in RIVALS})
        for place, one in enumerate(family.sets)
    ]
    mean = ("mean", {policy: lost[policy].mean(axis=0) for policy in RIVALS})
    yield from table(
        ["drafts", *(f"{SCORES[score]}, `{policy}`" for score, policy in columns)],
        [
            [name, *(estimate(values[policy][:, score]) for score, policy in columns)]
            for name, values in [*sets, mean]
        ],
    )


def details(family: Family) -> Iterator[str]:
    """Yield every data set, method and score under both policies that could be the default."""
    lead = family.share("match") - family.share("neutral")
    for place, score in enumerate(SCORES):
        yield f"## Every data set: {family.name}, {score}\n"
        yield "`neutral` / `match`; *lead*: of `match`, in the mean of the eight methods.\n"
        rows = []
        for number, one in enumerate(family.sets):
            pairs = zip(*map(arms_of, RIVALS), strict=True)
            cells = (" / ".join(estimate(family.of(arm)[number, :, place]) for arm in pair) for pair in pairs)
            rows.append([one.name, *cells, estimate(lead[number, :, place])])
        yield from table(["drafts", *METHOD_NAMES, "lead"], rows)


def arms_of(policy: Policy, *, other_prior: bool = False) -> list[Arm]:
    """Return the eight methods under a policy."""
    return [Arm(method, policy, other_prior) for method in METHODS]


def _whole(value: float) -> str:
    """Write a number without places; a dash where there is none."""
    return "–" if np.isnan(value) else f"{round(float(value))}"


def main() -> int:
    """Run what was asked for; say why where that cannot be done."""
    parser = arguments(__doc__)
    parser.add_argument("--cohorts", default="50,51", help="seeds of simulated cohorts, such as 50,51")
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("ZERO.md"))
    asked, plan = parser.parse_args(), read_plan()
    cohort_folder = asked.out / "simulated"
    try:
        seeds, cohorts = numbers(asked.seeds) if asked.seeds else plan.seeds, numbers(asked.cohorts)
        build(asked.archive, asked.out, plan, list(plan.kind_settings), seeds, asked.stage)
        simulated.build(cohort_folder, plan, simulated.settings(plan), cohorts)
        build_demo(cohort_folder)
        families = [
            openi(asked.out, plan, seeds, asked.stage),
            simulation(cohort_folder, plan, cohorts),
        ]
        lines = list(page(families))
    except TabonError as error:
        tell(f"error: {error}")
        return 1
    named = f"--seeds {','.join(map(str, seeds))} --cohorts {asked.cohorts}"
    write_page(asked.page, f"zero.py NLMCXR_reports.tgz {named}", HEAD, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
