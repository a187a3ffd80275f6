"""Build the Open-i experiment, select with every selector, and write one page of tables.

    python experiments/openi/run.py ARCHIVE --settings base --seeds 1000-1004

Whatever was made from the same inputs before is not made again. The page is
RESULTS.md beside this file; every number behind it is in FOLDER/SETTING/results.json.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from build import arguments, build, seed_folder
from judging import Judged, judge
from plan import Plan, numbers, read_plan
from selecting import Method, SeedRun, Tools, loadable, methods
from table import setting_lines

from tabon._internal.atomic_files import replacing
from tabon.errors import TabonError
from tabon.evaluation.results import write_results
from tabon.metrics.protocol import MeasurementStore

HEAD = """
# Open-i: what every selector is worth

Share of the random → oracle gap closed, in %, with 95 % intervals (prior reports resampled, all seeds
of a prior together). I: Impressions, F: Findings. `facts-f1`: MeSH facts of the draft's source report
against the reference's. ↳: the same selector with another patient's prior. How the data were made, and
what they cannot say: [README](README.md).
"""


def tell(message: str) -> None:
    """Say what is being done."""
    print(message, file=sys.stderr, flush=True)


def select_seed(run: SeedRun, selectors: list[str]) -> Judged:
    """Select with every method on one seed."""
    choosers = {name: run.chooser(name) for name in selectors}
    files = {method: run.select(method, choosers[method.selector]) for method in methods(selectors)}
    return Judged(seed=run.seed, cases=run.cases, files=files)


def run_setting(out: Path, plan: Plan, setting: str, seeds: tuple[int, ...], stage: str) -> list[str]:
    """Select on every seed of a setting, judge, and return its part of the page."""
    tools = Tools(plan.selection, out / "sentences.sqlite", tell)
    runs = [SeedRun(seed_folder(out, setting, seed, stage=stage), seed, tools) for seed in seeds]
    there, missing = loadable(runs[0], [*plan.selection.paper, *plan.selection.rivals])
    judged = [select_seed(run, there) for run in runs]
    tell(f"{setting}: judging")
    results = judge(judged, plan.evaluation, MeasurementStore(out / "measurements.sqlite"))
    write_results(out / setting / "results.json", results)
    rows: list[Method] = list(methods(there))
    return list(setting_lines(setting, results, rows, missing))


def main() -> int:
    """Run what was asked for; say why where that cannot be done."""
    parser = arguments(__doc__)
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("RESULTS.md"))
    asked, plan = parser.parse_args(), read_plan()
    try:
        seeds = numbers(asked.seeds) if asked.seeds else plan.seeds
        build(asked.archive, asked.out, plan, asked.settings, seeds, asked.stage)
        parts = [run_setting(asked.out, plan, name, seeds, asked.stage) for name in asked.settings]
    except TabonError as error:
        tell(f"error: {error}")
        return 1
    named = f"--settings {' '.join(asked.settings)} --seeds {','.join(map(str, seeds))} --stage {asked.stage}"
    command = f"`python experiments/openi/run.py NLMCXR_reports.tgz {named}`"
    with replacing(asked.page) as page:
        lines = [command, HEAD.rstrip(), *(line for part in parts for line in part)]
        page.write("\n".join(lines).encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
